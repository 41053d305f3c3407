"""Entropy proximal map of the (ℓ∞, ∞) ball: multiplicative weights for nature, each probability within θ of the data.

Row by row, with w_i σ x_a z_a the step and y° where it starts,

    argmin { Σ_t y(t) log(y(t)/u(t)) :  y ∈ Δ,  |y − ŷ| ≤ θ }  =  clip(κ u, ŷ − θ, ŷ + θ),      u = y° exp(w_i σ x_a z_a),

with κ such that the entries sum to 1. The sum is piecewise linear in κ: Newton's method with a bracket, from the κ of the last step, takes
about two passes, and kernels of equal weight share the exponentials. A probability of 0 would stay 0, so nature begins at the data mixed with
the uniform row (`begin`), and none falls below LEAST.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from drmdp.layout.layout import FAST, row_scales
from drmdp.prox.displacement import FARTHEST, ROUNDING, Family, largest, make_work, reset, smallest

MIX = 0.05
"""Share of the uniform row at the beginning, if θ allows it."""
LEAST = 1e-200
PASSES = 1000


@njit(cache=True, nogil=True)
def begin(layout, y):  # type: ignore[no-untyped-def]
    """Mix every row of y, which is ŷ, with the uniform one."""
    A, N = layout.available.shape[1], layout.weights.size
    for k in range(layout.indptr.size - 1):
        lo, hi = layout.indptr[k], layout.indptr[k + 1]
        share = min(MIX, layout.radius[k // A])  # no entry moves by more
        for e in range(N * lo, N * hi):
            y[e] += share * (1.0 / (hi - lo) - y[e])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def row_sums(u, p, scale, theta, kappa):  # type: ignore[no-untyped-def]
    """The sum of the clipped row, and its slope in κ."""
    total = 0.0
    free = 0.0
    for j in range(u.size):
        own = scale * p[j]
        high = own + theta
        low = own - theta
        y = kappa * u[j]
        over = y > high
        under = y < low
        y = high if over else y
        total += low if under else y
        free += 0.0 if over | under else u[j]
    return total, free


@njit(cache=True, nogil=True, error_model="numpy")
def solve_row(u, p, scale, theta, kappa):  # type: ignore[no-untyped-def]
    """κ from a guess."""
    low, high = 0.0, np.inf
    for _ in range(PASSES):
        total, free = row_sums(u, p, scale, theta, kappa)
        rest = 1.0 - total
        if abs(rest) <= ROUNDING * u.size or (high < np.inf and high - low <= ROUNDING * high):
            break
        if rest > 0.0:
            low = kappa
        else:
            high = kappa
        new = kappa + rest / free if free > 0.0 else np.inf
        if not (new > low and new < high and new < np.inf):
            new = (
                math.sqrt(low) * math.sqrt(high)
                if low > 0.0 and high < np.inf
                else kappa * (16.0 if rest > 0.0 else 0.0625)
            )
        kappa = new
    return kappa


@njit(cache=True, nogil=True, error_model="numpy")
def boxes(start, stop, layout, y, step, value, accuracy, memory, each, inside):  # type: ignore[no-untyped-def]
    """Take in place the steps w_i·step[s, a]·(c + λ v) of the rows of the states start … stop − 1; nothing is tried."""
    N, A = layout.weights.size, layout.available.shape[1]
    work = make_work(layout)
    for s in range(start, stop):
        theta = layout.radius[s]
        row_scales(layout, s, work.scale)
        if theta == 0.0:
            reset(layout, s, y, work)
            continue
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if hi == lo or (inside and step[s, a] == 0.0):
                continue
            stake = layout.discount * value[layout.indices[lo:hi]]
            if layout.next_costs.size > 0:
                stake += layout.next_costs[lo:hi]
            stake -= largest(stake) if step[s, a] > 0.0 else smallest(stake)  # κ takes it up, and nothing overflows
            weight, grow = -1.0, stake
            for i in range(N):
                if layout.weights[i] != weight:
                    weight = layout.weights[i]
                    grow = np.exp(weight * step[s, a] * stake)
                e = N * lo + i * (hi - lo)
                row, p, scale = y[e : e + hi - lo], layout.data[e : e + hi - lo], work.scale[a, i]
                for j in range(hi - lo):
                    row[j] = max(row[j] * grow[j], LEAST)
                guess = memory.threshold[s * A + a, i]
                kappa = solve_row(row, p, scale, theta, guess if guess > 0.0 and guess < FARTHEST else 1.0)
                memory.threshold[s * A + a, i] = kappa
                for j in range(hi - lo):
                    own = scale * p[j]
                    row[j] = min(max(kappa * row[j], own - theta), own + theta)


EACH = Family(boxes, each=True)
"""A budget for each kernel."""
