"""Relative entropy: C = Σ z log(z/ŷ), z = ŷ e^{t u}/Z with Z = Σ ŷ e^{t u}.

    V = Σ z u,    E = t V − log Z,    D = Σ z u² − V².

Up to t = 1, Z − 1 = Σ ŷ (e^{t u} − 1) is summed, so that E is off by ε t and not by ε: what counts is E/t. Beyond t = FAR stakes are taken below the
largest of the row's own support, where otherwise everything might underflow. No row leaves its support.

**Exponentials in whole vectors.** With 2^m ≥ 4 t, x = t u/2^m ∈ [−¼, 0] and q = e^x − 1 from its series of degree 11, m times q ← q (2 + q) gives
e^{t u} − 1, or m squarings of 1 + q give e^{t u}: off by some t ε, relatively, which rounding t u costs anyway.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.core.compiled import FAST, LEAN, njit

FAR = 300.0


@njit(fastmath=FAST, **LEAN)
def own_top(y, at, u):
    """Largest stake that a row has seen.

    reads   y (from `at` on), at, u (K,)
    returns it
    """
    top = -np.inf
    for j in range(u.size):
        x = u[j] if y[at + j] > 0.0 else -np.inf
        top = x if x > top else top
    return top


@njit(fastmath=FAST, **LEAN)
def exponentials(t, top, u, z):
    """Write e^{t (u − top)} − 1 for t ≤ 1, e^{t (u − top)} beyond; stakes above the top count as the top.

    reads   t, top, u (K,)
    fills   z (K,)
    """
    step = t
    m = 0
    while step > 0.25:
        step *= 0.5
        m += 1
    for j in range(u.size):
        x = step * min(u[j] - top, 0.0)
        q = 1.0 + x * (1 / 11)
        q = 1.0 + x * q * (1 / 10)
        q = 1.0 + x * q * (1 / 9)
        q = 1.0 + x * q * (1 / 8)
        q = 1.0 + x * q * (1 / 7)
        q = 1.0 + x * q * (1 / 6)
        q = 1.0 + x * q * 0.2
        q = 1.0 + x * q * 0.25
        q = 1.0 + x * q * (1 / 3)
        q = 1.0 + x * q * 0.5
        z[j] = x * q if t <= 1.0 else 1.0 + x * q
    for _ in range(m):
        for j in range(u.size):
            z[j] = z[j] * (2.0 + z[j]) if t <= 1.0 else z[j] * z[j]


@njit(fastmath=FAST, **LEAN)
def moments(y, at, u, top, z):
    """Sums of a row of the data against exponentials.

    reads   y (from `at` on), at, u (K,), top, z (K,)
    returns Σ ŷ z, Σ ŷ z x, Σ ŷ z x², Σ ŷ x and Σ ŷ x² with x = u − top, before scaling
    """
    z0, z1, z2, y1, y2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(u.size):
        x = u[j] - top
        p = y[at + j] * x
        y1 += p
        y2 += p * x
        q = y[at + j] * z[j]
        z0 += q
        z1 += q * x
        z2 += q * x * x
    return z0, z1, z2, y1, y2


@njit(**LEAN)
def response(t, y, scale, w, u, z):
    """Value, cost and slope at t; see `drmdp.bellman.rows`.

    reads   t, y (N·K,), scale (N,), w (N,), u (K,)
    fills   z (K,)
    returns V, E, D
    """
    value, cost, slope = 0.0, 0.0, 0.0
    K = u.size
    if t <= FAR:
        exponentials(t, 0.0, u, z)
    for i in range(w.size):
        top = 0.0
        if t > FAR:
            top = own_top(y, i * K, u)
            exponentials(t, top, u, z)
        z0, z1, z2, y1, y2 = moments(y, i * K, u, top, z)
        if t <= 1.0:
            z1, z2 = z1 + y1, z2 + y2
            mass, log = 1.0 + scale[i] * z0, math.log1p(scale[i] * z0)
        else:
            mass, log = scale[i] * z0, math.log(scale[i] * z0)
        v = scale[i] * z1 / mass
        value += w[i] * (top + v)
        cost += w[i] * max(t * v - log, 0.0)
        slope += w[i] * max(scale[i] * z2 / mass - v * v, 0.0)
    return value, cost, slope


@njit(**LEAN)
def top_mass(y, at, u, top):
    """Mass of a row of the data where the stake is `top`.

    reads   y (from `at` on), at, u (K,), top
    returns it, before scaling
    """
    mass = 0.0
    for j in range(u.size):
        mass += y[at + j] if u[j] == top else 0.0
    return mass


@njit(**LEAN)
def saturated(y, scale, w, u, z):
    """Value and cost of the rows that are conditioned on their own top; see `drmdp.bellman.rows`.

    reads   y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E
    """
    value, cost = 0.0, 0.0
    for i in range(w.size):
        top = own_top(y, i * u.size, u)
        value += w[i] * top
        cost -= w[i] * math.log(min(scale[i] * top_mass(y, i * u.size, u, top), 1.0))
    return value, cost


@njit(**LEAN)
def fill(t, y, scale, u, z):
    """One row at t; see `drmdp.bellman.rows`.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns 0: no mass leaves the support
    """
    top = own_top(y, 0, u)
    mass = 0.0
    for j in range(u.size):
        x = min(u[j] - top, 0.0)
        z[j] = y[j] * scale * math.exp(t * x) if x < 0.0 else y[j] * scale
        mass += z[j]
    for j in range(u.size):
        z[j] /= mass
    return 0.0
