"""(ℓ∞, ∞): the exact update; every row of every action bends by the full radius, and the best action is played.

Normalised as in `drmdp.bellman.layout`. The distance of order ∞ under ℓ∞ bounds every probability of every row on its
own, so nature never has to choose between actions, and with the gains g_ia of `rows_linf`

    F̄ = min_a cost_a + V⁰_a + Σ_i w_i g_ia(θ).

Gains are not negative: an action whose partial sum has reached the best value so far is not better, and is left there.
Actions are taken in ascending order of cost_a + V⁰_a, the sum before the first row. F̄ ≤ 0, the value of an
unconstrained nature, which it is from θ = 1 on. U = L up to rounding: the kernels bent by θ in every action are one
answer of nature to all policies.

With a policy x fixed the worst case is Σ_a x_a (cost_a + V⁰_a + Σ_i w_i g_ia(θ)).

Memory: by_kernel holds the bend r_i = θ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.layout import largest_state, prologue, row_scales
from drmdp.bellman.rows_linf import add_gains, ascending_states, sort_ahead, top_entries, walk_length
from drmdp.compiled import INLINE


@njit(**INLINE)
def bent_value(layout, order, ascending, k, first, u, r, radius, scale, cost, nominal, enough, scratch):  # type: ignore[no-untyped-def]
    """Value of pair k under rows bent by r > 0, all numbers in radius, or anything from `enough` on if it is not below."""
    if r >= 1.0:
        return cost
    key, where, entry, level, stack = scratch
    N = layout.weights.size
    lo, hi = layout.indptr[k], layout.indptr[k + 1]
    own = u[lo - first : hi - first]
    length = walk_length(hi - lo, order.u.size, layout.unlisted, r)
    top_entries(own, layout.indices[lo:hi], order, layout.unlisted, ascending, length, key, where, entry, level, stack)
    value = add_gains(
        layout.data, N * lo, hi - lo, u, lo - first, scale, layout.weights, radius, entry, level, length,
        cost + nominal, enough,
    )  # fmt: skip
    return min(value, cost)


@njit(**INLINE)
def room(layout, start, stop):  # type: ignore[no-untyped-def]
    """Scratch for `top_entries`: key, where, entry, level, stack."""
    n_actions = layout.available.shape[1]
    most = 0
    for k in range(start * n_actions, stop * n_actions):
        most = max(most, layout.indptr[k + 1] - layout.indptr[k])
    return (
        np.empty(most), np.full(layout.radius.size, -1), np.empty(most + 1, dtype=np.int64), np.empty(most + 1),
        np.empty(most + 2, dtype=np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    scale = np.ones((A, N))
    u, cost, nominal = np.empty(largest_state(layout, start, stop)), np.empty(A), np.empty(A)
    low, action, stack = np.empty(A), np.empty(A, dtype=np.int64), np.empty(A + 2, dtype=np.int64)
    ascending, scratch = ascending_states(layout, value, start, stop), room(layout, start, stop)
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        r = layout.radius[s]
        memory.by_kernel[s] = r
        row_scales(layout, s, scale)
        best, played = 0.0, np.argmin(cost)
        n = 0
        for a in range(A):
            if cost[a] + nominal[a] < best:
                low[n], action[n] = cost[a] + nominal[a], a
                n += 1
        stack[0], stack[1] = 1, n
        done = 0
        for k in range(n):
            if k == done:
                done = sort_ahead(low, action, stack, done)
            if low[k] >= best:
                break
            a, bent = action[k], low[k]
            if r > 0.0:
                first = layout.indptr[s * A]
                bent = bent_value(
                    layout, order, ascending, s * A + a, first, u, r, memory.by_kernel[s], scale[a], cost[a], nominal[a],
                    best, scratch,
                )  # fmt: skip
            if bent < best:
                best, played = bent, a
        out.policy[s] = 0.0
        out.policy[s, played] = 1.0
        out.upper[s] = base + unit * best
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    scale = np.ones((A, N))
    u, cost, nominal = np.empty(largest_state(layout, start, stop)), np.empty(A), np.empty(A)
    ascending, scratch = ascending_states(layout, value, start, stop), room(layout, start, stop)
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        r = layout.radius[s]
        memory.by_kernel[s] = r
        row_scales(layout, s, scale)
        worst = 0.0
        for a in range(A):
            if out.policy[s, a] > 0.0:
                bent = cost[a] + nominal[a]
                if r > 0.0:
                    first = layout.indptr[s * A]
                    bent = bent_value(
                        layout, order, ascending, s * A + a, first, u, r, memory.by_kernel[s], scale[a], cost[a],
                        nominal[a], np.inf, scratch,
                    )  # fmt: skip
                worst += out.policy[s, a] * bent
        out.upper[s] = base + unit * worst
        out.lower[s] = out.upper[s]
        out.passes[s] = 1
