"""Proximal maps of the ℓ∞ balls: each kernel moves by at most θ (order ∞), or by r_i with Σ_i w_i r_i ≤ θ (order 1).

Within the radius r the projection of a row z = ŷ + d is e = y − ŷ = clip(d − α, −min(r, ŷ), r), with α such that
Σ e = 0. For order ∞, r = θ and that is all. For order 1 let U be the entries at r, L those at −r with ŷ > r, and I those
inside their bounds. The squared distance of kernel i, halved, is convex in r_i and falls at the rate

    Λ_i(r_i) = Σ_a [Σ_U (d − α − r) + Σ_L (α − d − r)],
    dΛ/dr = −Σ_a [n_U + n_L + (n_U − n_L)²/n_I],      dα/dr = (n_U − n_L)/n_I      while these sets stay.

The r_i of the projection have Λ_i(r_i) = μ w_i and Σ_i w_i r_i = θ; see `drmdp.prox.linf_radii`. Λ_i jumps down at each ŷ of an
entry at its lower bound, and where a row has no entry inside its bounds. Where Λ_i = 0 the kernel moves freely.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.layout.layout import FAST, row_scales
from drmdp.prox.displacement import LARGE, ROUNDING, Family, displace, largest, make_work, reset, restore, smallest

PASSES = 200


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def row_sums(d, p, scale, r, alpha):  # type: ignore[no-untyped-def]
    """Σ e, n_I, n_U, n_L and the row's part of Λ."""
    total = 0.0
    inside = 0.0
    upper = 0.0
    lower = 0.0
    pull = 0.0
    for j in range(d.size):
        own = scale * p[j]
        e = d[j] - alpha
        least = own if own < r else r
        over = e - r
        under = -least - e
        on_top = over > 0.0
        below = under > 0.0
        upper += 1.0 if on_top else 0.0
        lower += 1.0 if below & (own > r) else 0.0
        inside += 0.0 if on_top | below else 1.0
        pull += over if on_top else 0.0
        pull += under if below & (own > r) else 0.0
        e = r if on_top else e
        total += -least if below else e
    return total, inside, upper, lower, pull


@njit(cache=True, nogil=True, error_model="numpy")
def next_break(d, p, scale, r, alpha, up):  # type: ignore[no-untyped-def]
    """The next α, above or below, at which an entry leaves its bound on the way to the other; all are at bounds."""
    best = np.inf if up else -np.inf
    for j in range(d.size):
        least = min(scale * p[j], r)
        if up and d[j] - r > alpha:
            best = min(best, d[j] - r)
        if not up and d[j] + least < alpha:
            best = max(best, d[j] + least)
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def solve_row(d, p, scale, r, alpha):  # type: ignore[no-untyped-def]
    """α from a guess, and what it lacks; Λ, −dΛ/dr and dα/dr."""
    low, high = -np.inf, np.inf
    for turn in range(PASSES):
        if abs(alpha) < LARGE:
            rest, inside, upper, lower, pull = row_sums(d, p, scale, r, alpha)
        else:
            rest, inside, upper, lower, pull = row_sums(d - alpha, p, scale, r, 0.0)
        if abs(rest) <= ROUNDING * (d.size * min(1.0, r) + inside * abs(alpha)):
            break
        if rest > 0.0:
            low = alpha
        else:
            high = alpha
        new = alpha + rest / inside if inside > 0.0 else next_break(d, p, scale, r, alpha, rest > 0.0) + rest
        if not (new > low and new < high) or turn % 8 == 7:
            low, high = max(low, smallest(d)), min(high, largest(d))
            new = 0.5 * (low + high)
            if new == alpha or turn == PASSES - 1:
                break
        alpha = new
    odd = upper - lower
    if inside == 0.0:
        return alpha, 0.0, pull, upper + lower if odd == 0.0 else np.inf, 0.0
    change = rest / inside
    return alpha, change, pull - change * odd, upper + lower + odd * odd / inside, odd / inside


@njit(cache=True, nogil=True, error_model="numpy")
def _move(d, p, scale, r, alpha, shift):  # type: ignore[no-untyped-def]
    """Turn d into e."""
    for j in range(d.size):
        own = scale * p[j]
        least = own if own < r else r
        e = (d[j] - alpha) - shift
        e = e if e < r else r
        d[j] = e if e > -least else -least


@njit(cache=True, nogil=True, error_model="numpy")
def write(layout, s, y, i, r, threshold, work):  # type: ignore[no-untyped-def]
    """Rows of kernel i within the radius r."""
    N, A = layout.weights.size, layout.available.shape[1]
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        if work.still[a]:
            continue
        e = N * lo + i * (hi - lo)
        row, p = y[e : e + hi - lo], layout.data[e : e + hi - lo]
        _move(row, p, work.scale[a, i], r, threshold[s * A + a, i], work.shift[a, i])
        restore(row, p, work.scale[a, i], 1.0)
        threshold[s * A + a, i] += work.shift[a, i]


@njit(cache=True, nogil=True, error_model="numpy")
def boxes(start, stop, layout, y, step, value, accuracy, memory, each, inside):  # type: ignore[no-untyped-def]
    """Order ∞: project in place the rows y + w_i·step[s, a]·(c + λ v) of the states start … stop − 1; nothing is tried."""
    N, A = layout.weights.size, layout.available.shape[1]
    work = make_work(layout)
    for s in range(start, stop):
        theta = layout.radius[s]
        row_scales(layout, s, work.scale)
        if theta == 0.0:
            reset(layout, s, y, work)
            continue
        displace(layout, s, y, step, value, memory, work, inside)
        for i in range(N):
            for a in range(A):
                lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
                if not work.still[a]:
                    e = N * lo + i * (hi - lo)
                    memory.threshold[s * A + a, i], work.shift[a, i] = solve_row(
                        y[e : e + hi - lo],
                        layout.data[e : e + hi - lo],
                        work.scale[a, i],
                        theta,
                        memory.threshold[s * A + a, i],
                    )[:2]
            write(layout, s, y, i, theta, memory.threshold, work)


EACH = Family(boxes, each=True)
"""A budget for each kernel."""
