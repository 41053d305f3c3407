"""Policy iteration: Newton's method on v = F(v), safeguarded.

At v a sweep gives the pair (policy x, nature y) and F'(v) = λ P with P the chain of the pair, so the Newton point is
u = v + (I − λP)⁻¹ (F(v) − v): the value of that pair. With one player it is policy iteration and converges monotonically. With two it
can cycle, hence the safeguard: u is kept if the span or the size of its residual is at most 0.7 times the best so far; otherwise x is
evaluated against nature (policy iteration of nature alone, from u, until its residual is half the best span, or noise), which is the
Hoffman–Karp step, and Newton pauses for 1, 2, 4 rounds. The size is at least half the span, so neither can go on falling
alone. The first `FREE` points are kept whatever they show, and the best is counted from there: at the start values differ little from each other, so that a
residual is small however far the way is, and against a strong nature the next one is a thousand times larger and much nearer.
Where both players move and a plain step v ← F(v) is sure to reach the goal, it is taken, and no system is solved; once, as what is proved may be a
little wider. One player's system leads farther than the goal, which those who judge by such values are glad of.
Start: the optimum of the mean kernel, or the value of the given policy under it; roughly so in large models, whose systems are solved by
products (docs/methods.md counts what that saves). Where nature can move most of a row, at radii from `STRONG` diameters on, that optimum is no nearer than
what the cheapest actions cost, which takes no work: F(0), if costs do not depend on the next state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.core.compact import DENSE
from drmdp.core.levels import ended
from drmdp.core.tolerance import Tolerance
from drmdp.core.vectors import like
from drmdp.solvers import loop
from drmdp.solvers.mean_start import least_costs, optimum
from drmdp.solvers.problem import NOISY, Problem, State, swept

ACCEPT = 0.7
"""Of the best residual so far: what Newton's method must come down to."""
FREE = 6
"""Newton points that are kept whatever they show."""
EVALUATION = 0.5
LONGEST_PAUSE = 4
STRONG = 0.35
"""Radius, in distances between two next states that are certain, from which on nature is far from the mean kernel."""
START = 0.1
"""Gap at which the start of a large model is good enough, relative to the range that values can have."""


@dataclass
class Newton(State):
    """Where the method stands."""

    value: Array
    update: Update | None  # F at value; None while the policy below is being evaluated, or before the sweep
    policy: Array | None  # that is being evaluated
    pending: bool  # evaluated enough: sweep next
    best: tuple[float, float]  # span and size of the residual
    pause: int  # rounds of Hoffman–Karp still to do
    next_pause: int
    points: int = 1  # at which F was swept
    plain: bool = False  # came by a plain step


@dataclass(frozen=True)
class PolicyIteration:
    """Safeguarded Newton method on the pair (policy, nature).

    Parameters
    ----------
    backend : str
        What computes the robust Bellman operator, "exact" or "conic".
    stop : str
        When to end: "certified" (the gap), "puterman" (the classical residual rule) or "paper" (the rule as printed there).
    """

    backend: str = "exact"
    stop: str = "certified"
    max_iters: ClassVar[int] = 10_000

    def init(self, problem: Problem, value: Array | None) -> Newton:
        """Start at `value`, or at what the mean kernel gives."""
        value = problem.criterion.start(problem) if value is None else value
        if value is None and problem.operator.ball is not None:
            value = first_value(problem)
            problem.begun(value)
        first = swept(problem, value)
        assert first.update is not None
        return Newton(first.value, first.update, None, False, _measure(first), 0, 1)

    def step(self, problem: Problem, state: Newton) -> Newton:
        """One sweep: of F at a new point, or of F^x on the way there."""
        if state.update is None:
            return self._sweep(problem, state) if state.pending else self._evaluate(problem, state)
        if not (state.plain or problem.one_sided) and problem.criterion.one_step_does(state.seen, problem.goal):
            return self._plain(problem, state, state.update.value)
        point, policy = newton(problem, state.value, state.residual, state.update), state.update.policy
        if problem.one_sided or state.pause == 0:
            trial = State(point, problem.sweep(point))
            there, points = _measure(trial), state.points
            nearer = any(a <= ACCEPT * b for a, b in zip(there, state.best, strict=True)) or _close(problem, there)
            if problem.one_sided or nearer or points <= FREE:
                assert trial.update is not None
                best = _best(there, state.best, points)
                return Newton(point, trial.update, None, False, best, 0, 1, points + 1)
            longer = min(2 * state.next_pause, LONGEST_PAUSE)
            return Newton(point, None, policy, False, state.best, state.next_pause, longer, points)
        return Newton(point, None, policy, False, state.best, state.pause, state.next_pause, state.points)

    def _plain(self, problem: Problem, state: Newton, point: Array) -> Newton:
        """Sweep F(v)."""
        there = State(point, problem.sweep(point))
        assert there.update is not None
        best, count = _best(_measure(there), state.best, state.points), state.points + 1
        return Newton(point, there.update, None, False, best, state.pause, state.next_pause, count, True)

    def _evaluate(self, problem: Problem, state: Newton) -> Newton:
        """One Newton step of nature against the held policy."""
        assert state.policy is not None
        there = State(state.value, problem.evaluate(state.value, state.policy))
        assert there.update is not None
        point = newton(problem, state.value, there.residual, there.update)
        done = there.seen.size <= max(EVALUATION * state.best[0], NOISY * there.noise)
        done = done or _close(problem, _measure(there))
        return Newton(point, None, state.policy, done, state.best, state.pause, state.next_pause, state.points)

    def _sweep(self, problem: Problem, state: Newton) -> Newton:
        there = State(state.value, problem.sweep(state.value))
        assert there.update is not None
        best, count = _best(_measure(there), state.best, state.points), state.points + 1
        return Newton(there.value, there.update, None, False, best, state.pause - 1, state.next_pause, count)


