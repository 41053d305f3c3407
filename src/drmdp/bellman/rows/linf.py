"""The ℓ∞ row: what nature gains when every probability of a row may change by at most r; and entries in order of u.

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

from typing import Any

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.core.compiled import KERNEL, LEAN
from drmdp.layout.layout import FAST, Layout

SHORT = 20  # pieces up to this length are sorted by insertion


@njit(fastmath=FAST, **KERNEL)
def row_at(y, y0, K, u, u0, factor, r, entry, level, length):  # type: ignore[no-untyped-def]
    """Gain and right slope at r > 0 of the row at y[y0], unsigned, and its u at u[u0]; the pivot, its δ, and n_b.

    entry and level are those of `top_entries`, as many as `length`.
    """
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
    last = np.uint64(length - 1)
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
def add_gains(y, at, K, u, first, scale, w, r, entry, level, length, value, enough):  # type: ignore[no-untyped-def]
    """`value` and Σ_i w_i g_i(r_i), or anything from `enough` on if that is not below.

    The rows of the pair begin at y[at], its u at u[first]; entry and level are those of `top_entries`, as many as `length`.
    """
    u0 = np.uint64(first)  # unsigned indices vectorise
    for i in range(np.uint64(w.size)):
        radius = r[i]
        if not radius > 0.0:
            continue
        factor = scale[i]
        y0 = np.uint64(at) + i * np.uint64(K)
        mass = 0.0
        gain = 0.0
        for j in range(np.uint64(K)):
            p = y[y0 + j] * factor
            p = p if p < radius else radius
            mass += p
            gain -= p * u[u0 + j]
        n = np.uint64(0)
        last = np.uint64(length - 1)
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
def walk_length(listed, n_states, unlisted, r):  # type: ignore[no-untyped-def]
    """How many entries from the top a walk at r can reach."""
    most = min(listed + 1, n_states) if unlisted else listed
    return int(1.0 / r) + 2 if (most - 2) * r > 1.0 else most


@njit(**KERNEL)
def top_entries(u, indices, order, unlisted, ascending, length, key, where, entry, level, stack):  # type: ignore[no-untyped-def]
    """Fill entry and level with the top entries of a pair: place among its listed ones, or −1 if unlisted, and u.

    u and indices are those of the pair; `ascending` is that of `ascending_states`; `where`, (S,), holds −1.
    """
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
    if ascending.size == K:
        for n in range(length):
            entry[n] = ascending[K - 1 - n]
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


# ---------------------------------------------------------------------- entries in order of u


@njit(**KERNEL)
def sort_ahead(key, entry, stack, done):  # type: ignore[no-untyped-def]
    """Continue an incremental quicksort of (key, entry) by ascending key; return how many are in place, always more.

    The first m of K come in O(K + m log m). stack[1 … stack[0]] holds the ends of pieces, the innermost last: what is
    left of an end is nowhere larger than what is right of it. To begin, stack[0] = 1 and stack[1] = K, with room for
    K + 1 numbers.
    """
    depth = stack[0]
    end = stack[depth]
    while end - done > SHORT:
        pivot = key[(done + end - 1) // 2]
        i, j = done - 1, end
        while True:
            i += 1
            while key[i] < pivot:
                i += 1
            j -= 1
            while key[j] > pivot:
                j -= 1
            if i >= j:
                break
            key[i], key[j] = key[j], key[i]
            entry[i], entry[j] = entry[j], entry[i]
        end = j + 1
        depth += 1
        stack[depth] = end
    for i in range(done + 1, end):
        k, e = key[i], entry[i]
        j = i
        while j > done and key[j - 1] > k:
            key[j], entry[j] = key[j - 1], entry[j - 1]
            j -= 1
        key[j], entry[j] = k, e
    stack[0] = depth - 1
    return end


@njit(**LEAN)
def by_ascending(indices, order, ascending, where, entry):  # type: ignore[no-untyped-def]
    """Fill entry (K,) with the entries of a pair by ascending u if that can be read off the order of all states; returns whether it can.

    It can for pairs that list all states, or a quarter of them; `ascending` is that of `ascending_states`, and `where`, (S,), holds −1.
    """
    K, S = indices.size, order.states.size
    if ascending.size == K:
        for k in range(K):
            entry[k] = ascending[k]
        return True
    if S == 0 or S > 4 * K:
        return False
    for j in range(K):
        where[indices[j]] = j
    k = 0
    for m in range(S - 1, -1, -1):
        j = where[order.states[m]]
        if j >= 0:
            where[order.states[m]] = -1
            entry[k] = j
            k += 1
    return True


def ascending_states(layout: Layout, value: Array, start: int, stop: int) -> Any:
    """States by ascending v if that is the order of u of some pair of the range, else nothing.

    It is for a pair that lists every state with costs that do not depend on the next one; no such pair is sorted again.
    """
    A = layout.available.shape[1]
    same = layout.next_costs.size == 0 and not layout.unlisted
    if same and (np.diff(layout.indptr[start * A : stop * A + 1]) == value.size).any():
        return np.argsort(value)
    return np.zeros(0, dtype=np.int64)
