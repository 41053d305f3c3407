"""ℓ2 rows of a ball of finite order: projection paths; see `drmdp.bellman.orders`.

At the multiplier κ_i the rows of kernel i are y_ia = Proj(ŷ_ia + κ_i x_a u_a), and λ_i = r_i/κ_i. A price asks for λ_i = μ (r_i/θ)^{p−1}. The sides cross
once: log λ_i − (p − 1) log r_i falls with log κ_i at the rate c = 1 + (p − 2) s, s = κ² Σ x_a² D_a/r² in [0, 1]. All kernels take Newton
steps at the same time, kept between the sides that they have seen.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.bellman.rows.l2 import SLOPE, SPENT, VALUE, visit_rows
from drmdp.core.compiled import INLINE, LEAN, njit

CLOSE = 1e-14  # of the mass of a row
LARGEST, LEAST = 1e14, 1e-16  # multipliers of a row
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
def respond(ball, x, mu):
    """Nature's answer at a price.

    reads   ball.rows, x (A,), mu (0: the saturated answer)
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
    floor, roof = LEAST / most, LARGEST / least
    for i in range(w.size):
        high[i] = roof
        kappa[i] = min(max(kappa[i], floor), roof) if kappa[i] > 0.0 else 1.0
        low[i] = floor if mu > 0.0 else roof
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
            over = math.log(kernels.price[i] / mu) - (ball.p - 1.0) * math.log(kernels.r[i] / ball.theta)
            settled = SETTLED * (1.0 + ball.p)
            if abs(over) <= settled + min(0.1 * settled / kernels.r[i], ROUGH):
                continue
            _bracket(kappa[i], over > 0.0, low, high, i)
            rate = 1.0 + (ball.p - 2.0) * min(kappa[i] * kappa[i] * slope / spent, 1.0)
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
