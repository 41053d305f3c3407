"""Transport of order 1: one budget for all actions of a state, solved by `additive` on the mean kernel.

The set of mean kernels is the ball around the mean kernel, whatever N is (`drmdp.sets.wasserstein`): an average of plans is a plan of the average.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from drmdp.bellman.frame import additive
from drmdp.bellman.frame.transport_nature import answer_of
from drmdp.bellman.nature_rows import Answer
from drmdp.bellman.rows import transport as row
from drmdp.bellman.rows.transport import Moves
from drmdp.core.cached import cached_property
from drmdp.core.compiled import Walls, wall
from drmdp.layout.grounded import Grounded, in_unit, plain
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point

ONE = np.ones(1)
WHOLE: Any = np.int32


@cache
def calls(real: Any, fixed: bool, free: bool) -> Walls:
    """What a sweep is told beside the data: `answers`, with both functions of the row model behind walls, for data of a type."""
    if fixed or free:
        return Walls((fixed, *calls(real, False, False)[1:4], free))
    y, listed = np.empty(1, dtype=real), np.empty(1, dtype=WHOLE)
    lists = np.empty(1, dtype=np.int64), np.empty(1, dtype=WHOLE), np.empty(1)
    for part in (y, listed, *lists):
        part.setflags(write=False)
    moves = Moves(*lists, np.empty(1, dtype=np.int64), np.empty(1), np.empty(1), np.empty(1), listed)
    one = y, np.empty(1), np.empty(1), np.empty(1), np.empty(1), listed, moves
    respond, saturate = row.response.py_func, row.saturated.py_func
    return Walls((fixed, wall(respond, (0.0, 0.0, 0.0), 0.0, *one), wall(saturate, (0.0, 0.0), *one), True, free))


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

    def renew(self) -> None:
        """In a forked child: a thread of its parent may hold the lock."""
        self.__init__()  # type: ignore[misc]


TABLES = _Tables()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TABLES.renew)


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
        moves = TABLES.moves(layout, point)
        work = work._replace(listed=moves.source, aux=moves)
        additive.sweep(
            start, stop, plain(layout), point, memory, out, tol, work, calls(layout.data.dtype, fixed, layout.free)
        )


FIRST = Family()
