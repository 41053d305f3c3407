"""Thresholds of (ℓ2, 2) in little memory: of the N of a pair only that of the first kernel is kept.

Where a model of events has N laws, τ_i of every pair and kernel are the only numbers of size S·A·N that are left between sweeps. The others are near the first
one: a sweep starts each row from the row before, and whoever needs them all finds them again (`settle`): τ solves Σ_j (ŷ_j + t u_j − τ)⁺ = 1, which
falls in pieces of lines that bend upwards, so that Newton's method is finite from any τ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.layout.events import EventLayout
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory
from drmdp.layout.pairs import by_pair
from drmdp.layout.point import Point, normalise, scratch

STEPS = 60


def remembered(layout: Any) -> int:
    """How many kernels' thresholds are kept."""
    return 1 if isinstance(layout, EventLayout) and layout.light else int(layout.weights.size)


def opened(part: Layout, point: Point, memory: Memory, settled: bool) -> Memory:
    """The memory of a piece with room for all thresholds; settled, or NaN where they were not kept."""
    n, A = part.available.shape
    tau = np.full((n, A, part.weights.size), np.nan)
    tau[:, :, 0] = memory.by_row[:, :, 0]
    if settled and part.radius.ndim == 2:  # every pair has a scale of its own
        pairs, bend = by_pair(part), memory.by_action.reshape(-1, 1)
        _settle(pairs, point, bend, tau.reshape(n * A, 1, -1), scratch(pairs, 0, n * A))
    elif settled:
        _settle(part, point, memory.by_action, tau, scratch(part, 0, n))
    return memory._replace(by_row=tau)


@njit(**KERNEL)
def _settle(layout, point, bend, tau, state):
    """Find all thresholds of the pairs that nature bends, from the first one of each.

    reads   layout, point, bend (n, A)
    fills   tau (n, A, N), state
    """
    n, A, N = tau.shape
    for s in range(n):
        base, _ = normalise(layout, point, s, state)
        if not base < np.inf:
            continue
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            first, level = lo - layout.indptr[s * A], tau[s, a, 0]
            for i in range(N):
                if bend[s, a] > 0.0 and hi > lo:
                    level = threshold(layout.data, N * lo + i * (hi - lo), state.u, first, hi - lo, bend[s, a], level)
                tau[s, a, i] = level


@njit(**INLINE)
def threshold(y, at, u, first, K, t, level):
    """τ of a row.

    reads   y from at on, u from first on, K, t, level (where to begin)
    returns τ
    """
    for _ in range(STEPS):
        count, total, highest = 0.0, -1.0, -np.inf
        for j in range(K):
            h = y[at + j] + t * u[first + j]
            highest = max(highest, h)
            if h > level:
                count += 1.0
                total += h
        new = total / count if count > 0.0 else highest - 1.0
        if new == level:
            break
        level = new
    return level
