"""Storage of N transition kernels, by state, compressed to their common support.

Pair k = s·A + a owns the columns ``indices[indptr[k]:indptr[k+1]]``, in ascending order: the union over the
kernels i of the next states t with ŷ_i(t|s,a) ≠ 0. With K columns, its probabilities are the contiguous
(N, K) block ``data[N·indptr[k] : N·indptr[k+1]]``. A range of states is therefore one contiguous piece of each
array, dense and sparse models differ only in how large K is, and nothing is stored twice.

Rows stored in float32 stand for what they are after division by their sum, both in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import _native
from drmdp._typing import Array, BoolArray, IntArray
from drmdp.errors import InputError

ROW_SUM_TOL = 1e-9
"""How far a row may be from 1 and still be taken for a rounded one."""
ROW_SUM_TOL_FLOAT32 = 1e-6
"""The same for rows given in float32, whose own rounding is about 1e-7."""


NEGATIVE = 1e-12
"""Negative numbers down to −this are rounded zeros: what is left of 1 after K subtractions is off by some K·1e-16."""
NEGATIVE_NORMALIZED = 1e-9
"""The same where the caller asks for rows to be put right."""
PIECE = 200_000
"""Rows gone through at a time."""
ENTRIES = 2_000_000
"""Probabilities gone through at a time, but at least one pair."""


def row_sum_tol(dtype: Any) -> float:
    """How far from 1 a distribution given in this dtype may sum."""
    return ROW_SUM_TOL_FLOAT32 if dtype.kind == "f" and dtype.itemsize == 4 else ROW_SUM_TOL


def rounding(size: Any) -> Any:
    """How far from 1 the sum of so many numbers may come out when nothing is wrong: no reason to touch them."""
    return 2 * (size + 2) * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Kernels:
    """N kernels over S states and A actions, support-compressed (see the module)."""

    n_states: int
    n_actions: int
    n_kernels: int
    indptr: IntArray  # (S·A + 1,)
    indices: Any  # (nnz,) int32
    data: Any  # (N·nnz,) float64 or float32
    is_sparse: bool  # given as sparse matrices, and to be given back as such

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.data):
            array.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies are read-only too."""
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.data.nbytes)

    @property
    def lengths(self) -> IntArray:
        """Size K of the support of each pair, (S·A,)."""
        return np.diff(self.indptr)

    def row_starts(self) -> IntArray:
        """Where row (k, i) begins in `data`, (S·A·N,), pairs first."""
        i = np.arange(self.n_kernels)
        return (self.n_kernels * self.indptr[:-1, None] + i * self.lengths[:, None]).ravel()

    def positions(self, i: int) -> IntArray:
        """Where kernel i's entries lie in `data`, in the order of `indices`, (nnz,)."""
        lengths = self.lengths
        offset = (self.n_kernels - 1) * self.indptr[:-1] + i * lengths
        return np.arange(self.indices.size) + np.repeat(offset, lengths)

    def sums(self) -> Array:
        """Sum of row (k, i) as stored, (S·A·N,), pairs first."""
        filled = np.repeat(self.lengths > 0, self.n_kernels)
        sums = np.zeros(filled.size)
        if self.data.size:
            with np.errstate(over="ignore"):
                sums[filled] = np.add.reduceat(self.data, self.row_starts()[filled], dtype=np.float64)
        return sums

    def exact_sum(self, row: int) -> float:
        """Sum of the row pair·N + kernel, correctly rounded."""
        pair, i = divmod(row, self.n_kernels)
        length = int(self.lengths[pair])
        first = self.n_kernels * int(self.indptr[pair]) + i * length
        return math.fsum(self.data[first : first + length].tolist())

    def entries(self, i: int) -> Array:
        """Probabilities of kernel i in the order of `indices`, (nnz,)."""
        values = self.data[self.positions(i)]
        if values.dtype == np.float64:
            return np.asarray(values)
        lengths = self.lengths
        filled = lengths > 0
        sums = np.ones(lengths.size)
        if values.size:
            sums[filled] = np.add.reduceat(values, self.indptr[:-1][filled], dtype=np.float64)
        return np.asarray(values / np.repeat(sums, lengths))

    def astype(self, dtype: Any) -> Kernels:
        """The same probabilities stored in float64 or float32."""
        if self.data.dtype == dtype:
            return self
        data = self.data
        if np.dtype(dtype) == np.float64:
            data = data / np.repeat(self.sums(), np.repeat(self.lengths, self.n_kernels))
        return replace(self, data=data.astype(dtype))

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Ranges of pairs to go through one after the other where arrays of a number per row would be too many."""
        rows, entries = (max(1, size // self.n_kernels) for size in (PIECE, ENTRIES))
        lo, last = 0, self.indptr.size - 1
        while lo < last:
            full = int(np.searchsorted(self.indptr, self.indptr[lo] + entries, side="right")) - 1
            hi = min(lo + rows, max(full, lo + 1), last)
            yield lo, hi
            lo = hi

    def part(self, lo: int, hi: int) -> Kernels:
        """The pairs lo … hi − 1 alone."""
        first, last, N = self.indptr[lo], self.indptr[hi], self.n_kernels
        indptr, indices, data = (
            self.indptr[lo : hi + 1] - first,
            self.indices[first:last],
            self.data[N * first : N * last],
        )
        return replace(self, indptr=indptr, indices=indices, data=data)

    def mean(self, weights: Array) -> Array:
        """Σ_i w_i ŷ_i in the order of `indices`, (nnz,)."""
        total = np.zeros(self.indices.size)
        _native.add_rows(self.data, self.indptr, np.ascontiguousarray(weights, dtype=np.float64), total)
        return total

    def seen(self, weights: Array) -> BoolArray:
        """Which entries some kernel of positive weight has, in the order of `indices`, (nnz,)."""
        if (weights > 0).all():
            return np.ones(self.indices.size, dtype=bool)
        found = np.zeros(self.indices.size, dtype=bool)
        for i in np.flatnonzero(weights > 0).tolist():
            found |= self.data[self.positions(i)] > 0
        return found

    def mask(self, start: int, stop: int) -> BoolArray:
        """Which next states are stored, for the states start … stop − 1, (n, A, S)."""
        n, A, S = stop - start, self.n_actions, self.n_states
        lo, hi = self.indptr[start * A], self.indptr[stop * A]
        pair = np.repeat(np.arange(n * A), self.lengths[start * A : stop * A])
        mask = np.zeros((n * A, S), dtype=bool)
        mask[pair, self.indices[lo:hi]] = True
        return mask.reshape(n, A, S)

    def dense(self, start: int, stop: int) -> Array:
        """Expand the states start … stop − 1 to (n, A, N, S)."""
        n, A, N, S = stop - start, self.n_actions, self.n_kernels, self.n_states
        mask = self.mask(start, stop)
        block = np.zeros((n, A, N, S))
        lo, hi = N * self.indptr[start * A], N * self.indptr[stop * A]
        block[np.broadcast_to(mask[:, :, None, :], block.shape)] = self.data[lo:hi]
        if self.data.dtype != np.float64:
            sums = block.sum(axis=3, keepdims=True)
            block /= np.where(sums > 0, sums, 1.0)
        return block

    def matrix(self, values: Array) -> Any:
        """Give one value per stored column, (nnz,), as a sparse (S·A, S) matrix; of a part as one of fewer rows."""
        shape = (self.indptr.size - 1, self.n_states)
        short = self.indptr.astype(np.int32) if self.indices.size < 2**31 else self.indptr  # or the indices are copied
        return sparse.csr_array((values, self.indices, short), shape=shape)


def entry_keys(indptr: IntArray, indices: Any, S: int) -> IntArray:
    """Keys pair·S + next state of all entries, ascending."""
    return np.asarray(np.repeat(np.arange(indptr.size - 1) * S, np.diff(indptr)) + indices)


def unsigned(values: Array, slack: float = NEGATIVE) -> Array:
    """The same numbers with 0 for the negative ones that are at least −slack."""
    rounded = (values < 0) & (values >= -slack)
    return np.where(rounded, 0.0, values) if rounded.any() else values


def compressed(source: Any, available: BoolArray, slack: float) -> Kernels:
    """Bring the kernels of n states, as blocks, a dense array or sparse matrices, to blocks."""
    if isinstance(source, Kernels):
        return source
    compress = compress_dense if isinstance(source, np.ndarray) else compress_sparse
    return compress(source, available, slack)


def compress_dense(kernels: Array, available: BoolArray, slack: float = NEGATIVE) -> Kernels:
    """Compress the (N, n, A, S) kernels of n states; unavailable pairs are dropped unread, numbers in [−slack, 0) are 0."""
    N, n, A, S = kernels.shape
    kernels = unsigned(kernels, slack)
    mask = np.zeros((n, A, S), dtype=bool)
    for kernel in kernels:
        mask |= kernel != 0
    mask &= available[:, :, None]
    indptr = np.concatenate([[0], np.cumsum(mask.reshape(n * A, S).sum(axis=1))]).astype(np.int64)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(N * indptr[-1])
    step = max(1, ENTRIES // (N * A * S))
    for lo in range(0, n, step):  # some states at a time: a mask of all numbers would need several times their memory
        own = mask[lo : lo + step]
        first, last = indptr[lo * A], indptr[min(lo + step, n) * A]
        indices[first:last] = np.nonzero(own)[2]
        block = kernels[:, lo : lo + step].transpose(1, 2, 0, 3)  # (n, A, N, S)
        data[N * first : N * last] = block[np.broadcast_to(own[:, :, None, :], block.shape)]
    return Kernels(S, A, N, indptr, indices, data, is_sparse=False)


def compress_sparse(matrices: Sequence[Any], available: BoolArray, slack: float = NEGATIVE) -> Kernels:
    """Compress N sparse (n·A, S) matrices of n states; unavailable pairs are dropped unread, numbers in [−slack, 0) are 0."""
    (n, A), S = available.shape, matrices[0].shape[1]
    parts = [_canonical(matrix, available.ravel(), slack) for matrix in matrices]
    return from_parts(parts, n, S, A, is_sparse=True)


def from_parts(parts: Sequence[tuple[IntArray, Array]], n: int, S: int, A: int, is_sparse: bool) -> Kernels:
    """Gather N kernels of n states, each given by ascending keys pair·S + column and the values there, none of them 0."""
    keys = parts[0][0]
    for other, _ in parts[1:]:
        if other is not keys and not np.array_equal(keys, other):
            keys = np.union1d(keys, other)
    pair, column = np.divmod(keys, S)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=n * A))]).astype(np.int64)
    data = np.zeros(len(parts) * keys.size)
    kernels = Kernels(S, A, len(parts), indptr, column.astype(np.int32), data.view(), is_sparse)
    for i, (own, values) in enumerate(parts):
        at = slice(None) if own.size == keys.size else np.searchsorted(keys, own)
        data[kernels.positions(i)[at]] = values
    return kernels


def from_arrays(shape: tuple[int, int, int], indptr: Any, indices: Any, data: Any, is_sparse: bool) -> Kernels:
    """Take over stored arrays, (N, S, A) being their shape, after checking that they fit together."""
    N, S, A = shape
    for name, array, kind in (("indptr", indptr, "i"), ("indices", indices, "i"), ("data", data, "f")):
        if array.ndim != 1 or array.dtype.kind != kind:
            raise InputError(f"{name}: expected a one-dimensional {kind!r} array, got {array.dtype} {array.shape}")
    indptr = indptr.astype(np.int64, copy=False)
    if indptr.shape != (S * A + 1,) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise InputError(f"indptr: expected {S * A + 1} ascending numbers from 0, got shape {indptr.shape}")
    if indices.size != indptr[-1] or data.size != N * indptr[-1]:
        want = f"{indptr[-1]} indices and {N * int(indptr[-1])} probabilities"
        raise InputError(f"indices, data: expected {want}, got {indices.size} and {data.size}")
    k = wrong_column(indptr, indices, S)
    if k >= 0:
        raise InputError(f"indices: entry {k} is {int(indices[k])}, expected ascending states below {S}")
    indices = indices.astype(np.int32, copy=False)
    dtype = data.dtype if data.dtype == np.float32 else np.float64
    return Kernels(S, A, N, indptr, indices, data.astype(dtype, copy=False), is_sparse)


def wrong_column(indptr: IntArray, indices: Any, n_columns: int) -> int:
    """Where `indices` first leaves 0 … n_columns − 1 or does not ascend within a pair; −1 if nowhere."""
    for lo in range(0, indices.size, ENTRIES):
        own = indices[lo : lo + ENTRIES + 1]
        wrong = (own < 0) | (own >= n_columns)
        falls = own[1:] <= own[:-1]
        first, last = np.searchsorted(indptr, (lo + 1, lo + own.size))
        falls[indptr[first:last] - (lo + 1)] = False  # where a pair begins
        wrong[1:] |= falls
        if wrong.any():
            return lo + int(np.argmax(wrong))
    return -1


def _canonical(matrix: Any, keep: BoolArray, slack: float) -> tuple[IntArray, Array]:
    """Keys row·S + column, ascending, and values of the nonzero entries of the kept rows."""
    with np.errstate(over="ignore"):  # infinities are found by `check`
        listed = matrix.astype(np.float64, copy=False).tocsr()  # before summing: small integers would wrap
        keys = _keys(listed)
        if (keys[1:] <= keys[:-1]).any():  # out of order, or given twice
            listed = listed.tocoo()
            listed.sum_duplicates()
            listed = listed.tocsr()
            listed.sort_indices()
            keys = _keys(listed)
    data = unsigned(listed.data, slack)
    chosen = np.repeat(keep, np.diff(listed.indptr)) & (data != 0)
    return (keys, data) if chosen.all() else (keys[chosen], data[chosen])


def _keys(matrix: Any) -> IntArray:
    """Keys row·S + column of the entries of a CSR matrix, as they lie."""
    return entry_keys(matrix.indptr, matrix.indices, matrix.shape[1])


def no_zeros(matrix: Any) -> Any:
    """A sparse matrix without stored zeros."""
    if matrix.data.all():
        return matrix
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    return matrix
