"""What sorts, counts and copies; NumPy's own bring messages and all dtypes with them, and take long to compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout
    from drmdp.layout.point import Point

SHORT = 20  # pieces up to this length are sorted by insertion


class SortSpace(NamedTuple):
    """Work space for the order of up to K entries."""

    key: Array  # (K,)
    where: Any  # (S,) over all states, holds −1; empty unless unlisted states matter
    entry: Any  # (K + 1,)
    level: Array  # (K + 1,)
    stack: Any  # (K + 2,)
    place: Any  # (K,)
    ascending: Any  # see `ascending_states`


def sort_space(layout: Layout, point: Point, start: int, stop: int, K: int) -> SortSpace:
    """Work space for K entries of any state in start … stop − 1."""
    whole: Any = np.int64
    return SortSpace(
        np.empty(K), np.full(point.order.rank.size, -1), np.empty(K + 1, whole), np.empty(K + 1),
        np.empty(K + 2, whole), np.empty(K, whole), ascending_states(layout, point.value, start, stop),
    )  # fmt: skip


def ascending_states(layout: Layout, value: Array, start: int, stop: int) -> Any:
    """States by ascending v if that is the order of u of some pair of the range, else nothing.

    It is for a pair that lists every state with costs that do not depend on the next one; no such pair is sorted again.
    """
    A = layout.available.shape[1]
    same = layout.next_costs.size == 0 and not layout.unlisted
    if same and (np.diff(layout.indptr[start * A : stop * A + 1]) == value.size).any():
        return np.argsort(value, kind="stable")
    return np.zeros(0, dtype=np.int64)


@njit(**LEAN)
def copy(source, target):
    """Copy an array of one or two dimensions; compiled in no time, unlike a slice assignment with its messages.

    reads   source
    fills   target
    """
    for k in range(target.shape[0]):
        if target.ndim == 1:
            target[k] = source[k]
        else:
            for j in range(target.shape[1]):
                target[k, j] = source[k, j]


@njit(**LEAN)
def copy_some(source, target, which):
    """Copy some rows of an array (A, N).

    reads   source, which (A,): positive where a row is copied
    fills   target
    """
    for a in range(which.size):
        if which[a] > 0.0:
            for i in range(target.shape[1]):
                target[a, i] = source[a, i]


@njit(**LEAN)
def rank(keys, order, spare):
    """Sort by merging. Compiled in a fifth of the time of NumPy's, and faster up to fifty keys.

    reads   keys
    fills   order: positions of the keys, ascending; spare. Both are at least as long as keys
    """
    n = keys.size
    here, there = order, spare
    for k in range(n):
        here[k] = k
    width = 1
    swaps = 0
    while width < n:
        lo = 0
        while lo < n:
            mid, hi = min(lo + width, n), min(lo + 2 * width, n)
            left, right = lo, mid
            for k in range(lo, hi):
                if right >= hi or (left < mid and keys[here[left]] <= keys[here[right]]):
                    there[k] = here[left]
                    left += 1
                else:
                    there[k] = here[right]
                    right += 1
            lo = hi
        here, there = there, here
        swaps += 1
        width *= 2
    if swaps % 2 == 1:
        for k in range(n):
            order[k] = spare[k]


@njit(**KERNEL)
def sort_ahead(key, entry, stack, done):
    """Continue an incremental quicksort of (key, entry) by ascending key; the first m of K come in O(K + m log m).

    stack[1 … stack[0]] holds the ends of pieces, the innermost last: what is left of an end is nowhere larger than what is right of it.
    To begin, stack[0] = 1 and stack[1] = K, with space for K + 1 numbers.

    reads   done: how many are in place
    fills   key, entry, stack
    returns how many are in place now, always more
    """
    depth = stack[0]
    end = stack[depth]
    while end - done > SHORT:
        pivot = key[(done + end - 1) // 2]
        i, j = done - 1, end
        while True:
            i += 1
            while key[i] < pivot:
                i += 1
            j -= 1
            while key[j] > pivot:
                j -= 1
            if i >= j:
                break
            key[i], key[j] = key[j], key[i]
            entry[i], entry[j] = entry[j], entry[i]
        end = j + 1
        depth += 1
        stack[depth] = end
    for i in range(done + 1, end):
        k, e = key[i], entry[i]
        j = i
        while j > done and key[j - 1] > k:
            key[j], entry[j] = key[j - 1], entry[j - 1]
            j -= 1
        key[j], entry[j] = k, e
    stack[0] = depth - 1
    return end


@njit(**LEAN)
def by_ascending(indices, order, ascending, where, entry):
    """Read the order of a pair's entries off the order of all states: for pairs that list all states, or a quarter of them.

    reads   indices (K,), order, ascending (that of `ascending_states`), where (S,), which holds −1 before and after
    fills   entry (K,): the entries by ascending u
    returns whether it can
    """
    K, S = indices.size, order.states.size
    if ascending.size == K:
        for k in range(K):
            entry[k] = ascending[k]
        return True
    if S == 0 or S > 4 * K:
        return False
    for j in range(K):
        where[indices[j]] = j
    k = 0
    for m in range(S - 1, -1, -1):
        j = where[order.states[m]]
        if j >= 0:
            where[order.states[m]] = -1
            entry[k] = j
            k += 1
    return True


@njit(**INLINE)
def count_above(order, t, tau):
    """Count the states with t u > τ, galloping from where the part of τ/t begins.

    reads   order, t, tau
    fills   order.beyond, if there may be more of them below the top that is in order
    returns #{t u > τ}
    """
    u = order.u
    n = u.size
    part = -n * tau / t
    lo = np.int64(order.below[np.int64(part)]) if part >= 0.0 and part < n else 0
    hi = lo
    step = 1
    if lo < n and t * u[lo] > tau:
        while hi < n and t * u[hi] > tau:
            lo = hi + 1
            hi += step
            step *= 2
        hi = min(hi, n)
    else:
        while lo > 0 and not t * u[lo - 1] > tau:
            hi = lo - 1
            lo -= step
            step *= 2
        lo = max(lo, 0)
    while lo < hi:
        mid = (lo + hi) // 2
        if t * u[mid] > tau:
            lo = mid + 1
        else:
            hi = mid
    if lo == n and n < order.rank.size:
        order.beyond[0] = 1
    return lo


@njit(**INLINE)
def places(order, unlisted, listed, u, key, place, down):
    """Find the place of each listed state among all by descending u.

    reads   order, unlisted, listed (K,) states, u (K,)
    fills   place (K,); down (K,): the listed states in that order; key
    """
    for j in range(u.size):
        key[j] = order.rank[listed[j]] if unlisted else -u[j]
    rank(key[: u.size], down, place)
    for n in range(u.size):
        place[down[n]] = key[down[n]] if unlisted else n
