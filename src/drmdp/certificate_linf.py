"""The certificate of the exact operators for ℓ∞; see `drmdp.certificate_rows`.

L: the value of rows bent by the radii handed over. U: with a threshold τ_a for each row, whatever it is,

    h_a(r) = τ_a + Σ_t (u − τ_a) ŷ + r Σ_{u>τ_a} (u − τ_a) + Σ_{u<τ_a} (τ_a − u) min(r, ŷ)      bounds the row's value at r,

with equality at the pivot's u. For order ∞, r = θ. For order 1, U = μθ + Σ_i w_i max_r [Σ_a x_a h_ia(r) − μ r], and the value Σ_a x_a V_ia(r) − μ r of the
rows has its maximum where its slope changes sign: between the tangents on both sides of r_i, or of a point found from there. If a pivot changes there,
the thresholds of both sides are optimal and so is what lies between; they are mixed in one proportion for all actions, such that Σ_a x_a h_a' = μ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.arrays import copy, rank
from drmdp.bellman.layout import count_above, places, prologue, row_scales
from drmdp.certificate_sums import EPS, finish
from drmdp.compiled import INLINE, KERNEL, LEAN

NEAR = 1e-12  # relative distance of the points on both sides of a radius
LEAST = 1e-100  # stands for the limit r → 0
TRIALS = 100


@njit(**LEAN)
def _walk_linf(y, u, scale, r, down, place, order, unlisted):  # type: ignore[no-untyped-def]
    """Value of the best row within r of ŷ, and its pivot's u."""
    K = u.size
    n_states = order.u.size if unlisted else K
    supply = 0.0
    total = 0.0
    for j in range(K):
        p = y[j] * scale
        take = min(r, p)
        supply += take
        total += (p - take) * u[j]
    n = 0
    k = 0
    pivot = 0.0
    while k < n_states and supply > 0.0:
        if n < K and place[down[n]] == k:
            j = down[n]
            room = min(r, y[j] * scale) + r
            pivot = u[j]
            take = min(room, supply)
            total += take * u[j]
            supply -= take
            n += 1
            k += 1
            continue
        run = (place[down[n]] if n < K else n_states) - k
        full = min(run, int(supply / r))
        total += r * (order.sum1[k + full] - order.sum1[k])
        k += full
        supply -= full * r
        if full > 0:
            pivot = order.u[k - 1]
        if full < run and supply > 0.0:
            pivot = order.u[k]
            total += supply * pivot
            supply = 0.0
    return total, pivot


@njit(**INLINE)
def _unlisted_above(order, u, tau):  # type: ignore[no-untyped-def]
    """Σ (u − τ)⁺ over the unlisted states."""
    k = count_above(order, 1.0, tau)
    total = order.sum1[k] - k * tau
    for j in range(u.size):
        if u[j] > tau:
            total -= u[j] - tau
    return max(total, 0.0), k


@njit(**LEAN)
def _slope(layout, order, lo, hi, first, u, i, scale, r, tau):  # type: ignore[no-untyped-def]
    """Slopes of h to the right and left of r, entries within `NEAR` of r counting as equal to it."""
    K, N = hi - lo, layout.weights.size
    right = 0.0
    more = 0.0
    if layout.unlisted:
        right = _unlisted_above(order, u[lo - first : hi - first], tau)[0]
    for j in range(K):
        d = u[lo - first + j] - tau
        if d > 0.0:
            right += d
        else:
            p = layout.data[N * lo + i * K + j] * scale
            if p > r * (1.0 + NEAR):
                right -= d
            elif p >= r * (1.0 - NEAR):
                more -= d
    return right, right + more


@njit(**LEAN)
def _tangent(layout, order, s, first, u, x, i, scale, r, down, place, tau):  # type: ignore[no-untyped-def]
    """Σ_a x_a V_ia(r), a slope there, and the pivots."""
    A, N = x.size, layout.weights.size
    total = 0.0
    slope = 0.0
    for a in range(A):
        if x[a] > 0.0:
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            row = layout.data[N * lo + i * (hi - lo) : N * lo + (i + 1) * (hi - lo)]
            own = slice(lo - first, hi - first)
            value, tau[a] = _walk_linf(row, u[own], scale[a, i], r, down[own], place[own], order, layout.unlisted)
            total += x[a] * value
            slope += x[a] * _slope(layout, order, lo, hi, first, u, i, scale[a, i], r, tau[a])[0]
    return total, slope


