"""Storage of N transition kernels, by state, compressed to their common support.

Pair k = s·A + a has the columns ``indices[indptr[k]:indptr[k+1]]``, in ascending order: the union
over the kernels i of the next states t with ŷ_i(t|s,a) ≠ 0. With K columns, its probabilities are
the contiguous (N, K) block ``data[N·indptr[k] : N·indptr[k+1]]``. A range of states is therefore
one contiguous piece of each array, dense and sparse models differ only in how large K is, and
nothing is stored twice.

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
"""Largest deviation of the sum of a rounded row from 1."""
ROW_SUM_TOL_FLOAT32 = 1e-6
"""The same for rows given in float32, whose rounding is about 1e-7."""
NEGATIVE = 1e-12
"""Negative numbers down to −this are rounded zeros: 1 less K numbers is off by some K·1e-16."""
NEGATIVE_NORMALIZED = 1e-9
"""The same where the caller asks for rows to be put right."""
PIECE = 200_000
"""Rows read at a time."""
ENTRIES = 2_000_000
"""Probabilities read at a time, but at least one pair."""


def row_sum_tol(dtype: Any) -> float:
    """Largest deviation from 1 of the sum of a distribution in this dtype."""
    return ROW_SUM_TOL_FLOAT32 if dtype.kind == "f" and dtype.itemsize == 4 else ROW_SUM_TOL


def slack_of(normalize: bool) -> float:
    """How far below 0 a number may be, if the caller asks for rows to be put right, or not."""
    return NEGATIVE_NORMALIZED if normalize else NEGATIVE


def rounding(size: Any) -> Any:
    """Rounding of the sum of so many numbers that sum to 1: no reason to touch them."""
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

    def positions(self, i: int) -> IntArray:
        """Places in `data` of the entries of kernel i, in the order of `indices`, (nnz,)."""
        lengths = self.lengths
        offset = (self.n_kernels - 1) * self.indptr[:-1] + i * lengths
        return np.arange(self.indices.size) + np.repeat(offset, lengths)

    def sums(self) -> Array:
        """Sum of row (k, i) as stored, (S·A·N,), pairs first."""
        with np.errstate(over="ignore"):
            return over_rows(np.add, self.data, offsets(np.repeat(self.lengths, self.n_kernels)))

    def exact_sum(self, row: int) -> float:
        """Sum of the row pair·N + kernel, correctly rounded."""
        pair, i = divmod(row, self.n_kernels)
        block = self.data[slice(*(self.n_kernels * self.indptr[pair : pair + 2]))]
        return math.fsum(block.reshape(self.n_kernels, -1)[i].tolist())

    def entry(self, k: int) -> tuple[int, int, int]:
        """Pair, kernel and next state of the number ``data[k]``."""
        pair = int(np.searchsorted(self.n_kernels * self.indptr, k, side="right")) - 1
        first, length = int(self.indptr[pair]), int(self.lengths[pair])
        i, column = divmod(k - self.n_kernels * first, length)
        return pair, i, int(self.indices[first + column])

    def entries(self, i: int) -> Array:
        """Probabilities of kernel i in the order of `indices`, (nnz,)."""
        values = self.data[self.positions(i)]
        if values.dtype == np.float64:
            return np.asarray(values)
        return np.asarray(values / np.repeat(over_rows(np.add, values, self.indptr), self.lengths))

    def astype(self, dtype: Any) -> Kernels:
        """The same probabilities stored in float64 or float32."""
        if self.data.dtype == dtype:
            return self
        data = self.data
        if np.dtype(dtype) == np.float64:
            data = data / np.repeat(self.sums(), np.repeat(self.lengths, self.n_kernels))
        return replace(self, data=data.astype(dtype))

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Ranges of pairs, for work that needs arrays of a number per row."""
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
        indices, data = self.indices[first:last], self.data[N * first : N * last]
        return replace(self, indptr=self.indptr[lo : hi + 1] - first, indices=indices, data=data)

    def mean(self, weights: Array) -> Array:
        """Σ_i w_i ŷ_i in the order of `indices`, (nnz,)."""
        total, w = np.zeros(self.indices.size), np.ascontiguousarray(weights, dtype=np.float64)
        _native.add_rows(self.data, self.indptr, w, total)
        return total

    def observed(self, weights: Array) -> BoolArray:
        """Flags of the entries that a kernel of positive weight has, in the order of `indices`,
        (nnz,).
        """
        used = weights > 0
        flags = np.full(self.indices.size, used.all())
        for i in () if used.all() else np.flatnonzero(used).tolist():
            flags |= self.data[self.positions(i)] > 0
        return flags

    def mask(self, start: int, stop: int) -> BoolArray:
        """Flags of the stored next states, for the states start … stop − 1, (n, A, S)."""
        A = self.n_actions
        part = self.part(start * A, stop * A)
        listed = part.matrix(np.ones(part.indices.size, dtype=bool))
        return np.asarray(listed.toarray().reshape(stop - start, A, self.n_states))

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
        """A sparse (S·A, S) matrix with one value per stored column, (nnz,); of a part it has fewer
        rows.
        """
        shape, indptr = (self.indptr.size - 1, self.n_states), self.indptr
        if self.indices.size < 2**31:
            indptr = indptr.astype(np.int32)  # or the indices are copied
        return sparse.csr_array((values, self.indices, indptr), shape=shape)


