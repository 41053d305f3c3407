"""The Bellman operator of one fixed kernel: nature has moved already.

    F_y(v)_s = min_a c̄(s,a) + λ Σ_t y(t|s,a) v(t),        c̄(s,a) = Σ_t y(t|s,a) c(s,a,t),

an ordinary MDP. It starts the robust methods (y the mean kernel) and gives the lower half of a certificate (y nature's
kernel): its solution is what the best policy against y costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.certificate import dense as certificate
from drmdp.certificate.dense import EPS
from drmdp.model import Model


@dataclass(frozen=True)
class Fixed:
    """Nature with a fixed kernel, a matrix (S·A, S)."""

    matrix: Any
    shape: tuple[int, int]  # (S, A)

    def kernel(self) -> Any:
        """Give the kernel as (S, A, S), or on demand if it is sparse."""
        S, A = self.shape
        if not sparse.issparse(self.matrix):
            return self.matrix.reshape(S, A, -1)
        from drmdp.core.compact import of_matrix

        return of_matrix(self.matrix, A)

    def chain(self, policy: Array) -> Any:
        """Σ_a x_a y_a, (S, S)."""
        S, A = self.shape
        if sparse.issparse(self.matrix):
            if A > 0 and (policy.max(axis=1) == 1).all():
                return self.matrix[np.arange(S) * A + policy.argmax(axis=1)]
            pairs = np.arange(S * A)
            return sparse.csr_array((policy.ravel(), (pairs // A, pairs)), shape=(S, S * A)) @ self.matrix
        return np.einsum("sa,sat->st", policy, self.matrix.reshape(S, A, -1))


class NominalOperator:
    """Bellman operator of a fixed kernel: (S, A, S), or sparse (S·A, S)."""

    ball = None
    accuracy = 0.0  # it is exact
    threads = 1

    def __init__(self, model: Model, kernel: Any) -> None:
        S, A = model.n_states, model.n_actions
        self.model, self.chunk = model, S
        is_sparse = sparse.issparse(kernel)
        matrix: Any = sparse.csr_array(kernel) if is_sparse else np.ascontiguousarray(kernel).reshape(S * A, S)
        self.nature = Fixed(matrix, (S, A))
        self._terms = int(np.diff(matrix.indptr).max()) if is_sparse else S
        if not model.next_costs:
            self._costs = np.asarray(model.costs)
        elif is_sparse:
            listed = model.blocks.matrix(model.listed_costs())
            self._costs = np.asarray(matrix.multiply(listed).sum(axis=1)).reshape(S, A)
        else:
            z = model.stakes(np.zeros(S), 0, S)
            self._costs = (matrix.reshape(S, A, S) * np.where(matrix.reshape(S, A, S) > 0, z, 0.0)).sum(axis=2)
        self._costs = np.where(model.available, self._costs, 0.0)

    @property
    def kernel(self) -> Any:
        """The kernel, (S, A, S)."""
        return self.nature.kernel()

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Take the best action in every state."""
        stake = self._stakes(value)
        best = np.where(self.model.available, stake, np.inf).argmin(axis=1)
        policy = np.zeros_like(stake)
        policy[np.arange(best.size), best] = 1
        policy[self.model.terminal] = 0
        return self._result(value, policy, stake, fixed=False)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Follow `policy`, (S, A)."""
        return self._result(value, policy, self._stakes(value), fixed=True)

    def certify(self, value: Array, update: Update, fixed: bool) -> Update:
        """Nothing to do: the steps hold up to rounding, which is in them."""
        return update

    def _stakes(self, value: Array) -> Array:
        """c̄ + λ y·v at v without its level, (S, A)."""
        u = value - certificate.level(value)
        future = np.asarray(self.nature.matrix @ u).reshape(self._costs.shape)
        return self._costs + self.model.discount * future

    def _result(self, value: Array, policy: Array, stake: Array, fixed: bool) -> Update:
        model, shift = self.model, certificate.level(value)
        u, ends = value - shift, model.terminal
        most = np.abs(self._costs) + 2 * model.discount * np.abs(u).max()  # c̄ may be a sum of the same terms
        if model.next_costs:
            most = most + max(map(abs, model.cost_range))
        margin = (4 * self._terms + 2 * model.n_actions + 64) * EPS * most
        mean = (policy * stake).sum(axis=1)
        off = (policy * margin).sum(axis=1)
        least = mean - off
        if not fixed:  # whichever action is really the best
            least = np.where(model.available, stake - margin, np.inf).min(axis=1, initial=np.inf)
            least = np.where(ends, 0.0, least)
        low = certificate.steps(u, shift, model.discount, ends, least, -1)
        high = certificate.steps(u, shift, model.discount, ends, mean + off, +1)
        new = np.where(ends, 0.0, mean + model.discount * shift)
        return Update(new, low, high, policy, self.nature)
