"""A policy against nature's answers: what the methods of this package see of a set, and where they work.

    F̄ = min_x f(x),        f(x) = max { Σ_a x_a g_a(z) : z in nature's set },        x in the simplex,

where the set is convex and every gain g_a(z) is concave. A point z is M numbers, and mixtures of points are points. A set is known by three compiled functions
behind walls (`drmdp.core.compiled.wall`), with `data` of its own:

    answer(data, n, x, tau, tol, q, gain) -> (U, τ)    fills a point q that is best for x (n,) up to tol, and its gains; U ≥ f(x). τ is a multiplier: that
                                                       of the last answer or 0 before, inf where nature has budget to spare
    gains(data, n, q, gain)               -> least     fills the gains of a point
    bend(data, m, member, tau, H)         -> trace     fills the Hessian of f at the last answer on m members; 0 where f is not smooth

For every x and z, f(x) is an upper bound on F̄ and min_a g_a(z) a lower one; the best of both are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.piecewise.columns import Basis, make_basis
from drmdp.bellman.qp import Program, make_program
from drmdp.core.compiled import INLINE, njit
from drmdp.layout.sorting import copy


class Game(NamedTuple):
    """n actions against a set."""

    n: Any
    data: Any
    answer: Any
    gains: Any
    bend: Any
    smooth: Any  # whether f has a Hessian worth a Newton step


class Space(NamedTuple):
    """Work space for up to A actions and points of M numbers."""

    q: Array  # (M,) nature's answer
    best_q: Array  # (M,)
    gain: Array  # (A,)
    x: Array  # (A,)
    best_x: Array  # (A,)
    trial: Array  # (A,)
    step: Array  # (2, A)
    member: Any  # (A,)
    H: Array  # (A, A)
    program: Program
    basis: Basis
    points: Array  # (A + 1, M)


def make_space(A: int, M: int) -> Space:
    """Work space for A actions and points of M numbers."""
    return Space(
        np.empty(M), np.empty(M), np.empty(A), np.empty(A), np.empty(A), np.empty(A), np.empty((2, A)),
        np.empty(A, dtype=np.int64), np.empty((A, A)), make_program(A), make_basis(A), np.empty((A + 1, M)),
    )  # fmt: skip


@njit(**INLINE)
def note(game, upper, tau, x, bounds, space):
    """Look at an answer and keep what is best.

    reads   game, upper (its U), tau, x, space: q, gain
    fills   bounds: U, L and τ so far; space: best_x, best_q
    """
    least = space.gain[0]
    for a in range(game.n):
        least = min(least, space.gain[a])
    if upper < bounds[0]:
        bounds[0], bounds[2] = upper, tau
        for a in range(game.n):
            space.best_x[a] = x[a]
    if least > bounds[1]:
        bounds[1] = least
        copy(space.q, space.best_q)
