"""Burg's entropy; see `drmdp.certificate.rows`.

    h ≤ e − 1 − Σ ŷ log(e − t u) for every e > 0, or e = 0 where nothing is seen at the top,        C = Σ ŷ (d − log(1 + d)) + (what is new),  d = z/ŷ − 1.

**Rounding.** Up to t = ½ the bound is f − Σ ŷ log(1 + x), f = e − 1, x = f − t u, which is off by 2 ε (|f| + t |u|), and the log grows by 1/(1 + x) per
unit; beyond it is taken as it stands, where the argument is off by 2 ε, relatively, as its terms have one sign. In C, d is off by (n + 4) ε (1 + d),
which moves d − log(1 + d) by |d|/(1 + d) per unit; where z is below ŷ/2 that holds of z/ŷ, of which the log is taken, and not of 1 + d as computed.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.certificate.rows import FLAT
from drmdp.certificate.sums import BLOCK, EPS, depth
from drmdp.core.compiled import LEAN, njit

ENOUGH = 1e14  # a larger price buys nothing


@njit(**LEAN)
def _excess(t, f, base, y, scale, u):
    """Σ z − 1 at e = base + f, z = ŷ/(e − t u), and how fast it falls in e.

    reads   t, f, base (0 or 1), y (K,), scale, u (K,)
    returns both
    """
    total, fall = 0.0, 0.0
    for j in range(u.size):
        if y[j] > 0.0:
            x = f - t * u[j]
            d = base + x
            total += scale * y[j] * ((1.0 if base == 0.0 else -x) / d)
            fall += scale * y[j] / d / d
    return total - (1.0 - base), fall


@njit(**LEAN)
def _threshold(t, base, y, scale, u):
    """An e at which Σ z is about 1, from the left by Newton's method for 1/Σ z, which is concave.

    reads   t, base (0 or 1), y (K,), scale, u (K,)
    returns e − base
    """
    low, top = 0.0, 0.0
    for j in range(u.size):
        low += scale * y[j] * u[j]
        if u[j] == 0.0:
            top += scale * y[j]
    f = max(1.0 - base + t * low, top - base, -base)
    if top <= 0.0:
        if f <= -base and not _excess(t, -base, base, y, scale, u)[0] > 0.0:
            return -base
        f = max(f, 1e-300 - base)
    for _ in range(200):
        off, fall = _excess(t, f, base, y, scale, u)
        new = f + (1.0 + off) * off / fall
        if not new > f:
            break
        f = new
    return f


@njit(**LEAN)
def dual(t, y, scale, u, off):
    """Bound on h(t).

    reads   t, y (K,), scale, u (K,), off
    returns the bound
    """
    n = depth(u.size) + 16 + off
    base = 1.0 if t <= 0.5 else 0.0
    f = _threshold(t, base, y, scale, u)
    total, size = 0.0, 0.0
    for lo in range(0, u.size, BLOCK):
        part, parts = 0.0, 0.0
        for j in range(lo, min(lo + BLOCK, u.size)):
            if y[j] > 0.0:
                x = f - t * u[j]
                log = math.log1p(x) if base == 1.0 else math.log(x)
                moved = 4.0 * (abs(f) - t * u[j]) / (1.0 + x) if base == 1.0 else 4.0
                part += y[j] * log
                parts += y[j] * (n * abs(log) + moved)
        total += part
        size += parts
    return f - (1.0 - base) - scale * total + EPS * (4.0 * (abs(f) + 1.0 - base) + scale * size * (1.0 + n * EPS))


@njit(**LEAN)
def point(t, y, scale, u, z):
    """A row near the best one at t.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns the mass of a top that was never seen
    """
    t = min(t, ENOUGH)
    base = 1.0 if t <= 0.5 else 0.0
    for j in range(u.size):
        z[j] = u[j] if u[j] < -FLAT else 0.0
    f = _threshold(t, base, y, scale, z)
    mass = 0.0
    for j in range(u.size):
        z[j] = scale * y[j] / (base + (f - t * z[j])) if y[j] > 0.0 else 0.0
        mass += z[j]
    return max(1.0 - mass, 0.0) if f <= -base else 0.0


@njit(**LEAN)
def cost(z, top, mass, y, scale, off):
    """Bound on C(z/mass | ŷ).

    reads   z (K,), top, mass, y (K,), scale, off
    returns the bound
    """
    n = depth(z.size) + 16 + off
    total = top / mass
    for lo in range(0, z.size, BLOCK):
        part = 0.0
        for j in range(lo, min(lo + BLOCK, z.size)):
            if not y[j] > 0.0:
                part += z[j] / mass
                continue
            p = scale * y[j]
            ratio = z[j] / mass / p
            if not ratio > 0.0:
                return np.inf
            d = (z[j] / mass - p) / p
            log = math.log1p(d) if ratio > 0.5 else math.log(ratio)
            part += p * (d - log + EPS * ((2.0 * n + 8.0) * abs(d) + 4.0 * abs(log) + n * abs(d - log)))
        total += part
    return total * (1.0 + n * EPS)
