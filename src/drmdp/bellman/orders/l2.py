"""ℓ2 rows of a ball of finite order: projection paths; see `drmdp.bellman.orders`.

At the multiplier κ_i the rows of kernel i are y_ia = Proj(ŷ_ia + κ_i x_a u_a), and λ_i = r_i/κ_i. A price asks for λ_i = μ (r_i/θ)^{p−1}. The sides cross
once: log λ_i − (p − 1) log r_i falls with log κ_i at the rate c = 1 + (p − 2) s, s = κ² Σ x_a² D_a/r² in [0, 1]. All kernels take Newton
steps at the same time, kept between the sides that they have seen. With σ > 0 a price asks for λ_i + σ/r_i, whose rate is c + (2 s − 1) q, q the part of σ/r_i.
For p = 1 a kernel stays where its first price √Σ_a x_a² D_a(0) is no more than μ; no multiplier is small enough to tell, for rounding.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.bellman.rows.l2 import SLOPE, SPENT, VALUE, visit_rows
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.sorting import count_above

CLOSE = 1e-14  # of the mass of a row
LARGEST, LEAST = 1e14, 1e-16  # multipliers of a row
HIDDEN = 1e-8  # where rounding takes half of the digits of a distance
TRIALS = 100
FLAT = 1e-12  # rates below this are none
SETTLED, ROUGH = 2e-15, 1e-8  # of a price, relatively; where a kernel moves little, rounding hides more


@njit(**INLINE)
def _look(ball, i):
    """Distance and slope of kernel i after a pass.

    reads   ball.paths
    returns r² and Σ_a x_a² D_a
    """
    share, rows = ball.paths.share, ball.paths.rows
    spent, slope = 0.0, 0.0
    for a in range(share.size):
        if share[a] > 0.0:
            spent += rows[a, SPENT, i]
            slope += share[a] * share[a] * rows[a, SLOPE, i]
    return spent, slope


@njit(**LEAN)
def first_slopes(state, a, first):
    """D of the rows of an action before anything is clipped: where ŷ is 0, entries above the mean of the active ones are active.

    reads   state, a
    fills   first (N,)
    """
    lo, K, u, order = state.ptr[a], state.ptr[a + 1] - state.ptr[a], state.u, state.order
    for i in range(first.size):
        mean, c, total, squares = -2.0, 0.0, 0.0, 0.0
        while True:
            k = count_above(order, 1.0, mean) if state.unlisted else 0
            c, total, squares = float(k), order.sum1[k] if k > 0 else 0.0, order.sum2[k] if k > 0 else 0.0
            for j in range(lo, lo + K):
                held = state.y[state.w.size * lo + i * K + j - lo] > 0.0
                if (held or u[j] > mean) and not (state.unlisted and u[j] > mean):
                    c += 1.0
                    total += u[j]
                    squares += u[j] * u[j]
            if not total / c > mean:
                break
            mean = total / c
        first[i] = max(squares - total * total / c, 0.0)


@njit(**INLINE)
def _first(ball, i):
    """The price at which kernel i begins to move.

    reads   ball.paths: first, share
    returns it
    """
    paths, total = ball.paths, 0.0
    for a in range(paths.share.size):
        total += paths.share[a] * paths.share[a] * paths.first[a, i] if paths.share[a] > 0.0 else 0.0
    return math.sqrt(total)


@njit(**INLINE)
def _bracket(kappa, below, low, high, i):
    """Note on which side of the answer a multiplier is.

    reads   kappa, below, i
    fills   low, high
    """
    if below:
        low[i] = max(kappa, low[i])
    else:
        high[i] = min(kappa, high[i])


@njit(**INLINE)
def _moved(kappa, i, new):
    """Take a new multiplier.

    reads   i, new
    fills   kappa
    returns whether it is another one
    """
    other = new != kappa[i]
    kappa[i] = new
    return other


@njit(**LEAN)
def respond(ball, x, mu, sigma):
    """Nature's answer at a price.

    reads   ball.rows, x (A,), mu (0: the saturated answer), sigma
    fills   ball.kernels: kappa, a guess before, which the saturated answer leaves as it is and puts into bracket[0], r, price; ball.paths
    returns Σ_i w_i φ_i(r_i)
    """
    kernels, paths, state = ball.kernels, ball.paths, ball.rows
    kappa, low, high, w = kernels.kappa, kernels.bracket[0], kernels.bracket[1], state.w
    least, most, A = np.inf, 0.0, x.size
    for a in range(A):
        paths.share[a] = x[a] if ball.live[a] else 0.0
        if paths.share[a] > 0.0:
            least, most = min(least, x[a]), max(most, x[a])
    floor, roof, sharp = LEAST / most, LARGEST / least, ball.p == 1.0 and mu > 0.0 and not sigma > 0.0
    for i in range(w.size):
        high[i] = roof
        kappa[i] = min(max(kappa[i], floor), roof) if kappa[i] > 0.0 else 1.0
        low[i] = floor if mu > 0.0 else roof
        if sharp and _first(ball, i) <= mu:
            kappa[i], high[i] = floor, floor
        elif sharp and kappa[i] < HIDDEN / most:
            kappa[i] = 1.0  # it moves, which rounding hides down there
    if not mu > 0.0:
        kappa = low
    for trial in range(TRIALS):
        visit_rows(state, np.int64(0), A, paths.share, kappa, CLOSE, paths.tau, paths.rows, paths.off)
        moving = False
        for i in range(w.size):
            spent, slope = _look(ball, i)
            kernels.r[i] = math.sqrt(spent)
            kernels.price[i] = kernels.r[i] / kappa[i]
            if not mu > 0.0 or not spent > 0.0 or not high[i] > low[i] * (1.0 + SETTLED) or trial == TRIALS - 1:
                continue
            lift = sigma / kernels.r[i]
            asked = kernels.price[i] + lift
            over = math.log(asked / mu) - (ball.p - 1.0) * math.log(kernels.r[i] / ball.theta)
            settled = SETTLED * (1.0 + ball.p)
            if abs(over) <= settled + min(0.1 * settled / kernels.r[i], ROUGH):
                continue
            _bracket(kappa[i], over > 0.0, low, high, i)
            part = min(kappa[i] * kappa[i] * slope / spent, 1.0)
            rate = 1.0 + (ball.p - 2.0) * part + lift / asked * (2.0 * part - 1.0)
            new = kappa[i] * math.exp(min(max(over / max(rate, FLAT), -20.0), 20.0))
            if not (new > low[i] and new < high[i]):
                wide = high[i] > 1e4 * low[i]
                new = math.sqrt(low[i] * high[i])
                if wide and low[i] == floor:
                    new = max(new, 1e-2 * high[i])
                elif wide and high[i] == roof:
                    new = min(new, 1e2 * low[i])
            moving = _moved(kappa, i, new) or moving
        if not moving:
            break
    for i in range(w.size):
        if sharp and high[i] == floor:
            kernels.r[i], kernels.price[i] = 0.0, _first(ball, i)
    total = 0.0
    for a in range(A):
        if paths.share[a] > 0.0:
            value = -state.nominal[a]
            for i in range(w.size):
                value += w[i] * paths.rows[a, VALUE, i]
            total += x[a] * value
    return total


@njit(**LEAN)
def write(ball, amounts, gain):
    """Write down the answer.

    reads   ball.paths
    fills   amounts (A, N): distances; gain (A,): above the nominal values
    """
    paths, state = ball.paths, ball.rows
    for a in range(gain.size):
        gain[a] = 0.0
        for i in range(state.w.size):
            amounts[a, i] = 0.0
        if paths.share[a] > 0.0:
            gain[a] = -state.nominal[a]
            for i in range(state.w.size):
                amounts[a, i] = math.sqrt(paths.rows[a, SPENT, i])
                gain[a] += state.w[i] * paths.rows[a, VALUE, i]


@njit(**LEAN)
def reach(ball, amounts, gain):
    """Find the multipliers of rows that go as far as the amounts, row by row, and what they gain.

    reads   ball.rows, amounts (A, N): distances
    fills   amounts: multipliers, 0 where a row stays; gain (A,): above the nominal values; ball.kernels, ball.paths
    """
    paths, state, kernels = ball.paths, ball.rows, ball.kernels
    kappa, low, high, w = kernels.kappa, kernels.bracket[0], kernels.bracket[1], state.w
    for a in range(gain.size):
        gain[a] = 0.0
        paths.share[a] = 0.0
        some = False
        for i in range(w.size):
            some = some or amounts[a, i] > 0.0
            low[i], high[i], kappa[i] = LEAST, LARGEST, 1.0
        if not (ball.live[a] and some):
            for i in range(w.size):
                amounts[a, i] = 0.0
            continue
        paths.share[a] = 1.0
        for trial in range(TRIALS):
            visit_rows(state, np.int64(a), a + 1, paths.share, kappa, CLOSE, paths.tau, paths.rows, paths.off)
            moving = False
            for i in range(w.size):
                far = math.sqrt(paths.rows[a, SPENT, i])
                off = far - amounts[a, i]
                if not amounts[a, i] > 0.0 or abs(off) <= 4e-16 * far or not high[i] > low[i] * (1.0 + SETTLED):
                    continue
                if trial == TRIALS - 1:
                    break
                _bracket(kappa[i], off < 0.0, low, high, i)
                slope = kappa[i] * paths.rows[a, SLOPE, i] / far if far > 0.0 else 0.0
                new = kappa[i] - off / slope if slope > 0.0 else np.inf
                if not (new > low[i] and new < high[i]):
                    new = math.sqrt(low[i] * high[i])
                moving = _moved(kappa, i, new) or moving
            if not moving:
                break
        gain[a] = -state.nominal[a]
        for i in range(w.size):
            bent = amounts[a, i] > 0.0
            amounts[a, i] = kappa[i] if bent else 0.0
            gain[a] += w[i] * (paths.rows[a, VALUE, i] if bent else _still(state, a, i))
        paths.share[a] = 0.0


@njit(**INLINE)
def _still(state, a, i):
    """ŷ·u of a row.

    reads   state, a, i
    returns it
    """
    lo, hi, total = state.ptr[a], state.ptr[a + 1], 0.0
    for j in range(hi - lo):
        total += state.y[state.w.size * lo + i * (hi - lo) + j] * state.u[lo + j]
    return total * state.scale[a, i]
