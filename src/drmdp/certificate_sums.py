"""What the certificates of all metrics share: work space, and margins for rounding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman.layout import FLAT, Layout, scratch
from drmdp.compiled import INLINE

EPS = float(np.finfo(np.float64).eps)


class Room(NamedTuple):
    """Work space for a state of K entries."""

    u: Array  # (K,)
    cost: Array  # (A,)
    nominal: Array  # (A,)
    scale: Array  # (A, N)
    q: Array  # (A,)
    gain: Array  # (A, N)
    kernels: Array  # (4, N)
    actions: Array  # (4, A)
    reals: Array  # (3, K)
    places: Any  # (4, K)


def work_space(layout: Layout, start: int, stop: int) -> Room:
    """Work space for the states start … stop − 1."""
    own = scratch(layout, start, stop)
    (A, N), K = own.scale.shape, own.u.size
    return Room(
        *own[:4], np.empty(A), np.empty((A, N)), np.empty((4, N)), np.zeros((4, A)), np.empty((3, K)),
        np.empty((4, K), dtype=np.int64),
    )  # fmt: skip


@njit(**INLINE)
def finish(s, base, unit, q, terms, cost, x, upper, upper_size, layout, value_size, fixed, low, high):  # type: ignore[no-untyped-def]
    """Normalised results to units of cost, with margins; q (A,) are the actions' values under nature's kernels."""
    A = cost.size
    above = upper + (terms + 64) * EPS * upper_size
    noise = 0.0
    least = np.inf
    mean = 0.0
    for a in range(A):
        if not layout.available[s, a]:
            continue
        off = 8.0 * EPS * (abs(base) + unit * cost[a] + 2.0 * layout.discount * value_size)
        noise += x[a] * off
        below = base + unit * (q[a] - FLAT - (2 * terms + 64) * EPS * (2.0 + cost[a])) - off
        least = min(least, below)
        if x[a] > 0.0:
            mean += x[a] * below - 2.0 * A * EPS * x[a] * (abs(base) + unit * (1.0 + cost[a]))
    high[s] = base + unit * above + noise + A * EPS * abs(base)
    low[s] = mean if fixed else least
    if not math.isfinite(low[s]):
        low[s] = -np.inf
    if not math.isfinite(high[s]):
        high[s] = np.inf
