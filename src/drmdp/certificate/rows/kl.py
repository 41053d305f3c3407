"""Relative entropy; see `drmdp.certificate.rows`.

    h = log Σ ŷ e^{t u},        C = Σ ŷ φ(r),  r = z/ŷ,  φ(r) = r log r − r + 1 ≥ 0.

**Rounding.** Up to t = 1, h = log(1 + s), s = Σ ŷ (e^{t u} − 1), whose terms are off by n ε, relatively; 1 + s ≥ e⁻¹, so h is off by 3 n ε Σ|terms|. Beyond,
with T the largest stake seen, h = t T + log Σ ŷ e^{t (u − T)}: the exponents are off by 2 ε t, so the log by (n + 2 t) ε + 2 ε |log|, and t T by ε t.
In C, d = r − 1 is off by (n + 4) ε r, and φ grows by |log r| per unit of r; computing it takes 4 ε (r |log r| + |d|).

**Underflow.** A term ŷ e^{t (u − T)} is off by 2⁻¹⁰⁷³, which the sum is raised by. C falls in ŷ < z and is taken at the least that ŷ can be; where that is
nothing known above 0, or z/ŷ overflows, ŷ is a product of two doubles at least, and −log ŷ at most `FAR`.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp.certificate.rows import FLAT
from drmdp.certificate.sums import BLOCK, EPS, depth
from drmdp.core.compiled import LEAN, njit
from drmdp.core.sums import LEAST

FAR = 1500.0


@njit(**LEAN)
def own_top(y, u):
    """The largest stake that a row of the data has.

    reads   y (K,), u (K,)
    returns it
    """
    top = -np.inf
    for j in range(u.size):
        if y[j] > 0.0 and u[j] > top:
            top = u[j]
    return top


@njit(**LEAN)
def dual(t, y, scale, u, off):
    """Bound on h(t).

    reads   t, y (K,), scale, u (K,), off
    returns the bound
    """
    n = depth(u.size) + 16 + off
    top = 0.0 if t <= 1.0 else own_top(y, u)
    total = 0.0
    for lo in range(0, u.size, BLOCK):
        part = 0.0
        for j in range(lo, min(lo + BLOCK, u.size)):
            if y[j] > 0.0:
                part += y[j] * (math.expm1(t * u[j]) if t <= 1.0 else math.exp(t * (u[j] - top)))
        total += part
    total *= scale
    if t <= 1.0:
        return math.log1p(total) - 3.0 * n * EPS * total
    log = math.log(total + 2.0**-1072 * (u.size + 1))
    return t * top + log + EPS * (n + 4.0 * t + 2.0 * abs(log))


@njit(**LEAN)
def point(t, y, scale, u, z):
    """A row near the best one at t.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns 0: nothing goes to a top that is not listed
    """
    top, seen = own_top(y, u), 0.0
    for j in range(u.size):
        seen += y[j] if u[j] >= top - FLAT else 0.0
    raised = 600.0 if seen < 1e-100 else 0.0  # what is divided by its sum next must have one
    for j in range(u.size):
        fall = t * (u[j] - top) if u[j] < top - FLAT else 0.0
        z[j] = scale * y[j] * math.exp(fall + raised) if y[j] > 0.0 else 0.0
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
            if not y[j] > 0.0:
                if z[j] > 0.0:
                    return np.inf
                continue
            p = scale * y[j] - off * LEAST
            d = (z[j] / mass - p) / p if p > 0.0 else np.inf
            if d == np.inf:
                part += FAR * (z[j] / mass)
                continue
            if not d > -1.0:
                part += p * (1.0 + n * EPS)
                continue
            log = math.log1p(d)
            each = (1.0 + d) * log - d
            part += p * (each + EPS * ((n + 8.0) * (1.0 + d) * abs(log) + 4.0 * abs(d)) + n * EPS * abs(each))
        total += part
    return total * (1.0 + n * EPS) + 2.0 * off * z.size * LEAST
