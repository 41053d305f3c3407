"""Where to put n radii: where the policy, or its worst case, changes.

On the way from radius 0 to the largest one the policy x_θ goes a way and so does its worst case v_θ, the mean over the start. An interval
[a, b] between neighbours has the share

    ¾ |x_b − x_a| / Σ |x| + ¼ |v_b − v_a| / Σ |v|

of both, where |x| is half the ℓ1 distance of two policies, summed over the states, |v| a difference, and the sums are over all intervals. The next radius
halves the interval with the largest share, in the middle of the logarithms unless it begins at 0. Intervals narrower than `NARROW` of their upper
end are not halved: at a jump the share does not shrink. A difference of at most `ROUNDING`, that of v beside the largest |v|, is none. So the
radii are dense where decisions are made, wherever that is, and few where nothing happens. The first ones are 0, the largest, and `marks`
between them: the distance of the observed kernels from their mean, which is the scale of the data, and the radius that was asked about, if any.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from drmdp._typing import Array

POLICY = 0.75
"""Weight of the policy against its worst case: a decision is what is looked for."""
NARROW = 0.05
"""Of its upper end: an interval no wider is not halved while others change."""
SMALL = 1e-3
"""Of the largest radius: so near 0 nothing is halved."""
ROUNDING = 1e-9
"""What is no more is not a change: far above what rounding leaves, and far below any tolerance that is asked for."""


class Solved(Protocol):
    """What is known at a radius."""

    @property
    def radius(self) -> float:
        """Where."""

    @property
    def value(self) -> Array:
        """Worst case, (S,)."""

    @property
    def policy(self) -> Array:
        """Probabilities of the actions, (S, A)."""


def next_radius(points: Sequence[Solved], n: int, top: float, marks: Sequence[float], initial: Array) -> float | None:
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


def _shares(points: Sequence[Solved], initial: Array) -> Array:
    """Share of each interval between neighbours in what happens on the whole way, (K − 1,)."""
    policy = np.array([np.abs(b.policy - a.policy).sum() for a, b in pairwise(points)])
    worth = [np.where(np.isfinite(point.value), point.value, 0.0) for point in points]  # a total may be infinite
    value = np.array([abs(float(initial @ (b - a))) for a, b in pairwise(worth)])
    largest = max(float(np.abs(own).max()) for own in worth)
    total = np.zeros(len(points) - 1)
    for weight, way, scale in ((POLICY, policy, 1.0), (1 - POLICY, value, largest)):
        way[way <= ROUNDING * scale] = 0.0
        total += weight * way / (way.sum() or 1.0)
    return total
