"""Solutions along the radius.

Let v_θ be the optimal worst-case value at radius θ, x_θ the policy found there. For costs v_θ grows with θ from the optimum of the mean
kernel (θ = 0) to that against an unconstrained nature (θ ≥ `saturation`), continuously, so neighbours are good starts: each radius begins
at the linear extrapolation of the two nearest values, with the multipliers and thresholds of the last sweep, and is certified on its
own. A radius is also shown as a fraction of the largest `saturation` over the states: at 1 nature is unconstrained everywhere.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.bellman.build import DEFAULT_BACKEND, build
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.operator import Operator
from drmdp.core import clock
from drmdp.core.levels import ended
from drmdp.core.progress import counted, showing
from drmdp.core.signs import inward, pessimistic, sides
from drmdp.core.tolerance import RTOL, Tolerance, scale_of
from drmdp.core.validation import limits, number, numbers
from drmdp.criteria import posed
from drmdp.errors import InputError, described
from drmdp.model import Model
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.actions import most_probable
from drmdp.radius.spacing import next_radius
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Status, reached
from drmdp.solvers.asked import arriving
from drmdp.solvers.loop import Outcome
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem
from drmdp.solvers.sojourn import run_at_rates

MOST = 10_000
"""Radii of a path that is not given as a list."""
SAMPLE = 100
"""States whose kernels tell the scale of the radii."""
CUT_SHORT = (Status.interrupted, Status.time_limit)
"""How a point ends that is the last of its path."""


@dataclass(frozen=True, eq=False)
class Point:
    """The solution at one radius, without nature's kernel; signs are the user's, (S,) each unless said.

    Attributes
    ----------
    radius : float
        Of the set.
    fraction : float
        The radius as a share of the largest saturation.
    value : (S,)
        Certified worst-case value of `policy`.
    policy : (S, A)
        The best policy at this radius.
    lower, upper : (S,)
        Certified bounds on the optimum.
    nominal : (S,)
        Value of `policy` under the mean kernel; NaN in a large model where time was up.
    status : Status
        How the run ended.
    scale : float
        max(max|value|, max|c|), what a relative gap is relative to.
    kernel_passes : float
        Reads of all N kernels.
    seconds : float
        Time of the run.
    """

    radius: float
    fraction: float
    value: Array
    policy: Array
    lower: Array
    upper: Array
    nominal: Array
    status: Status
    scale: float
    kernel_passes: float
    seconds: float

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return float((self.upper - self.lower).max())

    @property
    def actions(self) -> IntArray:
        """Most probable action of each state, (S,); −1 in terminal states."""
        return most_probable(self.policy)


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions at ascending radii.

    Attributes
    ----------
    model : Model
        What is known.
    ball : set
        What is feared; its own radius does not matter.
    saturation : float
        The radius from which nature is unconstrained in every state.
    asked : Tolerance
        The gap that was asked for.
    points : tuple of `Point`
        The solutions.
    """

    model: Model = field(repr=False)
    ball: AmbiguitySet
    saturation: float
    asked: Tolerance
    points: tuple[Point, ...] = field(repr=False)

    @property
    def radii(self) -> Array:
        """(K,)."""
        return np.array([point.radius for point in self.points])

    @property
    def fractions(self) -> Array:
        """Radii as fractions of the largest saturation, (K,)."""
        return np.array([point.fraction for point in self.points])

    @property
    def worst(self) -> Array:
        """Certified worst-case value of each policy at its radius, mean over the start distribution, (K,)."""
        return np.array([self.model.initial @ point.value for point in self.points])

    @property
    def nominal(self) -> Array:
        """Value of each policy under the mean kernel, mean over the start distribution, (K,)."""
        return np.array([self.model.initial @ point.nominal for point in self.points])

    @property
    def kernel_passes(self) -> Array:
        """Reads of all N kernels at each radius, (K,)."""
        return np.array([point.kernel_passes for point in self.points])

    @property
    def status(self) -> Status:
        """The first that is not `solved`, if any."""
        return next((point.status for point in self.points if point.status is not Status.solved), Status.solved)

    @property
    def reached(self) -> bool:
        """Whether every radius is solved, or as near as double precision allows and near enough."""
        return all(map(reached, self.points))


