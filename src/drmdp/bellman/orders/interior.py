"""The saddle point of ℓ2 balls of order p ≤ 2, where nature's answers jump, or nearly: an interior-point method; see `drmdp.bellman.orders`.

    min Ψ(x, μ),   Ψ = μ θ/p + Σ_a x_a (cost_a + V⁰_a) + Σ_i w_i max_r [φ_i(r) − μ θ ρᵖ/p + σ log r] − σ Σ_a log x_a − σ log μ,        Σ_a x_a = 1,

ρ = r/θ, is convex, smooth for σ > 0, and min f for σ → 0. Its conditions are, with c_i = ρ_i^{p−1} and b = Σ_i w_i r_i c_i/p,

    cost_a + V⁰_a + gain_a = γ + s_a,    λ_i + ν_i = μ c_i,    b + ω = θ/p,        x_a s_a = ν_i r_i = μ ω = σ.

Newton's method takes all of them for unknowns, x, μ, γ, s, ν, ω and the multipliers κ of `l2`, whatever actions and kernels count in the end. With D, g and
Q = Σ_a x_a g_a as in `curvature`, η_i = ν_i + (p − 1) μ c_i, and

    M_i = η_i Q_i/r_i + (r_i²/κ_i² − Q_i)/κ_i,

which is positive, as r_i ≥ κ_i √Q_i, also where all rows are clipped and Q_i = 0, what is left of them are x, μ and γ, with the matrix

    Σ_i w_i [κ_i diag(D_i) + (1 − κ_i η_i/r_i)/M_i g_i g_iᵀ] + diag(s/x),        −Σ_i w_i c_i r_i/(κ_i M_i) g_i,        Σ_i w_i c_i² Q_i/M_i + ω/μ.

Active sets of rows change on the way, and steps may go to and fro between two of them. A step is shortened until it leaves less of the residual, or no more
than the gap. Where none does, all unknowns but x and μ are those that belong to them: κ and ν of the answer at (x, μ) (`l2.respond`), s = σ/x and ω = σ/μ.
From there a step is one of Newton's method on Ψ, and as long as the slope of Ψ along it allows: Ψ is convex, so that this makes way.
Near the end rounding hides such answers: a step that leaves more than there was is not taken, and is the last one.
The x and nature's amounts are judged like any others.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.bellman.elimination import eliminate
from drmdp.bellman.mixing.game import note
from drmdp.bellman.orders import l2
from drmdp.bellman.rows.l2 import SLOPE, SPENT, VALUE, visit_rows
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.sorting import copy

STEPS = 100
SEARCHES = 12
BACK = 4  # lengths of a step that are tried
INSIDE = 0.95  # of the way to the boundary
CLOSED = 0.05  # part of the tolerance that is left at the end
FINE = 1e-8  # of μ θ: rounding hides the answer to a price where σ is smaller
SHORT = 0.3  # a slope of this many gaps is near the path
PLAYED = 1e-12  # a smaller probability is 0


@njit(**LEAN)
def _read(ball, x, gain):
    """What the rows say at (x, κ).

    reads   ball.paths, x (A,)
    fills   ball.kernels: r, price; ball.inner.power (c); gain (A,): cost included
    returns b
    """
    kernels, rows, w, total = ball.kernels, ball.paths.rows, ball.rows.w, 0.0
    for a in range(x.size):
        gain[a] = ball.head[a]
        if ball.paths.share[a] > 0.0:
            gain[a] -= ball.rows.nominal[a]
            for i in range(w.size):
                gain[a] += w[i] * rows[a, VALUE, i]
    for i in range(w.size):
        far = 0.0
        for a in range(x.size):
            far += rows[a, SPENT, i] if ball.paths.share[a] > 0.0 else 0.0
        kernels.r[i] = math.sqrt(far)
        kernels.price[i] = kernels.r[i] / kernels.kappa[i]
        ball.inner.power[i] = (kernels.r[i] / ball.theta) ** (ball.p - 1.0)
        total += w[i] * kernels.r[i] * ball.inner.power[i] / ball.p
    return total


@njit(**LEAN)
def _visit(ball, x, gain):
    """Pass over the rows at (x, κ).

    reads   ball, x (A,)
    fills   ball: paths, kernels; gain (A,): cost included
    returns b
    """
    paths = ball.paths
    for a in range(x.size):
        paths.share[a] = x[a] if ball.live[a] else 0.0
    visit_rows(
        ball.rows, np.int64(0), x.size, paths.share, ball.kernels.kappa, l2.CLOSE, paths.tau, paths.rows, paths.off
    )
    return _read(ball, x, gain)


@njit(**LEAN)
def _answer(ball, x, mu, sigma, gain):
    """Nature's answer at a price, with its ν.

    reads   ball, x (A,), mu, sigma
    fills   ball; gain (A,): cost included
    returns b
    """
    l2.respond(ball, x, mu, sigma)
    spent = _read(ball, x, gain)
    for i in range(ball.rows.w.size):
        ball.inner.nu[i] = sigma / ball.kernels.r[i] if ball.kernels.r[i] > 0.0 else mu
    return spent


@njit(**INLINE)
def _curve(ball, m, member, x, mu, i):
    """Q, η and M of a kernel.

    reads   ball, m, member, x (A,), mu, i
    returns them
    """
    kappa, r, total = ball.kernels.kappa[i], ball.kernels.r[i], 0.0
    eta = ball.inner.nu[i] + (ball.p - 1.0) * mu * ball.inner.power[i]
    for k in range(m):
        total += x[member[k]] * x[member[k]] * ball.paths.rows[member[k], SLOPE, i]
    bend = eta * total / r + max(r * r / (kappa * kappa) - total, 0.0) / kappa if r > 0.0 else 0.0
    return total, eta, bend


@njit(**LEAN)
def _system(ball, m, member, x, mu, sigma, spent, gain):
    """The system of a step: m actions, μ, and −γ.

    reads   ball, m, member, x (A,), mu, sigma, spent (b), gain (A,)
    fills   ball.inner.matrix
    """
    M, slack, last = ball.inner.matrix, ball.inner.slack, m + 2
    kernels, rows, w = ball.kernels, ball.paths.rows, ball.rows.w
    for j in range(m + 2):
        M[j, last] = 0.0
        for k in range(m + 2):
            M[j, k] = 1.0 if (j == m + 1) != (k == m + 1) and j != m and k != m else 0.0
    for i in range(w.size):
        total, eta, bend = _curve(ball, m, member, x, mu, i)
        if not bend > 0.0:
            continue
        kappa, r, power = kernels.kappa[i], kernels.r[i], ball.inner.power[i]
        off = kernels.price[i] + sigma / r - mu * power
        M[m, m] += w[i] * power * power * total / bend
        M[m, last] += w[i] * power * off * total / bend
        for k in range(m):
            a = member[k]
            own = x[a] * rows[a, SLOPE, i]
            M[k, k] += w[i] * kappa * rows[a, SLOPE, i]
            M[k, m] -= w[i] * power * r / (kappa * bend) * own
            M[k, last] -= w[i] * r / (kappa * bend) * own * off
            for j in range(k + 1):
                M[k, j] += w[i] * (1.0 - kappa * eta / r) / bend * own * x[member[j]] * rows[member[j], SLOPE, i]
    for k in range(m):
        a = member[k]
        M[m, k] = M[k, m]
        for j in range(k):
            M[j, k] = M[k, j]
        M[k, k] += slack[a] / x[a]
        M[k, last] += sigma / x[a] - gain[a]
    M[m, m] += slack[x.size] / mu
    M[m, last] += sigma / mu - ball.theta / ball.p + spent


@njit(**INLINE)
def _positive(part, now, step):
    """How far a step may go for a number to stay positive.

    reads   part (so far), now, step
    returns it
    """
    return min(part, -INSIDE * now / step) if step < 0.0 else part


@njit(**LEAN)
def _reach(ball, m, member, x, mu, sigma):
    """The other unknowns of a step, and how far it may go.

    reads   ball, m, member, x (A,), mu, sigma
    fills   ball.inner: change, more (of κ and ν)
    returns the part of it, at most 1
    """
    inner, kernels, w, part = ball.inner, ball.kernels, ball.rows.w, 1.0
    for k in range(m + 1):
        a, now = (member[k], x[member[k]]) if k < m else (x.size, mu)
        inner.change[a] = sigma / now - inner.slack[a] - inner.slack[a] / now * inner.step[k]
        part = _positive(_positive(part, now, inner.step[k]), inner.slack[a], inner.change[a])
    for i in range(w.size):
        total, eta, bend = _curve(ball, m, member, x, mu, i)
        inner.more[0, i], inner.more[1, i] = 0.0, 0.0
        if not bend > 0.0:
            continue
        kappa, r, nu, along = kernels.kappa[i], kernels.r[i], inner.nu[i], 0.0
        for k in range(m):
            along += x[member[k]] * ball.paths.rows[member[k], SLOPE, i] * inner.step[k]
        off = kernels.price[i] + sigma / r - (mu + inner.step[m]) * inner.power[i]
        moved = (r / kappa * along + off * total) / bend
        inner.more[0, i] = ((1.0 - eta * kappa / r) * along + off * r / kappa) / bend
        inner.more[1, i] = sigma / r - nu - nu / r * moved
        part = _positive(_positive(part, kappa, inner.more[0, i]), nu, inner.more[1, i])
    return part


@njit(**INLINE)
def _slope(m, member, x, mu, sigma, spent, gain, ball):
    """The slope of Ψ along a step.

    reads   m, member, x (A,), mu, sigma, spent, gain (A,), ball: theta, inner.step
    returns it
    """
    step = ball.inner.step
    slope = (ball.theta / ball.p - spent - sigma / mu) * step[m]
    for k in range(m):
        slope += (gain[member[k]] - sigma / x[member[k]]) * step[k]
    return slope


@njit(**LEAN)
def _state(ball, m, member, x, mu, gamma, spent, gain):
    """How far the conditions are from being met.

    reads   ball, m, member, x (A,), mu, gamma, spent, gain (A,)
    returns the sum of all products that shall be 0, and what is left of the other conditions
    """
    inner, kernels, w, A = ball.inner, ball.kernels, ball.rows.w, x.size
    left, off = mu * inner.slack[A], mu * abs(spent + inner.slack[A] - ball.theta / ball.p)
    for k in range(m):
        a = member[k]
        left += x[a] * inner.slack[a]
        off += x[a] * abs(gain[a] - gamma - inner.slack[a])
    for i in range(w.size):
        left += w[i] * inner.nu[i] * kernels.r[i]
        off += w[i] * kernels.r[i] * abs(kernels.price[i] + inner.nu[i] - mu * inner.power[i])
    return left, off


@njit(**LEAN)
def _centre(ball, m, member, x, mu, sigma, gain):
    """Nature's answer, and the other unknowns as the conditions have them at (x, μ).

    reads   ball, m, member, x (A,), mu, sigma
    fills   ball; gain (A,): cost included
    returns b and γ
    """
    spent, gamma, slack = _answer(ball, x, mu, sigma, gain), 0.0, ball.inner.slack
    for k in range(m):
        slack[member[k]] = sigma / x[member[k]]
        gamma += x[member[k]] * gain[member[k]] - sigma
    slack[x.size] = sigma / mu
    return spent, gamma


@njit(**LEAN)
def _follow(game, m, mu, tol, space):
    """Follow the path from x.

    reads   game, m, mu, tol, space: x, member
    fills   space: x, gain, trial; game.data: paths and kernels at the end of the path
    returns b
    """
    ball, x, trial, gain, member = game.data, space.x, space.trial, space.gain, space.member
    inner, kappa, A, w, n = ball.inner, ball.kernels.kappa, game.n, ball.rows.w, m + 2
    sigma, centred = 0.1 * mu * ball.theta, False
    spent, gamma = _centre(ball, m, member, x, mu, sigma, gain)
    left, off = _state(ball, m, member, x, mu, gamma, spent, gain)
    for _ in range(STEPS):
        _system(ball, m, member, x, mu, sigma, spent, gain)
        if left + off <= CLOSED * tol or not eliminate(inner.matrix, n, inner.step):
            break
        part, first = _reach(ball, m, member, x, mu, sigma), _slope(m, member, x, mu, sigma, spent, gain, ball)
        if not part > 1e-12:
            break
        copy(x, trial)
        copy(kappa, inner.kept)
        fine, whole, done, good = sigma < FINE * mu * ball.theta, part, 0.0, False
        for _ in range(BACK):
            for k in range(m):
                x[member[k]] = trial[member[k]] + part * inner.step[k]
            for k in range(m + 1):
                inner.slack[member[k] if k < m else A] += (part - done) * inner.change[member[k] if k < m else A]
            for i in range(w.size):
                kappa[i] = inner.kept[i] + part * inner.more[0, i]
                inner.nu[i] += (part - done) * inner.more[1, i]
            new, level = mu + part * inner.step[m], gamma + part * (-inner.step[m + 1] - gamma)
            spent = _visit(ball, x, gain)
            more, rest = _state(ball, m, member, x, new, level, spent, gain)
            good = fine or rest <= max((1.0 - 0.5 * part) * off, more)
            if good:
                break
            done, part = part, 0.3 * part
        if fine and rest > max(off, more):
            copy(trial, x)
            copy(inner.kept, kappa)
            return _visit(ball, x, gain)
        if good:
            centred = False
            if rest <= more:
                sigma = min(sigma, more / n) * (0.1 if part > 0.9 else 0.4 if part > 0.4 else 0.9)
                sigma = max(sigma, 0.2 * CLOSED * tol / n)
        else:
            copy(inner.kept, kappa)
            part = whole if centred else 0.0
            if centred and -first <= SHORT * n * sigma:
                sigma *= 0.1
            for _ in range(SEARCHES):
                for k in range(m):
                    x[member[k]] = trial[member[k]] + part * inner.step[k]
                new = mu + part * inner.step[m]
                spent, level = _centre(ball, m, member, x, new, sigma, gain)
                slope = _slope(m, member, x, new, sigma, spent, gain, ball)
                if part == 0.0 or not (first < 0.0 and slope > -0.5 * first):
                    break
                part *= min(max(first / (first - slope), 0.1), 0.7)
            more, rest = _state(ball, m, member, x, new, level, spent, gain)
            centred = True
        mu, gamma, left, off = new, level, more, rest
    return spent


@njit(**LEAN)
def interior(game, tol, bounds, space):
    """Run the method and judge its x and nature's amounts.

    reads   game, tol
    fills   bounds: U, L and μ; space: best_x, best_q
    returns the answers
    """
    ball, x, m = game.data, space.x, 0
    w, rows = ball.rows.w, ball.paths.rows
    for a in range(game.n):
        x[a] = 0.0
        if ball.live[a]:
            space.member[m] = a
            m += 1
    for k in range(m):
        x[space.member[k]] = 1.0 / m
    upper, mu = game.answer(ball, game.n, x, 0.0, 1e-3, space.q, space.gain)
    note(game, upper, mu, x, bounds, space)
    if not (mu > 0.0 and mu < 1e300):
        return 1
    spent, total = _follow(game, m, mu, tol, space), 0.0
    part = min(1.0, (ball.theta / (ball.p * spent)) ** (1.0 / ball.p))
    for a in range(game.n):
        for i in range(w.size):
            far = math.sqrt(rows[a, SPENT, i]) if ball.paths.share[a] > 0.0 else 0.0
            space.q[a * w.size + i] = far * part
    least = game.gains(ball, game.n, space.q, space.gain)
    if least > bounds[1]:
        bounds[1] = least
        copy(space.q, space.best_q)
    for a in range(game.n):
        x[a] = x[a] if x[a] > PLAYED else 0.0
        total += x[a]
    for a in range(game.n):
        x[a] /= total
    upper, mu = game.answer(ball, game.n, x, 0.0, 0.01 * tol, space.q, space.gain)
    note(game, upper, mu, x, bounds, space)
    return 2
