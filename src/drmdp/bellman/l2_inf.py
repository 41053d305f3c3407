"""(ℓ2, ∞): the exact update by a joint Newton iteration in policy, multipliers and thresholds, a pass over the candidate rows each.

Normalised as in `drmdp.layout.point`. With φ_i(x) = max { Σ_a x_a u_a·y_ia : Σ_a ‖y_ia − ŷ_ia‖² ≤ θ² } the update minimises the convex
f(x) = Σ_a x_a cost_a + Σ_i w_i φ_i(x). Nature answers x with y_ia = y(t_ia), t_ia = κ_i x_a (`rows.l2`), where κ_i solves Σ_a E_ia = θ². For every
κ > 0 and all thresholds, V, E, Φ taken at t_ia,

    U = Σ_a x_a cost_a + Σ_i w_i [½ θ² + Σ_a Φ_ia] / κ_i     bounds the worst case of x from above,
    L = min_a cost_a + Σ_i w_i [ρ_i V_ia + (1 − ρ_i) V⁰_ia]  bounds F̄ from below, ρ_i = min(1, θ/√Σ_a E_ia): scaled kernels are feasible.

So κ need not be solved for. (Of V⁰_ia, L uses V − V⁰ ≤ 1 + V and, as y − ŷ sums to 0, V − V⁰ ≤ ½ ‖y − ŷ‖₁ ≤ ½ √(nE).) While active sets stay,
V_ia = V_ia(0) + t D_ia and Σ_a E_ia = e_i + κ_i² Σ_a x_a² D_ia. Hence κ_i(x) = r_i / √(Σ_a x_a² D_ia), r_i² = θ² − e_i, and f is the m of `l2_surrogate`.
An iteration is one pass at (x, κ, τ), the minimisation of m, and κ(x), τ(x) at the result: exact once
the active sets are right. In κ_i² alone Σ_a E_ia is concave and piecewise linear, so for a fixed policy the iteration is monotone and finite.

**Saturation.** Kernels whose rows are all at the top for the played actions have budget left for the others: κ_i = ∞ and κ_i·0 = t_ia. The policy is
therefore kept ≥ `LEAST` on the candidates, the actions with cost_a + V⁰_a < U (no other is ever bent). Then f is differentiable, and the leftovers
are shared by the same multipliers, in whatever proportions of tiny x_a that takes; optimal there means U − L ≤ LEAST·A. Probabilities below
`DROP` are left out of the policy that is returned and of its U. U never exceeds 0, the value of an unconstrained nature; when that cap
binds the policy is the single action that attains it.

**Safeguard.** Just below saturation f is all but kinked, and only inside a kink, which may be 1e-9 wide, a Newton step sees it. If `JOINT` passes do not
settle a state, its solution is followed as the radius grows from a part of θ to θ (`solve_state`): there the next solution is near and inside the same
kinks. Steps that do not lower U, which is convex in (x, 1/κ), are halved on the way. What is still not settled is returned with honest bounds.

Memory: by_action holds x with its tiny entries, by_kernel κ, by_row τ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import close_trivial, open_state
from drmdp.bellman.l2_newton import MASS, Sums, make_sums, start_from_mean
from drmdp.bellman.l2_surrogate import LEAST, Surrogate, linearise, make_surrogate, minimise_surrogate
from drmdp.bellman.rows.l2 import DUAL, SLOPE, SPENT, SU, SY, VALUE, WIDE, C, State, forget, state_of, visit_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, normalise, scratch
from drmdp.layout.sorting import copy, copy_some

DROP = 1e-11
FAR = 1e28  # κ of a kernel that is all at the top
JOINT = 15
GUARDED = 30  # the same, on the way to the radius
STEPS = 80  # radii on the way, and θ itself
EVEN = 1e-14  # of the budget; a kernel all at the top may have spent just that, and is left where it is
EVALUATE = 200


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    all: Surrogate  # of N kernels
    mean: Sums  # of the mean kernel
    tau: Array  # (A, N)


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    state = scratch(layout, start, stop, 2 * WIDE)
    A, N = state.scale.shape
    return Work(state, make_surrogate(A, N), make_sums(A, 1), np.empty((A, N)))


@njit(**INLINE)
def pass_once(state, share, kappa, tau, close, fresh, drop, work):
    """Pass over all rows with share > 0.

    reads   state, share (A,), kappa (N,), close, fresh (nothing is known of the rows), drop
    fills   tau (A, N), work: rows, off, and ΣE, Σx²D of the kernels
    returns U of the policy without entries < drop, what it attains, and L
    """
    A, N = share.size, kappa.size
    theta2 = state.theta * state.theta
    w = state.w
    spent, curvature, excess = work.kernels[0], work.kernels[1], work.kernels[2]
    slack, played, upper = 0.0, 0.0, 0.0
    for i in range(N):
        spent[i], curvature[i] = 0.0, 0.0
        upper += w[i] * 0.5 * theta2 / kappa[i]
    if fresh:
        for a in range(A):
            forget(work.rows[a])
    visit_rows(state, np.int64(0), A, share, kappa, close, tau, work.rows, work.off)
    for a in range(A):
        x = share[a]
        if x > 0.0:
            rows = work.rows[a]
            slack = max(slack, work.off[a])
            dual = 0.0
            for i in range(N):
                spent[i] += rows[SPENT, i]
                curvature[i] += x * x * rows[SLOPE, i]
                dual += w[i] * rows[DUAL, i] / kappa[i]
            if x >= drop:
                played += x
                upper += x * state.cost[a] + dual
    for i in range(N):
        excess[i] = w[i] * (1.0 - state.theta / math.sqrt(spent[i])) if spent[i] > theta2 else 0.0
    lower = np.inf
    attained = 0.0
    for a in range(A):
        value = state.nominal[a]
        if share[a] > 0.0:
            rows = work.rows[a]
            n = state.ptr[a + 1] - state.ptr[a]
            value = -4.0 * slack if slack > MASS else 0.0
            for i in range(N):
                value += w[i] * rows[VALUE, i]
                if excess[i] > 0.0:
                    value -= excess[i] * min(1.0 + rows[VALUE, i], 0.5 * math.sqrt((rows[C, i] + n) * rows[SPENT, i]))
            attained += share[a] * (state.cost[a] + value)
        lower = min(lower, state.cost[a] + value)
    return upper / played, attained, lower if math.isfinite(attained) else -np.inf


@njit(**INLINE)
def screen(state, share, kappa, tau, upper, work):
    """Let in the actions that must be bent, let go those that need not.

    reads   state, kappa (N,), upper (U)
    fills   share (A,), tau (A, N), work: the candidates, and what a pass finds
    returns the number of candidates
    """
    count = np.int64(0)  # a literal would compile everything that takes it twice
    for a in range(share.size):
        bent = state.cost[a] + state.nominal[a] < upper
        if share[a] <= 1.01 * LEAST and not bent:
            share[a] = 0.0
            continue
        if not share[a] > 0.0:
            share[a] = LEAST
            tau[a] = np.nan
            visit_rows(state, a, a + 1, share, kappa, 0.1, tau, work.rows, work.off)
            for i in range(kappa.size):
                work.kernels[0, i] += work.rows[a, SPENT, i]
                work.kernels[1, i] += LEAST * LEAST * work.rows[a, SLOPE, i]
        work.candidates[count] = a
        count += 1
    return count


@njit(**INLINE)
def move(state, share, kappa, tau, work):
    """Go to the policy work.target; κ and τ follow while active sets stay.

    reads   state, work: target, rows, kernels
    fills   share (A,), kappa (N,), tau (A, N)
    """
    A, N = share.size, kappa.size
    spent, radius, curvature = work.kernels[0], work.kernels[2], work.kernels[3]
    curvature[:] = 0.0
    size = 0.0
    for a in range(A):
        share[a] = work.target[a]
        if share[a] > 0.0:
            size += share[a] * share[a]
            for i in range(N):
                curvature[i] += share[a] * share[a] * work.rows[a, SLOPE, i]
    for i in range(N):
        if not radius[i] > 0.0:
            if spent[i] > (1.0 + EVEN) * state.theta * state.theta:  # far too much was spent: start again from the left
                kappa[i] = 0.5 * min(kappa[i], state.theta / math.sqrt(size))
        else:  # or all of it is at the top
            kappa[i] = min(radius[i] / math.sqrt(curvature[i]), FAR) if curvature[i] > 1e-300 else FAR
    for a in range(A):
        if share[a] > 0.0:
            rows = work.rows[a]
            for i in range(N):
                tau[a, i] = (rows[SY, i] + kappa[i] * share[a] * rows[SU, i] - 1.0) / rows[C, i]


@njit(**INLINE)
def keep(share, kappa, tau, work, k):
    """Keep a point under number k.

    reads   share (A,), kappa (N,), tau (A, N), k
    fills   work: share, kappa, tau
    """
    copy(share, work.share[k])
    copy(kappa, work.kappa[k])
    copy(tau, work.tau[k])


@njit(**LEAN)
def joint(state, tol, limit, guard, share, kappa, tau, work):
    """The joint iteration. With `guard`, steps that do not lower U are halved.

    reads   state, tol, limit (of passes), guard
    fills   share (A,), kappa (N,), tau (A, N), work
    returns U (not capped), L and passes
    """
    best, upper, lower = np.inf, np.inf, -np.inf
    halvings = 0
    for iteration in range(limit):
        upper, attained, lower = pass_once(state, share, kappa, tau, MASS if guard else 0.1, iteration == 0, DROP, work)
        capped = upper if upper < 0.0 else 0.0
        if capped - lower <= tol or iteration == limit - 1:
            break
        if guard and iteration > 0 and not upper <= best + 1e-14 and halvings < 12:
            halvings += 1
            for a in range(share.size):
                share[a] = 0.5 * (share[a] + work.share[1, a])
            for i in range(kappa.size):
                kappa[i] = 2.0 / (1.0 / kappa[i] + 1.0 / work.kappa[1, i])
                for a in range(share.size):
                    tau[a, i] = 0.5 * (tau[a, i] + work.tau[1, a, i])
            continue
        if guard:
            halvings = 0
            best = upper
            keep(share, kappa, tau, work, 1)
        count = screen(state, share, kappa, tau, capped, work)
        if linearise(state, share, kappa, count, work):
            gap = min(attained - lower, 1.0)
            minimise_surrogate(state, share, count, max(0.1 * gap * gap, 0.01 * tol), work)
        else:
            copy(share, work.target)
        move(state, share, kappa, tau, work)
    return upper, lower, iteration + 1


@njit(**INLINE)
def cold_start(state, mean, tol, share, kappa, tau, x, work):
    """Start from the policy and multipliers of (ℓ2, 2) with the mean kernel alone.

    reads   state, mean (the mean kernel in the layout of state.u), tol
    fills   share (A,), kappa (N,), tau (A, N), x (A,), work: all.target, mean
    """
    A, t = share.size, work.all.target
    t[:] = 0.0
    upper = start_from_mean(state, mean, tol, t, tau, x, work.mean)
    total, most = 0.0, 0.0
    for a in range(A):
        total += t[a]
        if x[a] <= 0.0:
            most = max(most, t[a])
    small = most
    for a in range(A):
        if x[a] <= 0.0 and t[a] > 0.0:
            small = min(small, t[a])
    small = max(small, 1e-4 * most)
    for a in range(A):
        if upper < 0.0:
            share[a] = t[a] / total
        else:  # one action is played, only leftovers bend the others
            share[a] = 1.0 if x[a] > 0.0 else LEAST * max(t[a] / small, 1.0) if t[a] > 0.0 else 0.0
    kappa[:] = total if upper < 0.0 else (small if small > 0.0 else 1.0) / LEAST


@njit(**INLINE)
def usable(state, share, kappa):
    """Normalise the last policy on what may be a candidate.

    reads   state, kappa (N,)
    fills   share (A,)
    returns whether both can be started from
    """
    total = 0.0
    for a in range(share.size):
        if not (share[a] > 0.0 and share[a] < 1e100 and state.cost[a] + state.nominal[a] < 0.0):
            share[a] = 0.0
        total += share[a]
    good = total > 1e-100
    for i in range(kappa.size):
        good = good and kappa[i] > 1e-100 and kappa[i] <= FAR
    for a in range(share.size):
        if good and share[a] > 0.0:
            share[a] = max(share[a] / total, LEAST)
    return good


@njit(**INLINE)
def solve_state(state, mean, tol, share, kappa, x, work):
    """Solve one state from the policy, multipliers and thresholds left behind (zeros: cold).

    reads   state, mean (the mean kernel in the layout of state.u), tol
    fills   share (A,), kappa (N,), x (A,), work, its tau with the thresholds
    returns U, L, passes
    """
    tau = work.tau
    cheapest, lowest, bottom, trivial = open_state(state, state.theta, tol)
    upper, lower, passes = 0.0, bottom, 0
    if trivial:
        share[:], kappa[:], tau[:] = 0.0, 1.0, 0.0
        upper, lower = close_trivial(state.theta, cheapest, lowest, bottom, x)
        return upper, lower, passes
    part, last = 1.0, 0.0  # of θ: to solve, solved
    reach = 0.9  # of what is left
    warm = usable(state, share, kappa)
    for attempt in range(STEPS):
        here = State(
            state.y, state.ptr, state.u, state.w, state.cost, state.nominal, part * state.theta, state.order,
            state.unlisted, state.scale,
        )  # fmt: skip
        if last > 0.0:
            copy(work.all.share[0], share)
            copy(work.all.kappa[0], kappa)
            copy(work.all.tau[0], tau)
        elif attempt > 0 or not warm:
            cold_start(here, mean, tol, share, kappa, tau, x, work)
        limit = 1 if attempt == STEPS - 1 else GUARDED if attempt > 0 else JOINT
        upper, lower, count = joint(here, tol, limit, attempt > 0, share, kappa, tau, work.all)
        passes += count
        if (upper if upper < 0.0 else 0.0) - lower <= tol:
            if part >= 1.0:
                break
            last = part
            keep(share, kappa, tau, work.all, 0)
            reach = min(2.0 * reach, 0.9)
        elif last > 0.0:
            reach *= 0.3
        part = last + reach * (1.0 - last) if last > 0.0 else 0.5 * part
        if part > 1.0 - 1e-12 or attempt == STEPS - 2:  # arrived, or giving up: the bounds of what was found
            part = 1.0
    total = 0.0
    for a in range(x.size):
        if not share[a] > 0.0:
            tau[a] = 0.0
        x[a] = (share[a] if share[a] >= DROP else 0.0) if upper < 0.0 else 1.0 if a == cheapest else 0.0
        total += x[a]
    for a in range(x.size):
        x[a] /= total
    return (upper if upper < 0.0 else 0.0), lower, passes


@njit(**INLINE)
def evaluate_state(state, tol, x, share, kappa, tau, work):
    """Worst case of a policy at one state.

    reads   state, whose costs it sets to 0, tol, x (A,)
    fills   share (A,), kappa (N,), tau (A, N), work
    returns U, L, passes
    """
    A = x.size
    total, size, nominal, free = 0.0, 0.0, 0.0, 0.0
    for a in range(A):
        if not share[a] > 0.0:
            tau[a] = np.nan
        share[a] = x[a] if x[a] > 0.0 else 0.0
        work.target[a] = share[a]
        if share[a] > 0.0:
            total += x[a]
            size += x[a] * x[a]
            nominal += x[a] * state.nominal[a]
            free += x[a] * state.cost[a]
        state.cost[a] = 0.0  # set aside: wide costs would hide the gap
    if state.theta <= 0.0 or nominal >= -tol:
        share[:], kappa[:], tau[:] = 0.0, 1.0, 0.0
        return (free + nominal if state.theta <= 0.0 else free), free + nominal, 0
    for i in range(kappa.size):
        if not (kappa[i] > 1e-100 and kappa[i] <= FAR):
            kappa[i] = state.theta / math.sqrt(size)
    upper, lower, passes = 0.0, nominal, 0
    while passes < EVALUATE:
        passes += 1
        upper, lower, _ = pass_once(state, share, kappa, tau, 0.1, passes == 1, 0.0, work)
        upper = upper * total if upper < 0.0 else 0.0
        lower = max(lower, nominal)
        if upper - lower <= tol:
            break
        linearise(state, share, kappa, 0, work)
        move(state, share, kappa, tau, work)
    return free + upper, free + lower, passes


@njit(**KERNEL)
def update(start, stop, layout, point, memory, out, tol, work):
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    reads   layout, point, tol
    fills   memory, out, work
    """
    A = work.state.cost.size
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:  # not terminal
            share, state = memory.by_action[s], state_of(layout, point.order, s, work.state)
            mean = layout.mean[layout.indptr[s * A] : layout.indptr[(s + 1) * A]]
            copy_some(memory.by_row[s], work.tau, share)
            upper, lower, out.passes[s] = solve_state(
                state, mean, tol, share, memory.by_kernel[s], out.policy[s], work
            )  # fmt: skip
            copy_some(work.tau, memory.by_row[s], share)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(**KERNEL)
def evaluate(start, stop, layout, point, memory, out, tol, work):
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`.

    reads   layout, point, tol
    fills   memory, out, work
    """
    tau = work.tau
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:
            share, state = memory.by_action[s], state_of(layout, point.order, s, work.state)
            copy_some(memory.by_row[s], tau, share)
            upper, lower, out.passes[s] = evaluate_state(
                state, tol, out.policy[s], share, memory.by_kernel[s], tau, work.all
            )
            copy_some(tau, memory.by_row[s], share)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


NATURE = nature_rows.L2
"""How her rows follow from the memory."""
