"""Total variation; see `drmdp.certificate.rows`.

    h = Σ ŷ max(t u, −1),        C = Σ (z − ŷ)⁺.

**Rounding.** The terms of h are off by n ε, relatively. In C, z/mass − ŷ is off by n ε (z/mass + ŷ), in all by 2 n ε; where z is the row of the data
itself it is exactly 0.
"""

from __future__ import annotations

from drmdp.certificate.rows import FLAT
from drmdp.certificate.sums import BLOCK, EPS, depth
from drmdp.core.compiled import LEAN, njit

STEP = 1e-12  # prices are mostly those at which an entry is about to go: then it goes


@njit(**LEAN)
def dual(t, y, scale, u, off):
    """Bound on h(t).

    reads   t, y (K,), scale, u (K,), off
    returns the bound
    """
    total = 0.0
    for lo in range(0, u.size, BLOCK):
        part = 0.0
        for j in range(lo, min(lo + BLOCK, u.size)):
            part += y[j] * max(t * u[j], -1.0)
        total += part
    return scale * total * (1.0 - (depth(u.size) + 16 + off) * EPS)


@njit(**LEAN)
def point(t, y, scale, u, z):
    """A row near the best one at t.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns what goes to the top
    """
    moved, cut = 0.0, min(STEP - 1.0 / t, -FLAT)
    for j in range(u.size):
        p = scale * y[j]
        z[j] = p
        if u[j] <= cut:
            z[j] = 0.0
            moved += p
    return moved


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
            part += max(z[j] / mass - scale * y[j], 0.0)
        total += part
    return total + 2.0 * n * EPS
