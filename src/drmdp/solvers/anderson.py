"""Anderson acceleration of value iteration, safeguarded.

From the last m+1 points v_k with residuals g_k = F(v_k) − v_k, take the weights α (summing to 1)
for which Σ α_k g_k is nearest to a constant and move to Σ α_k F(v_k). Constants do not count, as in
the certificate: they shift the value and its bounds. (Weights that minimise ‖Σ α_k g_k‖₂ reduce the
constant, where value iteration is slow, but which the certificate ignores; every such step would
fail the next test.) A step is accepted only if the span of its residual is at most λ times the last
one, as a plain step guarantees; otherwise the memory is dropped and the plain step F(v) taken. At
most every third sweep is lost that way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drmdp._typing import Array
from drmdp.core.validation import integer
from drmdp.solvers.problem import MethodSettings, MethodState, Problem, swept


@dataclass
class _History(MethodState):
    points: tuple[Array, ...]  # F(v_k), oldest first
    residuals: tuple[Array, ...]  # g_k


@dataclass(frozen=True)
class Anderson(MethodSettings):
    """Anderson-accelerated value iteration with `memory` earlier points.

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the
        rule as printed there).
    memory : int
        How many earlier points are mixed.
    """

    memory: int = 5

    def __post_init__(self) -> None:
        integer("memory", self.memory, 1)

    def init(self, problem: Problem, value: Array | None) -> _History:
        """Start at `value` or 0, without a past."""
        return self._remember(swept(problem, value), (), ())

    def step(self, problem: Problem, state: _History) -> _History:
        """Extrapolate, and fall back to F(v) where the residual did not shrink."""
        assert state.update is not None
        if len(state.points) > 1:
            trial = swept(problem, _mix(state.points, state.residuals))
            # a plain step has span residual at most λ times the last one
            if np.ptp(trial.residual) <= max(problem.model.discount, 0.5) * np.ptp(state.residual):
                return self._remember(trial, state.points, state.residuals)
        plain = swept(problem, state.update.value)
        if len(state.points) > 1:  # a rejected extrapolation clears the memory
            return self._remember(plain, (), ())
        return self._remember(plain, state.points, state.residuals)

    def _remember(
        self, state: MethodState, points: tuple[Array, ...], residuals: tuple[Array, ...]
    ) -> _History:
        g, n = state.residual, self.memory
        points, residuals = (*points[-n:], state.value + g), (*residuals[-n:], g)
        return _History(state.value, state.update, points, residuals)


def _mix(points: tuple[Array, ...], residuals: tuple[Array, ...]) -> Array:
    """Σ α_k F(v_k) with the α of least residual up to a constant, via differences to the newest
    point.
    """
    newest, g = points[-1], residuals[-1] - residuals[-1].mean()
    change = np.stack([r - r.mean() - g for r in residuals[:-1]], axis=1)
    weights, *_ = np.linalg.lstsq(change, -g, rcond=1e-12)
    mixed = newest + np.stack([p - newest for p in points[:-1]], axis=1) @ weights
    return np.asarray(mixed)
