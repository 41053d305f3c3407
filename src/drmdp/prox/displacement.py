"""What the proximal maps share: the rows of a state as displacements from the data, and the way back.

A state's iterate holds the rows y_ia of its pairs in the layout of `drmdp.layout.layout.Layout.data`. A map turns them
in place into displacements d = z − ŷ of the point z to be projected, looks for the multipliers of the ball, and turns
them into the rows y = ŷ + e of the projection. In each metric e is a function of d − α, clipped from below at −ŷ, where
the threshold α makes Σ e = 0. What rounding leaves of this sum is taken from the larger side, which keeps y in the
simplex and never takes it away from ŷ.

Compiled functions pass three tuples on: the whole projection (`Job`), the kernels of one state that share a multiplier (`Group`), and one
row (`Row`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import FAST, INLINE, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import row_scales

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

    kernel: Any  # (start, stop, layout, push, y, memory, how, work)
    each: bool  # one multiplier a kernel, else one a state
    extra: tuple[int, int] = 0, 0  # numbers beside them, a state and a kernel


class Push(NamedTuple):
    """The point to be projected: row (s, a, i) of it is y_ia + w_i·step[s, a]·(c + λ v), with c the costs of next states."""

    step: Array  # (S, A)
    value: Array  # (S,), v


class Memory(NamedTuple):
    """What a map leaves behind for the next one, and reads as a guess; zeros to begin with."""

    multiplier: Array  # (S, M), see each family
    threshold: Array  # (S·A, N), α
    trials: Any  # (S, M) int64, multipliers tried; 0 where the ball does not bind


class How(NamedTuple):
    """How to project."""

    accuracy: float  # of distances, relative to θ
    each: bool  # one multiplier a kernel, else one a state
    inside: bool  # the iterate is in the ball already, so that rows without a step may be left alone


class Work(NamedTuple):
    """Work space of one state."""

    scale: Array  # (A, N), 1/Σ of stored rows
    rate: Array  # (A, N), how α changes with the multiplier
    shift: Array  # (A, N), what α lacks: apart, since for large points it is less than the rounding of α
    level: Array  # (A, N), mean of d
    peak: Array  # (A, N), largest entry of the point, ŷ + d
    still: Any  # (A,) bool, rows that are not displaced: the point is in the simplex
    spread: Array  # (N,), Σ (d − mean d)² of the other rows
    ones: Array  # (N,), weights where each kernel has a budget of its own
    spare: Array  # (K,), stakes of an action, or a row of any kind
    grown: Array  # (K,), a second one
    kernel: Array  # (8, N), by kernel


class Job(NamedTuple):
    """One projection of many states: what a map is called with."""

    layout: Layout
    push: Push
    y: Array  # (N·nnz,), the iterate
    memory: Memory
    how: How
    work: Work


class Group(NamedTuple):
    """The rows of one state that share a multiplier: those of the kernels first … stop − 1."""

    layout: Layout
    s: int
    y: Array  # (N·nnz,), displacements in state s
    threshold: Array  # (S·A, N), α
    work: Work
    w: Array  # (N,), weights, or ones
    first: int
    stop: int


class Row(NamedTuple):
    """One row, K entries."""

    d: Array  # displacement
    p: Array  # stored probabilities: ŷ = scale·p
    scale: float
    spare: Array  # (K,), work space


def make_work(layout: Layout, start: int, stop: int) -> Work:
    """Work space for any state of a range."""
    A, N = layout.available.shape[1], layout.weights.size
    longest = int(np.diff(layout.indptr[start * A : stop * A + 1]).max(initial=0))
    rate, shift, level, peak = np.zeros((4, A, N))
    spare, grown = np.empty((2, longest))
    return Work(
        np.ones((A, N)), rate, shift, level, peak, np.zeros(A, dtype=np.bool_), np.zeros(N), np.ones(N), spare, grown,
        np.zeros((8, N)),
    )  # fmt: skip


@njit(**INLINE)
def row_of(group, a, i):
    """Row of action a and kernel i.

    reads   group, a, i
    returns row
    """
    N, A = group.layout.weights.size, group.layout.available.shape[1]
    lo, hi = group.layout.indptr[group.s * A + a], group.layout.indptr[group.s * A + a + 1]
    e = N * lo + i * (hi - lo)
    return Row(
        group.y[e : e + hi - lo],
        group.layout.data[e : e + hi - lo],
        group.work.scale[a, i],
        group.work.spare[: hi - lo],
    )


@njit(**LEAN)
def fill_stakes(layout, value, pair, stake):
    """Fill the stakes c + λ v of a pair at its listed states.

    reads   layout, value (S,), pair
    fills   stake (K,)
    """
    lo = layout.indptr[pair]
    for j in range(stake.size):
        stake[j] = layout.discount * value[layout.indices[lo + j]]
    if layout.next_costs.size > 0:
        for j in range(stake.size):
            stake[j] += layout.next_costs[lo + j]


@njit(**LEAN)
def level_stakes(stake, step):
    """Subtract what changes no step, so that a step in this direction has no positive entry: thresholds stay small.

    reads   step
    fills   stake (K,)
    """
    top = largest(stake) if step > 0.0 else smallest(stake)
    for j in range(stake.size):
        stake[j] -= top


@njit(fastmath=FAST, **LEAN)
def _displace(y, p, scale, size, stake):
    """Turn a row into d.

    reads   p (K,), scale, size, stake (K,)
    fills   y (K,)
    returns mean of d, largest entry of the point, Σ (d − mean d)² but for rounding
    """
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


@njit(**LEAN)
def displace(s, job, inside):
    """Turn the rows of state s into displacements of the point; with `inside` rows without a step are left alone.

    What cannot be a guess is dropped from the memory.

    reads   s, inside
    fills   job.y, job.memory, job.work
    """
    layout, memory, work, step = job.layout, job.memory, job.work, job.push.step
    for g in range(memory.multiplier.shape[1]):
        if not (memory.multiplier[s, g] > 0.0 and memory.multiplier[s, g] < FARTHEST):
            memory.multiplier[s, g] = 0.0
    N, A = layout.weights.size, layout.available.shape[1]
    for i in range(N):
        work.spread[i] = 0.0
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        K = hi - lo
        work.still[a] = K == 0 or (inside and step[s, a] == 0.0)
        if work.still[a]:
            for i in range(N):
                memory.threshold[s * A + a, i] = 0.0
            continue
        stake = work.spare[:K]
        if step[s, a] != 0.0:
            fill_stakes(layout, job.push.value, s * A + a, stake)
            level_stakes(stake, step[s, a])
        else:
            for j in range(K):
                stake[j] = 0.0
        for i in range(N):
            if not abs(memory.threshold[s * A + a, i]) < FARTHEST:
                memory.threshold[s * A + a, i] = 0.0
            e = N * lo + i * K
            work.level[a, i], work.peak[a, i], spread = _displace(
                job.y[e : e + K], layout.data[e : e + K], work.scale[a, i], layout.weights[i] * step[s, a], stake
            )
            work.spread[i] += spread


@njit(**LEAN)
def open_state(s, job, inside):
    """Begin with state s: turn its rows into displacements, or, where θ = 0, into the data.

    reads   s, inside
    fills   job.y, job.memory, job.work
    returns θ
    """
    row_scales(job.layout, s, job.work.scale)
    theta = job.layout.radius[s]
    if theta == 0.0:
        reset(job.layout, s, job.y, job.work.scale)
    else:
        displace(s, job, inside)
    return theta


@njit(**LEAN)
def restart(work, first, stop):
    """Forget how the thresholds of the kernels first … stop − 1 change, and what they lack.

    reads   first, stop
    fills   work.rate, work.shift
    """
    for a in range(work.rate.shape[0]):
        for i in range(first, stop):
            work.rate[a, i] = 0.0
            work.shift[a, i] = 0.0


@njit(**LEAN)
def pass_on(group, k):
    """Where the kernels of a group have no threshold take that of kernel k.

    reads   k
    fills   group.threshold
    """
    A = group.layout.available.shape[1]
    for row in range(group.s * A, group.s * A + A):
        for i in range(group.first, group.stop):
            if group.threshold[row, i] == 0.0:
                group.threshold[row, i] = group.threshold[row, k]


@njit(fastmath=FAST, **LEAN)
def restore(row, part):
    """Turn e, which is in row.d, into y = ŷ + e, after the larger of the sums of gains and losses is cut to the other, and both to a part.

    reads   part
    fills   row.d
    returns Σ |e|, Σ e², largest |e|
    """
    e, p, scale = row.d, row.p, row.scale
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
    highest = 0.0
    total = 0.0
    square = 0.0
    for j in range(e.size):
        move = e[j] * gain if e[j] > 0.0 else e[j] * loss
        size = move if move > 0.0 else -move
        highest = size if size > highest else highest
        total += size
        square += size * size
        y = scale * p[j] + move
        e[j] = y if y > 0.0 else 0.0
    return total, square, highest


@njit(**LEAN)
def pull_in(group, part):
    """Take the kernels of a group, whose rows are done, to ŷ + part·(y − ŷ).

    reads   part
    fills   group.y
    """
    layout, s, y = group.layout, group.s, group.y
    N, A = layout.weights.size, layout.available.shape[1]
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        for i in range(group.first, group.stop):
            for e in range(N * lo + i * (hi - lo), N * lo + (i + 1) * (hi - lo)):
                centre = layout.data[e] * group.work.scale[a, i]
                y[e] = centre + part * (y[e] - centre)


@njit(**LEAN)
def reset(layout, s, y, scale):
    """Set the rows of state s to ŷ.

    reads   layout, s, scale (A, N)
    fills   y (N·nnz,)
    """
    N, A = layout.weights.size, layout.available.shape[1]
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        for i in range(N):
            for e in range(N * lo + i * (hi - lo), N * lo + (i + 1) * (hi - lo)):
                y[e] = layout.data[e] * scale[a, i]


@njit(fastmath=FAST, **LEAN)
def largest(d):
    """The largest entry.

    reads   d (K,)
    returns its largest entry
    """
    highest = -np.inf
    for j in range(d.size):
        highest = d[j] if d[j] > highest else highest
    return highest


@njit(fastmath=FAST, **LEAN)
def smallest(d):
    """The smallest entry.

    reads   d (K,)
    returns its smallest entry
    """
    least = np.inf
    for j in range(d.size):
        least = d[j] if d[j] < least else least
    return least
