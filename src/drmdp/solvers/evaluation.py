"""`Evaluation`: the result of `drmdp.evaluate`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from drmdp._typing import Array
from drmdp.core.cached import cached_property
from drmdp.core.signs import pessimistic, sides
from drmdp.core.tolerance import scale_of
from drmdp.model import Model
from drmdp.operators.build import DEFAULT_BACKEND, build
from drmdp.sets import AmbiguitySet
from drmdp.solution import Status
from drmdp.solvers.criterion_results import steps_of
from drmdp.solvers.loop import Outcome
from drmdp.solvers.problem import Problem


@dataclass(frozen=True)
class Evaluation:
    """Worst-case value of a given policy: lower ≤ it ≤ upper, (S,) each; `value` is the pessimistic
    side.

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
        max(max|value|, max|c|), the scale of a relative gap.
    criterion : str
        Criterion of the value: "discounted", "total", "average" or "reach".
    """

    value: Array
    lower: Array
    upper: Array
    kernel: Any
    status: Status
    scale: float
    criterion: str = "discounted"
    problem: ClassVar[Any] = None  # (model, ambiguity) and policy, set by `evaluate`
    policy: ClassVar[Any] = None
    sweep: ClassVar[Any] = None  # point, in costs, and nature of the sweep that proves the bounds
    sweeps: ClassVar[Any] = None  # those that prove them from below and from above
    rate: ClassVar[float] = 0.0  # that they subtract per unit of time

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return float((self.upper - self.lower).max())

    @cached_property
    def time(self) -> Array | None:
        """Of a total: upper bound on the expected steps, or time, until a terminal state, whatever
        nature does, (S,); None if there is none.
        """
        model, ambiguity = self.problem
        if self.criterion != "total":
            return None
        return steps_of(Problem(build(model, ambiguity, DEFAULT_BACKEND)), self.policy, None)

    def proof(self, path: str | os.PathLike[str]) -> int:
        """Write what is needed to check the bounds, and return its bytes; see `Solution.proof`."""
        from drmdp import proof

        return proof.write(path, self, self.policy)


def evaluation_of(
    model: Model, ambiguity: AmbiguitySet, policy: Array, outcome: Outcome, criterion: str
) -> Evaluation:
    """The evaluation of a policy (S, A) from a run."""
    lower, upper = sides(model, outcome.lower, outcome.upper)
    best, scale = outcome.best, scale_of(model, outcome.upper)
    bounds = pessimistic(model, lower, upper), lower, upper
    evaluation = Evaluation(*bounds, best.make_kernel(), outcome.status, scale, criterion)
    sweeps: Any = {name: getattr(best, name) for name in ("sweep", "sweeps", "rate")}
    vars(evaluation).update(problem=(model, ambiguity), policy=policy, **sweeps)
    return evaluation
