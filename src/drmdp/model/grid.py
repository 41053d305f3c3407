"""States named by digits; names are computed, never stored."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from drmdp.core.names import ComputedIndex, LazyNames
from drmdp.core.validation import is_integer
from drmdp.errors import InputError, shown


class Grid(LazyNames):
    """All combinations of digits 0 … n − 1, the last digit running fastest; state s is named by its
    digits, a tuple.

    Parameters
    ----------
    *sizes : int
        How many values each digit has.

    Examples
    --------
    >>> import drmdp
    >>> grid = drmdp.Grid(11, 11)  # units that arrive tomorrow, units that expire today
    >>> len(grid), grid[25], grid.index(2, 3)
    (121, (2, 3), 25)
    """

    def __init__(self, *sizes: int) -> None:
        if not sizes:
            raise InputError("Grid: expected the number of values of each digit, got none")
        for n in sizes:
            if not is_integer(n) or n < 1:
                raise InputError(f"Grid: expected whole numbers of at least 1, got {shown(n)}")
        self.sizes = tuple(map(int, sizes))
        if math.prod(self.sizes) >= 2**31:
            raise InputError(f"Grid: {math.prod(self.sizes):,} states are more than 2**31 − 1")
        self.steps = tuple(math.prod(self.sizes[k + 1 :]) for k in range(len(self.sizes)))
        self._range = range(math.prod(self.sizes))

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            other = copy(self)
            other._range = self._range[index]
            return other
        return tuple(self.digits(self._range[index]))

    def __iter__(self) -> Iterator[Hashable]:
        return (tuple(self.digits(s)) for s in self._range)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Grid):
            return (self.sizes, self._range) == (other.sizes, other._range)
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(map(tuple.__eq__, self, other))  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        return hash((self.sizes, self._range))

    def __repr__(self) -> str:
        full = len(self) == math.prod(self.sizes)
        part = "" if full else f"[{self._range.start}:{self._range.stop}]"
        return f"Grid({', '.join(map(str, self.sizes))}){part}"

    def digits(self, s: Any) -> list[Any]:
        """The digits of a state, or arrays of them of an array of states."""
        return [s // step % size for step, size in zip(self.steps, self.sizes, strict=True)]

    def index(self, *digits: Any) -> Any:
        """The state with these digits, numbers or arrays; numbers out of range are refused."""
        if len(digits) != len(self.sizes):
            raise InputError(f"Grid: expected {len(self.sizes)} digits, got {shown(digits)}")
        for k, (digit, size) in enumerate(zip(digits, self.sizes, strict=True)):
            if np.min(digit) < 0 or np.max(digit) >= size:
                raise InputError(f"Grid: digit {k} is {shown(digit)}, expected 0 … {size - 1}")
        return sum(digit * step for digit, step in zip(digits, self.steps, strict=True))

    @property
    def numbers(self) -> Mapping[Hashable, int]:
        """The place of each name."""
        return _GridIndex(self)


class _GridIndex(ComputedIndex):
    def __getitem__(self, name: Any) -> int:
        grid: Any = self._names
        if not isinstance(name, tuple) or len(name) != len(grid.sizes):
            raise KeyError(name)
        pairs = zip(name, grid.sizes, strict=True)
        if not all(isinstance(d, int | np.integer) and 0 <= d < n for d, n in pairs):
            raise KeyError(name)
        s = int(grid.index(*name))
        if s not in grid._range:
            raise KeyError(name)
        return s - int(grid._range.start)
