"""Policy iteration: Newton's method on v = F(v), safeguarded.

At v a sweep gives the pair (policy x, nature y) and F'(v) = λ P with P the chain of the pair, so
the Newton point is u = v + (I − λP)⁻¹ (F(v) − v): the value of that pair. With one player it is
policy iteration and converges monotonically. With two it can cycle, hence the safeguard: u is
accepted if the span or the size of its residual is at most 0.7 times the best so far; else x is
evaluated against nature (policy iteration of nature alone, from u, until its residual is half the
best span, or noise), which is the Hoffman–Karp step, and Newton pauses for 1, 2, 4 rounds. The size
is at least half the span, so neither can go on falling alone. The first `FREE` points are accepted
whatever their residuals, and the best is counted from there: at the start values differ little from
each other, so that a residual is small even far from the solution, and against a strong nature the
next one is a thousand times larger and much nearer. Where both players move and a plain step v ←
F(v) is sure to reach the goal, it is taken, and no system is solved; once, as proved bounds may be
a little wider. The system of one player leads farther than the goal, which `pair_bounds` profits
from. Start: the optimum of the mean kernel, or the value of the fixed policy under it; roughly so
in large models, whose systems are solved by products (docs/methods.md counts the savings). Where
nature can move most of a row, at radii from `STRONG` diameters on, that optimum is no nearer than
the costs of the cheapest actions, which take no work: F(0), if costs do not depend on the next
state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from drmdp._typing import Array
from drmdp.core.compact import DENSE
from drmdp.core.levels import ended
from drmdp.core.tolerance import Tolerance
from drmdp.core.vectors import like
from drmdp.solvers import loop
from drmdp.solvers.mean_start import least_costs, optimum
from drmdp.solvers.problem import NOISY, MethodSettings, MethodState, Problem, swept

ACCEPT = 0.7
"""Share of the best residual so far at which a Newton point is accepted."""
FREE = 6
"""Newton points that are accepted whatever their residuals."""
EVALUATION = 0.5
"""Share of the best span at which an evaluation of the policy ends."""
LONGEST_PAUSE = 4
STRONG = 0.35
"""Radius, in distances between two certain next states, from which on nature is far from the mean
kernel.
"""
START = 0.1
"""Gap at which the start of a large model is good enough, relative to the range that values can
have.
"""


@dataclass
class NewtonState(MethodState):
    """A point of Newton's method, or of an evaluation; `update` is None while `policy` is
    evaluated, or before the sweep.
    """

    best: tuple[float, float]  # span and size of the residual
    policy: Array | None = None  # that is being evaluated
    pending: bool = False  # evaluated enough: sweep next
    pause: int = 0  # rounds of Hoffman–Karp still to do
    next_pause: int = 1
    points: int = 1  # at which F was swept
    plain: bool = False  # after a plain step


@dataclass(frozen=True)
class PolicyIteration(MethodSettings):
    """Safeguarded Newton method on the pair (policy, nature).

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the
        rule as printed there).
    """

    max_iters: ClassVar[int] = 10_000

    def init(self, problem: Problem, value: Array | None) -> NewtonState:
        """Start at `value`, or at the solution for the mean kernel."""
        value = problem.criterion.start(problem) if value is None else value
        if value is None and problem.operator.ambiguity is not None:
            value = first_value(problem)
            problem.begun(value)
        first = swept(problem, value)
        return NewtonState(first.value, first.update, _measure(first))

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Sweep F at a new point, or F^x on the way there."""
        if state.update is None and state.pending:
            return self._swept(problem, replace(state, pause=state.pause - 1), state.value)
        if state.update is None:
            return self._evaluate(problem, state)
        criterion, free = problem.criterion, problem.one_sided
        if not (state.plain or free) and criterion.one_step_does(state.stats, problem.goal):
            return replace(self._swept(problem, state, state.update.value), plain=True)
        point = newton(problem, state.value, state.update)
        state = replace(state, policy=state.update.policy, plain=False)
        if not free and state.pause > 0:
            return replace(state, value=point, update=None, pending=False)
        trial = MethodState(point, problem.sweep(point))
        measure, points = _measure(trial), state.points
        nearer = any(a <= ACCEPT * b for a, b in zip(measure, state.best, strict=True))
        if free or nearer or points <= FREE or _close(problem, measure):
            best = _best(measure, state.best, points)
            return NewtonState(point, trial.update, best, points=points + 1)
        longer = min(2 * state.next_pause, LONGEST_PAUSE)
        state = replace(state, pause=state.next_pause, next_pause=longer)
        return replace(state, value=point, update=None, pending=False)

    def _swept(self, problem: Problem, state: NewtonState, point: Array) -> NewtonState:
        """The state after a sweep at a point that is accepted in any case."""
        trial = MethodState(point, problem.sweep(point))
        best, points = _best(_measure(trial), state.best, state.points), state.points + 1
        state = replace(state, policy=None, pending=False, points=points, plain=False)
        return replace(state, value=point, update=trial.update, best=best)

    def _evaluate(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Take a Newton step of nature against the fixed policy."""
        assert state.policy is not None
        trial = MethodState(state.value, problem.evaluate(state.value, state.policy))
        done = trial.stats.size <= max(EVALUATION * state.best[0], NOISY * trial.noise)
        done = done or _close(problem, _measure(trial))
        point = newton(problem, state.value, trial.update)
        return replace(state, value=point, pending=done)


def _measure(state: MethodState) -> tuple[float, float]:
    """Span and size of the residual."""
    return state.stats.span, state.stats.size


def _close(problem: Problem, measure: tuple[float, float]) -> bool:
    """Whether residuals are so small that only their signs are wrong, where each side is proved by
    a separate sweep.
    """
    criterion = problem.criterion
    near = max(criterion.share * problem.goal, NOISY * criterion.width)
    return not criterion.joint and measure[1] <= near


def _best(
    measure: tuple[float, float], best: tuple[float, float], points: int
) -> tuple[float, float]:
    """Least span and size so far, after a point that follows `points` others."""
    return measure if points <= FREE else (min(measure[0], best[0]), min(measure[1], best[1]))


def newton(problem: Problem, value: Array, update: Any) -> Array:
    """The point from v in the direction of the criterion; terminal states keep their values."""
    step = problem.criterion.direction(problem, value, update)
    point: Array = ended(problem.model, value + step)
    return point


def first_value(problem: Problem) -> Array:
    """The start of a run without one: costs of the cheapest actions, where they are as near as the
    optimum of the mean kernel, or that.
    """
    ambiguity, model = problem.operator.ambiguity, problem.model
    assert ambiguity is not None
    small = problem.policy is None and model.n_states <= DENSE
    if small and ambiguity.nature == "adversarial":
        radius = float(np.min(ambiguity.radius))
        if radius >= STRONG * ambiguity.diameter:  # not if that is infinite
            value: Array = ended(model, like(model.initial, least_costs(problem.mean_rows())))
            return value
    return nominal_value(problem)


def nominal_value(problem: Problem) -> Array:
    """Optimal value of the mean kernel, or the value of the policy under it."""
    low, high = problem.criterion.range
    near = 1e-9 * max(abs(low), abs(high))
    if problem.model.n_states <= DENSE:
        initial = problem.model.initial

        def checkpoint(value: Array) -> None:
            problem.latest = like(initial, value)
            problem.checkpoint()

        policy = None if problem.policy is None else np.asarray(problem.policy)
        start = optimum(problem.mean_rows(), policy, near, checkpoint)
        value: Array = ended(problem.model, like(initial, start))
        return value
    nominal = problem.of_mean_kernel()
    nominal.checkpoint = problem.checkpoint
    inner: Any = {"tolerance": Tolerance(max(near, START * (high - low))), "max_iters": 100}
    inner |= {"inner": True, "proof": False, "title": "solving the mean kernel"}
    try:
        return loop.run(PolicyIteration(), nominal, start=None, **inner).middle
    finally:  # if it was cut short, the run begins at its newest point
        problem.latest = nominal.latest
