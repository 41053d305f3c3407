"""The certificate of the exact operators for ℓ∞; see `drmdp.certificate.compressed`.

L: the value of rows bent by the radii handed over. U: with a threshold τ_a for each row, whatever it is,

    h_a(r) = ŷ·u + r Σ_{u>τ_a} (u − τ_a) + Σ_{u<τ_a} (τ_a − u) min(r, ŷ)      bounds the row's value at r,

with equality at the pivot's u. For order ∞, r = θ. For order 1, U = μθ + Σ_i w_i max_r [Σ_a x_a h_ia(r) − μ r] over r ≤ min(1, θ/w_i), and the value
Σ_a x_a V_ia(r) − μ r of the rows has its maximum where its slope changes sign: between the tangents on both sides of r_i, or of a point found from
there. If a pivot changes there, the thresholds of both sides are optimal and so is what lies between; they are mixed in one proportion for all
actions, such that Σ_a x_a h_a' = μ.

**Rounding.** A walk takes min(r, ŷ) from every entry and hands it out from the top, r to each and to the last what is left. What arrives is what was
taken up to (n + steps) ε/2, relatively; so after division by that no entry has changed by more than r (1 + (n + steps) ε), which the radius makes
room for, and the gain is off by 2 (n + steps) ε times the mass. Comparisons u > τ are exact, and the terms of h have one sign but ŷ·u. The
slopes of order 1 are sums that carry along what they lose, off by 8 ε (Σ drops + rise + μ): that, times the largest r, and n ε times the other
terms, μ being lowered by n ε, relatively, so that the error of what μ r is taken from is paid for at any r.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.certificate.dense import Block
from drmdp.certificate.sums import BLOCK, EPS, add, depth, finish, normalise, prefix, weigh_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN
from drmdp.layout.sorting import copy, rank
from drmdp.sets import AmbiguitySet

NEAR = 1e-12  # relative distance of the points on both sides of a radius
LEAST = 1e-100  # stands for the limit r → 0
TRIALS = 100


@njit(**INLINE)
def _places(order, unlisted, listed, u, key, place, down):  # type: ignore[no-untyped-def]
    """Place of each listed state among all by descending u, and the listed states in that order; key is work space."""
    for j in range(u.size):
        key[j] = order.place[listed[j]] if unlisted else -u[j]
    rank(key[: u.size], down, place)
    for n in range(u.size):
        place[down[n]] = key[down[n]] if unlisted else n


@njit(**LEAN)
def _sum_of(order, k):  # type: ignore[no-untyped-def]
    """Σ u over the first k states."""
    return order.rise[k] + k * order.down[k - 1] if k > 0 else 0.0


@njit(**LEAN)
def _supply(y, u, scale, r):  # type: ignore[no-untyped-def]
    """Σ min(r, ŷ) and Σ min(r, ŷ) u."""
    mass, worth = 0.0, 0.0
    for lo in range(0, u.size, BLOCK):
        part, part_u = 0.0, 0.0
        for j in range(lo, min(lo + BLOCK, u.size)):
            take = min(r, y[j] * scale)
            part += take
            part_u += take * u[j]
        mass += part
        worth += part_u
    return mass, worth


@njit(**LEAN)
def _walk(y, u, scale, r, down, place, order, unlisted):  # type: ignore[no-untyped-def]
    """Gain of the best row within r of ŷ, its margin, and its pivot's u."""
    K = u.size
    n_states = order.down.size if unlisted else K
    mass, taken = _supply(y, u, scale, r)
    supply, total, pivot = mass, 0.0, 0.0
    n, k, steps = 0, 0, 0
    while k < n_states and supply > 0.0:
        steps += 1
        if n < K and place[down[n]] == k:
            j = down[n]
            pivot = u[j]
            got = min(min(r, y[j] * scale) + r, supply)
            total += got * pivot
            supply -= got
            n += 1
            k += 1
            continue
        run = (place[down[n]] if n < K else n_states) - k
        full = min(run, int(supply / r))
        total += r * (_sum_of(order, k + full) - _sum_of(order, k))
        k += full
        supply -= full * r
        if full > 0:
            pivot = order.down[k - 1]
        if full < run and supply > 0.0:
            pivot = order.down[k]
            total += supply * pivot
            supply = 0.0
    return total - taken, 2.0 * (depth(K) + steps + 16) * EPS * mass, pivot


