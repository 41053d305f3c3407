"""A vector whose numbers stay with the workers.

It follows NumPy's protocols: arithmetic, comparisons, `np.where` and the like are done by the workers on their ranges and give such vectors again; `max`,
`min`, `any`, `all` and sums give numbers. `np.asarray` brings it together here, which only results and small models need.

**Work is put off** until somebody needs its numbers, as a call costs more than the arithmetic. A formula travels with the first call that uses it; if that
wants a number only, the vector is made there and forgotten. It is kept once it is used again, is exchanged, or is part of a sum.
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


class Later:
    """Stands at the head of a formula (Later, function, arguments, settings), which workers carry out."""


def carried_out(formula: Any) -> Any:
    """What a formula gives on a range; anything else is itself."""
    if not (isinstance(formula, tuple) and formula and formula[0] is Later):
        return formula
    _, function, args, settings = formula
    return function(*map(carried_out, args), **settings)


class Vector(NDArrayOperatorsMixin):
    """One row for each state, in pieces, one for each range, or a formula for them."""

    def __init__(self, engine: Engine, pieces: list[Any], formula: tuple[Any, ...] | None = None) -> None:
        self.engine, self._pieces, self._formula, self._used = engine, pieces, formula, False

    @property
    def pieces(self) -> list[Any]:
        """Where the numbers are; they are made if they have to be."""
        if self._formula is not None:
            self._settle(self.engine.run("apply", self._formula, kept=1, ask=False)[0][0])
        return self._pieces

    def _settle(self, made: Vector) -> None:
        self._pieces, self._formula = made.pieces, None

    def _given(self, once: bool = True) -> Any:
        """The formula, for the first who uses it and if it may travel; the vector, made, for others."""
        formula, first = self._formula, not self._used
        self._used = True
        if formula is not None and first and once:
            return formula
        return Vector(self.engine, self.pieces)

    def __len__(self) -> int:
        return self.engine.n_states

    def mapped(self, function: Any, *args: Any, **settings: Any) -> Any:
        """`function`, which treats each state alone, of vectors and numbers."""
        plain = isinstance(function, np.ufunc) or function in BY_STATE  # others may follow each other without end
        given = tuple(arg._given(plain) if isinstance(arg, Vector) else arg for arg in args)
        return Vector(self.engine, [], (Later, function, given, settings))

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

    def _fold(self, function: Any) -> Any:
        return function(self.engine.run("fold", function, self._given())[1])

    def max(self) -> float:
        """Largest number."""
        return float(self._fold(np.max))

    def min(self) -> float:
        """Smallest number."""
        return float(self._fold(np.min))

    def any(self) -> bool:
        """Whether some of it is true."""
        return bool(self._fold(np.any))

    def all(self) -> bool:
        """Whether all of it is."""
        return bool(self._fold(np.all))

    def sum(self, axis: int, keepdims: bool = False) -> Any:
        """Sums over the actions."""
        return self.mapped(np.sum, self, axis=axis, keepdims=keepdims)

    def dots(self, *pairs: tuple[Any, Any]) -> list[float]:
        """Sums of products of pairs of vectors, as `drmdp.core.vectors.dots` makes them."""
        new: list[Vector] = []
        for vector in (vector for pair in pairs for vector in pair):
            if vector._formula is not None and not any(vector is known for known in new):
                new.append(vector)

        def place(vector: Vector) -> Any:
            return next((k for k, known in enumerate(new) if known is vector), vector)

        asked = tuple((place(a), place(b)) for a, b in pairs)
        made, parts = self.engine.run("sums", tuple(vector._formula for vector in new), asked, kept=len(new))
        for vector, numbers in zip(new, made, strict=True):
            vector._settle(numbers)
        return [math.fsum(part for own in parts for part in own[k]) for k in range(len(pairs))]
