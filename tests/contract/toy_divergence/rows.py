"""Hellinger's rows: C = Σ (√z − √ŷ)², z = ŷ/d² with d = e − t u and e ≥ 0 such that Σ z = 1.

    V = Σ z u,    E = Σ ŷ (1/d − 1)²,    J_k = Σ 2 ŷ u^k/d³,    D = J₂ − J₁²/J₀.

(Σ ŷ/d²)^{−½} is concave and grows in e, so that Newton's method is monotone from the left, from the larger of √ŷ(top) and 1 + t Σ ŷ u (Jensen). Where nothing
is seen at the top and Σ z ≤ 1 even at e = 0, the rest goes to the top, and D = J₂. At t = LARGEST the row is saturated.
"""

import math
import sys

from drmdp.bellman.frame.models import Family
from drmdp.bellman.rows import LARGEST
from drmdp.core.compiled import LEAN, njit


@njit(**LEAN)
def sums(t, e, y, at, scale, u):
    """Σ z, V, E and J₀, J₁, J₂."""
    mass, value, cost, j0, j1, j2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(u.size):
        p = scale * y[at + j]
        if p > 0.0:
            d = e - t * u[j]
            z = p / d / d
            mass += z
            value += z * u[j]
            cost += p * ((1.0 - d) / d) ** 2
            j0 += 2.0 * z / d
            j1 += 2.0 * z / d * u[j]
            j2 += 2.0 * z / d * u[j] * u[j]
    return mass, value, cost, j0, j1, j2


@njit(**LEAN)
def threshold(t, y, at, scale, u):
    """e of a row, and whether the rest goes to a top that was never seen."""
    first, top = 0.0, 0.0
    for j in range(u.size):
        first += scale * y[at + j] * u[j]
        top += scale * y[at + j] if u[j] == 0.0 else 0.0
    e = max(1.0 + t * first, math.sqrt(top))
    if top <= 0.0 and e <= 0.0:
        if sums(t, 0.0, y, at, scale, u)[0] <= 1.0:
            return 0.0, True
        e = 0.0
    for _ in range(200):
        mass, _v, _c, j0, _j1, _j2 = sums(t, e, y, at, scale, u)
        new = e + 2.0 * mass * (math.sqrt(mass) - 1.0) / j0
        if not new > e:
            break
        e = new
    return e, False


@njit(**LEAN)
def response(t, y, scale, w, u, z):
    value, cost, slope = 0.0, 0.0, 0.0
    for i in range(w.size):
        e, pops = threshold(t, y, i * u.size, scale[i], u)
        mass, v, c, j0, j1, j2 = sums(t, e, y, i * u.size, scale[i], u)
        value += w[i] * v
        cost += w[i] * (c + (max(1.0 - mass, 0.0) if pops else 0.0))
        slope += w[i] * max(j2 - (0.0 if pops else j1 * j1 / j0), 0.0)
    return value, cost, slope


@njit(**LEAN)
def saturated(y, scale, w, u, z):
    value, cost, _slope = response(LARGEST, y, scale, w, u, z)
    return value, cost


@njit(**LEAN)
def fill(t, y, scale, u, z):
    t = min(t, LARGEST)
    e, pops = threshold(t, y, 0, scale, u)
    mass = 0.0
    for j in range(u.size):
        d = e - t * u[j]
        z[j] = scale * y[j] / d / d if y[j] > 0.0 else 0.0
        mass += z[j]
    if pops:
        return max(1.0 - mass, 0.0)
    for j in range(u.size):
        z[j] /= mass
    return 0.0


MEAN = Family(sys.modules[__name__], mean=True)
