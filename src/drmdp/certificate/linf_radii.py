"""The proof of (ℓ∞, 1): one radius for each kernel; rows and their bounds are those of `drmdp.certificate.linf`.

For order 1, U = μθ + Σ_i w_i max_r [Σ_a x_a h_ia(r) − μ r] over r ≤ min(1, θ/w_i), and the value Σ_a x_a V_ia(r) − μ r of the rows has its maximum
where its slope changes sign: next to r_i or, if not there, between r_i and an end of [0, 1], where tangents from both sides cross. If a pivot changes
there, the thresholds of both sides are optimal and so is what lies between; they are mixed in one proportion for all actions, such that
Σ_a x_a h_a' = μ.

**Rounding.** With g(r) = Σ_a x_a (h_ia(r) − h_ia(0)), the bound is made of max_r g(r) − μ r.

- g consists of a rise, which is a sum over the actions, of drops and of ends, all off by n ε, relatively. So g is at most 1 + n ε times what the
  numbers say, and (1 + n ε) g − μ r ≤ (1 + n ε) [g − (1 − n ε) μ r]: μ is lowered by n ε, relatively, and n ε times the maximum is added. The
  latter alone would not do, as g and μ r may be large where their difference is not.
- Slopes of m pieces are sums that carry along what they lose, off by ε of themselves, which the margin of the maximum pays for, and by up to
  (m + 1)² ε² (Σ drops + rise + μ), which it does not where short pieces of large drops have ended and what is left is as small as that. For m < 10⁸
  this is less than 8 ε (Σ drops + rise + μ), which is added times the largest r.
"""

from __future__ import annotations

import numpy as np

from drmdp.certificate.duals import linf as dual_rows
from drmdp.certificate.linf import Spot, above_of, lower_state, pieces_of, walk
from drmdp.certificate.sums import EPS, add, finish
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.sorting import copy, rank

__all__ = ["dual_rows", "states"]

NEAR = 1e-12  # relative distance of the points on both sides of a radius
LEAST = 1e-100  # stands for the limit r → 0
TRIALS = 100


@njit(**LEAN)
def _slope(spot, a, r, tau, work):
    """Slopes of h_a at r, entries within `NEAR` of r counting as equal to it.

    reads   spot, a, r, tau (of the action), work.u, work.scale
    returns the slope to the right and the one to the left
    """
    layout, view, s, i, _ = spot
    A, N = work.scale.shape
    lo, first, scale = layout.indptr[s * A + a], layout.indptr[s * A], work.scale[a, i]
    K = layout.indptr[s * A + a + 1] - lo
    right = above_of(view, tau) if layout.unlisted else 0.0
    more = 0.0
    for j in range(K):
        d = work.u[lo - first + j] - tau
        if d > 0.0:
            right += 0.0 if layout.unlisted else d
        else:
            p = layout.data[N * lo + i * K + j] * scale
            if p > r * (1.0 + NEAR):
                right -= d
            elif p >= r * (1.0 - NEAR):
                more -= d
    return right, right + more


@njit(**LEAN)
def _tangent(spot, r, work, tau):
    """Value of the played rows of a kernel bent by r, and a slope there.

    reads   spot, r, work.u, work.scale, work.own, work.places (of the entries, as `worth_of` left them)
    fills   tau (A,) of the pivots of played actions
    returns Σ_a x_a V_ia(r) and its slope to the right, as the pivots have it
    """
    layout, view, s, i, x = spot
    A, N = work.scale.shape
    first = layout.indptr[s * A]
    total, slope = 0.0, 0.0
    for a in range(A):
        if x[a] > 0.0:
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            row = layout.data[N * lo + i * (hi - lo) : N * lo + (i + 1) * (hi - lo)]
            own, scale = slice(lo - first, hi - first), work.scale[a, i]
            gain, _, tau[a] = walk(
                row, work.u[own], scale, r, work.places[0, own], work.places[1, own], view, layout.unlisted
            )
            total += x[a] * (work.own[a, i] + gain)
            slope += x[a] * _slope(spot, a, r, tau[a], work)[0]
    return total, slope


