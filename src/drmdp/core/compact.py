"""Rows of probabilities over very many states, without listing them all.

A row is a sum of entries (state, mass) and of prefix terms (k, α, β): α u(t) + β on the first k states t of a fixed order. A product
with a vector needs prefix sums of that vector and O(entries + prefixes) more, whatever the number of states.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.core import threads as workers
from drmdp.errors import InputError

DENSE = 2000
"""States up to which a chain, or a kernel, is a plain array."""


class Parts(NamedTuple):
    """The entries and prefix terms of rows, as `Rows` has them."""

    entry_ptr: Any
    entry_state: Any
    entry_mass: Array
    prefix_ptr: Any
    prefix_length: Any
    prefix_slope: Array
    prefix_level: Array


@dataclass(eq=False)
class Rows:
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
        parts = self._parts

        def over(lo: int, hi: int) -> None:
            _native.product(lo, hi, parts, z, sums, out)

        workers.run(over, self.entry_ptr, 0, out.size, self.threads)
        return out

    def dense(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows start … stop − 1 as an array (n, S)."""
        stop = self.entry_ptr.size - 1 if stop is None else stop
        out = np.zeros((stop - start, self.n_columns))
        _native.spell(start, self._parts, self.states, self.u, out)
        return out

    @property
    def _parts(self) -> Parts:
        entries = self.entry_ptr, self.entry_state, self.entry_mass
        return Parts(*entries, self.prefix_ptr, self.prefix_length, self.prefix_slope, self.prefix_level)


class MeanKernel:
    """A mean kernel (S, A, S) of a sparse model: rows on demand, an array only if asked for.

    Nothing is computed before it is needed; what is computed is kept.
    """

    def __init__(self, n_states: int, n_actions: int, make: Callable[[], Rows]) -> None:
        self.shape = (n_states, n_actions, n_states)
        self._make = make
        self._rows: Rows | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Rows instead of what makes them, which need not be known where the kernel goes."""
        return {"shape": self.shape, "_make": None, "_rows": self.compact}

    @property
    def compact(self) -> Rows:
        """The S·A rows, row s·A + a, in compact form."""
        if self._rows is None:
            self._rows = self._make()
        return self._rows

    def rows(self, s: int) -> Array:
        """Probabilities of the next states from state s, (A, S)."""
        S, A, _ = self.shape
        if isinstance(s, bool) or not isinstance(s, int | np.integer) or not 0 <= s < S:
            raise InputError(f"rows: expected a state from 0 to {S - 1}, got {s!r}")
        return self.compact.dense(int(s) * A, (int(s) + 1) * A)

    def __matmul__(self, value: Any) -> Array:
        """Expected value after each pair, (S, A)."""
        return (self.compact @ np.asarray(value, dtype=np.float64)).reshape(self.shape[:2])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Everything as an array (S, A, S)."""
        return self.compact.dense().reshape(*self.shape[:2], -1).astype(dtype or np.float64, copy=False)

    def __repr__(self) -> str:
        return f"MeanKernel{self.shape}: .rows(s) is (A, S), numpy.asarray(…) is all of it"


class KernelTuple(Sequence[Any]):
    """Nature's N kernels: number i is made when it is asked for, an array (S, A, S) or, of a sparse model, a `MeanKernel`."""

    def __init__(self, length: int, make: Callable[[int], Any]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, i: Any) -> Any:
        return self._make(range(self._length)[operator.index(i)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All of them, (N, S, A, S)."""
        return np.stack([np.asarray(kernel) for kernel in self]).astype(dtype or np.float64, copy=False)


STORED = tuple(f.name for f in fields(Rows) if f.name not in ("n_columns", "threads"))
"""The arrays of `Rows`, as they are saved."""
KINDS = dict.fromkeys(STORED, "i") | dict.fromkeys(("entry_mass", "prefix_slope", "prefix_level", "u"), "f")


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
        raise InputError(f"kernel.states has {most} entries, expected as many as kernel.u, at most {S}")
    for name, below in (("entry_state", S), ("states", S), ("prefix_length", most + 1)):
        if arrays[name].size and not 0 <= arrays[name].min() <= arrays[name].max() < below:
            raise InputError(f"kernel.{name} is out of range")
    parts: Any = (_plain(name, arrays[name]) for name in STORED)
    rows = Rows(S, *parts)
    return MeanKernel(n_states, n_actions, lambda: rows)


def _plain(name: str, array: Any) -> Any:
    """Numbers of the kinds that products know, whatever they were written as."""
    return np.ascontiguousarray(array, dtype="f8" if KINDS[name] == "f" else "i8" if name.endswith("ptr") else "i4")


def of_matrix(matrix: Any, n_actions: int) -> MeanKernel:
    """A sparse (S·A, S) matrix as a mean kernel."""
    return MeanKernel(matrix.shape[1], n_actions, lambda: rows_of(matrix))


def rows_of(matrix: Any, threads: int = 1) -> Rows:
    """The rows of a sparse matrix."""
    none, empty = np.zeros(0, dtype=np.int32), np.zeros(0)
    ptr = np.zeros(matrix.shape[0] + 1, dtype=np.int64)
    listed = (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data.astype(np.float64, copy=False),
    )
    return Rows(matrix.shape[1], *listed, ptr, none, empty, empty, none, empty, threads)
