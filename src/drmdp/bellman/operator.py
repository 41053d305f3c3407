"""What every robust Bellman operator offers.

An operator belongs to one (model, ball) and works on any range of states: `update` minimises over the policy and lets
nature maximise, `evaluate` keeps the policy fixed. Both return steps L − v ≤ F(v) − v ≤ U − v, one-sided up to rounding, and
the pair (policy, nature) behind them. They guide a method. `certify` re-derives the steps from that pair and the raw data, rounding
included: whatever is returned as a bound comes from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.ambiguity import Wasserstein
from drmdp.certificate import Bounds
from drmdp.model import Model


class Nature(Protocol):
    """Nature's side of a sweep."""

    def kernel(self) -> Any:
        """Mean kernel of the range: an (n, A, S) array, or an object with `rows(s)` where that would be too large."""

    def chain(self, policy: Array) -> Any:
        """Transitions (n, S) of the pair with a policy (n, A): an array, or an object with `@`."""


@dataclass(frozen=True)
class Tabled:
    """Nature as a table, (n, A, S)."""

    table: Array

    def kernel(self) -> Array:
        """Return the table."""
        return self.table

    def chain(self, policy: Array) -> Array:
        """Σ_a x_a y_a."""
        return np.asarray(np.einsum("na,nat->nt", policy, self.table))


@dataclass(frozen=True)
class Update:
    """One robust Bellman step on a range of n states."""

    value: Array  # F(v), (n,)
    lower_step: Array  # L − v, (n,)
    upper_step: Array  # U − v, (n,)
    policy: Array  # (n, A)
    nature: Nature
    bounds: Bounds | None = (
        None  # on the fixed points, re-derived already, where they are known better than by the steps
    )

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

        nature = Tabled(together("kernel"))
        return Update(together("value"), together("lower_step"), together("upper_step"), together("policy"), nature)


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
    def ball(self) -> Wasserstein | None:
        """The ball; None where nature has moved already."""

    @property
    def chunk(self) -> int:
        """States per call after which a deadline is worth looking at."""

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy, let nature maximise; `policy` is (S, A)."""

    def certify(self, value: Array, update: Update, fixed: bool) -> Update:
        """Re-derive the steps and the kernel of a sweep over all states; `fixed`: the policy was given."""


def known_backends() -> dict[str, Any]:
    """Constructors of the operators by name."""
    from drmdp.bellman.conic import ConicOperator
    from drmdp.bellman.exact import ExactOperator

    return {"exact": ExactOperator, "conic": ConicOperator}