def _measure(state: State) -> tuple[float, float]:
    """Span and size of the residual."""
    return state.seen.span, state.seen.size


def _close(problem: Problem, there: tuple[float, float]) -> bool:
    """Whether residuals are so small that only their signs are wrong, where each side is proved by a sweep of its own."""
    criterion = problem.criterion
    return not criterion.joint and there[1] <= max(criterion.share * problem.goal, NOISY * criterion.width)


def _best(there: tuple[float, float], best: tuple[float, float], points: int) -> tuple[float, float]:
    """The least span and size, with those of a point after so many others."""
    return there if points <= FREE else (min(there[0], best[0]), min(there[1], best[1]))


def newton(problem: Problem, value: Array, residual: Array, update: Update) -> Array:
    """Go on from v by the criterion's direction; terminal states keep their values however it is found."""
    point = value + problem.criterion.direction(value, residual, update, problem.goal, problem.checkpoint)
    found: Array = ended(problem.model, point)
    return found


def first_value(problem: Problem) -> Array:
    """Where to begin, unless somebody says so."""
    found = cheapest(problem)
    return nominal_value(problem) if found is None else found


def cheapest(problem: Problem) -> Array | None:
    """What the cheapest actions cost, where that is as near as the optimum of the mean kernel."""
    ball, model = problem.operator.ball, problem.model
    assert ball is not None
    least = ball.radius if isinstance(ball.radius, float) else float(np.min(ball.radius))
    far = least >= STRONG * ball.diameter  # which may be infinite
    if not far or problem.policy is not None or ball.nature != "adversarial" or model.n_states > DENSE:
        return None
    found: Array = ended(model, like(model.initial, least_costs(problem.mean_rows())))
    return found


def nominal_value(problem: Problem) -> Array:
    """Optimal value of the mean kernel, or that of the problem's policy under it."""
    low, high = problem.criterion.range
    near = 1e-9 * max(abs(low), abs(high))
    if problem.model.n_states <= DENSE:

        def checkpoint(value: Array) -> None:
            problem.latest = like(problem.model.initial, value)
            problem.checkpoint()

        policy = None if problem.policy is None else np.asarray(problem.policy)
        value = like(problem.model.initial, optimum(problem.mean_rows(), policy, near, checkpoint))
        found: Array = ended(problem.model, value)
        return found
    nominal = problem.of_mean_kernel()
    nominal.checkpoint = problem.checkpoint
    try:
        return loop.run(
            PolicyIteration(), nominal, start=None, tolerance=Tolerance(max(near, START * (high - low))), max_iters=100, inner=True,
            proof=False, title="solving the mean kernel",
        ).middle  # fmt: skip
    finally:  # cut short, the newest point there is one to begin with here
        problem.latest = nominal.latest
