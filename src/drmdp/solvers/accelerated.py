"""Accelerated value iteration with the paper's constant steps.

    h_t = v_t + γ (v_t − v_{t−1}),    v_{t+1} = h_t − α (h_t − F(h_t)),    α = 1/(1+λ),  γ = (1 − √(1−λ²))/λ.

No theory covers it beyond symmetric chains, and on nearly periodic ones it diverges; the loop then says so and returns the best
certified result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.solvers.problem import Problem, State, swept


@dataclass
class _Moving(State):
    value: Array  # h_t
    update: Update | None
    previous: Array  # v_t


@dataclass(frozen=True)
class Accelerated:
    """Accelerated value iteration; may diverge.

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
