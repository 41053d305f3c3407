"""One state of (ℓ2, 2), its policy sought: the joint Newton iteration of `drmdp.bellman.l2_2`, in its notation.

(ℓ2, ∞) starts from it too, with the mean kernel alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.family import close_trivial, open_state
from drmdp.bellman.rows.l2 import DUAL, FIELDS, SLOPE, SPENT, SU, SY, VALUE, C, State, forget, visit_rows
from drmdp.core.compiled import FAST, INLINE, LEAN, njit
from drmdp.layout.sorting import rank

JOINT = 12  # passes of the joint iteration
NESTED = 60  # and of the nested one
MASS = 1e-12  # a row is settled when its mass is this close to 1


class Sums(NamedTuple):
    """What passes over the rows find, and work space beside it."""

    rows: Array  # (A, FIELDS, N), see `drmdp.bellman.rows.l2`
    sums: Array  # (A, 4): V, E, D, Φ
    off: Array  # (A,) how far from 1 the masses were
    q: Array  # (A,)
    ones: Array  # (A, N)
    first: Array  # (A, N) thresholds
    order: Any  # (2, A)


def make_sums(A: int, N: int) -> Sums:
    """Work space for A actions and N kernels."""
    return Sums(
        np.zeros((A, FIELDS, N)), np.zeros((A, 4)), np.empty(A), np.empty(A), np.ones((A, N)), np.empty((A, N)),
        np.empty((2, A), dtype=np.int64),
    )  # fmt: skip


@njit(fastmath=FAST, **LEAN)
def weigh(w, rows, sums):
    """Add up the rows of an action.

    reads   w (N,), rows (FIELDS, N)
    fills   sums (4,): weighted sums V, E, D, Φ
    """
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
def pass_at(state, first, last, t, tau, work):
    """One pass over the rows of the actions first … last − 1 with t > 0 at (t, τ).

    reads   state, first, last, t (A,)
    fills   tau (A, N), work: rows, off, sums
    """
    visit_rows(state, first, last, t, work.ones[0], 0.1, tau, work.rows, work.off)
    for a in range(first, last):
        if t[a] > 0.0:
            weigh(state.w, work.rows[a], work.sums[a])


@njit(fastmath=FAST, **LEAN)
def shift_thresholds(rows, t, tau):
    """Thresholds at a new t while the active sets stay.

    reads   rows (FIELDS, N), t
    fills   tau (N,)
    """
    for i in range(tau.size):
        tau[i] = (rows[SY, i] + t * rows[SU, i] - 1.0) / rows[C, i]


@njit(**INLINE)
def saturating(state, a):
    """Where an action saturates.

    reads   state, a
    returns the multiplier from which all mass of every row is at the top; 0 if there is nothing below the top
    """
    least = 1e300
    if state.unlisted:
        least = -state.order.second if state.order.second < 0.0 else least
    else:
        for e in range(state.ptr[a], state.ptr[a + 1]):
            if state.u[e] < 0.0:
                least = min(least, -state.u[e])
    return 2.0 / least if least < 1e299 else 0.0


@njit(**INLINE)
def quadratic_level(theta2, A, t, work):
    """Solve Σ_{q_a<γ} [E_a − t_a² D_a + (γ − q_a)²/D_a] = θ² over the actions with t_a > 0.

    reads   theta2 (θ²), A, t (A,), work: sums, q
    fills   work.order
    returns γ; inf if all their D vanish
    """
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
def bounds(theta2, A, t, cost, nominal, sums, off):
    """Bounds after a pass; rows that are not settled widen L.

    reads   theta2 (θ²), A, t (A,), cost (A,), nominal (A,), sums (A, 4), off (A,)
    returns U of the policy t/T and L of the scaled kernels
    """
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
def solve_state(state, tol, t, tau, x, work):
    """Solve one state from what is in t and τ (zeros: cold).

    reads   state, tol
    fills   t (A,), tau (A, N), x (A,), work
    returns U, L, passes
    """
    cost, nominal, theta = state.cost, state.nominal, state.theta
    A = cost.size
    cheapest, lowest, bottom, trivial = open_state(state, theta, tol)
    if trivial:
        for a in range(A):
            t[a] = 0.0
        upper, lower = close_trivial(theta, cheapest, lowest, bottom, x)
        return upper, lower, 0
    theta2 = theta * theta
    _usable(state, lowest, t)
    high = 0.0
    low = bottom
    passes = 0
    for iteration in range(JOINT + NESTED):
        passes += 1
        if iteration == 0:
            for a in range(A):
                forget(work.rows[a])
        pass_at(state, np.int64(0), A, t, tau, work)
        upper, lower = bounds(theta2, A, t, cost, nominal, work.sums, work.off)
        capped = not upper < 0.0
        if capped:
            upper = 0.0
        if upper - lower <= tol:
            break
        high = min(high, upper)
        low = max(low, lower)
        gamma = high
        if iteration < JOINT:
            gamma = min(max(_joint_level(theta2, cost, t, work), low), high)
        passes += _lift(state, gamma, iteration < JOINT, t, tau, work)
    _policy_of(t, cheapest, capped, x)
    return upper, lower, passes


@njit(**INLINE)
def _usable(state, lowest, t):
    """Drop multipliers that cannot be started from; if none is left, begin with the lowest action.

    reads   state, lowest
    fills   t (A,)
    """
    warm = 0.0
    for a in range(t.size):
        if not (t[a] >= 0.0 and t[a] < 1e100 and state.cost[a] + state.nominal[a] < 0.0):
            t[a] = 0.0
        warm += t[a]
    if warm <= 0.0:
        t[lowest] = min(state.theta, saturating(state, lowest))


@njit(**INLINE)
def _joint_level(theta2, cost, t, work):
    """The level γ at which the budget is spent while the active sets stay.

    reads   theta2 (θ²), cost (A,), t (A,), work.sums
    fills   work: q, order
    returns γ
    """
    for a in range(t.size):
        work.q[a] = cost[a] + work.sums[a, 0] - t[a] * work.sums[a, 2] if t[a] > 0.0 else np.inf
    return quadratic_level(theta2, t.size, t, work)


@njit(**INLINE)
def _lift(state, gamma, joint, t, tau, work):
    """Move every action to the level γ, by one Newton step if joint, else by as many as it takes.

    reads   state, gamma, joint
    fills   t (A,), tau (A, N), work
    returns the passes over rows of single actions
    """
    passes = 0
    for a in range(t.size):
        target = gamma - state.cost[a]
        if target <= state.nominal[a]:
            t[a] = 0.0
            continue
        end = saturating(state, a)
        if target >= 0.0:
            _move(t, a, end, work.rows, tau)
            continue
        if t[a] <= 0.0:
            t[a] = min(1e-9, end)
            tau[a] = np.nan
            pass_at(state, a, a + 1, t, tau, work)
        if joint:
            _move(t, a, newton(t[a], target, work.sums[a], end), work.rows, tau)
        else:
            passes += _nested(state, a, t, target, end, tau, work)
    return passes


@njit(**INLINE)
def _policy_of(t, cheapest, capped, x):
    """The policy of the multipliers; the cheapest action if nature is unconstrained.

    reads   t (A,), cheapest, capped
    fills   x (A,)
    """
    total = 0.0
    for a in range(t.size):
        x[a] = 0.0
        total += t[a]
    if capped or not total > 0.0:
        x[cheapest] = 1.0
    else:
        for a in range(t.size):
            x[a] = t[a] / total


@njit(**INLINE)
def start_from_mean(state, mean, tol, t, tau, x, work):
    """If t is 0, put the solution with the mean kernel alone there, an N-th of the work.

    reads   state, mean (the mean kernel in the layout of state.u), tol
    fills   t (A,), tau (A, N), x (A,), work (that of one kernel)
    returns the value, or 0
    """
    for a in range(t.size):
        if t[a] != 0.0:
            return 0.0
    alone = State(
        mean, state.ptr, state.u, work.ones[0], state.cost, state.nominal, state.theta, state.order, state.unlisted, work.ones
    )  # fmt: skip
    first = work.first
    for a in range(t.size):
        first[a, 0] = np.nan
    upper, _, _ = solve_state(alone, tol, t, first, x, work)
    for a in range(t.size):
        tau[a] = first[a, 0]
    return upper


@njit(**INLINE)
def _move(t, a, new, rows, tau):
    """Set the multiplier of an action; its thresholds follow.

    reads   a, new, rows (A, FIELDS, N)
    fills   t (A,), tau (A, N)
    """
    was = t[a]
    t[a] = new
    if was > 0.0:
        shift_thresholds(rows[a], new, tau[a])
    else:
        tau[a] = np.nan


@njit(**INLINE)
def newton(t, target, sums, end):
    """A Newton step for V(t) = target. V is concave: the step ends left of the root, from where Newton's method is monotone.

    reads   t, target, sums (4,), end (where the action saturates)
    returns the new t
    """
    if sums[2] > 1e-300:
        new = t + (target - sums[0]) / sums[2]
    else:
        new = end if sums[0] < target else 0.0
    return min(new, end) if new > 0.0 else min(0.1 * t, 1.0)


@njit(**INLINE)
def _nested(state, a, t, target, end, tau, work):
    """Newton's method for V_a(t_a) = target.

    reads   state, a, target, end
    fills   t (A,), tau (A, N), work
    returns the passes
    """
    sums = work.sums[a]
    t[a] = min(t[a], end)
    steps = 0
    left = False
    while steps < 100:
        steps += 1
        for _ in range(40):
            pass_at(state, a, a + 1, t, tau, work)
            if work.off[a] <= MASS:
                break
        new = newton(t[a], target, sums, end)
        if abs(new - t[a]) <= 4e-16 * t[a] or (left and new <= t[a]):  # rounding
            break
        left = sums[0] < target
        shift_thresholds(work.rows[a], new, tau[a])
        t[a] = new
    return steps
