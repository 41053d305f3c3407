"""Hellinger's rows: C = Σ (√z − √ŷ)², z = ŷ/d² with d = 1 + f − t u and f ≥ −1 such that Σ z = 1.

    d(z·u)/dt = J₂ − J₁²/J₀,  J_k = Σ 2 ŷ u^k/d³,        max t z·u − C = f − Σ ŷ x/d at every f > −1,  x = f − t u.

(Σ ŷ/d²)^{−½} is concave and grows in f, so that Newton's method is monotone from the left, from the
larger of √ŷ(top) − 1 and t Σ ŷ u (Jensen). Where nothing is seen at the top and Σ z ≤ 1 even at f =
−1, the rest goes to the top.

**Rounding.** x is off by 2 ε (|f| + t |u|) and d by ε more, which moves x/d by 1/d² per unit. A probability is off by n ε, relatively, so that (√q − √p)² is
off by 2 n ε |q − p| and by 2 n² ε² (q + p).
"""

import math

from numba import cfunc, njit
from numba.types import CPointer, float64, int64

EPS = 2.0**-52
ROW = CPointer(float64)


@njit
def sums(t, f, y, u, K):
    """Σ z, and J₀, J₁, J₂."""
    mass, j0, j1, j2 = 0.0, 0.0, 0.0, 0.0
    for j in range(K):
        if y[j] > 0.0:
            d = 1.0 + f - t * u[j]
            z = y[j] / d / d
            mass += z
            j0 += 2.0 * z / d
            j1 += 2.0 * z / d * u[j]
            j2 += 2.0 * z / d * u[j] * u[j]
    return mass, j0, j1, j2


@njit
def threshold(t, y, u, K):
    """An f at which Σ z is about 1."""
    low, top = 0.0, 0.0
    for j in range(K):
        low += y[j] * u[j]
        top += y[j] if u[j] == 0.0 else 0.0
    f = max(t * low, math.sqrt(top) - 1.0)
    if top <= 0.0 and f <= -1.0:
        if sums(t, -1.0, y, u, K)[0] <= 1.0:
            return -1.0
        f = -1.0
    for _ in range(200):
        mass, j0, _j1, _j2 = sums(t, f, y, u, K)
        new = f + 2.0 * mass * (math.sqrt(mass) - 1.0) / j0
        if not new > f:
            break
        f = new
    return f


@cfunc(float64(float64, ROW, ROW, int64, ROW, ROW))
def row(t, y, u, K, z, more):
    f = threshold(t, y, u, K)
    mass, j0, j1, j2 = sums(t, f, y, u, K)
    pops = f <= -1.0 and mass <= 1.0
    more[0] = max(j2 - (0.0 if pops else j1 * j1 / j0), 0.0)
    for j in range(K):
        d = 1.0 + f - t * u[j]
        z[j] = y[j] / d / d / (1.0 if pops else mass) if y[j] > 0.0 else 0.0
    return 1.0 - mass if pops else 0.0


@cfunc(float64(float64, ROW, ROW, int64, float64))
def bound(t, y, u, K, off):
    f = threshold(t, y, u, K)
    total, size = 0.0, 0.0
    for j in range(K):
        if y[j] > 0.0:
            x = f - t * u[j]
            d = 1.0 + x
            if not d > 0.0:
                return math.inf
            total += y[j] * (x / d)
            size += y[j] * (
                (off + K) * abs(x / d) + 4.0 * (abs(f) - t * u[j] + abs(d - 1.0)) / d / d
            )
    return f - total + EPS * (4.0 * abs(f) + size * (1.0 + off * EPS))


@cfunc(float64(ROW, ROW, int64, float64, float64))
def cost(y, z, K, top, off):
    total, n = top, off + K
    for j in range(K):
        p, q = y[j], z[j]
        if p > 0.0 or q > 0.0:
            r = (q - p) / (math.sqrt(q) + math.sqrt(p))
            total += r * r + EPS * (2.0 * n + 8.0) * abs(q - p) + 4.0 * n * n * EPS * EPS * (p + q)
    return total * (1.0 + n * EPS)
