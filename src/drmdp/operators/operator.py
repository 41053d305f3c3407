"""The interface of robust Bellman operators.

An operator belongs to one (model, ambiguity) and works on any range of states: `update` minimises
over the policy and lets nature maximise, `evaluate` keeps the policy fixed. Both return steps L − v
≤ F(v) − v ≤ U − v, one-sided up to rounding, and the pair (policy, nature) behind them. They guide
a method. Both hand over a claim as well, from which `drmdp.certificate` proves bounds, rounding
included: every bound that is returned comes from there.

Nature has a mean `kernel()` of the range, an (n, A, S) array, or an object with `rows(s)` where
that would be too large; transitions (n, S) of the pair with a policy (n, A), `chain(policy)`, an
array or an object with `@`; and she can be `pulled(share)` to the share (S, N) of her move that is
surely allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate import SweepProof
from drmdp.certificate.dense import KernelWitness
from drmdp.core.compact import DENSE, CompactRows, of_matrix, rows_of
from drmdp.model import Model
from drmdp.sets import AmbiguitySet


@dataclass(frozen=True)
class FixedNature:
    """Nature with a fixed kernel, a matrix (S·A, S)."""

    matrix: Any
    shape: tuple[int, int]  # (S, A), or (n, A) of a range of states
    threads: int = 1
    kernels: Any = None  # of which it is the mean, (N, S, A, S) or N sparse matrices, if known

    def kernel(self) -> Any:
        """Give the kernel as (S, A, S), or on demand if it is sparse."""
        if sparse.issparse(self.matrix):
            return of_matrix(self.matrix, self.shape[1])
        return self.matrix.reshape(*self.shape, -1)

    def pulled(self, share: Array) -> FixedNature:
        """The same: this nature is fixed."""
        return self

    def chain(self, policy: Array) -> Any:
        """Σ_a x_a y_a, (S, S): an array, or rows where that would be large."""
        if not sparse.issparse(self.matrix):
            return self.played(policy)
        chain = self.rows(policy)
        return chain.dense() if chain.n_columns <= DENSE else chain

    def rows(self, policy: Array) -> CompactRows:
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
        mixing = sparse.csr_array((policy.ravel(), (pairs // A, pairs)), shape=(S, S * A))
        return mixing @ self.matrix


def tabled(kernel: Array) -> FixedNature:
    """Nature with a table, (n, A, S)."""
    return FixedNature(kernel, kernel.shape[:2])


@dataclass(eq=False)
class Update:
    """One robust Bellman step on a range of n states."""

    value: Array  # F(v), (n,)
    lower_step: Array  # L − v, (n,)
    upper_step: Array  # U − v, (n,)
    policy: Array  # (n, A)
    nature: Any
    claim: Any = None  # of which the certificate proves bounds; without one the loop sweeps again

    @property
    def residual(self) -> Array:
        """F(v) − v as the middle of its bounds; accurate where F(v) and v nearly agree."""
        return (self.lower_step + self.upper_step) / 2

    @property
    def kernel(self) -> Any:
        """Nature's mean kernel."""
        return self.nature.kernel()

    @property
    def chain(self) -> Any:
        """Transitions of the pair (policy, nature)."""
        return self.nature.chain(self.policy)

    @staticmethod
    def join(parts: Sequence[Update]) -> Update:
        """Put the updates of consecutive ranges together; nature must be tabled."""
        if len(parts) == 1:
            return parts[0]
        names = "value", "lower_step", "upper_step", "policy", "kernel"
        new, low, high, policy, kernel = (
            np.concatenate([getattr(part, name) for part in parts]) for name in names
        )
        claim = KernelWitness.join([part.claim for part in parts])
        return Update(new, low, high, policy, tabled(kernel), claim)

    def proved(self, policy: Array, proof: SweepProof) -> Update:
        """The same with proved steps, for the policy that they were proved for."""
        nature = self.nature
        if proof.share is not None:
            nature = nature.pulled(proof.share)
        elif proof.kernel is not None:
            nature = tabled(proof.kernel)
        return Update(self.value, proof.lower_step, proof.upper_step, policy, nature, self.claim)


class Operator(Protocol):
    """One robust Bellman step for a (model, ambiguity); see the module."""

    accuracy: float
    """Error allowed in a state's value, in the unit of the costs; 0: as small as can be."""
    threads: int
    """Threads of compiled routines."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def ambiguity(self) -> AmbiguitySet | None:
        """The set; None where nature does not move."""

    @property
    def chunk(self) -> int:
        """States per call after which a deadline is worth looking at."""

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy, let nature maximise; `policy` is (S, A)."""


ENGINES = {
    "exact": "drmdp.operators.exact:ExactOperator",
    "conic": "drmdp.operators.conic.operator:ConicOperator",
}
"""Operators by the name of the backend; each is called with (model, ambiguity, threads). A new one
is one file and one line here.
"""
