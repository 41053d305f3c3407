"""The compiled steps of the first-order method."""

from __future__ import annotations

import math

import numpy as np

from drmdp.core.compiled import FAST, KERNEL, LEAN, njit
from drmdp.layout.point import row_scales
from drmdp.prox.displacement import fill_stakes, reset
from drmdp.prox.simplex import entropy_step, project_rows

L1, L2, LINF = 0, 1, 2
SWEEPS = 10
"""Of a forecast."""
LEAST = 1e-200
"""Entropy: no probability below it, or it could never come back."""


@njit(fastmath=FAST, **KERNEL)
def mix(part, mean, point):
    """Move a mean by a part of the way to a point.

    reads   part, point (n,)
    fills   mean (n,)
    """
    for j in range(mean.size):
        mean[j] += part * (point[j] - mean[j])


@njit(**KERNEL)
def begin(layout, y, scale):
    """Set y = ŷ.

    reads   layout
    fills   y (N·nnz,), scale (A, N)
    """
    for s in range(layout.available.shape[0]):
        row_scales(layout, s, scale)
        reset(layout, s, y, scale)


@njit(**KERNEL)
def measure(layout, value, centre, largest, norm, top, stake):
    """Measure z_a over what nature may use: max_a ‖z_a‖₂, or ‖z_a‖_∞ with `largest`, without its middle if `centre`; and max_t z_a(t).

    reads   layout, value (S,), centre, largest
    fills   norm (S,): from 0 on; top (S, A), stake (K,)
    """
    S, A = layout.available.shape
    for s in range(S):
        for a in range(A):
            K = layout.indptr[s * A + a + 1] - layout.indptr[s * A + a]
            if not layout.available[s, a] or K == 0:
                continue
            z = stake[:K]
            fill_stakes(layout, value, s * A + a, z)
            high, low, total = z[0], z[0], 0.0
            for j in range(K):
                high, low = max(high, z[j]), min(low, z[j])
                total += z[j]
            top[s, a] = high
            size = 0.0
            if largest:
                level = (high + low) / 2 if centre else 0.0
                for j in range(K):
                    size = max(size, abs(z[j] - level))
            else:
                level = total / K if centre else 0.0
                for j in range(K):
                    size += (z[j] - level) ** 2
                size = math.sqrt(size)
            norm[s] = max(norm[s], size)


@njit(**KERNEL)
def act(start, stop, available, stakes, tau, entropy, policy, spare):
    """The policy's step.

    reads   start, stop, available (S, A), stakes (S, A), tau (S,), entropy
    fills   policy (S, A), spare (2, A)
    """
    q, z = spare[0], spare[1]
    for s in range(start, stop):
        cheapest = -1
        for a in range(q.size):
            q[a] = stakes[s, a] if available[s, a] else np.inf
            if available[s, a] and (cheapest < 0 or q[a] < q[cheapest]):
                cheapest = a
        if cheapest < 0:
            continue
        if tau[s] == np.inf:
            if not entropy:
                for a in range(q.size):
                    policy[s, a] = 0.0
                policy[s, cheapest] = 1.0
        elif entropy:
            entropy_step(policy[s], q, tau[s])
            for a in range(q.size):
                policy[s, a] = max(policy[s, a], LEAST) if available[s, a] else 0.0
        else:
            for a in range(q.size):
                z[a] = policy[s, a] - tau[s] * q[a]
            project_rows(spare[1:])
            for a in range(q.size):
                policy[s, a] = z[a]


@njit(fastmath=FAST, **LEAN)
def _add_row(y, p, scale, weight, mean):
    """Add a row to the mean, and measure how far it is from ŷ.

    reads   y (K,), p (K,), scale, weight
    fills   mean (K,)
    returns Σ|y − ŷ|, Σ(y − ŷ)², max|y − ŷ|
    """
    total = 0.0
    square = 0.0
    highest = 0.0
    for j in range(y.size):
        mean[j] += weight * y[j]
        e = y[j] - scale * p[j]
        size = e if e > 0.0 else -e
        total += size
        square += e * e
        highest = size if size > highest else highest
    return total, square, highest


