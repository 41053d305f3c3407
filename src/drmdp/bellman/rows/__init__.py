"""Rows of one pair (state, action): what nature gains in them, and what that costs.

`l1` and `pair` belong to the tuned balls. The others are *row models*. A row model knows one cost C(z | ŷ), convex in the
distribution z and 0 at ŷ, and answers a multiplier t > 0 on stakes −1 ≤ u ≤ 0 with the row that maximises t z·u − C(z | ŷ). Nature always has a next
state of stake 0 (the top), listed or not. A module has three compiled functions, which allocate nothing:

    response(t, y, scale, w, u, z) -> (V, E, D)    Σ_i w_i of value z·u, cost C and slope dV/dt (0: piecewise linear), at 0 < t ≤ LARGEST
    saturated(y, scale, w, u, z)   -> (V, E)       the same at the cheapest row of greatest value, t → ∞
    fill(t, y, scale, u, z)        -> top          one row z (K,) at t, or at ∞, and what it gives to a top that is not listed

    y      (N·K,) N rows of K listed next states one after the other, each to be multiplied by its
    scale  (N,)   so that it sums to 1
    w      (N,)   weights
    u      (K,)   stakes
    z      (K,)   work space

The conjugate is h(t) = t V − E, and dE = t dV. N = 1 with w = 1 is a single row: to re-weight N kernels, y is their weights and u their losses
below the largest one.
"""

LARGEST = 1e14
"""From this multiplier on a row counts as saturated: its value is within 1e-13 of what it can be."""
