"""(ℓ1, ∞) where nature holds on to the segments of the last sweep: a few numbers of every row tell, and no table is made.

The gains are piecewise linear, so an optimum stays one, up to a shift of mass, as long as the same segments are shared. At given amounts m,
with D⁻ ≥ D⁺ the slopes of a row to the left and right of its m,

    x_a D⁺_ia ≤ μ_i ≤ x_a D⁻_ia for every row,    μ_i = 0 or Σ_a m_ia = B   ⟹   m answers x:  f(x) = Σ_a x_a q_a,   q the values at m,

and m is optimal with x if all q_a are equal. So: where actions share a kernel, both inside a segment, their segments are worth the same, which
ties their x; those ties give x. Then mass moves between tied actions in kernels where that changes nothing else, until all values are
equal. Anything unexpected makes the gap U − L large, and the state is solved from scratch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, LEAN, njit

INSIDE = 1e-7  # of a segment's length
EQUAL = 1e-13  # relative; slopes that differ less are worth the same


class Held(NamedTuple):
    """The segments around the amounts m of up to A actions in N kernels, (A, N) each."""

    gain: Array  # g(m)
    low: Array  # where the segment of m begins
    high: Array  # and ends
    slope: Array  # D⁺
    before: Array  # where the segment before begins
    left: Array  # its slope
    tree: Any  # (2, A)


def make_held(A: int, N: int) -> Held:
    """Work space."""
    gain, low, high, slope, before, left = np.empty((6, A, N))
    return Held(gain, low, high, slope, before, left, np.empty((2, A), dtype=np.int64))


@njit(**LEAN)
def locate(pair, size, m, held, a):
    """Find the segment of the gain of each row that contains its amount; an amount beyond which nothing is gained moves to the kink.

    reads   pair (its order that of `by_gain`), size (by which masses are divided), a (a number for the action)
    fills   m (N,); held[a]: both ends of the segment, its slope, the segment before, and the gain
    """
    y, entry, delta = pair.y, pair.entry, pair.level
    for i in range(m.size):
        row = np.uint64(pair.at + i * pair.K)
        factor = pair.scale[i] / size
        here = m[i]
        mass = 0.0
        gain = 0.0
        last = 0.0  # begin of the segment before
        left = np.inf
        high = np.inf
        slope = 0.0
        for k in range(np.uint64(pair.length)):
            p = y[row + np.uint64(entry[k])] * factor
            if mass + p > here + 1e-14:
                high = mass + p
                slope = delta[k]
                break
            if p > 0.0:
                last = mass
                left = delta[k]
                mass += p
                gain += p * left
        m[i] = max(here, mass) if slope > 0.0 else mass  # nothing to gain beyond the end
        held.gain[a, i] = gain + (m[i] - mass) * slope
        held.low[a, i], held.high[a, i], held.slope[a, i] = mass, high, slope
        held.before[a, i], held.left[a, i] = last, left


@njit(**INLINE)
def _inside(m, held, a, i):
    """Whether an amount lies inside its segment.

    reads   m (A, N), held, a, i
    returns True if it is not near an end
    """
    low, high = held.low[a, i], held.high[a, i]
    margin = INSIDE * (high - low)
    return high < np.inf and m[a, i] > low + margin and m[a, i] < high - margin


@njit(**INLINE)
def _tie(n, N, m, held, x):
    """Find prices at which segments that share a kernel are worth the same.

    The ties are a tree: tree[0] lists the actions from the root on, tree[1] holds for each the one it is tied to.

    reads   n, N, m (A, N), held
    fills   x (n,), held.tree
    returns whether all actions are tied
    """
    tree = held.tree
    root = 0
    for a in range(n):
        tree[1, a] = -1
        if x[a] > x[root]:
            root = a
    tree[0, 0], tree[1, root] = root, root
    x[root] = 1.0
    total = 1.0
    known, before = 1, 0
    while known > before and known < n:
        before = known
        for i in range(N):
            old = -1
            for a in range(n):
                if tree[1, a] >= 0 and _inside(m, held, a, i):
                    old = a
                    break
            for a in range(n if old >= 0 else 0):
                if tree[1, a] < 0 and _inside(m, held, a, i):
                    tree[0, known], tree[1, a] = a, old
                    x[a] = x[old] * held.slope[old, i] / held.slope[a, i]
                    total += x[a]
                    known += 1
    for a in range(n):
        x[a] /= total
    return known == n and total < 1e100


@njit(**LEAN)
def hold(n, N, w, B, work, held):
    """Bounds from the amounts m⁰ in work.

    reads   n, N, w (N,), B, held
    fills   work: the best x, m and μ; held
    returns U = f(x) and L = min q, infinite ones if the amounts do not answer any x
    """
    x, m, mu, q = work.best_x, work.best, work.best_mu, work.q
    for a in range(n):
        x[a], q[a] = work.x[a], work.head[a]
        for i in range(N):
            m[a, i] = work.centre[a, i]
    if not _tie(n, N, m, held, x):
        return np.inf, -np.inf
    upper = 0.0
    for i in range(N):
        least = np.inf
        most = 0.0
        total = 0.0
        for a in range(n):
            q[a] += w[i] * held.gain[a, i]
            total += m[a, i]
            most = max(most, x[a] * held.slope[a, i])
            least = min(least, x[a] * (held.slope[a, i] if m[a, i] > held.low[a, i] else held.left[a, i]))
        if most > (1.0 + EQUAL) * least or total > (1.0 + 1e-14) * B or (total < (1.0 - 1e-14) * B and most > 0.0):
            return np.inf, -np.inf
        mu[i] = most
        for a in range(n):  # where m can move: in a segment worth μ
            if x[a] * held.slope[a, i] < (1.0 - EQUAL) * most:
                if x[a] * held.left[a, i] <= (1.0 + EQUAL) * most:
                    held.high[a, i], held.low[a, i] = held.low[a, i], held.before[a, i]
                    held.slope[a, i] = held.left[a, i]
                else:
                    held.low[a, i] = held.high[a, i] = m[a, i]
    for a in range(n):
        upper += x[a] * q[a]
    for k in range(n - 1, 0, -1):
        a = held.tree[0, k]
        _balance(N, w, a, held.tree[1, a], upper, m, held, q)
    for i in range(N):
        total = 0.0
        for a in range(n):
            total += m[a, i]
        if total > B:  # rounding
            for a in range(n):
                m[a, i] *= B / total
    least = np.inf
    for a in range(n):
        least = min(least, q[a])
    return upper, least


@njit(**INLINE)
def _balance(N, w, a, b, value, m, held, q):
    """Move mass between the actions a and b until a has the value.

    reads   N, w (N,), a, b, value, held
    fills   m (A, N), q (n,)
    """
    for i in range(N):
        rate = w[i] * held.slope[a, i]
        if not rate > 0.0:
            continue
        if q[a] < value:
            more = min((value - q[a]) / rate, held.high[a, i] - m[a, i], m[b, i] - held.low[b, i])
            more = max(more, 0.0)
        else:
            more = max((value - q[a]) / rate, held.low[a, i] - m[a, i], m[b, i] - held.high[b, i])
            more = min(more, 0.0)
        if more != 0.0:
            m[a, i] += more
            m[b, i] -= more
            q[a] += rate * more
            q[b] -= w[i] * held.slope[b, i] * more
