"""What a loop looks at after a sweep, in one pass over numbers that are at hand.

Vectors that are elsewhere (`drmdp.core.vectors`) are asked for a number when it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drmdp.core.compiled import KERNEL, njit


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


def survey(value: Any, lower_step: Any, upper_step: Any) -> Survey | FarSurvey:
    """Look at a sweep."""
    if isinstance(value, np.ndarray):
        return Survey(*_survey(value, lower_step, upper_step))
    return FarSurvey(value, lower_step, upper_step)


def extent_of(lower: Any, upper: Any) -> Extent | FarExtent:
    """Look at bounds."""
    return Extent(*_extent(lower, upper)) if isinstance(lower, np.ndarray) else FarExtent(lower, upper)


@dataclass(frozen=True)
class FarSurvey:
    """A `Survey` of numbers that are elsewhere."""

    value: Any
    lower_step: Any
    upper_step: Any

    @cached_property
    def residual(self) -> Any:
        """Made once."""
        return (self.lower_step + self.upper_step) / 2

    @cached_property
    def span(self) -> float:
        """See `Survey`."""
        return float(np.ptp(self.residual))

    @cached_property
    def size(self) -> float:
        """See `Survey`."""
        return float(np.abs(self.residual).max())

    @cached_property
    def off(self) -> float:
        """See `Survey`."""
        return float((self.upper_step - self.lower_step).max())

    @cached_property
    def most(self) -> float:
        """See `Survey`."""
        return float(np.abs(self.value).max())


@dataclass(frozen=True)
class FarExtent:
    """An `Extent` of numbers that are elsewhere."""

    lower: Any
    upper: Any

    @cached_property
    def gap(self) -> float:
        """See `Extent`."""
        return float((self.upper - self.lower).max())

    @cached_property
    def most(self) -> float:
        """See `Extent`."""
        return float(np.abs(self.upper).max())

    @cached_property
    def nearest(self) -> float:
        """See `Extent`."""
        return float(np.maximum(np.maximum(self.lower, -self.upper), 0.0).max())


def is_finite(numbers: Any) -> bool:
    """Whether all of them are."""
    return bool(_finite(numbers) if isinstance(numbers, np.ndarray) else np.isfinite(numbers).all())


def are_finite(some: Any, others: Any) -> bool:
    """Whether all numbers of two vectors are."""
    if isinstance(some, np.ndarray) and isinstance(others, np.ndarray):
        return bool(_both_finite(some, others))
    return is_finite(some) and is_finite(others)


@njit(**KERNEL)
def _survey(value, lower_step, upper_step):
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
def _extent(lower, upper):
    """See `extent_of`; all are NaN where some number is."""
    gap, most, nearest = -np.inf, 0.0, 0.0
    for s in range(lower.size):
        if np.isnan(lower[s]) or np.isnan(upper[s]):
            return np.nan, np.nan, np.nan
        gap, most = max(gap, upper[s] - lower[s]), max(most, abs(upper[s]))
        nearest = max(nearest, max(lower[s], -upper[s]))
    return gap, most, nearest


@njit(**KERNEL)
def _finite(numbers):
    """See `is_finite`."""
    odd = False
    for x in numbers:
        odd |= not abs(x) < np.inf
    return not odd


@njit(**KERNEL)
def _both_finite(some, others):
    """See `are_finite`."""
    return _finite(some) and _finite(others)


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
