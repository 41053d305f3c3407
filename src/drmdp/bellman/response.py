"""Nature's answer: mean kernel rows and the chain of a pair (policy, nature), without ever listing all states.

A sweep leaves a few numbers per state (`Memory`); from them a row of nature's mean kernel Σ_i w_i y_ia is (`drmdp.rows`)

* listed entries, a number for each, and single ones: where ℓ1 sends the moved mass (a state of the highest stake), the pivots of ℓ∞;
* prefix terms (k, α, β) for unlisted states; listed ones are corrected in their own entries.

y is ŷ + share·(y − ŷ), share ≤ 1 being what feasibility allows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp import threads as workers
from drmdp._typing import Array
from drmdp.bellman.layout import Layout, Memory, Order, count_above, largest_state, prologue, row_scales
from drmdp.compiled import INNER
from drmdp.rows import Rows

L1, L2, LINF = 0, 1, 2
CODES = {"l1": L1, "l2": L2, "linf": LINF}


def respond(
    metric: str, layout: Layout, order: Order, value: Array, memory: Memory, weights: Array, by_pair: bool,
    share: Array, threads: int,
) -> Rows:  # fmt: skip
    """Nature's mean kernel, a row per pair (S·A) or, summed with `weights` (S, A) over the actions, per state.

    Pairs of weight 0 get an empty row. `value` is without its level; `share` (S, N) as in the module.
    """
    code = CODES[metric]
    S, A = layout.available.shape
    N = layout.weights.size
    lengths = np.diff(layout.indptr).reshape(S, A)
    used = (weights > 0) & layout.available
    extra = {L1: 1, L2: 0, LINF: N}[code]
    entries = np.where(used, lengths + extra, 0)
    prefixes = np.where(used, N if layout.unlisted and code != L1 else 0, 0)
    entry_at = np.concatenate([[0], np.cumsum(entries.ravel())]).astype(np.int64)
    prefix_at = np.concatenate([[0], np.cumsum(prefixes.ravel())]).astype(np.int64)
    real = np.float64 if by_pair else layout.data.dtype  # a Newton direction needs no more
    estate, emass = np.zeros(entry_at[-1], dtype=np.int32), np.zeros(entry_at[-1], dtype=real)
    plength = np.zeros(prefix_at[-1], dtype=np.int32)
    pslope, plevel = np.zeros(prefix_at[-1], dtype=real), np.zeros(prefix_at[-1], dtype=real)
    top, span = (float(value.max()), float(np.ptp(value))) if value.size else (0.0, 0.0)
    weights = np.where(used, weights, 0.0)

    def over(lo: int, hi: int) -> None:
        _respond(
            code, lo, hi, layout, order, value, top, span, memory, weights, share,
            entry_at, estate, emass, prefix_at, plength, pslope, plevel,
        )  # fmt: skip

    workers.run(over, entry_at[::A], 0, S, threads)
    step = 1 if by_pair else A
    return Rows(
        S, entry_at[::step].copy(), estate, emass, prefix_at[::step].copy(), plength, pslope, plevel,
        order.states, order.u, threads,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _respond(  # type: ignore[no-untyped-def]
    code, start, stop, layout, order, value, top, span, memory, weights, share,
    entry_at, estate, emass, prefix_at, plength, pslope, plevel,
):  # fmt: skip
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, nominal = np.empty(largest_state(layout, start, stop)), np.empty(A), np.empty(A)
    scale = np.ones((A, N))
    for s in range(start, stop):
        base, _ = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        first = layout.indptr[s * A]
        for a in range(A):
            x = weights[s, a]
            if not x > 0.0:
                continue
            pair = s * A + a
            lo, hi = layout.indptr[pair], layout.indptr[pair + 1]
            K = hi - lo
            ua = u[lo - first : hi - first]
            at = entry_at[pair]
            states = estate[at : entry_at[pair + 1]]
            mass = emass[at : entry_at[pair + 1]]
            for j in range(K):
                states[j] = layout.indices[lo + j]
            p = prefix_at[pair]
            y = layout.data[N * lo : N * hi]
            if code == L2:
                _row_l2(
                    y, K, ua, scale[a], layout.weights, x, share[s], memory.by_action[s, a], memory.by_kernel[s],
                    memory.by_row[s, a], order, layout.unlisted, mass,
                    plength[p : p + N], pslope[p : p + N], plevel[p : p + N],
                )  # fmt: skip
            elif code == L1:
                states[K] = order.states[0] if layout.unlisted else layout.indices[lo + np.argmax(ua)]
                if memory.by_row.shape[1] == 0:
                    _row_l1_mean(layout.mean[lo:hi], K, ua, x, share[s, 0], memory.by_action[s, a], mass)
                else:
                    _row_l1(y, K, ua, scale[a], layout.weights, x, share[s], memory.by_row[s, a], mass)
            else:
                _row_linf(
                    y, K, ua, scale[a], layout.weights, x, share[s], memory.by_kernel[s], order, layout.unlisted,
                    layout.indices[lo:hi], states, mass, plength[p : p + N], plevel[p : p + N],
                )  # fmt: skip


@njit(**INNER)
def _row_l2(y, K, u, scale, w, x, share, t_a, kappa, tau, order, unlisted, mass, plength, pslope, plevel):  # type: ignore[no-untyped-def]
    for i in range(w.size):
        t = t_a * kappa[i]
        c = x * w[i]
        if not t > 0.0:
            for j in range(K):
                mass[j] += c * y[i * K + j] * scale[i]
            continue
        moved = c * share[i]
        th = tau[i] if y.itemsize == 8 else _settled(y, i * K, K, u, scale[i], t, tau[i], order, unlisted)
        if unlisted:
            plength[i] = count_above(order.u, th / t)
            pslope[i] = moved * t
            plevel[i] = -moved * th
        for j in range(K):
            p = y[i * K + j] * scale[i]
            z = p + t * u[j] - th
            if z > 0.0:
                mass[j] += moved * z
            mass[j] += (c - moved) * p
            if unlisted and u[j] > th / t:  # counted in the prefix
                mass[j] -= moved * (t * u[j] - th)


@njit(**INNER)
def _settled(y, at, K, u, scale, t, tau, order, unlisted):  # type: ignore[no-untyped-def]
    """A threshold that was kept in float32, after a Newton step."""
    c = 0.0
    total = 0.0
    if unlisted:
        k = count_above(order.u, tau / t)
        c += k
        total += t * order.sum1[k]
    for j in range(K):
        p = y[at + j] * scale
        if p + t * u[j] > tau:
            total += p
            if not (unlisted and u[j] > tau / t):
                c += 1.0
                total += t * u[j]
    return (total - 1.0) / c if c > 0.5 else np.float64(tau)


@njit(**INNER)
def _row_l1_mean(mean, K, u, x, share, moved, mass):  # type: ignore[no-untyped-def]
    """Take `moved` from the lowest stakes of the mean row to the top."""
    left = share * moved if moved > 0.0 else 0.0
    ascending = np.argsort(u)
    for j in range(K):
        mass[j] += x * mean[j]
    for n in range(K):
        j = ascending[n]
        take = min(left, mean[j])
        mass[j] -= x * take
        mass[K] += x * take
        left -= take
        if left <= 0.0:
            break


@njit(**INNER)
def _row_l1(y, K, u, scale, w, x, share, moved, mass):  # type: ignore[no-untyped-def]
    ascending = np.argsort(u)
    for i in range(w.size):
        c = x * w[i]
        left = share[i] * moved[i] if moved[i] > 0.0 else 0.0
        for n in range(K):
            j = ascending[n]
            p = y[i * K + j] * scale[i]
            take = min(left, p)
            mass[j] += c * (p - take)
            mass[K] += c * take
            left -= take


@njit(**INNER)
def _row_linf(y, K, u, scale, w, x, share, radius, order, unlisted, listed, states, mass, plength, plevel):  # type: ignore[no-untyped-def]
    """+r above a pivot, −min(r, ŷ) below it, the pivot takes the balance; unlisted pivots are single entries K + i."""
    place = order.rank[listed].astype(np.int64) if unlisted else np.argsort(np.argsort(-u))
    down = np.argsort(place)  # listed entries from the top
    n_states = order.u.size if unlisted else K
    for i in range(w.size):
        c = x * w[i]
        r = share[i] * radius[i]
        supply = 0.0
        for j in range(K):
            p = y[i * K + j] * scale[i]
            mass[j] += c * (p - min(r, p))
            supply += min(r, p)
        if not r > 0.0:
            continue
        n = 0  # listed entries served
        k = 0  # states served, from the top
        while k < n_states and supply > 0.0:
            if n < K and place[down[n]] == k:  # keeps its own min(r, ŷ) and takes up to r more
                j = down[n]
                kept = min(r, y[i * K + j] * scale[i], supply)
                take = min(r, supply - kept)
                mass[j] += c * (kept + take)
                supply -= kept + take
                n += 1
                k += 1
                continue
            run = (place[down[n]] if n < K else n_states) - k
            full = min(run, int(supply / r))
            k += full
            supply -= full * r
            if full < run:  # the pivot
                states[K + i] = order.states[k]
                mass[K + i] += c * max(supply, 0.0)
                break
        if unlisted:
            plength[i] = k
            plevel[i] = c * r
            for j in range(K):
                if place[j] < k:  # served above
                    mass[j] -= c * r
