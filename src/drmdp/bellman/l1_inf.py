"""(ℓ1, ∞): the exact update by a proximal-point method on the masses that nature moves.

Normalised as in `drmdp.bellman.layout`. With m_ia the mass moved in row (i, a), g_ia its gain (`rows_l1`) and B = θ/2,

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   Σ_a m_ia ≤ B for every i,   m ≥ 0 },

which `drmdp.bellman.proximal` solves with a budget for each kernel, U and L included. Tables are made for the actions that matter only: U
of the last policy, or cold the value for the mean kernel alone, whose policy is also the start, bounds F̄ from above, and an action with
cost_a + V⁰_a ≥ U takes no mass. Masses and gains are divided by min(B, 1) and costs counted from the smallest cost_a + V⁰_a, so that small
radii keep their digits.

With a policy x fixed, a knapsack for every kernel, all in the same order: that of x_a Δ.

Memory: by_row holds m, by_kernel μ (per unit of mass, in units of the stakes' range), and out.policy x.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.budget_each import make_tables, with_room
from drmdp.bellman.layout import largest_state, prologue, row_scales
from drmdp.bellman.proximal import make_work, rounds, worst_case
from drmdp.bellman.rows_l1 import by_gain, tabulate
from drmdp.bellman.rows_linf import ascending_states
from drmdp.compiled import INNER


@njit(**INNER)
def start_from_mean(n, tables, head, B, cap, x, m):  # type: ignore[no-untyped-def]
    """Solve for the mean kernel alone, fills x and m (n,); returns its value, which bounds F̄ from above, and μ.

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
    return gamma, 1.0 / rate


@njit(**INNER)
def _known(x):  # type: ignore[no-untyped-def]
    """Whether a number of the last policy counts."""
    return x > 1e-12 and x <= 1.0


@njit(**INNER)
def solve_state(  # type: ignore[no-untyped-def]
    y,
    ptr,
    N,
    u,
    w,
    mean,
    cost,
    nominal,
    theta,
    tol,
    scale,
    mu,
    mass,
    policy,
    tables,
    work,
    indices,
    order,
    ascending,
    where,
    action,
    entry,
    delta,
):
    """Solve one normalised state, from the memory in policy, mass and μ if that is sound; fill them; return U, L, passes."""
    A = cost.size
    first = 0  # attains the cap
    lowest = 0
    given = 0.0
    for a in range(A):
        if cost[a] < cost[first]:
            first = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
        if _known(policy[a]) and cost[a] + nominal[a] < 0.0:
            given += policy[a]
    bottom = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or bottom >= -tol:
        policy[:] = 0.0
        mass[:] = 0.0
        mu[:] = 0.0
        policy[lowest if theta <= 0.0 else first] = 1.0
        return bottom if theta <= 0.0 else 0.0, bottom, 0
    size = min(0.5 * theta, 1.0)
    B = 0.5 * theta / size
    cap = -bottom / size
    warm = given > 0.5
    high = cap
    n = np.int64(0)
    line = np.int64(0)
    one = np.ones(1)
    for a in range(A):  # those of the last policy, or all for the mean kernel
        if cost[a] + nominal[a] < 0.0 and (_known(policy[a]) or not warm):
            K = ptr[a + 1] - ptr[a]
            k = by_gain(u[ptr[a] : ptr[a + 1]], indices[ptr[a] : ptr[a + 1]], order, ascending, where, entry, delta)
            if warm:
                line = tabulate(y, N * ptr[a], K, N, scale[a], size, B, entry, delta, k, tables, n, line)
            else:
                line = tabulate(mean, ptr[a], K, 1, one, size, np.inf, entry, delta, k, tables, n, line)
            work.head[n] = (cost[a] + nominal[a] - bottom) / size
            work.x[n] = policy[a] / given
            action[n] = a
            n += 1
    if warm:
        for i in range(N):
            work.mu[i] = mu[i] if mu[i] >= 0.0 and mu[i] <= 1.0 else 0.1
        high = min(high, worst_case(n, N, tables, w, B, work.x, work))
        for i in range(N):
            work.mu[i] = work.exact[i]
    else:
        lifted = work.vectors[0]
        high, level = start_from_mean(n, tables, work.head, B, cap, work.x, lifted)
        policy[:] = 0.0
        mass[:] = 0.0
        for i in range(N):
            work.mu[i] = level
        for k in range(n):
            policy[action[k]] = work.x[k]
            for i in range(N):
                mass[action[k], i] = size * lifted[k]
        n = np.int64(0)
        line = np.int64(0)
    for a in range(A):
        if (cost[a] + nominal[a] - bottom) / size < high and not (warm and _known(policy[a])):
            k = by_gain(u[ptr[a] : ptr[a + 1]], indices[ptr[a] : ptr[a + 1]], order, ascending, where, entry, delta)
            K = ptr[a + 1] - ptr[a]
            line = tabulate(y, N * ptr[a], K, N, scale[a], size, B, entry, delta, k, tables, n, line)
            work.head[n] = (cost[a] + nominal[a] - bottom) / size
            work.x[n] = 0.0 if warm else policy[a]
            action[n] = a
            n += 1
    for k in range(n):
        for i in range(N):
            m = mass[action[k], i]
            work.centre[k, i] = m / size if m >= 0.0 and m <= 1.0 else 0.0
            work.segment[k, i] = 1
    high, low, passes = rounds(n, N, tables, w, B, cap, tol / size, work)
    policy[:] = 0.0
    mass[:] = 0.0
    for i in range(N):
        mu[i] = work.best_mu[i] if high < cap else 0.0
    if high < cap:
        for k in range(n):
            policy[action[k]] = work.best_x[k]
    else:
        policy[first] = 1.0
    for k in range(n):
        for i in range(N):
            mass[action[k], i] = size * work.best[k, i]
    return bottom + size * high, bottom + size * max(low, 0.0), passes