@njit(**INLINE)
def thresholds(spot, mu, r, near, work, tau):
    """Find thresholds at which Σ_a x_a h_ia(r) − μ r has the maximum of the rows' value.

    reads   spot, mu, r, near (the search begins on both sides of r, so far away), work (as `worth_of` left it)
    fills   tau (A,), work.actions[1] (thresholds below), work.actions[2] (above), work.actions[3]
    """
    below, above, middle = work.actions[1], work.actions[2], work.actions[3]
    lo, hi = min(max(r - near, LEAST), 1.0), min(r + near, 1.0)
    lo_value, lo_slope = _tangent(spot, lo, work, below)
    hi_value, hi_slope = _tangent(spot, hi, work, above)
    if lo_slope < mu:
        hi, hi_value, hi_slope = lo, lo_value, lo_slope
        copy(below, above)
        lo = LEAST
        lo_value, lo_slope = _tangent(spot, lo, work, below)
    elif hi_slope > mu:
        lo, lo_value, lo_slope = hi, hi_value, hi_slope
        copy(above, below)
        hi = 1.0
        hi_value, hi_slope = _tangent(spot, hi, work, above)
    if lo_slope <= mu or hi_slope >= mu:
        copy(below if lo_slope <= mu else above, tau)
        return
    at = hi
    for _ in range(TRIALS):
        at = (hi_value - hi_slope * hi - lo_value + lo_slope * lo) / (lo_slope - hi_slope)
        if not (at > lo and at < hi):
            break
        value, slope = _tangent(spot, at, work, middle)
        if value >= lo_value + lo_slope * (at - lo) - 4.0 * EPS:
            break
        if slope > mu:
            lo, lo_value, lo_slope = at, value, slope
            copy(middle, below)
        else:
            hi, hi_value, hi_slope = at, value, slope
            copy(middle, above)
    _mix(spot, mu, at, hi_slope - mu, lo_slope - mu, work, tau)


@njit(**LEAN)
def _mix(spot, mu, at, left_excess, right_excess, work, tau):
    """Mix the thresholds above and below in one proportion, such that the slope at `at` is μ.

    reads   spot, mu, at, left_excess, right_excess (slope − μ with those above, below), work.u, work.scale, work.actions[1], work.actions[2]
    fills   tau (A,)
    """
    x = spot.x
    A = x.size
    below, above = work.actions[1], work.actions[2]
    left, right = 0.0, 1.0
    part = left_excess / (left_excess - right_excess)
    for trial in range(TRIALS):
        low = -mu
        high = -mu
        for a in range(A):
            tau[a] = above[a] + part * (below[a] - above[a])
            if x[a] > 0.0:
                slopes = _slope(spot, a, at, tau[a], work)
                low += x[a] * slopes[0]
                high += x[a] * slopes[1]
        if low <= 4.0 * EPS and high >= -4.0 * EPS:
            break
        if low > 0.0:
            right, right_excess = part, low
        else:
            left, left_excess = part, high
        part = 0.5 * (left + right)
        if trial % 2 == 0 and left_excess < 0.0 < right_excess:
            part = left + (right - left) * left_excess / (left_excess - right_excess)


@njit(**INLINE)
def climb(worth, rise, n, mu, far, terms, work):
    """Upper bound on Σ_a x_a h_ia(r) − μ r over r ≤ far.

    reads   worth (at r = 0), rise (slope of what never ends), n (pieces), mu, far, terms (depth of the sums), work.reals[0], work.reals[1]
    fills   work.places[2], work.places[3]
    returns the maximum, its margin included
    """
    ends, drops, by_end = work.reals[0], work.reals[1], work.places[2]
    rank(ends[:n], by_end, work.places[3])
    slope, lost = add(rise, 0.0, -mu * (1.0 - terms * EPS))
    size = rise + mu
    for m in range(n):
        slope, lost = add(slope, lost, drops[m])
        size += drops[m]
    at, gain = 0.0, 0.0
    m = 0
    while slope + lost > 0.0 and at < far:
        end = min(max(ends[by_end[m]], at) if m < n else far, far)
        gain += (slope + lost) * (end - at)
        at = end
        if m < n:
            slope, lost = add(slope, lost, -drops[by_end[m]])
        m += 1
    return worth + gain + EPS * ((terms + m) * (gain - worth) + 8.0 * size * far)


@njit(**KERNEL)
def states(start, stop, layout, view, claim, bounds, work):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal, one radius for each kernel.

    reads   layout, view, claim
    fills   bounds, work
    """
    N = layout.weights.size
    memory, w, tau = claim.memory, layout.weights, work.actions[0]
    for s in range(start, stop):
        base, unit, terms = lower_state(layout, view, s, claim, True, bounds, work)
        if not base < np.inf:
            continue
        theta, x = layout.radius[s], claim.policy[s]
        mu = memory.by_action[s, 0]
        mu = mu if mu > 0.0 and mu < 1e100 else 0.0
        above = mu * theta
        for i in range(N):
            spot = Spot(layout, view, s, i, x)
            r = memory.by_kernel[s, i]
            thresholds(spot, mu, r if r >= 0.0 and r <= 1.0 else 1.0, NEAR * min(theta, 1.0), work, tau)
            worth, rise, n = pieces_of(spot, tau, work)
            bound = climb(worth, rise, n, mu, min(theta / w[i], 1.0), terms, work)
            above += w[i] * bound + (N + 8) * EPS * w[i] * (abs(bound) + mu * theta)
        finish(s, base, unit, above if above < 0.0 else 0.0, layout, view, claim, bounds, work)