@njit(**INLINE)
def _above(order, tau):  # type: ignore[no-untyped-def]
    """Σ (u − τ)⁺ over all states."""
    k = prefix(order.down, 1.0, tau, 0.0)
    return order.rise[k] + k * (order.down[k - 1] - tau) if k > 0 else 0.0


@njit(**LEAN)
def _slope(layout, order, lo, hi, first, u, i, scale, r, tau):  # type: ignore[no-untyped-def]
    """Slopes of h to the right and left of r, entries within `NEAR` of r counting as equal to it."""
    K, N = hi - lo, layout.weights.size
    right = _above(order, tau) if layout.unlisted else 0.0
    more = 0.0
    for j in range(K):
        d = u[lo - first + j] - tau
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
def _tangent(layout, order, s, x, i, r, room, tau):  # type: ignore[no-untyped-def]
    """Σ_a x_a V_ia(r), a slope there, and the pivots."""
    A, N = room.scale.shape
    first = layout.indptr[s * A]
    total, slope = 0.0, 0.0
    for a in range(A):
        if x[a] > 0.0:
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            row = layout.data[N * lo + i * (hi - lo) : N * lo + (i + 1) * (hi - lo)]
            own, scale = slice(lo - first, hi - first), room.scale[a, i]
            gain, _, tau[a] = _walk(
                row, room.u[own], scale, r, room.places[0, own], room.places[1, own], order, layout.unlisted
            )
            total += x[a] * (room.own[a, i] + gain)
            slope += x[a] * _slope(layout, order, lo, hi, first, room.u, i, scale, r, tau[a])[0]
    return total, slope


@njit(**INLINE)
def _thresholds(layout, order, s, x, i, mu, r, near, room, tau):  # type: ignore[no-untyped-def]
    """Thresholds at which Σ_a x_a h_ia(r) − μ r has the maximum of the rows' value; r and `near` tell where to begin."""
    below, above, middle = room.actions[1], room.actions[2], room.actions[3]
    lo, hi = min(max(r - near, LEAST), 1.0), min(r + near, 1.0)
    lo_value, lo_slope = _tangent(layout, order, s, x, i, lo, room, below)
    hi_value, hi_slope = _tangent(layout, order, s, x, i, hi, room, above)
    if lo_slope < mu:
        hi, hi_value, hi_slope = lo, lo_value, lo_slope
        copy(below, above)
        lo = LEAST
        lo_value, lo_slope = _tangent(layout, order, s, x, i, lo, room, below)
    elif hi_slope > mu:
        lo, lo_value, lo_slope = hi, hi_value, hi_slope
        copy(above, below)
        hi = 1.0
        hi_value, hi_slope = _tangent(layout, order, s, x, i, hi, room, above)
    if lo_slope <= mu or hi_slope >= mu:
        copy(below if lo_slope <= mu else above, tau)
        return
    at = hi
    for _ in range(TRIALS):
        at = (hi_value - hi_slope * hi - lo_value + lo_slope * lo) / (lo_slope - hi_slope)
        if not (at > lo and at < hi):
            break
        value, slope = _tangent(layout, order, s, x, i, at, room, middle)
        if value >= lo_value + lo_slope * (at - lo) - 4.0 * EPS:
            break
        if slope > mu:
            lo, lo_value, lo_slope = at, value, slope
            copy(middle, below)
        else:
            hi, hi_value, hi_slope = at, value, slope
            copy(middle, above)
    _mix(layout, order, s, x, i, mu, at, hi_slope - mu, lo_slope - mu, room, tau)


@njit(**LEAN)
def _mix(layout, order, s, x, i, mu, at, left_excess, right_excess, room, tau):  # type: ignore[no-untyped-def]
    """Mix the thresholds above and below in one proportion, such that the slope at `at` is μ."""
    A = x.size
    below, above = room.actions[1], room.actions[2]
    left, right = 0.0, 1.0
    part = left_excess / (left_excess - right_excess)
    for trial in range(TRIALS):
        low = -mu
        high = -mu
        for a in range(A):
            tau[a] = above[a] + part * (below[a] - above[a])
            if x[a] > 0.0:
                lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
                scale, first = room.scale[a, i], layout.indptr[s * A]
                slopes = _slope(layout, order, lo, hi, first, room.u, i, scale, at, tau[a])
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
def _pieces(layout, order, s, x, i, tau, room):  # type: ignore[no-untyped-def]
    """Σ_a x_a h_ia as its value at r = 0, the slope of what never ends, and pieces of slope drops[m] that end at ends[m].

    Returns the first two and the number of pieces.
    """
    A, N = room.scale.shape
    ends, drops, first = room.reals[0], room.reals[1], layout.indptr[s * A]
    value, rise = 0.0, 0.0
    n = 0
    for a in range(A):
        if not x[a] > 0.0:
            continue
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        K = hi - lo
        value += x[a] * room.own[a, i]
        above, lost = _above(order, tau[a]) if layout.unlisted else 0.0, 0.0
        for j in range(K):
            p = layout.data[N * lo + i * K + j] * room.scale[a, i]
            d = room.u[lo - first + j] - tau[a]
            if d > 0.0:
                if not layout.unlisted:
                    above, lost = add(above, lost, d)
            elif p > 0.0:
                ends[n] = p
                drops[n] = -x[a] * d
                n += 1
        rise += x[a] * (above + lost)
    return value, rise, n


