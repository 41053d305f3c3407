"""Gauss-Seidel value iteration: blocks of states in order, each seeing the newest values of the earlier ones.

With one state a block this is the classical method. The value after a pass is not F of anything, so every `check_every` passes a
separate sweep certifies it (and is used: the next pass starts from it); that sweep counts as work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.core.validation import whole
from drmdp.solvers.problem import Problem, State, swept


@dataclass
class _Passed(State):
    value: Array
    update: Update | None
    passes: int


@dataclass(frozen=True)
class GaussSeidel:
    """Gauss-Seidel value iteration on blocks of `block_size` states, certified every `check_every` passes.

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the rule as printed there).
    block_size : int
        States that are updated at once.
    check_every : int
        Passes between certificates.
    """

    backend: str = "exact"
    stop: str = "certified"
    block_size: int = 1
    check_every: int = 5
    max_iters: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        whole("block_size", self.block_size, 1)
        whole("check_every", self.check_every, 1)

    def init(self, problem: Problem, value: Array | None) -> _Passed:
        """Start at `value` or 0."""
        first = swept(problem, value)
        return _Passed(first.value, first.update, 0)

    def step(self, problem: Problem, state: _Passed) -> _Passed:
        """One pass through the blocks."""
        value = (state.value if state.update is None else state.update.value).copy()
        for start in range(0, value.size, self.block_size):
            stop = min(start + self.block_size, value.size)
            value[start:stop] = problem.update(value, start, stop).value
        passes = state.passes + 1
        return _Passed(value, problem.sweep(value) if passes % self.check_every == 0 else None, passes)
