"""(ℓ2, 2): the exact update by one joint Newton iteration, a pass over the candidate rows each.

Normalised as in `drmdp.layout.point`. All kernels of an action share a multiplier t_a; with V_a, E_a, D_a the weighted sums over its rows
(`drmdp.bellman.rows.l2`), the optimum has V_a(t_a) = γ − cost_a where t_a > 0, V⁰_a ≥ γ − cost_a where t_a = 0, and Σ_a E_a = θ². For every t ≥ 0, T = Σ t,

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
from typing import NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.l2_newton import (
    MASS,
    Sums,
    make_sums,
    pass_at,
    saturating,
    shift_thresholds,
    solve_state,
    start_from_mean,
)
from drmdp.bellman.rows.l2 import WIDE, forget, state_of
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, normalise, scratch
from drmdp.layout.sorting import copy_some

EVALUATE = 200
FAINTEST = 1e-14  # of smaller moves rounding leaves nothing, with or without fused products
ROUGH = 1e-4  # accuracy of a start


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    all: Sums  # of N kernels
    mean: Sums  # of the mean kernel
    tau: Array  # (A, N)


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    state = scratch(layout, start, stop, 2 * WIDE)
    A, N = state.scale.shape
    return Work(state, make_sums(A, N), make_sums(A, 1), np.empty((A, N)))


@njit(**LEAN)
def evaluate_state(state, x, tol, t, tau, work):
    """Worst case of a policy at one state.

    reads   state, x (A,), tol
    fills   t (A,), tau (A, N), work
    returns U, L, passes
    """
    theta = state.theta
    A = x.size
    base, free, warm, end = _fixed_start(state, x, t, tau)
    if theta <= 0.0 or end <= 0.0:
        for a in range(A):
            t[a] = 0.0
        return free + base, free + base, 0
    theta2 = theta * theta
    kappa = min(warm if warm > 0.0 else theta, end)
    count = 0
    upper = 0.0
    lower = base
    while count < EVALUATE:
        count += 1
        for a in range(A):
            t[a] = kappa * x[a]
            if count == 1:
                forget(work.rows[a])
        pass_at(state, np.int64(0), A, t, tau, work)
        spent, slope, size, gain, dual, slack = _fixed_sums(state, x, work)
        upper = min(dual / kappa, 0.0)
        rho = math.sqrt(theta2 / spent) if spent > theta2 else 1.0
        lower = base + rho * gain - (4.0 * slack if slack > MASS else 0.0)
        if upper - lower <= tol:
            break
        left = theta2 - spent + kappa * kappa * slope
        if slope > 1e-300 and left > 0.0:
            kappa = min(math.sqrt(left / slope), end)
        elif spent <= theta2:
            kappa = end
        else:  # far too much was spent: start again from the left
            kappa = 0.5 * min(kappa, theta / math.sqrt(size))
        for a in range(A):
            if x[a] > 0.0:
                shift_thresholds(work.rows[a], kappa * x[a], tau[a])
    return free + upper, free + lower, count


@njit(**INLINE)
def _fixed_start(state, x, t, tau):
    """What is known of a policy before a pass.

    reads   state, x (A,)
    fills   t (A,), 0 where nothing is played; tau (A, N), NaN where nothing is known
    returns its nominal value, its costs, which are set aside (wide ones would hide the gap), κ of the last sweep or 0, and κ from which
            nature is unconstrained
    """
    base = 0.0
    warm = 0.0
    free = 0.0
    end = 0.0
    for a in range(x.size):
        if x[a] > 0.0:
            base += x[a] * state.nominal[a]
            free += x[a] * state.cost[a]
            end = max(end, saturating(state, a) / x[a])
            if t[a] > 0.0 and t[a] < 1e100:
                warm = max(warm, t[a] / x[a])
            else:
                tau[a] = np.nan
        else:
            t[a] = 0.0
    return base, free, warm, end


@njit(**INLINE)
def _fixed_sums(state, x, work):
    """Add up the actions of a policy after a pass.

    reads   state, x (A,), work: sums, off
    returns ΣE, Σx²D, Σx², Σx(V − V⁰), ½θ² + ΣΦ, and how far from 1 the masses were
    """
    sums = work.sums
    spent = 0.0
    slope = 0.0
    size = 0.0
    gain = 0.0
    slack = 0.0
    dual = 0.5 * (state.theta * state.theta)
    for a in range(x.size):
        if x[a] > 0.0:
            spent += sums[a, 1]
            slope += x[a] * x[a] * sums[a, 2]
            size += x[a] * x[a]
            gain += x[a] * (sums[a, 0] - state.nominal[a])
            dual += sums[a, 3]
            slack = max(slack, work.off[a])
    return spent, slope, size, gain, dual, slack


@njit(**KERNEL)
def update(start, stop, layout, point, memory, out, tol, work):
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    reads   layout, point, tol
    fills   memory: by_action, by_row; out, work
    """
    A, tau = work.state.cost.size, work.tau
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:  # not terminal
            state = state_of(layout, point.order, s, work.state)
            mean = layout.mean[layout.indptr[s * A] : layout.indptr[(s + 1) * A]]
            t, x = memory.by_action[s], out.policy[s]
            copy_some(memory.by_row[s], tau, t)
            start_from_mean(state, mean, max(tol, ROUGH), t, tau, x, work.mean)
            upper, lower, out.passes[s] = solve_state(state, tol, t, tau, x, work.all)
            copy_some(tau, memory.by_row[s], t)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(**KERNEL)
def evaluate(start, stop, layout, point, memory, out, tol, work):
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`.

    reads   layout, point, tol
    fills   memory: by_action, by_row; out, work
    """
    tau = work.tau
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:
            t = memory.by_action[s]
            copy_some(memory.by_row[s], tau, t)
            state = state_of(layout, point.order, s, work.state)
            upper, lower, out.passes[s] = evaluate_state(state, out.policy[s], tol, t, tau, work.all)
            copy_some(tau, memory.by_row[s], t)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


NATURE = nature_rows.L2
"""How her rows follow from the memory."""
