"""Concave gains, and nature's best use of a budget of its own in every kernel: the inner problem of order ∞.

The gain g of a row is concave, increasing and piecewise linear in an amount m, g(0) = 0. The table of a row with L segments has the
lines 0 … L:

    line p = (C_p, G_p, D_p):   amount C_p and gain G_p at the end of segment p, D_p its slope;   C_0 = G_0 = 0.

In kernel i the amounts m_a of the actions share a budget B. `share` solves, for prices x,

    max Σ_a [x_a g_a(m_a) − ½ε (m_a − m⁰_a)²],   m ≥ 0,  Σ_a m_a ≤ B,

by Newton's method on its multiplier μ, and `knapsack` the same with ε = 0, exactly. Both start from a guess of μ and end after a few
steps if that is good.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, LEAN, njit

TRIALS = 20  # of Newton's method for a multiplier, before bisection


class Tables(NamedTuple):
    """Tables of the N rows of some actions; row i of action a begins at line start[a] + i·stride[a]."""

    lines: Array  # (·, 3): C, G, D
    start: Any  # (A,)
    stride: Any  # (A,)
    length: Any  # (A, N), L


class Priced(NamedTuple):
    """What the agent offers: the tables of her n actions, their prices and the budget."""

    tables: Tables
    n: Any  # how many actions
    B: float
    x: Array  # (n,)


def make_tables(A: int, N: int, lines: int) -> Tables:
    """Tables with space for so many lines."""
    return Tables(
        np.empty((lines, 3)), np.empty(A, dtype=np.int64), np.empty(A, dtype=np.int64), np.empty((A, N), dtype=np.int64)
    )


@njit(**LEAN)
def gain_at(tables, a, i, m, p):
    """The gain of an amount.

    reads   tables, a, i, m, p (a guess of its segment)
    returns g(m) of row i of action a
    """
    lines = tables.lines
    at = tables.start[a] + i * tables.stride[a]
    last = tables.length[a, i]
    p = min(max(p, 1), last + 1)
    while p <= last and lines[at + p, 0] <= m:
        p += 1
    while p > 1 and lines[at + p - 1, 0] > m:
        p -= 1
    return lines[at + p - 1, 1] + ((m - lines[at + p - 1, 0]) * lines[at + p, 2] if p <= last else 0.0)


@njit(**INLINE)
def best_amount(lines, at, length, x, mu, inverse, centre, p):
    """Maximise x g(m) − μ m − ½ε (m − m⁰)² in one row.

    reads   lines from at on, length (segments), x, mu, inverse (1/ε), centre (m⁰), p (a guess of the segment)
    returns m, g(m), the slope of g where m lies inside a segment and 0 at a kink, and the segment
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


@njit(**LEAN)
def share(priced, i, mu, eps, centre, m, segment, gain, slope):
    """Share the budget of kernel i.

    reads   priced, i, mu (a guess), eps, centre (A, N)
    fills   m[:, i]; segment[:, i]; gain and slope (n,), the slope 0 at kinks
    returns μ and the number of slopes
    """
    tables, n, B, x = priced
    inverse = 1.0 / eps
    lo = 0.0
    hi = np.inf
    count = 0
    total = 0.0
    for trial in range(100):
        total = 0.0
        count = 0
        for a in range(n):
            at = tables.start[a] + i * tables.stride[a]
            m[a, i], gain[a], slope[a], segment[a, i] = best_amount(
                tables.lines, at, tables.length[a, i], x[a], mu, inverse, centre[a, i], segment[a, i]
            )
            total += m[a, i]
            if slope[a] > 0.0:
                count += 1
        over = total - B
        if abs(over) <= 1e-14 * B + 4e-16 * mu * inverse * count or (mu <= 0.0 and over <= 0.0):
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
            new = _next_kink(priced, i, eps, centre, m, segment, over) + over * eps
        if new <= 0.0 and lo <= 0.0:
            new = 0.0
        if not (new >= lo and new <= hi) or new == mu or trial > TRIALS:
            new = 0.5 * (lo + hi) if hi < np.inf else 2.0 * lo + eps
        mu = new
    if total > B:  # rounding must not gain anything
        for a in range(n):
            m[a, i] *= B / total
            gain[a] *= B / total
    return mu, count


@njit(**INLINE)
def _next_kink(priced, i, eps, centre, m, segment, over):
    """Find where a row leaves its kink, all rows of kernel i being at kinks.

    reads   priced, i, eps, centre (A, N), m (A, N), segment (A, N), over (what is spent beyond the budget)
    returns the nearest such μ in the direction of balance
    """
    tables, n, _, x = priced
    best = np.inf if over > 0.0 else 0.0
    for a in range(n):
        length = tables.length[a, i]
        if length == 0:
            continue
        p = segment[a, i]
        line = tables.start[a] + i * tables.stride[a] + p
        if m[a, i] < tables.lines[line, 0]:  # the kink is the end of the segment before
            line -= 1
            p -= 1
        here = eps * (centre[a, i] - m[a, i])
        if over > 0.0:
            if p > 0:
                best = min(best, x[a] * tables.lines[line, 2] + here)
        elif p < length:
            best = max(best, x[a] * tables.lines[line + 1, 2] + here)
    return best


@njit(**LEAN)
def knapsack(priced, i, mu, segment, end, m):
    """Max Σ_a x_a g_a(m_a), Σ_a m_a ≤ B, for kernel i.

    reads   priced, i, mu (a guess)
    fills   m[:, i]; segment[:, i], a guess before; end (n,): the numbers of segments taken in full
    returns the maximum and μ
    """
    tables, n, B, x = priced
    lines = tables.lines
    total = 0.0
    for a in range(n):
        at = tables.start[a] + i * tables.stride[a]
        p = min(max(segment[a, i] - 1, 0), tables.length[a, i])
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
        end[best] -= 1
        total = 0.0  # anew: what is left of a difference may be rounding alone, above B with nothing left to give
        for a in range(n):
            total += lines[tables.start[a] + i * tables.stride[a] + end[a], 0]
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
        at = tables.start[a] + i * tables.stride[a]
        value += x[a] * lines[at + end[a], 1]
        m[a, i] = lines[at + end[a], 0]
        segment[a, i] = end[a] + 1
    if best >= 0:
        m[best, i] += left
        return value, mu
    for a in range(n):  # actions that are not played take the rest
        more = min(left, lines[tables.start[a] + i * tables.stride[a] + tables.length[a, i], 0] - m[a, i])
        m[a, i] += more
        left -= more
    return value, mu
