"""(ℓ1, ∞): the exact update by a proximal-point method on the masses that nature moves.

Normalised as in `drmdp.layout.layout`. With m_ia the mass moved in row (i, a), g_ia its gain (`rows_l1`) and B = θ/2,

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   Σ_a m_ia ≤ B for every i,   m ≥ 0 },

which `drmdp.bellman.piecewise.method` solves with a budget for each kernel, U and L included. Tables are made for the actions that matter only: those of
the last policy, or cold of the policy for the mean kernel alone, are solved for. An action with cost_a + V⁰_a ≥ U takes no mass; the others join, and
it is solved again. Masses and gains are divided by min(B, 1) and costs counted from the smallest cost_a + V⁰_a, so that small radii keep
their digits.

With a policy x fixed, a knapsack for every kernel, all in the same order: that of x_a Δ.

Memory: by_row holds m, by_kernel μ (per unit of mass, in units of the stakes' range), and out.policy x.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman import nature_rows
from drmdp.bellman.piecewise.budget_per_kernel import make_tables
from drmdp.bellman.piecewise.finish import sweep
from drmdp.bellman.piecewise.method import make_work
from drmdp.bellman.piecewise.warm_l1 import hold, locate, make_held
from drmdp.bellman.piecewise.work import make_room, scan
from drmdp.bellman.rows.l1 import by_gain, tabulate
from drmdp.bellman.rows.linf import ascending_states
from drmdp.core.compiled import INLINE, KERNEL, LEAN
from drmdp.layout.layout import prologue, row_scales
from drmdp.layout.sorting import rank

# stages: the mean kernel alone; what the last sweep held, and what that leaves; from tables
MEAN, HOLD, REST, SOLVE = range(4)


@njit(**INLINE)
def _lift(n, tables, head, B, cap, x, m):  # type: ignore[no-untyped-def]
    """Solve for one kernel alone, fills x and m (n,); returns μ.

    γ is found from above by Newton's method on the convex Σ_a m_a(γ) = B, where m_a(γ) lifts action a to γ.
    """
    gamma = cap
    for _ in range(200):
        spent = 0.0
        rate = 0.0
        for a in range(n):
            need = gamma - head[a]
            x[a] = 0.0
            m[a] = 0.0
            if need <= 0.0 or tables.length[a, 0] == 0:
                continue
            line = tables.start[a] + 1
            last = tables.start[a] + tables.length[a, 0]
            while line < last and tables.lines[line, 1] < need:
                line += 1
            m[a] = min(
                tables.lines[line - 1, 0] + (need - tables.lines[line - 1, 1]) / tables.lines[line, 2],
                tables.lines[line, 0],
            )
            x[a] = 1.0 / tables.lines[line, 2]
            spent += m[a]
            rate += x[a]
        new = gamma - (spent - B) / rate
        if not (spent > B and new < gamma):
            break
        gamma = new
    for a in range(n):
        x[a] /= rate
    return 1.0 / rate


@njit(**LEAN)
def clear(policy, mass, mu):  # type: ignore[no-untyped-def]
    """Nothing is played, nothing moved."""
    for a in range(policy.size):
        policy[a] = 0.0
        for i in range(mu.size):
            mass[a, i] = 0.0
    for i in range(mu.size):
        mu[i] = 0.0


def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    up, room = ascending_states(layout, value, start, stop), make_room(layout, start, stop)
    given = layout, order, value, top, span, tol, memory, up, room
    out.passes[start:stop] = -1.0
    tables = make_tables(A, N, N * (room.u.size + A))
    sweep(_update, False, start, stop, out, *given, make_work(A, N, False), tables, make_held(A, N))


@njit(**KERNEL)
def _update(start, stop, out, layout, order, value, top, span, tol, memory, up, room, work, tables, held, solver):  # type: ignore[no-untyped-def]
    """Update the states where passes are negative from the memory in policy, mass and μ if that is sound; it remains so where U − L is too large."""
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, head, scale, action, where = room.u, room.cost, room.nominal, room.scale, room.action, room.where
    entry, delta, left, one = room.entry, room.level, room.gain, room.one
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        out.passes[s] = 0.0
        base, unit = prologue(layout, order, value, top, span, s, u, cost, head)
        if not base < np.inf:  # terminal
            continue
        policy, mass, mu = out.policy[s], memory.by_row[s], memory.by_kernel[s]
        theta = layout.radius[s]
        first, lowest, _, given = scan(policy, room)
        bottom = cost[lowest] + head[lowest]
        if theta <= 0.0 or bottom >= -tol:
            clear(policy, mass, mu)
            policy[lowest if theta <= 0.0 else first] = 1.0
            out.upper[s] = base + unit * (bottom if theta <= 0.0 else 0.0)
            out.lower[s] = base + unit * bottom
            continue
        row_scales(layout, s, scale)
        size = min(0.5 * theta, 1.0)
        B = 0.5 * theta / size
        cap = -bottom / size
        for a in range(A):
            head[a] = (cost[a] + head[a] - bottom) / size
            policy[a] = policy[a] / given if given > 0.5 else 0.0
        for i in range(N):
            work.mu[i] = mu[i] if mu[i] >= 0.0 and mu[i] <= 1.0 else 0.1
        stage = HOLD if given > 0.5 else MEAN
        n, line, passes = np.int64(0), np.int64(0), 0
        high, low = cap if stage == MEAN else -np.inf, 0.0
        while True:
            before = n
            for a in range(A):
                if not (policy[a] > 0.0 or (policy[a] == 0.0 and head[a] < high)):
                    continue
                lo, K = layout.indptr[s * A + a], layout.indptr[s * A + a + 1] - layout.indptr[s * A + a]
                at = lo - layout.indptr[s * A]
                k = by_gain(u[at : at + K], layout.indices[lo : lo + K], order, up, where, room.place, entry, delta)
                work.head[n], work.x[n], action[n] = head[a], policy[a], a
                centre, segment = work.centre[n], work.segment[n]
                for i in range(N):
                    m = left[i] if stage == REST else B if policy[a] == 1.0 else mass[a, i] / size
                    centre[i] = m if m >= 0.0 and m <= B else 0.0
                if stage in (HOLD, REST):
                    locate(layout.data, N * lo, K, N, scale[a], size, entry, delta, k, centre, held, n)
                elif stage == MEAN:
                    line = tabulate(
                        layout.mean, lo, K, np.int64(1), one, size, np.inf, entry, delta, k, tables, n, line, centre, segment
                    )  # fmt: skip
                else:
                    line = tabulate(
                        layout.data, N * lo, K, N, scale[a], size, B, entry, delta, k, tables, n, line, centre, segment
                    )
                    policy[a] = -1.0  # has tables
                n += 1
            if stage == SOLVE:
                if n == before:
                    break
                high, low, more = solver(n, N, tables, layout.weights, B, cap, tol / size, work, None)
                passes += more
                for k in range(n):
                    work.x[k] = work.best_x[k] if high < cap else work.x[k]
                    for i in range(N):
                        work.centre[k, i] = work.best[k, i]
                continue
            if stage == HOLD:
                high, low = hold(n, N, layout.weights, B, work, held)
                high, low, rest = min(high, cap), min(low, cap), 0
                for k in range(n):
                    policy[action[k]] = -1.0
                for a in range(A):
                    rest += 1 if policy[a] == 0.0 and head[a] < high else 0
                if high - low <= tol / size:
                    passes = 1
                    if rest == 0:
                        break
                    for i in range(N):
                        left[i] = B / rest
                        for k in range(n):
                            left[i] -= work.best[k, i] / rest
                    stage = REST
                    continue
            elif stage == REST:
                for k in range(before, n):
                    work.best_x[k] = 0.0
                    for i in range(N):
                        work.best[k, i] = work.centre[k, i]
                        work.head[k] += layout.weights[i] * held.gain[k, i]
                    low = min(low, work.head[k])
                if high - low <= tol / size:
                    break
            else:
                level = _lift(n, tables, work.head, B, cap, work.x, work.q)
                for i in range(N):
                    work.mu[i] = level
                for k in range(n):
                    for i in range(N):
                        mass[action[k], i] = size * work.q[k]
            for k in range(n):
                policy[action[k]] = work.x[k]
            stage, n, line, high = SOLVE, np.int64(0), np.int64(0), -np.inf
        clear(policy, mass, mu)
        for k in range(n):
            for i in range(N):
                mass[action[k], i] = size * work.best[k, i]
        if high < cap:
            for i in range(N):
                mu[i] = work.best_mu[i]
            for k in range(n):
                policy[action[k]] = work.best_x[k]
        else:
            policy[first] = 1.0
        out.upper[s], out.lower[s] = base + unit * (bottom + size * high), base + unit * (bottom + size * max(low, 0.0))
        out.passes[s] = -passes if high - low > tol / size else passes


@njit(**INLINE)
def _evaluate_state(layout, s, x, room, mu, mass):  # type: ignore[no-untyped-def]
    """Worst case of the policy x at one normalised state; fill m and μ; return it."""
    A, N = room.scale.shape
    theta, w, delta = layout.radius[s], layout.weights, room.key
    steepest, entry, owner = room.entry, room.stack, room.index
    n = 0
    worst = 0.0
    mass[:] = 0.0
    mu[:] = 0.0
    for a in range(A):
        if x[a] > 0.0:
            worst += x[a] * (room.cost[a] + room.nominal[a])
            for e in range(layout.indptr[s * A + a], layout.indptr[s * A + a + 1]):
                d = x[a] * room.u[e - layout.indptr[s * A]]
                if d < 0.0:
                    delta[n], entry[n], owner[n] = d, e, a
                    n += 1
    if theta <= 0.0 or n == 0:
        return worst
    rank(delta[:n], steepest, room.place)
    for i in range(N):
        left = 0.5 * theta
        for k in range(n):
            j = steepest[k]
            a, d = owner[j], -delta[j]
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            p = layout.data[N * lo + i * (hi - lo) + entry[j] - lo] * room.scale[a, i]
            taken = min(p, left)
            mass[a, i] += taken
            worst += w[i] * taken * d
            left -= taken
            if p >= left + taken:
                mu[i] = d
                break
    return worst


@njit(**KERNEL)
def _evaluate(start, stop, out, layout, order, value, top, span, memory, room):  # type: ignore[no-untyped-def]
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if base < np.inf:  # not terminal
            row_scales(layout, s, room.scale)
            worst = _evaluate_state(layout, s, out.policy[s], room, memory.by_kernel[s], memory.by_row[s])
            out.upper[s], out.lower[s], out.passes[s] = base + unit * worst, base + unit * worst, 1


def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    _evaluate(start, stop, out, layout, order, value, top, span, memory, make_room(layout, start, stop))


NATURE = nature_rows.L1
"""How her rows follow from the memory."""
