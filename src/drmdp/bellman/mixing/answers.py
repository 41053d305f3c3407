"""Nature's answer to a policy when she re-weights the kernels.

    f(x) = max { q·ℓ :  q ∈ Δ(N), q in the ball around w },        ℓ_i = Σ_a x_a G_ai,        G_ai = cost_a + ŷ_ia·u.

It is one row problem (`drmdp.bellman.rows`) with ŷ := w and stakes (ℓ − max ℓ)/span. For kl, burg and chi2 a multiplier t with C(q(t)) = B is found by
Newton's method on √C = √B, from that of the last answer; at any t

    U = V + (B − C)/t ≥ f,    and q(t), pulled towards w by B/C where C > B, is in the ball: C is convex and 0 at w.

So a t with C < B is off by (B − C)/t, and one with C > B by (1 − B/C) (V − w·u), which is more: a search that comes from a large t must come down to B.

tv moves mass B from the least losses to the largest one, cvar gives w_i/level to the largest losses until 1 is spent, any gives all to the largest.
The gains of the actions are g = G q, all at once, and min_a g_a is a lower bound on the game. f is smooth where the budget binds; with J = diag(j) − j jᵀ/Σ j,
j_i = dq_i/d(t u_i) at a fixed threshold and τ = t/span, its Hessian is τ G [J − J ℓ ℓᵀ J/(ℓᵀ J ℓ)] Gᵀ.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.rows import LARGEST, burg, chi2, kl
from drmdp.core.compiled import FAST, INLINE, LEAN, Walls, njit, wall
from drmdp.layout.sorting import rank

KL, BURG, CHI2, TV, CVAR, ANY = range(6)
KINDS = {"kl": KL, "burg": BURG, "chi2": CHI2, "tv": TV, "cvar": CVAR, "any": ANY}
SMOOTH = CHI2
"""The last kind whose answer is smooth."""
TRIALS = 60  # of Newton's method for a multiplier


class Mix(NamedTuple):
    """What is played for: actions against N kernels."""

    G: Array  # (A, N)
    w: Array  # (N,)
    kind: Any
    B: float  # of the ball; the level of cvar
    vectors: Array  # (4, N): losses, stakes, curvature j, spare
    ones: Array  # (1,)
    order: Any  # (2, N)
    along: Array  # (2, A)
    inner: Array  # (4, N), see `interior`
    matrix: Array  # (A + 3, A + 4)
    multipliers: Array  # (2, A + 3)


def make_mix(A: int, N: int, kind: int) -> Mix:
    """Work space for A actions and N kernels; w and B are put in state by state."""
    return Mix(
        np.empty((A, N)), np.empty(N), kind, 0.0, np.empty((4, N)), np.ones(1), np.empty((2, N), dtype=np.int64), np.empty((2, A)),
        np.empty((4, N)), np.empty((A + 3, A + 4)), np.empty((2, A + 3)),
    )  # fmt: skip


@njit(fastmath=FAST, **LEAN)
def mix(G, n, x, loss):
    """Losses of the kernels.

    reads   G (A, N), n, x (A,)
    fills   loss (N,)
    """
    for i in range(loss.size):
        loss[i] = 0.0
    for a in range(n):
        if x[a] > 0.0:
            share, row = x[a], G[a]
            for i in range(loss.size):
                loss[i] += share * row[i]


@njit(fastmath=FAST, **LEAN)
def dot(y, z):
    """Σ y z."""
    total = 0.0
    for i in range(z.size):
        total += y[i] * z[i]
    return total


@njit(**INLINE)
def gains_of(G, n, q, gain):
    """Gains of the actions against a mixture.

    reads   G (A, N), n, q (N,)
    fills   gain (A,)
    returns the least
    """
    least = np.inf
    for a in range(n):
        gain[a] = dot(G[a], q)
        least = min(least, gain[a])
    return least


@njit(**INLINE)
def _respond(kind, t, w, u, data):
    """The row model of a kind at t.

    reads   kind, t, w (N,), u (N,)
    fills   data
    returns V, E, D
    """
    ones, z = data.ones, data.vectors[3]
    if kind == KL:
        return kl.response(t, w, ones, ones, u, z)
    if kind == BURG:
        return burg.response(t, w, ones, ones, u, z)
    return chi2.response(t, w, ones, ones, u, z)


@njit(**INLINE)
def _saturated(kind, w, u, data):
    """What the greatest value of a kind costs at least.

    reads   kind, w (N,), u (N,)
    fills   data
    returns it
    """
    ones, z = data.ones, data.vectors[3]
    if kind == KL:
        return kl.saturated(w, ones, ones, u, z)[1]
    return chi2.saturated(w, ones, ones, u, z)[1] if kind == CHI2 else np.inf


@njit(**INLINE)
def _write(kind, t, w, u, q):
    """The mixture of a kind at t, or at ∞.

    reads   kind, t, w (N,), u (N,)
    fills   q (N,)
    """
    if kind == KL:
        kl.fill(t, w, 1.0, u, q)
    elif kind == BURG:
        burg.fill(t, w, 1.0, u, q)
    else:
        chi2.fill(t, w, 1.0, u, q)


@njit(**INLINE)
def _multiplier(kind, B, w, u, t, tol, data):
    """Find t with C(q(t)) = B.

    reads   kind, B, w (N,), u (N,), t (a guess, 0 for none), tol
    fills   data
    returns t, V and E there
    """
    mean = dot(w, u)
    if not (t > 0.0 and t < LARGEST):
        wide = 0.0
        for i in range(w.size):
            wide += w[i] * (u[i] - mean) * (u[i] - mean)
        t = min(max(math.sqrt(2.0 * B / max(wide, 1e-300)), 1e-300), LARGEST)
    lo, hi = 0.0, np.inf
    value, cost, slope = 0.0, 0.0, 0.0
    for _ in range(TRIALS):
        value, cost, slope = _respond(kind, t, w, u, data)
        lost = (B - cost) / t if cost < B else (cost - B) / cost * (value - mean)
        if lost <= tol or (t >= LARGEST and cost < B):
            break
        if cost < B:
            lo = t
        else:
            hi = t
        new = t + 2.0 * math.sqrt(cost) * (math.sqrt(B) - math.sqrt(cost)) / (t * slope) if t * slope > 0.0 else np.inf
        if not (new > lo and new < hi):
            new = math.sqrt(max(lo, 1e-3 * hi) * hi) if hi < np.inf else 8.0 * t
        new = min(new, LARGEST)
        if new == t:
            break
        t = new
    return t, value, cost


@njit(**INLINE)
def _fill(kind, B, w, loss, order, q):
    """The answer of tv, cvar or any.

    reads   kind, B, w (N,), loss (N,)
    fills   order (2, N), q (N,)
    """
    if kind != ANY:
        rank(loss, order[0], order[1])
    left = 1.0
    top = 0
    for i in range(w.size):
        top = i if loss[i] > loss[top] else top
        q[i] = w[i] if kind == TV else 0.0
    if kind == TV:
        left = B
        for n in range(w.size):
            i = order[0, n]
            take = min(left, q[i]) if i != top else 0.0
            q[i] -= take
            q[top] += take
            left -= take
    elif kind == CVAR:
        for n in range(w.size - 1, -1, -1):
            i = order[0, n]
            q[i] = min(left, w[i] / B) if B > 0.0 else left
            left -= q[i]
        q[top] += max(left, 0.0)
    else:
        q[top] = 1.0


@njit(**INLINE)
def _point(data, n, x, tau, tol, q):
    """Nature's answer to a policy.

    reads   data, n, x (A,), tau (of the last answer, 0 for none), tol
    fills   q, in the ball; data: the losses, the stakes and the curvature, which is 0 where f is not smooth
    returns U ≥ f(x), and τ, which is inf where the budget does not bind
    """
    loss, u, curve = data.vectors[0], data.vectors[1], data.vectors[2]
    w, B = data.w, data.B
    mix(data.G, n, x, loss)
    top, low = loss[0], loss[0]
    for i in range(w.size):
        top, low = max(top, loss[i]), min(low, loss[i])
        curve[i] = 0.0
    span = top - low
    if data.kind > SMOOTH:
        _fill(data.kind, B, w, loss, data.order, q)
        return dot(q, loss), np.inf
    if not (span > 1e-290 and B > 0.0):
        for i in range(w.size):
            q[i] = w[i]
        return dot(w, loss) if span > 0.0 else top, np.inf
    for i in range(w.size):
        u[i] = (loss[i] - top) / span
    if _saturated(data.kind, w, u, data) <= B:
        _write(data.kind, np.inf, w, u, q)
        return top, np.inf
    t, value, cost = _multiplier(data.kind, B, w, u, tau * span if tau < np.inf else 0.0, tol / span, data)
    _write(data.kind, t, w, u, q)
    for i in range(w.size):
        if data.kind == KL:
            curve[i] = q[i]
        elif data.kind == BURG:
            curve[i] = q[i] * q[i] / w[i]
        else:
            curve[i] = w[i] if q[i] > 0.0 else 0.0
    if cost > B:
        for i in range(w.size):
            q[i] = w[i] + B / cost * (q[i] - w[i])
    return min(top, top + span * (value + (B - cost) / t)), t / span


def answer(data, n, x, tau, tol, q, gain):
    """Nature's answer to a policy and its gains; see `drmdp.bellman.mixing.game`."""
    upper, tau = _point(data, n, x, tau, tol, q)
    gains_of(data.G, n, q, gain)
    return upper, tau


