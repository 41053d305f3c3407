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
from drmdp.certificate.fixed_kernel import FixedKernel
from drmdp.core.compact import DENSE, Rows, of_matrix, rows_of
from drmdp.core.levels import ended, level
from drmdp.model import Model


@dataclass(frozen=True)
class Fixed:
    """Nature with a fixed kernel, a matrix (S·A, S)."""

    matrix: Any
    shape: tuple[int, int]  # (S, A)
    threads: int = 1

    def kernel(self) -> Any:
        """Give the kernel as (S, A, S), or on demand if it is sparse."""
        S, A = self.shape
        if not sparse.issparse(self.matrix):
            return self.matrix.reshape(S, A, -1)
        return of_matrix(self.matrix, A)

    def pulled(self, share: Array) -> Fixed:
        """What is fixed is not moved."""
        return self

    def chain(self, policy: Array) -> Any:
        """Σ_a x_a y_a, (S, S): an array, or rows where that would be large."""
        if not sparse.issparse(self.matrix):
            return self.played(policy)
        chain = self.rows(policy)
        return chain.dense() if chain.n_columns <= DENSE else chain

    def rows(self, policy: Array) -> Rows:
        """The same of a sparse kernel, in compact form."""
        return rows_of(self.played(policy), self.threads)

    def played(self, policy: Array) -> Any:
        """The same as a matrix, sparse if the kernel is."""
        S, A = self.shape
        if not sparse.issparse(self.matrix):
            return np.einsum("sa,sat->st", policy, self.matrix.reshape(S, A, -1))
        if A > 0 and (policy.max(axis=1) == 1).all():
            return self.matrix[np.arange(S) * A + policy.argmax(axis=1)]
        pairs = np.arange(S * A)
        return sparse.csr_array((policy.ravel(), (pairs // A, pairs)), shape=(S, S * A)) @ self.matrix


class NominalOperator:
    """Bellman operator of a fixed kernel: (S, A, S), or sparse (S·A, S)."""

    ball = None
    accuracy = 0.0  # it is exact

    def __init__(self, model: Model, kernel: Any, threads: int = 1, costs: Array | None = None) -> None:
        self.model, self.chunk, self.threads = model, model.n_states, threads
        self.fixed = FixedKernel(model, kernel, threads, costs)
        self.nature = Fixed(self.fixed.matrix, (model.n_states, model.n_actions), threads)

    @property
    def kernel(self) -> Any:
        """The kernel, (S, A, S)."""
        return self.nature.kernel()

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Take the best action in every state."""
        stake = self.fixed.stakes(value)
        best = np.where(self.model.available, stake, np.inf).argmin(axis=1)
        policy = np.zeros_like(stake)
        policy[np.arange(best.size), best] = 1
        policy[self.model.terminal] = 0
        return self._result(value, policy, stake, fixed=False)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Follow `policy`, (S, A)."""
        return self._result(value, policy, self.fixed.stakes(value), fixed=True)

    def _result(self, value: Array, policy: Array, stake: Array, fixed: bool) -> Update:
        low, high = self.fixed.bound(value, policy, stake, fixed)
        later = self.model.discount * level(value, self.model)
        new = ended(self.model, (policy * stake).sum(axis=1) + later)
        return Update(new, low, high, policy, self.nature, self.nature)