Watch = Callable[[Point], Any]


def check_path(given: Any, name: str) -> None:
    """Refuse what is not a path."""
    if not isinstance(given, Path):
        raise InputError(f"{name}: expected a drmdp.radius.path, got {described(given)}")


def path(
    model: Model,
    ball: AmbiguitySet,
    radii: ArrayLike = 20,
    tol: float | None = None,
    rtol: float = RTOL,
    policy: ArrayLike = None,
    callback: Watch | None = None,
    threads: int | None = None,
    top: float | None = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
    nature: str = "adversarial",
    criterion: str | None = None,
) -> Path:
    """Solve at every radius, each starting from the ones before.

    Parameters
    ----------
    model : Model
        What is known, as for `drmdp.solve`.
    ball : set
        What is feared; its radius is replaced.
    radii : sequence of numbers, or how many
        A number n stands for n radii from 0 to `top`, the ball's own among them, put where the policy and its worst case change.
    tol, rtol : float
        Certified gap of each solution, absolute or relative, as for `drmdp.solve`.
    policy : optional
        Follow this policy at every radius instead of the best one.
    callback : callable, optional
        Called with each `Point` when it is solved; returning True ends the path.
    threads, progress, nature, criterion : optional
        As for `drmdp.solve`.
    top : float, optional
        Largest radius if `radii` is a number; by default the largest saturation.
    max_seconds : float, optional
        For all radii together. A path that is cut short, by this limit or by Ctrl-C, holds the radii that are done and the one it was at.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> path = drmdp.radius.path(model, drmdp.Wasserstein(0), radii=[0, 0.1, 0.2])
    >>> bool((path.worst[1:] > path.worst[:-1]).all()), str(path.status)
    (True, 'solved')
    """
    check_problem(model, ball)
    model, ball = posed(model, criterion), ball.facing(nature)
    tolerance, deadline = Tolerance.of(tol, rtol), clock.deadline(max_seconds)
    limits(None, max_seconds, callback)
    followed = None if policy is None else model.policy(policy)
    asked = radii_of(radii)
    points: list[Point] = []
    with showing(progress), counted("radii", asked if isinstance(asked, int) else asked.size) as step:
        limit = float(ball.saturation(model).max())
        most = 0.0 if not isinstance(asked, int) else ball.longest(limit) if top is None else _top(top)
        ball.with_radius(most if isinstance(asked, int) else asked.max()).fitted(model)
        tracer = Tracer(model, ball, tolerance, limit, followed, threads, deadline)
        marks = _marks(model, ball)
        while (r := _next(asked, points, most, marks, model.initial)) is not None:
            point = tracer.solve(r, points)
            insort(points, point, key=lambda own: own.radius)
            step()
            if point.status in CUT_SHORT or (callback is not None and callback(point) is True):
                break
    return Path(model, ball, limit, tolerance, tuple(points))


def _next(asked: int | Array, points: list[Point], top: float, marks: list[float], initial: Array) -> float | None:
    if isinstance(asked, int):
        return next_radius(points, asked, top, marks, initial)
    return float(asked[len(points)]) if len(points) < len(asked) else None


