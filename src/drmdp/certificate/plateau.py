"""Rule E: an average lies between the smallest and the largest of its terms; exactly, as this only
compares.

Where players may stay in a cycle at no cost, values are equal all round it, the true step is 0, and
there is no room for a margin for rounding. For an option, that is a row, or several of which a
mixture is played, with costs that are not positive (not negative, for the other side),

    max {v(t): it may lead to t} ≤ v(s)   ⇒   its step is at most 0,

"may" meaning: where an explicit kernel has mass, else wherever the set allows. Where nature mixes N
kernels (`by_kernel`) it is enough that

    Σ_t ŷ_i(t) (v(t) − v(s)) ≤ 0   for each i of positive weight,

where equal values add exact zeros and the rest carries the margin (2n + 8) ε Σ|terms| of a sum of n
products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.levels import EPS
from drmdp.core.storage import over_rows


def tops(indptr: IntArray, indices: Any, value: Array) -> Array:
    """The largest value that each row, (R,), lists; −∞ where it lists nothing."""
    return over_rows(np.maximum, value[indices], indptr, -np.inf)


def by_kernel(
    indptr: IntArray, indices: Any, rows: Array, value: Array, owner: IntArray, side: int = 1
) -> BoolArray:
    """Mark rows after which, under every kernel, the mean of v is not above (side −1: below) v at
    their owner; rows are (N, n).
    """
    lengths = np.diff(indptr)
    rise = side * (value[indices] - np.repeat(value[owner], lengths))
    fine = np.ones(lengths.size, dtype=bool)
    for row in rows:
        terms = row * rise
        total, size = (over_rows(np.add, part, indptr) for part in (terms, np.abs(terms)))
        fine &= total + (2 * lengths + 8) * EPS * size <= 0
    return fine
