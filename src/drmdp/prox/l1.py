"""Proximal maps of the ℓ1 balls: all kernels share one budget (order 1), or each has its own (order ∞).

With a multiplier μ of Σ_i w_i ‖y_i − ŷ_i‖₁ − θ the projection of z = ŷ + d is, row by row with m = μ w_i,

    e = y − ŷ = d − α − m where that is positive,   max(d − α + m, −ŷ) where d − α + m is negative,   0 between,

with α such that gains and losses are equal. Let n₊ and n₋ be the numbers of entries that gain, and that lose less than
all they have. While these sets stay,

    dα/dm = (n₋ − n₊)/(n₊ + n₋),        d‖e‖₁/dm = −4 n₊ n₋/(n₊ + n₋),

so Newton's method for Σ_i w_i ‖e_i‖₁ = θ is exact in one step; a bracket guards it. At μ = (max d − min d)/(2 w_i) nothing
moves. For a row, α lies within [max d − m − 1, max d − m]. For order ∞ the same holds for one kernel with w = 1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from drmdp.layout.layout import FAST, row_scales
from drmdp.prox.displacement import (
    LARGE,
    MISLED,
    ROUGH,
    ROUNDING,
    Family,
    displace,
    largest,
    make_work,
    pass_on,
    pull_in,
    reset,
    restore,
    smallest,
)

TRIALS = 200
PASSES = 200
SAFE = 12  # trials after which the bracket is halved now and then
APART = 3.0  # factor between distances up to which their slopes say more
NEAR = 0.1  # relative distance from θ up to which a Newton step is best


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def row_sums(d, p, scale, m, alpha):  # type: ignore[no-untyped-def]
    """Gains, losses, n₊ and n₋."""
    up = 0.0
    down = 0.0
    more = 0.0
    less = 0.0
    for j in range(d.size):
        own = scale * p[j]
        e = d[j] - alpha
        gain = e - m
        loss = -m - e
        more += 1.0 if gain > 0.0 else 0.0
        up += gain if gain > 0.0 else 0.0
        loss = loss if loss > 0.0 else 0.0
        less += 1.0 if (loss > 0.0) & (loss < own) else 0.0
        down += loss if loss < own else own
    return up, down, more, less


@njit(cache=True, nogil=True, error_model="numpy")
def solve_row(d, p, scale, m, alpha):  # type: ignore[no-untyped-def]
    """α from a guess, and what it lacks; ‖e‖₁, −d‖e‖₁/dm, dα/dm and the rounding of ‖e‖₁."""
    low, high = -np.inf, np.inf
    if abs(alpha) + m >= LARGE:  # no guess may drown the data
        top, bottom = largest(d), smallest(d)
        if top - bottom <= 2.0 * m:
            return 0.5 * (top + bottom), 0.0, 0.0, 0.0, 0.0, 0.0
        alpha = min(max(alpha, top - m - 1.0), top - m)
    for turn in range(PASSES):
        if abs(alpha) + m < LARGE:
            up, down, more, less = row_sums(d, p, scale, m, alpha)
        else:
            up, down, more, less = row_sums(d - alpha, p, scale, m, 0.0)
        rest, n = up - down, more + less
        if abs(rest) <= ROUNDING * (up + down + n * (abs(alpha) + m)):
            break
        if rest > 0.0:
            low = alpha
        else:
            high = alpha
        new = alpha + rest / n if n > 0.0 else np.inf
        if not (new > low and new < high) or turn % 8 == 7:
            if low == -np.inf or high == np.inf:
                most = largest(d) - m
                low, high = max(low, most - 1.0), min(high, most)
                new = min(max(new, low), high) if n > 0.0 and turn % 8 != 7 else 0.5 * (low + high)
            else:
                new = 0.5 * (low + high)
            if new == alpha or not high > low:
                break
        alpha = new
    noise = ROUNDING * (up + down + n * (abs(alpha) + m))
    if n == 0.0:
        return alpha, 0.0, up + down, 0.0, 0.0, noise
    change = rest / n
    return alpha, change, up + down - change * (more - less), 4.0 * more * less / n, (less - more) / n, noise


@njit(cache=True, nogil=True, error_model="numpy")
def distance(layout, s, y, first, stop, w, mu, threshold, work):  # type: ignore[no-untyped-def]
    """Try μ on the kernels first … stop − 1: Σ_i w_i ‖e_i‖₁, minus its slope, its rounding."""
    N, A = layout.weights.size, layout.available.shape[1]
    last = work.kernel[0]
    total = 0.0
    slope = 0.0
    noise = 0.0
    for i in range(first, stop):
        m = mu * w[i]
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if hi == lo:
                continue
            e = N * lo + i * (hi - lo)
            guess = threshold[s * A + a, i] + work.shift[a, i] + (m - last[i]) * work.rate[a, i]
            threshold[s * A + a, i], work.shift[a, i], far, less, work.rate[a, i], error = solve_row(
                y[e : e + hi - lo], layout.data[e : e + hi - lo], work.scale[a, i], m, guess
            )
            total += w[i] * far
            slope += w[i] * w[i] * less
            noise += w[i] * error
        last[i] = m
    return total, slope, noise


@njit(cache=True, nogil=True, error_model="numpy")
def ceiling(layout, s, y, first, stop, w):  # type: ignore[no-untyped-def]
    """A μ at which nothing moves."""
    N, A = layout.weights.size, layout.available.shape[1]
    most = 0.0
    for i in range(first, stop):
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if hi > lo:
                row = y[N * lo + i * (hi - lo) : N * lo + (i + 1) * (hi - lo)]
                most = max(most, (largest(row) - smallest(row)) / (2.0 * w[i]))
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def outline(layout, s, y, first, stop, w, threshold, work):  # type: ignore[no-untyped-def]
    """What `distance` finds at μ = 0, after one pass from the mean of each row."""
    N, A = layout.weights.size, layout.available.shape[1]
    total = 0.0
    slope = 0.0
    for i in range(first, stop):
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if hi == lo:
                continue
            e = N * lo + i * (hi - lo)
            row = y[e : e + hi - lo]
            alpha = np.sum(row) / row.size
            up, down, more, less = row_sums(row, layout.data[e : e + hi - lo], work.scale[a, i], 0.0, alpha)
            change = (up - down) / (more + less) if more + less > 0.0 else 0.0
            threshold[s * A + a, i] = alpha + change
            total += w[i] * (up + down - change * (more - less))
            slope += w[i] * w[i] * 4.0 * more * less / max(more + less, 1.0)
    return total, slope


@njit(cache=True, nogil=True, error_model="numpy")
def first_guess(layout, s, y, first, stop, w, theta, threshold, work):  # type: ignore[no-untyped-def]
    """A multiplier for the kernels first … stop − 1 from the distance and slope at 0 and where it ends."""
    far, slope = outline(layout, s, y, first, stop, w, threshold, work)
    most = ceiling(layout, s, y, first, stop, w)
    if far > theta and slope > 0.0 and most > 0.0:
        return most - most * (theta / far) ** min(far / (slope * most), 1.0)
    return 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def between(low, far_low, slope_low, high, far_high, slope_high, theta):  # type: ignore[no-untyped-def]
    """μ at θ from two points around it: as if log far were linear, or, if both are near, on the cubic with their slopes."""
    if far_low > APART * theta or theta > APART * far_high:
        return low + (high - low) * math.log(far_low / theta) / math.log(far_low / far_high)
    h = far_high - far_low
    t = (theta - far_low) / h
    u = 1.0 - t
    a, b = -h / slope_low, -h / slope_high
    return u * u * ((1.0 + 2.0 * t) * low + t * a) + t * t * ((1.0 + 2.0 * u) * high - u * b)


@njit(cache=True, nogil=True, error_model="numpy")
def search(layout, s, y, first, stop, w, theta, guess, accuracy, doubt, threshold, work):  # type: ignore[no-untyped-def]
    """Multiplier of the kernels first … stop − 1, trials, and what the multiplier lacks; −1 for a guess in doubt that leads far off."""
    mu = guess
    for i in range(first, stop):
        work.kernel[0, i] = mu * w[i]
        work.rate[:, i] = 0.0
        work.shift[:, i] = 0.0
    low, high = -1.0, np.inf
    far_low, slope_low, far_high, slope_high = 0.0, 0.0, 0.0, 0.0
    most = 0.0
    far = theta
    for trial in range(1, TRIALS + 1):
        far, slope, noise = distance(layout, s, y, first, stop, w, mu, threshold, work)
        if far <= theta and mu == 0.0:
            return 0.0, 0, 0.0
        if doubt and trial == 1 and mu > 0.0 and abs(far - theta) > MISLED * theta:
            return -1.0, 1, 0.0
        noise = min(noise, 1e-4 * theta)
        if abs(far - theta) <= max(accuracy * theta, noise):
            if noise <= accuracy * theta:
                break
            most = ceiling(layout, s, y, first, stop, w)
            if mu <= most:
                break
            mu = 0.5 * most  # nothing can be said of a guess that is too far off
            continue
        if far > theta:
            low, far_low, slope_low = mu, far, slope
        else:
            high, far_high, slope_high = mu, far, slope
        if high - low <= ROUNDING * high and high < np.inf:
            if far <= theta:
                break
            mu = high
            continue
        new = mu + (far - theta) / slope if slope > 0.0 else np.inf
        if abs(far - theta) > NEAR * theta and slope > 0.0 and far > 0.0:
            if low >= 0.0 and high < np.inf and far_high > 0.0 and slope_low > 0.0 and slope_high > 0.0:
                new = between(low, far_low, slope_low, high, far_high, slope_high, theta)
            else:
                if most == 0.0:
                    most = ceiling(layout, s, y, first, stop, w)
                if most > mu:
                    new = most - (most - mu) * (theta / far) ** min(far / (slope * (most - mu)), 1.0)
        new = max(new, 0.0)
        if not (new > low and new < high) or (trial > SAFE and trial % 3 == 0):
            if high == np.inf:
                high = max(ceiling(layout, s, y, first, stop, w), 2.0 * low)
            if low >= 0.0:
                new = 0.5 * (low + high)
            else:  # all that is known is that μ is too large
                new = first_guess(layout, s, y, first, stop, w, theta, threshold, work)
                new = new if new < 0.9 * high else 0.0
                work.rate[:, first:stop] = 0.0
                work.shift[:, first:stop] = 0.0
        mu = new
    change = (far - theta) / slope if slope > 0.0 and abs(far - theta) <= max(accuracy * theta, noise) else 0.0
    return mu, trial, change


@njit(cache=True, nogil=True, error_model="numpy")
def _move(d, p, scale, m, alpha, more, less):  # type: ignore[no-untyped-def]
    """Turn d into e, all gains and losses changed by given numbers."""
    for j in range(d.size):
        own = scale * p[j]
        e = d[j] - alpha
        gain = (e - m) + more
        loss = (-e - m) + less
        gain = gain if gain > 0.0 else 0.0
        loss = loss if loss > 0.0 else 0.0
        d[j] = gain - (loss if loss < own else own)


@njit(cache=True, nogil=True, error_model="numpy")
def write(layout, s, y, first, stop, w, theta, mu, change, threshold, work):  # type: ignore[no-untyped-def]
    """The rows of the kernels first … stop − 1 at μ + change."""
    N, A = layout.weights.size, layout.available.shape[1]
    far = 0.0
    for i in range(first, stop):
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            e = N * lo + i * (hi - lo)
            row, p = y[e : e + hi - lo], layout.data[e : e + hi - lo]
            m = change * w[i]
            shift = work.shift[a, i] + work.rate[a, i] * m
            _move(row, p, work.scale[a, i], mu * w[i], threshold[s * A + a, i], -shift - m, shift - m)
            far += w[i] * restore(row, p, work.scale[a, i], 1.0)[0]
            threshold[s * A + a, i] += shift
    if far > theta * (1.0 + ROUNDING):
        pull_in(layout, s, y, first, stop, theta / far, work)


@njit(cache=True, nogil=True, error_model="numpy")
def project_states(start, stop, layout, y, step, value, accuracy, memory, each, inside):  # type: ignore[no-untyped-def]
    """Project in place the rows y + w_i·step[s, a]·(c + λ v) of the states start … stop − 1; `each` for order ∞.

    The multipliers, one a state or one a kernel, are found when the distance is θ up to the relative accuracy. Kernels are samples
    of one thing: without a guess, that of one kernel alone, or of the kernel before, is one.
    """
    N, A = layout.weights.size, layout.available.shape[1]
    work = make_work(layout)
    one = np.ones(N)
    k = np.argmax(layout.weights)
    for s in range(start, stop):
        theta = layout.radius[s]
        row_scales(layout, s, work.scale)
        if theta == 0.0:
            reset(layout, s, y, work)
            continue
        displace(layout, s, y, step, value, memory, work, False)
        for g in range(N if each else 1):
            first, end = (g, g + 1) if each else (0, N)
            w = one if each else layout.weights
            guess, tried = memory.multiplier[s, g], 0
            mu, change = -1.0, 0.0
            if guess > 0.0:
                mu, tried, change = search(
                    layout, s, y, first, end, w, theta, guess, accuracy, True, memory.threshold, work
                )
            if mu < 0.0:
                goal = theta if each else layout.weights[k] * theta
                i = g if each else k
                if each and g > 0 and memory.multiplier[s, g - 1] > 0.0:
                    guess = memory.multiplier[s, g - 1]
                    pass_on(s * A, A, g - 1, g, g + 1, memory.threshold)
                else:
                    guess = first_guess(layout, s, y, i, i + 1, w, goal, memory.threshold, work)
                if not each:
                    guess = search(layout, s, y, k, k + 1, w, goal, guess, ROUGH, False, memory.threshold, work)[0]
                    pass_on(s * A, A, k, 0, N, memory.threshold)
                mu, more, change = search(
                    layout, s, y, first, end, w, theta, guess, accuracy, False, memory.threshold, work
                )
                tried = tried + more if mu > 0.0 else 0
            memory.trials[s, g] = tried
            memory.multiplier[s, g] = mu + change
            write(layout, s, y, first, end, w, theta, mu, change, memory.threshold, work)


SHARED, EACH = Family(project_states, each=False), Family(project_states, each=True)
"""One budget for all kernels, and one for each."""
