"""Laws of events, checked and ordered, and the rows of kernels that are computed from them.

A law stands for itself divided by its sum. One whose sum, rounded once, misses 1 by more than `OFF`
is divided by it here. It then misses 1 by ε = 2⁻⁵² at most, however many events there are, and
would not be divided again.

Event e has probability p_i(e) in kernel i, and leads from (s, a) to the next state f(s, a, e) at a
cost c(s, a, e). So

    ŷ_i(t | s, a) = Σ_{e : f(s, a, e) = t} p_i^k(e),    k = k(s, a) the class of laws of the pair.

Events that end in the same state at the same cost are one entry; at different costs they stay
apart, for a kernel has one cost for each entry, and the conditional cost given the next state would
depend on i. How entries are computed, and their rounding, is stated in `native/events.hpp`: an
entry made of E events is off by ½ (1 + E ε) ε ≤ ε, relatively, ε = 2⁻⁵², whatever E is; a law
misses 1 by 4 ε at most, so that a row sums to 1 up to 5 ε, and each of
its entries, divided by that sum, is Σ p(e)/Σ p up to 2 ε, relatively. So these are rows like any
others: within `drmdp.core.storage.rounding(K)` of 1, and what certificates take off for rows of K
entries covers how they are made.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.storage import row_sum_tol
from drmdp.errors import InputError, first_place, unexpected

OFF = 4 * float(np.finfo(float).eps)
"""Largest deviation of the sum of a law from 1: less than that of a row of a single entry
(`drmdp.core.storage.rounding`), so that rows made of laws pass as well.
"""


class Laws(NamedTuple):
    """Laws by class, the live events of each class first."""

    p: Array  # (C, E, N)
    tail: Array  # (C, E, N), sums from each live event on
    live: Any  # (C, E) events
    n_live: Any  # (C,)
    weights: Array  # (N,) of the mean rows


def laws_of(laws: Array, weights: Array, used: Any, every: Any = False) -> Laws:
    """Laws (C, N, E) of the used kernels, (N,) flags; an event is live if a law has it, or if
    `every` says so, True or (C, E) flags.
    """
    rows = laws[:, used]
    alive = (rows > 0).any(axis=1) | every
    order = np.argsort(~alive, axis=1, kind="stable")
    p = np.ascontiguousarray(np.take_along_axis(rows, order[:, None, :], axis=2).transpose(0, 2, 1))
    tail, n_live = np.empty(p.shape), alive.sum(axis=1).astype(np.int64)
    _native.fill_suffix_sums(p, p.shape[0], p.shape[1], tail)
    return Laws(p, tail, order.astype(np.int64), n_live, np.array(weights[used]))


def checked_laws(given: ArrayLike, n_events: int, n_classes: int | None = None) -> Array:
    """Laws as (C, N, E), each a distribution; the error names the first that is none."""
    laws, _ = checks.numbers_with_slack("laws", given)
    tol = row_sum_tol(np.asarray(given).dtype) if isinstance(given, np.ndarray) else 1e-9
    laws = laws[None] if laws.ndim == 2 else laws
    fits = laws.ndim == 3 and laws.shape[2] == n_events and 0 not in laws.shape
    if not fits or (n_classes or len(laws)) != len(laws):
        expected = f"shape (N, {n_events}) or (classes, N, {n_events})"
        raise unexpected("laws", expected, np.shape(given))
    sums = laws.sum(axis=2)

    def where(c: int, i: int) -> str:
        return f"class {c}, law {i}" if len(laws) > 1 else f"law {i}"

    checks.check_probabilities("laws", laws, lambda c, i, e: f"{where(c, i)}, event {e}")
    if at := first_place(np.abs(sums - 1) > tol):
        raise InputError(f"laws must sum to 1: {where(*at)} sums to {float(sums[at])!r}")
    sums = np.array([[math.fsum(law.tolist()) for law in rows] for rows in laws])
    return np.where(np.abs(sums - 1)[:, :, None] > OFF, laws / sums[:, :, None], laws)


# ---------------------------------------------------------------------- rows


class RuleAnswer(NamedTuple):
    """Next states and costs of the events of some states."""

    next: Any  # (n, A, E) int32
    costs: Array  # (n, A, E), or (0, 0, 0)
    classes: Any  # (n, A), or (0, 0): all 0
    available: Any  # (n, A)


class MergedRows(NamedTuple):
    """Rows of some states, in the arrays of `drmdp.core.storage`, and their writer."""

    indptr: Any  # (n·A + 1,)
    indices: Any
    data: Array
    mean: Array
    costs: Array  # of the entries
    writer: Any  # reuses rows that it wrote before

    def fill(self, answer: RuleAnswer, laws: Any, merged: bool) -> int:
        """Write rows; `merged`: events that end in the same state at the same cost are one entry.
        Returns the number of entries.
        """
        return int(_native.fill_event_rows(self.writer, answer, laws, merged, self))


def block_of(n: int, A: int, E: int, N: int) -> MergedRows:
    """Arrays for the rows of n states."""
    size = n * A * E
    ptr, indices = np.zeros(n * A + 1, np.int64), np.zeros(size, np.int32)
    data, mean, costs = np.empty(N * size), np.empty(size), np.zeros(size)
    return MergedRows(ptr, indices, data, mean, costs, _native.EventRows(E, N))