def offsets(lengths: Any) -> IntArray:
    """Begin of each of consecutive pieces, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def row_entries(indptr: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Where the entries of some rows are, one row after the other, and how many each has."""
    lengths = indptr[rows + 1] - indptr[rows]
    begin = indptr[rows] - (np.cumsum(lengths) - lengths)
    return np.arange(int(lengths.sum())) + np.repeat(begin, lengths), lengths


def kernel_entries(source: Any, at: IntArray, pairs: IntArray) -> Array:
    """Probabilities of all kernels, (N, n), at entries `at` of `pairs`, (n,) each, of blocks or of
    a layout.
    """
    first, N = source.indptr[pairs], source.data.size // max(source.indices.size, 1)
    start, lengths = at + (N - 1) * first, source.indptr[pairs + 1] - first
    return np.stack([source.data[start + i * lengths] for i in range(N)])


def over_rows(join: np.ufunc, entries: Any, indptr: IntArray, empty: float = 0.0) -> Array:
    """Join the entries indptr[k] … indptr[k + 1] − 1 of each row; `empty` where there are none."""
    out, filled = np.full(indptr.size - 1, empty), np.diff(indptr) > 0
    if filled.any():
        out[filled] = join.reduceat(entries, indptr[:-1][filled], dtype=np.float64)
    return out


