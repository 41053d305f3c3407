"""The ℓ1 row: mass m moved from the worst entries for nature to the top.

Moving mass from an entry with stake u to the top, where u = 0, gains Δ = −u per unit and costs twice the mass in ℓ1 distance; the best
order is by decreasing Δ, which all rows of an action share. So the gain g(m) of a row is concave and piecewise linear, one segment for
each entry with ŷ > 0 and Δ > 0, of length ŷ and slope Δ; see `drmdp.bellman.budget_each` for the tables. States that are not listed hold
no mass and could only receive it, at the top: they do not matter here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.layout import FLAT


@njit(cache=True, nogil=True, error_model="numpy")
def by_gain(u, ascending, entry, delta):  # type: ignore[no-untyped-def]
    """Entries below the top by decreasing Δ, and Δ; slopes equal up to rounding become equal. Returns their number.

    `ascending` is that of `ascending_states`.
    """
    order = ascending if ascending.size == u.size else np.argsort(u)
    n = 0
    last = 0.0
    for k in range(u.size):
        d = -u[order[k]]
        if not d > 0.0:
            break
        if n == 0 or last - d > FLAT:
            last = d
        entry[n] = order[k]
        delta[n] = last
        n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate(y, K, N, scale, size, entry, delta, n, tables, a, first):  # type: ignore[no-untyped-def]
    """Tables of N rows of K entries as action a, from line `first` on, masses and gains divided by `size`; returns the next line."""
    lines = tables.lines
    tables.start[a] = first
    tables.stride[a] = n + 1
    for i in range(N):
        row = y[i * K : (i + 1) * K]
        factor = scale[i] / size
        mass = 0.0
        gain = 0.0
        p = first
        lines[p, 0], lines[p, 1], lines[p, 2] = 0.0, 0.0, 0.0
        p += 1
        for k in range(n):  # a line per entry; empty ones are overwritten by the next
            m = row[entry[k]] * factor
            mass += m
            gain += m * delta[k]
            lines[p, 0], lines[p, 1], lines[p, 2] = mass, gain, delta[k]
            p += 1 if m > 0.0 else 0
        tables.length[a, i] = p - first - 1
        first += n + 1
    return first
