"""Transport of order 1: one budget for all actions of a state, solved by `additive` on the mean kernel.

The set of mean kernels is the ball around the mean kernel, whatever N is (`drmdp.sets.wasserstein`): an average of plans is a plan of the average.

Curves are polygons. A trial at the slope of a segment is a tie between its ends, which others may break in another way; so what nature is told to mix are
answers at multipliers a relative `apart` from the slope of the segment, where nobody can differ: more than rounding moves the stakes by, relative to
their range. That moves a value by as much at most. For the same reason the end of a curve is told by a finite t: what is highest is a matter of rounding, too.

Where mass moves at no cost every action begins with these moves made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np

from drmdp.bellman.frame import additive
from drmdp.bellman.frame.additive import ask, evaluate_state, rows_at, solve_state, visit
from drmdp.bellman.frame.curves import GROWTH, T, V, slope_of
from drmdp.bellman.frame.transport_nature import answer_of
from drmdp.bellman.nature_rows import Answer
from drmdp.bellman.rows import transport as row
from drmdp.bellman.rows.transport import NEAR, Moves
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit, wall
from drmdp.layout.grounded import Grounded, plain
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import FLAT, Point, normalise

APART, NOISE = 1e-10, 64 * 2.0**-52
SATURATED = 1e12
ONE = np.ones(1)
WHOLE: Any = np.int32


@njit(**LEAN)
def settle(rows, curves, k, x, level, apart, mixture):
    """Say which two answers of curve k nature mixes at a level, away from ties.

    reads   rows, k, x (see `additive.visit`), level, apart
    fills   mixture (3,): t₁, t₂ and the share of the second; curves
    """
    mixture[0], mixture[1], mixture[2] = 0.0, 0.0, 0.0
    j = curves.segment[k]
    if j < 0 or not curves.low[k] < level or curves.count[k] < 2:
        return
    left, right = curves.points[k, j], curves.points[k, j + 1]
    slope = slope_of(left, right) if right[V] > left[V] else right[T]
    low, high, first, second = left[V], right[V], left[T], right[T]
    for b in range(curves.cost.size):
        curves.next[b] = 0.0
    end = max(first, slope)
    while second == np.inf and end < SATURATED:  # the least t, up to a factor, that is as good
        end *= GROWTH
        curves.next[k] = end
        visit(rows, curves, x)
        second = end if curves.last[k, V] >= high - FLAT else second
    if not second > (1.0 + apart) * slope and slope > 0.0:
        second = (1.0 + 2.0 * apart) * slope
        curves.next[k] = second
        visit(rows, curves, x)
        high = curves.last[k, V]
    if not first < (1.0 - apart) * slope and slope > 0.0:
        first = (1.0 - 2.0 * apart) * slope
        curves.next[k] = first
        visit(rows, curves, x)
        low = curves.last[k, V]
    mixture[0], mixture[1] = first, second
    if high > low:
        mixture[2] = min(max((level - curves.cost[k] - low) / (high - low), 0.0), 1.0)


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

    reads   layout, point, tol, answers: whether the policy is fixed, the response, the saturated point, the layout with the list of each entry instead
            of its state, and whether some moves are free
    fills   memory, out, work
    """
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:
            continue
        rows = rows_at(answers[3], s, work, answers[1], answers[2])
        budget, x = layout.radius[s], out.policy[s]
        by_action, by_row = memory.by_action[s], memory.by_row[s]
        apart = APART + NOISE * abs(base) / unit
        if answers[4]:
            lift(rows, work.state)
        if answers[0]:
            upper, lower, out.passes[s] = evaluate_state(rows, budget, tol, work, by_action, by_row, x)
            settle(rows, work.stacked, 0, x, lower, apart, work.memory[0])
            for a in range(x.size):
                played = max(x[a], 0.0)
                by_row[a, 0], by_row[a, 2] = played * work.memory[0, 0], work.memory[0, 2]
                by_row[a, 1] = played * work.memory[0, 1] if played > 0.0 else 0.0
        else:
            upper, lower, out.passes[s] = solve_state(rows, budget, tol, work, by_action, by_row, x)
            for a in range(x.size):
                if by_row[a, 1] > 0.0:
                    settle(rows, work.curves, a, x[:0], lower, apart, by_row[a])
        leave(by_row, answers[4])
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@cache
def calls(real: Any) -> tuple[Any, Any]:
    """Both functions of the row model behind walls, for data of a type."""
    y, listed = np.empty(1, dtype=real), np.empty(1, dtype=WHOLE)
    lists = np.empty(1, dtype=np.int64), np.empty(1, dtype=WHOLE), np.empty(1)
    for part in (y, listed, *lists):
        part.setflags(write=False)
    moves = Moves(*lists, np.empty(1, dtype=np.int64), np.empty(1), np.empty(1), np.empty(1))
    one = y, np.empty(1), np.empty(1), np.empty(1), np.empty(1), listed, moves
    return wall(row.response.py_func, (0.0, 0.0, 0.0), 0.0, *one), wall(row.saturated.py_func, (0.0, 0.0), *one)


class _Tables:
    """The tables of the last sweep; all ranges of a sweep share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: tuple[Any, Any, Moves] | None = None

    def moves(self, layout: Grounded, point: Point) -> Moves:
        """Lists, and tables where all pairs have the same stakes."""
        lists = layout.lists
        if not layout.common:
            none = np.zeros(0)
            return Moves(*lists, np.zeros(0, dtype=np.int64), none, none, none)
        with self._lock:
            if self._kept is None or self._kept[0] is not point.value or self._kept[1] is not lists.ptr:
                n, size = lists.ptr.size - 1, lists.target.size
                moves = Moves(*lists, np.zeros(n, dtype=np.int64), np.empty(size), np.empty(size), np.empty(size))
                asked = np.zeros(n, dtype=bool)
                asked[layout.source] = True
                row.make_tables(point.order.common, asked, moves)
                self._kept = point.value, lists.ptr, moves
            return self._kept[2]


TABLES = _Tables()


@dataclass(frozen=True)
class Family:
    """Transport of order 1."""

    def workspace(self, layout: Grounded, point: Point, start: int, stop: int) -> Any:
        """Work space for the states start … stop − 1."""
        return additive.workspace(_data(layout), point, start, stop, TABLES.moves(layout, point))

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

    def _sweep(self, fixed: bool, start: int, stop: int, layout: Grounded, *others: Any) -> None:
        data = _data(layout)
        answers = fixed, *calls(data.data.dtype), data._replace(indices=layout.source), layout.free
        sweep(start, stop, data, *others, answers)


def _data(layout: Grounded) -> Layout:
    """The mean kernel, and the radius in the unit of the lists."""
    radius = layout.radius / layout.unit
    radius.setflags(write=False)
    return plain(layout)._replace(data=layout.mean, weights=ONE, radius=radius)


FIRST = Family()
