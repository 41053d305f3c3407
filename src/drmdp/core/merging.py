"""Rows of kernels made of laws of events.

Event e has probability p_i(e) in kernel i, and leads from (s, a) to the next state f(s, a, e) at a cost c(s, a, e). So

    ŷ_i(t | s, a) = Σ_{e : f(s, a, e) = t} p_i^k(e),        k = k(s, a) the class of laws that the pair has.

Events that end in the same state at the same cost are one entry; at different costs they stay apart, for a kernel has one cost for each entry, and the
conditional cost given the next state would depend on i. How entries are made, and what rounding does to them, is said in `native/events.hpp`: an entry made
of E events is off by ½ (1 + E ε) ε ≤ ε, relatively, ε = 2⁻⁵², whatever E is; a law misses 1 by 4 ε at most (`drmdp.core.event_laws`), so that a row sums to 1
up to 5 ε, and each of its entries, divided by that sum, is Σ p(e)/Σ p up to 2 ε, relatively. So these are rows like any others: within
`drmdp.core.storage.rounding(K)` of 1, and what certificates take off for rows of K entries covers how they are made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array


class Asked(NamedTuple):
    """What the rule says of some states."""

    next: Any  # (n, A, E) int32
    costs: Array  # (n, A, E), or (0, 0, 0)
    classes: Any  # (n, A), or (0, 0): all 0
    available: Any  # (n, A)


class Block(NamedTuple):
    """Rows of some states, in the arrays of `drmdp.core.storage`, and what writes them."""

    indptr: Any  # (n·A + 1,)
    indices: Any
    data: Array
    mean: Array
    costs: Array  # of the entries
    writer: Any  # knows rows that it wrote before

    def fill(self, asked: Asked, laws: Any, merged: bool) -> int:
        """Write rows; `merged`: events that end in the same state at the same cost are one entry. How many entries there are."""
        return int(_native.fill_event_rows(self.writer, asked, laws, merged, self))


def block_of(n: int, A: int, E: int, N: int) -> Block:
    """Room for the rows of n states."""
    size = n * A * E
    return Block(
        np.zeros(n * A + 1, np.int64), np.zeros(size, np.int32), np.empty(N * size), np.empty(size), np.zeros(size), _native.EventRows(E, N)
    )  # fmt: skip
