"""A vector whose numbers stay with the workers.

It follows NumPy's protocols: arithmetic, comparisons, `np.where` and the like are one call each, in
which every worker treats its range, and give such vectors again; `max`, `min`, `any`, `all` and sums
give numbers. `np.asarray` brings it together here, which only results and small models need. Numbers
never change, so that the smallest and the largest are asked for once and together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from drmdp._typing import Array

if TYPE_CHECKING:
    from drmdp.cluster.engine import Engine

BY_STATE = (np.where, np.zeros_like, np.full_like, np.sum)
"""Functions of arrays that treat each state alone."""


class Vector(NDArrayOperatorsMixin):
    """One row for each state, in pieces, one for each range."""

    def __init__(self, engine: Engine, pieces: list[Any]) -> None:
        self.engine, self.pieces = engine, pieces
        self._ends: tuple[Any, Any] | None = None

    def __len__(self) -> int:
        return self.engine.n_states

    def mapped(self, function: Any, *args: Any, **settings: Any) -> Any:
        """`function`, which treats each state alone, of vectors and numbers."""
        return self.engine.run("apply", function, args, settings, kept=1, ask=False)[0][0]

    def scattered(self, values: Array) -> Any:
        """Numbers at hand, brought to the workers."""
        return self.engine.scatter(values)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Arithmetic, elementwise."""
        if method != "__call__" or "out" in settings:
            return NotImplemented
        return self.mapped(ufunc, *inputs, **settings)

    def __array_function__(self, function: Any, types: Any, args: Any, settings: Any) -> Any:
        """The functions of `BY_STATE`, and `np.ptp`."""
        if function is np.ptp:
            return self.max() - self.min()
        if function in BY_STATE and (function is not np.sum or settings.get("axis") == 1):
            return self.mapped(function, *args, **settings)
        return NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All numbers, here."""
        return np.asarray(self.engine.gather(self), dtype=dtype)

    def ends_of(self, *vectors: Vector) -> list[tuple[Any, Any]]:
        """Smallest and largest number of some vectors, asked for in one call."""
        new = tuple(vector for vector in vectors if vector._ends is None)
        if new:
            ranges = self.engine.run("extremes", new)[1]
            for vector, ends in zip(new, zip(*ranges, strict=True), strict=True):
                low, high = zip(*ends, strict=True)
                vector._ends = np.min(low), np.max(high)
        return [vector._ends for vector in vectors]  # type: ignore[misc]

    def max(self) -> float:
        """Largest number."""
        return float(self.ends_of(self)[0][1])

    def min(self) -> float:
        """Smallest number."""
        return float(self.ends_of(self)[0][0])

    def any(self) -> bool:
        """Whether some of it is true."""
        return bool(self.max())

    def all(self) -> bool:
        """Whether all of it is."""
        return bool(self.min())

    def sum(self, axis: int, keepdims: bool = False) -> Any:
        """Sums over the actions."""
        return self.mapped(np.sum, self, axis=axis, keepdims=keepdims)

    def dots(self, *pairs: tuple[Any, Any]) -> list[float]:
        """Sums of products of pairs of vectors, as `drmdp.core.vectors.dots` makes them."""
        ranges = self.engine.run("sums", pairs)[1]
        return [math.fsum(part for sums in ranges for part in sums[k]) for k in range(len(pairs))]
