"""What every robust Bellman operator offers.

An operator belongs to one (model, ball) and works on any range of states: `update` minimises over the policy and lets
nature maximise, `evaluate` keeps the policy fixed. Both return steps L − v ≤ F(v) − v ≤ U − v, one-sided up to rounding, and
the pair (policy, nature) behind them. They guide a method. Both hand over a claim as well, from which `drmdp.certificate` proves bounds,
rounding included: whatever is returned as a bound comes from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import Proof
from drmdp.certificate.dense import Witness
from drmdp.model import Model
from drmdp.sets import AmbiguitySet


class Nature(Protocol):
    """Nature's side of a sweep."""

    def kernel(self) -> Any:
        """Mean kernel of the range: an (n, A, S) array, or an object with `rows(s)` where that would be too large."""

    def chain(self, policy: Array) -> Any:
        """Transitions (n, S) of the pair with a policy (n, A): an array, or an object with `@`."""

    def pulled(self, share: Array) -> Nature:
        """The same with the share (S, N) of her move that is surely allowed."""


@dataclass(frozen=True)
class Tabled:
    """Nature as a table, (n, A, S)."""

    table: Array

    def kernel(self) -> Array:
        """Return the table."""
        return self.table

    def pulled(self, share: Array) -> Tabled:
        """A table is what it is."""
        return self

    def chain(self, policy: Array) -> Array:
        """Σ_a x_a y_a."""
        return np.asarray(np.einsum("na,nat->nt", policy, self.table))


@dataclass(eq=False)
class Update:
    """One robust Bellman step on a range of n states."""

    value: Array  # F(v), (n,)
    lower_step: Array  # L − v, (n,)
    upper_step: Array  # U − v, (n,)
    policy: Array  # (n, A)
    nature: Nature
    claim: Any = None  # what the certificate proves it from; without one the loop sweeps again

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

        def together(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in parts])

        claim = Witness.join([part.claim for part in parts])
        steps = together("lower_step"), together("upper_step")
        return Update(together("value"), *steps, together("policy"), Tabled(together("kernel")), claim)

    def proved(self, policy: Array, proof: Proof) -> Update:
        """The same with the policy that it was proved for, and what was proved."""
        nature = self.nature
        if proof.share is not None:
            nature = nature.pulled(proof.share)
        elif proof.kernel is not None:
            nature = Tabled(proof.kernel)
        return Update(self.value, proof.lower_step, proof.upper_step, policy, nature, self.claim)


class Operator(Protocol):
    """One robust Bellman step for a (model, ball); see the module."""

    accuracy: float
    """Error allowed in a state's value, in the unit of the costs; 0: as small as can be."""
    threads: int
    """Threads for whatever is compiled."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def ball(self) -> AmbiguitySet | None:
        """The ball; None where nature has moved already."""

    @property
    def chunk(self) -> int:
        """States per call after which a deadline is worth looking at."""

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy, let nature maximise; `policy` is (S, A)."""


ENGINES = {
    "exact": "drmdp.bellman.exact:ExactOperator",
    "conic": "drmdp.bellman.conic.operator:ConicOperator",
}
"""Operators by the name of the backend; each is called with (model, ball, threads). A new one is one file and one line here."""
