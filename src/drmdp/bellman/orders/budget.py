"""Nature's answer to a policy: one multiplier μ for the budget Σ_i w_i (r_i/θ)ᵖ ≤ 1; see `drmdp.bellman.orders`.

The distance b = (Σ_i w_i ρ_iᵖ)^{1/p} of an answer, in units of θ, falls with μ. No power of it is needed but in a tangent, so that p may be as large as it
likes. μ is kept between a price at which b > 1, at first 0, and one at which b ≤ 1. Trials take turns: where the tangents of the dual
d(μ) = Σ_i w_i [φ_i(r_i) − μ θ ρ_iᵖ/p] + μ θ/p cross, which ends after finitely many where r jumps; where the secant of log b over log μ says, which is nearly
right where r is smooth; and the middle, where both shrink the bracket too slowly.

An answer with b > 1 is pulled back to 1/b of itself, or mixed with the one on the other side such that the mixture of both distances is 1. Both are points,
and their gains at least the mixture of the gains. The search ends when U is as near as `tol` to one of them.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.bellman.orders import l1, l2, linf
from drmdp.bellman.orders.ball import L1, L2
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.sorting import copy

TRIALS = 200
NEXT = 8.0  # steps of μ before there is a bracket
LIFT = 1e-7
"""Probability of actions that are not played where nature has budget to spare."""


@njit(**LEAN)
def norm_of(power, each, w):
    """(Σ_i w_i each_i^power)^{1/power}; max each_i for power ∞.

    reads   power, each (N,) ≥ 0, w (N,)
    returns it
    """
    most, total = 0.0, 0.0
    for i in range(w.size):
        most = max(most, each[i])
    if not most > 0.0 or power == np.inf:
        return most
    for i in range(w.size):
        total += w[i] * (each[i] / most) ** power
    return most * total ** (1.0 / power)


@njit(**LEAN)
def _respond(ball, x, mu):
    """Nature's answer at a price.

    reads   ball, x (A,), mu
    fills   ball
    returns Σ_i w_i φ_i, b, and U − Σ_a x_a (cost_a + V⁰_a)
    """
    if ball.metric == L1:
        value = l1.respond(ball, mu)
    elif ball.metric == L2:
        value = l2.respond(ball, x, mu, 0.0)
    else:
        value = linf.respond(ball, x, mu)
    kernels, w, spent = ball.kernels, ball.rows.w, 0.0
    for i in range(w.size):
        spent += w[i] * kernels.price[i] * kernels.r[i]
    paid = ball.theta * norm_of(ball.p / (ball.p - 1.0) if ball.p > 1.0 else np.inf, kernels.price, w)
    return value, norm_of(ball.p, kernels.r, w) / ball.theta, value - spent + paid


@njit(**INLINE)
def _write(ball, side):
    """Write down the last answer.

    reads   ball, side (0 or 1)
    fills   ball.points
    """
    amounts, gain = ball.points.amounts[side], ball.points.gain[side]
    if ball.metric == L1:
        l1.write(ball, amounts, gain)
    elif ball.metric == L2:
        l2.write(ball, amounts, gain)
    else:
        copy(ball.kernels.r, amounts[0])
        linf.gains(ball, amounts[0], gain)


@njit(**INLINE)
def _next(mu, low, high, turn, ball):
    """Where to look next.

    reads   mu (the last trial), low and high: μ, φ, b of the sides, and the weight of log b; turn, ball: p, theta
    returns μ
    """
    if not high[0] < np.inf:
        return NEXT * mu
    new = np.nan
    if turn == 0 and low[0] > 0.0 and high[2] > 0.0:
        left, right = math.log(low[2]) * low[3], math.log(high[2]) * high[3]
        new = low[0] * math.exp(math.log(high[0] / low[0]) * left / (left - right))
    elif turn <= 1:
        left, right = ball.theta * (1.0 - low[2] ** ball.p) / ball.p, ball.theta * (1.0 - high[2] ** ball.p) / ball.p
        new = (high[1] - low[1]) / (left - right)
    if not (new > low[0] and new < high[0]):
        new = math.sqrt(low[0] * high[0]) if low[0] > 0.0 else high[0] / NEXT
    return new


@njit(**LEAN)
def _seek(ball, x, tau, tol, keep):
    """Find μ.

    reads   ball (prepared), x (A,), tau (a guess, 0 for none), tol, keep (whether U shall be explained)
    fills   ball: kernels.claim, what explains U; points: the answers on both sides
    returns U − Σ_a x_a (cost_a + V⁰_a), μ, and the shares of both answers in nature's point
    """
    kernels = ball.kernels
    claim = kernels.kappa if ball.metric == L2 else kernels.price
    value, far, upper = _respond(ball, x, 0.0)
    _write(ball, 0)
    if keep:
        copy(kernels.bracket[0] if ball.metric == L2 else kernels.price, kernels.claim)
    if far <= 1.0:
        return value, np.inf, 1.0, 0.0
    low, high = (0.0, value, far, 1.0), (np.inf, 0.0, 0.0, 1.0)
    mu = tau if tau > 0.0 and tau < np.inf else 2.0 * value / (ball.theta * far)
    best, at, width = np.inf, mu, np.inf
    for trial in range(TRIALS):
        value, far, upper = _respond(ball, x, mu)
        _write(ball, 0 if far > 1.0 else 1)
        if upper < best:
            best, at = upper, mu
            if keep:
                copy(claim, kernels.claim)
        if far > 1.0:
            stale = trial > 0 and low[3] == 1.0 and low[0] > 0.0  # Illinois: no end may stay for long
            low, high = (mu, value, far, 1.0), (high[0], high[1], high[2], 0.5 * high[3] if stale else high[3])
        else:
            stale = trial > 0 and high[3] == 1.0 and high[0] < np.inf
            low, high = (low[0], low[1], low[2], 0.5 * low[3] if stale else low[3]), (mu, value, far, 1.0)
        found, first, second = _inside(low, high)
        if best - found <= tol or (high[0] < np.inf and high[0] - low[0] <= 4e-16 * high[0]):
            break
        turn = trial % 3
        if turn == 2:
            turn = 0 if high[0] - low[0] <= 0.25 * width else 2
            width = high[0] - low[0]
        mu = _next(mu, low, high, turn, ball)
    return best, at, first, second


@njit(**INLINE)
def _inside(low, high):
    """The best of three points: the answer beyond the budget pulled back, the one within it, and both mixed.

    reads   low and high: μ, φ, b of the sides
    returns its φ, and the shares of both sides
    """
    found, first, second = low[1] / low[2], 1.0 / low[2], 0.0
    if high[0] < np.inf:
        part = (1.0 - high[2]) / (low[2] - high[2])
        mixed = (1.0 - part) * high[1] + part * low[1]
        if mixed > found:
            found, first, second = mixed, part, 1.0 - part
    return found, first, second


@njit(**INLINE)
def _mix(ball, first, second, q, gain):
    """Mix both answers.

    reads   ball: head, points; first, second (their shares)
    fills   q (M,), gain (A,): cost included
    """
    amounts, gains = ball.points.amounts, ball.points.gain
    N = ball.rows.w.size
    for m in range(q.size):
        q[m] = first * amounts[0, m // N, m % N] + (second * amounts[1, m // N, m % N] if second > 0.0 else 0.0)
    for a in range(gain.size):
        gain[a] = ball.head[a]
        if ball.live[a]:
            gain[a] += first * gains[0, a] + (second * gains[1, a] if second > 0.0 else 0.0)


def answered(ball, n, x, tau, tol, q, gain):
    """Nature's answer to a policy; see `drmdp.bellman.mixing.game`.

    Where she has budget to spare, her answer is one to a policy that plays every action a little: as good against x, and better against the others.
    """
    base, idle, lifted = 0.0, False, ball.points.lifted
    for a in range(n):
        base += x[a] * ball.head[a] if x[a] > 0.0 else 0.0
        lifted[a] = max(x[a], LIFT) if ball.live[a] else 0.0
        idle = idle or (ball.live[a] and not x[a] > 0.0)
    if ball.metric == L1:
        l1.prepare(ball, x)
    upper, mu, first, second = _seek(ball, x, tau, tol, True)
    if mu == np.inf and idle:
        if ball.metric == L1:
            l1.prepare(ball, lifted)
        _, _, first, second = _seek(ball, lifted, 0.0, 1e-3 * tol, False)
    _mix(ball, first, second, q, gain)
    return base + upper, mu


def gained(ball, n, q, gain):
    """Gains of a point; see `drmdp.bellman.mixing.game`."""
    amounts, N = ball.points.amounts[0], ball.rows.w.size
    for m in range(q.size):
        amounts[m // N, m % N] = q[m]
    if ball.metric == L1:
        l1.gains(ball, amounts, gain)
    elif ball.metric == L2:
        l2.reach(ball, amounts, gain)
    else:
        linf.gains(ball, amounts[0], gain)
    least = np.inf
    for a in range(n):
        gain[a] += ball.head[a]
        least = min(least, gain[a])
    return least