@njit(**INLINE)
def _at_radius(worth, rise, n, theta, terms, room):  # type: ignore[no-untyped-def]
    """Value of h at r = θ, its margin included."""
    ends, drops = room.reals[0], room.reals[1]
    more = theta * rise
    for lo in range(0, n, BLOCK):
        part = 0.0
        for m in range(lo, min(lo + BLOCK, n)):
            part += drops[m] * min(theta, ends[m])
        more += part
    return worth + more + terms * EPS * (more - worth)


@njit(**INLINE)
def _climb(worth, rise, n, mu, most, terms, room):  # type: ignore[no-untyped-def]
    """Maximum over r ≤ most of h(r) − μ r, its margin included."""
    ends, drops, by_end = room.reals[0], room.reals[1], room.places[2]
    rank(ends[:n], by_end, room.places[3])
    slope, lost = add(rise, 0.0, -mu * (1.0 - terms * EPS))
    size = rise + mu
    for m in range(n):
        slope, lost = add(slope, lost, drops[m])
        size += drops[m]
    at, gain = 0.0, 0.0
    m = 0
    while slope + lost > 0.0 and at < most:
        end = min(max(ends[by_end[m]], at) if m < n else most, most)
        gain += (slope + lost) * (end - at)
        at = end
        if m < n:
            slope, lost = add(slope, lost, -drops[by_end[m]])
        m += 1
    return worth + gain + EPS * ((terms + m) * (gain - worth) + 8.0 * size * most)


@njit(**INLINE)
def _upper(layout, order, s, x, i, mu, theta, terms, memory, joint, room, tau):  # type: ignore[no-untyped-def]
    """Bound on max_r Σ_a x_a h_ia(r) − μ r, margin included: 0 at most if μ is 0, as an unconstrained nature gains nothing above the top."""
    if joint is None:
        for a in range(x.size):
            tau[a] = room.gain[a, i]
    else:
        r = memory.by_kernel[s, i]
        r = r if r >= 0.0 and r <= 1.0 else 1.0
        _thresholds(layout, order, s, x, i, mu, r, NEAR * min(theta, 1.0), room, tau)
    worth, rise, n = _pieces(layout, order, s, x, i, tau, room)
    if joint is None:
        return min(_at_radius(worth, rise, n, theta, terms, room), 0.0)
    most = min(theta / layout.weights[i], 1.0)
    return _climb(worth, rise, n, mu, most, terms, room)


@njit(**INLINE)
def _share(theta, radius, w, terms, joint, share):  # type: ignore[no-untyped-def]
    """Share of each radius that is surely in the ball; 0 where it is no radius."""
    mean, least = 0.0, 1.0
    for i in range(w.size):
        if radius[i] > 0.0:
            mean += w[i] * radius[i]
            least = min(least, radius[i])
    least *= 1.0 if joint is None or mean <= theta else theta / mean
    steps = min(1.0 * terms, 4.0 / min(least, theta) + 8.0)
    most = theta * (1.0 - (depth(terms) + steps + w.size + 32.0) * EPS)
    for i in range(w.size):
        far = radius[i] if joint is None else mean
        share[i] = (most / far if far > most else 1.0) if radius[i] > 0.0 else 0.0


