"""The radii at which decisions change.

The *action* of a state is the most probable one of x_θ, the first of them if several are equally
probable within `TIE`. Where x_θ is a mixture that shifts continuously, this is the radius at which
the other action becomes more probable. From one radius of the path to the next a state keeps its
row, and its action, while that costs at most the tolerance more in one step: actions that tie do
not alternate. Bisection halves every interval between solved radii whose actions differ in some
state until it is no wider than `precision`; each reported interval [low, high] has certified
solutions at both ends. Changes that undo each other between two radii of the path go unseen: a
finer path finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp.core.validation import limits, number
from drmdp.errors import InputError
from drmdp.radius.path import PathPoint, RadiusPath, Tracer, Watch, check_path
from drmdp.solution import Status
from drmdp.ui import clock
from drmdp.ui.progress import counted, showing

PRECISION = 1e-4
"""Width of a critical interval, relative to the largest radius, unless asked otherwise."""


@dataclass(frozen=True)
class Change:
    """Between two solved radii the action of a state changes.

    Attributes
    ----------
    state : name
        Where it happens.
    before, after : names
        The action below and above.
    low, high : float
        Solved radii: at `low` the action is `before`, at `high` it is `after`.
    fraction : float
        `high` as a share of the largest saturation.
    shares : (float, float)
        Probability of `after` at low and at high: (0, 1) is a jump, (.49, .51) a slow shift.
    """

    state: Any
    before: Any
    after: Any
    low: float
    high: float
    fraction: float
    shares: tuple[float, float]


def critical(
    radius_path: RadiusPath,
    precision: float | None = None,
    callback: Watch | None = None,
    threads: int | None = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
) -> tuple[Change, ...]:
    """Radii at which the action of a state changes, ascending, each within an interval of width
    `precision`.

    The action of a state is the likeliest one. Changes that undo each other between two radii of
    the path go unseen. The tolerance is the path's. When `max_seconds` are over, intervals that are
    still wider are returned as they are, and actions that tie may count as changed; Ctrl-C is
    passed on.

    Parameters
    ----------
    radius_path : RadiusPath
        The result of `drmdp.radius.path`.
    precision : float, optional
        Width of the intervals, absolute; 1e-4 of the path's largest radius by default.
    callback : callable, optional
        Called with each `PathPoint` when it is solved.
    threads, progress : optional
        As for `drmdp.solve`.
    max_seconds : float, optional
        Stop after so many seconds, to within a solve.
    """
    check_path(radius_path, "radius_path")
    limits(None, max_seconds, callback)
    deadline = clock.deadline(max_seconds)
    width = PRECISION * radius_path.points[-1].radius
    width = width if precision is None else check_precision(precision)
    with showing(progress), counted("critical radii", None) as step:
        goal = radius_path.asked, radius_path.saturation
        tracer = Tracer(radius_path.model, radius_path.ambiguity, *goal, None, threads, deadline)
        if tracer.endless:
            why = "actions of a long-run average do not compare in one step"
            raise InputError(f"radius_path: {why}; its points tell where they change")
        points = list(radius_path.points[:1])
        for point in radius_path.points[1:]:
            points.append(tracer.settled(point, points[-1:], point.actions != points[-1].actions))
        for point in _bisect(tracer, points, width):
            step()
            if callback is not None:
                callback(point)
    return tuple(_changes(radius_path, points))


def check_precision(precision: float) -> float:
    """A precision that was given, as a number."""
    width = number("precision", precision)
    if not width > 0:
        raise InputError(f"precision must be positive, got {width!r}")
    return width


def _bisect(tracer: Tracer, points: list[PathPoint], width: float) -> Iterator[PathPoint]:
    """Insert points, and yield each, until intervals in which an action changes are no wider than
    `width`.
    """
    k = 0
    while k + 1 < len(points):
        low, high = points[k], points[k + 1]
        middle = (low.radius + high.radius) / 2
        open_states = low.actions != high.actions
        wide = high.radius - low.radius > width and low.radius < middle < high.radius
        if open_states.any() and wide:
            point = tracer.solve(middle, points)
            if point.status is Status.interrupted:
                raise KeyboardInterrupt
            if point.status is Status.time_limit:
                return
            point = replace(point, policy=np.where(open_states[:, None], point.policy, low.policy))
            third = open_states & (point.actions != low.actions) & (point.actions != high.actions)
            points.insert(k + 1, tracer.settled(point, [low, high], third))
            yield point
        else:
            k += 1


def _changes(radius_path: RadiusPath, points: Sequence[PathPoint]) -> list[Change]:
    model, changes = radius_path.model, []
    for low, high in pairwise(points):
        first, second = low.actions, high.actions
        for s in np.flatnonzero(first != second).tolist():
            names = (model.actions[int(first[s])], model.actions[b := int(second[s])])
            shares = float(low.policy[s, b]), float(high.policy[s, b])
            radii = low.radius, high.radius, high.fraction
            changes.append(Change(model.states[s], *names, *radii, shares))
    return changes
