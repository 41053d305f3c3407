"""One budget for all actions of a state, costs added up: the exact update for every row model.

Normalised as in `drmdp.layout.point`. With C_ia the cost of row (i, a) and B the budget,

    F̄ = max { γ : c_a + Σ_i w_i z_ia·u_a ≥ γ for every a,  Σ_a Σ_i w_i C_ia(z_ia | ŷ_ia) ≤ B },

which `curves` turns into curves E_a(V), one an action. Rounds of evaluations raise L and lower U until they are `tol` apart; nothing else decides. An
action with c_a + V⁰_a ≥ U is never touched. A sweep begins with the multipliers of the last one.

With a policy x fixed the rows are stacked to one curve: at t, action a is asked at t x_a, and V = Σ x_a V_a, E = Σ E_a, D = Σ x_a² D_a.

Memory: by_action holds the multipliers t_a behind U, by_row the two that nature mixes and the share of the second, (t₁, t₂, f), for every action.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.family import close_trivial, has_actions, longest_pair, open_state, play_alone
from drmdp.bellman.frame.curves import (
    Curves,
    D,
    E,
    T,
    V,
    begin_curve,
    bound_of,
    choose_next,
    level_of,
    make_curves,
)
from drmdp.bellman.frame.ties import settle_policy, settle_state
from drmdp.bellman.frame.visits import rows_at, visit
from drmdp.bellman.rows import LARGEST
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, normalise, scratch
from drmdp.layout.sorting import copy

ROUNDS = 100
FIRST = 0.7  # multiplier of a curve of which nothing is known; at 1 costs of 1 and the widest stakes tie
FAINT, NOTHING = (
    7e-15,
    1e-18,
)  # budgets below which rounding hides what they buy at FIRST, and the least multiplier that is asked then


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    curves: Curves  # of the actions
    stacked: Curves  # of a policy: one
    x: Array  # (A,) multipliers
    trial: Array  # (1,) the same of a policy
    memory: Array  # (1, 3), t₁, t₂, f of a policy
    z: Array  # (K,) of a row
    listed: Any  # what a row model is told of each entry: its next state, or another number
    aux: Any  # what the row model needs besides


def workspace(layout: Layout, point: Point, start: int, stop: int, aux: Any = 0.0) -> Work:
    """Work space for the states start … stop − 1."""
    A = layout.available.shape[1]
    z = np.empty(longest_pair(layout, start, stop))
    return Work(
        scratch(layout, start, stop), make_curves(A), make_curves(1), np.empty(A), np.empty(1), np.empty((1, 3)), z, layout.indices,
        aux,
    )  # fmt: skip


@njit(**INLINE)
def begin_faintly(rows, curves, x, budget, upper, best):
    """Evaluate the curves at a multiplier t at which a budget that buys next to nothing is seen: it buys at most B/t, some 1e-14.

    reads   rows, x (see `visit`), budget, upper
    fills   curves; best: the multiplier behind U, if it is below `upper`
    returns U of the one curve that is best played alone, or `upper`
    """
    t = max(budget * (FIRST / FAINT), NOTHING)
    for k in range(curves.cost.size):
        known = curves.count[k] > 1 and curves.points[k, 1, T] <= t
        curves.next[k] = 0.0 if known or not curves.low[k] < np.inf else t
    visit(rows, curves, x)
    for k in range(curves.cost.size):
        if curves.low[k] < np.inf:
            point = curves.points[k, 1]
            bound = curves.cost[k] + point[V] + (budget - point[E]) / point[T]
            if bound < upper:
                upper = bound
                for j in range(best.size):
                    best[j] = 0.0
                best[k] = point[T]
    return upper


@njit(**LEAN)
def climb(rows, curves, x, budget, tol, best, trial):
    """Rounds of evaluations until U − L ≤ tol or nothing new is to be learnt, from what is known of the curves.

    reads   rows, x (see `visit`), budget, tol
    fills   curves; best: the multipliers behind U, ∞ where a curve is played alone; trial
    returns U, L and the rounds
    """
    upper, guess = np.inf, FIRST
    for k in range(curves.cost.size):
        best[k] = 0.0
        upper = min(upper, curves.cost[k])
    for k in range(curves.cost.size):
        if curves.cost[k] == upper:
            best[k] = np.inf
            break
    if budget < FAINT:
        upper = begin_faintly(rows, curves, x, budget, upper, best)
    for rounds in range(1, ROUNDS + 1):
        lower, holds = level_of(curves, budget, upper)
        for k in range(curves.cost.size):
            end = curves.points[k, curves.count[k] - 1]
            if end[T] == np.inf and curves.cost[k] + end[V] < upper:
                upper = curves.cost[k] + end[V]
                play_alone(best, k)
                best[k] = np.inf
            if curves.last[k, T] < np.inf:
                guess = max(guess, curves.last[k, T])
        bound = bound_of(curves, budget, lower, trial)
        if bound < upper:
            upper = bound
            copy(trial, best)
        if upper - lower <= tol or choose_next(curves, budget, lower, holds, guess, rounds % 4 != 0) == 0:
            break
        visit(rows, curves, x)
    return upper, min(lower, upper), rounds


@njit(**LEAN)
def recall(rows, curves, x, memory):
    """Evaluate the curves where nature was after the last sweep: the nearer one of the two points that she mixed, and both on piecewise linear curves.

    reads   rows, x (see `visit`), memory (n, 3): t₁, t₂, f of each curve
    fills   curves
    """
    for k in range(curves.cost.size):
        curves.next[k] = 0.0
        near = memory[k, 0] if memory[k, 2] < 0.5 else memory[k, 1]
        if near > 0.0 and curves.low[k] < np.inf:
            curves.next[k] = near
    visit(rows, curves, x)
    for k in range(curves.cost.size):
        far = memory[k, 1] if memory[k, 2] < 0.5 else memory[k, 0]
        again = curves.next[k] > 0.0 and curves.last[k, D] == 0.0 and far > 0.0 and far != curves.next[k]
        curves.next[k] = far if again else 0.0
    visit(rows, curves, x)


@njit(**INLINE)
def mixed(curves, k, level, memory):
    """Write down which two points of curve k nature mixes at a level.

    reads   curves, k, level
    fills   memory (3,): t₁, t₂ and the share f of the second
    """
    memory[0], memory[1], memory[2] = 0.0, 0.0, 0.0
    j = curves.segment[k]
    if j < 0 or not curves.low[k] < level or curves.count[k] < 2:
        return
    left, right = curves.points[k, j], curves.points[k, j + 1]
    memory[0], memory[1] = left[T], right[T]
    if right[V] > left[V]:
        memory[2] = min(max((level - curves.cost[k] - left[V]) / (right[V] - left[V]), 0.0), 1.0)


@njit(**INLINE)
def solve_state(rows, budget, tol, work, by_action, by_row, x):
    """Solve one normalised state; unavailable actions have cost inf.

    reads   rows, budget, tol, work.state
    fills   by_action (A,), by_row (A, 3), x (A,): policy; work
    returns U, L and the rounds
    """
    state, curves, best = work.state, work.curves, by_action
    A = state.cost.size
    cheapest, lowest, bottom, trivial = open_state(state, budget, 0.0)
    if trivial:
        for a in range(A):
            by_action[a], by_row[a, 0], by_row[a, 1], by_row[a, 2] = 0.0, 0.0, 0.0, 0.0
        upper, lower = close_trivial(budget, cheapest, lowest, bottom, x)
        return upper, lower, 0
    for a in range(A):
        begin_curve(curves, a, state.cost[a], state.nominal[a])
        if not curves.low[a] < 0.0:
            by_row[a, 0], by_row[a, 1] = 0.0, 0.0
    nobody = x[:0]
    recall(rows, curves, nobody, by_row)
    upper, lower, rounds = climb(rows, curves, nobody, budget, tol, best, work.x)
    total = 0.0
    for a in range(A):
        best[a] = min(best[a], LARGEST)
        total += best[a]
        mixed(curves, a, lower, by_row[a])
    for a in range(A):
        x[a] = best[a] / total
    return upper, lower, rounds


@njit(**INLINE)
def evaluate_state(rows, budget, tol, work, by_action, by_row, x):
    """Worst case of a policy at one normalised state. Its cost, which may be many units, is not part of the curve.

    reads   rows, budget, tol, work.state, x (A,)
    fills   by_action (A,), by_row (A, 3), work
    returns the cost, U and L above it, and the rounds
    """
    state, curves = work.state, work.stacked
    cost, nominal, warm = 0.0, 0.0, 0
    for a in range(x.size):
        if x[a] > 0.0:
            cost += x[a] * state.cost[a]
            nominal += x[a] * state.nominal[a]
            warm = a if x[a] > x[warm] or not x[warm] > 0.0 else warm
    begin_curve(curves, 0, 0.0, nominal)
    memory, rounds = work.memory, 0
    upper, lower = nominal, nominal
    curves.count[0] = 1
    curves.segment[0] = -1
    work.x[0] = 0.0
    if budget > 0.0 and nominal < 0.0:
        memory[0, 0], memory[0, 1], memory[0, 2] = by_row[warm, 0] / x[warm], by_row[warm, 1] / x[warm], by_row[warm, 2]
        recall(rows, curves, x, memory)
        upper, lower, rounds = climb(rows, curves, x, budget, tol, work.x[:1], work.trial)
    mixed(curves, 0, lower, memory[0])
    for a in range(x.size):
        own = x[a] if x[a] > 0.0 else 0.0
        by_action[a] = own * min(work.x[0], LARGEST)
        for f in range(3):
            by_row[a, f] = memory[0, f] if f == 2 else (own * memory[0, f] if own > 0.0 else 0.0)
    return cost, upper, lower, rounds


@njit(**KERNEL)
def sweep(start, stop, layout, point, memory, out, tol, work, answers):
    """Update the states start … stop − 1 that are not terminal, or evaluate the policy in out.policy; see `drmdp.bellman.family`.

    reads   layout, point, tol, answers: whether the policy is fixed, the response, the saturated point, and whether curves are polygons
    fills   memory, out, work
    """
    for s in range(start, stop):
        if not has_actions(layout, s):
            continue
        base, unit = normalise(layout, point, s, work.state)
        rows = rows_at(layout, work.listed, s, work, answers)
        budget, x = layout.radius[s], out.policy[s]
        by_action, by_row = memory.by_action[s], memory.by_row[s]
        if answers[0]:
            cost, upper, lower, out.passes[s] = evaluate_state(rows, budget, tol, work, by_action, by_row, x)
            if answers[3]:
                settle_policy(rows, work.stacked, x, lower, budget, base, unit, work.memory[0], by_row)
            upper, lower = cost + upper, cost + lower
        else:
            upper, lower, out.passes[s] = solve_state(rows, budget, tol, work, by_action, by_row, x)
            if answers[3]:
                settle_state(rows, work.curves, lower, budget, base, unit, by_row)
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower
