"""(ℓ2, 2): the exact update by one joint Newton iteration, a pass over the candidate rows each.

Normalised as in `drmdp.layout.layout`. All kernels of an action share a multiplier t_a; with V_a, E_a, D_a the weighted sums over its rows
(`rows_l2`), the optimum has V_a(t_a) = γ − cost_a where t_a > 0, V⁰_a ≥ γ − cost_a where t_a = 0, and Σ_a E_a = θ². For every t ≥ 0, T = Σ t,

    U = [Σ_a t_a cost_a + ½ θ² + Σ_a Σ_i w_i Φ_ia] / T      bounds the worst case of the policy x = t/T from above,
    L = min_a cost_a + V⁰_a + ρ (V_a − V⁰_a)                bounds F̄ from below, ρ = min(1, θ/√ΣE): scaled kernels are feasible.

While active sets stay, E_a(t + d) = E_a + 2tDd + Dd², so γ solves the scalar quadratic Σ_{q_a<γ} [E_a − t_a² D_a + (γ − q_a)²/D_a] = θ²,
q_a = cost_a + V_a − t_a D_a, and t_a += (γ − cost_a − V_a)/D_a, τ_ia = τ_ia(t_a): exact in one step once the active sets are right.
γ never exceeds 0, the value of an unconstrained nature; when that cap binds the policy is the single action that attains it.
If the joint iteration has not settled after `JOINT` passes, a nested one takes over: for a given γ each t_a is found by bracketed Newton, and
U is a Newton step from the right on the convex ΣE(γ) = θ², monotone and finite.

With a policy x fixed, t_a = κ x_a with one κ, Σ_a E_a(κ x_a) = θ². In κ² this sum is concave and piecewise linear: Newton's method is monotone and finite.

Memory: by_action holds t, by_kernel nothing, by_row τ (rounded, if the data are float32).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.rows.l2 import DUAL, FIELDS, SLOPE, SPENT, SU, SY, VALUE, WIDE, C, forget, visit_rows
from drmdp.bellman.rows.l2_state import State, state_of
from drmdp.core.compiled import INLINE, KERNEL, LEAN
from drmdp.layout.layout import FAST, Layout, prologue, scratch
from drmdp.layout.sorting import copy_some, rank

JOINT = 12
NESTED = 60
EVALUATE = 200
ROUGH = 1e-4  # accuracy of a start
MASS = 1e-12  # a row is settled when its mass is this close to 1


class Work(NamedTuple):
    """Scratch memory."""

    rows: Array  # (A, FIELDS, N), see `rows_l2`
    sums: Array  # (A, 4): V, E, D, Φ
    off: Array  # (A,) how far from 1 the masses were
    q: Array  # (A,)
    ones: Array  # (A, N)
    first: Array  # (A, N) thresholds
    order: Any  # (2, A)


def workspace(A: int, N: int) -> Work:
    """Scratch memory for A actions and N kernels."""
    return Work(
        np.zeros((A, FIELDS, N)), np.zeros((A, 4)), np.empty(A), np.empty(A), np.ones((A, N)), np.empty((A, N)),
        np.empty((2, A), dtype=np.int64),
    )  # fmt: skip


@njit(fastmath=FAST, **LEAN)
def weigh(w, rows, sums):  # type: ignore[no-untyped-def]
    """Weighted sums V, E, D, Φ over the rows of an action."""
    value = 0.0
    spent = 0.0
    slope = 0.0
    dual = 0.0
    for i in range(w.size):
        value += w[i] * rows[VALUE, i]
        spent += w[i] * rows[SPENT, i]
        slope += w[i] * rows[SLOPE, i]
        dual += w[i] * rows[DUAL, i]
    sums[0], sums[1], sums[2], sums[3] = value, spent, slope, dual


@njit(**INLINE)
def pass_at(state, first, last, t, tau, work):  # type: ignore[no-untyped-def]
    """One pass over the rows of the actions first … last − 1 with t > 0 at (t, τ); fills their sums."""
    visit_rows(state, first, last, t, work.ones[0], 0.1, tau, work.rows, work.off)
    for a in range(first, last):
        if t[a] > 0.0:
            weigh(state.w, work.rows[a], work.sums[a])


@njit(fastmath=FAST, **LEAN)
def shift_thresholds(rows, t, tau):  # type: ignore[no-untyped-def]
    """τ_i at a new t while the active sets stay."""
    for i in range(tau.size):
        tau[i] = (rows[SY, i] + t * rows[SU, i] - 1.0) / rows[C, i]


@njit(**INLINE)
def saturating(state, a):  # type: ignore[no-untyped-def]
    """Multiplier from which all mass of every row is at the top; 0 if there is nothing below the top."""
    least = 1e300
    if state.unlisted:
        least = -state.order.second if state.order.second < 0.0 else least
    else:
        for e in range(state.ptr[a], state.ptr[a + 1]):
            if state.u[e] < 0.0:
                least = min(least, -state.u[e])
    return 2.0 / least if least < 1e299 else 0.0


@njit(**INLINE)
def quadratic_level(theta2, A, t, work):  # type: ignore[no-untyped-def]
    """γ with Σ_{q_a<γ} [E_a − t_a² D_a + (γ − q_a)²/D_a] = θ² over the actions with t_a > 0; inf if all their D vanish."""
    sums, q = work.sums, work.q
    origin = np.inf  # levels count from the lowest, or their squares hide a small θ²
    highest = -np.inf
    fixed = -theta2  # and of actions with D = 0, whose E no longer changes
    for a in range(A):
        if t[a] > 0.0:
            origin = min(origin, q[a])
            if sums[a, 2] > 1e-300:
                highest = max(highest, q[a])
            else:
                fixed += sums[a, 1]
    for attempt in range(2):  # with all of them; if that level leaves some out, one by one from the lowest
        order = work.order[0]
        if attempt > 0:
            rank(q, order, work.order[1])
        alpha = 0.0
        beta = 0.0
        kappa = fixed
        best = np.inf
        for n in range(A):
            a = order[n] if attempt > 0 else n
            if not (t[a] > 0.0 and sums[a, 2] > 1e-300):
                continue
            level = q[a] - origin
            if attempt > 0 and level >= best:
                break
            D = sums[a, 2]
            alpha += 1.0 / D
            beta += level / D
            kappa += sums[a, 1] - t[a] * t[a] * D + level * level / D
            disc = beta * beta - alpha * kappa
            best = (beta + math.sqrt(disc)) / alpha if disc > 0.0 else beta / alpha
        best += origin
        if best > highest:
            break
    return best


@njit(**INLINE)
def bounds(theta2, A, t, cost, nominal, sums, off):  # type: ignore[no-untyped-def]
    """U of the policy t/T and L of the scaled kernels; rows that are not settled widen L."""
    total = 0.0
    upper = 0.5 * theta2
    spent = 0.0
    slack = 0.0
    for a in range(A):
        if t[a] > 0.0:
            total += t[a]
            upper += t[a] * cost[a] + sums[a, 3]
            spent += sums[a, 1]
            slack = max(slack, off[a])
    upper = upper / total if total > 0.0 else np.inf
    rho = 1.0
    if spent > theta2:
        rho = math.sqrt(theta2 / spent)
    lower = np.inf
    for a in range(A):
        gain = rho * (sums[a, 0] - nominal[a]) if t[a] > 0.0 else 0.0
        lower = min(lower, cost[a] + nominal[a] + gain)
    return upper, lower - (4.0 * slack if slack > MASS else 0.0)


@njit(**LEAN)
def solve_state(state, tol, t, tau, x, work):  # type: ignore[no-untyped-def]
    """Solve one state from the multipliers in t and τ (zeros: cold); fill t, τ, x; return U, L, passes."""
    cost, nominal, theta, sums = state.cost, state.nominal, state.theta, work.sums
    A = cost.size
    first = 0  # attains the cap
    lowest = 0
    for a in range(A):
        x[a] = 0.0
        if cost[a] < cost[first]:
            first = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
    start = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or start >= -tol:
        for a in range(A):
            t[a] = 0.0
        x[lowest if theta <= 0.0 else first] = 1.0
        return start if theta <= 0.0 else 0.0, start, 0
    theta2 = theta * theta
    warm = 0.0
    for a in range(A):
        if not (t[a] >= 0.0 and t[a] < 1e100 and cost[a] + nominal[a] < 0.0):
            t[a] = 0.0
        warm += t[a]
    if warm <= 0.0:
        t[lowest] = min(theta, saturating(state, lowest))
    high = 0.0
    low = start
    passes = 0
    gamma = 0.0
    for iteration in range(JOINT + NESTED):
        passes += 1
        if iteration == 0:
            for a in range(A):
                forget(work.rows[a])
        pass_at(state, np.int64(0), A, t, tau, work)
        upper, lower = bounds(theta2, A, t, cost, nominal, sums, work.off)
        capped = not upper < 0.0
        if capped:
            upper = 0.0
        if upper - lower <= tol:
            break
        high = min(high, upper)
        low = max(low, lower)
        if iteration < JOINT:
            q = work.q
            for a in range(A):
                q[a] = cost[a] + sums[a, 0] - t[a] * sums[a, 2] if t[a] > 0.0 else np.inf
            gamma = quadratic_level(theta2, A, t, work)
            gamma = min(max(gamma, low), high)
        else:
            gamma = high
        for a in range(A):
            target = gamma - cost[a]
            if target <= nominal[a]:
                t[a] = 0.0
                continue
            most = saturating(state, a)
            if target >= 0.0:
                _move(t, a, most, work.rows, tau)
                continue
            if t[a] <= 0.0:
                t[a] = min(1e-9, most)
                tau[a] = np.nan
                pass_at(state, a, a + 1, t, tau, work)
            if iteration < JOINT:
                _move(t, a, newton(t[a], target, sums[a], most), work.rows, tau)
            else:
                passes += _nested(state, a, t, target, most, tau, work)
    total = 0.0
    for a in range(A):
        total += t[a]
    if capped or not total > 0.0:
        x[first] = 1.0
    else:
        for a in range(A):
            x[a] = t[a] / total
    return upper, lower, passes


@njit(**INLINE)
def start_from_mean(state, mean, tol, t, tau, x, work):  # type: ignore[no-untyped-def]
    """If t is 0, put the solution with the mean kernel alone there, an N-th of the work; returns its value.

    `mean` is the mean kernel in the layout of state.u, `work` the workspace of one kernel.
    """
    for a in range(t.size):
        if t[a] != 0.0:
            return 0.0
    alone = State(
        mean,
        state.ptr,
        state.u,
        work.ones[0],
        state.cost,
        state.nominal,
        state.theta,
        state.order,
        state.unlisted,
        work.ones,
    )
    first = work.first
    for a in range(t.size):
        first[a, 0] = np.nan
    upper, _, _ = solve_state(alone, tol, t, first, x, work)
    for a in range(t.size):
        tau[a] = first[a, 0]
    return upper


@njit(**INLINE)
def _move(t, a, new, rows, tau):  # type: ignore[no-untyped-def]
    was = t[a]
    t[a] = new
    if was > 0.0:
        shift_thresholds(rows[a], new, tau[a])
    else:
        tau[a] = np.nan


@njit(**INLINE)
def newton(t, target, sums, most):  # type: ignore[no-untyped-def]
    """A Newton step for V(t) = target. V is concave: the step ends left of the root, from where Newton's method is monotone."""
    if sums[2] > 1e-300:
        new = t + (target - sums[0]) / sums[2]
    else:
        new = most if sums[0] < target else 0.0
    return min(new, most) if new > 0.0 else min(0.1 * t, 1.0)


