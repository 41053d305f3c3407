"""The saddle point where Newton's method and the simplex method stall: an interior-point method on nature's side.

    max γ   such that   s_a = G_a·q − γ ≥ 0 (dual x_a),   q ≥ 0 (dual ν_i),   C(q) + r = B, r ≥ 0 (dual μ),   Σ q = 1 (dual η),

for kl, burg and chi2, whose C has a diagonal Hessian. The perturbed conditions x_a s_a = ν_i q_i = μ r = σ and

    μ ∇C − Gᵀ x − ν + η 1 = 0,      Σ x = 1

are solved by Newton steps that keep all of these positive; C(q) + r = B holds in the end only, or the curved boundary would allow short steps only. dq and
dν are eliminated, d_i = μ C''_i + ν_i/q_i > 0 being diagonal; what is left are the n actions,
μ, η and γ. No scale and no smoothness of f enters: some 30 steps of n² N + n³ operations. Its x and its q are judged like any others.
"""

from __future__ import annotations

import math

from drmdp.bellman.elimination import eliminate
from drmdp.bellman.mixing.answers import BURG, KL, dot, gains_of
from drmdp.bellman.mixing.game import note
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.sorting import copy

STEPS = 150
INSIDE = 0.95  # of the way to the boundary


@njit(**LEAN)
def _cost(kind, w, q):
    """C of a mixture.

    reads   kind, w (N,), q (N,)
    returns it
    """
    total = 0.0
    for i in range(w.size):
        d = (q[i] - w[i]) / w[i]
        if kind == KL:
            total += w[i] * ((1.0 + d) * math.log1p(d) - d)
        elif kind == BURG:
            total += w[i] * (d - math.log1p(d))
        else:
            total += 0.5 * w[i] * d * d
    return total


@njit(**LEAN)
def _slope(kind, w, q):
    """C' and C'' of one entry.

    reads   kind, w, q
    returns both
    """
    if kind == KL:
        return math.log(q / w), 1.0 / q
    if kind == BURG:
        return (q - w) / q, w / q / q
    return (q - w) / w, 1.0 / w


@njit(**INLINE)
def _inner(game):
    """Rows of numbers for each kernel: ν, 1/d, what is left of the stationarity of q, and ∇C."""
    inner = game.data.inner
    return inner[0], inner[1], inner[2], inner[3]


@njit(**INLINE)
def _system(game, sigma, mu, gamma, spare, space):
    """Build the reduced system.

    reads   game, sigma, mu, gamma, spare (r)
    fills   game.data: matrix, inner[1] (1/d), inner[2] (what is left of the stationarity of q), inner[3] (∇C)
    """
    G, n, N = game.data.G, game.n, game.data.w.size
    q, (nu, inverse, right, slope) = space.q, _inner(game)
    x, M, total = space.x, game.data.matrix, 0.0
    eta = game.data.multipliers[0, n + 1]
    for i in range(N):
        slope[i], bend = _slope(game.data.kind, game.data.w[i], q[i])
        inverse[i] = 1.0 / (mu * bend + nu[i] / q[i])
        right[i] = sigma / q[i] - mu * slope[i] - eta
        total += q[i]
    for a in range(n):
        for i in range(N):
            right[i] += x[a] * G[a, i]
    for r in range(n + 2):  # rows G_a, −∇C, 1 against columns of the same
        for c in range(n + 2):
            entry = 0.0
            for i in range(N):
                left = G[r, i] if r < n else (-slope[i] if r == n else 1.0)
                other = G[c, i] if c < n else (-slope[i] if c == n else -1.0)
                entry += left * inverse[i] * other
            M[r, c] = entry
        moved = 0.0
        for i in range(N):
            left = G[r, i] if r < n else (-slope[i] if r == n else 1.0)
            moved += left * inverse[i] * right[i]
        M[r, n + 2] = -1.0 if r < n else 0.0
        M[r, n + 3] = -moved
    gains_of(G, n, q, space.gain)
    for a in range(n):
        M[a, a] += (space.gain[a] - gamma) / x[a]
        M[a, n + 3] += sigma / x[a] - (space.gain[a] - gamma)
    M[n, n] += spare / mu
    M[n, n + 3] += sigma / mu - game.data.B + _cost(game.data.kind, game.data.w, q)
    M[n + 1, n + 3] += 1.0 - total
    played = 0.0
    for c in range(n + 3):
        M[n + 2, c] = 1.0 if c < n else 0.0
        played += x[c] if c < n else 0.0
    M[n + 2, n + 3] = 1.0 - played


