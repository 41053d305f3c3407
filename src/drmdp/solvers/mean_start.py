"""The start of the robust methods: the optimum of the mean kernel, or the value of a policy under
it, of a model of moderate size.

Policy iteration on the rows ȳ of the mean kernel as they are stored. In a round one pass over the
rows gives the best actions x and the residual r = F(v) − v, and the system (I − λP) δ = r of their
chain, P_s = Σ_a x_a ȳ_sa, is solved by a few products with the rows themselves where the chain
mixes fast, else directly (`drmdp.criteria.newton_systems`). Products stop at a rough δ: most rounds
change the actions, and the last ones correct each other. It ends when |r| ≤ (1−λ) tol, so that |v −
v*| ≤ tol, or when the actions stay and the residual does not shrink.

The result is a start, which proves nothing and needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compact import CompactRows, listed_rows
from drmdp.criteria import newton_systems

ROUNDS = 100
ROUGH = 1e-5
"""Residual of products, relative to δ."""


class MeanRows(NamedTuple):
    """The mean kernel of a model."""

    indptr: Any  # (S·A + 1,)
    indices: Any
    data: Array  # ȳ
    costs: Array  # (S, A) under it
    available: Any  # (S, A)
    discount: float

    @classmethod
    def of(
        cls, indptr: Any, indices: Any, data: Any, costs: Any, available: Any, discount: float
    ) -> MeanRows:
        """Arrays of the types that routines read."""
        arrays = indptr, indices, data, costs, available
        types = np.int64, np.int32, np.float64, np.float64, np.bool_
        pairs = zip(arrays, types, strict=True)
        return cls._make([*(np.ascontiguousarray(part, kind) for part, kind in pairs), discount])


def optimum(
    rows: MeanRows, policy: Array | None, tol: float, checkpoint: Callable[[Array], None]
) -> Array:
    """The best value, or that of a policy (S, A); `checkpoint` is called with every point and
    raises when time is up.
    """
    x = np.zeros(rows.costs.shape) if policy is None else policy
    pairs, value, least = compact(rows), np.zeros(rows.costs.shape[0]), np.inf
    for _ in range(ROUNDS):
        checkpoint(value)
        before = x
        x, residual = improve(rows, pairs, policy, value)
        size = np.abs(residual).max(initial=0.0)
        if size <= (1 - rows.discount) * tol or (not size < least and np.array_equal(x, before)):
            break
        least = size
        value = value + _solve(compact(rows, x), rows.discount, residual)
    return value


def improve(
    rows: MeanRows, pairs: CompactRows, policy: Array | None, value: Array
) -> tuple[Array, Array]:
    """The policy, or the best actions at v, (S, A), and F(v) − v; `pairs` are the rows of all
    pairs.
    """
    S, A = rows.costs.shape
    stakes = rows.costs + rows.discount * (pairs @ value).reshape(S, A)
    available = rows.available.reshape(S, A)
    if policy is not None:
        return policy, np.where(available, policy * stakes, 0.0).sum(axis=1) - value
    stakes, states, going = np.where(available, stakes, np.inf), np.arange(S), available.any(axis=1)
    best, x = stakes.argmin(axis=1), np.zeros((S, A))
    x[states, best] = going
    return x, np.where(going, stakes[states, best], 0.0) - value


def compact(rows: MeanRows, policy: Array | None = None) -> CompactRows:
    """The rows of all pairs, or those of the chain of a policy (S, A)."""
    ptr, states, data = rows.indptr, rows.indices, rows.data
    if policy is not None:
        lengths, x = np.diff(ptr), np.ravel(policy)
        played = np.repeat(x > 0, lengths)
        ptr = np.append(0, np.cumsum(np.where(x > 0, lengths, 0)))[:: policy.shape[1]].copy()
        states, data = states[played], (np.repeat(x, lengths) * data)[played]
    return listed_rows(rows.costs.shape[0], ptr, states, data)


def least_costs(rows: MeanRows) -> Array:
    """Cost of the cheapest action, (S,); 0 in terminal states."""
    least = np.where(rows.available, rows.costs, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)


def _solve(chain: CompactRows, discount: float, right: Array) -> Array:
    if right.size > newton_systems.SMALL:
        solution = newton_systems.relax(chain, discount, right, ROUGH * (1 - discount))
        if solution is not None:
            return solution
    return newton_systems.direct(chain.dense(), discount, right)