def gains(data, n, q, gain):
    """Gains of a mixture; see `drmdp.bellman.mixing.game`."""
    return gains_of(data.G, n, q, gain)


@njit(fastmath=FAST, **LEAN)
def _products(row, other, curve, mean, shift, loss, middle):
    """Σ j (row − mean)(other − shift) and Σ j (row − mean)(loss − middle).

    reads   row (N,), other (N,), curve (N,), mean, shift, loss (N,), middle
    returns both
    """
    both, along = 0.0, 0.0
    for i in range(curve.size):
        p = curve[i] * (row[i] - mean)
        both += p * (other[i] - shift)
        along += p * (loss[i] - middle)
    return both, along


def bend(data, m, member, tau, H):
    """The Hessian of f on the members; see `drmdp.bellman.mixing.game`."""
    curve, loss, mean, along = data.vectors[2], data.vectors[0], data.along[0], data.along[1]
    mass = 0.0
    for i in range(curve.size):
        mass += curve[i]
    if not (mass > 0.0 and tau < 1e300):
        for k in range(m):
            for j in range(m):
                H[k, j] = 0.0
        return 0.0
    middle = dot(curve, loss) / mass
    both, _ = _products(loss, loss, curve, middle, middle, loss, middle)
    for k in range(m):
        mean[k] = dot(curve, data.G[member[k]]) / mass
    trace = 0.0
    for k in range(m):
        row = data.G[member[k]]
        for j in range(k + 1):
            H[k, j], along[k] = _products(row, data.G[member[j]], curve, mean[k], mean[j], loss, middle)
    for k in range(m):
        for j in range(k + 1):
            H[k, j] = tau * (H[k, j] - (along[k] * along[j] / both if both > 0.0 else 0.0))
            H[j, k] = H[k, j]
        H[k, k] = max(H[k, k], 0.0)
        trace += H[k, k]
    return trace


@cache
def walls() -> Walls:
    """`SMOOTH`, and `answer`, `gains` and `bend` behind walls."""
    data, row, number = make_mix(1, 1, KL), np.empty(1), 0.0
    return Walls(
        (
            SMOOTH,
            wall(answer, (0.0, 0.0), data, 0, row, number, number, row, row),
            wall(gains, 0.0, data, 0, row, row),
            wall(bend, 0.0, data, 0, np.empty(1, dtype=np.int64), number, np.empty((1, 1))),
        )
    )
