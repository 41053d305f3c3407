"""What a loop looks at after a sweep, in one pass over numbers that are at hand.

Vectors that are elsewhere (`drmdp.core.vectors`) are asked for all of it at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp.core.compiled import KERNEL, njit
from drmdp.core.vectors import ends


class Survey(NamedTuple):
    """A sweep at v with steps L − v and U − v; its residual is their middle."""

    span: float  # largest − smallest residual
    size: float  # largest |residual|
    off: float  # largest U − L
    most: float  # largest |v|


class Extent(NamedTuple):
    """Bounds L ≤ U."""

    gap: float  # largest U − L
    most: float  # largest |U|
    nearest: float  # largest distance of 0 from [L, U]


def survey(value: Any, lower_step: Any, upper_step: Any) -> Survey:
    """Look at a sweep."""
    if isinstance(value, np.ndarray):
        return Survey(*sweep_numbers(value, lower_step, upper_step))
    middle, off, own = ends((lower_step + upper_step) / 2, upper_step - lower_step, value)
    return Survey(middle[1] - middle[0], max(map(abs, middle)), off[1], max(map(abs, own)))


def extent_of(lower: Any, upper: Any) -> Extent:
    """Look at bounds."""
    if isinstance(lower, np.ndarray):
        return Extent(*bound_numbers(lower, upper))
    gap, own, nearest = ends(upper - lower, upper, np.maximum(np.maximum(lower, -upper), 0.0))
    return Extent(gap[1], max(map(abs, own)), nearest[1])


def is_finite(numbers: Any) -> bool:
    """Whether all of them are."""
    return bool(all_finite(numbers)) if isinstance(numbers, np.ndarray) else _are_finite(ends(numbers))


def are_finite(some: Any, others: Any) -> bool:
    """Whether all numbers of two vectors are."""
    if isinstance(some, np.ndarray) and isinstance(others, np.ndarray):
        return bool(both_finite(some, others))
    return _are_finite(ends(some, others))


def _are_finite(found: list[tuple[float, float]]) -> bool:
    return all(math.isfinite(end) for pair in found for end in pair)


@njit(**KERNEL)
def sweep_numbers(value, lower_step, upper_step):
    """See `survey`; all are NaN where some number is."""
    low, high, off, most = np.inf, -np.inf, 0.0, 0.0
    for s in range(value.size):
        middle = (lower_step[s] + upper_step[s]) / 2
        if np.isnan(middle + value[s]):
            return np.nan, np.nan, np.nan, np.nan
        low, high = min(low, middle), max(high, middle)
        off, most = max(off, upper_step[s] - lower_step[s]), max(most, abs(value[s]))
    return high - low, max(abs(low), abs(high)), off, most


@njit(**KERNEL)
def bound_numbers(lower, upper):
    """See `extent_of`; all are NaN where some number is."""
    gap, most, nearest = -np.inf, 0.0, 0.0
    for s in range(lower.size):
        if np.isnan(lower[s]) or np.isnan(upper[s]):
            return np.nan, np.nan, np.nan
        gap, most = max(gap, upper[s] - lower[s]), max(most, abs(upper[s]))
        nearest = max(nearest, max(lower[s], -upper[s]))
    return gap, most, nearest


@njit(**KERNEL)
def all_finite(numbers):
    """See `is_finite`."""
    odd = False
    for x in numbers:
        odd |= not abs(x) < np.inf
    return not odd


@njit(**KERNEL)
def both_finite(some, others):
    """See `are_finite`."""
    return all_finite(some) and all_finite(others)


@njit(**KERNEL)
def are_distributions(policy, available, terminal, slack):
    """Whether rows sum to 1, where a state does not end, and hold probabilities of available actions only.

    reads   policy (n, A), available (n, A), terminal (n,), slack (of the sums)
    """
    for s in range(policy.shape[0]):
        total = 0.0
        for a in range(policy.shape[1]):
            x = policy[s, a]
            if x != 0.0 and not (available[s, a] and x > 0.0 and x < 2.0):
                return False
            total += x
        if not (terminal[s] or abs(total - 1.0) <= slack):
            return False
    return True
