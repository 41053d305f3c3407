"""A matrix game whose columns are found one by one: the finish of the kernels whose policy is a vector of unknowns.

The agent mixes over n actions, nature over points with gains q ∈ Rⁿ; an oracle answers a policy x with a point of greatest x·q.

    max γ   such that   γ ≤ Σ_j λ_j q_ja for every a,    λ ≥ 0,  Σ_j λ_j = 1                    (dual: x ≥ 0, Σ_a x_a = 1)

The revised simplex method, a column at a time: γ is a lower bound, x·q of the oracle's point an upper one, and the method is finite. No
scale enters it, so it ends where methods with a step size stall: where what is left to gain is many orders of magnitude below the rest.
It needs many points where n is large; it is meant to begin near the end, with gains measured in units of the gap that is left. A column is divided
by its largest entry, for single points may gain and lose many times the gap.

A basis has n + 1 variables: γ, some λ, and slacks. The caller keeps whatever belongs to a column under its slot, 0 … n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.core.compiled import INNER

PIVOT = 1e-13  # a smaller pivot is rounding
NEGATIVE = 1e-11  # and so is a probability this far below 0


class Game(NamedTuple):
    """Basis and work space for up to n actions; see `empty`."""

    matrix: Array  # (n + 1, n + 1), a column for each basic variable; the last row holds what makes λ of its value
    kind: Any  # (n + 1,) of each basic variable: −1 for γ, a for the slack of action a, n + k for λ in slot k
    level: Array  # (n + 1,) value of each basic variable
    price: Array  # (n + 1,) dual, x first
    work: Array  # (n + 1, n + 2)


@njit(cache=True, nogil=True)
def empty(n):  # type: ignore[no-untyped-def]
    """Room for n actions."""
    return Game(
        np.zeros((n + 1, n + 1)),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1),
        np.zeros(n + 1),
        np.zeros((n + 1, n + 2)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def begin(game, n, q):  # type: ignore[no-untyped-def]
    """Start from one point, in slot 0."""
    least = 0
    for a in range(n):
        if q[a] < q[least]:
            least = a
    game.matrix[:] = 0.0
    _column(n, q, game.price)
    for a in range(n + 1):
        game.matrix[a, 0] = 1.0 if a < n else 0.0
        game.matrix[a, 1] = game.price[a]
    game.kind[0], game.kind[1] = -1, n
    k = 2
    for a in range(n):
        if a != least:
            game.matrix[a, k] = 1.0
            game.kind[k] = a
            k += 1


@njit(**INNER)
def _column(n, q, column):  # type: ignore[no-untyped-def]
    """The column of a point, divided by its largest entry."""
    size = 1.0
    for a in range(n):
        size = max(size, abs(q[a]))
    for a in range(n):
        column[a] = -q[a] / size
    column[n] = 1.0 / size


@njit(cache=True, nogil=True, error_model="numpy")
def balance(game, n, tie):  # type: ignore[no-untyped-def]
    """Optimal mixture of the columns so far, slacks included: fills price, returns γ; NaN if the basis is singular.

    Right-hand sides differ by up to `tie`, or columns of equal gains would take turns for ever.
    """
    for _ in range(20 * (n + 1)):
        for a in range(n):
            game.level[a] = tie * (a + 1) / n
        game.level[n] = 1.0
        if not _solve(game.matrix, game.level, n + 1, game.work, False):
            return np.nan
        game.price[:] = 0.0
        for k in range(n + 1):
            if game.kind[k] == -1:
                game.price[k] = 1.0
        if not _solve(game.matrix, game.price, n + 1, game.work, True):
            return np.nan
        worst = -1
        least = -NEGATIVE
        for a in range(n):
            if game.price[a] < least:
                least = game.price[a]
                worst = a
        if worst < 0:
            break
        column = np.zeros(n + 1)
        column[worst] = 1.0
        if _enter(game, n, column, worst) == -2:
            return np.nan
    for k in range(n + 1):
        if game.kind[k] == -1:
            return game.level[k]
    return np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def admit(game, n, q):  # type: ignore[no-untyped-def]
    """Let a point of gains q enter; return its slot, or −1 if that is impossible."""
    column = np.empty(n + 1)
    _column(n, q, column)
    slot = 0
    while True:  # the first slot that no basic column holds
        taken = False
        for k in range(n + 1):
            taken = taken or game.kind[k] == n + slot
        if not taken:
            break
        slot += 1
    return slot if _enter(game, n, column, n + slot) != -2 else -1


@njit(**INNER)
def _enter(game, n, column, kind):  # type: ignore[no-untyped-def]
    """Exchange a basic variable for a new one; return the kind of the old one, −2 if there is none."""
    fresh = column.copy()
    if not _solve(game.matrix, column, n + 1, game.work, False):
        return -2
    leaving = -1
    ratio = np.inf
    for k in range(n + 1):
        if game.kind[k] != -1 and column[k] > PIVOT:
            r = max(game.level[k], 0.0) / column[k]
            if r < ratio or (r == ratio and column[k] > column[leaving]):
                ratio = r
                leaving = k
    if leaving < 0:
        return -2
    old = game.kind[leaving]
    game.kind[leaving] = kind
    for a in range(n + 1):
        game.matrix[a, leaving] = fresh[a]
    return old


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(matrix, b, n, work, transposed):  # type: ignore[no-untyped-def]
    """Solve M z = b or Mᵀ z = b in place by elimination with pivoting; False if M is singular."""
    for r in range(n):
        for c in range(n):
            work[r, c] = matrix[c, r] if transposed else matrix[r, c]
        work[r, n] = b[r]
    for c in range(n):
        best = c
        for r in range(c + 1, n):
            if abs(work[r, c]) > abs(work[best, c]):
                best = r
        if not abs(work[best, c]) > 1e-200:
            return False
        for k in range(c, n + 1):
            work[c, k], work[best, k] = work[best, k], work[c, k]
        for r in range(c + 1, n):
            f = work[r, c] / work[c, c]
            if f != 0.0:
                for k in range(c, n + 1):
                    work[r, k] -= f * work[c, k]
    for r in range(n - 1, -1, -1):
        total = work[r, n]
        for k in range(r + 1, n):
            total -= work[r, k] * b[k]
        b[r] = total / work[r, r]
    return True
