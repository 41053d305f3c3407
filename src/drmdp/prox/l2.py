"""Proximal maps of the ℓ2 balls: all kernels share one budget (order 2), or each has its centre (order ∞).

With a multiplier γ of ½ (Σ_i w_i ‖y_i − ŷ_i‖² − θ²) the projection of z = ŷ + d is, row by row,

    y_ia = Proj_Δ(ŷ_ia + s_i d_ia),    s_i = 1/(1 + γ w_i),      e = y − ŷ = max(s d − α, −ŷ),  Σ e = 0.

Let c be the number of active entries {s d − α > −ŷ} of a row, m and q the sums of ŷ and ŷ² over the others, and v the
sum of squares of d − mean d over the active ones. While these sets stay,

    ‖e‖² = s² v + (m²/c + q),      α = s·(mean d) − m/c,

so a trial of γ gives the distance for every γ as D(γ) = Σ_i w_i (s_i² V_i + F_i), and the next trial solves D(γ) = θ²:
exactly, if no entry changes sides. With all entries active, D bounds the distance from above: without a guess this is
where the search starts, and if D(0) ≤ θ² the ball does not bind. For order ∞ the same holds for one kernel with w = 1.
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
    pass_on,
    pull_in,
    restart,
    restore,
    row_of,
)
from drmdp.prox.sweep import heaviest, sweep

TRIALS = 200
PASSES = 1000
NEAR = 4.0  # times θ²: up to here the bound says little, and the search starts at γ = 0
SIZE, MOVED, REST, STILL = range(4)
"""By kernel: s_i, V_i and F_i, and the part of V_i that comes from rows already in the simplex: there α = 0 and y = ŷ + s d."""
FINE = 1e-12  # relative distance from θ that is not worth another step
SAFE = 12  # trials after which the bracket is halved now and then


@njit(fastmath=FAST, **LEAN)
def row_sums(d, p, scale, s, alpha):
    """Sums over the active entries of a row, and over the others.

    reads   d (K,), p (K,), scale, s, alpha
    returns c, Σ e, Σ e²; m, q
    """
    c = 0.0
    e1 = 0.0
    e2 = 0.0
    m = 0.0
    q = 0.0
    for j in range(d.size):
        centre = scale * p[j]
        e = s * d[j] - alpha
        on = 1.0 if e > -centre else 0.0
        off = centre - on * centre
        x = on * e
        c += on
        e1 += x
        e2 += x * x
        m += off
        q += off * centre
    return c, e1, e2, m, q


@njit(**LEAN)
def solve_row(row, s, alpha, least):
    """Find α from a guess and a lower bound.

    reads   row, s, alpha, least
    fills   row.spare
    returns α, what it lacks, s² v, m²/c + q, dα/ds
    """
    d, p, scale = row.d, row.p, row.scale
    last, last_excess = -1.0, -1.0
    alpha = max(alpha, least)
    for _ in range(PASSES):
        if abs(alpha) < LARGE:
            c, e1, e2, m, q = row_sums(d, p, scale, s, alpha)
        else:
            for j in range(d.size):
                row.spare[j] = s * d[j] - alpha
            c, e1, e2, m, q = row_sums(row.spare, p, scale, 1.0, 0.0)
        excess = e1 - m
        if c == 0.0:
            top = -np.inf
            for j in range(d.size):
                top = max(top, s * d[j] + scale * p[j])
            alpha, last = min(top, alpha) - 1.0, -1.0
            continue
        if (
            abs(excess) <= ROUNDING * (m + c * abs(alpha))
            or c == last
            or (last > 0.0 and last_excess >= 0.0 and c > last)
        ):
            break
        alpha = max(alpha + excess / c, least)
        last, last_excess = c, excess
    return alpha, excess / c, max(e2 - e1 * e1 / c, 0.0), m * m / c + q, (alpha + e1 / c) / s


@njit(fastmath=FAST, **LEAN)
def _square(row):
    """‖y − ŷ‖² of a row that is not displaced.

    reads   row
    returns ‖y − ŷ‖²
    """
    y, p, scale = row.d, row.p, row.scale
    total = 0.0
    for j in range(y.size):
        e = y[j] - scale * p[j]
        total += e * e
    return total


@njit(fastmath=FAST, **LEAN)
def _shrink(row, part):
    """Replace y, in a row that is not displaced, by ŷ + part·(y − ŷ).

    reads   part
    fills   row.d
    """
    y, p, scale = row.d, row.p, row.scale
    for j in range(y.size):
        centre = scale * p[j]
        y[j] = centre + part * (y[j] - centre)


@njit(**LEAN)
def fit(group, theta, gamma):
    """Solve D(γ) = θ² for the V and F at hand, from a guess.

    reads   group, theta, gamma
    returns γ ≥ 0; inf if F alone is too much
    """
    w, V, F = group.w, group.work.kernel[MOVED], group.work.kernel[REST]
    goal = theta * theta
    at_zero = 0.0
    for i in range(group.first, group.stop):
        goal -= w[i] * F[i]
        at_zero += w[i] * V[i]
    if goal <= 0.0:
        return np.inf
    if at_zero <= goal:
        return 0.0
    for _ in range(60):  # Newton on D^(−1/2), which is linear in γ if the weights are equal
        level = 0.0
        slope = 0.0
        for i in range(group.first, group.stop):
            s = 1.0 / (1.0 + gamma * w[i])
            level += w[i] * V[i] * s * s
            slope += 2.0 * w[i] * w[i] * V[i] * s * s * s
        move = 2.0 * level * (math.sqrt(level / goal) - 1.0) / slope
        gamma = max(gamma + move, 0.0)
        if not abs(move) > 1e-14 * gamma:
            break
    return gamma


@njit(**LEAN)
def distance(group, gamma):
    """Try γ.

    reads   gamma
    fills   group.threshold, group.work.rate, group.work.shift, group.work.kernel: s_i, V_i, F_i
    returns √D(γ)
    """
    w, threshold, work = group.w, group.threshold, group.work
    A = work.rate.shape[0]
    size, V, F = work.kernel[SIZE], work.kernel[MOVED], work.kernel[REST]
    total = 0.0
    for i in range(group.first, group.stop):
        t = 1.0 / (1.0 + gamma * w[i])
        V[i] = work.kernel[STILL, i]
        F[i] = 0.0
        square = t * t * V[i]
        for a in range(A):
            if work.still[a]:
                continue
            k = group.s * A + a
            least = max(t * work.level[a, i], t * work.peak[a, i] - 1.0)  # all entries active, or one
            guess = threshold[k, i] + work.shift[a, i] + (t - size[i]) * work.rate[a, i]
            guess = least if threshold[k, i] == 0.0 else guess
            threshold[k, i], work.shift[a, i], moved, fixed, work.rate[a, i] = solve_row(
                row_of(group, a, i), t, guess, least
            )
            V[i] += moved / (t * t)
            F[i] += fixed
            square += moved + fixed
        size[i] = t
        total += w[i] * square
    return math.sqrt(total)


@njit(**LEAN)
def prepare(group, guess):
    """Fill what a search begins with: s_i at a guess, and V_i as if all entries were active.

    reads   guess
    fills   group.work.rate, group.work.shift, group.work.kernel
    returns bound on D(0), largest weight
    """
    w, work, kernel = group.w, group.work, group.work.kernel
    top = 0.0
    bound = 0.0
    restart(work, group.first, group.stop)
    for i in range(group.first, group.stop):
        top = max(top, w[i])
        kernel[SIZE, i], kernel[REST, i], kernel[STILL, i] = 1.0 / (1.0 + guess * w[i]), 0.0, 0.0
        for a in range(work.rate.shape[0]):
            row = row_of(group, a, i)
            if work.still[a] and row.d.size > 0:
                kernel[STILL, i] += _square(row)
        kernel[MOVED, i] = work.spread[i] + kernel[STILL, i]
        bound += w[i] * kernel[MOVED, i]
    return bound, top


@njit(**LEAN)
def search(group, theta, guess, accuracy, doubt):
    """Find the multiplier; see `drmdp.prox.sweep.sweep`.

    reads   theta, guess, accuracy, doubt
    fills   group.threshold, group.work
    returns γ, trials, part of the move that is surely in the ball
    """
    w, work, kernel = group.w, group.work, group.work.kernel
    gamma = guess
    bound, top = prepare(group, guess)
    if not guess > 0.0:
        gamma = fit(group, theta, 0.0) if bound > NEAR * theta * theta else 0.0
    low, high = -1.0, np.inf
    far = theta
    for trial in range(1, TRIALS + 1):
        far = distance(group, gamma)
        if far <= theta and gamma == 0.0:
            return 0.0, 0, 1.0
        if doubt and trial == 1 and gamma > 0.0 and abs(far - theta) > MISLED * theta:
            return -1.0, 1, 1.0
        if abs(far - theta) <= accuracy * theta:
            break
        if far > theta:
            low = gamma
        else:
            high = gamma
        if high - low <= ROUNDING * high and high < np.inf:
            if far <= theta:
                break
            gamma = high
            continue
        new = fit(group, theta, gamma)
        if not (new > low and new < high):
            new = max(((1.0 + gamma * top) * far / theta - 1.0) / top, 0.0)
        if not (new > low and new < high) or (trial > SAFE and trial % 3 == 0 and high < np.inf):
            new = math.sqrt(low * high) if low > 0.0 else 0.5 * high
        if trial > SAFE and high == np.inf:  # D may be flat for long
            new = max(new, 4.0 * gamma)
        gamma = new
    new = fit(group, theta, gamma) if abs(far - theta) > FINE * theta else gamma
    if abs(far - theta) <= accuracy * theta and new > 0.0 and new < np.inf:  # right unless an entry changes sides
        for i in range(group.first, group.stop):
            t = 1.0 / (1.0 + new * w[i])
            for a in range(work.rate.shape[0]):
                work.shift[a, i] += (t - kernel[SIZE, i]) * work.rate[a, i]
            kernel[SIZE, i] = t
        return new, trial, 1.0
    return gamma, trial, theta / far if far > theta else 1.0


@njit(**LEAN)
def _move(row, s, alpha, shift):
    """Turn d into e.

    reads   s, alpha, shift
    fills   row.d
    """
    d, p, scale = row.d, row.p, row.scale
    for j in range(d.size):
        centre = scale * p[j]
        e = (s * d[j] - alpha) - shift
        d[j] = e if e > -centre else -centre


@njit(**LEAN)
def write(group, theta, gamma, part):
    """Write the rows at the s_i of the work space, and a part of their move; see `drmdp.prox.sweep.sweep`.

    reads   theta, gamma, part
    fills   group.y, group.threshold
    returns γ
    """
    w, threshold, work = group.w, group.threshold, group.work
    A = work.rate.shape[0]
    far = 0.0
    for i in range(group.first, group.stop):
        size = part * work.kernel[SIZE, i]
        far += w[i] * size * size * work.kernel[STILL, i]
        for a in range(A):
            row, k = row_of(group, a, i), group.s * A + a
            if work.still[a]:
                if size < 1.0:
                    _shrink(row, size)
                continue
            _move(row, work.kernel[SIZE, i], threshold[k, i], work.shift[a, i])
            far += w[i] * restore(row, part)[1]
            threshold[k, i] += work.shift[a, i]
    far = math.sqrt(far)
    if far > theta * (1.0 + ROUNDING):
        pull_in(group, theta / far)
    return gamma


@njit(**LEAN)
def cold_guess(group, theta, each, before):
    """A multiplier to begin with; see `drmdp.prox.sweep.sweep`.

    reads   theta, each, before
    fills   group.threshold, group.work
    returns γ, or 0
    """
    if each or group.w.size == 1:
        return before
    alone = heaviest(group)
    guess = search(alone, math.sqrt(group.w[alone.first]) * theta, 0.0, ROUGH, False)[0]
    pass_on(group, alone.first)
    return guess


@njit(**KERNEL)
def project_states(start, stop, layout, push, y, memory, how, work):
    """Project in place the states start … stop − 1; `how.each` for order ∞.

    The multipliers, one a state or one a kernel, are found when the distance is θ up to the relative accuracy.

    reads   start, stop, layout, push, how
    fills   y (N·nnz,), memory, work
    """
    sweep(search, write, cold_guess, start, stop, Job(layout, push, y, memory, how, work), how.inside)


SHARED, EACH = Family(project_states, each=False), Family(project_states, each=True)
"""One budget for all kernels, and one for each."""
