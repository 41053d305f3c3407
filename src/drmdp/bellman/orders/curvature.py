"""The Hessian of f for orders p > 1; see `drmdp.bellman.orders`.

Where r_i is inside a segment of slopes h_ia (ℓ1: of one entry, h = −u/2 for its action), λ_i = Σ_a x_a h_ia. As λ_i = μ ρ_i^{p−1} and
Σ_i w_i ρ_iᵖ = 1,

    H = Σ_i k_i h_i h_iᵀ − d dᵀ/Σ_i k_i λ_i²,        k_i = w_i r_i/((p − 1) λ_i),        d = Σ_i k_i λ_i h_i,

over the kernels inside segments: the others stay where they are. For ℓ2, with D_ia = dV_ia/dt, g_ia = x_a D_ia, s_i and c_i as in `l2`,

    H = diag(Σ_i w_i κ_i D_ia) + Σ_i (2 − p) w_i κ_i³/(r_i² c_i) g_i g_iᵀ − z zᵀ/Σ_i w_i r_i² s_i/(κ_i c_i),        z = Σ_i w_i κ_i/c_i g_i.
"""

from __future__ import annotations

from drmdp.bellman.orders.ball import L1, L2
from drmdp.bellman.rows.l2 import SLOPE
from drmdp.core.compiled import INLINE, njit


@njit(**INLINE)
def _slope(ball, i, a):
    """h_ia.

    reads   ball, i, a
    returns it
    """
    if ball.metric == L1:
        item = ball.kernels.free[i]
        return -0.5 * ball.rows.u[ball.moves.entry[item]] if ball.moves.action[item] == a else 0.0
    tables, p = ball.profiles.tables, ball.profiles.segment[a, i]
    if p > tables.length[a, i]:
        return 0.0
    return tables.lines[tables.start[a] + i * tables.stride[a] + p, 2]


@njit(**INLINE)
def _pieces(ball, m, member, H):
    """Add the Hessian of piecewise linear rows.

    reads   ball, m, member (m,)
    fills   H
    """
    kernels, w, along, total = ball.kernels, ball.rows.w, ball.H[0], 0.0
    for k in range(m):
        along[k] = 0.0
    for i in range(w.size):
        if kernels.free[i] >= 0 and kernels.price[i] > 0.0:
            rate = w[i] * kernels.r[i] / ((ball.p - 1.0) * kernels.price[i])
            total += rate * kernels.price[i] * kernels.price[i]
            for k in range(m):
                slope = _slope(ball, i, member[k])
                along[k] += rate * kernels.price[i] * slope
                for j in range(k + 1):
                    H[k, j] += rate * slope * _slope(ball, i, member[j])
    _take_off(m, total, along, H)


@njit(**INLINE)
def _paths(ball, m, member, H):
    """Add the Hessian of projection paths.

    reads   ball, m, member (m,)
    fills   H
    """
    kernels, w, along, own, total = ball.kernels, ball.rows.w, ball.H[0], ball.H[1], 0.0
    share, rows = ball.paths.share, ball.paths.rows
    for k in range(m):
        along[k] = 0.0
    for i in range(w.size):
        kappa, spent, slope = kernels.kappa[i], kernels.r[i] * kernels.r[i], 0.0
        if not spent > 0.0:
            continue
        for a in range(share.size):
            slope += share[a] * share[a] * rows[a, SLOPE, i] if share[a] > 0.0 else 0.0
        part = min(kappa * kappa * slope / spent, 1.0)
        rate = max(1.0 + (ball.p - 2.0) * part, 1e-9)
        total += w[i] * spent * part / (kappa * rate)
        for k in range(m):
            a = member[k]
            bend = rows[a, SLOPE, i] if share[a] > 0.0 else 0.0
            own[k] = share[a] * bend
            along[k] += w[i] * kappa / rate * own[k]
            H[k, k] += w[i] * kappa * bend
            for j in range(k + 1):
                H[k, j] += (2.0 - ball.p) * w[i] * kappa * kappa * kappa / (spent * rate) * own[k] * own[j]
    _take_off(m, total, along, H)


@njit(**INLINE)
def _take_off(m, total, along, H):
    """Take off what the budget takes back.

    reads   m, total, along (m,)
    fills   H
    """
    for k in range(m):
        for j in range(k + 1):
            H[k, j] -= along[k] * along[j] / total if total > 0.0 else 0.0


def bent(ball, m, member, tau, H):
    """The Hessian on the members at the last answer; see `drmdp.bellman.mixing.game`."""
    for k in range(m):
        for j in range(m):
            H[k, j] = 0.0
    if tau < 1e300:
        if ball.metric == L2:
            _paths(ball, m, member, H)
        else:
            _pieces(ball, m, member, H)
    trace = 0.0
    for k in range(m):
        H[k, k] = max(H[k, k], 0.0)
        trace += H[k, k]
        for j in range(k):
            H[j, k] = H[k, j]
    return trace