@njit(**INLINE)
def _thresholds(layout, order, s, first, u, x, i, scale, mu, r, near, down, place, tau, work):  # type: ignore[no-untyped-def]
    """Thresholds at which Σ_a x_a h_ia(r) − μ r has the maximum of the rows' value; r and `near` tell where to begin."""
    A = x.size
    below, above, middle = work[0], work[1], work[2]
    lo, hi = min(max(r - near, LEAST), 1.0), min(r + near, 1.0)
    lo_value, lo_slope = _tangent(layout, order, s, first, u, x, i, scale, lo, down, place, below)
    hi_value, hi_slope = _tangent(layout, order, s, first, u, x, i, scale, hi, down, place, above)
    if lo_slope < mu:
        hi, hi_value, hi_slope = lo, lo_value, lo_slope
        copy(below, above)
        lo = LEAST
        lo_value, lo_slope = _tangent(layout, order, s, first, u, x, i, scale, lo, down, place, below)
    elif hi_slope > mu:
        lo, lo_value, lo_slope = hi, hi_value, hi_slope
        copy(above, below)
        hi = 1.0
        hi_value, hi_slope = _tangent(layout, order, s, first, u, x, i, scale, hi, down, place, above)
    if lo_slope <= mu or hi_slope >= mu:
        copy(below if lo_slope <= mu else above, tau)
        return
    at = hi
    for _ in range(TRIALS):
        at = (hi_value - hi_slope * hi - lo_value + lo_slope * lo) / (lo_slope - hi_slope)
        if not (at > lo and at < hi):
            break
        value, slope = _tangent(layout, order, s, first, u, x, i, scale, at, down, place, middle)
        if value >= lo_value + lo_slope * (at - lo) - 4.0 * EPS:
            break
        if slope > mu:
            lo, lo_value, lo_slope = at, value, slope
            copy(middle, below)
        else:
            hi, hi_value, hi_slope = at, value, slope
            copy(middle, above)
    # mix
    left, left_excess, right, right_excess = 0.0, hi_slope - mu, 1.0, lo_slope - mu
    part = left_excess / (left_excess - right_excess)
    for trial in range(TRIALS):
        low = -mu
        high = -mu
        for a in range(A):
            tau[a] = above[a] + part * (below[a] - above[a])
            if x[a] > 0.0:
                p, q = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
                slopes = _slope(layout, order, p, q, first, u, i, scale[a, i], at, tau[a])
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
def _pieces(layout, order, s, first, u, x, i, scale, tau, ends, drops):  # type: ignore[no-untyped-def]
    """Σ_a x_a h_ia as its value at r = 0, the slope of what never ends, and pieces of slope drops[m] that end at ends[m].

    Returns the first two, the number of pieces, and the number of terms.
    """
    A, N = x.size, layout.weights.size
    value, rise = 0.0, 0.0
    n, terms = 0, 0
    for a in range(A):
        if not x[a] > 0.0:
            continue
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        K = hi - lo
        value += x[a] * tau[a]
        if layout.unlisted:
            above, k = _unlisted_above(order, u[lo - first : hi - first], tau[a])
            rise += x[a] * above
            terms = max(terms, k + K)
        for j in range(K):
            p = layout.data[N * lo + i * K + j] * scale[a, i]
            d = u[lo - first + j] - tau[a]
            value += x[a] * d * p
            if d > 0.0:
                rise += x[a] * d
            elif p > 0.0:
                ends[n] = p
                drops[n] = -x[a] * d
                n += 1
    return value, rise, n, terms


