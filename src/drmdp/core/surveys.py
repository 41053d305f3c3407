"""What a loop looks at after a sweep, in one pass over numbers that are at hand.

Vectors that are elsewhere (`drmdp.core.vectors`) are asked for all of it at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
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
        return Survey(*_native.survey(value, lower_step, upper_step))
    middle, off, own = ends((lower_step + upper_step) / 2, upper_step - lower_step, value)
    return Survey(middle[1] - middle[0], max(map(abs, middle)), off[1], max(map(abs, own)))


def extent_of(lower: Any, upper: Any) -> Extent:
    """Look at bounds."""
    if isinstance(lower, np.ndarray):
        return Extent(*_native.extent(lower, upper))
    gap, own, nearest = ends(upper - lower, upper, np.maximum(np.maximum(lower, -upper), 0.0))
    return Extent(gap[1], max(map(abs, own)), nearest[1])


def is_finite(numbers: Any) -> bool:
    """Whether all of them are."""
    return _native.is_finite(numbers) if isinstance(numbers, np.ndarray) else _are_finite(ends(numbers))


def are_finite(some: Any, others: Any) -> bool:
    """Whether all numbers of two vectors are."""
    if isinstance(some, np.ndarray) and isinstance(others, np.ndarray):
        return _native.is_finite(some) and _native.is_finite(others)
    return _are_finite(ends(some, others))


def _are_finite(found: list[tuple[float, float]]) -> bool:
    return all(math.isfinite(end) for pair in found for end in pair)