@njit(**INLINE)
def _nested(state, a, t, target, most, tau, work):  # type: ignore[no-untyped-def]
    """Newton's method for V_a(t_a) = target; returns the passes."""
    sums = work.sums[a]
    t[a] = min(t[a], most)
    steps = 0
    left = False
    while steps < 100:
        steps += 1
        for _ in range(40):
            pass_at(state, a, a + 1, t, tau, work)
            if work.off[a] <= MASS:
                break
        new = newton(t[a], target, sums, most)
        if abs(new - t[a]) <= 4e-16 * t[a] or (left and new <= t[a]):  # rounding
            break
        left = sums[0] < target
        shift_thresholds(work.rows[a], new, tau[a])
        t[a] = new
    return steps


@njit(**LEAN)
def evaluate_state(state, x, tol, t, tau, work):  # type: ignore[no-untyped-def]
    """Worst case of the policy x at one state; fill t, τ; return U, L, passes."""
    cost, nominal, theta, sums = state.cost, state.nominal, state.theta, work.sums
    A = cost.size
    base = 0.0
    warm = 0.0
    free = 0.0  # of an unconstrained nature
    most = 0.0  # κ from which it is
    for a in range(A):
        if x[a] > 0.0:
            base += x[a] * nominal[a]
            free += x[a] * cost[a]  # set aside: wide costs would hide the gap
            most = max(most, saturating(state, a) / x[a])
            if t[a] > 0.0 and t[a] < 1e100:
                warm = max(warm, t[a] / x[a])
            else:
                tau[a] = np.nan
        else:
            t[a] = 0.0
    if theta <= 0.0 or most <= 0.0:
        for a in range(A):
            t[a] = 0.0
        return free + base, free + base, 0
    theta2 = theta * theta
    kappa = min(warm if warm > 0.0 else theta, most)
    count = 0
    upper = 0.0
    lower = base
    while count < EVALUATE:
        count += 1
        spent = 0.0
        slope = 0.0
        size = 0.0
        gain = 0.0
        slack = 0.0
        upper = 0.5 * theta2
        for a in range(A):
            t[a] = kappa * x[a]
            if count == 1:
                forget(work.rows[a])
        pass_at(state, np.int64(0), A, t, tau, work)
        for a in range(A):
            if x[a] > 0.0:
                spent += sums[a, 1]
                slope += x[a] * x[a] * sums[a, 2]
                size += x[a] * x[a]
                gain += x[a] * (sums[a, 0] - nominal[a])
                upper += sums[a, 3]
                slack = max(slack, work.off[a])
        upper = min(upper / kappa, 0.0)
        rho = math.sqrt(theta2 / spent) if spent > theta2 else 1.0
        lower = base + rho * gain - (4.0 * slack if slack > MASS else 0.0)
        if upper - lower <= tol:
            break
        rest = theta2 - spent + kappa * kappa * slope
        if slope > 1e-300 and rest > 0.0:
            kappa = min(math.sqrt(rest / slope), most)
        elif spent <= theta2:
            kappa = most
        else:  # far too much was spent: start again from the left
            kappa = 0.5 * min(kappa, theta / math.sqrt(size))
        for a in range(A):
            if x[a] > 0.0:
                shift_thresholds(work.rows[a], kappa * x[a], tau[a])
    return free + upper, free + lower, count


