"""The proof of Hellinger's rows, for any threshold.

With d = 1 + x, x = f − t u,

    h ≤ f − Σ ŷ x/d        for every f > −1, or f = −1 where nothing is seen at the top.

**Rounding.** x is off by 2 ε (|f| + t |u|) and d by ε more, which moves x/d by 1/d² per unit. A probability is off by n ε, relatively, so that (√q − √p)² is
off by 2 n ε |q − p| and by 2 n² ε² (q + p).
"""

import math
import sys

import numpy as np
from drmdp.certificate.additive import Proof
from drmdp.certificate.rows import FLAT
from drmdp.certificate.sums import EPS, depth
from drmdp.core.compiled import LEAN, njit

ENOUGH = 1e14


@njit(**LEAN)
def _masses(t, f, y, scale, u):
    """Σ z and Σ z/d."""
    mass, fall = 0.0, 0.0
    for j in range(u.size):
        if y[j] > 0.0:
            d = 1.0 + f - t * u[j]
            mass += scale * y[j] / d / d
            fall += scale * y[j] / d / d / d
    return mass, fall


@njit(**LEAN)
def _threshold(t, y, scale, u):
    """An f at which Σ z is about 1."""
    low, top = 0.0, 0.0
    for j in range(u.size):
        low += scale * y[j] * u[j]
        top += scale * y[j] if u[j] == 0.0 else 0.0
    f = max(t * low, math.sqrt(top) - 1.0)
    if not top > 0.0 and f <= -1.0:
        if _masses(t, -1.0, y, scale, u)[0] <= 1.0:
            return -1.0
        f = -1.0
    for _ in range(200):
        mass, fall = _masses(t, f, y, scale, u)
        new = f + mass * (math.sqrt(mass) - 1.0) / fall
        if not new > f:
            break
        f = new
    return f


@njit(**LEAN)
def dual(t, y, scale, u, off):
    n = depth(u.size) + 16 + off
    f = _threshold(t, y, scale, u)
    total, size = 0.0, 0.0
    for j in range(u.size):
        if y[j] > 0.0:
            x = f - t * u[j]
            d = 1.0 + x
            if not d > 0.0:
                return np.inf
            total += y[j] * (x / d)
            size += y[j] * ((n + u.size) * abs(x / d) + 4.0 * (abs(f) - t * u[j] + abs(d - 1.0)) / d / d)
    return f - scale * total + EPS * (4.0 * abs(f) + scale * size * (1.0 + n * EPS))


@njit(**LEAN)
def point(t, y, scale, u, z):
    t = min(t, ENOUGH)
    for j in range(u.size):
        z[j] = u[j] if u[j] < -FLAT else 0.0
    f = _threshold(t, y, scale, z)
    mass = 0.0
    for j in range(u.size):
        d = 1.0 + f - t * z[j]
        z[j] = scale * y[j] / d / d if y[j] > 0.0 else 0.0
        mass += z[j]
    return max(1.0 - mass, 0.0) if f <= -1.0 else 0.0


@njit(**LEAN)
def cost(z, top, mass, y, scale, off):
    n = depth(z.size) + z.size + 16 + off
    total = top / mass
    for j in range(z.size):
        p, q = scale * y[j], z[j] / mass
        if p > 0.0 or q > 0.0:
            r = (q - p) / (math.sqrt(q) + math.sqrt(p))
            total += r * r + EPS * (2.0 * n + 8.0) * abs(q - p) + 4.0 * n * n * EPS * EPS * (p + q)
    return total * (1.0 + n * EPS)


MEAN = Proof(sys.modules[__name__], mean=True)
