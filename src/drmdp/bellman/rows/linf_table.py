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

from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.point import FLAT

BELOW = 1 << 40  # the place of entries that are never above a pivot


@njit(**KERNEL)
def lines_needed(K, A):
    """How many lines the tables of a kernel's rows may take.

    reads   K (listed entries of all actions), A (actions)
    returns the lines
    """
    return 2 * K + 4 * A


@njit(**KERNEL)
def place_entries(pair, place):
    """Find the place from the top of each listed entry, if the order of the pair has it.

    reads   pair (its order that of `top_entries`)
    fills   place (K,)
    """
    for j in range(pair.K):
        place[j] = BELOW
    for n in range(pair.length):
        if pair.entry[n] >= 0:
            place[pair.entry[n]] = n


@njit(**KERNEL)
def tabulate(pair, size, place, tables, a, first, mass, index):
    """Tables of the rows of a pair as action a, radii and gains divided by `size`.

    reads   pair (its order that of `top_entries` at r = 0), size, place (that of `place_entries`), a, first (a free line)
    fills   tables; mass and index (K + 1,)
    returns the next free line
    """
    stride = lines_needed(pair.K, 1)
    tables.start[a] = first
    tables.stride[a] = stride
    for i in range(pair.scale.size):
        _tabulate_row(pair, i, size, place, tables, a, mass, index)
    return first + pair.scale.size * stride


@njit(**INLINE)
def _losers(pair, i, mass, index):
    """List the entries of row i that have something to lose, by ascending mass.

    reads   pair, i
    fills   mass, index
    returns their number, and Σ u over them
    """
    row, u0, factor = np.uint64(pair.at + i * pair.K), np.uint64(pair.first), pair.scale[i]
    count = 0
    beneath = 0.0
    for j in range(np.uint64(pair.K)):
        p = pair.y[row + j] * factor
        mass[count] = p
        index[count] = j
        count += 1 if p > 0.0 else 0
        beneath += pair.u[u0 + j] if p > 0.0 else 0.0
    _sort(mass, index, count)
    return count, beneath


@njit(**INLINE)
def _probability(pair, i, n):
    """The probability of the entry at place n of the order in row i.

    reads   pair, i, n
    returns it; 0 if the entry is not listed
    """
    row = np.uint64(pair.at + i * pair.K)
    return pair.y[row + np.uint64(pair.entry[n])] * pair.scale[i] if pair.entry[n] >= 0 else 0.0


@njit(**INLINE)
def _first_pivot(pair, i, count, beneath):
    """Find the pivot for r → 0.

    reads   pair, i, count and beneath (those of `_losers`)
    returns its place, its ŷ, Σ u above it, and number and Σ u of the entries below it with something to lose
    """
    below = count
    n = 0
    above = 0.0
    while True:
        p = _probability(pair, i, n)
        if p > 0.0:
            below -= 1
            beneath -= pair.level[n]
        if below - n <= 1 or n == pair.length - 1:
            break
        above += pair.level[n]
        n += 1
    return n, p, above, below, beneath


@njit(**LEAN)
def _tabulate_row(pair, i, size, place, tables, a, mass, index):
    """Table of row i as a row of action a.

    reads   pair, i, size, place, a
    fills   tables; mass, index
    """
    lines, level, shrink = tables.lines, pair.level, 1.0 / size
    line = tables.start[a] + i * tables.stride[a]
    count, beneath = _losers(pair, i, mass, index)
    n, p, above, below, beneath = _first_pivot(pair, i, count, beneath)
    begin = line
    end = 0.0  # of the last segment
    gain = 0.0
    spent = 0.0
    lines[line, 0], lines[line, 1], lines[line, 2] = 0.0, 0.0, 0.0
    r = 0.0
    k = 0
    slope = above - beneath + level[n] * (below - n)
    while slope > FLAT:
        excess = n - below
        after = mass[k] if k < count else 2.0
        if spent + min(after, p) < excess * after:  # the pivot leaves first
            now = spent / (excess - 1) if spent <= p * (excess - 1) else (spent + p) / excess
            now = max(now, r)
            if p > now:
                below += 1
                beneath += level[n]
            else:
                spent += p
            n -= 1
            above -= level[n]
            p = _probability(pair, i, n)
        elif k < count:
            j = index[k]
            k += 1
            now = max(after, r)
            r = now
            if place[j] <= n:
                continue
            below -= 1
            spent += after
            beneath -= pair.u[pair.first + j]
        else:
            break
        r = now
        new = above - beneath + level[n] * (below - n)
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
def _sort(mass, index, n):
    """Sort by ascending mass: insertion with shrinking gaps.

    reads   n
    fills   mass, index
    """
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
