"""ℓ∞ rows of a ball of finite order: one radius for all actions of a kernel; see `drmdp.bellman.orders`.

φ_i(r) = Σ_a x_a g_ia(r) is concave and piecewise linear; its segments are those of the tables of the played actions. The radius of a price is walked to from
the last one: it is inside a segment of slope σ, λ = σ and r = θ (σ/μ)^{1/(p−1)}, or at a kink, and λ = μ (r/θ)^{p−1}.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.orders.ball import price_of
from drmdp.bellman.piecewise.budget_per_kernel import Priced, gain_at
from drmdp.bellman.piecewise.budget_shared import left_of, right_of, settle
from drmdp.core.compiled import INLINE, LEAN, njit

LONG = 1_000_000  # more segments than any walk can meet


@njit(**INLINE)
def _radius(priced, i, mu, p, theta, r, segment):
    """Maximise φ_i(r) − μ θ (r/θ)ᵖ/p from r on.

    reads   priced, i, mu, p, theta, r (a guess)
    fills   segment[:, i]
    returns r, λ, and whether r is inside a segment
    """
    settle(priced, i, r, segment)
    for _ in range(LONG):
        slope, end = right_of(priced, i, segment)
        price = price_of(mu, r / theta, p)
        if slope > price:
            if p > 1.0 and mu > 0.0:
                new = theta * (slope / mu) ** (1.0 / (p - 1.0))
                if new < end:
                    r = max(new, r)
                    settle(priced, i, r, segment)
                    return r, slope, True
            r = end
            settle(priced, i, r, segment)
            continue
        if r <= 0.0:
            return 0.0, price, False
        slope, begin = left_of(priced, i, r, segment)
        if slope >= price:
            return r, price, False
        if p > 1.0:
            new = theta * (slope / mu) ** (1.0 / (p - 1.0))
            if new > begin:
                r = min(new, r)
                settle(priced, i, r, segment)
                return r, slope, True
        r = begin
        settle(priced, i, r, segment)
    return r, price_of(mu, r / theta, p), False


@njit(**LEAN)
def respond(ball, x, mu):
    """Nature's answer at a price.

    reads   ball.profiles, x (A,), mu
    fills   ball.kernels: r, a guess before, price, free; ball.profiles.segment
    returns Σ_i w_i φ_i(r_i)
    """
    kernels, w, profiles = ball.kernels, ball.rows.w, ball.profiles
    priced = Priced(profiles.tables, np.int64(x.size), 0.0, x)
    total = 0.0
    for i in range(w.size):
        kernels.r[i], kernels.price[i], inside = _radius(
            priced, i, mu, ball.p, ball.theta, kernels.r[i], profiles.segment
        )
        kernels.free[i] = 0 if inside else -1
        for a in range(x.size):
            if x[a] > 0.0:
                total += w[i] * x[a] * gain_at(profiles.tables, a, i, kernels.r[i], profiles.segment[a, i])
    return total


@njit(**LEAN)
def gains(ball, radius, gain):
    """What radii gain.

    reads   ball.profiles, radius (N,)
    fills   gain (A,): above the nominal values
    """
    w, profiles = ball.rows.w, ball.profiles
    for a in range(gain.size):
        gain[a] = 0.0
        if ball.live[a]:
            for i in range(w.size):
                gain[a] += w[i] * gain_at(profiles.tables, a, i, radius[i], profiles.segment[a, i])
