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

from drmdp.core.compiled import FAST, KERNEL, LEAN, njit
from drmdp.layout.point import row_scales
from drmdp.prox.displacement import (
    FARTHEST,
    ROUNDING,
    Family,
    Group,
    fill_stakes,
    level_stakes,
    reset,
    row_of,
)

MIX = 0.05
"""Share of the uniform row at the beginning, if θ allows it."""
LEAST = 1e-200
PASSES = 1000


@njit(**KERNEL)
def begin(layout, y):
    """Mix every row of y, which is ŷ, with the uniform one.

    reads   layout
    fills   y (N·nnz,)
    """
    A, N = layout.available.shape[1], layout.weights.size
    for k in range(layout.indptr.size - 1):
        lo, hi = layout.indptr[k], layout.indptr[k + 1]
        share = min(MIX, layout.radius[k // A])  # no entry moves by more
        for e in range(N * lo, N * hi):
            y[e] += share * (1.0 / (hi - lo) - y[e])


@njit(fastmath=FAST, **LEAN)
def row_sums(row, theta, kappa):
    """Sum the clipped row.

    reads   row, theta, kappa
    returns the sum, its slope in κ
    """
    u, p, scale = row.d, row.p, row.scale
    total = 0.0
    free = 0.0
    for j in range(u.size):
        centre = scale * p[j]
        high = centre + theta
        low = centre - theta
        y = kappa * u[j]
        over = y > high
        under = y < low
        y = high if over else y
        total += low if under else y
        free += 0.0 if over | under else u[j]
    return total, free


@njit(**LEAN)
def solve_row(row, theta, kappa):
    """Find κ from a guess.

    reads   row, theta, kappa
    returns κ
    """
    low, high = 0.0, np.inf
    for _ in range(PASSES):
        total, free = row_sums(row, theta, kappa)
        lack = 1.0 - total
        if abs(lack) <= ROUNDING * row.d.size or (high < np.inf and high - low <= ROUNDING * high):
            break
        if lack > 0.0:
            low = kappa
        else:
            high = kappa
        new = kappa + lack / free if free > 0.0 else np.inf
        if not (new > low and new < high and new < np.inf):
            new = (
                math.sqrt(low) * math.sqrt(high)
                if low > 0.0 and high < np.inf
                else kappa * (16.0 if lack > 0.0 else 0.0625)
            )
        kappa = new
    return kappa


@njit(**KERNEL)
def boxes(start, stop, layout, push, y, memory, how, work):
    """Take in place the steps of the rows of the states start … stop − 1; nothing is tried.

    reads   start, stop, layout, push, how
    fills   y (N·nnz,), memory, work
    """
    N, A = layout.weights.size, layout.available.shape[1]
    for s in range(start, stop):
        theta = layout.radius[s]
        row_scales(layout, s, work.scale)
        if theta == 0.0:
            reset(layout, s, y, work.scale)
            continue
        group = Group(layout, s, y, memory.threshold, work, layout.weights, 0, N)
        for a in range(A):
            k, step = s * A + a, push.step[s, a]
            K = layout.indptr[k + 1] - layout.indptr[k]
            if K == 0 or (how.inside and step == 0.0):
                continue
            stake, grow = work.spare[:K], work.grown[:K]
            fill_stakes(layout, push.value, k, stake)
            level_stakes(stake, step)  # κ takes it up, and nothing overflows
            weight = -1.0
            for i in range(N):
                if layout.weights[i] != weight:
                    weight = layout.weights[i]
                    for j in range(K):
                        grow[j] = math.exp(weight * step * stake[j])
                row = row_of(group, a, i)
                for j in range(K):
                    row.d[j] = max(row.d[j] * grow[j], LEAST)
                guess = memory.threshold[k, i]
                kappa = solve_row(row, theta, guess if guess > 0.0 and guess < FARTHEST else 1.0)
                memory.threshold[k, i] = kappa
                for j in range(K):
                    centre = row.scale * row.p[j]
                    row.d[j] = min(max(kappa * row.d[j], centre - theta), centre + theta)


EACH = Family(boxes, each=True)
"""A budget for each kernel."""
