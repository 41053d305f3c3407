"""Value iteration, v ← F(v): a contraction of modulus λ; and two variants.

**Gauss-Seidel** goes through blocks of states in order, each with the newest values of the earlier
ones; with blocks of one state this is the classical method. The value after a pass is not F of
anything, so every `check_every` passes a separate sweep certifies it (and is used: the next pass
starts from it); that sweep counts as work.

**Accelerated**, with the paper's constant steps:

    h_t = v_t + γ (v_t − v_{t−1}),    v_{t+1} = h_t − α (h_t − F(h_t)),
    α = 1/(1+λ),    γ = (1 − √(1−λ²))/λ.

No theory covers it beyond symmetric chains, and on nearly periodic ones it diverges; the loop then
says so and returns the best certified result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from drmdp._typing import Array
from drmdp.core.validation import integer
from drmdp.solvers.problem import MethodSettings, MethodState, Problem, swept


@dataclass(frozen=True)
class ValueIteration(MethodSettings):
    """v ← F(v).

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the
        rule as printed there).
    """

    def init(self, problem: Problem, value: Array | None) -> MethodState:
        """Start at `value` or 0."""
        return swept(problem, value)

    def step(self, problem: Problem, state: MethodState) -> MethodState:
        """Move to F(v)."""
        assert state.update is not None
        return swept(problem, state.update.value)


@dataclass
class _Passed(MethodState):
    passes: int


@dataclass(frozen=True)
class GaussSeidel(MethodSettings):
    """Gauss-Seidel value iteration on blocks of `block_size` states, certified every `check_every`
    passes.

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the
        rule as printed there).
    block_size : int
        States that are updated at once.
    check_every : int
        Passes between certificates.
    """

    block_size: int = 1
    check_every: int = 5

    def __post_init__(self) -> None:
        integer("block_size", self.block_size, 1)
        integer("check_every", self.check_every, 1)

    def init(self, problem: Problem, value: Array | None) -> _Passed:
        """Start at `value` or 0."""
        first = swept(problem, value)
        return _Passed(first.value, first.update, 0)

    def step(self, problem: Problem, state: _Passed) -> _Passed:
        """Pass through the blocks."""
        value = (state.value if state.update is None else state.update.value).copy()
        for start in range(0, value.size, self.block_size):
            stop = min(start + self.block_size, value.size)
            value[start:stop] = problem.update(value, start, stop).value
        passes = state.passes + 1
        update = problem.sweep(value) if passes % self.check_every == 0 else None
        return _Passed(value, update, passes)


@dataclass
class _Moving(MethodState):  # value: h_t
    previous: Array  # v_t


@dataclass(frozen=True)
class Accelerated(MethodSettings):
    """Accelerated value iteration; may diverge.

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the
        rule as printed there).
    """

    def init(self, problem: Problem, value: Array | None) -> _Moving:
        """Start at rest."""
        first = swept(problem, value)
        return _Moving(first.value, first.update, first.value)

    def step(self, problem: Problem, state: _Moving) -> _Moving:
        """Relax at h, then extrapolate."""
        discount = problem.model.discount
        momentum = (1 - math.sqrt(1 - discount**2)) / discount if discount > 0 else 0.0
        value = state.value + state.residual / (1 + discount)
        point = value + momentum * (value - state.previous)
        return _Moving(point, problem.sweep(point), value)
