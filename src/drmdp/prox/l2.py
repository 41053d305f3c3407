"""Proximal maps of the ℓ2 balls: all kernels share one budget (order 2), or each has its own (order ∞).

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
from numba import njit

from drmdp.layout.layout import FAST, row_scales
from drmdp.prox.displacement import (
    LARGE,
    MISLED,
    ROUGH,
    ROUNDING,
    Family,
    displace,
    make_work,
    pass_on,
    pull_in,
    reset,
    restore,
)

TRIALS = 200
PASSES = 1000
NEAR = 4.0  # times θ²: up to here the bound says little, and the search starts at γ = 0
SIZE, MOVED, REST, STILL = range(4)
"""By kernel: s_i, V_i and F_i, and the part of V_i that comes from rows already in the simplex: there α = 0 and y = ŷ + s d."""
FINE = 1e-12  # relative distance from θ that is not worth another step
SAFE = 12  # trials after which the bracket is halved now and then


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def row_sums(d, p, scale, s, alpha):  # type: ignore[no-untyped-def]
    """c, Σ e, Σ e² over the active entries, and m, q."""
    c = 0.0
    e1 = 0.0
    e2 = 0.0
    m = 0.0
    q = 0.0
    for j in range(d.size):
        own = scale * p[j]
        e = s * d[j] - alpha
        on = 1.0 if e > -own else 0.0
        off = own - on * own
        x = on * e
        c += on
        e1 += x
        e2 += x * x
        m += off
        q += off * own
    return c, e1, e2, m, q


@njit(cache=True, nogil=True, error_model="numpy")
def solve_row(d, p, scale, s, alpha, least):  # type: ignore[no-untyped-def]
    """α from a guess and a lower bound, and what it lacks; s² v, m²/c + q and dα/ds."""
    last, last_rest = -1.0, -1.0
    alpha = max(alpha, least)
    for _ in range(PASSES):
        if abs(alpha) < LARGE:
            c, e1, e2, m, q = row_sums(d, p, scale, s, alpha)
        else:
            c, e1, e2, m, q = row_sums(s * d - alpha, p, scale, 1.0, 0.0)
        rest = e1 - m
        if c == 0.0:
            most = -np.inf
            for j in range(d.size):
                most = max(most, s * d[j] + scale * p[j])
            alpha, last = min(most, alpha) - 1.0, -1.0
            continue
        if abs(rest) <= ROUNDING * (m + c * abs(alpha)) or c == last or (last > 0.0 and last_rest >= 0.0 and c > last):
            break
        alpha = max(alpha + rest / c, least)
        last, last_rest = c, rest
    return alpha, rest / c, max(e2 - e1 * e1 / c, 0.0), m * m / c + q, (alpha + e1 / c) / s


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _square(y, p, scale):  # type: ignore[no-untyped-def]
    """‖y − ŷ‖²."""
    total = 0.0
    for j in range(y.size):
        e = y[j] - scale * p[j]
        total += e * e
    return total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _shrink(y, p, scale, part):  # type: ignore[no-untyped-def]
    """Replace y by ŷ + part·(y − ŷ)."""
    for j in range(y.size):
        own = scale * p[j]
        y[j] = own + part * (y[j] - own)


@njit(cache=True, nogil=True, error_model="numpy")
def fit(first, stop, w, kernel, theta, gamma):  # type: ignore[no-untyped-def]
    """γ ≥ 0 with D(γ) = θ² for the V and F at hand, from a guess; inf if F alone is too much."""
    V, F = kernel[MOVED], kernel[REST]
    goal = theta * theta
    at_zero = 0.0
    for i in range(first, stop):
        goal -= w[i] * F[i]
        at_zero += w[i] * V[i]
    if goal <= 0.0:
        return np.inf
    if at_zero <= goal:
        return 0.0
    for _ in range(60):  # Newton on D^(−1/2), which is linear in γ if the weights are equal
        level = 0.0
        slope = 0.0
        for i in range(first, stop):
            s = 1.0 / (1.0 + gamma * w[i])
            level += w[i] * V[i] * s * s
            slope += 2.0 * w[i] * w[i] * V[i] * s * s * s
        move = 2.0 * level * (math.sqrt(level / goal) - 1.0) / slope
        gamma = max(gamma + move, 0.0)
        if not abs(move) > 1e-14 * gamma:
            break
    return gamma


@njit(cache=True, nogil=True, error_model="numpy")
def distance(layout, s, y, first, stop, w, gamma, threshold, work):  # type: ignore[no-untyped-def]
    """Try γ on the kernels first … stop − 1: √D(γ), and what it depends on."""
    N, A = layout.weights.size, layout.available.shape[1]
    size, V, F = work.kernel[SIZE], work.kernel[MOVED], work.kernel[REST]
    total = 0.0
    for i in range(first, stop):
        t = 1.0 / (1.0 + gamma * w[i])
        V[i] = work.kernel[STILL, i]
        F[i] = 0.0
        square = t * t * V[i]
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if work.still[a]:
                continue
            K = hi - lo
            e = N * lo + i * K
            least = max(t * work.level[a, i], t * work.peak[a, i] - 1.0)  # all entries active, or one
            guess = threshold[s * A + a, i] + work.shift[a, i] + (t - size[i]) * work.rate[a, i]
            guess = least if threshold[s * A + a, i] == 0.0 else guess
            threshold[s * A + a, i], work.shift[a, i], moved, rest, work.rate[a, i] = solve_row(
                y[e : e + K], layout.data[e : e + K], work.scale[a, i], t, guess, least
            )
            V[i] += moved / (t * t)
            F[i] += rest
            square += moved + rest
        size[i] = t
        total += w[i] * square
    return math.sqrt(total)


@njit(cache=True, nogil=True, error_model="numpy")
def search(layout, s, y, first, stop, w, theta, guess, accuracy, doubt, threshold, work):  # type: ignore[no-untyped-def]
    """Multiplier of the kernels first … stop − 1, trials, and the part of the move that is surely in the ball; −1 for a guess in doubt that leads far off."""
    N, A = layout.weights.size, layout.available.shape[1]
    gamma = guess
    heaviest = 0.0
    bound = 0.0
    kernel = work.kernel
    work.rate[:, first:stop] = 0.0
    work.shift[:, first:stop] = 0.0
    for i in range(first, stop):
        heaviest = max(heaviest, w[i])
        kernel[SIZE, i], kernel[REST, i], kernel[STILL, i] = 1.0 / (1.0 + guess * w[i]), 0.0, 0.0
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if work.still[a] and hi > lo:
                e = N * lo + i * (hi - lo)
                kernel[STILL, i] += _square(y[e : e + hi - lo], layout.data[e : e + hi - lo], work.scale[a, i])
        kernel[MOVED, i] = work.spread[i] + kernel[STILL, i]
        bound += w[i] * kernel[MOVED, i]
    if not guess > 0.0:
        gamma = fit(first, stop, w, kernel, theta, 0.0) if bound > NEAR * theta * theta else 0.0
    low, high = -1.0, np.inf
    far = theta
    for trial in range(1, TRIALS + 1):
        far = distance(layout, s, y, first, stop, w, gamma, threshold, work)
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
        new = fit(first, stop, w, work.kernel, theta, gamma)
        if not (new > low and new < high):
            new = max(((1.0 + gamma * heaviest) * far / theta - 1.0) / heaviest, 0.0)
        if not (new > low and new < high) or (trial > SAFE and trial % 3 == 0 and high < np.inf):
            new = math.sqrt(low * high) if low > 0.0 else 0.5 * high
        if trial > SAFE and high == np.inf:  # D may be flat for long
            new = max(new, 4.0 * gamma)
        gamma = new
    new = fit(first, stop, w, kernel, theta, gamma) if abs(far - theta) > FINE * theta else gamma
    if abs(far - theta) <= accuracy * theta and new > 0.0 and new < np.inf:  # right unless an entry changes sides
        for i in range(first, stop):
            t = 1.0 / (1.0 + new * w[i])
            work.shift[:, i] += (t - kernel[SIZE, i]) * work.rate[:, i]
            kernel[SIZE, i] = t
        return new, trial, 1.0
    return gamma, trial, theta / far if far > theta else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _move(d, p, scale, s, alpha, shift):  # type: ignore[no-untyped-def]
    """Turn d into e."""
    for j in range(d.size):
        own = scale * p[j]
        e = (s * d[j] - alpha) - shift
        d[j] = e if e > -own else -own


@njit(cache=True, nogil=True, error_model="numpy")
def write(layout, s, y, first, stop, w, theta, part, threshold, work):  # type: ignore[no-untyped-def]
    """The rows of the kernels first … stop − 1, and a part of their move."""
    N, A = layout.weights.size, layout.available.shape[1]
    far = 0.0
    for i in range(first, stop):
        size = part * work.kernel[SIZE, i]
        far += w[i] * size * size * work.kernel[STILL, i]
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            e = N * lo + i * (hi - lo)
            row, p, scale = y[e : e + hi - lo], layout.data[e : e + hi - lo], work.scale[a, i]
            if work.still[a]:
                if size < 1.0:
                    _shrink(row, p, scale, size)
                continue
            _move(row, p, scale, work.kernel[SIZE, i], threshold[s * A + a, i], work.shift[a, i])
            far += w[i] * restore(row, p, scale, part)[1]
            threshold[s * A + a, i] += work.shift[a, i]
    far = math.sqrt(far)
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
        displace(layout, s, y, step, value, memory, work, inside)
        for g in range(N if each else 1):
            first, end = (g, g + 1) if each else (0, N)
            w = one if each else layout.weights
            guess, tried = memory.multiplier[s, g], 0
            gamma, part = -1.0, 0.0
            if guess > 0.0:
                gamma, tried, part = search(
                    layout, s, y, first, end, w, theta, guess, accuracy, True, memory.threshold, work
                )
            if gamma < 0.0:
                guess = 0.0
                if each and g > 0:
                    guess = memory.multiplier[s, g - 1]
                    pass_on(s * A, A, g - 1, g, g + 1, memory.threshold)
                elif N > 1 and not each:
                    goal = math.sqrt(layout.weights[k]) * theta
                    guess = search(layout, s, y, k, k + 1, w, goal, 0.0, ROUGH, False, memory.threshold, work)[0]
                    pass_on(s * A, A, k, 0, N, memory.threshold)
                gamma, more, part = search(
                    layout, s, y, first, end, w, theta, guess, accuracy, False, memory.threshold, work
                )
                tried = tried + more if gamma > 0.0 else 0
            memory.trials[s, g] = tried
            memory.multiplier[s, g] = gamma
            write(layout, s, y, first, end, w, theta, part, memory.threshold, work)


SHARED, EACH = Family(project_states, each=False), Family(project_states, each=True)
"""One budget for all kernels, and one for each."""
