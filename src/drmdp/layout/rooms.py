"""Work space that is used again.

To make the arrays of a sweep takes as long as to sweep a small model. One that was given back serves the next sweep over the same data and range, at any
v; several threads may take and give at the same time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from drmdp.layout.point import Point


class Rooms:
    """The work space that was given back last; none if nothing is to be kept."""

    def __init__(self, keeps: bool) -> None:
        self._keeps = keeps
        self._held: list[tuple[Any, int, int, Any]] = []

    def take(self, data: Any, point: Point, lo: int, hi: int, make: Callable[[Any, Point, int, int], Any]) -> Any:
        """Work space for the states lo … hi − 1 of a layout."""
        with contextlib.suppress(IndexError):
            held = self._held.pop()
            if held[0] is data and held[1] == lo and held[2] == hi:
                return renewed(held[3], point)
        return make(data, point, lo, hi)

    def give(self, data: Any, lo: int, hi: int, work: Any) -> None:
        """Give it back."""
        if self._keeps:
            self._held[:] = [(data, lo, hi, work)]


NONE = Rooms(keeps=False)


def renewed(work: Any, point: Point) -> Any:
    """Work space of an earlier sweep, for another v."""
    sort = getattr(work, "sort", None)
    if sort is not None and sort.ascending.size:
        sort.ascending[:] = np.argsort(point.value)
    return work