@njit(**INLINE)
def _advance(game, sigma, mu, gamma, spare, space):
    """Take the step that the reduced system found, as far as everything stays positive.

    reads   game, sigma, mu, gamma, spare (r)
    fills   space: q, x, inner
    returns μ, γ and r, and how much of the step was taken
    """
    G, n, N = game.data.G, game.n, game.data.w.size
    q, (nu, inverse, right, slope) = space.q, _inner(game)
    x, d, dq = space.x, game.data.multipliers[1], game.data.vectors[1]
    part = 1.0
    for i in range(N):
        dq[i] = right[i] - slope[i] * d[n] - d[n + 1]
    for a in range(n):
        for i in range(N):
            dq[i] += G[a, i] * d[a]
    for i in range(N):
        dq[i] *= inverse[i]
        dnu = (sigma - nu[i] * dq[i]) / q[i] - nu[i]
        if dq[i] < 0.0:
            part = min(part, -INSIDE * q[i] / dq[i])
        if dnu < 0.0:
            part = min(part, -INSIDE * nu[i] / dnu)
    for a in range(n):
        if d[a] < 0.0:
            part = min(part, -INSIDE * x[a] / d[a])
        ds = dot(G[a], dq) - d[n + 2]
        if ds < 0.0:
            part = min(part, -INSIDE * (space.gain[a] - gamma) / ds)
    if d[n] < 0.0:
        part = min(part, -INSIDE * mu / d[n])
    more = game.data.B - _cost(game.data.kind, game.data.w, q) - spare - dot(slope, dq)
    if more < 0.0:
        part = min(part, -INSIDE * spare / more)
    for i in range(N):
        nu[i] += part * ((sigma - nu[i] * dq[i]) / q[i] - nu[i])
        q[i] += part * dq[i]
    for a in range(n):
        x[a] += part * d[a]
    game.data.multipliers[0, n + 1] += part * d[n + 1]
    return mu + part * d[n], gamma + part * d[n + 2], spare + part * more, part


@njit(**INLINE)
def _complementarity(game, mu, gamma, spare, space):
    """The mean of the products that shall all be σ.

    reads   game, mu, gamma, spare (r), space: q, x, inner
    fills   space: gain
    returns it
    """
    gains_of(game.data.G, game.n, space.q, space.gain)
    total = mu * spare + dot(game.data.inner[0], space.q)
    for a in range(game.n):
        total += space.x[a] * (space.gain[a] - gamma)
    return total / (game.n + space.q.size + 1)


@njit(**INLINE)
def interior(game, tol, bounds, space):
    """Run the method and judge its x and its q.

    reads   game, tol
    fills   bounds: U, L and τ; space: best_x, best_q
    returns the answers
    """
    n, N, q, x = game.n, game.data.w.size, space.q, space.x
    copy(game.data.w, q)
    least = gains_of(game.data.G, n, q, space.gain)
    gamma, sigma = least - 0.1, 0.01
    spare, mu = game.data.B, sigma / game.data.B
    game.data.multipliers[0, n + 1] = 0.0
    for i in range(N):
        game.data.inner[0, i] = sigma / q[i]
    for a in range(n):
        x[a] = 1.0 / n
    for _ in range(STEPS):
        _system(game, sigma, mu, gamma, spare, space)
        if not eliminate(game.data.matrix, n + 3, game.data.multipliers[1]):
            break
        mu, gamma, spare, part = _advance(game, sigma, mu, gamma, spare, space)
        if not (part > 1e-12 and mu > 0.0):
            break
        left = _complementarity(game, mu, gamma, spare, space)
        sigma = min(sigma, left) * (0.1 if part > 0.9 else 0.4 if part > 0.4 else 0.9 if part > 0.1 else 2.0)
        if max(left, sigma) * (n + N + 1) < 0.02 * tol:
            break
    return _judge(game, tol, bounds, space)


@njit(**INLINE)
def _judge(game, tol, bounds, space):
    """What the x and the q of the method are worth.

    reads   game, tol
    fills   bounds; space: best_x, best_q
    returns the answers
    """
    w, q, x, total, mass = game.data.w, space.q, space.x, 0.0, 0.0
    for i in range(w.size):
        mass += q[i]
    for i in range(w.size):
        q[i] /= mass
    cost = _cost(game.data.kind, w, q)
    for i in range(w.size):
        q[i] = w[i] + min(1.0, game.data.B / cost) * (q[i] - w[i]) if cost > 0.0 else w[i]
    least = gains_of(game.data.G, game.n, q, space.gain)
    if least > bounds[1]:
        bounds[1] = least
        copy(q, space.best_q)
    for a in range(game.n):
        x[a] = x[a] if x[a] > 1e-12 else 0.0
        total += x[a]
    if not total > 0.5:
        return 0
    for a in range(game.n):
        x[a] /= total
    upper, tau = game.answer(game.data, game.n, x, 0.0, 0.01 * tol, q, space.gain)
    note(game, upper, tau, x, bounds, space)
    return 1
