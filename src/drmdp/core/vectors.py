"""Vectors with a number for each state, wherever they are.

A vector is a NumPy array, or an object that follows NumPy's protocols for arithmetic (`__array_ufunc__`, `__array_function__`) while its numbers stay with
workers that own ranges of states (`drmdp.cluster`). Elementwise work gives the same bits wherever it is done, minima and maxima too. Sums would not:
they are made block by block, in blocks that depend on the number of states only, and the sums of the blocks are added without rounding. Ranges
are made of whole blocks, so that a sum does not depend on who adds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from drmdp import _native
from drmdp._typing import Array

BLOCKS, LONGEST = 64, 65_536
"""At least so many blocks, if there are as many states, and none longer than that."""


def block(n_states: int) -> int:
    """States of a block."""
    return max(1, min(LONGEST, n_states // BLOCKS))


def block_sums(a: Array, b: Array, length: int) -> list[float]:
    """Sums of a·b over blocks of `length`, the last one shorter."""
    if length == 1:
        found: list[float] = (a * b).tolist()
        return found
    out = np.empty(-(-a.size // length))
    _native.fill_block_sums(a, b, length, out)
    return list(out.tolist())


def dots(*pairs: tuple[Any, Any]) -> list[float]:
    """a·b for each pair a, b; workers are asked once."""
    first = pairs[0][0]
    if not isinstance(first, np.ndarray):
        found: list[float] = first.dots(*pairs)
        return found
    length = block(first.size)
    if length == 1:
        return [math.fsum((a * b).tolist()) for a, b in pairs]
    return [math.fsum(block_sums(a, b, length)) for a, b in pairs]


def dot(a: Any, b: Any) -> float:
    """a·b."""
    return dots((a, b))[0]


def ends(*vectors: Any) -> list[tuple[float, float]]:
    """Smallest and largest number of each vector; workers are asked once."""
    if isinstance(vectors[0], np.ndarray):
        return [_native.ends(vector) for vector in vectors]
    found: list[tuple[float, float]] = vectors[0].ends_of(*vectors)
    return found


def mean(a: Any) -> float:
    """Mean."""
    return dot(a, np.full_like(a, 1.0)) / len(a)


def like(vector: Any, values: Array) -> Any:
    """Numbers at hand as a vector of the same kind."""
    return values if isinstance(vector, np.ndarray) else vector.scattered(values)


HERE = np.ndarray, float


def by_state(function: Any, *args: Any) -> Any:
    """`function` of arrays whose rows belong to states, which treats each state alone."""
    for arg in args:
        if type(arg) not in HERE and hasattr(arg, "mapped"):
            return arg.mapped(function, *args)
    return function(*args)
