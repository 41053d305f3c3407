"""Sweeps with one kernel that stays.

    F_y(v)_s = min_a c̄(s,a) + λ Σ_t y(t|s,a) v(t),        c̄(s,a) = Σ_t y(t|s,a) c(s,a,t).

Sums of n terms carry a margin of (4n + 2A + 64) ε times the largest they may have; F_y of a policy adds its actions' margins. A model may be a part of
one: v is that of all states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate import Proof
from drmdp.core.compact import rows_of
from drmdp.core.levels import EPS, both_steps, level
from drmdp.model import Model


class FixedKernel:
    """A model with one kernel: (S, A, S), or sparse (S·A, S); `prices` (S, A) are c̄, if they are known already."""

    def __init__(self, model: Model, kernel: Any, threads: int = 1, prices: Array | None = None) -> None:
        S, A = model.n_states, model.n_actions
        self.model = model
        is_sparse = sparse.issparse(kernel)
        matrix: Any = sparse.csr_array(kernel) if is_sparse else np.ascontiguousarray(kernel).reshape(S * A, S)
        self.matrix = matrix
        self._rows: Any = rows_of(matrix, threads) if is_sparse else matrix
        longest = int(np.diff(matrix.indptr).max(initial=0)) if is_sparse else S
        self._terms = max(longest, model.facts.longest)
        if prices is not None:
            costs = prices
        elif not model.next_costs:
            costs = np.asarray(model.costs)
        elif is_sparse:
            listed = model.blocks.matrix(model.listed_costs())
            costs = np.asarray(matrix.multiply(listed).sum(axis=1)).reshape(S, A)
        else:
            z = model.stakes(np.zeros(S), 0, S)
            costs = (matrix.reshape(S, A, S) * np.where(matrix.reshape(S, A, S) > 0, z, 0.0)).sum(axis=2)
        self.costs = np.where(model.available, costs, 0.0)

    def stakes(self, value: Array) -> Array:
        """c̄ + λ y·v at v without its level, (S, A)."""
        means = self._means(value - level(value, self.model)).reshape(self.costs.shape)
        return np.asarray(self.costs + self.model.factor * means)

    def _means(self, u: Array) -> Array:
        """y·u of every pair, (S·A,)."""
        return np.asarray(self._rows @ u)

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> Proof:
        """Bound F_y, or that of the policy, at `value`; there is nothing to claim."""
        stake = self.stakes(value)
        return Proof(*self.bound(value, policy, stake, fixed))

    def bound(self, value: Array, policy: Array, stake: Array, fixed: bool) -> tuple[Array, Array]:
        """L − v and U − v, (S,) each, from the stakes."""
        model, shift = self.model, level(value, self.model)
        u, ends = value - shift, model.terminal
        most = np.abs(self.costs) + 2 * model.discount * np.abs(u).max()  # c̄ may be a sum of the same terms
        u = u[model.own]
        if model.next_costs:
            most = most + max(map(abs, model.cost_range))
        margin = (4 * self._terms + 2 * model.n_actions + 64) * EPS * most
        mean = (policy * stake).sum(axis=1)
        off = (policy * margin).sum(axis=1)
        least = mean - off
        if not fixed:  # whichever action is really the best
            least = np.where(model.available, stake - margin, np.inf).min(axis=1, initial=np.inf)
            least = np.where(ends, 0.0, least)
        return both_steps(u, shift, model, least, mean + off)[:2]