def extremes(group: IntArray, values: Array, n: int) -> tuple[Array, Array]:
    """Smallest and largest value of each of n groups, (n,); ±inf where there is none."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return low, high


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
    """Compress the (N, n, A, S) kernels of n states; unavailable pairs are dropped unread, numbers
    in [−slack, 0) are 0.
    """
    N, n, A, S = kernels.shape
    kernels = unsigned(kernels, slack)
    mask = np.zeros((n, A, S), dtype=bool)
    for kernel in kernels:
        mask |= kernel != 0
    mask &= available[:, :, None]
    indptr = offsets(mask.reshape(n * A, S).sum(axis=1))
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(N * indptr[-1])
    step = max(1, ENTRIES // (N * A * S))
    for lo in range(0, n, step):  # a mask of all numbers would need several times their memory
        stored = mask[lo : lo + step]
        first, last = indptr[lo * A], indptr[min(lo + step, n) * A]
        indices[first:last] = np.nonzero(stored)[2]
        block = kernels[:, lo : lo + step].transpose(1, 2, 0, 3)  # (n, A, N, S)
        data[N * first : N * last] = block[np.broadcast_to(stored[:, :, None, :], block.shape)]
    return Kernels(S, A, N, indptr, indices, data, is_sparse=False)


def compress_sparse(matrices: Any, available: BoolArray, slack: float = NEGATIVE) -> Kernels:
    """Compress N sparse (n·A, S) matrices of n states; unavailable pairs are dropped unread,
    numbers in [−slack, 0) are 0.
    """
    parts = [_canonical(matrix, available.ravel(), slack) for matrix in matrices]
    n, A = available.shape
    return from_parts(parts, n, matrices[0].shape[1], A, is_sparse=True)


def from_parts(
    parts: Sequence[tuple[IntArray, Array]], n: int, S: int, A: int, is_sparse: bool
) -> Kernels:
    """Gather N kernels of n states, each given by ascending keys pair·S + column and the values
    there, none of them 0.
    """
    keys = parts[0][0]
    for other, _ in parts[1:]:
        if other is not keys and not np.array_equal(keys, other):
            keys = np.union1d(keys, other)
    pair, column = np.divmod(keys, S)
    indptr = offsets(np.bincount(pair, minlength=n * A))
    data = np.zeros(len(parts) * keys.size)
    kernels = Kernels(S, A, len(parts), indptr, column.astype(np.int32), data.view(), is_sparse)
    for i, (part, values) in enumerate(parts):
        at = slice(None) if part.size == keys.size else np.searchsorted(keys, part)
        data[kernels.positions(i)[at]] = values
    return kernels


def from_arrays(
    shape: tuple[int, int, int], indptr: Any, indices: Any, data: Any, is_sparse: bool
) -> Kernels:
    """Take over stored arrays of shape (N, S, A) after checking that they fit together."""
    N, S, A = shape
    arrays = {"indptr": indptr, "indices": indices, "data": data}
    for (name, array), kind in zip(arrays.items(), "iif", strict=True):
        if array.ndim != 1 or array.dtype.kind != kind:
            expected = f"expected a one-dimensional {kind!r} array"
            raise InputError(f"{name}: {expected}, got {array.dtype} {array.shape}")
    indptr = indptr.astype(np.int64, copy=False)
    if indptr.shape != (S * A + 1,) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        expected = f"expected {S * A + 1} ascending numbers from 0"
        raise InputError(f"indptr: {expected}, got shape {indptr.shape}")
    if indices.size != indptr[-1] or data.size != N * indptr[-1]:
        want = f"{indptr[-1]} indices and {N * int(indptr[-1])} probabilities"
        raise InputError(f"indices, data: expected {want}, got {indices.size} and {data.size}")
    k = wrong_column(indptr, indices, S)
    if k >= 0:
        expected = f"expected ascending states below {S}"
        raise InputError(f"indices: entry {k} is {int(indices[k])}, {expected}")
    indices = indices.astype(np.int32, copy=False)
    dtype = data.dtype if data.dtype == np.float32 else np.float64
    return Kernels(S, A, N, indptr, indices, data.astype(dtype, copy=False), is_sparse)


def wrong_column(indptr: IntArray, indices: Any, n_columns: int) -> int:
    """First place where `indices` leaves 0 … n_columns − 1 or does not ascend within a pair; −1 if
    there is none.
    """
    for lo in range(0, indices.size, ENTRIES):
        piece = indices[lo : lo + ENTRIES + 1]
        wrong = (piece < 0) | (piece >= n_columns)
        falls = piece[1:] <= piece[:-1]
        first, last = np.searchsorted(indptr, (lo + 1, lo + piece.size))
        falls[indptr[first:last] - (lo + 1)] = False  # where a pair begins
        wrong[1:] |= falls
        if wrong.any():
            return lo + int(np.argmax(wrong))
    return -1


def _canonical(matrix: Any, keep: BoolArray, slack: float) -> tuple[IntArray, Array]:
    """Keys row·S + column, ascending, and values of the nonzero entries of the rows to keep."""
    with np.errstate(over="ignore"):  # infinities are found by `check`
        csr = matrix.astype(np.float64, copy=False).tocsr()  # small integers would wrap in sums
        keys = entry_keys(csr.indptr, csr.indices, csr.shape[1])
        if (keys[1:] <= keys[:-1]).any():  # out of order, or given twice
            coo = csr.tocoo()
            coo.sum_duplicates()
            csr = coo.tocsr()
            csr.sort_indices()
            keys = entry_keys(csr.indptr, csr.indices, csr.shape[1])
    data = unsigned(csr.data, slack)
    chosen = np.repeat(keep, np.diff(csr.indptr)) & (data != 0)
    return (keys, data) if chosen.all() else (keys[chosen], data[chosen])


def no_zeros(matrix: Any) -> Any:
    """A sparse matrix without stored zeros."""
    if matrix.data.all():
        return matrix
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    return matrix
