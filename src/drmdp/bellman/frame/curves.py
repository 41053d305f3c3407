"""What is known of cost against value: convex curves, one an action, and the level that a budget buys.

A curve belongs to an action, or to a policy. It is E(V), the least cost at which nature raises the value to V; its slope is the multiplier t that is
answered by (V, E). It begins at (V⁰, 0) with t = 0. Points that were evaluated lie on it, and the polygon through them above it, as E is convex and
mixtures of rows are rows. With c_k the cost of action k and m_k(γ − c_k) the polygon's cost of reaching γ (0 from V⁰ down, ∞ beyond the last point),

    L = max { γ : Σ_k m_k(γ − c_k) ≤ B }   ≤   F̄   ≤   U = (B + Σ_k t_k (c_k + V_k) − E_k)/Σ_k t_k,

U for any one point of each of some curves: weak duality at the policy x ∝ t. L is found by Newton's method from the right, monotone and finite.

**Where to look next.** On the segment of L, at its slope: a vertex of a piecewise linear curve is found there, or the segment is a piece of the curve and
U = L. For smooth curves, at the multipliers that the quadratic models E + t z + z²/(2 D) of the nearest points give at a common level. Where L is held up
by the end of a curve, further out: up to GROWTH times the last t, then at the saturated point.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, LEAN, njit

T, E, V, D = range(4)
POINTS = 40
GROWTH = 8.0
SAME = 1e-13  # multipliers that differ by less, relatively, are the same


class Curves(NamedTuple):
    """Up to n curves."""

    cost: Array  # (n,) c; inf where there is none
    low: Array  # (n,) c + V⁰
    points: Array  # (n, POINTS, 4), ascending
    count: Any  # (n,)
    segment: Any  # (n,) left point of the segment that the level is on; −1: at or below V⁰
    last: Array  # (n, 4), the point evaluated last
    next: Array  # (n,) where to evaluate next; 0: nowhere
    ends: Array  # (2, 4), spare points


def make_curves(n: int) -> Curves:
    """Work space."""
    whole: Any = np.int64
    return Curves(
        np.empty(n), np.empty(n), np.empty((n, POINTS, 4)), np.empty(n, whole), np.empty(n, whole), np.empty((n, 4)), np.empty(n),
        np.empty((2, 4)),
    )  # fmt: skip


@njit(**INLINE)
def begin_curve(curves, k, cost, nominal):
    """Begin curve k at its nominal value.

    reads   k, cost, nominal
    fills   curves: cost, low, points, count, last, next
    """
    curves.cost[k], curves.low[k] = cost, cost + nominal
    point = curves.points[k, 0]
    point[T], point[E], point[V], point[D] = 0.0, 0.0, nominal, 0.0
    curves.count[k] = 1
    curves.last[k, T] = 0.0
    curves.next[k] = 0.0


@njit(**LEAN)
def insert(curves, k, t, value, cost, slope):
    """Add a point to curve k, between its neighbours by t; a full curve loses its first one.

    reads   k, t, value, cost, slope
    fills   curves: points, count, last
    """
    points, n, last = curves.points[k], curves.count[k], curves.last[k]
    last[T], last[E], last[V], last[D] = t, cost, value, slope
    if n == POINTS:
        for j in range(n - 1):
            for f in range(4):
                points[j, f] = points[j + 1, f]
        n -= 1
    at = n
    while at > 0 and points[at - 1, T] > t:
        for f in range(4):
            points[at, f] = points[at - 1, f]
        at -= 1
    if at > 0:
        value, cost = max(value, points[at - 1, V]), max(cost, points[at - 1, E])
    if at < n:
        value, cost = min(value, points[at + 1, V]), min(cost, points[at + 1, E])
    points[at, T], points[at, E], points[at, V], points[at, D] = t, cost, value, slope
    curves.count[k] = n + 1


@njit(**INLINE)
def slope_of(left, right):
    """Slope of a segment between two points with different V, which is between their multipliers, whatever rounding says."""
    return min(max((right[E] - left[E]) / (right[V] - left[V]), left[T]), right[T])


@njit(**LEAN)
def spent_at(curves, k, level):
    """Cost of reaching a level on curve k, which is not beyond its last point.

    reads   k, level
    fills   curves.segment
    returns the cost and its slope
    """
    if level <= curves.low[k]:
        curves.segment[k] = -1
        return 0.0, 0.0
    points = curves.points[k]
    target = level - curves.cost[k]
    j = curves.count[k] - 1
    if j > 0:
        j -= 1
    while j > 0 and (points[j, V] >= target or not points[j + 1, V] > points[j, V]):
        j -= 1
    curves.segment[k] = j
    left, right = points[j], points[j + 1]
    if curves.count[k] == 1 or not right[V] > left[V]:
        return left[E], 0.0
    slope = slope_of(left, right)
    return left[E] + slope * min(max(target - left[V], 0.0), right[V] - left[V]), slope


@njit(**LEAN)
def level_of(curves, budget, upper):
    """Find L of the module, over the curves that begin below `upper`.

    reads   curves, budget, upper
    fills   curves.segment
    returns L and the curve whose end holds it up, or −1
    """
    level, holds = upper, -1
    for k in range(curves.cost.size):
        if curves.low[k] < upper:
            end = curves.cost[k] + curves.points[k, curves.count[k] - 1, V]
            if end < level or (holds < 0 and end <= level):
                level, holds = end, k
    first = True
    while True:
        total, slope = -budget, 0.0
        for k in range(curves.cost.size):
            if curves.low[k] < upper:
                cost, rate = spent_at(curves, k, level)
                total += cost
                slope += rate
        if not (total > 0.0 and slope > 0.0):
            return level, holds if first else -1
        new = level - total / slope
        first = False
        if not new < level:
            return level, -1
        level = new


@njit(**INLINE)
def support_of(curves, k, level):
    """The end of the segment of curve k that supports it best: the nearer one in value if it has a slope, else the one whose t is nearer to the segment's.

    reads   curves, k, level
    returns its place
    """
    points, j = curves.points[k], curves.segment[k]
    left, right, target = points[j], points[j + 1], level - curves.cost[k]
    if not left[T] > 0.0 or right[T] == np.inf:
        return j + 1 if not left[T] > 0.0 else j
    if left[D] > 0.0 or right[D] > 0.0:
        return j if target - left[V] < right[V] - target else j + 1
    slope = slope_of(left, right) if right[V] > left[V] else right[T]
    return j if slope - left[T] < right[T] - slope else j + 1


@njit(**LEAN)
def bound_of(curves, budget, level, x):
    """Find U of the module from a point of each curve that the level is on.

    reads   curves, budget, level
    fills   x: the multipliers behind it
    returns U; inf if there is no point
    """
    total, value = 0.0, budget
    for k in range(curves.cost.size):
        x[k] = 0.0
        if curves.low[k] < level and curves.segment[k] >= 0 and curves.count[k] > 1:
            point = curves.points[k, support_of(curves, k, level)]
            if point[T] < np.inf:
                x[k] = point[T]
                total += point[T]
                value += point[T] * (curves.cost[k] + point[V]) - point[E]
    return value / total if total > 0.0 else np.inf


@njit(**INLINE)
def nearest(curves, k, level):
    """The end of the segment that is nearer to the level and has a slope, or the other one.

    reads   curves, k, level
    returns its place, −1 if none has a slope
    """
    points, j = curves.points[k], curves.segment[k]
    right = min(j + 1, curves.count[k] - 1)
    target = level - curves.cost[k]
    near, far = (j, right) if target - points[j, V] < points[right, V] - target else (right, j)
    if points[near, D] > 0.0:
        return near
    return far if points[far, D] > 0.0 else -1


@njit(**LEAN)
def modelled(curves, budget, level):
    """Find the level at which the quadratic models of all curves on it spend the budget.

    reads   curves, budget, level
    returns it; NaN where some curve has no model or there is no such level
    """
    second, first, total = 0.0, 0.0, -budget
    for k in range(curves.cost.size):
        if curves.segment[k] >= 0 and curves.low[k] < level:
            j = nearest(curves, k, level)
            if j < 0:
                return np.nan
            point = curves.points[k, j]
            z = level - curves.cost[k] - point[V]
            second += 0.5 / point[D]
            first += point[T] + z / point[D]
            total += point[E] + z * (point[T] + 0.5 * z / point[D])
    root = first * first - 4.0 * second * total
    if not (root >= 0.0 and second > 0.0):
        return np.nan
    return level - 2.0 * total / (first + math.sqrt(root))


@njit(**LEAN)
def choose_next(curves, budget, level, holds, guess, smooth):
    """Decide where to evaluate next.

    reads   budget, level, holds (the curve whose end holds the level up, or −1), guess (a first multiplier), smooth (whether to ask the models)
    fills   curves.next: 0 where nothing new is to be learnt
    returns how many there are
    """
    aim = modelled(curves, budget, level) if smooth else np.nan
    found = 0
    for k in range(curves.cost.size):
        curves.next[k] = 0.0
        active = curves.segment[k] >= 0 and curves.low[k] < level
        if k == holds or (active and (holds < 0 or aim == aim)):
            curves.next[k] = propose(curves, k, aim, level, k == holds, guess)
        found += 1 if curves.next[k] > 0.0 else 0
    return found


@njit(**INLINE)
def propose(curves, k, aim, level, held, guess):
    """Where to evaluate curve k next.

    reads   curves, k, aim (a level, or NaN), level, held (whether its end holds the level up), guess
    returns t, ∞ for the saturated point; 0 if there is nothing to learn
    """
    points, n, j = curves.points[k], curves.count[k], curves.segment[k]
    end = points[n - 1]
    if n == 1:
        return guess if held else 0.0
    t = np.nan
    if aim == aim and j >= 0:
        near = nearest(curves, k, level)
        t = points[near, T] + (aim - curves.cost[k] - points[near, V]) / points[near, D]
    if end[T] < np.inf and (held or (j == n - 2 and t > end[T])):
        far = GROWTH * end[T]
        if t > (1.0 + SAME) * end[T] and t < far:
            return t
        return np.inf if points[n - 2, T] > 0.0 and end[T] >= 0.99 * GROWTH * points[n - 2, T] else far
    if j < 0 or held:
        return 0.0
    left, right = points[j], points[j + 1]
    if (1.0 - SAME) * t > left[T] and (1.0 + SAME) * t < right[T]:
        return t
    if not right[V] > left[V]:
        return 0.0
    t = slope_of(left, right)
    return t if (1.0 - SAME) * t > left[T] and (1.0 + SAME) * t < right[T] else 0.0
