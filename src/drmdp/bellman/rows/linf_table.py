"""The ℓ∞ row as a table: its gain g(r) for all r at once, by following the pivot.

In the notation of `drmdp.bellman.rows.linf`, between two events the gain is linear in r. With n entries above the pivot, `open` entries below it
with ŷ > r and `spent` = Σ ŷ over the entries below with ŷ ≤ r, the pivot changes by δ = spent + (open − n) r, and

    g'(r) = Σ_{above} u − Σ_{below, ŷ>r} u + u_pivot (open − n).

For r → 0 the pivot is the highest entry with open − n ≤ 1. As r grows it only moves up. Events are

    r = ŷ of an entry below the pivot:  it has nothing more to lose;
    δ = −min(r, ŷ_pivot):               the pivot has nothing more to lose; it joins those below, and the entry above it becomes the pivot.

There are at most two events for every entry with ŷ > 0, whatever S is, for the first pivot has at most as many entries above it. The table is
that of `drmdp.bellman.piecewise.budget_per_kernel`, the amount being r.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.core.compiled import KERNEL, LEAN
from drmdp.layout.layout import FLAT

BELOW = 1 << 40  # the place of entries that are never above a pivot


@njit(cache=True, nogil=True)
def lines_needed(K, A):  # type: ignore[no-untyped-def]
    """Most lines in the tables of a kernel's rows for A actions with K listed entries in all."""
    return 2 * K + 4 * A


@njit(**KERNEL)
def places(K, entry, place):  # type: ignore[no-untyped-def]
    """Place from the top of each listed entry, where it has one in entry."""
    for j in range(K):
        place[j] = BELOW
    for n in range(entry.size):
        if entry[n] >= 0:
            place[entry[n]] = n


@njit(**KERNEL)
def tabulate(y, u, N, scale, size, entry, level, place, tables, a, first, mass, index):  # type: ignore[no-untyped-def]
    """Tables of N rows as action a, from line `first` on, radii and gains divided by `size`; returns the next line.

    entry and level are those of `top_entries` at r = 0, place that of `places`; work space: mass, index of K + 1 numbers.
    """
    K = u.size
    tables.start[a] = first
    tables.stride[a] = lines_needed(K, 1)
    for i in range(N):
        _tabulate_row(y, u, i, scale, size, entry, level, place, tables, a, mass, index)
    return first + N * lines_needed(K, 1)


@njit(**LEAN)
def _tabulate_row(y, u, i, scale, size, entry, level, place, tables, a, mass, index):  # type: ignore[no-untyped-def]
    """Table of row i."""
    lines, factor, shrink = tables.lines, scale[i], 1.0 / size
    row, line = np.uint64(i * u.size), tables.start[a] + i * tables.stride[a]
    count = 0
    beneath = 0.0  # Σ u over the entries below the pivot with something to lose
    for j in range(np.uint64(u.size)):
        p = y[row + j] * factor
        mass[count] = p
        index[count] = j
        count += 1 if p > 0.0 else 0
        beneath += u[j] if p > 0.0 else 0.0
    rest = count  # how many those are
    _sort(mass, index, count)
    n = 0
    above = 0.0
    while True:
        own = y[row + np.uint64(entry[n])] * factor if entry[n] >= 0 else 0.0
        if own > 0.0:
            rest -= 1
            beneath -= level[n]
        if rest - n <= 1 or n == entry.size - 1:
            break
        above += level[n]
        n += 1
    begin = line
    end = 0.0  # of the last segment
    gain = 0.0
    spent = 0.0
    lines[line, 0], lines[line, 1], lines[line, 2] = 0.0, 0.0, 0.0
    r = 0.0
    k = 0
    slope = above - beneath + level[n] * (rest - n)
    while slope > FLAT:
        excess = n - rest
        after = mass[k] if k < count else 2.0
        if spent + min(after, own) < excess * after:  # the pivot leaves first
            now = spent / (excess - 1) if spent <= own * (excess - 1) else (spent + own) / excess
            now = max(now, r)
            if own > now:
                rest += 1
                beneath += level[n]
            else:
                spent += own
            n -= 1
            above -= level[n]
            own = y[row + np.uint64(entry[n])] * factor if entry[n] >= 0 else 0.0
        elif k < count:
            j = index[k]
            k += 1
            now = max(after, r)
            r = now
            if place[j] <= n:
                continue
            rest -= 1
            spent += after
            beneath -= u[j]
        else:
            break
        r = now
        new = above - beneath + level[n] * (rest - n)
        if new < slope:
            here = now * shrink
            if here > end:
                gain += slope * (here - end)
                end = here
                line += 1
                lines[line, 0], lines[line, 1], lines[line, 2] = end, gain, slope
            slope = new
    tables.length[a, i] = line - begin


@njit(**LEAN)
def _sort(mass, index, n):  # type: ignore[no-untyped-def]
    """By ascending mass: insertion with shrinking gaps."""
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            m, e = mass[i], index[i]
            j = i
            while j >= gap and mass[j - gap] > m:
                mass[j], index[j] = mass[j - gap], index[j - gap]
                j -= gap
            mass[j], index[j] = m, e
        gap //= 3
