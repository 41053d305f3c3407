"""The ℓ1 row: mass m moved from the worst entries for nature to the top.

Moving mass from an entry with stake u to the top, where u = 0, gains Δ = −u per unit and costs twice the mass in ℓ1 distance; the best order is by
decreasing Δ, which all rows of an action share. So the gain g(m) of a row is concave and piecewise linear, one segment for each entry with ŷ > 0
and Δ > 0, of length ŷ and slope Δ. The table of a row with L segments has the lines 0 … L:

    line p = (C_p, G_p, Δ_p):   C_p mass and G_p gain up to the end of segment p,   C_0 = G_0 = 0.

States that are not listed hold no mass and could only receive it, at the top: they do not matter here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.layout import FLAT


@njit(cache=True, nogil=True, error_model="numpy")
def by_gain(u, lo, hi, entry, delta):  # type: ignore[no-untyped-def]
    """Entries below the top by decreasing Δ into entry (counted from lo), Δ into delta; slopes equal up to rounding become equal."""
    order = np.argsort(u[lo:hi])
    n = 0
    last = 0.0
    for k in range(hi - lo):
        d = -u[lo + order[k]]
        if not d > 0.0:
            break
        if n == 0 or last - d > FLAT:
            last = d
        entry[n] = order[k]
        delta[n] = last
        n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate(y, lo, hi, N, scale, entry, delta, n, table, first, length):  # type: ignore[no-untyped-def]
    """Tables of the N rows of an action, n + 1 lines of room each, from line `first` on; `length` (N,) gets L."""
    K = hi - lo
    for i in range(N):
        row = y[N * lo + i * K : N * lo + (i + 1) * K]
        at = first + i * (n + 1)
        table[at, 0] = 0.0
        table[at, 1] = 0.0
        table[at, 2] = 0.0
        mass = 0.0
        gain = 0.0
        p = at + 1
        for k in range(n):  # a line per entry; empty ones are overwritten by the next
            m = row[entry[k]] * scale[i]
            mass += m
            gain += m * delta[k]
            table[p, 0] = mass
            table[p, 1] = gain
            table[p, 2] = delta[k]
            p += 1 if m > 0.0 else 0
        length[i] = p - at - 1


@njit(cache=True, nogil=True, error_model="numpy")
def best_mass(table, at, length, x, mu, inverse, centre, p):  # type: ignore[no-untyped-def]
    """Maximise x g(m) − μ m − ½ε (m − m⁰)² in one row from segment p on, inverse = 1/ε, centre = m⁰.

    Returns m, g(m), the slope of g where m lies inside a segment and 0 at a kink, and the segment.
    """
    if length == 0:
        return 0.0, 0.0, 0.0, 1
    p = min(max(p, 1), length)
    m = centre + (x * table[at + p, 2] - mu) * inverse
    if m > table[at + p - 1, 0]:
        while m >= table[at + p, 0]:
            if p == length:
                return table[at + p, 0], table[at + p, 1], 0.0, p
            p += 1
            m = centre + (x * table[at + p, 2] - mu) * inverse
            if m <= table[at + p - 1, 0]:
                return table[at + p - 1, 0], table[at + p - 1, 1], 0.0, p
    else:
        while m <= table[at + p - 1, 0]:
            if p == 1:
                return 0.0, 0.0, 0.0, 1
            p -= 1
            m = centre + (x * table[at + p, 2] - mu) * inverse
            if m >= table[at + p, 0]:
                return table[at + p, 0], table[at + p, 1], 0.0, p
    slope = table[at + p, 2]
    return m, table[at + p - 1, 1] + (m - table[at + p - 1, 0]) * slope, slope, p


@njit(cache=True, nogil=True, error_model="numpy")
def surplus(table, at, length, x, mu):  # type: ignore[no-untyped-def]
    """max_m x g(m) − μ m of one row."""
    total = 0.0
    for p in range(at + 1, at + length + 1):
        d = x * table[p, 2] - mu
        if d <= 0.0:
            break
        total += d * (table[p, 0] - table[p - 1, 0])
    return total
