"""Pearson's χ²; see `drmdp.certificate.rows`.

    h ≤ η + Σ ŷ g(t u − η) for every η,  g(d) = d + ½ d² above −1 and −½ below,        C = ½ Σ ŷ d²,  d = z/ŷ − 1.

**Rounding.** d = t u − η is off by ε (t |u| + |η|), and g grows by at most 1 + |d| per unit; terms are off by n ε, relatively, besides. In C, d is off by
(n + 4) ε (1 + |d|).

**Underflow.** C falls in ŷ < z and is taken at the least that ŷ can be; where that is
nothing known above 0, a z of `NOTHING` is taken for 0, which is worth as much, and a larger one costs what nobody knows.
"""

from __future__ import annotations

import numpy as np

from drmdp.certificate.rows import FLAT
from drmdp.certificate.rows.kl import own_top
from drmdp.certificate.sums import BLOCK, EPS, depth
from drmdp.core.compiled import LEAN, njit
from drmdp.core.sums import LEAST

NOTHING = 1e-280


@njit(**LEAN)
def _threshold(t, y, scale, u):
    """An η at which about as much is lost as is gained; it only grows, and so it is found.

    reads   t, y (K,), scale, u (K,)
    returns η
    """
    eta, seen = -np.inf, -1
    while True:
        count, mass, first = 0, 0.0, 0.0
        for j in range(u.size):
            if y[j] > 0.0 and 1.0 + t * u[j] > eta:
                count += 1
                mass += scale * y[j]
                first += scale * y[j] * u[j]
        if 0 <= seen <= count or count == 0:  # more than before: rounding
            return eta
        eta, seen = t * (first / mass) + (1.0 - 1.0 / mass if seen >= 0 else 0.0), count


@njit(**LEAN)
def dual(t, y, scale, u, off):
    """Bound on h(t).

    reads   t, y (K,), scale, u (K,), off
    returns the bound
    """
    n = depth(u.size) + 16 + off
    eta = _threshold(t, y, scale, u)
    total, size = 0.0, 0.0
    for lo in range(0, u.size, BLOCK):
        part, parts = 0.0, 0.0
        for j in range(lo, min(lo + BLOCK, u.size)):
            d = t * u[j] - eta
            g = d + 0.5 * d * d if d > -1.0 else -0.5
            part += y[j] * g
            parts += y[j] * (n * abs(g) + (1.0 + abs(d) if d > -1.5 else 0.0) * 2.0 * (abs(t * u[j]) + abs(eta)))
        total += part
        size += parts
    return eta + scale * total + EPS * (4.0 * abs(eta) + scale * size * (1.0 + n * EPS))


@njit(**LEAN)
def point(t, y, scale, u, z):
    """A row near the best one at t.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns 0: nothing goes to a top that is not listed
    """
    top = own_top(y, u)
    mean, mass = 0.0, 0.0
    if t < np.inf:
        eta = _threshold(t, y, scale, u)
        for j in range(u.size):
            if y[j] > 0.0 and 1.0 + t * u[j] > eta:
                mass += scale * y[j]
                mean += scale * y[j] * (u[j] - top)
    for j in range(u.size):
        below = u[j] - top if u[j] < top - FLAT else 0.0
        ratio = 1.0 if below == 0.0 else 0.0
        if mass > 0.0:
            ratio = max(1.0 / mass + t * (below - mean / mass), 0.0)
        z[j] = scale * y[j] * ratio if y[j] > 0.0 else 0.0
    return 0.0


@njit(**LEAN)
def cost(z, top, mass, y, scale, off):
    """Bound on C(z/mass | ŷ).

    reads   z (K,), top, mass, y (K,), scale, off
    returns the bound
    """
    n = depth(z.size) + 16 + off
    total = 0.0
    if top > 0.0:
        return np.inf
    for lo in range(0, z.size, BLOCK):
        part = 0.0
        for j in range(lo, min(lo + BLOCK, z.size)):
            if y[j] > 0.0:
                p = scale * y[j] - off * LEAST
                if not p > 0.0:
                    if z[j] > NOTHING * mass:
                        return np.inf
                    continue
                d = abs(z[j] / mass - p) / p
                d += (n + 4.0) * EPS * (1.0 + d)
                part += p * d * d
            elif z[j] > 0.0:
                return np.inf
        total += part
    return 0.5 * total * (1.0 + 2.0 * n * EPS) + 2.0 * off * z.size * LEAST
