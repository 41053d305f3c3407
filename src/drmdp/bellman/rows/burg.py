"""Burg's entropy: C = Σ ŷ log(ŷ/z), z = ŷ/(e − t u) with e ≥ 0 such that Σ z = 1.

    V = Σ z u,    E = Σ ŷ log(e − t u),    J_k = Σ ŷ u^k/(e − t u)²,    D = J₂ − J₁²/J₀.

G(e) = 1/Σ ŷ/(e − t u) is concave and grows, so that Newton's method for G = 1 is monotone from the left; it begins at the largest of ŷ(top), as
ŷ(top)/e ≤ 1, and 1 + t Σ ŷ u (Jensen). Where nothing is seen at the top and Σ z ≤ 1 even at e = 0, the rest goes to the top: V = −1/t, D = 1/t².

Up to t = ½ the unknown is e − 1 ≥ −½: then E is off by ε t and not by ε. Beyond, it is e, which may be as small as ŷ(top). C has no end: at t = LARGEST
the row counts as saturated.
"""

from __future__ import annotations

from drmdp.bellman.rows import LARGEST
from drmdp.core.compiled import FAST, LEAN, njit
from drmdp.core.logarithms import log, log1p

STEPS = 200


@njit(fastmath=FAST, **LEAN)
def start(y, at, u):
    """What a row begins with.

    reads   y (from `at` on), at, u (K,)
    returns Σ ŷ u and the mass at the top, before scaling
    """
    first, top = 0.0, 0.0
    for j in range(u.size):
        first += y[at + j] * u[j]
        top += y[at + j] if u[j] == 0.0 else 0.0
    return first, top


@njit(fastmath=FAST, **LEAN)
def sums(t, e, base, y, at, u):
    """Sums at d = base + (e − t u); entries that were never seen have none.

    reads   t, e, base (0 or 1), y (from `at` on), at, u (K,)
    returns Σ ŷ (1/d − base) (= −Σ ŷ (e − t u)/d for base 1), Σ ŷ/d², Σ ŷ u/d, Σ ŷ u/d², Σ ŷ u²/d², before scaling
    """
    off, j0, v, j1, j2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(u.size):
        x = e - t * u[j]
        p = y[at + j]
        r = 1.0 / (base + x if p > 0.0 else 1.0)
        off += p * r * (1.0 if base == 0.0 else -x)
        v += p * r * u[j]
        q = p * r * r
        j0 += q
        j1 += q * u[j]
        j2 += q * u[j] * u[j]
    return off, j0, v, j1, j2


@njit(**LEAN)
def settle(t, y, at, scale, u):
    """Find e of a row.

    reads   t, y (from `at` on), at, scale, u (K,)
    returns e − base, base, whether all that is left goes to the top, and V, D
    """
    first, top = start(y, at, u)
    base = 1.0 if t <= 0.5 else 0.0
    e = max(1.0 - base + t * scale * first, scale * top - base)
    if scale * top <= 0.0 and e <= 0.0 and base == 0.0:
        off, j0, v, j1, j2 = sums(t, 0.0, 0.0, y, at, u)
        if scale * off <= 1.0:
            return 0.0, 0.0, True, -1.0 / t, 1.0 / (t * t)
    for _ in range(STEPS):
        off, j0, v, j1, j2 = sums(t, e, base, y, at, u)
        miss = scale * off - (1.0 - base)  # Σ z − 1
        new = e + (1.0 + miss) * miss / (scale * j0)
        if not new > e or not miss > 4e-16 * min(t, 1.0):
            break
        e = new
    return e, base, False, scale * v, scale * max(j2 - j1 * j1 / j0, 0.0)


@njit(fastmath=FAST, **LEAN)
def cost_at(t, e, base, y, at, u):
    """Σ ŷ log(e − t u), before scaling.

    reads   t, e, base, y (from `at` on), at, u (K,)
    returns the sum
    """
    total = 0.0
    if base == 1.0:
        for j in range(u.size):
            total += y[at + j] * log1p(e - t * u[j] if y[at + j] > 0.0 else 0.0)
    else:
        for j in range(u.size):
            total += y[at + j] * log(e - t * u[j] if y[at + j] > 0.0 else 1.0)
    return total


@njit(**LEAN)
def response(t, y, scale, w, u, z):
    """Value, cost and slope at t; see `drmdp.bellman.rows`.

    reads   t, y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E, D
    """
    value, cost, slope = 0.0, 0.0, 0.0
    for i in range(w.size):
        e, base, _pops, v, d = settle(t, y, i * u.size, scale[i], u)
        value += w[i] * v
        slope += w[i] * d
        cost += w[i] * max(scale[i] * cost_at(t, e, base, y, i * u.size, u), 0.0)
    return value, cost, slope


@njit(**LEAN)
def saturated(y, scale, w, u, z):
    """The response at LARGEST; see `drmdp.bellman.rows`.

    reads   y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E
    """
    value, cost, _slope = response(LARGEST, y, scale, w, u, z)
    return value, cost


@njit(**LEAN)
def fill(t, y, scale, u, z):
    """One row at t; see `drmdp.bellman.rows`.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns the mass of a top that was never seen
    """
    t = min(t, LARGEST)
    e, base, pops, _v, _d = settle(t, y, 0, scale, u)
    mass = 0.0
    for j in range(u.size):
        z[j] = y[j] * scale / (base + (e - t * u[j])) if y[j] > 0.0 else 0.0
        mass += z[j]
    if pops:
        return max(1.0 - mass, 0.0)
    for j in range(u.size):
        z[j] /= mass
    return 0.0
