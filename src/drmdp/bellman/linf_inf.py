"""(ℓ∞, ∞): the exact update; every row of every action bends by the full radius, and the best action is played.

Normalised as in `drmdp.layout.point`. The distance of order ∞ under ℓ∞ bounds every probability of every row on its
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

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import longest_pair, open_state, play_alone
from drmdp.bellman.rows.linf import add_gains, pair_at, rank_pair
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, normalise, row_scales, scratch
from drmdp.layout.sorting import SortSpace, sort_ahead, sort_space


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    sort: SortSpace  # of the entries of a pair
    low: Array  # (A,) cost + nominal value of the actions left, ascending
    action: Any  # (A,) those actions
    stack: Any  # (A + 2,) of their order


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    A, whole = layout.available.shape[1], np.int64
    sort = sort_space(layout, point, start, stop, longest_pair(layout, start, stop))
    return Work(scratch(layout, start, stop), sort, np.empty(A), np.empty(A, dtype=whole), np.empty(A + 2, dtype=whole))


@njit(**INLINE)
def bent_value(layout, order, s, a, radius, enough, work):
    """Value of action a when every row is bent by the radius of its state.

    reads   layout, order, s, a, radius (N,), all equal to it, enough, work.state
    fills   work.sort
    returns the value, or any number ≥ enough if it is at least that
    """
    state, r = work.state, layout.radius[s]
    cost = state.cost[a]
    if not r > 0.0:
        return cost + state.nominal[a]
    if r >= 1.0:
        return cost
    length = rank_pair(layout, order, s, a, r, state, work.sort)
    pair = pair_at(layout, s, a, length, state, work.sort)
    return min(add_gains(pair, layout.weights, radius, cost + state.nominal[a], enough), cost)


@njit(**KERNEL)
def update(start, stop, layout, point, memory, out, tol, work):
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    reads   layout, point
    fills   memory.by_kernel, out, work
    """
    cost, nominal, low, action, stack = work.state.cost, work.state.nominal, work.low, work.action, work.stack
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:  # terminal
            continue
        memory.by_kernel[s] = layout.radius[s]
        row_scales(layout, s, work.state.scale)
        played, _, _, _ = open_state(work.state, layout.radius[s], 0.0)
        best = 0.0
        n = 0
        for a in range(cost.size):
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
            bent = bent_value(layout, point.order, s, action[k], memory.by_kernel[s], best, work)
            if bent < best:
                best, played = bent, action[k]
        play_alone(out.policy[s], played)
        out.upper[s] = base + unit * best
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


@njit(**KERNEL)
def evaluate(start, stop, layout, point, memory, out, tol, work):
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`.

    reads   layout, point
    fills   memory.by_kernel, out, work
    """
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:
            continue
        memory.by_kernel[s] = layout.radius[s]
        row_scales(layout, s, work.state.scale)
        worst = 0.0
        for a in range(work.state.cost.size):
            if out.policy[s, a] > 0.0:
                bent = bent_value(layout, point.order, s, a, memory.by_kernel[s], np.inf, work)
                worst += out.policy[s, a] * bent
        out.upper[s] = base + unit * worst
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


NATURE = nature_rows.LINF
"""How her rows follow from the memory."""
