"""What every robust Bellman operator offers.

An operator belongs to one (model, ball) and works on any range of states: `update` minimises over the policy and lets
nature maximise, `evaluate` keeps the policy fixed. Both return one-sided steps L − v ≤ F(v) − v ≤ U − v, so inexact
operators stay honest, and the pair (policy, nature) behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.ambiguity import Wasserstein
from drmdp.model import Model


@dataclass(frozen=True)
class Update:
    """One robust Bellman step on a range of n states."""

    value: Array  # F(v), (n,)
    lower_step: Array  # L − v, (n,)
    upper_step: Array  # U − v, (n,)
    policy: Array  # (n, A)
    kernel: Array  # nature's mean kernel, (n, A, S)

    @property
    def chain(self) -> Array:
        """Transition matrix of the pair (policy, nature), (n, S)."""
        return np.einsum("na,nat->nt", self.policy, self.kernel)

    @staticmethod
    def join(parts: Sequence[Update]) -> Update:
        """Put the updates of consecutive ranges together."""
        if len(parts) == 1:
            return parts[0]
        return Update(*(np.concatenate([getattr(part, name) for part in parts]) for name in Update.__match_args__))


class Operator(Protocol):
    """One robust Bellman step for a (model, ball); see the module."""

    model: Model
    ball: Wasserstein | None
    chunk: int  # states per call after which a deadline is worth looking at

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy, let nature maximise; `policy` is (S, A)."""


def known_backends() -> dict[str, Any]:
    """Constructors of the operators by name."""
    from drmdp.bellman.conic import ConicOperator

    return {"conic": ConicOperator}
