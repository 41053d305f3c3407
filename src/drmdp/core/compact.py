"""Rows of probabilities over very many states, without listing them all.

A row is a sum of entries (state, mass) and of prefix terms (k, α, β): α u(t) + β on the first k
states t of a fixed order. A product with a vector needs prefix sums of that vector and O(entries +
prefixes) more, whatever the number of states.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.core import threads as workers
from drmdp.core.cached import cached_property
from drmdp.core.validation import is_integer
from drmdp.errors import InputError

DENSE = 2000
"""States up to which a chain, or a kernel, is a plain array."""


class CompactRows(NamedTuple):
    """R rows with S columns, in the parts of the module."""

    n_columns: int
    entry_ptr: Any  # (R + 1,)
    entry_state: Any
    entry_mass: Array
    prefix_ptr: Any  # (R + 1,)
    prefix_length: Any
    prefix_slope: Array  # α
    prefix_level: Array  # β
    states: Any  # (P,) the beginning of the order, as long as the longest prefix
    u: Array  # (P,) in that order
    threads: int = 1

    def __matmul__(self, z: Array) -> Array:
        """Product with a vector (S,)."""
        sums = np.zeros((2, self.u.size + 1))  # of z and of u z over the first states of the order
        if self.u.size:
            sorted_z = z[self.states]
            np.cumsum(sorted_z, out=sums[0, 1:])
            np.cumsum(self.u * sorted_z, out=sums[1, 1:])
        out = np.empty(self.entry_ptr.size - 1)

        def over(lo: int, hi: int) -> None:
            _native.product(lo, hi, self.parts, z, sums, out)

        workers.run(over, self.entry_ptr, 0, out.size, self.threads)
        return out

    def dense(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows start … stop − 1 as an array (n, S)."""
        stop = self.entry_ptr.size - 1 if stop is None else stop
        out = np.zeros((stop - start, self.n_columns))
        _native.spell(start, self.parts, self.states, self.u, out)
        return out

    @property
    def parts(self) -> tuple[Any, ...]:
        """The entries and the prefix terms."""
        return self[1:8]


class MeanKernel:
    """A mean kernel (S, A, S) of a sparse model: rows on demand, an array only if asked for."""

    def __init__(self, n_states: int, n_actions: int, make: Callable[[], CompactRows]) -> None:
        self.shape, self._make = (n_states, n_actions, n_states), make

    def __getstate__(self) -> dict[str, Any]:
        """The rows instead of the function that computes them, which another process may lack."""
        return {"shape": self.shape, "compact": self.compact}

    @cached_property
    def compact(self) -> CompactRows:
        """The S·A rows, row s·A + a, in compact form."""
        return self._make()

    def rows(self, s: int) -> Array:
        """Probabilities of the next states from state s, (A, S)."""
        S, A, _ = self.shape
        if not is_integer(s) or not 0 <= s < S:
            raise InputError(f"rows: expected a state from 0 to {S - 1}, got {s!r}")
        return self.compact.dense(int(s) * A, (int(s) + 1) * A)

    def __matmul__(self, value: Any) -> Array:
        """Expected value after each pair, (S, A)."""
        return (self.compact @ np.asarray(value, dtype=np.float64)).reshape(self.shape[:2])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Everything as an array (S, A, S)."""
        array = self.compact.dense().reshape(*self.shape[:2], -1)
        return array.astype(dtype or np.float64, copy=False)

    def __repr__(self) -> str:
        return f"MeanKernel{self.shape}: .rows(s) is (A, S), numpy.asarray(…) is all of it"


class KernelTuple(Sequence[Any]):
    """Nature's N kernels, computed on demand: arrays, or `MeanKernel`s of a sparse model."""

    def __init__(self, length: int, make: Callable[[int], Any]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, i: Any) -> Any:
        return self._make(range(self._length)[operator.index(i)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All of them, (N, S, A, S)."""
        array = np.stack([np.asarray(kernel) for kernel in self])
        return array.astype(dtype or np.float64, copy=False)


STORED = CompactRows._fields[1:-1]
"""The arrays of `CompactRows`, as they are saved."""
REAL = ("entry_mass", "prefix_slope", "prefix_level", "u")
KINDS = {name: "f" if name in REAL else "i" for name in STORED}


def restored(n_states: int, n_actions: int, arrays: dict[str, Any]) -> MeanKernel:
    """Put saved arrays together again, after checking that they fit."""
    S, R = n_states, n_states * n_actions
    for name, array in arrays.items():
        if KINDS[name] == "f" and not np.isfinite(array).all():
            raise InputError(f"kernel.{name} holds what is no number")
    for kind, members in (("entry", ("state", "mass")), ("prefix", ("length", "slope", "level"))):
        ptr = arrays[f"{kind}_ptr"]
        if ptr.size != R + 1 or ptr[0] != 0 or (np.diff(ptr) < 0).any():
            raise InputError(f"kernel.{kind}_ptr does not ascend from 0 over {R} rows")
        if any(arrays[f"{kind}_{member}"].size != ptr[-1] for member in members):
            raise InputError(f"kernel.{kind}_ptr does not fit what it points to")
    most = arrays["states"].size
    if arrays["u"].size != most or most > S:
        expected = f"expected as many as kernel.u, at most {S}"
        raise InputError(f"kernel.states has {most} entries, {expected}")
    for name, below in (("entry_state", S), ("states", S), ("prefix_length", most + 1)):
        if arrays[name].size and not 0 <= arrays[name].min() <= arrays[name].max() < below:
            raise InputError(f"kernel.{name} is out of range")
    # contiguous arrays of the dtypes that products take
    types = ("f8" if name in REAL else "i8" if name.endswith("ptr") else "i4" for name in STORED)
    parts = map(np.ascontiguousarray, (arrays[name] for name in STORED), types)
    rows = CompactRows(S, *parts)  # type: ignore[arg-type]
    return MeanKernel(n_states, n_actions, lambda: rows)


def of_matrix(matrix: Any, n_actions: int) -> MeanKernel:
    """A sparse (S·A, S) matrix as a mean kernel."""
    return MeanKernel(matrix.shape[1], n_actions, lambda: rows_of(matrix))


def rows_of(matrix: Any, threads: int = 1) -> CompactRows:
    """The rows of a sparse matrix."""
    ptr, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
    entries = ptr, columns, matrix.data.astype(float, copy=False)
    return listed_rows(matrix.shape[1], *entries, threads)


def listed_rows(
    n_columns: int, ptr: Any, states: Any, mass: Array, threads: int = 1
) -> CompactRows:
    """Rows of entries alone."""
    none, empty = np.zeros(0, dtype=np.int32), np.zeros(0)
    unlisted = np.zeros_like(ptr), none, empty, empty, none, empty
    return CompactRows(n_columns, ptr, states, mass, *unlisted, threads)
