"""Proximal maps on the simplex: Euclidean projection of rows, and the entropy step.

    project:  argmin_{y∈Δ} ½ ‖y − z‖²  =  (z − τ)⁺,  τ such that the entries sum to 1,
    entropy:  argmin_{x∈Δ} η g·x + Σ_a x_a log(x_a/x⁰_a)  =  x⁰ exp(−η g) / Σ.

Σ (z − τ)⁺ is convex in τ, so Newton's method climbs from the left after one step and ends as soon as no entry is lost.
"""

from __future__ import annotations

import numpy as np

from drmdp.core.compiled import KERNEL, njit


@njit(**KERNEL)
def project_rows(z):
    """Replace each row by its projection.

    fills   z (n, K)
    """
    for k in range(z.shape[0]):
        row = z[k]
        top = -np.inf
        for j in range(row.size):
            top = max(top, row[j])
        for j in range(row.size):
            row[j] -= top  # the level changes nothing, and large ones lose digits
        tau = -1.0
        last = row.size + 1
        while True:
            count = 0
            total = 0.0
            for j in range(row.size):
                if row[j] > tau:
                    count += 1
                    total += row[j]
            if count >= last:  # ties may come back by rounding
                break
            tau, last = (total - 1.0) / count, count
        for j in range(row.size):
            row[j] = max(row[j] - tau, 0.0)


@njit(**KERNEL)
def entropy_step(x, gradient, size):
    """Replace x by x exp(−size·gradient)/Σ; a gradient of inf, and x = 0, give 0. x must hold some mass elsewhere.

    reads   gradient (A,), size
    fills   x (A,)
    """
    least = np.inf
    for a in range(x.size):
        if x[a] > 0.0:
            least = min(least, gradient[a])
    total = 0.0
    for a in range(x.size):
        x[a] = x[a] * np.exp(-size * (gradient[a] - least)) if x[a] > 0.0 else 0.0
        total += x[a]
    for a in range(x.size):
        x[a] /= total
