"""Work space that is used again.

To make the arrays of a sweep takes as long as to sweep a small model. One that was given back serves the next sweep over the same data and range, at any
v: what depends on v in it, the order of the states, is made anew. Several threads may take and give at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from drmdp.layout.point import Point
from drmdp.layout.sorting import SortSpace


class Rooms:
    """The work space that was given back last; none if nothing is to be kept."""

    def __init__(self, keeps: bool) -> None:
        self._keeps = keeps
        self._held: list[tuple[Any, int, int, Any, list[Any]]] = []

    def use(
        self, data: Any, point: Point, lo: int, hi: int, make: Callable[[Any, Point, int, int], Any], run: Callable[[Any], None]
    ) -> None:  # fmt: skip
        """Run something in work space for the states lo … hi − 1 of a layout."""
        try:
            held = self._held.pop()
        except IndexError:
            held = None, 0, 0, None, []
        if held[0] is not data or held[1] != lo or held[2] != hi:
            work = make(data, point, lo, hi)
            held = data, lo, hi, work, list(orders_in(work)) if self._keeps else []
        elif held[4]:
            ascending = np.argsort(point.value, kind="stable")
            for order in held[4]:
                order[:] = ascending
        run(held[3])
        if self._keeps:
            self._held[:] = [held]


NONE = Rooms(keeps=False)


def orders_in(work: Any) -> Iterator[Any]:
    """The orders of all states that are anywhere in work space."""
    if isinstance(work, SortSpace):
        if work.ascending.size:
            yield work.ascending
    elif isinstance(work, tuple):
        for part in work:
            yield from orders_in(part)
