"""Nature re-weights the N kernels: the exact update.

Normalised as in `drmdp.layout.point`. One pass over all N kernels gives G_ai = cost_a + ŷ_ia·u; what is left are A × N numbers.

With "s" there is one mixture q for all actions of a state: F̄ = min_x max_q Σ_a x_a Σ_i q_i G_ai is the saddle point of `drmdp.bellman.mixing`. Nature's move
against one action may help another one, so nothing is left out for its mean. With "sa" each pair is a state (`drmdp.bellman.frame.pairs`).

U = f(x) and L = min_a Σ_i q_i G_ai by weak duality, for whatever x and q were found. With a policy fixed it is f(x).

Memory: by_action[0] holds τ of the last answer, by_kernel holds q; where τ is 0 nature was not asked, and q is w.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.mixing.answers import KINDS, dot, walls
from drmdp.bellman.mixing.newton import ANSWERS, newton
from drmdp.bellman.mixing.saddle import Work, close_game, first_policy, game_of, gather, make_work
from drmdp.bellman.nature_rows import Answer, begin, piece_at
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point, normalise, row_scales
from drmdp.layout.sorting import copy


class Family(NamedTuple):
    """A kind, as `drmdp.bellman.family` wants it."""

    update: Any
    evaluate: Any
    workspace: Any
    NATURE: Any


def workspace(kind: int, layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    return make_work(layout, start, stop, kind)


def update(
    start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work
) -> None:
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    Newton's method is tried first; where it leaves a gap, out.passes is negative, and the others close it.
    """
    _sweep(start, stop, layout, point, memory, out, tol, work, walls())
    passes = out.passes[start:stop]
    if (passes < 0.0).any():
        _close(start, stop, layout, point, memory, out, tol, work, walls())
    np.abs(passes, out=passes)


def evaluate(
    start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work
) -> None:
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`."""
    _sweep(start, stop, layout, point, memory, out, tol, work._replace(fixed=True), walls())


@njit(**INLINE)
def _begin(layout, s, memory, out, work, calls):
    """Gather a state that was normalised, and where to begin.

    reads   layout, s, memory, out.policy, calls: the walls of `mixing.answers`
    fills   work: state.scale, mix, act, space.x, bounds
    returns its game
    """
    row_scales(layout, s, work.state.scale)
    n = gather(layout, s, out.policy[s], work)
    game = game_of(work, n, layout.weights, layout.radius[s], calls)
    first_policy(game, out.policy[s], work.act, work.space.x)
    work.bounds[0], work.bounds[1], work.bounds[2] = np.inf, -np.inf, memory.by_action[s, 0]
    return game


@njit(**INLINE)
def _keep(s, n, memory, out, work):
    """Write down what was found of a state.

    reads   s, n (rows), work
    fills   memory, out.policy
    """
    memory.by_action[s, 0] = work.bounds[2]
    copy(work.space.best_q, memory.by_kernel[s])
    if not work.fixed:
        for b in range(out.policy.shape[1]):
            out.policy[s, b] = 0.0
        for k in range(n):
            out.policy[s, work.act[k]] = work.space.best_x[k]


@njit(**KERNEL)
def _sweep(start, stop, layout, point, memory, out, tol, work, calls):
    """Update by Newton's method, or evaluate.

    reads   layout, point, calls: the walls of `mixing.answers`
    fills   memory, out, work
    """
    space, bounds = work.space, work.bounds
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        out.passes[s] = 0.0
        if not base < np.inf:
            continue
        game = _begin(layout, s, memory, out, work, calls)
        answers = newton(game, tol, 1 if work.fixed else ANSWERS, bounds, space)
        if work.fixed:
            bounds[1] = dot(space.q, work.mix.vectors[0])
        out.passes[s] = -answers if not work.fixed and bounds[0] - bounds[1] > tol else answers
        _keep(s, game.n, memory, out, work)
        out.upper[s] = base + unit * bounds[0]
        out.lower[s] = base + unit * bounds[1]


@njit(**KERNEL)
def _close(start, stop, layout, point, memory, out, tol, work, calls):
    """Close the gaps that Newton's method left.

    reads   layout, point, calls: the walls of `mixing.answers`
    fills   memory, out, work
    """
    space, bounds = work.space, work.bounds
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        base, unit = normalise(layout, point, s, work.state)
        game = _begin(layout, s, memory, out, work, calls)
        out.passes[s] -= close_game(game, tol, bounds, space)
        _keep(s, game.n, memory, out, work)
        out.upper[s] = base + unit * bounds[0]
        out.lower[s] = base + unit * bounds[1]


def mixtures(layout: Layout, memory: Memory, share: Any) -> Array:
    """The mixtures that nature plays, (S, N), or (S, A, N); what is no mixture is w."""
    (S, A), N = layout.available.shape, layout.weights.size
    each = memory.by_kernel.shape[1] > N or layout.radius.ndim == 2
    q = memory.by_kernel.reshape((S, A, N) if each else (S, N))
    asked = memory.by_action[..., None] if each else memory.by_action[:, :1]
    q = np.where(np.isfinite(q) & (q > 0) & (asked > 0), q, 0.0)
    total = q.sum(axis=-1, keepdims=True)
    w = layout.weights / layout.weights.sum()
    q = np.where(total > 0, q / np.where(total > 0, total, 1.0), w)
    if share is None:
        return q
    part = share.reshape(S, A, -1)[:, :, :1] if each else share[:, :1]
    return np.asarray(w + part * (q - w))


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work):
    """Rows of the states start … stop − 1: mixtures of the kernels.

    reads   layout, point, memory.by_kernel, question: weights, share
    fills   question.target, work
    """
    w = layout.weights
    for s in range(start, stop):
        if begin(layout, point, s, work.state):
            for a in range(question.weights.shape[1]):
                x = question.weights[s, a]
                if x > 0.0:
                    piece = piece_at(layout, s, a, work.state, question.target)
                    q = memory.by_kernel[s]
                    mass = 0.0
                    for i in range(w.size):
                        mass += q[i] if q[i] > 0.0 else 0.0
                    share = (
                        question.share[s, 0] if mass > 0.0 and mass < np.inf and memory.by_action[s, 0] > 0.0 else 0.0
                    )
                    for i in range(w.size):
                        part = w[i] + share * (max(q[i], 0.0) / mass - w[i]) if share > 0.0 else w[i]
                        for j in range(piece.u.size):
                            piece.mass[j] += x * part * piece.scale[i] * piece.y[i * piece.u.size + j]


NATURE = Answer(_respond, single=0, prefixes=False, single_kernels=False, weights=mixtures)
"""How her rows follow from the mixtures."""


KL, BURG, CHI2, TV, CVAR, ANY = (
    Family(update, evaluate, partial(workspace, number), NATURE) for number in KINDS.values()
)