@njit(**INLINE)
def _climb(value, slope, ends, drops, by_end):  # type: ignore[no-untyped-def]
    """Maximum over r ≤ 1 of a concave function that begins at `value` with `slope` and loses the slope drops[m] at ends[m]."""
    at = 0.0
    m = 0
    while slope > 0.0 and at < 1.0:
        end = ends[by_end[m]] if m < ends.size else 1.0
        value += slope * (end - at)
        at = end
        if m < ends.size:
            slope -= drops[by_end[m]]
        m += 1
    return value


@njit(**KERNEL)
def states_linf(start, stop, layout, order, value, top, span, policy, memory, joint, fixed, low, high, share, room):  # type: ignore[no-untyped-def]
    """Fill L, U and the share of nature's move for the states start … stop − 1; joint is None for order ∞, which spares the compiler the rest."""
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, nominal, scale, q, pivots = room.u, room.cost, room.nominal, room.scale, room.q, room.gain
    down, place, by_end = room.places[0], room.places[1], room.places[2]
    tau, work = room.actions[0], room.actions[1:]
    ends, drops, key = room.reals[0], room.reals[1], room.reals[2]
    w = layout.weights
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        first = layout.indptr[s * A]
        theta = layout.radius[s]
        x = policy[s]
        terms = A + N
        for a in range(A):
            terms += layout.indptr[s * A + a + 1] - layout.indptr[s * A + a]
        most = max(theta - (2.0 * terms + 8.0) * EPS, 0.0)
        mean = 0.0
        for i in range(N):
            r = memory.by_kernel[s, i]
            mean += w[i] * (r if r > 0.0 else 0.0)
        for i in range(N):
            r = memory.by_kernel[s, i]
            far = r if joint is None else mean
            share[s, i] = most / far if far > most else 1.0
            if not r > 0.0:
                share[s, i] = 0.0
        free = 0.0
        for a in range(A):
            q[a] = cost[a]
            if not layout.available[s, a]:
                continue
            if x[a] > 0.0:
                free += x[a] * cost[a]
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            K = hi - lo
            ua = u[lo - first : hi - first]
            own = slice(lo - first, hi - first)
            places(order, layout.unlisted, layout.indices[lo:hi], ua, key, place[own], down[own])
            for i in range(N):
                row = layout.data[N * lo + i * K : N * lo + (i + 1) * K]
                r = share[s, i] * memory.by_kernel[s, i] if share[s, i] > 0.0 else 0.0
                got, pivots[a, i] = _walk_linf(row, ua, scale[a, i], r, down[own], place[own], order, layout.unlisted)
                q[a] += w[i] * got
        mu = 0.0
        if joint is not None:
            mu = memory.by_action[s, 0]
            mu = mu if mu >= 0.0 and mu < 1e100 else 0.0
        upper = mu * theta
        size = upper
        for i in range(N):
            if joint is None:
                for a in range(A):
                    tau[a] = pivots[a, i]
            else:
                r = memory.by_kernel[s, i]
                r = r if r >= 0.0 and r <= 1.0 else 1.0
                near = NEAR * min(theta, 1.0)
                _thresholds(layout, order, s, first, u, x, i, scale, mu, r, near, down, place, tau, work)
            worth, rise, n, more = _pieces(layout, order, s, first, u, x, i, scale, tau, ends, drops)
            terms = max(terms, more)
            if joint is None:
                worth += theta * rise
                for m in range(n):
                    worth += drops[m] * min(theta, ends[m])
                upper += w[i] * min(worth, 0.0)
                size += w[i] * (1.0 + theta * (rise + 1.0))
            else:
                slope = rise - mu
                for m in range(n):
                    slope += drops[m]
                rank(ends[:n], by_end, room.places[3])
                upper += w[i] * _climb(worth, slope, ends[:n], drops, by_end)
                size += w[i] * (1.0 + abs(slope + 2.0 * mu))
        if not upper < 0.0:
            upper = 0.0
        if theta == 0.0:
            upper = 0.0
            for a in range(A):
                if x[a] > 0.0:
                    upper += x[a] * nominal[a]
        finish(s, base, unit, q, terms, cost, x, free + upper, 2.0 + free + size, layout, span, fixed, low, high)
