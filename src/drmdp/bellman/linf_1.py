"""(ℓ∞, 1): the exact update, one radius for every kernel.

Normalised as in `drmdp.bellman.layout`. With g_ia(r) the gain of row (i, a) when its probabilities may change by r (`rows_linf`, `table_linf`),

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(r_i) ≥ γ for every a,   Σ_i w_i r_i ≤ θ,   r ≥ 0 },

which `drmdp.bellman.proximal` solves with a joint budget, U and L included. An action costs nature nothing once the r_i are paid for, so few
actions matter: those of the last policy, or cold the best one for the mean kernel alone, are solved for, the others priced at the r
found, without tables and only until they are seen to cost U or more; those that cost less join, and it is solved again. L is the least of
all. What the budget leaves goes to all kernels alike. Radii and gains are divided by min(θ, 1) and costs counted from the smallest
cost_a + V⁰_a, so that small radii keep their digits.

With a policy x fixed, one knapsack: segments of all kernels by descending Σ_a x_a g'_ia.

Memory: by_kernel holds r, by_action[0] μ, and out.policy x.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman.budget_each import make_tables, with_room
from drmdp.bellman.layout import largest_state, prologue, row_scales
from drmdp.bellman.linf_inf import room
from drmdp.bellman.proximal import gains, make_work, rounds, worst_case
from drmdp.bellman.rows_linf import ascending_states, row_gain, top_entries, walk_length
from drmdp.bellman.table_linf import lines_needed, places, tabulate

JOIN = 3  # actions at a time


@njit(cache=True, nogil=True, error_model="numpy")
def _rank(layout, order, ascending, pair, u, least, scratch):  # type: ignore[no-untyped-def]
    """Fill entry and level of the scratch for radii from `least` on; returns how many there are."""
    key, entry, level, stack = scratch
    lo, hi = layout.indptr[pair], layout.indptr[pair + 1]
    length = walk_length(hi - lo, order.u.size, layout.unlisted, least)
    top_entries(u, layout.indices[lo:hi], order, layout.unlisted, ascending, length, key, entry, level, stack)
    return length


@njit(cache=True, nogil=True, error_model="numpy")
def _admit(layout, order, ascending, pair, u, scale, size, scratch, tables, n, line, place, mass, index):  # type: ignore[no-untyped-def]
    """Make the tables of a pair as number n from `line` on; returns the tables and the next line."""
    N = layout.weights.size
    K = u.size
    tables = with_room(tables, line, line + N * lines_needed(K))
    length = _rank(layout, order, ascending, pair, u, 0.0, scratch)
    entry, level = scratch[1][:length], scratch[2][:length]
    places(K, entry, place)
    y = layout.data[N * layout.indptr[pair] : N * layout.indptr[pair + 1]]
    line = tabulate(y, u, N, scale, size, entry, level, place, tables, n, line, mass, index)
    return tables, line


@njit(cache=True, nogil=True, error_model="numpy")
def _price(layout, order, ascending, pair, u, scale, r, least, value, enough, scratch):  # type: ignore[no-untyped-def]
    """Value Σ_i w_i g_i(r_i) in addition to `value`, or anything from `enough` on if it is not below."""
    N = layout.weights.size
    K = u.size
    length = _rank(layout, order, ascending, pair, u, least, scratch)
    entry, level = scratch[1][:length], scratch[2][:length]
    y = layout.data[N * layout.indptr[pair] : N * layout.indptr[pair + 1]]
    for i in range(N):
        if r[i] > 0.0:
            value += layout.weights[i] * row_gain(y[i * K : (i + 1) * K], u, scale[i], r[i], entry, level)[0]
            if value >= enough:
                break
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _mean_choice(layout, order, ascending, s, ptr, u, cost, nominal, theta, scratch):  # type: ignore[no-untyped-def]
    """Best action for the mean kernel alone."""
    A = cost.size
    one = np.ones(1)
    best = np.inf
    action = 0
    for a in range(A):
        value = cost[a] + nominal[a]
        if value < min(best, 0.0):
            pair = s * A + a
            own = u[ptr[a] : ptr[a + 1]]
            length = _rank(layout, order, ascending, pair, own, theta, scratch)
            y = layout.mean[layout.indptr[pair] : layout.indptr[pair + 1]]
            value += row_gain(y, own, one[0], theta, scratch[1][:length], scratch[2][:length])[0]
            if value < best:
                best = value
                action = a
    return action


@njit(cache=True, nogil=True, error_model="numpy")
def solve_state(layout, order, ascending, s, u, cost, nominal, tol, scale, mu, radius, policy, tables, work, action, member, scratch, place, mass, index):  # type: ignore[no-untyped-def]  # fmt: skip
    """Solve one normalised state, from the memory in policy, radius and μ if that is sound; fill them; return U, L, passes, tables."""
    A, N = cost.size, layout.weights.size
    theta, w = layout.radius[s], layout.weights
    ptr = layout.indptr[s * A : (s + 1) * A + 1] - layout.indptr[s * A]
    first = 0  # attains the cap
    lowest = 0
    given = 0.0
    for a in range(A):
        member[a] = False
        if cost[a] < cost[first]:
            first = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
        if policy[a] > 1e-12 and policy[a] <= 1.0 and cost[a] + nominal[a] < 0.0:
            given += policy[a]
    bottom = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or bottom >= -tol:
        policy[:] = 0.0
        radius[:] = 0.0
        mu[0] = 0.0
        policy[lowest if theta <= 0.0 else first] = 1.0
        return bottom if theta <= 0.0 else 0.0, bottom, 0, tables
    size = min(theta, 1.0)
    B = theta / size
    cap = -bottom / size
    tol = tol / size
    n = 0
    line = 0
    warm = given > 0.5
    choice = -1 if warm else _mean_choice(layout, order, ascending, s, ptr, u, cost, nominal, theta, scratch)
    for a in range(A):
        if a == choice or (warm and policy[a] > 1e-12 and policy[a] <= 1.0 and cost[a] + nominal[a] < 0.0):
            tables, line = _admit(
                layout, order, ascending, s * A + a, u[ptr[a] : ptr[a + 1]], scale[a], size, scratch, tables, n, line,
                place, mass, index,
            )  # fmt: skip
            work.head[n] = (cost[a] + nominal[a] - bottom) / size
            work.x[n] = policy[a] / given if warm else 1.0
            action[n] = a
            member[a] = True
            n += 1
    work.mu[0] = mu[0] if warm and mu[0] >= 0.0 and mu[0] <= 2.0 else 0.1
    for i in range(N):
        r = radius[i]
        work.amounts[0, i] = r / size if warm and r >= 0.0 and r <= theta / w[i] else B
        work.centre[0, i] = work.amounts[0, i]
    policy[:] = 0.0
    radius[:] = 0.0
    high = cap
    low = 0.0
    passes = 0
    while True:
        upper, lower, more = rounds(True, n, N, tables, w, B, cap, tol, work)
        passes += more
        if upper < high:
            high = upper
            mu[0] = work.best_mu[0]
            policy[:] = 0.0
            for k in range(n):
                policy[action[k]] = work.best_x[k]
        spent = 0.0
        for i in range(N):
            spent += w[i] * work.best[0, i]
        least = np.inf
        for i in range(N):
            work.eps[i] = size * (work.best[0, i] + max(B - spent, 0.0))
            if work.eps[i] > 0.0:
                least = min(least, work.eps[i])
        joined = 0
        for a in range(A):
            value = cost[a] + nominal[a]
            if not member[a] and value < bottom + size * high:
                value = _price(
                    layout, order, ascending, s * A + a, u[ptr[a] : ptr[a + 1]], scale[a], work.eps, least, value,
                    bottom + size * high, scratch,
                )  # fmt: skip
                value = (value - bottom) / size
                if value < high - 0.5 * tol:
                    joined = _join(work, index, joined, value, a)
                lower = min(lower, value)
        if lower > low or passes == more:
            low = max(lower, low)
            for i in range(N):
                radius[i] = work.eps[i]
        if high - low <= tol or joined == 0:
            break
        for k in range(joined):
            a = index[k]
            tables, line = _admit(
                layout, order, ascending, s * A + a, u[ptr[a] : ptr[a + 1]], scale[a], size, scratch, tables, n, line,
                place, mass, index[JOIN:],
            )  # fmt: skip
            work.head[n] = (cost[a] + nominal[a] - bottom) / size
            work.x[n] = 0.0
            work.best_x[n] = 0.0
            action[n] = a
            member[a] = True
            n += 1
        if upper < cap:
            work.mu[0] = work.best_mu[0]
            for k in range(n):
                work.x[k] = work.best_x[k]
        for i in range(N):
            work.amounts[0, i] = work.best[0, i]
            work.centre[0, i] = work.best[0, i]
    if not high < cap:
        policy[first] = 1.0
        mu[0] = 0.0
    return bottom + size * high, bottom + size * low, passes, tables


@njit(cache=True, nogil=True, error_model="numpy")
def _join(work, chosen, count, value, a):  # type: ignore[no-untyped-def]
    """Keep the JOIN actions of least value, in order; returns how many there are."""
    values = work.vectors[0]
    if count == JOIN and value >= values[JOIN - 1]:
        return count
    k = min(count, JOIN - 1)
    while k > 0 and values[k - 1] > value:
        values[k], chosen[k] = values[k - 1], chosen[k - 1]
        k -= 1
    values[k], chosen[k] = value, a
    return min(count + 1, JOIN)


@njit(cache=True, nogil=True, error_model="numpy")
def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal, scale = np.empty(most), np.empty(A), np.empty(A), np.ones((A, N))
    action, member = np.empty(A, dtype=np.int64), np.empty(A, dtype=np.bool_)
    place, mass, index = np.empty(most, dtype=np.int64), np.empty(most + 1), np.empty(JOIN + most + 1, dtype=np.int64)
    ascending, scratch = ascending_states(layout, value, start, stop), room(layout, start, stop)
    work, tables = make_work(max(A, JOIN), N, True), make_tables(A, N)
    for s in range(start, stop):
        base, unit = prologue(layout, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        row_scales(layout, s, scale)
        upper, lower, out.passes[s], tables = solve_state(
            layout, order, ascending, s, u, cost, nominal, tol, scale, memory.by_action[s], memory.by_kernel[s],
            out.policy[s], tables, work, action, member, scratch, place, mass, index,
        )  # fmt: skip
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    A, N, w = layout.available.shape[1], layout.weights.size, layout.weights
    most = largest_state(layout, start, stop)
    u, cost, nominal, scale = np.empty(most), np.empty(A), np.empty(A), np.ones((A, N))
    place, mass, index = np.empty(most, dtype=np.int64), np.empty(most + 1), np.empty(most + 1, dtype=np.int64)
    ascending, scratch = ascending_states(layout, value, start, stop), room(layout, start, stop)
    work, tables = make_work(A, N, True), make_tables(A, N)
    for s in range(start, stop):
        base, unit = prologue(layout, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        theta, mu, radius = layout.radius[s], memory.by_action[s], memory.by_kernel[s]
        first = layout.indptr[s * A]
        size = min(theta, 1.0) if theta > 0.0 else 1.0
        bottom = 0.0
        n = 0
        line = 0
        for a in range(A):
            if out.policy[s, a] > 0.0:
                bottom += out.policy[s, a] * (cost[a] + nominal[a])
                if theta > 0.0:
                    own = u[layout.indptr[s * A + a] - first : layout.indptr[s * A + a + 1] - first]
                    tables, line = _admit(
                        layout,
                        order,
                        ascending,
                        s * A + a,
                        own,
                        scale[a],
                        size,
                        scratch,
                        tables,
                        n,
                        line,
                        place,
                        mass,
                        index,
                    )
                    work.head[n] = 0.0
                    work.x[n] = out.policy[s, a]
                    n += 1
        upper = 0.0
        lower = 0.0
        work.mu[0] = mu[0] if mu[0] >= 0.0 and mu[0] <= 2.0 else 0.1
        for i in range(N):
            work.amounts[0, i] = min(radius[i], theta / w[i]) / size if radius[i] >= 0.0 else 1.0
        if theta > 0.0:
            upper = worst_case(True, n, N, tables, w, theta / size, work.x, work, True)
            gains(True, n, N, tables, w, work.amounts, work, work.q)
            for k in range(n):
                lower += work.x[k] * work.q[k]
        mu[0] = work.exact[0] if theta > 0.0 else 0.0
        for i in range(N):
            radius[i] = size * work.amounts[0, i] if theta > 0.0 else 0.0
        out.upper[s] = base + unit * (bottom + size * upper)
        out.lower[s] = base + unit * (bottom + size * lower)
        out.passes[s] = 1
