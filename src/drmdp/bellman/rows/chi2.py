"""Pearson's χ²: C = ½ Σ (z − ŷ)²/ŷ, z = ŷ (1 + t u − η)⁺ with η such that Σ z = 1.

With P₀ and c the mass and the mean stake of the active entries {1 + t u > η}, and Q = Σ ŷ (u − c)² over them,

    η = 1 + t c − 1/P₀,    z = ŷ (1/P₀ + t (u − c)),    V = c + t Q,    E = ½ [t² Q + (1 − P₀)/P₀],    D = Q,

in which nothing cancels; 1 − P₀ is summed over the others. From all entries being active η only grows, and the active ones become fewer until they
stay. Beyond t = NEAR Q takes a pass of its own; before, it is Σ ŷ u² − P₀ c². No row leaves its support.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.rows.kl import own_top
from drmdp.core.compiled import FAST, LEAN, njit

NEAR = 16.0


@njit(fastmath=FAST, **LEAN)
def active(y, at, u, cut):
    """Sums over the entries with u > cut.

    reads   y (from `at` on), at, u (K,), cut
    returns Σ ŷ, Σ ŷ u, Σ ŷ u² and Σ ŷ over the others, before scaling
    """
    p0, p1, p2, idle = 0.0, 0.0, 0.0, 0.0
    for j in range(u.size):
        p = y[at + j] if u[j] > cut else 0.0
        idle += 0.0 if u[j] > cut else y[at + j]
        p0 += p
        p1 += p * u[j]
        p2 += p * u[j] * u[j]
    return p0, p1, p2, idle


@njit(fastmath=FAST, **LEAN)
def spread(y, at, u, cut, centre):
    """Sum over the entries with u > cut.

    reads   y (from `at` on), at, u (K,), cut, centre
    returns Σ ŷ (u − centre)², before scaling
    """
    total = 0.0
    for j in range(u.size):
        p = y[at + j] if u[j] > cut else 0.0
        total += p * (u[j] - centre) * (u[j] - centre)
    return total


@njit(**LEAN)
def settle(t, y, at, scale, u):
    """Find what is active in a row at t.

    reads   t, y (from `at` on), at, scale, u (K,)
    returns P₀, c, Q and the mass of the others, scaled
    """
    cut = -np.inf
    while True:
        p0, p1, p2, idle = active(y, at, u, cut)
        centre = p1 / p0
        new = centre - 1.0 / (t * scale * p0)
        if not new > max(cut, -1.0):
            break
        cut = new
    wide = p2 - p1 * centre if t <= NEAR else spread(y, at, u, cut, centre)
    return scale * p0, centre, scale * max(wide, 0.0), scale * idle


@njit(**LEAN)
def response(t, y, scale, w, u, z):
    """Value, cost and slope at t; see `drmdp.bellman.rows`.

    reads   t, y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E, D
    """
    value, cost, slope = 0.0, 0.0, 0.0
    for i in range(w.size):
        p0, centre, wide, idle = settle(t, y, i * u.size, scale[i], u)
        value += w[i] * (centre + t * wide)
        cost += w[i] * 0.5 * (t * t * wide + idle / p0)
        slope += w[i] * wide
    return value, cost, slope


@njit(**LEAN)
def saturated(y, scale, w, u, z):
    """Value and cost of the rows that are conditioned on their own top; see `drmdp.bellman.rows`.

    reads   y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E
    """
    value, cost = 0.0, 0.0
    for i in range(w.size):
        top = own_top(y, i * u.size, u)
        p0, _p1, _p2, idle = active(y, i * u.size, u, np.nextafter(top, -np.inf))
        value += w[i] * top
        cost += w[i] * 0.5 * idle / p0
    return value, cost


@njit(**LEAN)
def fill(t, y, scale, u, z):
    """One row at t; see `drmdp.bellman.rows`.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns 0: no mass leaves the support
    """
    top = own_top(y, 0, u)
    p0, centre, _wide, _idle = settle(t, y, 0, scale, u) if t < np.inf else (1.0, top, 0.0, 0.0)
    mass = 0.0
    for j in range(u.size):
        ratio = max(1.0 / p0 + t * (u[j] - centre), 0.0) if t < np.inf else (1.0 if u[j] == top else 0.0)
        z[j] = y[j] * scale * ratio if y[j] > 0.0 else 0.0
        mass += z[j]
    for j in range(u.size):
        z[j] /= mass
    return 0.0
