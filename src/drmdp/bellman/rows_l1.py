"""The ℓ1 row: mass m moved from the worst entries for nature to the top.

Moving mass from an entry with stake u to the top, where u = 0, gains Δ = −u per unit and costs twice the mass in ℓ1 distance; the best
order is by decreasing Δ, which all rows of an action share. So the gain g(m) of a row is concave and piecewise linear, one segment for
each entry with ŷ > 0 and Δ > 0, of length ŷ and slope Δ. The table of a row with L segments has the lines 0 … L:

    line p = (C_p, G_p, Δ_p):   C_p mass and G_p gain up to the end of segment p,   C_0 = G_0 = 0.

States that are not listed hold no mass and could only receive it, at the top: they do not matter here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman.layout import FLAT

REGULA = 20  # trials of Newton's method for a budget before bisection


class Tables(NamedTuple):
    """Tables of the N rows of some actions; row i of action a begins at line start[a] + i·stride[a]."""

    lines: Array  # (·, 3): C, G, Δ
    start: Any  # (A,)
    stride: Any  # (A,)
    length: Any  # (A, N), L


@njit(cache=True, nogil=True, error_model="numpy")
def by_gain(u, entry, delta):  # type: ignore[no-untyped-def]
    """Entries below the top by decreasing Δ, and Δ; slopes equal up to rounding become equal. Returns their number."""
    order = np.argsort(u)
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


@njit(cache=True, nogil=True, error_model="numpy")
def best_mass(lines, at, length, x, mu, inverse, centre, p):  # type: ignore[no-untyped-def]
    """Maximise x g(m) − μ m − ½ε (m − m⁰)² in one row from segment p on, inverse = 1/ε, centre = m⁰.

    Returns m, g(m), the slope of g where m lies inside a segment and 0 at a kink, and the segment.
    """
    if length == 0:
        return 0.0, 0.0, 0.0, 1
    p = min(max(p, 1), length)
    m = centre + (x * lines[at + p, 2] - mu) * inverse
    if m > lines[at + p - 1, 0]:
        while m >= lines[at + p, 0]:
            if p == length:
                return lines[at + p, 0], lines[at + p, 1], 0.0, p
            p += 1
            m = centre + (x * lines[at + p, 2] - mu) * inverse
            if m <= lines[at + p - 1, 0]:
                return lines[at + p - 1, 0], lines[at + p - 1, 1], 0.0, p
    else:
        while m <= lines[at + p - 1, 0]:
            if p == 1:
                return 0.0, 0.0, 0.0, 1
            p -= 1
            m = centre + (x * lines[at + p, 2] - mu) * inverse
            if m >= lines[at + p, 0]:
                return lines[at + p, 0], lines[at + p, 1], 0.0, p
    slope = lines[at + p, 2]
    return m, lines[at + p - 1, 1] + (m - lines[at + p - 1, 0]) * slope, slope, p


@njit(cache=True, nogil=True, error_model="numpy")
def gain_at(lines, at, length, m):  # type: ignore[no-untyped-def]
    """g(m)."""
    p = 0
    while p < length and lines[at + p + 1, 0] <= m:
        p += 1
    return lines[at + p, 1] + ((m - lines[at + p, 0]) * lines[at + p + 1, 2] if p < length else 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def share_budget(tables, n, i, B, x, mu, eps, centre, m, segment, gain, slope):  # type: ignore[no-untyped-def]
    """Kernel i's masses: max Σ_a x_a g_a(m_a) − ½ε Σ_a (m_a − m⁰_a)², Σ_a m_a ≤ B, from a guess of the multiplier μ.

    Fills m[:, i], gain and slope (n,), the slope 0 at kinks; returns μ, the number of slopes, and the trials.
    """
    lines = tables.lines
    inverse = 1.0 / eps
    lo = 0.0
    hi = np.inf
    count = 0
    total = 0.0
    trials = 0
    while True:
        trials += 1
        total = 0.0
        count = 0
        for a in range(n):
            at = tables.start[a] + i * tables.stride[a]
            m[a, i], gain[a], slope[a], segment[a, i] = best_mass(
                lines, at, tables.length[a, i], x[a], mu, inverse, centre[a, i], segment[a, i]
            )
            total += m[a, i]
            if slope[a] > 0.0:
                count += 1
        over = total - B
        if abs(over) <= 1e-14 * B + 4e-16 * mu * inverse * count or (mu <= 0.0 and over <= 0.0) or trials == 100:
            break
        if over > 0.0:
            lo = mu
        else:
            hi = mu
        if hi < np.inf and hi - lo <= 2e-16 * hi:
            break
        if count > 0:
            new = mu + over * eps / count
        else:
            new = _next_kink(tables, n, i, x, eps, centre, m, segment, over) + over * eps
        if new <= 0.0 and lo <= 0.0:
            new = 0.0
        if not (new >= lo and new <= hi) or new == mu or trials > REGULA:
            new = 0.5 * (lo + hi) if hi < np.inf else 2.0 * lo + eps
        mu = new
    if total > B:  # rounding must not gain anything
        share = B / total
        for a in range(n):
            m[a, i] *= share
            gain[a] *= share
    return mu, count, trials


@njit(cache=True, nogil=True, error_model="numpy")
def _next_kink(tables, n, i, x, eps, centre, m, segment, over):  # type: ignore[no-untyped-def]
    """All rows of kernel i being at kinks: the μ nearest in the direction of balance at which one leaves its own."""
    best = np.inf if over > 0.0 else 0.0
    for a in range(n):
        length = tables.length[a, i]
        if length == 0:
            continue
        line = tables.start[a] + i * tables.stride[a] + segment[a, i]
        p = segment[a, i]
        if m[a, i] < tables.lines[line, 0]:
            line -= 1  # the kink is the end of the segment before
            p -= 1
        here = eps * (centre[a, i] - m[a, i])
        if over > 0.0:
            if p > 0:
                best = min(best, x[a] * tables.lines[line, 2] + here)
        elif p < length:
            best = max(best, x[a] * tables.lines[line + 1, 2] + here)
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def knapsack(tables, n, i, B, x, mu, end):  # type: ignore[no-untyped-def]
    """Max Σ_a x_a g_a(m_a), Σ_a m_a ≤ B, for kernel i from a guess of μ; returns it, μ, the budget left and its taker.

    Fills end (n,) with the numbers of segments taken in full; the taker, −1 if there is none, takes what is left.
    """
    lines = tables.lines
    total = 0.0
    for a in range(n):
        at = tables.start[a] + i * tables.stride[a]
        p = min(max(end[a], 0), tables.length[a, i])
        while p > 0 and x[a] * lines[at + p, 2] <= mu:
            p -= 1
        while p < tables.length[a, i] and x[a] * lines[at + p + 1, 2] > mu:
            p += 1
        end[a] = p
        total += lines[at + p, 0]
    while total > B:  # give back, the least slope first
        best = -1
        for a in range(n):
            if end[a] > 0:
                d = x[a] * lines[tables.start[a] + i * tables.stride[a] + end[a], 2]
                if best < 0 or d < mu:
                    mu = d
                    best = a
        at = tables.start[best] + i * tables.stride[best] + end[best]
        end[best] -= 1
        total -= lines[at, 0] - lines[at - 1, 0]
    while True:  # take more, the largest slope first
        best = -1
        mu = 0.0
        for a in range(n):
            if end[a] < tables.length[a, i]:
                d = x[a] * lines[tables.start[a] + i * tables.stride[a] + end[a] + 1, 2]
                if d > mu:
                    mu = d
                    best = a
        if best < 0:
            break
        at = tables.start[best] + i * tables.stride[best] + end[best]
        length = lines[at + 1, 0] - lines[at, 0]
        if total + length >= B:
            break
        total += length
        end[best] += 1
    left = max(B - total, 0.0)
    value = mu * left
    for a in range(n):
        value += x[a] * lines[tables.start[a] + i * tables.stride[a] + end[a], 1]
    return value, mu, left, best
