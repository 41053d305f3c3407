"""(ℓ∞, ∞): the exact update; every row of every action bends by the full radius, and the best action is played.

Normalised as in `drmdp.layout.layout`. The distance of order ∞ under ℓ∞ bounds every probability of every row on its
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

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.rows.linf import add_gains, ascending_states, sort_ahead, top_entries, walk_length
from drmdp.core.compiled import INLINE, KERNEL
from drmdp.layout.layout import Layout, Order, prologue, row_scales, scratch


@njit(**INLINE)
def bent_value(layout, order, ascending, s, a, r, radius, enough, room, work):  # type: ignore[no-untyped-def]
    """Value of an action under rows bent by r > 0, all numbers in radius, or anything from `enough` on if it is not below."""
    cost = room.cost[a]
    if r >= 1.0:
        return cost
    A, N = room.scale.shape
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    length = walk_length(hi - lo, order.u.size, layout.unlisted, r)
    top_entries(
        room.u[lo - first : hi - first], layout.indices[lo:hi], order, layout.unlisted, ascending, length,
        work.key, work.where, work.entry, work.level, work.stack,
    )  # fmt: skip
    value = add_gains(
        layout.data, N * lo, hi - lo, room.u, lo - first, room.scale[a], layout.weights, radius, work.entry, work.level,
        length, cost + room.nominal[a], enough,
    )  # fmt: skip
    return min(value, cost)


class Work(NamedTuple):
    """Scratch memory; the first five are those of `top_entries`."""

    key: Array
    where: Any  # (S,)
    entry: Any
    level: Array
    stack: Any
    low: Array  # (A,)
    action: Any  # (A,)
    left: Any  # (A + 2,)


def workspace(layout: Layout, start: int, stop: int) -> Work:
    """Scratch memory for the states start … stop − 1."""
    A, whole = layout.available.shape[1], np.int64
    most = int(np.diff(layout.indptr[start * A : stop * A + 1]).max(initial=0))
    return Work(
        np.empty(most), np.full(layout.radius.size, -1), np.empty(most + 1, dtype=whole), np.empty(most + 1),
        np.empty(most + 2, dtype=whole), np.empty(A), np.empty(A, dtype=whole), np.empty(A + 2, dtype=whole),
    )  # fmt: skip


@njit(**KERNEL)
def _update(start, stop, layout, order, value, top, span, tol, memory, out, room, work, ascending):  # type: ignore[no-untyped-def]
    A = room.cost.size
    cost, nominal, low, action, stack = room.cost, room.nominal, work.low, work.action, work.left
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        r = layout.radius[s]
        memory.by_kernel[s] = r
        row_scales(layout, s, room.scale)
        best, played = 0.0, np.argmin(cost)
        n = 0
        for a in range(A):
            if cost[a] + nominal[a] < best:
                low[n], action[n] = cost[a] + nominal[a], a
                n += 1
        stack[0], stack[1] = 1, n
        done = np.int64(0)
        for k in range(n):
            if k == done:
                done = sort_ahead(low, action, stack, done)
            if low[k] >= best:
                break
            a, bent = action[k], low[k]
            if r > 0.0:
                bent = bent_value(layout, order, ascending, s, a, r, memory.by_kernel[s], best, room, work)
            if bent < best:
                best, played = bent, a
        out.policy[s] = 0.0
        out.policy[s, played] = 1.0
        out.upper[s] = base + unit * best
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


@njit(**KERNEL)
def _evaluate(start, stop, layout, order, value, top, span, tol, memory, out, room, work, ascending):  # type: ignore[no-untyped-def]
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if not base < np.inf:
            continue
        r = layout.radius[s]
        memory.by_kernel[s] = r
        row_scales(layout, s, room.scale)
        worst = 0.0
        for a in range(room.cost.size):
            if out.policy[s, a] > 0.0:
                bent = room.cost[a] + room.nominal[a]
                if r > 0.0:
                    bent = bent_value(layout, order, ascending, s, a, r, memory.by_kernel[s], np.inf, room, work)
                worst += out.policy[s, a] * bent
        out.upper[s] = base + unit * worst
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


def _made(layout: Layout, value: Array, start: int, stop: int) -> tuple[Any, ...]:
    return scratch(layout, start, stop), workspace(layout, start, stop), ascending_states(layout, value, start, stop)


def update(start: int, stop: int, layout: Layout, order: Order, value: Array, *given: Any) -> None:
    """Update the states start … stop − 1 that are not terminal."""
    _update(start, stop, layout, order, value, *given, *_made(layout, value, start, stop))


def evaluate(start: int, stop: int, layout: Layout, order: Order, value: Array, *given: Any) -> None:
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    _evaluate(start, stop, layout, order, value, *given, *_made(layout, value, start, stop))


NATURE = nature_rows.LINF
"""How her rows follow from the memory."""
