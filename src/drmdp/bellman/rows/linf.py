"""The ℓ∞ row: what nature gains when every probability of a row may change by at most r.

    g(r) = max { (y − ŷ)·u : y ∈ Δ, |y − ŷ| ≤ r },      concave and increasing, g(0) = 0.

Every entry may lose p = min(r, ŷ) and receive r. In descending order of u there is a pivot: entries above it receive
r, entries below it lose p, and it takes the balance δ ∈ [−p, r]. One pass without any order sums W = Σ p and −Σ p u, as
if all entries lost; a walk from the top then undoes the loss of each entry on its way and hands out r, until

    δ = Σ_{below} p − n r      (n entries above)

is at most r. As W ≤ r·#{ŷ > 0} and W ≤ 1, the walk has at most min(K, 1/r) + 1 steps. An unlisted state has p = 0 and
is met on the walk like any other, so a row of K listed entries costs O(K) whatever S is.

With n_b = #{below: ŷ > r}, the right slope is g'(r) = Σ_{above} u − Σ_{below, ŷ>r} u + u_pivot (n_b − n): as r grows,
the pivot moves only up, and the walk stops at the highest entry that can be it.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.rows.pair import Pair
from drmdp.core.compiled import FAST, INLINE, KERNEL, LEAN, njit
from drmdp.layout.sorting import sort_ahead


@njit(fastmath=FAST, **KERNEL)
def row_at(pair, i, r):
    """Row i bent by r > 0.

    reads   pair (its order that of `top_entries`), i, r
    returns gain, right slope, the number of the pivot, its δ, and n_b
    """
    y, u, entry, level, factor = pair.y, pair.u, pair.entry, pair.level, pair.scale[i]
    K = np.uint64(pair.K)
    y0, u0 = np.uint64(pair.at) + np.uint64(i) * K, np.uint64(pair.first)  # unsigned indices vectorise
    mass = 0.0
    gain = 0.0
    rest = 0.0
    slope = 0.0
    for j in range(K):
        p = y[y0 + j] * factor
        z = u[u0 + j]
        rest += 1.0 if p > r else 0.0
        slope -= z if p > r else 0.0
        p = p if p < r else r
        mass += p
        gain -= p * z
    n = np.uint64(0)
    last = np.uint64(pair.length - 1)
    while True:
        z = level[n]
        if entry[n] >= 0:
            p = y[y0 + np.uint64(entry[n])] * factor
            rest -= 1.0 if p > r else 0.0
            slope += z if p > r else 0.0
            p = p if p < r else r
            mass -= p
            gain += p * z
        if mass <= r or n == last:
            break
        mass -= r
        gain += r * z
        slope += z
        n += np.uint64(1)
    return max(gain + mass * z, 0.0), slope + z * (rest - n), n, mass, rest


@njit(fastmath=FAST, **LEAN)
def add_gains(pair, w, r, value, enough):
    """Add the gains of all rows to a value, until it is `enough`.

    reads   pair (its order that of `top_entries`), w (N,), r (N,), value, enough
    returns value + Σ_i w_i g_i(r_i), or anything from enough on if that is not below
    """
    y, u, entry, level = pair.y, pair.u, pair.entry, pair.level
    K, u0 = np.uint64(pair.K), np.uint64(pair.first)  # unsigned indices vectorise
    for i in range(np.uint64(w.size)):
        radius = r[i]
        if not radius > 0.0:
            continue
        factor = pair.scale[i]
        y0 = np.uint64(pair.at) + i * K
        mass = 0.0
        gain = 0.0
        for j in range(K):
            p = y[y0 + j] * factor
            p = p if p < radius else radius
            mass += p
            gain -= p * u[u0 + j]
        n = np.uint64(0)
        last = np.uint64(pair.length - 1)
        while True:
            e = entry[n]
            if e >= 0:
                p = y[y0 + np.uint64(e)] * factor
                p = p if p < radius else radius
                mass -= p
                gain += p * level[n]
            if mass <= radius or n == last:
                break
            mass -= radius
            gain += radius * level[n]
            n += np.uint64(1)
        value += w[i] * max(gain + mass * level[n], 0.0)
        if value >= enough:
            break
    return value


@njit(**KERNEL)
def walk_length(listed, n_states, unlisted, r):
    """How many entries from the top a walk at r can reach.

    reads   listed (K), n_states (S), unlisted, r
    returns their number
    """
    longest = min(listed + 1, n_states) if unlisted else listed
    return int(1.0 / r) + 2 if (longest - 2) * r > 1.0 else longest


@njit(**KERNEL)
def top_entries(u, indices, order, unlisted, length, sort):
    """Find the top entries of a pair.

    reads   u and indices (K,), order, unlisted, length (how many)
    fills   sort.entry (−1 where unlisted) and sort.level, and works in the others
    """
    entry, level, where, key, stack = sort.entry, sort.level, sort.where, sort.key, sort.stack
    K = u.size
    if unlisted:
        for j in range(K):
            where[indices[j]] = j
        for n in range(length):
            j = where[order.states[n]]
            entry[n] = j
            level[n] = u[j] if j >= 0 else order.u[n]
        for j in range(K):
            where[indices[j]] = -1
        return
    if sort.ascending.size == K:
        for n in range(length):
            entry[n] = sort.ascending[K - 1 - n]
    else:
        for j in range(K):
            key[j] = -u[j]
            entry[j] = j
        stack[0], stack[1] = 1, K
        done = np.int64(0)
        while done < length:
            done = sort_ahead(key, entry, stack, done)
    for n in range(length):
        level[n] = u[entry[n]]


@njit(**LEAN)
def rank_pair(layout, order, s, a, least, state, sort):
    """Find the top entries of the pair (s, a), as far as radii from `least` on reach.

    reads   layout, order, s, a, least, state.u
    fills   sort
    returns how many there are
    """
    k = s * state.cost.size
    lo, hi, first = layout.indptr[k + a], layout.indptr[k + a + 1], layout.indptr[k]
    length = walk_length(hi - lo, order.u.size, layout.unlisted, least)
    top_entries(state.u[lo - first : hi - first], layout.indices[lo:hi], order, layout.unlisted, length, sort)
    return length


@njit(**INLINE)
def pair_at(layout, s, a, length, state, sort):
    """Gather the pair (s, a) after its entries were brought in order.

    reads   layout, s, a, length (of that order), state, sort
    returns a Pair
    """
    A, N = state.scale.shape
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    return Pair(layout.data, N * lo, hi - lo, state.u, lo - first, state.scale[a], sort.entry, sort.level, length)
