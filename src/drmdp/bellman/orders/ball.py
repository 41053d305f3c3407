"""One state of a ball of finite order, and work space; see `drmdp.bellman.orders`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.piecewise.budget_per_kernel import Tables, make_tables
from drmdp.bellman.rows.l2 import FIELDS, State
from drmdp.bellman.rows.linf_table import lines_needed
from drmdp.core.compiled import INLINE, njit

L1, L2, LINF = range(3)
METRICS = {"l1": L1, "l2": L2, "linf": LINF}
IDLE = 1.0
"""What an action that cannot matter costs; no worst case is above 0."""


class Kernels(NamedTuple):
    """What is known of the N kernels at a price μ."""

    r: Array  # (N,) distances
    price: Array  # (N,) λ
    claim: Array  # (N,) behind the best U: λ, for ℓ2 κ
    kappa: Array  # (N,) multipliers, ℓ2
    bracket: Array  # (2, N)
    free: Any  # (N,) the entry of the segment that r is inside of; −1: at a kink
    place: Any  # (N,) entries that are moved, ℓ1


class Points(NamedTuple):
    """Two points and their gains above the nominal value."""

    amounts: Array  # (2, A, N)
    gain: Array  # (2, A)
    lifted: Array  # (A,) a policy


class Moves(NamedTuple):
    """ℓ1: entries of played actions by falling slope, and sums over them."""

    slope: Array  # (E,) x_a u
    action: Any  # (E,)
    order: Any  # (E,)
    spare: Any  # (E,)
    mass: Array  # (N, E + 1) moved so far
    gain: Array  # (N, E + 1)
    count: Any  # (1,)
    entry: Any  # (E,)


class Paths(NamedTuple):
    """ℓ2: rows as `drmdp.bellman.rows.l2` keeps them."""

    tau: Array  # (A, N)
    first: Array  # (A, N) D before anything is clipped, order 1
    rows: Array  # (A, FIELDS, N)
    off: Array  # (A,)
    share: Array  # (A,)


class Profiles(NamedTuple):
    """ℓ∞: gains as tables."""

    tables: Tables
    segment: Any  # (A, N)
    mass: Array  # (K + 1,)
    index: Any  # (K + 1,)


class Inner(NamedTuple):
    """ℓ2: a step of the interior-point method."""

    matrix: Array  # (A + 2, A + 3)
    step: Array  # (A + 2,)
    slack: Array  # (A + 1,) of the actions and of μ
    change: Array  # (A + 1,)
    nu: Array  # (N,)
    power: Array  # (N,) ρ^{p−1}
    more: Array  # (2, N) steps of κ and ν
    kept: Array  # (N,) κ before a step


class Ball(NamedTuple):
    """One state; see the module."""

    metric: Any
    p: float
    theta: float
    head: Array  # (A,) cost + V⁰, IDLE where it does not count
    live: Any  # (A,) whether an action counts
    rows: State
    kernels: Kernels
    points: Points
    moves: Moves
    paths: Paths
    profiles: Profiles
    H: Array  # (2, A)
    inner: Inner


@njit(**INLINE)
def price_of(mu, rho, p):
    """λ = μ ρ^{p−1}; inf where that is no number.

    reads   mu, rho, p
    returns it
    """
    return mu * rho ** (p - 1.0) if mu > 0.0 else 0.0


def make_parts(metric: int, A: int, N: int, E: int, K: int) -> tuple[Any, ...]:
    """Work space of a state of A actions, N kernels and E entries, K in the longest row: the fields of a Ball from `kernels` on."""
    whole: Any = np.int64
    e = E if metric == L1 else 0
    a = A if metric == L2 else 0
    k = K if metric == LINF else 0
    return (
        Kernels(
            np.empty(N), np.empty(N), np.empty(N), np.empty(N), np.empty((2, N)), np.empty(N, whole), np.empty(N, whole)
        ),
        Points(np.empty((2, A, N)), np.empty((2, A)), np.empty(A)),
        Moves(
            np.empty(e), np.empty(e, whole), np.empty(e, whole), np.empty(e, whole), np.empty((N, e + 1)),
            np.empty((N, e + 1)), np.empty(1, whole), np.empty(e, whole),
        ),
        Paths(np.empty((a, N)), np.empty((a, N)), np.empty((a, FIELDS, N)), np.empty(a), np.empty(a)),
        Profiles(
            make_tables(A, N, N * lines_needed(E, A) if k else 0), np.ones((A, N), whole), np.empty(k + 1), np.empty(k + 1, whole)
        ),
        np.empty((2, A)),
        Inner(
            np.empty((a + 2, a + 3)), np.empty(a + 2), np.empty(a + 1), np.empty(a + 1), np.empty(N), np.empty(N),
            np.empty((2, N)), np.empty(N),
        ),
    )  # fmt: skip
