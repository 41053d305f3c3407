"""Total variation: C = ½ ‖z − ŷ‖₁, the mass that is moved. An entry goes to the top, where u is 0, once −t u ≥ 1.

V = Σ_{−t u < 1} ŷ u,    E = Σ_{−t u ≥ 1} ŷ,    D = 0: V and E are steps in t.

Multipliers that are asked for are mostly the steps themselves. So that whoever rounds a stake in another way sees the same step, entries already go
from u ≤ −1/t + STEP on: no value is off by more than STEP. Stakes above −FLAT are the top's.
"""

from __future__ import annotations

import numpy as np

from drmdp.core.compiled import FAST, LEAN, njit

STEP, FLAT = 1e-12, 1e-13


@njit(fastmath=FAST, **LEAN)
def sums(t, y, at, u):
    """Value and moved mass of a row of the data.

    reads   t, y (from `at` on), at, u (K,)
    returns Σ ŷ u of what stays, Σ ŷ of what goes, before scaling
    """
    stays, goes = 0.0, 0.0
    cut = min(STEP - 1.0 / t, -FLAT)
    for j in range(u.size):
        leaves = u[j] <= cut
        stays += 0.0 if leaves else y[at + j] * u[j]
        goes += y[at + j] if leaves else 0.0
    return stays, goes


@njit(**LEAN)
def response(t, y, scale, w, u, z):
    """Value, cost and slope at t; see `drmdp.bellman.rows`.

    reads   t, y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E, 0
    """
    value, cost = 0.0, 0.0
    for i in range(w.size):
        stays, goes = sums(t, y, i * u.size, u)
        value += w[i] * scale[i] * stays
        cost += w[i] * scale[i] * goes
    return value, cost, 0.0


@njit(**LEAN)
def saturated(y, scale, w, u, z):
    """Everything below the top is moved; see `drmdp.bellman.rows`.

    reads   y (N·K,), scale (N,), w (N,), u (K,), z
    returns V, E
    """
    _value, cost, _slope = response(np.inf, y, scale, w, u, z)
    return 0.0, cost


@njit(**LEAN)
def fill(t, y, scale, u, z):
    """One row at t; see `drmdp.bellman.rows`.

    reads   t, y (K,), scale, u (K,)
    fills   z (K,)
    returns the mass that is moved
    """
    moved, cut = 0.0, min(STEP - 1.0 / t, -FLAT)
    for j in range(u.size):
        leaves = u[j] <= cut
        z[j] = 0.0 if leaves else y[j] * scale
        moved += y[j] * scale if leaves else 0.0
    return moved
