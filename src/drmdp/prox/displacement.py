"""What the proximal maps share: the rows of a state as displacements from the data, and the way back.

A state's iterate holds the rows y_ia of its pairs in the layout of `drmdp.layout.layout.Layout.data`. A map turns them
in place into displacements d = z − ŷ of the point z to be projected, looks for the multipliers of the ball, and turns
them into the rows y = ŷ + e of the projection. In each metric e is a function of d − α, clipped from below at −ŷ, where
the threshold α makes Σ e = 0. What rounding leaves of this sum is taken from the larger side, which keeps y in the
simplex and never takes it away from ŷ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.layout.layout import FAST

ROUNDING = 4e-16
FARTHEST = 1e150
LARGE = 64.0
"""From this size of thresholds on, d − α is formed first: sums that may be reordered would round α + r instead, say."""


ROUGH = 0.01
"""Relative accuracy of the distance for which one kernel is solved to have a guess for all."""

MISLED = 0.5
"""Relative error of the distance from which on a guess is dropped for a fresh one."""


class Family(NamedTuple):
    """A compiled map over ranges of states, and what it finds."""

    kernel: Any
    each: bool  # one multiplier a kernel, else one a state
    more: tuple[int, int] = 0, 0  # numbers beside them, a state and a kernel


class Memory(NamedTuple):
    """What a map leaves behind for the next one, and reads as a guess; zeros to begin with."""

    multiplier: Array  # (S, M), see each family
    threshold: Array  # (S·A, N), α
    trials: Any  # (S, M) int64, multipliers tried; 0 where the ball does not bind


class Work(NamedTuple):
    """Work space of one state."""

    scale: Array  # (A, N), 1/Σ of stored rows
    rate: Array  # (A, N), how α changes with the multiplier
    shift: Array  # (A, N), what α lacks: apart, since for large points it is less than the rounding of α
    level: Array  # (A, N), mean of d
    peak: Array  # (A, N), largest entry of the point, ŷ + d
    still: Any  # (A,) bool, rows that are not displaced: the point is in the simplex
    spread: Array  # (N,), Σ (d − mean d)² of the other rows
    stake: Array  # (K,)
    kernel: Array  # (8, N), by kernel


@njit(cache=True, nogil=True)
def make_work(layout):  # type: ignore[no-untyped-def]
    """Work space for any state of a layout."""
    A, N = layout.available.shape[1], layout.weights.size
    longest = 0
    for k in range(layout.indptr.size - 1):
        longest = max(longest, layout.indptr[k + 1] - layout.indptr[k])
    own = np.zeros((4, A, N))
    return Work(
        np.ones((A, N)), own[0], own[1], own[2], own[3], np.zeros(A, dtype=np.bool_), np.zeros(N), np.empty(longest),
        np.zeros((8, N)),
    )  # fmt: skip


@njit(cache=True, nogil=True, fastmath=FAST)
def _displace(y, p, scale, size, stake):  # type: ignore[no-untyped-def]
    """Turn a row into d; its mean, the largest entry of the point, and Σ (d − mean d)² but for rounding."""
    total = 0.0
    square = 0.0
    peak = -np.inf
    for j in range(y.size):
        z = y[j] + size * stake[j]
        d = z - scale * p[j]
        peak = z if z > peak else peak
        total += d
        square += d * d
        y[j] = d
    return total / y.size, peak, max(square - total * total / y.size, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def displace(layout, s, y, step, value, memory, work, inside):  # type: ignore[no-untyped-def]
    """Turn the rows of state s into displacements of y_ia + w_i·step[s, a]·(c + λ v), c being the costs of next states.

    With `inside` rows without a step are in the simplex already, and left alone. Also drops what cannot be a guess from the memory.
    """
    for g in range(memory.multiplier.shape[1]):
        if not (memory.multiplier[s, g] > 0.0 and memory.multiplier[s, g] < FARTHEST):
            memory.multiplier[s, g] = 0.0
    N, A = layout.weights.size, layout.available.shape[1]
    work.spread[:] = 0.0
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        K = hi - lo
        work.still[a] = K == 0 or (inside and step[s, a] == 0.0)
        if work.still[a]:
            memory.threshold[s * A + a] = 0.0
            continue
        stake = work.stake[:K]
        stake[:] = 0.0
        if step[s, a] != 0.0:
            for j in range(K):
                stake[j] = layout.discount * value[layout.indices[lo + j]]
            if layout.next_costs.size > 0:
                stake += layout.next_costs[lo:hi]
            stake -= largest(stake) if step[s, a] > 0.0 else smallest(stake)  # changes nothing, and keeps α small
        for i in range(N):
            if not abs(memory.threshold[s * A + a, i]) < FARTHEST:
                memory.threshold[s * A + a, i] = 0.0
            e = N * lo + i * K
            work.level[a, i], work.peak[a, i], spread = _displace(
                y[e : e + K], layout.data[e : e + K], work.scale[a, i], layout.weights[i] * step[s, a], stake
            )
            work.spread[i] += spread


@njit(cache=True, nogil=True)
def pass_on(row, A, k, first, stop, threshold):  # type: ignore[no-untyped-def]
    """Where kernels first … stop − 1 have no threshold take that of kernel k, rows row … row + A − 1."""
    for a in range(row, row + A):
        for i in range(first, stop):
            if threshold[a, i] == 0.0:
                threshold[a, i] = threshold[a, k]


@njit(cache=True, nogil=True, fastmath=FAST)
def restore(e, p, scale, part):  # type: ignore[no-untyped-def]
    """Turn e into y = ŷ + e, after the larger of the sums of gains and losses is cut to the other, and both to a part.

    Returns the sums of |e| and e², and the largest |e|.
    """
    up = 0.0
    down = 0.0
    for j in range(e.size):
        up += e[j] if e[j] > 0.0 else 0.0
        down -= e[j] if e[j] < 0.0 else 0.0
    gain, loss = part, part
    if up > down:
        gain *= down / up
    elif down > up:
        loss *= up / down
    most = 0.0
    total = 0.0
    square = 0.0
    for j in range(e.size):
        move = e[j] * gain if e[j] > 0.0 else e[j] * loss
        size = move if move > 0.0 else -move
        most = size if size > most else most
        total += size
        square += size * size
        y = scale * p[j] + move
        e[j] = y if y > 0.0 else 0.0
    return total, square, most


@njit(cache=True, nogil=True)
def pull_in(layout, s, y, first, stop, part, work):  # type: ignore[no-untyped-def]
    """Take the kernels first … stop − 1 to ŷ + part·(y − ŷ)."""
    N, A = layout.weights.size, layout.available.shape[1]
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        for i in range(first, stop):
            for e in range(N * lo + i * (hi - lo), N * lo + (i + 1) * (hi - lo)):
                centre = layout.data[e] * work.scale[a, i]
                y[e] = centre + part * (y[e] - centre)


@njit(cache=True, nogil=True)
def reset(layout, s, y, work):  # type: ignore[no-untyped-def]
    """Set the rows of state s to ŷ."""
    N, A = layout.weights.size, layout.available.shape[1]
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        for i in range(N):
            for e in range(N * lo + i * (hi - lo), N * lo + (i + 1) * (hi - lo)):
                y[e] = layout.data[e] * work.scale[a, i]


@njit(cache=True, nogil=True, fastmath=FAST)
def largest(d):  # type: ignore[no-untyped-def]
    """The largest entry."""
    most = -np.inf
    for j in range(d.size):
        most = d[j] if d[j] > most else most
    return most


@njit(cache=True, nogil=True, fastmath=FAST)
def smallest(d):  # type: ignore[no-untyped-def]
    """The smallest entry."""
    least = np.inf
    for j in range(d.size):
        least = d[j] if d[j] < least else least
    return least
