"""What `evaluate` returns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from drmdp._typing import Array
from drmdp.bellman.build import DEFAULT_BACKEND, build
from drmdp.core.cached import cached_property
from drmdp.core.signs import pessimistic, sides
from drmdp.core.tolerance import scale_of
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.solution import Status
from drmdp.solvers.asked import steps_of
from drmdp.solvers.loop import Outcome
from drmdp.solvers.problem import Problem


@dataclass(frozen=True)
class Evaluation:
    """Worst-case value of a given policy: lower ≤ it ≤ upper, (S,) each; `value` is the pessimistic side.

    Attributes
    ----------
    value : (S,)
        The pessimistic bound: upper for costs, lower for rewards.
    lower, upper : (S,)
        Certified bounds on the worst-case value of the policy.
    kernel : (S, A, S)
        Nature's best response; actions that are not played keep the mean kernel.
    status : Status
        How the run ended.
    scale : float
        max(max|value|, max|c|), what a relative gap is relative to.
    criterion : str
        What was evaluated: "discounted", "total", "average" or "reach".
    """

    value: Array
    lower: Array
    upper: Array
    kernel: Any
    status: Status
    scale: float
    criterion: str = "discounted"
    problem: ClassVar[Any] = None  # (model, ball) and policy, set by `evaluate`
    policy: ClassVar[Any] = None
    sweep: ClassVar[Any] = None  # where the sweep was made that proves it, in costs, and nature's side of it
    sweeps: ClassVar[Any] = None  # those that prove it from below and from above
    rate: ClassVar[float] = 0.0  # what they take off per unit of time

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return float((self.upper - self.lower).max())

    @cached_property
    def time(self) -> Array | None:
        """Of a total: upper bound on the expected steps, or time, until a terminal state, whatever nature does, (S,); None if there is none."""
        model, ball = self.problem
        if self.criterion != "total":
            return None
        return steps_of(Problem(build(model, ball, DEFAULT_BACKEND)), self.policy, None)

    def proof(self, path: str | os.PathLike[str]) -> int:
        """Write what is needed to check the bounds, and return its bytes; see `Solution.proof`."""
        from drmdp import proof

        return proof.write(path, self, self.policy)


def evaluation_of(model: Model, ball: AmbiguitySet, policy: Array, found: Outcome, criterion: str) -> Evaluation:
    """What a run found of a policy (S, A)."""
    lower, upper = sides(model, found.lower, found.upper)
    told = lower, upper, found.best.make_kernel(), found.status, scale_of(model, found.upper), criterion
    evaluation = Evaluation(pessimistic(model, lower, upper), *told)
    held: Any = {"sweep": found.best.sweep, "sweeps": found.best.sweeps, "rate": found.best.rate}
    vars(evaluation).update(problem=(model, ball), policy=policy, **held)
    return evaluation
