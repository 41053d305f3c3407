"""Only the top of v in order, and all of it where that is not enough.

A row that does not list every state may still give mass to those it does not list, the best for nature first. With K listed states, rows of ℓ1 use one of
them and rows of ℓ∞ at most K + 1. How many rows of ℓ2 use depends on v; mostly they are few. So a part of the states is put in order, the best for nature,
and more than four times as many as the longest row lists: it is the beginning of the order of all, bit for bit, as are sums over it.

Routines that count past its end raise a flag (`native/order.hpp`, `native/judge/sums.hpp`), and what they did is done again with all states in
order. So results have the bits of the whole order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from drmdp._typing import Array

LEAST, PART = 2**14, 64
"""So many states are always put in order, and of more this part."""
FIRST = 1024
"""States that are worked on before it is known whether the top is enough."""


def least(n_states: int) -> int:
    """States that are put in order whatever the rows are."""
    return min(max(LEAST, n_states // PART), n_states)


def in_order(value: Array, layout: Any = None) -> Any:
    """States by descending v: all, or the top for rows of a layout."""
    S = value.size
    n = S if layout is None or least(S) == S else max(least(S), 4 * longest(layout) + 16)
    upper = np.flatnonzero(value >= np.partition(value, S - n)[S - n]) if n < S else np.zeros(0, dtype=np.int64)
    if n <= upper.size < S:  # fewer are none that can be compared
        return upper[np.argsort(-value[upper], kind="stable")].astype(np.int32)
    return np.argsort(-value, kind="stable").astype(np.int32)


def longest(layout: Any) -> int:
    """Most states that a row of a layout lists."""
    return int(np.diff(layout.indptr).max(initial=0) if hasattr(layout, "indptr") else layout.longest)


def places_of(states: Any, n_states: int) -> Any:
    """Place of each state in an order; of those that are not in it, the number of all."""
    place = np.full(n_states, n_states, dtype=np.int32)
    place[states] = np.arange(states.size, dtype=np.int32)
    return place


class Seen(Protocol):
    """v in some order."""

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""

    @property
    def beyond(self) -> Any:
        """(1,) not 0 once somebody counted past the end of it."""


T = TypeVar("T", bound=Seen)


class Looks(Generic[T]):
    """v as a sweep or a proof looks at it: its top in order first, and all of it once somebody counted past that."""

    def __init__(self, make: Callable[[bool], T]) -> None:
        self._make, self._lock = make, threading.Lock()
        self.last = make(False)

    def run(
        self, lo: int, hi: int, work: Callable[[int, int, T], None], undo: Callable[[int, int], None] | None = None
    ) -> None:
        """Work on the states lo … hi − 1 at v; several threads may at the same time.

        What the top was not enough for is done again, after `undo` where it changes what it begins with. Few states come first, so that it is little.
        """
        some = FIRST
        while lo < hi:
            seen = self.last
            end = min(lo + some, hi) if seen.short else hi
            work(lo, end, seen)
            if seen.beyond[0]:  # by this, or beside it
                with self._lock:
                    if self.last is seen:
                        self.last = self._make(True)
                if undo is not None:
                    undo(lo, end)
                work(lo, end, self.last)
            lo, some = end, 2 * some
