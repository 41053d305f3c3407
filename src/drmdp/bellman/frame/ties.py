"""What nature is told to mix on curves that are polygons.

A trial at the slope of a segment is a tie between its ends, which others may break in another way; so what nature is told to mix are answers at multipliers
in the middle of those that are known to be answered by each end: all between the slope and any other t with that answer. Where none is known they are a
relative `apart` from the slope: more than rounding moves the stakes by, relative to their range. That moves a value by as much at most. For the same reason
the end of a curve is told by a finite t: what is highest is a matter of rounding, too.

Shares follow from the level; where they cost more than the budget by rounding they are made smaller, and not the whole move, as that would take back what
costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.bellman.frame.curves import GROWTH, E, T, V, slope_of
from drmdp.bellman.frame.visits import visit
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.point import FLAT
from drmdp.layout.sorting import copy

APART, NOISE = 1e-10, 64 * 2.0**-52
SATURATED = 1e12


@njit(**INLINE)
def _beside(rows, curves, k, x, point, known, slope, apart):
    """A multiplier beside a slope, as far from it as the vertex on its side is surely the answer.

    reads   rows, k, x (see `visit`), point (the vertex), known (the farthest multiplier with that answer, or the slope), slope,
            apart (negative: below the slope)
    fills   curves
    returns t, and V and E there
    """
    if abs(known - slope) > abs(apart) * slope:
        return math.sqrt(known) * math.sqrt(slope), point[V], point[E]
    curves.next[k] = (1.0 + 2.0 * apart) * slope
    visit(rows, curves, x)
    return curves.last[k, T], curves.last[k, V], curves.last[k, E]


@njit(**LEAN)
def settle(rows, curves, k, x, level, apart, mixture):
    """Say which two answers of curve k nature mixes at a level, away from ties.

    reads   rows, k, x (see `visit`), level, apart
    fills   mixture (3,): t₁, t₂ and the share of the second; curves
    returns what the mixture costs, and the part of it that the second answer costs more than the first
    """
    mixture[0], mixture[1], mixture[2] = 0.0, 0.0, 0.0
    j = curves.segment[k]
    if j < 0 or not curves.low[k] < level or curves.count[k] < 2:
        return 0.0, 0.0
    points, left, right = curves.points[k], curves.ends[0], curves.ends[1]
    copy(points[j], left)
    copy(points[j + 1], right)
    slope = slope_of(left, right) if right[V] > left[V] else right[T]
    for b in range(curves.cost.size):
        curves.next[b] = 0.0
    end = max(left[T], min(slope, SATURATED / GROWTH))
    while right[T] == np.inf:  # the least t, up to a factor, that is as good
        end *= GROWTH
        if end > GROWTH * SATURATED:
            copy(left, right)
            break
        curves.next[k] = end
        visit(rows, curves, x)
        if curves.last[k, V] >= right[V] - FLAT or end >= SATURATED:
            copy(curves.last[k], right)
    if slope > 0.0 and (
        left[T] >= (1.0 - apart) * slope or right[T] <= (1.0 + apart) * slope
    ):  # both ends are answers there
        first, second = left[T], right[T]
        for n in range(curves.count[k]):
            t = points[n, T]
            first = t if t < first and points[n, V] >= left[V] - FLAT else first
            second = t if t > second and t < np.inf and points[n, V] <= right[V] + FLAT else second
        right[T], right[V], right[E] = _beside(rows, curves, k, x, right, second, slope, apart)
        if first > 0.0:
            left[T], left[V], left[E] = _beside(rows, curves, k, x, left, first, slope, -apart)
        else:
            left[T] = 0.0
    mixture[0], mixture[1] = left[T], right[T]
    if right[V] > left[V]:
        mixture[2] = min(max((level - curves.cost[k] - left[V]) / (right[V] - left[V]), 0.0), 1.0)
    more = mixture[2] * (right[E] - left[E])
    return left[E] + more, more


@njit(**LEAN)
def settle_state(rows, curves, level, budget, base, unit, by_row):
    """Settle what nature mixes of every action.

    reads   rows, level, budget, base and unit (of the state)
    fills   by_row (A, 3), curves
    """
    spent, more, nobody = 0.0, 0.0, curves.cost[:0]
    for a in range(by_row.shape[0]):
        if by_row[a, 1] > 0.0:
            cost, part = settle(rows, curves, a, nobody, level, apart_of(base, unit), by_row[a])
            spent, more = spent + cost, more + part
    for a in range(by_row.shape[0]):
        by_row[a, 2] *= affordable(spent, more, budget)


@njit(**LEAN)
def settle_policy(rows, curves, x, level, budget, base, unit, mixture, by_row):
    """Settle what nature mixes of a policy.

    reads   rows, x (A,), level, budget, base and unit (of the state)
    fills   by_row (A, 3), mixture (3,), curves
    """
    spent, more = settle(rows, curves, 0, x, level, apart_of(base, unit), mixture)
    for a in range(x.size):
        played = max(x[a], 0.0)
        by_row[a, 0], by_row[a, 1] = played * mixture[0], played * mixture[1] if played > 0.0 else 0.0
        by_row[a, 2] = mixture[2] * affordable(spent, more, budget)


@njit(**INLINE)
def apart_of(base, unit):
    """More than rounding moves stakes by, in units.

    reads   base, unit (of a state)
    returns it
    """
    return APART + NOISE * abs(base) / unit


@njit(**INLINE)
def affordable(spent, by_shares, budget):
    """The part of the shares that the budget pays.

    reads   spent, by_shares (what the shares cost of it), budget
    returns it
    """
    return max(1.0 - (spent - budget) / by_shares, 0.0) if spent > budget and by_shares > 0.0 else 1.0