@njit(**INLINE)
def _worth(layout, order, s, a, radius, share, room):  # type: ignore[no-untyped-def]
    """Lower bound on an action's value under its rows bent by their share of the radii; leaves the pivots in room.gain."""
    A, N = room.scale.shape
    lo, hi, first, w = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A], layout.weights
    K, own = hi - lo, slice(lo - first, hi - first)
    u, down, place = room.u[own], room.places[0, own], room.places[1, own]
    _places(order, layout.unlisted, layout.indices[lo:hi], u, room.reals[2], place, down)
    worth = -(N + 8) * EPS
    for i in range(N):
        row = layout.data[N * lo + i * K : N * lo + (i + 1) * K]
        r = share[i] * radius[i] if share[i] > 0.0 else 0.0
        gain, margin, room.gain[a, i] = _walk(row, u, room.scale[a, i], r, down, place, order, layout.unlisted)
        worth += w[i] * ((1.0 + (depth(K) + 16) * EPS) * room.own[a, i] + gain - margin)
    return worth


@njit(**KERNEL)
def states_linf(start, stop, layout, order, value, top, span, policy, memory, joint, fixed, low, high, share, room):  # type: ignore[no-untyped-def]
    """Fill L, U and the share of nature's move for the states start … stop − 1; joint is None for order ∞, which spares the compiler the rest."""
    A, N = layout.available.shape[1], layout.weights.size
    w = layout.weights
    for s in range(start, stop):
        base, unit = normalise(layout, order, value, top, span, s, room)
        if not base < np.inf:
            continue
        theta, x = layout.radius[s], policy[s]
        entries = layout.indptr[(s + 1) * A] - layout.indptr[s * A]
        _share(theta, memory.by_kernel[s], w, entries, joint, share[s])
        for a in range(A):
            if layout.available[s, a]:
                weigh_rows(layout, s, a, room)
                room.worth[a] = _worth(layout, order, s, a, memory.by_kernel[s], share[s], room)
        mu = 0.0
        if joint is not None and memory.by_action[s, 0] > 0.0 and memory.by_action[s, 0] < 1e100:
            mu = memory.by_action[s, 0]
        terms = 2 * depth(entries) + A + 16
        above = mu * theta
        for i in range(N):
            bound = _upper(layout, order, s, x, i, mu, theta, terms, memory, joint, room, room.actions[0])
            above += w[i] * bound + (N + 8) * EPS * w[i] * (abs(bound) + mu * theta)
        finish(s, base, unit, above if above < 0.0 else 0.0, layout, span, x, fixed, room, low, high)


# ---------------------------------------------------------------------- dense data


def dual_rows(ball: AmbiguitySet, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """R_i of each kernel and Σ|terms|, (n, N) each: the formula of `drmdp.certificate.dense` for ℓ∞."""
    n, _, N, _ = data.nominal.shape
    tau = np.where(data.available[:, :, None], tau, 0.0)
    d = np.where(data.allowed[:, :, None, :], xz - tau[..., None], 0.0)
    up, down = np.maximum(d, 0.0), np.maximum(-d, 0.0)
    if ball.by_kernel:
        r, mu = np.broadcast_to(data.radius[:, None], (n, N)), np.zeros((n, N))
    else:
        r = _best_radius(data.nominal, up, down, mu)
    width = r[:, None, :, None]
    gain = up * (data.nominal + width) - down * np.maximum(data.nominal - width, 0.0)
    size = np.abs(tau).sum(axis=1) + np.abs(gain).sum(axis=(1, 3)) + 2 * mu + 2 * (up + down).sum(axis=(1, 3))
    budget = mu * data.radius[:, None]
    return tau.sum(axis=1) + gain.sum(axis=(1, 3)) - mu * r + budget, size + budget


def _best_radius(nominal: Array, up: Array, down: Array, mu: Array) -> Array:
    """Maximiser r in [0, 1] of the concave, piecewise linear bracket of the ℓ∞ formula, (n, N)."""
    n, A, N, S = nominal.shape
    y = nominal.transpose(0, 2, 1, 3).reshape(n, N, A * S)
    weight = down.transpose(0, 2, 1, 3).reshape(n, N, A * S)
    order = np.argsort(y, axis=2)
    ends = np.take_along_axis(y, order, axis=2)
    used = np.cumsum(np.take_along_axis(weight, order, axis=2), axis=2)
    slope = (up.sum(axis=(1, 3)) - mu)[..., None] + used[..., -1:] - used  # right of each end
    start = (up.sum(axis=(1, 3)) - mu) + used[..., -1]  # right of 0
    first = (slope <= 0).argmax(axis=2)
    r = np.where((slope <= 0).any(axis=2), np.take_along_axis(ends, first[..., None], axis=2)[..., 0], 1.0)
    return np.asarray(np.where(start <= 0, 0.0, r))
