"""Transport of order 1: one budget for all actions of a state, solved by `additive` on the mean kernel.

The set of mean kernels is the ball around the mean kernel, whatever N is (`drmdp.sets.wasserstein`): an average of plans is a plan of the average.

Curves are polygons. A trial at the slope of a segment is a tie between its ends, which others may break in another way; so what nature is told to mix are
answers at multipliers in the middle of those that are known to be answered by each end: all between the slope and any other t with that answer. Where none
is known they are a relative `apart` from the slope: more than rounding moves the stakes by, relative to their range. That moves a value by as much at most.
For the same reason the end of a curve is told by a finite t: what is highest is a matter of rounding, too.

Shares follow from the level; where they cost more than the budget by rounding they are made smaller, and not the whole move, as that would take back what
costs nothing. Where mass moves at no cost every action begins with these moves made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np

from drmdp.bellman.frame import additive
from drmdp.bellman.frame.additive import ask, evaluate_state, rows_at, solve_state, visit
from drmdp.bellman.frame.curves import GROWTH, E, T, V, slope_of
from drmdp.bellman.frame.transport_nature import answer_of
from drmdp.bellman.nature_rows import Answer
from drmdp.bellman.rows import transport as row
from drmdp.bellman.rows.transport import NEAR, Moves
from drmdp.core.compiled import INLINE, KERNEL, LEAN, Walls, njit, wall
from drmdp.layout.grounded import Grounded, in_unit, plain
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import FLAT, Point, normalise
from drmdp.layout.sorting import copy

APART, NOISE = 1e-10, 64 * 2.0**-52
SATURATED = 1e12
ONE = np.ones(1)
WHOLE: Any = np.int32


@njit(**INLINE)
def _beside(rows, curves, k, x, point, known, slope, apart):
    """A multiplier beside a slope, as far from it as the vertex on its side is surely the answer.

    reads   rows, k, x (see `additive.visit`), point (the vertex), known (the farthest multiplier with that answer, or the slope), slope,
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

    reads   rows, k, x (see `additive.visit`), level, apart
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


@njit(**INLINE)
def lift(rows, state):
    """Value of each action after the moves that cost nothing.

    reads   rows, state.cost
    fills   state.nominal
    """
    for a in range(state.cost.size):
        if state.cost[a] < np.inf:
            state.nominal[a] = ask(rows, a, NEAR)[0]


@njit(**INLINE)
def leave(by_row, free):
    """Let nature make the moves that cost nothing, wherever she makes no others.

    reads   free: whether there are any
    fills   by_row (A, 3)
    """
    for a in range(by_row.shape[0]):
        for side in range(2):
            if free and not by_row[a, side] > NEAR:
                by_row[a, side] = NEAR


