"""(ℓ∞, 1) with one action: nature's best radii by exchange from those of the last sweep, without tables.

    max Σ_i w_i g_i(r_i),   Σ_i w_i r_i ≤ θ,  r ≥ 0:     r is optimal if  g_i'(r_i+) ≤ μ ≤ g_i'(r_i−)  for every i, and μ = 0 or the budget is spent.

The kinks of g_i depend on ŷ_i and on the order of u alone, so from sweep to sweep few r_i move. Where the slopes do not agree, the row that gains most
takes budget from the one that loses least, until one of them meets a kink; each exchange looks at two rows again. One-sided slopes at r are those
at r ± h, h = NEAR·max(r, θ): kinks closer than that are taken as one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.rows.linf import row_at
from drmdp.core.compiled import LEAN
from drmdp.layout.layout import FLAT

NEAR = 1e-13
EXCHANGES = 200  # and 3 for every kernel: tables are faster where the radii are far off


@njit(**LEAN)
def _room(y, y0, K, u, u0, factor, r, side, h, entry, level, length):  # type: ignore[no-untyped-def]
    """How far it is from r to a kink above (side 1) or below (−1), or to less than that."""
    up = side > 0.0
    here = r + side * h
    _, _, n, taken, rest = row_at(y, y0, K, u, u0, factor, here, entry, level, length)
    kink = 2.0 if up else 0.0
    for j in range(K):
        p = y[y0 + j] * factor
        if up:
            kink = p if p > here and p < kink else kink
        else:
            kink = p if p < here and p > kink else kink
    k = rest - n  # the pivot takes `taken` + k (r − here)
    if up:
        own = y[y0 + np.uint64(entry[n])] * factor if entry[n] >= 0 else 0.0
        if k < -1.0 and (k * here - taken) / (k + 1.0) <= own:
            kink = min(kink, (k * here - taken) / (k + 1.0))
        elif k < 0.0:
            kink = min(kink, here - (taken + own) / k)
        return max(kink - r, h)
    if k < 1.0:
        kink = max(kink, (taken - k * here) / (1.0 - k))
    return min(max(r - kink, h), r)


@njit(**LEAN)
def exchange(y, at, K, u, first, scale, w, theta, tol, r, entry, level, length, slopes, gain):  # type: ignore[no-untyped-def]
    """Improve r (N,), in the budget, until it is optimal up to tol; returns Σ_i w_i g_i(r_i), how much more there may be, and μ.

    The rows of the pair begin at y[at], its u at u[first]. Work space: slopes (2, N), gain (N,).
    """
    N = w.size
    u0 = np.uint64(first)
    size = np.uint64(K)
    left = theta
    moved, other = -1, -1
    for i in range(N):
        left -= w[i] * r[i]
    steps = -1
    while True:
        steps += 1
        for k in range(N if steps == 0 else 2):
            i = k if steps == 0 else (moved if k == 0 else other)
            if i < 0:
                continue
            y0 = np.uint64(at) + np.uint64(i) * size
            h = NEAR * max(r[i], theta)
            value, slope, _, _, _ = row_at(y, y0, size, u, u0, scale[i], r[i] + h, entry, level, length)
            slopes[1, i] = slope
            gain[i] = max(value - slope * h, 0.0)
            slopes[0, i] = np.inf
            if r[i] > h:
                value, slope, _, _, _ = row_at(y, y0, size, u, u0, scale[i], r[i] - h, entry, level, length)
                slopes[0, i] = slope
        moved, other = 0, -1
        for i in range(1, N):
            moved = i if slopes[1, i] > slopes[1, moved] else moved
        mu = max(slopes[1, moved], 0.0)
        more = mu * max(left, 0.0)
        for i in range(N):
            if r[i] > 0.0 and (other < 0 or slopes[0, i] < slopes[0, other]):
                other = i
        if other >= 0 and slopes[0, other] < mu:
            more += (mu - slopes[0, other]) * theta
        if more <= FLAT * theta + 0.1 * tol or steps > EXCHANGES + 3 * N:
            break
        y0 = np.uint64(at) + np.uint64(moved) * size
        h = NEAR * max(r[moved], theta)
        budget = w[moved] * _room(y, y0, size, u, u0, scale[moved], r[moved], 1.0, h, entry, level, length)
        if left > 0.0:
            other = -1
            budget = min(budget, left)
            left -= budget
        else:
            y0 = np.uint64(at) + np.uint64(other) * size
            h = NEAR * max(r[other], theta)
            room = w[other] * _room(y, y0, size, u, u0, scale[other], r[other], -1.0, h, entry, level, length)
            budget = min(budget, room)
            r[other] = max(r[other] - budget / w[other], 0.0)
        r[moved] += budget / w[moved]
    total = 0.0
    for i in range(N):
        total += w[i] * gain[i]
    return total, more, mu