@njit(**KERNEL)
def look(start, stop, layout, y, code, order, mean, apart, work):
    """Mean Σ_i w_i y_i, and how far away y is: Σ_i w_i d(y_i, ŷ_i)^p, or each d(y_i, ŷ_i) for order ∞.

    reads   start, stop, layout, y (N·nnz,), code: of the metric; order
    fills   mean (nnz,), apart (S, N): or (S, 1); work.scale, work.spread
    """
    A, N = layout.available.shape[1], layout.weights.size
    far = work.spread
    for s in range(start, stop):
        row_scales(layout, s, work.scale)
        for i in range(N):
            far[i] = 0.0
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            K = hi - lo
            middle = mean[lo:hi]
            for j in range(K):
                middle[j] = 0.0
            for i in range(N):
                e = N * lo + i * K
                total, square, highest = _add_row(
                    y[e : e + K], layout.data[e : e + K], work.scale[a, i], layout.weights[i], middle
                )
                if code == LINF:
                    far[i] = max(far[i], highest)
                else:
                    far[i] += total if code == L1 else square
        for i in range(N):
            size = math.sqrt(far[i]) if code == L2 else far[i]
            if order == np.inf:
                apart[s, i] = size
            else:
                apart[s, 0] = (0.0 if i == 0 else apart[s, 0]) + layout.weights[i] * size**order


@njit(**KERNEL)
def weigh(start, stop, layout, value, mean, stakes):
    """Stakes q of each action.

    reads   start, stop, layout, value (S,), mean (nnz,)
    fills   stakes (S, A)
    """
    A = layout.available.shape[1]
    for s in range(start, stop):
        for a in range(A):
            total = 0.0
            for e in range(layout.indptr[s * A + a], layout.indptr[s * A + a + 1]):
                z = layout.discount * value[layout.indices[e]]
                if layout.next_costs.size > 0:
                    z += layout.next_costs[e]
                total += mean[e] * z
            stakes[s, a] = layout.costs[s, a] + total


@njit(**KERNEL)
def foresee(layout, policy, mean, gain, total):
    """(I − λP)⁻¹ gain for the chain P of policy and mean kernel, by a few sweeps from the constant that a constant gain has.

    reads   layout, policy (S, A), mean (nnz,), gain (S,)
    fills   total (S,)
    """
    S, A = policy.shape
    level = 0.0
    for s in range(S):
        level += gain[s]
    for s in range(S):
        total[s] = level / S / (1.0 - layout.discount)
    for _ in range(SWEEPS):
        for s in range(S):
            new = gain[s]
            for a in range(A):
                if policy[s, a] > 0.0:
                    later = 0.0
                    for e in range(layout.indptr[s * A + a], layout.indptr[s * A + a + 1]):
                        later += mean[e] * total[layout.indices[e]]
                    new += layout.discount * policy[s, a] * later
            total[s] = new


@njit(**KERNEL)
def pull(layout, y, share, rows):
    """Pull the rows of y towards the data, each with sum 1, and sort them by kernel.

    reads   layout, y (N·nnz,), share (S,)
    fills   rows (N, nnz)
    """
    A, N = layout.available.shape[1], layout.weights.size
    for k in range(layout.indptr.size - 1):
        lo, hi = layout.indptr[k], layout.indptr[k + 1]
        for i in range(N):
            first = N * lo + i * (hi - lo)
            mass, stored, total = 0.0, 0.0, 0.0
            for j in range(hi - lo):
                mass += y[first + j]
                stored += layout.data[first + j]
            for j in range(hi - lo):
                centre = layout.data[first + j] / stored
                x = centre + share[k // A] * (max(y[first + j] / mass, 0.0) - centre)
                rows[i, lo + j] = x
                total += x
            for e in range(lo, hi):
                rows[i, e] /= total