def _marks(model: Model, ball: AmbiguitySet) -> list[float]:
    """Radii that a path shall have: that of the ball, and the mean distance of the kernels from their mean in some states."""
    running = np.flatnonzero(~model.terminal)
    if not running.size:
        return []
    marks = float(np.mean(ball.radius)), float(ball.spread(model, running[:: -(-running.size // SAMPLE)]).mean())
    return [mark for mark in marks if np.isfinite(mark)]


def _top(given: Any) -> float:
    value = number("top", given)
    if not 0 < value < np.inf:
        raise InputError(f"top must be positive and finite, got {value!r}")
    return value


def radii_of(radii: ArrayLike) -> int | Array:
    """Ascending radii, or their number."""
    found = numbers("radii", radii)
    if found.ndim == 0:
        n = float(found)
        if not (n == np.floor(n) and 2 <= n <= MOST):
            raise InputError(f"radii: expected from 2 to {MOST:,} radii, or a list, got {n:.12g}")
        return int(n)
    if found.ndim != 1 or not found.size:
        raise InputError(f"radii: expected a list of numbers, got shape {found.shape}")
    bad = ~np.isfinite(found) | (found < 0)
    if bad.any():
        raise InputError(f"radii must be finite and not negative, got {float(found[np.argmax(bad)])!r}")
    return np.unique(found)


class Tracer:
    """Solves at one radius after the other with one warm operator."""

    def __init__(
        self, model: Model, ball: AmbiguitySet, tolerance: Tolerance, limit: float, policy: Array | None = None,
        threads: int | None = None, deadline: float = math.inf,
    ) -> None:  # fmt: skip
        self.model, self.tolerance, self.deadline = model, tolerance, deadline
        self._limit, self._policy, self._threads = limit, policy, threads
        self._ball = ball
        self._operator: Operator = build(model, self._at(0.0), DEFAULT_BACKEND, threads)
        self._mean = fixed.matrix_of(model, None)
        self.endless = model.discount == 1 and not model.terminal.any()

    def solve(self, radius: float, near: Sequence[Point]) -> Point:
        """Solve at a radius; `near` holds solved points."""
        self._move(radius)
        start = self._start(radius, [point for point in near if np.isfinite(point.value).all()])
        own: Any = {"start": start, "tolerance": self.tolerance, "deadline": self.deadline}
        name = "average" if self.endless else None
        problem, found = run_at_rates(PolicyIteration(), self._made, self.model, name, self._policy, **own)
        found = arriving(problem, found, self.tolerance)
        return self._point(radius, found)

    def settled(self, point: Point, others: Sequence[Point], states: Any) -> Point:
        """The point with the rows of others in the given states, where that costs at most the tolerance more in one step."""
        for other in others:
            if not states.any() or clock.now() > self.deadline:
                break
            self._move(point.radius)
            value = inward(self.model, point.value)
            step = Problem(self._operator).evaluate(value, other.policy).upper_step
            keep = states & (step <= self.tolerance.goal(point.scale))
            states = states & ~keep
            point = replace(point, policy=np.where(keep[:, None], other.policy, point.policy))
        return point

    def _made(self, model: Model) -> Operator:
        """The warm operator; that of other costs is made."""
        ball = self._operator.ball
        assert ball is not None
        return self._operator if model is self.model else build(model, ball, DEFAULT_BACKEND, self._threads)

    def _at(self, radius: float) -> AmbiguitySet:
        return self._ball.with_radius(radius).fitted(self.model).facing(self._ball.nature)

    def _move(self, radius: float) -> None:
        ball, old = self._at(radius), self._operator.ball
        if isinstance(self._operator, ExactOperator) and old is not None and old.support == ball.support:
            self._operator = self._operator.at(ball)
        else:
            self._operator = build(self.model, ball, DEFAULT_BACKEND, self._threads)

    def _start(self, radius: float, near: Sequence[Point]) -> Array | None:
        """Line through the two nearest points."""
        if not near or self.endless:
            return None
        own = sorted(near, key=lambda point: abs(point.radius - radius))[:2]
        sign = -1.0 if self.model.maximise else 1.0
        total = np.zeros(self.model.n_states)
        for point in own:
            others = [other.radius for other in own if other is not point]
            share = np.prod([(radius - r) / (point.radius - r) for r in others])
            total += sign * share * (point.lower + point.upper) / 2
        start: Array = ended(self.model, total)
        return start

    def _point(self, radius: float, found: Outcome) -> Point:
        model = self.model
        lower, upper = sides(model, found.lower, found.upper)
        value = pessimistic(model, lower, upper)
        deadline = -math.inf if found.status in CUT_SHORT else self.deadline
        nominal = fixed.values(model, found.policy, [self._mean], deadline)[0]
        fraction = radius / self._limit if self._limit > 0 else np.inf if radius > 0 else 0.0
        passes = found.history[-1].kernel_passes
        return Point(
            radius, fraction, value, found.policy, lower, upper, nominal, found.status, scale_of(model, value), passes,
            found.seconds,
        )  # fmt: skip
