"""R_i of `drmdp.certificate.dense`, one function a set: bounds on what rows gain at prices that are handed over, in plain NumPy.

    f(ball, data, xz, top, mu, tau) -> value, size        R_i with what the budget costs, and Σ|terms|, (n, N) each

xz (n, A, 1, S) are x_a z_a, top (n, A) their largest; mu (n, N) ≥ 0 and tau (n, A, N) are multipliers and thresholds of any quality.

**Finite orders.** For prices λ_i of the distances d_i, Σ_i w_i λ_i d_i ≤ θ (Σ_i w_i λ_i^q)^{1/q}, q = p/(p − 1), by Hölder's inequality: p enters through that
norm alone. ℓ2 has a price μ of the squared distance, and λ = 2 μ r, r being the distance of the rows that attain the dual.

**Divergences.** With u = (x z − top)/unit ∈ [−1, 0] and t = unit/μ, R_i = Σ_a top_a + μ h(t), h(t) = max_z t z·u − C(z) ≤

    KL: log Σ ŷ e^{t u},      χ²: η + Σ ŷ g(t u − η), g(d) = d + ½ d² above −1 and −½ below,      Burg: e − 1 − Σ ŷ log(e − t u)

for every η, and every e > 0, or e = 0 where nothing is seen at the top.

**Rounding of h**, with n = S + 16 + 4 (S + N + 4) for sums and for ŷ, which may be a mean; exp, log and their kin are right up to 4 ε, relatively.

KL: up to t = 1, h = log(1 + s), s = Σ ŷ (e^{t u} − 1) ≥ 1/e − 1, is off by 3 n ε Σ|terms|; beyond, with T the largest stake seen,
h = t T + log Σ ŷ e^{t (u − T)}: the exponents are off by 2 ε t, so the log by (n + 2 t) ε + 2 ε |log|, t T by ε t, and terms that underflow by
2⁻¹⁰⁷³ each. χ²: d = t u − η is off by ε (t |u| + |η|), and g grows by at most 1 + |d| per unit. Burg: up to t = ½ it is f − Σ ŷ log(1 + x),
f = e − 1, x = f − t u, which is off by 2 ε (|f| + t |u|), and the log grows by 1/(1 + x) per unit; beyond it is taken as it stands, where the argument
is off by 2 ε, relatively.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.certificate.dense import Block
from drmdp.core.levels import EPS

Duals = Callable[[Any, Block, Array, Array, Array, Array], tuple[Array, Array]]


def l1(ball: Any, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """ℓ1."""
    floor = top[:, :, None] - 2 * mu[:, None, :]  # (n, A, N)
    best = np.maximum(xz, floor[..., None])
    budget = mu * data.radius[:, None]
    value = (data.nominal * best).sum(axis=(1, 3)) + budget
    size = (data.nominal * np.abs(best)).sum(axis=(1, 3)) + budget
    return value, size + 2 * (np.abs(top).sum(axis=1)[:, None] + mu)


def tv(ball: Any, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """Half the ℓ1 distance: a radius counts twice; rows may be a mean, which is off by 4 (S + N + 4) ε."""
    value, size = l1(ball, replace(data, radius=2.0 * data.radius), xz, top, 0.5 * mu, tau)
    return value + 4.0 * (xz.shape[3] + data.n_kernels + 4) * EPS * size, size


def l2(ball: Any, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """ℓ2."""
    played = np.broadcast_to(data.available[:, :, None], tau.shape)
    m = mu[:, None, :, None]
    d = xz - tau[..., None]
    moved = d / (2 * m)  # d² may underflow
    gain = np.where(data.nominal + moved > 0, d * (data.nominal + moved / 2), -m * data.nominal * data.nominal)
    gain = np.where(data.allowed[:, :, None, :], gain, 0.0)
    budget = mu * (data.radius * data.radius)[:, None]
    value = np.where(played, tau, 0.0).sum(axis=1) + gain.sum(axis=(1, 3)) + budget
    size = np.where(played, np.abs(tau), 0.0).sum(axis=1) + 2 * np.abs(gain).sum(axis=(1, 3)) + budget
    return value, size


def linf(ball: Any, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """ℓ∞."""
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


def of_order(metric: Duals, p: float) -> Duals:
    """A metric's for the order p: θ ‖λ‖ instead of what its rows pay for the budget."""

    def duals(ball: Any, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
        value, size = metric(ball, data, xz, top, mu, tau)
        price, paid = mu, mu * data.radius[:, None]
        if metric is l2:
            square = _squares(data, xz, mu, tau)
            price, paid = 2 * mu * np.sqrt(square), mu * (square + (data.radius * data.radius)[:, None])
        most = price.max(axis=1)
        part = np.divide(price, most[:, None], where=most[:, None] > 0, out=np.zeros_like(price))
        power = p / (p - 1) if p > 1 else np.inf
        total = part.max(axis=1) if power == np.inf else ((part**power) @ data.weights) ** (1 / power)
        norm = (data.radius * most * total)[:, None]
        return value - paid + norm, size + paid + 32 * norm

    return duals


def _squares(data: Block, xz: Array, mu: Array, tau: Array) -> Array:
    """Squared distances of the rows that attain the dual of ℓ2, (n, N)."""
    moved = np.maximum((xz - tau[..., None]) / (2 * mu[:, None, :, None]), -data.nominal)
    moved = np.where(data.allowed[:, :, None, :], moved, 0.0)
    return np.asarray((moved * moved).sum(axis=(1, 3)))


# ---------------------------------------------------------------------- divergences


Conjugate = Callable[[Array, Array, Array, float], Array]


def divergence(
    h: Conjugate, unit: float, ball: Any, data: Block, xz: Array, top: Array, mu: Array, tau: Array
) -> tuple[Array, Array]:
    """Those of a conjugate h(t, y, u, n), (R,), of rows y (R, S) with stakes u; `unit` is the budget in a unit of the radius."""
    n, A, N, S = data.nominal.shape
    allowed, available = np.broadcast_to(data.allowed[:, :, None, :], data.nominal.shape), data.available[:, :, None]
    below = np.where(allowed, xz - top[:, :, None, None], 0.0)
    span = np.maximum(-below.min(axis=3), 1e-300)  # (n, A, N)
    price = np.broadcast_to(mu[:, None, :] / unit, span.shape)
    usable = (price > 0) & (span / np.where(price > 0, price, 1.0) < 1e200)
    t = np.where(usable, span / np.where(usable, price, 1.0), 1.0).reshape(-1, 1)
    u = np.where(allowed, np.minimum(below / span[..., None], 0.0), -1.0).reshape(-1, S)
    y = np.where(allowed, data.nominal, 0.0).reshape(-1, S)  # what is not allowed is never seen, and no top
    found = h(t, y, u, 5.0 * S + 4.0 * data.n_kernels + 32.0).reshape(n, A, N)
    each = np.where(available, np.where(usable, price * found, np.inf), 0.0)
    paid = mu * data.radius[:, None]
    size = np.abs(each) + np.abs(top)[:, :, None] + 4 * np.where(available, span, 0.0)
    return each.sum(axis=1) + top.sum(axis=1)[:, None] + paid, size.sum(axis=1) + paid


def _kl(t: Array, y: Array, u: Array, n: float) -> Array:
    small = t <= 1.0
    top = np.where(small, 0.0, np.where(y > 0, u, -np.inf).max(axis=1, keepdims=True))
    power = np.where(y > 0, t * (u - top), 0.0)
    total = (y * np.where(small, np.expm1(power), np.exp(power))).sum(axis=1, keepdims=True)
    log = np.log(total + 2.0**-1072 * (y.shape[1] + 1))
    large = t * top + log + EPS * (n + 4.0 * t + 2.0 * np.abs(log))
    return np.asarray(np.where(small, np.log1p(total) - 3.0 * n * EPS * total, large))[:, 0]


def _chi2(t: Array, y: Array, u: Array, n: float) -> Array:
    eta = t * (y * u).sum(axis=1, keepdims=True)
    while True:  # it only grows, to where about as much is lost as is gained
        seen = np.where(1.0 + t * u > eta, y, 0.0)
        mass = seen.sum(axis=1, keepdims=True)
        new = t * ((seen * u).sum(axis=1, keepdims=True) / mass) + (1.0 - 1.0 / mass)
        if not (new > eta).any():
            break
        eta = np.where(new > eta, new, eta)
    d = t * u - eta
    g = np.where(d > -1.0, d + 0.5 * d * d, -0.5)
    off = n * np.abs(g) + np.where(d > -1.5, 1.0 + np.abs(d), 0.0) * 2.0 * (np.abs(t * u) + np.abs(eta))
    total, size = ((y * part).sum(axis=1) for part in (g, off))
    return np.asarray(eta[:, 0] + total + EPS * (4.0 * np.abs(eta[:, 0]) + size * (1.0 + n * EPS)))


def _burg(t: Array, y: Array, u: Array, n: float) -> Array:
    base, seen = np.where(t <= 0.5, 1.0, 0.0), y > 0
    f = _burg_threshold(t, base, y, u)
    x = np.where(seen, f - t * u, 1.0)
    log = np.where(base == 1.0, np.log1p(x), np.log(np.where(base == 1.0, 1.0, x)))
    moved = np.where(base == 1.0, 4.0 * (np.abs(f) - t * u) / (1.0 + x), 4.0)
    total, size = ((y * part).sum(axis=1) for part in (log, n * np.abs(log) + moved))
    rest = (np.abs(f) + 1.0 - base)[:, 0]
    return np.asarray((f - (1.0 - base))[:, 0] - total + EPS * (4.0 * rest + size * (1.0 + n * EPS)))


def _burg_threshold(t: Array, base: Array, y: Array, u: Array) -> Array:
    """f = e − base at which Σ ŷ/(e − t u) is about 1, from the left by Newton's method for 1/Σ, which is concave; e = 0 where that is less at 0."""

    def excess(f: Array) -> tuple[Array, Array]:
        x = np.where(y > 0, f - t * u, 1.0)
        d = base + x
        total = (y * (np.where(base == 0.0, 1.0, -x) / d)).sum(axis=1, keepdims=True)
        return total - (1.0 - base), (y / d / d).sum(axis=1, keepdims=True)

    low, top = (part.sum(axis=1, keepdims=True) for part in (y * u, np.where(u == 0.0, y, 0.0)))
    f = np.maximum(np.maximum(1.0 - base + t * low, top - base), -base)
    still = (top <= 0.0) & (f <= -base) & ~(excess(-base)[0] > 0.0)
    f = np.where(top > 0.0, f, np.maximum(f, 1e-300 - base))
    for _ in range(200):
        off, fall = excess(f)
        new = f + (1.0 + off) * off / fall
        if not (new > f).any():
            break
        f = np.where(new > f, new, f)
    return np.asarray(np.where(still, -base, f))


KL, CHI2, BURG = (partial(divergence, h, unit) for h, unit in ((_kl, 1.0), (_chi2, 0.5), (_burg, 1.0)))
