"""A vector whose numbers stay with the workers.

It follows NumPy's protocols: arithmetic, comparisons, `np.where` and the like are done by the workers on their ranges and give such vectors again; `max`,
`min`, `any`, `all` and sums give numbers. `np.asarray` brings it together here, which only results and small models need.

**Work is put off** until somebody needs its numbers, as a call costs more than the arithmetic. A formula travels with the first call that uses it; if that
wants a number only, the vector is made there and forgotten. It is kept once it is used again, is exchanged, or is part of a sum. What functions other than
NumPy's give is wanted sooner or later: it is made with the next call that makes anything. A product with a chain is put off, too. Numbers never change, so
the smallest and the largest are asked for once and together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from drmdp._typing import Array
from drmdp.cluster.chains import chain_from
from drmdp.cluster.engine import Whole

if TYPE_CHECKING:
    from drmdp.cluster.engine import Engine

BY_STATE = (np.where, np.zeros_like, np.full_like, np.sum)
"""Functions of arrays that treat each state alone."""


_numbers = itertools.count()


class Later:
    """Stands at the head of a formula (Later, function, arguments, settings), which workers carry out."""


@dataclass(frozen=True)
class Made:
    """Stands for a vector that was made before in the same call, by its place."""

    place: int


def carried_out(formula: Any, made: Sequence[Any] = ()) -> Any:
    """What a formula gives on a range; anything else is itself."""
    if isinstance(formula, Made):
        return made[formula.place]
    if not (isinstance(formula, tuple) and formula and formula[0] is Later):
        return formula
    _, function, args, settings = formula
    return function(*(carried_out(arg, made) for arg in args), **settings)


@dataclass(frozen=True)
class Product:
    """Multiplies the rows that a worker has with a vector of all states."""

    n_states: int
    threads: int

    def __call__(self, z: Array, held: tuple[Any, ...]) -> Any:
        """P z on a range."""
        return chain_from(held, self.n_states, self.threads) @ z


def product(engine: Engine, z: Any, rows: Any) -> tuple[Any, ...]:
    """The formula of P z."""
    return Later, Product(engine.n_states, engine.threads), (Whole(z), rows), {}


class Vector(NDArrayOperatorsMixin):
    """One row for each state, in pieces, one for each range, or a formula for them."""

    def __init__(self, engine: Engine, pieces: list[Any], formula: tuple[Any, ...] | None = None) -> None:
        self.engine, self._pieces, self._formula, self._used = engine, pieces, formula, False
        self._known: tuple[Any, Any] | None = None
        self.number = next(_numbers)
        self.deep = formula is not None and (not _plain(formula[1]) or any(map(_deep, formula[2])))

    @property
    def pieces(self) -> list[Any]:
        """Where the numbers are; they are made if they have to be."""
        if self._formula is not None:
            make(self.engine, [self])
        return self._pieces

    def settle(self, pieces: list[Any]) -> None:
        """Be made."""
        self._pieces, self._formula = pieces, None

    @property
    def put_off(self) -> bool:
        """Whether there is only a formula."""
        return self._formula is not None

    @property
    def _of(self) -> tuple[Any, tuple[Any, ...]]:
        """The function that was put off, and its arguments."""
        return (None, ()) if self._formula is None else self._formula[1:3]

    def formula(self, places: Mapping[int, int]) -> Any:
        """What a call is given that makes this vector, or uses it for the first time; `places` are those of vectors made before it."""
        if self._formula is None:
            return self
        self._used = True
        head, function, args, settings = self._formula
        return head, function, tuple(arg.standing(places) if isinstance(arg, Vector) else arg for arg in args), settings

    def standing(self, places: Mapping[int, int]) -> Any:
        """What stands for this vector in a call that makes those of `places`."""
        return Made(places[self.number]) if self.number in places else self.formula(places)

    def parts(self) -> Iterator[Vector]:
        """The vectors in its formula that were put off, too."""
        for arg in self._of[1]:
            if isinstance(arg, Vector) and arg.put_off:
                yield arg
                yield from arg.parts()

    def again(self) -> list[Vector]:
        """Of this vector and those it is made from, the ones that are used again and have to be made."""
        if self.put_off and self._used:
            return [self]
        return [vector for arg in self._of[1] if isinstance(arg, Vector) for vector in arg.again()]

    @property
    def multiplies(self) -> bool:
        """Whether a product with a chain was put off."""
        return any(isinstance(part._of[0], Product) for part in (self, *self.parts()))

    def __len__(self) -> int:
        return self.engine.n_states

    def mapped(self, function: Any, *args: Any, **settings: Any) -> Any:
        """`function`, which treats each state alone, of vectors and numbers."""
        if not _plain(function):  # such may follow each other without end
            make(self.engine, list(filter(_deep, args)))
        found = Vector(self.engine, [], (Later, function, args, settings))
        if not _plain(function):
            self.engine.pending[found.number] = found
        return found

    def multiplied(self, rows: Any) -> Vector:
        """P z for this vector z and the rows of P."""
        _ = self.pieces
        return Vector(self.engine, [], product(self.engine, self, rows))

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

    @property
    def ends(self) -> tuple[Any, Any]:
        """Smallest and largest number."""
        return self.ends_of(self)[0]

    def ends_of(self, *vectors: Vector) -> list[tuple[Any, Any]]:
        """Smallest and largest number of some vectors, asked for in one call."""
        new = [vector for vector in vectors if vector._known is None]
        if new:
            make(self.engine, [first for own in new for first in ([own] if own.multiplies else own.again())])
            told = self.engine.run("fold", _ends, *(vector.formula({}) for vector in new))[1]
            for vector, parts in zip(new, zip(*told, strict=True), strict=True):
                low, high = zip(*parts, strict=True)
                vector._known = np.min(low), np.max(high)
        return [vector._known for vector in vectors]  # type: ignore[misc]

    def max(self) -> float:
        """Largest number."""
        function, args = self._of
        return float(max(map(abs, args[0].ends)) if function is np.absolute else self.ends[1])

    def min(self) -> float:
        """Smallest number."""
        return float(self.ends[0])

    def any(self) -> bool:
        """Whether some of it is true."""
        return bool(self.ends[1])

    def all(self) -> bool:
        """Whether all of it is."""
        function, args = self._of
        return all(map(math.isfinite, args[0].ends)) if function is np.isfinite else bool(self.ends[0])

    def sum(self, axis: int, keepdims: bool = False) -> Any:
        """Sums over the actions."""
        return self.mapped(np.sum, self, axis=axis, keepdims=keepdims)

    def dots(self, *pairs: tuple[Any, Any]) -> list[float]:
        """Sums of products of pairs of vectors, as `drmdp.core.vectors.dots` makes them."""
        parts = make(self.engine, [vector for pair in pairs for vector in pair if vector.put_off], pairs)
        return [math.fsum(part for own in parts for part in own[k]) for k in range(len(pairs))]


def make(engine: Engine, wanted: list[Vector], pairs: tuple[tuple[Vector, Vector], ...] = ()) -> list[Any]:
    """Make vectors, and those that will be wanted, and sums over pairs of vectors, in one call; returns the sums of each worker."""
    if not (wanted or pairs):
        return []
    inner = {part.number for vector in (*wanted, *engine.pending.values()) for part in vector.parts()}
    wanted = [*wanted, *(vector for vector in engine.pending.values() if vector.number not in inner)]
    engine.pending.clear()
    make(engine, [first for vector in wanted for first in vector.again() if first is not vector])
    wanted = sorted({vector.number: vector for vector in wanted if vector.put_off}.values(), key=lambda v: v.number)
    places = {vector.number: k for k, vector in enumerate(wanted)}  # a vector is younger than what it is made of
    asked = tuple(tuple(vector.standing(places) for vector in pair) for pair in pairs)
    name = "product" if any(vector.multiplies for vector in wanted) else "sums" if pairs else "apply"
    formulas = tuple(vector.formula(places) for vector in wanted)
    made, parts = engine.run(name, formulas, asked, kept=len(wanted), ask=bool(pairs))
    for vector, numbers in zip(wanted, made, strict=True):
        vector.settle(numbers.pieces)
    return parts


def _plain(function: Any) -> bool:
    return isinstance(function, np.ufunc | Product) or function in BY_STATE


def _deep(arg: Any) -> bool:
    return isinstance(arg, Vector) and arg.put_off and arg.deep


def _ends(array: Array) -> tuple[Any, Any]:
    return np.min(array), np.max(array)
