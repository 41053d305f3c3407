"""Solutions along the radius.

Let v_θ be the optimal worst-case value at radius θ, x_θ the policy found there. For costs v_θ grows
with θ from the optimum of the mean kernel (θ = 0) to that against an unconstrained nature (θ ≥
`saturation`), continuously, so neighbours are good starts: each radius begins at the linear
extrapolation of the two nearest values, with the multipliers and thresholds of the last sweep, and
is certified on its own. A radius is also shown as a fraction of the largest `saturation` over the
states: at 1 nature is unconstrained everywhere.

**Where n radii are put**: where the policy, or its worst case, changes. On the way from radius 0 to
the largest one the policy x_θ goes a way and so does its worst case v_θ, the mean over the start.
An interval [a, b] between neighbours has the share

    ¾ |x_b − x_a| / Σ |x| + ¼ |v_b − v_a| / Σ |v|

of both, where |x| is half the ℓ1 distance of two policies, summed over the states, |v| a
difference, and the sums are over all intervals. The next radius halves the interval with the
largest share, in the middle of the logarithms unless it begins at 0. Intervals narrower than
`NARROW` of their upper end are not halved: at a jump the share does not shrink. A difference of at
most `ROUNDING`, that of v beside the largest |v|, is none. So the radii are dense where decisions
are made, wherever that is, and few where nothing happens. The first ones are 0, the largest, and
`marks` between them: the distance of the observed kernels from their mean, which is the scale of
the data, and the radius of the set, if any.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core.levels import ended
from drmdp.core.signs import inward, pessimistic, sides
from drmdp.core.tolerance import RTOL, Tolerance, scale_of
from drmdp.core.validation import limits, number, numbers
from drmdp.criteria import posed
from drmdp.errors import InputError, described, first_place
from drmdp.model import Model
from drmdp.operators.build import DEFAULT_BACKEND, build
from drmdp.operators.exact import ExactOperator
from drmdp.operators.operator import Operator
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.actions import most_probable
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Status, reached
from drmdp.solvers.criterion_results import arriving
from drmdp.solvers.loop import Outcome
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem
from drmdp.solvers.sojourn import run_at_rates
from drmdp.ui import clock
from drmdp.ui.progress import counted, showing

MOST = 10_000
"""Radii of a path that is not given as a list."""
POLICY = 0.75
"""Weight of the policy against its worst case: a decision is what is looked for."""
NARROW = 0.05
"""Of its upper end: an interval no wider is not halved while others change."""
SMALL = 1e-3
"""Of the largest radius: so near 0 nothing is halved."""
ROUNDING = 1e-9
"""What is no more is not a change: far above what rounding leaves, and far below any tolerance that
is asked for.
"""
SAMPLE = 100
"""States whose kernels tell the scale of the radii."""
CUT_SHORT = (Status.interrupted, Status.time_limit)
"""How a point ends that is the last of its path."""


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The solution at one radius, without nature's kernel; signs are the user's, (S,) each unless
    said.

    Attributes
    ----------
    radius : float
        Of the set.
    fraction : float
        The radius as a share of the largest saturation; of a level how far it is from 1 to that.
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
class RadiusPath:
    """Solutions at ascending radii.

    Attributes
    ----------
    model : Model
        What is known.
    ambiguity : set
        What is feared; its own radius does not matter.
    saturation : float
        The radius from which nature is unconstrained in every state.
    asked : Tolerance
        The gap that was asked for.
    points : tuple of `PathPoint`
        The solutions.
    """

    model: Model = field(repr=False)
    ambiguity: AmbiguitySet
    saturation: float
    asked: Tolerance
    points: tuple[PathPoint, ...] = field(repr=False)

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
        """Certified worst-case value of each policy at its radius, mean over the start
        distribution, (K,).
        """
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
        others = (point.status for point in self.points if point.status is not Status.solved)
        return next(others, Status.solved)

    @property
    def reached(self) -> bool:
        """Whether every radius is solved, or as near as double precision allows and near enough."""
        return all(map(reached, self.points))


Watch = Callable[[PathPoint], Any]


def check_path(path: Any, name: str) -> None:
    """Refuse what is not a path."""
    if not isinstance(path, RadiusPath):
        raise InputError(f"{name}: expected a drmdp.radius.path, got {described(path)}")


def path(
    model: Model,
    ambiguity: AmbiguitySet,
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
) -> RadiusPath:
    """Solve at every radius, each starting from the ones before.

    Parameters
    ----------
    model : Model
        What is known, as for `drmdp.solve`.
    ambiguity : set
        What is feared; its radius is replaced.
    radii : sequence of numbers, or how many
        A number n stands for n radii from 0 to `top`, that of the set among them, put where the
        policy and its worst case change.
    tol, rtol : float
        Certified gap of each solution, absolute or relative, as for `drmdp.solve`.
    policy : optional
        Follow this policy at every radius instead of the best one.
    callback : callable, optional
        Called with each `PathPoint` when it is solved; returning True ends the path.
    threads, progress, nature, criterion : optional
        As for `drmdp.solve`.
    top : float, optional
        Largest radius if `radii` is a number; by default the largest saturation.
    max_seconds : float, optional
        For all radii together. A path that is cut short, by this limit or by Ctrl-C, holds the
        radii that are done and the one it was at.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> path = drmdp.radius.path(model, drmdp.Wasserstein(0), radii=[0, 0.1, 0.2])
    >>> bool((path.worst[1:] > path.worst[:-1]).all()), str(path.status)
    (True, 'solved')
    """
    check_problem(model, ambiguity)
    model, ambiguity = posed(model, criterion), ambiguity.facing(nature)
    tolerance, deadline = Tolerance.of(tol, rtol), clock.deadline(max_seconds)
    limits(None, max_seconds, callback)
    followed = None if policy is None else model.policy(policy)
    grid = radii_of(radii)
    n = grid if isinstance(grid, int) else grid.size
    points: list[PathPoint] = []

    def upcoming() -> float | None:
        if isinstance(grid, int):
            return next_radius(points, grid, largest, marks, model.initial)
        return float(grid[len(points)]) if len(points) < grid.size else None

    with showing(progress), counted("radii", n) as step:
        limit = float(ambiguity.saturation(model).max())
        if not isinstance(grid, int):
            largest = float(grid.max())
        else:
            largest = ambiguity.longest(limit) if top is None else number("top", top)
            if not 0 < largest < np.inf and top is not None:
                raise InputError(f"top must be positive and finite, got {largest!r}")
        ambiguity.with_radius(largest).fitted(model)
        tracer = Tracer(model, ambiguity, tolerance, limit, followed, threads, deadline)
        marks = _marks(model, ambiguity)
        while (r := upcoming()) is not None:
            point = tracer.solve(r, points)
            insort(points, point, key=lambda point: point.radius)
            step()
            if point.status in CUT_SHORT or (callback is not None and callback(point) is True):
                break
    return RadiusPath(model, ambiguity, limit, tolerance, tuple(points))


def next_radius(
    points: Sequence[PathPoint], n: int, top: float, marks: Sequence[float], initial: Array
) -> float | None:
    """The next of n radii from 0 to `top`, given the solved ones, ascending; None at the end."""
    first = [0.0, top, *sorted({mark for mark in marks if 0 < mark < top})]
    if len(points) >= (n if top > 0 else 1):
        return None
    if len(points) < len(first):
        return first[len(points)]
    share = _shares(points, initial)
    ends = np.array([(a.radius, b.radius) for a, b in pairwise(points)])
    wide = ends[:, 1] - ends[:, 0] > np.maximum(NARROW * ends[:, 1], SMALL * top)
    share = np.where(wide, share, 0.0)
    k = int(np.argmax(share if share.any() else ends[:, 1] - ends[:, 0]))
    low, high = ends[k].tolist()
    return float(np.sqrt(low * high) if low > 0 else high / 2)


def _shares(points: Sequence[PathPoint], initial: Array) -> Array:
    """Share of each interval between neighbours in what happens on the whole way, (K − 1,)."""
    policy = np.array([np.abs(b.policy - a.policy).sum() for a, b in pairwise(points)])
    finite = [np.where(np.isfinite(p.value), p.value, 0.0) for p in points]  # a total may not be
    value = np.array([abs(float(initial @ (b - a))) for a, b in pairwise(finite)])
    largest = max(float(np.abs(value).max()) for value in finite)
    total = np.zeros(len(points) - 1)
    for weight, way, scale in ((POLICY, policy, 1.0), (1 - POLICY, value, largest)):
        way[way <= ROUNDING * scale] = 0.0
        total += weight * way / (way.sum() or 1.0)
    return total


def _marks(model: Model, ambiguity: AmbiguitySet) -> list[float]:
    """Radii that a path shall have: that of the set, and the mean distance of the kernels from
    their mean in a sample of states.
    """
    running = np.flatnonzero(~model.terminal)
    if not running.size:
        return []
    spread = ambiguity.spread(model, running[:: -(-running.size // SAMPLE)])
    marks = float(np.mean(ambiguity.radius)), float(spread.mean())
    return [mark for mark in marks if np.isfinite(mark)]


def radii_of(radii: ArrayLike) -> int | Array:
    """Ascending radii, or their number."""
    grid = numbers("radii", radii)
    if grid.ndim == 0:
        n = float(grid)
        if not (n == np.floor(n) and 2 <= n <= MOST):
            raise InputError(f"radii: expected from 2 to {MOST:,} radii, or a list, got {n:.12g}")
        return int(n)
    if grid.ndim != 1 or not grid.size:
        raise InputError(f"radii: expected a list of numbers, got shape {grid.shape}")
    if at := first_place(~np.isfinite(grid) | (grid < 0)):
        raise InputError(f"radii must be finite and not negative, got {float(grid[at])!r}")
    return np.unique(grid)


@dataclass
class Tracer:
    """Solves at one radius after the other with one warm operator."""

    model: Model
    ambiguity: AmbiguitySet
    tolerance: Tolerance
    limit: float  # the largest saturation
    policy: Array | None = None
    threads: int | None = None
    deadline: float = math.inf

    def __post_init__(self) -> None:
        self._near = self._at(0.0)  # the set of the operator
        self._operator = self._built(self.model)
        self._mean = fixed.matrix_of(self.model, None)
        self.endless = self.model.discount == 1 and not self.model.terminal.any()

    def solve(self, radius: float, near: Sequence[PathPoint]) -> PathPoint:
        """Solve at a radius; `near` holds solved points."""
        self._move(radius)
        start = self._start(radius, [point for point in near if np.isfinite(point.value).all()])
        limits: Any = {"start": start, "tolerance": self.tolerance, "deadline": self.deadline}
        criterion = "average" if self.endless else None
        problem = PolicyIteration(), self._operator_of, self.model, criterion, self.policy
        at_rates, outcome = run_at_rates(*problem, **limits)
        return self._point(radius, arriving(at_rates, outcome, self.tolerance))

    def settled(self, point: PathPoint, others: Sequence[PathPoint], states: Any) -> PathPoint:
        """The point with the rows of others in states (S,), where that costs at most the tolerance
        more in one step.
        """
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

    def _operator_of(self, model: Model) -> Operator:
        """The warm operator, or a new one for other costs."""
        return self._operator if model is self.model else self._built(model)

    def _built(self, model: Model) -> Operator:
        return build(model, self._near, DEFAULT_BACKEND, self.threads)

    def _at(self, radius: float) -> AmbiguitySet:
        return self.ambiguity.with_radius(radius).fitted(self.model).facing(self.ambiguity.nature)

    def _move(self, radius: float) -> None:
        support, self._near = self._near.support, self._at(radius)
        if isinstance(self._operator, ExactOperator) and support == self._near.support:
            self._operator = self._operator.at(self._near)
        else:
            self._operator = self._built(self.model)

    def _start(self, radius: float, near: Sequence[PathPoint]) -> Array | None:
        """Line through the two nearest points."""
        if not near or self.endless:
            return None
        nearest = sorted(near, key=lambda point: abs(point.radius - radius))[:2]
        sign = -1.0 if self.model.maximise else 1.0
        total = np.zeros(self.model.n_states)
        for point in nearest:
            others = [other.radius for other in nearest if other is not point]
            share = np.prod([(radius - r) / (point.radius - r) for r in others])
            total += sign * share * (point.lower + point.upper) / 2
        start: Array = ended(self.model, total)
        return start

    def _point(self, radius: float, outcome: Outcome) -> PathPoint:
        model, policy, status = self.model, outcome.policy, outcome.status
        bounds = sides(model, outcome.lower, outcome.upper)
        value = pessimistic(model, *bounds)
        deadline = -math.inf if status in CUT_SHORT else self.deadline
        nominal = fixed.values(model, policy, [self._mean], deadline)[0]
        fraction = float(self.ambiguity.share(radius, self.limit))
        run = scale_of(model, value), outcome.history[-1].kernel_passes, outcome.seconds
        return PathPoint(radius, fraction, value, policy, *bounds, nominal, status, *run)
