"""Pairs of a state that list what any of them does."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.compiled import INLINE, KERNEL, njit


def shared(indptr: Any, indices: Any, available: BoolArray) -> tuple[IntArray, Any]:
    """`indptr` and `indices` where each available pair, of (n, A), lists the next states that some pair of its state does."""
    A = available.shape[1]
    longest = int(np.diff(indptr[::A]).max(initial=0))
    listed, spare = (_fixed(indptr), _fixed(indices), _fixed(available)), np.empty((2, longest), np.int32)
    ends = np.zeros(indptr.size, np.int64)
    _unite(*listed, ends, np.empty(0, np.int32), spare)
    there = np.empty(ends[-1], np.int32)
    _unite(*listed, ends, there, spare)
    return ends, there


def moved(indptr: Any, indices: Any, rows: tuple[Any, Any], ends: Any, there: Any) -> tuple[Any, Array]:
    """N rows and mean row of all pairs, as they lie, over longer lists: 0 where a pair did not list a next state."""
    data, mean = rows
    N = data.size // indices.size if indices.size else 1
    wide, wide_mean = np.zeros(N * there.size, data.dtype), np.zeros(there.size)
    _move(_fixed(indptr), _fixed(indices), _fixed(data), _fixed(mean), ends, there, wide, wide_mean)
    return wide, wide_mean


def _fixed(array: Any) -> Any:
    """A plain view to read from, so that a kernel is compiled once."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view


@njit(**KERNEL)
def _unite(indptr, indices, available, ends, there, spare):
    """List the union over the pairs of a state for each of them.

    reads   indptr, indices, available (n, A)
    fills   ends (n·A + 1,), there: unless it is empty, spare (2, entries of a state)
    """
    n, A = available.shape
    for s in range(n):
        K, side = np.int64(0), np.int64(0)
        for pair in range(s * A, s * A + A):
            K = _merge(indices, indptr[pair], indptr[pair + 1], spare[side], K, spare[1 - side])
            side = 1 - side
        for a in range(A):
            at = ends[s * A + a]
            if available[s, a] and there.size > 0:
                for j in range(K):
                    there[at + j] = spare[side, j]
            ends[s * A + a + 1] = at + (K if available[s, a] else 0)


@njit(**INLINE)
def _merge(indices, lo, hi, listed, K, joined):
    """Merge two ascending lists.

    reads   indices from lo to hi, listed (its first K)
    fills   joined
    returns how many there are
    """
    j, n = np.int64(0), np.int64(0)
    while lo < hi or j < K:
        if j == K or (lo < hi and indices[lo] < listed[j]):
            joined[n] = indices[lo]
            lo += 1
        else:
            if lo < hi and indices[lo] == listed[j]:
                lo += 1
            joined[n] = listed[j]
            j += 1
        n += 1
    return n


@njit(**KERNEL)
def _move(indptr, indices, data, mean, ends, there, wide, wide_mean):
    """Copy rows to where their next states are in longer lists.

    reads   indptr, indices, data, mean, ends, there
    fills   wide, wide_mean: 0 before
    """
    N = wide.size // max(there.size, 1)
    for pair in range(indptr.size - 1):
        lo, hi, first, last = indptr[pair], indptr[pair + 1], ends[pair], ends[pair + 1]
        q = first
        for e in range(lo, hi):
            while there[q] < indices[e]:
                q += 1
            wide_mean[q] = mean[e]
            for i in range(N):
                wide[N * first + i * (last - first) + q - first] = data[N * lo + i * (hi - lo) + e - lo]
