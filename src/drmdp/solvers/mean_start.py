"""Where the robust methods begin: the optimum of the mean kernel, or the value of a policy under it, of a model of moderate size.

Policy iteration on the rows ȳ of the mean kernel as they are stored. In a round one pass over the rows finds the best actions x and the residual
r = F(v) − v, and the system (I − λP) δ = r of their chain, P_s = Σ_a x_a ȳ_sa, is solved by a few products with the rows themselves where the chain mixes
fast, else directly (`drmdp.criteria.linear`). Products stop at a rough δ: most rounds change the actions, and the last ones correct each other. It ends
when |r| ≤ (1−λ) tol, so that |v − v*| ≤ tol, or when neither actions nor a smaller residual are found.

This is a means, like the systems themselves: what it returns is a point to begin at, which proves nothing and needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.criteria import linear

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
        """Arrays of the kinds that routines read."""
        kinds = (indptr, np.int64), (indices, np.int32), (data, np.float64), (costs, np.float64), (available, np.bool_)
        parts: Any = (np.ascontiguousarray(part, dtype=kind) for part, kind in kinds)
        return cls._make([*parts, discount])


def optimum(rows: Rows, policy: Array | None, tol: float, checkpoint: Callable[[Array], None]) -> Array:
    """The best value, or that of a policy (S, A); `checkpoint` is told every point, in a small model the first, and raises when time is up."""
    S = rows.costs.shape[0]
    x = np.zeros(rows.costs.shape) if policy is None else np.ascontiguousarray(policy, dtype=np.float64)
    value, residual = np.zeros(S), np.empty(S)
    if S <= linear.SMALL:
        checkpoint(value)
        _native.rounds(rows, policy is None, tol, ROUNDS, x, value)
        return value
    least = np.inf
    for _ in range(ROUNDS):
        checkpoint(value)
        size, same = _native.improve(rows, policy is None, x, value, residual)
        if size <= (1 - rows.discount) * tol or (same and not size < least):
            break
        least = size
        value = value + _solve(rows, x, residual)
    return value


def least_costs(rows: Rows) -> Array:
    """What the cheapest action costs, (S,); 0 in terminal states."""
    least = np.where(rows.available, rows.costs, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)


def _solve(rows: Rows, x: Array, right: Array) -> Array:
    S = right.size
    found, limits = np.empty(S), (linear.PRODUCTS, linear.RATE, linear.SLACK, ROUGH)
    if S > linear.SMALL and _native.relax(rows, x, right, *limits, found):
        return found
    chain = np.zeros((S, S))
    _native.spell_mean(rows, x, chain)
    return linear.direct(chain, rows.discount, right)