@njit(**KERNEL)
def _update(start, stop, layout, order, value, top, span, tol, memory, out, room, work, single, tau):  # type: ignore[no-untyped-def]
    A = room.cost.size
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if base < np.inf:  # not terminal
            state = state_of(layout, order, s, room)
            mean = layout.mean[layout.indptr[s * A] : layout.indptr[(s + 1) * A]]
            t, x = memory.by_action[s], out.policy[s]
            copy_some(memory.by_row[s], tau, t)
            start_from_mean(state, mean, max(tol, ROUGH), t, tau, x, single)
            upper, lower, out.passes[s] = solve_state(state, tol, t, tau, x, work)
            copy_some(tau, memory.by_row[s], t)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(**KERNEL)
def _evaluate(start, stop, layout, order, value, top, span, tol, memory, out, room, work, tau):  # type: ignore[no-untyped-def]
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if base < np.inf:
            t = memory.by_action[s]
            copy_some(memory.by_row[s], tau, t)
            state = state_of(layout, order, s, room)
            upper, lower, out.passes[s] = evaluate_state(state, out.policy[s], tol, t, tau, work)
            copy_some(tau, memory.by_row[s], t)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


def update(start: int, stop: int, layout: Layout, *given: Any) -> None:
    """Update the states start … stop − 1 that are not terminal."""
    room = scratch(layout, start, stop, 2 * WIDE)
    A, N = room.scale.shape
    _update(start, stop, layout, *given, room, workspace(A, N), workspace(A, 1), np.empty((A, N)))


def evaluate(start: int, stop: int, layout: Layout, *given: Any) -> None:
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    room = scratch(layout, start, stop, 2 * WIDE)
    _evaluate(start, stop, layout, *given, room, workspace(*room.scale.shape), np.empty(room.scale.shape))


NATURE = nature_rows.L2
"""How her rows follow from the memory."""
