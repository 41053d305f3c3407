"""What a course found, sweep by sweep; see `drmdp.solvers.course`."""

from __future__ import annotations

from typing import Any, NamedTuple

from drmdp._typing import Array
from drmdp.bellman.exact import ExactOperator, Left
from drmdp.bellman.operator import Update
from drmdp.certificate import Proof
from drmdp.core.surveys import Extent, Survey
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory
from drmdp.solvers.problem import Problem


class Journey(NamedTuple):
    """What a course found, to be kept."""

    operator: ExactOperator
    layout: Layout
    sweeps: int  # before it
    rows: Any  # (8, K, S)
    policy: Any  # (K, S, A)
    memory: list[Any]  # (K, …) each
    numbers: list[list[float]]

    def stops(self, problem: Problem) -> list[Stop]:
        """The sweeps, as if they were made now."""
        found = [Stop(self, k) for k in range(len(self.numbers))]
        problem.latest = found[-1].point
        problem.kernel_passes += 1  # those on the way count when they are passed
        self.operator.took(found[-1])
        return found


class Stop:
    """A sweep of a course: numbers of it, its bounds, and an `Update`, which is made when somebody looks into it."""

    def __init__(self, journey: Journey, k: int) -> None:
        self._journey, self._k, numbers = journey, k, journey.numbers[k]
        self.point = journey.rows[0, k]  # where it was made
        self.seen, self.extent = Survey(*numbers[:4]), Extent(*numbers[4:7])
        self.means = numbers[7:9]  # of the bounds

    @property
    def lower(self) -> Any:
        """Bound from below, (S,)."""
        return self._journey.rows[6, self._k]

    @property
    def upper(self) -> Any:
        """Bound from above."""
        return self._journey.rows[7, self._k]

    @property
    def policy(self) -> Any:
        """The policy of the sweep, (S, A)."""
        return self._journey.policy[self._k]

    def left(self) -> tuple[Left, Array]:
        """What it left behind, and its passes."""
        own, k = self._journey, self._k
        return Left(self.claim, self.policy, own.sweeps + k + 1), own.rows[5, k]

    def proved(self, policy: Array, proof: Proof) -> Update:
        """See `Update`."""
        return self._made(policy, proof.lower_step, proof.upper_step, proof.share)

    def _made(self, policy: Array, low: Array, high: Array, share: Array | None = None) -> Update:
        own, k = self._journey, self._k
        return own.operator.updated(own.layout, own.rows[1, k], self.claim, policy, own.rows[4, k], low, high, share)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        rows, k = self._journey.rows, self._k
        if name == "claim":
            self.claim = Memory._make([part[k] for part in self._journey.memory])
            return self.claim
        if name == "_update":
            self._update: Update = self._made(self.policy, rows[2, k], rows[3, k])
            return self._update
        return getattr(self._update, name)
