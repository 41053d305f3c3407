"""Proximal maps of the ℓ1 balls: all kernels share one budget (order 1), or each has its centre (order ∞).

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

from drmdp.core.compiled import FAST, KERNEL, LEAN, njit
from drmdp.prox.displacement import (
    LARGE,
    MISLED,
    ROUGH,
    ROUNDING,
    Family,
    Job,
    largest,
    pass_on,
    pull_in,
    restart,
    restore,
    row_of,
    smallest,
)
from drmdp.prox.sweep import heaviest, sweep

TRIALS = 200
PASSES = 200
SAFE = 12  # trials after which the bracket is halved now and then
APART = 3.0  # factor between distances up to which their slopes say more
NEAR = 0.1  # relative distance from θ up to which a Newton step is best


@njit(fastmath=FAST, **LEAN)
def row_sums(d, p, scale, m, alpha):
    """Gains and losses of a row.

    reads   d (K,), p (K,), scale, m, alpha
    returns gains, losses, n₊, n₋
    """
    up = 0.0
    down = 0.0
    gaining = 0.0
    losing = 0.0
    for j in range(d.size):
        centre = scale * p[j]
        e = d[j] - alpha
        gain = e - m
        loss = -m - e
        gaining += 1.0 if gain > 0.0 else 0.0
        up += gain if gain > 0.0 else 0.0
        loss = loss if loss > 0.0 else 0.0
        losing += 1.0 if (loss > 0.0) & (loss < centre) else 0.0
        down += loss if loss < centre else centre
    return up, down, gaining, losing


@njit(**LEAN)
def solve_row(row, m, alpha):
    """Find α from a guess.

    reads   row, m, alpha
    fills   row.spare
    returns α, what it lacks, ‖e‖₁, −d‖e‖₁/dm, dα/dm, rounding of ‖e‖₁
    """
    d = row.d
    low, high = -np.inf, np.inf
    if abs(alpha) + m >= LARGE:  # no guess may drown the data
        top, bottom = largest(d), smallest(d)
        if top - bottom <= 2.0 * m:
            return 0.5 * (top + bottom), 0.0, 0.0, 0.0, 0.0, 0.0
        alpha = min(max(alpha, top - m - 1.0), top - m)
    for turn in range(PASSES):
        if abs(alpha) + m < LARGE:
            up, down, gaining, losing = row_sums(d, row.p, row.scale, m, alpha)
        else:
            for j in range(d.size):
                row.spare[j] = d[j] - alpha
            up, down, gaining, losing = row_sums(row.spare, row.p, row.scale, m, 0.0)
        excess, n = up - down, gaining + losing
        if abs(excess) <= ROUNDING * (up + down + n * (abs(alpha) + m)):
            break
        if excess > 0.0:
            low = alpha
        else:
            high = alpha
        new = alpha + excess / n if n > 0.0 else np.inf
        if not (new > low and new < high) or turn % 8 == 7:
            if low == -np.inf or high == np.inf:
                top = largest(d) - m
                low, high = max(low, top - 1.0), min(high, top)
                new = min(max(new, low), high) if n > 0.0 and turn % 8 != 7 else 0.5 * (low + high)
            else:
                new = 0.5 * (low + high)
            if new == alpha or not high > low:
                break
        alpha = new
    noise = ROUNDING * (up + down + n * (abs(alpha) + m))
    if n == 0.0:
        return alpha, 0.0, up + down, 0.0, 0.0, noise
    change = excess / n
    far = up + down - change * (gaining - losing)
    return alpha, change, far, 4.0 * gaining * losing / n, (losing - gaining) / n, noise


@njit(**LEAN)
def distance(group, mu):
    """Try μ.

    reads   mu
    fills   group.threshold, group.work.rate, group.work.shift, group.work.kernel: μ w_i in its first row
    returns Σ_i w_i ‖e_i‖₁, minus its slope, its rounding
    """
    w, threshold, work = group.w, group.threshold, group.work
    A = work.rate.shape[0]
    last = work.kernel[0]
    total = 0.0
    slope = 0.0
    noise = 0.0
    for i in range(group.first, group.stop):
        m = mu * w[i]
        for a in range(A):
            row, k = row_of(group, a, i), group.s * A + a
            if row.d.size == 0:
                continue
            guess = threshold[k, i] + work.shift[a, i] + (m - last[i]) * work.rate[a, i]
            threshold[k, i], work.shift[a, i], far, fall, work.rate[a, i], error = solve_row(row, m, guess)
            total += w[i] * far
            slope += w[i] * w[i] * fall
            noise += w[i] * error
        last[i] = m
    return total, slope, noise


@njit(**LEAN)
def ceiling(group):
    """A μ at which nothing moves.

    reads   group
    returns μ
    """
    highest = 0.0
    for i in range(group.first, group.stop):
        for a in range(group.work.rate.shape[0]):
            d = row_of(group, a, i).d
            if d.size > 0:
                highest = max(highest, (largest(d) - smallest(d)) / (2.0 * group.w[i]))
    return highest


@njit(**LEAN)
def outline(group):
    """What `distance` finds at μ = 0, after one pass from the mean of each row.

    fills   group.threshold
    returns Σ_i w_i ‖e_i‖₁, minus its slope
    """
    w, A = group.w, group.work.rate.shape[0]
    total = 0.0
    slope = 0.0
    for i in range(group.first, group.stop):
        for a in range(A):
            row = row_of(group, a, i)
            if row.d.size == 0:
                continue
            alpha = 0.0
            for j in range(row.d.size):
                alpha += row.d[j]
            alpha /= row.d.size
            up, down, gaining, losing = row_sums(row.d, row.p, row.scale, 0.0, alpha)
            change = (up - down) / (gaining + losing) if gaining + losing > 0.0 else 0.0
            group.threshold[group.s * A + a, i] = alpha + change
            total += w[i] * (up + down - change * (gaining - losing))
            slope += w[i] * w[i] * 4.0 * gaining * losing / max(gaining + losing, 1.0)
    return total, slope


@njit(**LEAN)
def first_guess(group, theta):
    """A multiplier from the distance and slope at 0 and where it ends.

    reads   theta
    fills   group.threshold
    returns μ, or 0
    """
    far, slope = outline(group)
    end = ceiling(group)
    if far > theta and slope > 0.0 and end > 0.0:
        return end - end * (theta / far) ** min(far / (slope * end), 1.0)
    return 0.0


@njit(**LEAN)
def between(low, far_low, slope_low, high, far_high, slope_high, theta):
    """μ at θ from two points around it: as if log far were linear, or, if both are near, on the cubic with their slopes.

    reads   low, far_low, slope_low, high, far_high, slope_high, theta
    returns μ
    """
    if far_low > APART * theta or theta > APART * far_high:
        return low + (high - low) * math.log(far_low / theta) / math.log(far_low / far_high)
    h = far_high - far_low
    t = (theta - far_low) / h
    u = 1.0 - t
    a, b = -h / slope_low, -h / slope_high
    return u * u * ((1.0 + 2.0 * t) * low + t * a) + t * t * ((1.0 + 2.0 * u) * high - u * b)


@njit(**LEAN)
def search(group, theta, guess, accuracy, doubt):
    """Find the multiplier; see `drmdp.prox.sweep.sweep`.

    reads   theta, guess, accuracy, doubt
    fills   group.threshold, group.work
    returns μ, trials, what μ lacks
    """
    work = group.work
    mu = guess
    restart(work, group.first, group.stop)
    for i in range(group.first, group.stop):
        work.kernel[0, i] = mu * group.w[i]
    low, high = -1.0, np.inf
    far_low, slope_low, far_high, slope_high = 0.0, 0.0, 0.0, 0.0
    end = 0.0
    far = theta
    for trial in range(1, TRIALS + 1):
        far, slope, noise = distance(group, mu)
        if far <= theta and mu == 0.0:
            return 0.0, 0, 0.0
        if doubt and trial == 1 and mu > 0.0 and abs(far - theta) > MISLED * theta:
            return -1.0, 1, 0.0
        noise = min(noise, 1e-4 * theta)
        if abs(far - theta) <= max(accuracy * theta, noise):
            if noise <= accuracy * theta:
                break
            end = ceiling(group)
            if mu <= end:
                break
            mu = 0.5 * end  # nothing can be said of a guess that is too far off
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
                if end == 0.0:
                    end = ceiling(group)
                if end > mu:
                    new = end - (end - mu) * (theta / far) ** min(far / (slope * (end - mu)), 1.0)
        new = max(new, 0.0)
        if not (new > low and new < high) or (trial > SAFE and trial % 3 == 0):
            if high == np.inf:
                high = max(ceiling(group), 2.0 * low)
            if low >= 0.0:
                new = 0.5 * (low + high)
            else:  # all that is known is that μ is too large
                new = first_guess(group, theta)
                new = new if new < 0.9 * high else 0.0
                restart(work, group.first, group.stop)
        mu = new
    change = (far - theta) / slope if slope > 0.0 and abs(far - theta) <= max(accuracy * theta, noise) else 0.0
    return mu, trial, change


@njit(**LEAN)
def _move(row, m, alpha, to_gains, to_losses):
    """Turn d into e, after a number was added to all gains and one to all losses.

    reads   m, alpha, to_gains, to_losses
    fills   row.d
    """
    d, p, scale = row.d, row.p, row.scale
    for j in range(d.size):
        centre = scale * p[j]
        e = d[j] - alpha
        gain = (e - m) + to_gains
        loss = (-e - m) + to_losses
        gain = gain if gain > 0.0 else 0.0
        loss = loss if loss > 0.0 else 0.0
        d[j] = gain - (loss if loss < centre else centre)


@njit(**LEAN)
def write(group, theta, mu, change):
    """Write the rows at μ + change; see `drmdp.prox.sweep.sweep`.

    reads   theta, mu, change
    fills   group.y, group.threshold
    returns μ + change
    """
    w, threshold, work = group.w, group.threshold, group.work
    A = work.rate.shape[0]
    far = 0.0
    for i in range(group.first, group.stop):
        for a in range(A):
            row, k = row_of(group, a, i), group.s * A + a
            m = change * w[i]
            shift = work.shift[a, i] + work.rate[a, i] * m
            _move(row, mu * w[i], threshold[k, i], -shift - m, shift - m)
            far += w[i] * restore(row, 1.0)[0]
            threshold[k, i] += shift
    if far > theta * (1.0 + ROUNDING):
        pull_in(group, theta / far)
    return mu + change


@njit(**LEAN)
def cold_guess(group, theta, each, before):
    """A multiplier to begin with; see `drmdp.prox.sweep.sweep`.

    reads   theta, each, before
    fills   group.threshold, group.work
    returns μ
    """
    if each:
        return before if before > 0.0 else first_guess(group, theta)
    alone = heaviest(group)
    goal = group.w[alone.first] * theta
    guess = search(alone, goal, first_guess(alone, goal), ROUGH, False)[0]
    pass_on(group, alone.first)
    return guess


@njit(**KERNEL)
def project_states(start, stop, layout, push, y, memory, how, work):
    """Project in place the states start … stop − 1; `how.each` for order ∞.

    The multipliers, one a state or one a kernel, are found when the distance is θ up to the relative accuracy.

    reads   start, stop, layout, push, how
    fills   y (N·nnz,), memory, work
    """
    sweep(search, write, cold_guess, start, stop, Job(layout, push, y, memory, how, work), False)


SHARED, EACH = Family(project_states, each=False), Family(project_states, each=True)
"""One budget for all kernels, and one for each."""
