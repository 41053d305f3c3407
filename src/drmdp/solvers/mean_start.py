"""Where the robust methods begin: the optimum of the mean kernel, or the value of a policy under it, of a model of moderate size.

Policy iteration on the rows ȳ of the mean kernel as they are stored. In a round one pass over the rows finds the best actions x and the residual
r = F(v) − v, and the system (I − λP) δ = r of their chain, P_s = Σ_a x_a ȳ_sa, is solved by a few products with the rows themselves where the chain mixes
fast, else directly (`drmdp.solvers.linear`). Products stop at a rough δ: most rounds change the actions, and the last ones correct each other. It ends
when |r| ≤ (1−λ) tol, so that |v − v*| ≤ tol, or when neither actions nor a smaller residual are found.

This is a means, like the systems themselves: what it returns is a point to begin at, which proves nothing and needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import FAST, KERNEL, LEAN, njit
from drmdp.solvers import linear

ROUNDS = 100
ROUGH = 1e-5
"""What products may leave, relative to δ."""


class Rows(NamedTuple):
    """The mean kernel of a model."""

    indptr: Any  # (S·A + 1,)
    indices: Any
    data: Array  # ȳ
    costs: Array  # (S, A) under it
    available: Any  # (S, A)
    discount: float

    @classmethod
    def of(cls, indptr: Any, indices: Any, data: Any, costs: Any, available: Any, discount: float) -> Rows:
        """Arrays of one kind each, so that kernels are compiled once."""
        kinds = (indptr, np.int64), (indices, np.int32), (data, np.float64), (costs, np.float64), (available, np.bool_)
        parts: Any = [np.ascontiguousarray(part, dtype=kind).view(np.ndarray) for part, kind in kinds]
        for part in parts:
            part.setflags(write=False)
        found: Rows = cls._make([*parts, discount])
        return found


def optimum(rows: Rows, policy: Array | None, tol: float, checkpoint: Callable[[Array], None]) -> Array:
    """The best value, or that of a policy (S, A); `checkpoint` is told every point, in a small model the first, and raises when time is up."""
    S = rows.costs.shape[0]
    x = np.zeros(rows.costs.shape) if policy is None else np.ascontiguousarray(policy, dtype=np.float64)
    value, residual = np.zeros(S), np.empty(S)
    if S <= linear.SMALL:
        checkpoint(value)
        rounds(rows, policy is None, tol, x, value, residual, np.empty((2, S, S)), np.empty(S, dtype=np.int64))
        return value
    work = np.empty((4, S))
    least = np.inf
    for _ in range(ROUNDS):
        checkpoint(value)
        size, same = improve(rows, policy is None, x, value, residual)
        if size <= (1 - rows.discount) * tol or (same and not size < least):
            break
        least = size
        value = value + _solve(rows, x, residual, work)
    return value


@njit(**KERNEL)
def rounds(rows, free, tol, x, value, residual, work, listed):
    """All rounds of a small model.

    reads   rows, free: whether actions are chosen; else x (S, A); tol
    fills   value (S,), from 0 on; x, residual (S,), work (2, S, S), listed (S,)
    """
    chain, least = work[0], np.inf
    for _ in range(ROUNDS):
        size, same = improve(rows, free, x, value, residual)
        if size <= (1.0 - rows.discount) * tol or (same and not size < least):
            break
        least = size
        for s in range(value.size):
            for t in range(value.size):
                chain[s, t] = 0.0
        spell(rows, x, chain)
        linear.solve_small(chain, rows.discount, residual, work[1], listed)
        for s in range(value.size):
            value[s] += residual[s]


def least_costs(rows: Rows) -> Array:
    """What the cheapest action costs, (S,); 0 in terminal states."""
    least = np.where(rows.available, rows.costs, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)


def _solve(rows: Rows, x: Array, right: Array, work: Array) -> Array:
    S = right.size
    if S > linear.SMALL and relax(rows, x, right, work):
        return np.array(work[0])
    chain = np.zeros((S, S))
    spell(rows, x, chain)
    return linear.direct(chain, rows.discount, right)


@njit(fastmath=FAST, **LEAN)
def _product(rows, k, z):
    """The row of pair k with a vector.

    reads   rows, k, z (S,)
    returns it
    """
    first, total = np.uint64(rows.indptr[k]), 0.0
    for j in range(np.uint64(rows.indptr[k + 1] - rows.indptr[k])):
        total += rows.data[first + j] * z[np.uint32(rows.indices[first + j])]
    return total


@njit(fastmath=FAST, **KERNEL)
def improve(rows, free, x, value, residual):
    """One round.

    reads   rows, free: whether actions are chosen; else x; value (S,)
    fills   residual (S,): F(v) − v; if free x (S, A)
    returns its size, and whether x is what it was
    """
    S, A = rows.costs.shape
    size, same = 0.0, True
    for s in range(S):
        best, mean, own = np.inf, 0.0, -1
        for a in range(A):
            if rows.available[s, a] and (free or x[s, a] > 0.0):
                stake = rows.costs[s, a] + rows.discount * _product(rows, s * A + a, value)
                mean += x[s, a] * stake
                if stake < best:
                    best, own = stake, a
        if free:
            same &= own < 0 or x[s, own] == 1.0
            for a in range(A):
                x[s, a] = 1.0 if a == own else 0.0
            mean = best if own >= 0 else 0.0
        residual[s] = mean - value[s]
        size = max(size, abs(residual[s]))
    return size, same


@njit(fastmath=FAST, **LEAN)
def _apply(rows, x, z, out):
    """Fill out with (I − λP) z."""
    A = x.shape[1]
    for s in range(x.shape[0]):
        total = 0.0
        for a in range(A):
            if x[s, a] > 0.0:
                total += x[s, a] * _product(rows, s * A + a, z)
        out[s] = z[s] - rows.discount * total


@njit(fastmath=FAST, **KERNEL)
def relax(rows, x, right, work):
    """Solve (I − λP) δ = right as `drmdp.solvers.linear.relax` does, roughly.

    reads   rows, x (S, A), right (S,)
    fills   work (4, S): δ first
    returns whether that was possible
    """
    found, left, step, image = work[0], work[1], work[2], work[3]
    for k in range(right.size):
        found[k], left[k] = 0.0, right[k]
    first = 0.0
    for n in range(linear.PRODUCTS):
        mean, size, most = 0.0, 0.0, 0.0
        for k in range(right.size):
            mean += left[k]
            size = max(size, abs(left[k]))
            most = max(most, abs(found[k]))
        mean /= right.size
        first = first if n else size
        if size <= ROUGH * (1.0 - rows.discount) * most:
            return True
        if not size <= linear.SLACK * linear.RATE**n * first:
            return False
        lift = mean * rows.discount / (1.0 - rows.discount)
        for k in range(right.size):
            step[k] = left[k] + lift
        _apply(rows, x, step, image)
        for k in range(right.size):
            found[k] += step[k]
            left[k] -= image[k]
    return False


@njit(**KERNEL)
def spell(rows, x, chain):
    """Write the chain out.

    reads   rows, x (S, A)
    fills   chain (S, S): from 0 on
    """
    A = x.shape[1]
    for s in range(x.shape[0]):
        for a in range(A):
            if x[s, a] > 0.0:
                for e in range(rows.indptr[s * A + a], rows.indptr[s * A + a + 1]):
                    chain[s, rows.indices[e]] += x[s, a] * rows.data[e]
