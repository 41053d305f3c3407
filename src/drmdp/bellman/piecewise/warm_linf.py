"""(ℓ∞, 1) with one action: nature's best radii by exchange from those of the last sweep, without tables.

    max Σ_i w_i g_i(r_i),   Σ_i w_i r_i ≤ θ,  r ≥ 0:     r is optimal if  g_i'(r_i+) ≤ μ ≤ g_i'(r_i−)  for every i, and μ = 0 or the budget is spent.

The kinks of g_i depend on ŷ_i and on the order of u alone, so from sweep to sweep few r_i move. Where the slopes do not agree, the row that gains most
takes budget from the one that loses least, until one of them meets a kink; each exchange looks at two rows again. One-sided slopes at r are those
at r ± h, h = NEAR·max(r, θ): kinks closer than that are taken as one.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.rows.linf import row_at
from drmdp.core.compiled import LEAN, njit
from drmdp.layout.point import FLAT

NEAR = 1e-13
EXCHANGES = 200  # and 3 for every kernel: tables are faster where the radii are far off


@njit(**LEAN)
def _to_kink(pair, i, r, side, h):
    """How far it is from r to a kink of row i above (side 1) or below (−1).

    reads   pair, i, r, side, h (where kinks are one)
    returns that distance, or less
    """
    y, entry, factor = pair.y, pair.entry, pair.scale[i]
    K = np.uint64(pair.K)
    y0 = np.uint64(pair.at) + np.uint64(i) * K
    up = side > 0.0
    here = r + side * h
    _, _, n, taken, below = row_at(pair, i, here)
    kink = 2.0 if up else 0.0
    for j in range(K):
        p = y[y0 + j] * factor
        if up:
            kink = p if p > here and p < kink else kink
        else:
            kink = p if p < here and p > kink else kink
    k = below - n  # the pivot takes `taken` + k (r − here)
    if up:
        p = y[y0 + np.uint64(entry[n])] * factor if entry[n] >= 0 else 0.0
        if k < -1.0 and (k * here - taken) / (k + 1.0) <= p:
            kink = min(kink, (k * here - taken) / (k + 1.0))
        elif k < 0.0:
            kink = min(kink, here - (taken + p) / k)
        return max(kink - r, h)
    if k < 1.0:
        kink = max(kink, (taken - k * here) / (1.0 - k))
    return min(max(r - kink, h), r)


@njit(**LEAN)
def exchange(pair, w, theta, tol, r, slopes, gain):
    """Improve nature's radii for one action by exchange, until they are optimal up to tol.

    reads   pair (its order that of `top_entries`), w (N,), theta, tol
    fills   r (N,): in the budget; slopes (2, N), gain (N,)
    returns gain Σ_i w_i g_i(r_i), how much more there may be, and μ
    """
    N = w.size
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
            h = NEAR * max(r[i], theta)
            value, slope, _, _, _ = row_at(pair, i, r[i] + h)
            slopes[1, i] = slope
            gain[i] = max(value - slope * h, 0.0)
            slopes[0, i] = np.inf
            if r[i] > h:
                value, slope, _, _, _ = row_at(pair, i, r[i] - h)
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
        budget = w[moved] * _to_kink(pair, moved, r[moved], 1.0, NEAR * max(r[moved], theta))
        if left > 0.0:
            other = -1
            budget = min(budget, left)
            left -= budget
        else:
            budget = min(budget, w[other] * _to_kink(pair, other, r[other], -1.0, NEAR * max(r[other], theta)))
            r[other] = max(r[other] - budget / w[other], 0.0)
        r[moved] += budget / w[moved]
    total = 0.0
    for i in range(N):
        total += w[i] * gain[i]
    return total, more, mu
