"""The certificate of the exact operators, on compressed data of any size.

The formulas are those of `drmdp.certificate`, row by row: U is the Lagrangian of the returned policy at the multipliers and thresholds
handed over (or, for ℓ1, at the knapsack threshold found here), valid whatever their quality; L is the value of explicit
kernels that are built here from the few numbers handed over, measured, and pulled into the ball. It shares the
normalisation of the data (`drmdp.bellman.layout`) with the kernels it judges, and no other line.

What is handed over (`Memory`): ℓ2: t_ia = by_action[a]·by_kernel[i] and thresholds by_row[a, i], y = (ŷ + t u − τ)⁺ made to sum to 1;
ℓ1: moved masses, by_action[a] on the mean row for order 1 and by_row[a, i] for order ∞; ℓ∞: radii by_kernel[i], for order 1 also the
multiplier by_action[0].

Rounding: sums of n terms carry the margin (n + 64) ε Σ|terms|, and every result the rounding of the stakes and `FLAT`, below
which differences of u were taken for 0.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from drmdp import threads as workers
from drmdp._typing import Array
from drmdp.ambiguity import Wasserstein
from drmdp.bellman.arrays import rank
from drmdp.bellman.layout import Layout, Memory, Order, count_above, prologue, row_scales
from drmdp.certificate_linf import states_linf
from drmdp.certificate_sums import EPS, finish, work_space
from drmdp.compiled import KERNEL, LEAN


def derive(
    ball: Wasserstein, layout: Layout, order: Order, value: Array, policy: Array, memory: Memory, fixed: bool,
    threads: int = 1,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """L ≤ F_y(v), U ≥ F^x(v), (S,) each, and the share of nature's move that is surely feasible, (S, N).

    `value` is without its level. With `fixed`, L is the value of `policy` under nature's kernels instead of the best action's.
    """
    S, N = layout.available.shape[0], layout.weights.size
    low, high, share = np.zeros(S), np.zeros(S), np.ones((S, N))
    kernel = {"l1": _states_l1, "l2": _states_l2, "linf": states_linf}[ball.metric]
    top, span = float(value.max()), float(np.ptp(value))
    every = ball.order == np.inf
    kind = every if ball.metric != "linf" else None if every else True

    def over(lo: int, hi: int) -> None:
        room = work_space(layout, lo, hi)
        kernel(lo, hi, layout, order, value, top, span, policy, memory, kind, fixed, low, high, share, room)

    workers.run(over, N * layout.indptr[:: layout.available.shape[1]], 0, S, threads)
    return low, high, share


# ---------------------------------------------------------------------- ℓ2


@njit(**LEAN)
def _sums_l2(data, at, K, u, first, scale, t, tau, order, unlisted):  # type: ignore[no-untyped-def]
    """Number, Σu, Σu², Σŷ, Σŷu over the active entries, Σŷ² over the others, Σŷu over all, how many terms that took, and the threshold.

    A threshold that leaves the mass off by more than 1e-13, as one kept in float32 does, is first moved by Newton steps.
    """
    for repeat in range(4):
        c = 0.0
        su = 0.0
        suu = 0.0
        sy = 0.0
        syu = 0.0
        si = 0.0
        all_yu = 0.0
        terms = K
        if unlisted:
            k = count_above(order, t, tau)
            terms += k
            c += k
            su += order.sum1[k]
            suu += order.sum2[k]
        for j in range(K):
            p = data[at + j] * scale
            z = u[first + j]
            all_yu += p * z
            if p + t * z > tau:
                sy += p
                syu += p * z
                if not (unlisted and t * z > tau):
                    c += 1.0
                    su += z
                    suu += z * z
            else:
                si += p * p
        mass = sy + t * su - c * tau
        if repeat == 3 or not c > 0.5 or not 1e-13 < abs(mass - 1.0) < 0.1:
            break
        tau += (mass - 1.0) / c
    return c, su, suu, sy, syu, si, all_yu, terms, tau


@njit(**KERNEL)
def _states_l2(start, stop, layout, order, value, top, span, policy, memory, every, fixed, low, high, share, room):  # type: ignore[no-untyped-def]
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, nominal, scale, q, gain = room.u, room.cost, room.nominal, room.scale, room.q, room.gain
    dual, size, kappa, spent = room.kernels[0], room.kernels[1], room.kernels[2], room.kernels[3]
    w = layout.weights
    value_size = span
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        first = layout.indptr[s * A]
        theta = layout.radius[s]
        x, t_a, k_i, tau = policy[s], memory.by_action[s], memory.by_kernel[s], memory.by_row[s]
        common = 0.0
        for a in range(A):
            common += t_a[a]
        free = 0.0
        for a in range(A):
            if x[a] > 0.0:
                free += x[a] * cost[a]
        for i in range(N):
            kappa[i] = k_i[i] if every else common
            dual[i] = 0.5 * theta * theta
            size[i] = 0.5 * theta * theta
            spent[i] = 0.0
        terms = N + A
        for a in range(A):
            q[a] = cost[a]
            bent = t_a[a] > 0.0 and theta > 0.0
            played = x[a] > 0.0 and theta > 0.0
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            K = hi - lo
            if not (bent or played):
                q[a] += nominal[a]
                terms = max(terms, K + N)
                for i in range(N):
                    gain[a, i] = 0.0
                continue
            c, su, suu, sy, syu, si, own, th = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(N):
                at = N * lo + i * K
                gain[a, i] = 0.0
                t = kappa[i] * x[a]
                if played and t > 0.0:
                    c, su, suu, sy, syu, si, own, n, th = _sums_l2(
                        layout.data, at, K, u, lo - first, scale[a, i], t, tau[a, i], order, layout.unlisted
                    )
                    terms = max(terms, n + N + A)
                    dual[i] += th + t * syu - th * sy + 0.5 * (t * t * suu - 2.0 * t * th * su + c * th * th) - 0.5 * si
                    size[i] += (
                        abs(th) * (1.0 + sy) - t * syu + 0.5 * (t * t * suu - 2.0 * abs(t * th) * su + c * th * th + si)
                    )
                t = k_i[i] * t_a[a] if every else t_a[a]
                if bent and t > 0.0:
                    if not (played and abs(t - kappa[i] * x[a]) <= 4.0 * EPS * t):  # or the sums are those above
                        c, su, suu, sy, syu, si, own, n, th = _sums_l2(
                            layout.data, at, K, u, lo - first, scale[a, i], t, tau[a, i], order, layout.unlisted
                        )
                        terms = max(terms, n + N + A)
                    mass = sy + t * su - c * th
                    if mass > 0.5:
                        gain[a, i] = (syu + t * suu - th * su) / mass - own
                        far = math.sqrt(max(t * t * suu - 2.0 * t * th * su + c * th * th + si, 0.0)) + abs(1.0 - mass)
                        spent[i] += far * far
                    else:  # nothing usable: leave the row as it is
                        gain[a, i] = 0.0
            q[a] += nominal[a]
        # what is surely feasible
        slack = A * (2.0 * terms + 8.0) * EPS
        most = max(theta - slack, 0.0)
        total = 0.0
        for i in range(N):
            total += w[i] * spent[i]
        for i in range(N):
            far = math.sqrt(spent[i] if every else total)
            share[s, i] = most / far if far > most else 1.0
        for a in range(A):
            for i in range(N):
                q[a] += w[i] * share[s, i] * gain[a, i]
        # the dual value
        upper = 0.0
        upper_size = free
        if theta > 0.0:
            for i in range(N):
                bound = dual[i] / kappa[i] if kappa[i] > 0.0 else 0.0
                measure = size[i] / kappa[i] if kappa[i] > 0.0 else 0.0
                if every and not bound < 0.0:  # an unconstrained nature gains nothing above the top
                    bound = 0.0
                    measure = 0.0
                upper += w[i] * bound
                upper_size += w[i] * measure
            if not upper < 0.0:
                upper = 0.0
                upper_size = free
        else:
            for a in range(A):
                if x[a] > 0.0:
                    upper += x[a] * nominal[a]
            upper_size += 1.0
        finish(s, base, unit, q, terms, cost, x, free + upper, 1.0 + upper_size, layout, value_size, fixed, low, high)


# ---------------------------------------------------------------------- ℓ1


@njit(**KERNEL)
def _states_l1(start, stop, layout, order, value, top, span, policy, memory, every, fixed, low, high, share, room):  # type: ignore[no-untyped-def]
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, nominal, scale, q = room.u, room.cost, room.nominal, room.scale, room.q
    slope, entry, action, ascending = room.reals[0], room.places[0], room.places[1], room.places[2]
    w = layout.weights
    rows = N if every else 1
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        first = layout.indptr[s * A]
        theta = layout.radius[s]
        x = policy[s]
        free = 0.0
        n = 0  # entries of played actions, with their slopes
        terms = A + N
        for a in range(A):
            q[a] = cost[a] + nominal[a]
            terms += layout.indptr[s * A + a + 1] - layout.indptr[s * A + a]
            if x[a] > 0.0:
                free += x[a] * cost[a]
                for e in range(layout.indptr[s * A + a], layout.indptr[s * A + a + 1]):
                    slope[n] = x[a] * u[e - first]
                    entry[n] = e
                    action[n] = a
                    n += 1
        rank(slope[:n], ascending, room.places[3])
        most = max(0.5 * theta - A * (terms + 8.0) * EPS, 0.0)
        upper = 0.0
        for i in range(rows):
            # multiplier: the slope at which the budget is used up
            left = 0.5 * theta
            cut = 0.0
            for m in range(n):
                k = ascending[m]
                left -= _mass(layout, N, A, s, action[k], entry[k], i, scale, every)
                if left <= 0.0:
                    cut = -slope[k]
                    break
            worth = 0.5 * cut * theta
            for k in range(n):
                p = _mass(layout, N, A, s, action[k], entry[k], i, scale, every)
                worth += p * max(slope[k], -cut)
            if theta == 0.0:
                worth = 0.0
                for k in range(n):
                    worth += _mass(layout, N, A, s, action[k], entry[k], i, scale, every) * slope[k]
            upper += (w[i] if every else 1.0) * min(worth, 0.0)
            moved = 0.0
            for a in range(A):
                m_a = memory.by_row[s, a, i] if every else memory.by_action[s, a]
                if layout.available[s, a] and m_a > 0.0:
                    moved += m_a
            share[s, i] = most / moved if moved > most else 1.0
        if not every:
            for i in range(N):
                share[s, i] = share[s, 0]
        for a in range(A):
            if not layout.available[s, a]:
                continue
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            worst = room.places[2]
            rank(u[lo - first : hi - first], worst, room.places[3])
            for i in range(rows):
                left = share[s, i] * (memory.by_row[s, a, i] if every else memory.by_action[s, a])
                if not left > 0.0:
                    continue
                gain = 0.0
                for m in range(hi - lo):
                    e = lo + worst[m]
                    take = min(left, _mass(layout, N, A, s, a, e, i, scale, every))
                    gain -= take * u[e - first]
                    left -= take
                    if left <= 0.0:
                        break
                q[a] += (w[i] if every else 1.0) * gain
        finish(s, base, unit, q, terms, cost, x, free + upper, 2.0 + free + theta, layout, span, fixed, low, high)


@njit(**LEAN)
def _mass(layout, N, A, s, a, e, i, scale, every):  # type: ignore[no-untyped-def]
    """Probability of entry e in kernel i, or in the mean."""
    if not every:
        return layout.mean[e]
    lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
    return layout.data[N * lo + i * (hi - lo) + e - lo] * scale[a, i]
