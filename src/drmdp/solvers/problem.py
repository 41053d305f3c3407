"""What a method works on, and what it is: two small interfaces between the methods and the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Operator, Update
from drmdp.model import Model


@dataclass
class Problem:
    """A fixed-point problem v = F(v), or v = F^x(v) when a policy is given, and the count of the work done on it."""

    operator: Operator
    policy: Array | None = None  # evaluate this one instead of optimising
    checkpoint: Callable[[], None] = lambda: None  # raises when time is up
    kernel_passes: float = 0.0

    @property
    def model(self) -> Model:
        """The model."""
        return self.operator.model

    @property
    def one_sided(self) -> bool:
        """Whether only one player moves: then F is convex or concave and Newton's method needs no safeguard."""
        return self.policy is not None or self.operator.ball is None

    def sweep(self, value: Array) -> Update:
        """F at `value`, all states."""
        return self._map(value, self.policy)

    def evaluate(self, value: Array, policy: Array) -> Update:
        """F^x at `value`, all states."""
        return self._map(value, policy)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """F at `value` on a range of states."""
        self.checkpoint()
        self.kernel_passes += (stop - start) / self.model.n_states
        if self.policy is None:
            return self.operator.update(value, start, stop)
        return self.operator.evaluate(value, self.policy, start, stop)

    def _map(self, value: Array, policy: Array | None) -> Update:
        parts = []
        for start in range(0, self.model.n_states, self.operator.chunk):
            stop = min(start + self.operator.chunk, self.model.n_states)
            self.checkpoint()
            if policy is None:
                parts.append(self.operator.update(value, start, stop))
            else:
                parts.append(self.operator.evaluate(value, policy, start, stop))
        self.kernel_passes += 1
        return Update.join(parts)


@dataclass
class State:
    """Where a method stands: a point and, if it was swept there, F at that point."""

    value: Array
    update: Update | None

    @property
    def residual(self) -> Array:
        """F(v) − v as the middle of its bounds; accurate where F(v) and v nearly agree."""
        assert self.update is not None
        return np.asarray((self.update.lower_step + self.update.upper_step) / 2)


class Method(Protocol):
    """A method: settings, a start and a step, each costing about one sweep; everything else is the loop's."""

    backend: str
    stop: str
    max_iters: ClassVar[int]

    def init(self, problem: Problem, value: Array | None) -> Any:
        """Start from `value`, or from the method's own choice; return a `State`."""

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the next `State`."""


def swept(problem: Problem, value: Array | None) -> State:
    """Start at `value`, or at 0 as the paper does."""
    start = np.zeros(problem.model.n_states) if value is None else value
    return State(start, problem.sweep(start))
