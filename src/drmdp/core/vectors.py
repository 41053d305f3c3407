"""Vectors with a number for each state, wherever they are.

A vector is a NumPy array, or an object that follows NumPy's protocols for arithmetic
(`__array_ufunc__`, `__array_function__`) while its numbers stay with workers that own ranges of
states (`drmdp.cluster`). Elementwise work gives the same bits wherever it is done, minima and
maxima too. Sums would not: they are made block by block, in blocks that depend on the number of
states only, and the sums of the blocks are added without rounding. Ranges are made of whole blocks,
so that a sum does not depend on who adds. Statistics of residuals and bounds take one pass over
arrays in memory, and ask workers once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array

BLOCKS, LONGEST = 64, 65_536
"""At least so many blocks, if there are as many states, and none longer than that."""


def block(n_states: int) -> int:
    """States of a block."""
    return max(1, min(LONGEST, n_states // BLOCKS))


def block_sums(a: Array, b: Array, length: int) -> list[float]:
    """Sums of a·b over blocks of `length`, the last one shorter; 0 of a times ±∞ of b is 0."""
    out = np.empty(-(-a.size // length))
    _native.fill_block_sums(a, b, length, out)
    if np.isnan(out).any():
        _native.fill_block_sums(a, np.where((a == 0) & np.isinf(b), 0.0, b), length, out)
    return out.tolist()


def dots(*pairs: tuple[Any, Any]) -> list[float]:
    """a·b for each pair a, b; workers are asked once."""
    first = pairs[0][0]
    if not isinstance(first, np.ndarray):
        return first.dots(*pairs)  # type: ignore[no-any-return]
    length = block(first.size)
    return [math.fsum(block_sums(a, b, length)) for a, b in pairs]


def dot(a: Any, b: Any) -> float:
    """a·b."""
    return dots((a, b))[0]


def ends(*vectors: Any) -> list[tuple[float, float]]:
    """Smallest and largest number of each vector; workers are asked once."""
    if isinstance(vectors[0], np.ndarray):
        return [_native.ends(vector) for vector in vectors]
    return vectors[0].ends_of(*vectors)  # type: ignore[no-any-return]


def mean(a: Any) -> float:
    """Mean."""
    return dot(a, np.full_like(a, 1.0)) / len(a)


def like(vector: Any, values: Array) -> Any:
    """An array as a vector of the same kind."""
    return values if isinstance(vector, np.ndarray) else vector.scattered(values)


HERE = np.ndarray, float


def by_state(function: Any, *args: Any) -> Any:
    """Apply a `function` of arrays by state that treats each state alone."""
    for arg in args:
        if type(arg) not in HERE and hasattr(arg, "mapped"):
            return arg.mapped(function, *args)
    return function(*args)


class ResidualStats(NamedTuple):
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


def survey(value: Any, lower_step: Any, upper_step: Any) -> ResidualStats:
    """Statistics of a sweep."""
    if isinstance(value, np.ndarray):
        return ResidualStats(*_native.survey(value, lower_step, upper_step))
    middle, off, v = ends((lower_step + upper_step) / 2, upper_step - lower_step, value)
    return ResidualStats(middle[1] - middle[0], max(map(abs, middle)), off[1], max(map(abs, v)))


def extent_of(lower: Any, upper: Any) -> Extent:
    """Statistics of bounds."""
    if isinstance(lower, np.ndarray):
        return Extent(*_native.extent(lower, upper))
    gap, most, nearest = ends(upper - lower, upper, np.maximum(np.maximum(lower, -upper), 0.0))
    return Extent(gap[1], max(map(abs, most)), nearest[1])


def are_finite(*vectors: Any) -> bool:
    """Whether all numbers of several vectors are finite."""
    if all(isinstance(vector, np.ndarray) for vector in vectors):
        return all(map(_native.is_finite, vectors))
    return all(math.isfinite(end) for pair in ends(*vectors) for end in pair)
