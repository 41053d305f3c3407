"""Value iteration, v ← F(v): the simplest method, a contraction of modulus λ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from drmdp._typing import Array
from drmdp.solvers.problem import Problem, State, swept


@dataclass(frozen=True)
class ValueIteration:
    """v ← F(v).

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the rule as printed there).
    """

    backend: str = "exact"
    stop: str = "certified"
    max_iters: ClassVar[int] = 100_000

    def init(self, problem: Problem, value: Array | None) -> State:
        """Start at `value` or 0."""
        return swept(problem, value)

    def step(self, problem: Problem, state: State) -> State:
        """Move to F(v)."""
        assert state.update is not None
        return swept(problem, state.update.value)
