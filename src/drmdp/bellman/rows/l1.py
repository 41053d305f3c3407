"""The ℓ1 row: mass m moved from the worst entries for nature to the top.

Moving mass from an entry with stake u to the top, where u = 0, gains Δ = −u per unit and costs twice the mass in ℓ1 distance; the best
order is by decreasing Δ, which all rows of an action share. So the gain g(m) of a row is concave and piecewise linear, one segment for
each entry with ŷ > 0 and Δ > 0, of length ŷ and slope Δ; see `drmdp.bellman.piecewise.budget_per_kernel` for the tables. States that are not listed hold
no mass and could only receive it, at the top: they do not matter here.
"""

from __future__ import annotations

import numpy as np

from drmdp.core.compiled import KERNEL, LEAN, njit
from drmdp.layout.point import FLAT
from drmdp.layout.sorting import by_ascending, rank


@njit(**LEAN)
def by_gain(u, indices, order, sort):
    """Bring the entries of a pair below the top in the order of decreasing Δ; slopes equal up to rounding become equal.

    reads   u and indices (K,), order
    fills   sort.entry; sort.level: their Δ; and works in the others
    returns their number
    """
    entry, delta = sort.entry, sort.level
    K = u.size
    if not by_ascending(indices, order, sort.ascending, sort.where, entry):
        rank(u, entry, sort.place)
    n = 0
    last = 0.0
    for k in range(K):
        d = -u[entry[k]]
        if not d > 0.0:
            break
        if n == 0 or last - d > FLAT:
            last = d
        delta[n] = last
        n += 1
    return n


@njit(**KERNEL)
def tabulate(pair, size, end, tables, a, first, centre, segment):
    """Tables of the rows of a pair as action a, masses and gains divided by `size`.

    reads   pair (its order that of `by_gain`), size, end (the mass where a table may end), a, first (a free line), centre (N,): masses
    fills   tables; segment (N,): those of the masses
    returns the next free line
    """
    y, entry, delta, n = pair.y, pair.entry, pair.level, pair.length
    lines = tables.lines
    tables.start[a] = first
    tables.stride[a] = n + 1
    for i in range(pair.scale.size):
        row = np.uint64(pair.at + i * pair.K)
        factor = pair.scale[i] / size
        mass = 0.0
        gain = 0.0
        p = np.uint64(first)
        lines[p, 0], lines[p, 1], lines[p, 2] = 0.0, 0.0, 0.0
        p += np.uint64(1)
        here = p
        for k in range(np.uint64(n)):  # a line per entry; empty ones are overwritten by the next
            m = y[row + np.uint64(entry[k])] * factor
            d = delta[k]
            mass += m
            gain += m * d
            lines[p, 0], lines[p, 1], lines[p, 2] = mass, gain, d
            p += np.uint64(m > 0.0)
            here = p if mass <= centre[i] else here
            if mass >= end:
                break
        tables.length[a, i] = np.int64(p) - first - 1
        segment[i] = np.int64(here) - first
        first += n + 1
    return first
