"""Sums that do not gather rounding, and means that do not underflow; `native/events.hpp` and
`native/chain.hpp` have the same.

With ε = 2⁻⁵², `added` keeps a sum of n numbers ≥ 0 in two: `total`, which is their sum as rounded,
and `lost`. What the pair leaves out grows by ε²/2 of the sum with each number, so that total is off
by at most ½ (1 + n ε) ε, relatively, in any order. Sums of doubles do not underflow.

Means do: a weight times a probability may be anything below 1e-308. So a mean is at least `LEAST`
where a kernel of positive weight has a probability, is 0 where none has, and is off by LEAST at
most beside what it is off relatively.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array

LEAST = 1e-300
"""The least probability of a mean: what is divided by it does not overflow."""


def added(total: Any, lost: Any, x: Any) -> Any:
    """Add x to a compensated sum of two numbers, or two arrays.

    reads   total, lost, x
    returns both anew: the sum as rounded, and its rounding error
    """
    high = total + x
    part = high - total
    low = ((total - (high - part)) + (x - part)) + lost
    new = high + low
    return new, low - (new - high)


def raised(mean: Array, weights: Array, rows: Array) -> Array:
    """The mean (…, K) of rows (…, N, K), at least `LEAST` where a kernel of positive weight has a
    probability.
    """
    observed = ((rows > 0) & (weights > 0)[:, None]).any(axis=-2)
    return np.where(observed, np.maximum(mean, LEAST), mean)
