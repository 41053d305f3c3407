"""Pairs of a state that list what any of them does."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray


def shared(indptr: Any, indices: Any, available: BoolArray) -> tuple[IntArray, Any, IntArray]:
    """`indptr` and `indices` where each available pair, of (n, A), lists the next states that some pair of its state does.

    The third says where each entry is in them. Lists ascend, and what is not available lists nothing.
    """
    n, A = available.shape
    state = np.repeat(np.arange(n), np.diff(indptr[::A]))
    keys = state << 32 | indices
    order = np.argsort(keys, kind="stable")  # which merges what ascends
    ranked = keys[order]
    new = np.diff(ranked, prepend=-1) > 0
    union, place = ranked[new], np.empty(keys.size, np.int64)
    place[order] = np.cumsum(new) - 1
    count = np.bincount(union >> 32, minlength=n)
    first = np.repeat(np.cumsum(count) - count, A)  # of each pair, in the union
    lengths = np.where(available, count[:, None], 0).ravel()
    ends = np.concatenate([[0], np.cumsum(lengths)])
    there = union.astype(np.int32)[np.arange(ends[-1]) + np.repeat(first - ends[:-1], lengths)]
    return ends, there, place + np.repeat(ends[:-1] - first, np.diff(indptr))


def moved(indptr: Any, rows: tuple[Any, Any], ends: Any, where: Any) -> tuple[Any, Array]:
    """N rows and mean row of all pairs, as they lie, over longer lists: 0 where a pair did not list a next state."""
    data, mean = rows
    N, short, long = data.size // max(mean.size, 1), np.diff(indptr), np.diff(ends)
    wide, wide_mean = np.zeros(N * int(ends[-1]), data.dtype), np.zeros(int(ends[-1]))
    wide_mean[where] = mean
    source = np.arange(mean.size) + np.repeat((N - 1) * np.asarray(indptr[:-1]), short)
    target = where + np.repeat((N - 1) * ends[:-1], short)
    for i in range(N):
        wide[target + i * np.repeat(long, short)] = data[source + i * np.repeat(short, short)]
    return wide, wide_mean
