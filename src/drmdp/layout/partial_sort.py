"""Sort only the largest values; sort everything when a row needs more.

A row that does not list every state may still give mass to those it does not list, the best for
nature first. With K listed states, rows of ℓ1 use one of them and rows of ℓ∞ at most K + 1. How
many rows of ℓ2 use depends on v; mostly they are few. So a part of the states is put in order, the
best for nature, and more than four times as many as the longest row lists: it is the beginning of
the order of all, bit for bit, as are sums over it.

Routines that count past its end raise a flag (`native/order.hpp`, `native/judge/sums.hpp`), and
run again with all states in order. So results have the bits of the full order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from drmdp._typing import Array

LEAST, PART = 2**14, 64
"""So many states are always sorted, and of more this part."""
FIRST = 1024
"""States of the first trial whether the top is enough."""


def least(n_states: int) -> int:
    """Number of states that are sorted whatever the rows are."""
    return min(max(LEAST, n_states // PART), n_states)


def in_order(value: Array, layout: Any = None) -> Any:
    """States by descending v: all, or the top for rows of a layout."""
    S = value.size
    n = S if layout is None or least(S) == S else max(least(S), 4 * longest(layout) + 16)
    if n < S:
        upper = np.flatnonzero(value >= np.partition(value, S - n)[S - n])
        if n <= upper.size < S:  # fewer where there are NaN
            return upper[np.argsort(-value[upper], kind="stable")].astype(np.int32)
    return np.argsort(-value, kind="stable").astype(np.int32)


def longest(layout: Any) -> int:
    """Most states that a row of a layout lists."""
    stored = hasattr(layout, "indptr")
    return int(np.diff(layout.indptr).max(initial=0) if stored else layout.longest)


def places_of(states: Any, n_states: int) -> Any:
    """Place of each state in an order; S for those that are not in it."""
    place = np.full(n_states, n_states, dtype=np.int32)
    place[states] = np.arange(states.size, dtype=np.int32)
    return place


class SortedOnDemand:
    """v with its top in order first, and all of it once a routine counted past that.

    What `make(full)` returns says whether only the top is in order (`short`), and is marked once a
    routine counted past the end of it (`beyond`).
    """

    def __init__(self, make: Callable[[bool], Any]) -> None:
        self._make, self._lock = make, threading.Lock()
        self.last = make(False)

    def run(
        self, lo: int, hi: int, work: Callable[[int, int, Any], None], undo: Any = None
    ) -> None:
        """Work on the states lo … hi − 1 at v; several threads may at the same time.

        Where the top was not enough, the work is repeated, after `undo(lo, hi)` if it changes its
        input. Few states come first, so that little is repeated.
        """
        length = FIRST
        while lo < hi:
            v = self.last
            end = min(lo + length, hi) if v.short else hi
            work(lo, end, v)
            if v.beyond[0]:  # in this thread or in another
                with self._lock:
                    if self.last is v:
                        self.last = self._make(True)
                if undo is not None:
                    undo(lo, end)
                work(lo, end, self.last)
            lo, length = end, 2 * length