@njit(**KERNEL)
def sweep(start, stop, layout, point, memory, out, tol, work, answers):
    """Update the states start … stop − 1 that are not terminal, or evaluate the policy in out.policy; see `drmdp.bellman.family`.

    reads   layout, point, tol, answers: whether the policy is fixed, the response, the saturated point, and whether some moves are free
    fills   memory, out, work
    """
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:
            continue
        rows = rows_at(layout, work.aux.source, s, work, answers)
        budget, x = layout.radius[s], out.policy[s]
        by_action, by_row = memory.by_action[s], memory.by_row[s]
        apart = APART + NOISE * abs(base) / unit
        if answers[3]:
            lift(rows, work.state)
        if answers[0]:
            upper, lower, out.passes[s] = evaluate_state(rows, budget, tol, work, by_action, by_row, x)
            spent, more = settle(rows, work.stacked, 0, x, lower, apart, work.memory[0])
            for a in range(x.size):
                played = max(x[a], 0.0)
                by_row[a, 0], by_row[a, 2] = played * work.memory[0, 0], work.memory[0, 2]
                by_row[a, 1] = played * work.memory[0, 1] if played > 0.0 else 0.0
        else:
            upper, lower, out.passes[s] = solve_state(rows, budget, tol, work, by_action, by_row, x)
            spent, more = 0.0, 0.0
            for a in range(x.size):
                if by_row[a, 1] > 0.0:
                    cost, part = settle(rows, work.curves, a, x[:0], lower, apart, by_row[a])
                    spent, more = spent + cost, more + part
        if spent > budget and more > 0.0:
            for a in range(x.size):
                by_row[a, 2] *= max(1.0 - (spent - budget) / more, 0.0)
        leave(by_row, answers[3])
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@cache
def calls(real: Any, fixed: bool, free: bool) -> Walls:
    """What a sweep is told beside the data: `answers`, with both functions of the row model behind walls, for data of a type."""
    if fixed or free:
        return Walls((fixed, *calls(real, False, False)[1:3], free))
    y, listed = np.empty(1, dtype=real), np.empty(1, dtype=WHOLE)
    lists = np.empty(1, dtype=np.int64), np.empty(1, dtype=WHOLE), np.empty(1)
    for part in (y, listed, *lists):
        part.setflags(write=False)
    moves = Moves(*lists, np.empty(1, dtype=np.int64), np.empty(1), np.empty(1), np.empty(1), listed)
    one = y, np.empty(1), np.empty(1), np.empty(1), np.empty(1), listed, moves
    respond, saturate = row.response.py_func, row.saturated.py_func
    return Walls((fixed, wall(respond, (0.0, 0.0, 0.0), 0.0, *one), wall(saturate, (0.0, 0.0), *one), free))


class _Tables:
    """The tables of the last sweep; all ranges of a sweep share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: tuple[Any, Any, Moves] | None = None
        self._asked: tuple[Any, Any] | None = None  # sources, and which lists they name

    def moves(self, layout: Grounded, point: Point) -> Moves:
        """Lists, and tables where all pairs have the same stakes."""
        lists = layout.lists
        if not layout.common:
            none = np.zeros(0)
            return Moves(*lists, np.zeros(0, dtype=np.int64), none, none, none, layout.source)
        with self._lock:
            if self._kept is None or self._kept[0] is not point.value or self._kept[1] is not lists.ptr:
                n, size = lists.ptr.size - 1, lists.target.size
                moves = Moves(
                    *lists, np.zeros(n, dtype=np.int64), np.empty(size), np.empty(size), np.empty(size), layout.source
                )
                if layout.piece:
                    self._asked = None, np.ones(n, dtype=bool)
                elif self._asked is None or self._asked[0] is not layout.source:
                    asked = np.zeros(n, dtype=bool)
                    asked[layout.source] = True
                    self._asked = layout.source, asked
                row.make_tables(point.order.common, self._asked[1], moves)
                self._kept = point.value, lists.ptr, moves
            return self._kept[2]._replace(source=layout.source)


TABLES = _Tables()


@dataclass(frozen=True)
class Family:
    """Transport of order 1."""

    def workspace(self, layout: Grounded, point: Point, start: int, stop: int) -> Any:
        """Work space for the states start … stop − 1."""
        return additive.workspace(plain(layout), point, start, stop)

    def update(
        self, start: int, stop: int, layout: Grounded, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Minimise over the policy, let nature maximise."""
        self._sweep(False, start, stop, layout, point, memory, out, tol, work)

    def evaluate(
        self, start: int, stop: int, layout: Grounded, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Keep the policy in out.policy."""
        self._sweep(True, start, stop, layout, point, memory, out, tol, work)

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return answer_of(mean=True)

    def prepared(self, layout: Grounded) -> Grounded:
        """The mean kernel, and the radius in the unit of the lists."""
        return in_unit(layout)._replace(data=layout.mean, weights=ONE)

    def _sweep(self, fixed: bool, start: int, stop: int, layout: Grounded, *others: Any) -> None:
        point, memory, out, tol, work = others
        work = work._replace(aux=TABLES.moves(layout, point))
        sweep(start, stop, plain(layout), point, memory, out, tol, work, calls(layout.data.dtype, fixed, layout.free))


FIRST = Family()
