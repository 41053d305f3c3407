"""Rule E: an average is neither more than the largest nor less than the smallest of what it is an average of; exactly, for this only compares.

Where players may go round in circles at no cost, values are equal all round, the true step is 0, and no margin for rounding can be had. For an option, that is
a row, or several of which a mixture is played, with costs that are not positive (not negative, for the other side),

    max {v(t): it may lead to t} ≤ v(s)   ⇒   its step is at most 0,

"may" meaning: where an explicit kernel has mass, else wherever the set allows. Where nature mixes N kernels (`by_kernel`) it is enough that

    Σ_t ŷ_i(t) (v(t) − v(s)) ≤ 0   for each i of positive weight,

where equal values add exact zeros and the rest carries the margin (2n + 8) ε Σ|terms| of a sum of n products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.levels import EPS


def tops(indptr: IntArray, indices: Any, value: Array) -> Array:
    """The largest value that each row, (R,), lists; −∞ where it lists nothing."""
    return _over(np.maximum, -np.inf, indptr, value[indices])


def bottoms(indptr: IntArray, indices: Any, value: Array) -> Array:
    """The smallest."""
    return _over(np.minimum, np.inf, indptr, value[indices])


def by_kernel(indptr: IntArray, indices: Any, rows: Array, value: Array, owner: IntArray, side: int = 1) -> BoolArray:
    """Whether under every kernel the mean of v after a row is not above (side −1: below) v at its owner; rows are (N, n)."""
    lengths = np.diff(indptr)
    rise = side * (value[indices] - np.repeat(value[owner], lengths))
    fine = np.ones(lengths.size, dtype=bool)
    for row in rows:
        terms = row * rise
        total, size = (_over(np.add, 0.0, indptr, part) for part in (terms, np.abs(terms)))
        fine &= total + (2 * lengths + 8) * EPS * size <= 0
    return fine


def _over(join: Any, empty: float, indptr: IntArray, entries: Array) -> Array:
    out = np.full(indptr.size - 1, empty)
    filled = np.diff(indptr) > 0
    if filled.any():
        out[filled] = join.reduceat(entries, indptr[:-1][filled])
    return out
