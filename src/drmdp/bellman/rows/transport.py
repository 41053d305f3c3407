"""Transport: C = Σ_j ŷ(j) D(j, k(j)), the mass of source j going to k(j), or to several. See `drmdp.layout.grounded` for the lists of D.

    h(t) = Σ_j ŷ(j) max_k [t u_k − D(j, k)],    V = Σ ŷ(j) u_{k(j)},    E = Σ ŷ(j) D(j, k(j)),    D = 0: V and E are steps in t.

The maximum does not depend on ŷ. Where it does not depend on the pair either, every source has a table, made once a sweep: the vertices of the concave hull
of (D(j, k), u_k), each with the t from which it is best. Elsewhere the list of the source is scanned, nearest first; as u ≤ 0, no target farther than −best
can win. At equal scores the higher stake wins.

Rows may leave their data at no cost where D is 0 between different states: the answer at `NEAR` is that of t → 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.point import FLAT

NEAR = 1e-150  # below t D/u for any D > 0, which is at least 1e-100


class Moves(NamedTuple):
    """Where mass can go, and the tables of a sweep; without tables `count` is empty."""

    ptr: Any
    target: Any
    cost: Array
    count: Any  # (n,) vertices of each source, from ptr on
    turn: Array  # t from which a vertex is best
    far: Array  # its cost
    high: Array  # its stake
    source: Any  # the list of each entry of the layout


@njit(**LEAN)
def hull(lists, j, u, turn, far, high, base):
    """Vertices of source j from place `base` on; what is higher by rounding only is not worth the way.

    reads   lists, j, u: stakes that targets point to, base
    fills   turn, far, high
    returns the place of the last one
    """
    first, n = lists.ptr[j], base
    turn[n], far[n], high[n] = 0.0, 0.0, u[lists.target[first]]
    for k in range(first + 1, lists.ptr[j + 1]):
        x, d = u[lists.target[k]], lists.cost[k]
        if not x > high[n] + FLAT:
            continue
        t = (d - far[n]) / (x - high[n])
        while n > base and t <= turn[n]:
            n -= 1
            t = (d - far[n]) / (x - high[n])
        if d > 0.0:
            n += 1
        else:
            t = 0.0
        turn[n], far[n], high[n] = t, d, x
        if x == 0.0:
            break
    return n


@njit(**KERNEL)
def make_tables(u, asked, moves):
    """Hulls of the sources that are asked for.

    reads   u: stakes that targets point to; asked (n,): whether a source is
    fills   moves: count, turn, far, high
    """
    for j in range(asked.size):
        if asked[j]:
            base = moves.ptr[j]
            moves.count[j] = hull(moves, j, u, moves.turn, moves.far, moves.high, base) - base + 1


@njit(**INLINE)
def looked_up(moves, j, t):
    """The vertex of source j that is best at t.

    reads   moves, j, t
    returns its place
    """
    lo = moves.ptr[j]
    hi = lo + moves.count[j]
    while hi - lo > 8:
        mid = (lo + hi) // 2
        if moves.turn[mid] <= t:
            lo = mid
        else:
            hi = mid
    while lo + 1 < hi and moves.turn[lo + 1] <= t:
        lo += 1
    return lo


@njit(**LEAN)
def scanned(moves, j, t, u):
    """The target of source j that is best at t; at ∞ the nearest of the highest stake.

    reads   moves, j, t, u: stakes that targets point to
    returns its place in the lists
    """
    lo = moves.ptr[j]
    best, at = -np.inf, lo
    for k in range(lo, moves.ptr[j + 1]):
        x = u[moves.target[k]]
        if t == np.inf:
            if x > u[moves.target[at]]:
                at = k
            continue
        if -moves.cost[k] < best:
            break
        score = t * x - moves.cost[k]
        if score > best or (score == best and x > u[moves.target[at]]):
            best, at = score, k
    return at


@njit(**LEAN)
def response(t, y, scale, w, u, z, source, moves):
    """Value, cost and slope at t, of one row.

    reads   t, y (K,), scale (1,), u (K,), source (K,), moves, w, z
    returns V, E, 0
    """
    value, cost = 0.0, 0.0
    for j in range(u.size):
        if not y[j] > 0.0:
            continue
        if moves.count.size > 0:
            at = looked_up(moves, source[j], t)
            value += y[j] * moves.high[at]
            cost += y[j] * moves.far[at]
        else:
            at = scanned(moves, source[j], t, u)
            value += y[j] * u[moves.target[at]]
            cost += y[j] * moves.cost[at]
    return scale[0] * value, scale[0] * cost, 0.0


@njit(**LEAN)
def saturated(y, scale, w, u, z, source, moves):
    """All mass at the nearest of the highest stakes that it can reach.

    reads   y (K,), scale (1,), u (K,), source (K,), moves, w, z
    returns V, E
    """
    value, cost, _slope = response(np.inf, y, scale, w, u, z, source, moves)
    return value, cost