@njit(cache=True, nogil=True, error_model="numpy")
def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal, scale = np.empty(most), np.empty(A), np.empty(A), np.ones((A, N))
    action, entry, delta = np.empty(A, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most)
    where = np.full(value.size, -1)
    work, tables, ascending = make_work(A, N, False), make_tables(A, N), ascending_states(layout, value, start, stop)
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        row_scales(layout, s, scale)
        first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
        ptr = layout.indptr[s * A : (s + 1) * A + 1] - first
        lines = 0
        for a in range(A):
            if cost[a] + nominal[a] < 0.0:
                lines += N * (ptr[a + 1] - ptr[a] + 1)
        tables = with_room(tables, 0, lines)
        upper, lower, out.passes[s] = solve_state(
            layout.data[N * first : N * last], ptr, N, u, layout.weights, layout.mean[first:last], cost, nominal,
            layout.radius[s], tol, scale, memory.by_kernel[s], memory.by_row[s], out.policy[s], tables, work,
            layout.indices[first:last], order, ascending, where, action, entry, delta,
        )  # fmt: skip
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(**INNER)
def evaluate_state(y, ptr, N, u, w, cost, nominal, x, theta, scale, mu, mass, action, delta):  # type: ignore[no-untyped-def]
    """Worst case of the policy x at one normalised state; fill m and μ; return U, L."""
    A = cost.size
    n = 0
    base = 0.0
    mass[:] = 0.0
    mu[:] = 0.0
    for a in range(A):
        if x[a] > 0.0:
            base += x[a] * (cost[a] + nominal[a])
            for e in range(ptr[a], ptr[a + 1]):
                if u[e] < 0.0:
                    action[n] = e
                    delta[n] = x[a] * u[e]
                    n += 1
    if theta <= 0.0 or n == 0:
        return base, base
    steepest = np.argsort(delta[:n])
    owner = np.empty(n, dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    for k in range(n):
        e = action[steepest[k]]
        a = np.searchsorted(ptr, e, side="right") - 1
        owner[k] = a
        place[k] = N * ptr[a] + e - ptr[a]
    upper = base
    lower = base
    for i in range(N):
        left = 0.5 * theta
        gain = 0.0
        level = 0.0
        for k in range(n):
            a = owner[k]
            p = y[place[k] + i * (ptr[a + 1] - ptr[a])] * scale[a, i]
            d = -delta[steepest[k]]
            if p >= left:
                mass[a, i] += left
                gain += left * d
                left = 0.0
                level = d
                break
            mass[a, i] += p
            gain += p * d
            left -= p
        mu[i] = level
        upper += w[i] * gain
        lower += w[i] * gain
    return upper, lower


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal, scale = np.empty(most), np.empty(A), np.empty(A), np.ones((A, N))
    action, delta = np.empty(most, dtype=np.int64), np.empty(most)
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
        ptr = layout.indptr[s * A : (s + 1) * A + 1] - first
        upper, lower = evaluate_state(
            layout.data[N * first : N * last], ptr, N, u, layout.weights, cost, nominal, out.policy[s], layout.radius[s],
            scale, memory.by_kernel[s], memory.by_row[s], action, delta,
        )  # fmt: skip
        out.upper[s], out.lower[s], out.passes[s] = base + unit * upper, base + unit * lower, 1
