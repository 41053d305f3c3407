"""The ℓ1 row: mass m moved from the worst entries for nature to the top.

Moving mass from an entry with stake u to the top, where u = 0, gains Δ = −u per unit and costs twice the mass in ℓ1 distance; the best
order is by decreasing Δ, which all rows of an action share. So the gain g(m) of a row is concave and piecewise linear, one segment for
each entry with ŷ > 0 and Δ > 0, of length ŷ and slope Δ; see `drmdp.bellman.piecewise.budget_per_kernel` for the tables. States that are not listed hold
no mass and could only receive it, at the top: they do not matter here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.rows.linf import by_ascending
from drmdp.core.compiled import KERNEL, LEAN
from drmdp.layout.layout import FLAT
from drmdp.layout.sorting import rank


@njit(**LEAN)
def by_gain(u, indices, order, ascending, where, spare, entry, delta):  # type: ignore[no-untyped-def]
    """Entries below the top by decreasing Δ, and Δ; slopes equal up to rounding become equal. Returns their number.

    u and indices are those of the pair; `ascending` is that of `ascending_states`; `where`, (S,), holds −1; `spare`, (K,), is work space.
    """
    K = u.size
    if not by_ascending(indices, order, ascending, where, entry):
        rank(u, entry, spare)
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
def tabulate(y, at, K, N, scale, size, most, entry, delta, n, tables, a, first, centre, segment):  # type: ignore[no-untyped-def]
    """Tables of N rows of K entries from y[at] on as action a, from line `first` on; returns the next line.

    Masses and gains are divided by `size`; a table ends where its mass reaches `most`. Fills segment (N,) with those of the masses centre (N,).
    """
    lines = tables.lines
    tables.start[a] = first
    tables.stride[a] = n + 1
    for i in range(N):
        row = np.uint64(at + i * K)
        factor = scale[i] / size
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
            if mass >= most:
                break
        tables.length[a, i] = np.int64(p) - first - 1
        segment[i] = np.int64(here) - first
        first += n + 1
    return first
