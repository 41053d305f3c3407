"""(ℓ∞, 1): the exact update, one radius for every kernel.

Normalised as in `drmdp.bellman.layout`. With g_ia(r) the gain of row (i, a) when its probabilities may change by r (`rows_linf`,
`table_linf`),

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(r_i) ≥ γ for every a,   Σ_i w_i r_i ≤ θ,   r ≥ 0 },

which `drmdp.bellman.proximal` solves with a joint budget, U and L included. An action costs nature nothing once the r_i are paid
for, so few actions matter: those of the last policy, or cold the best one for the mean kernel alone, are solved for, and the others
priced at the r found, without tables and only until they are seen to cost U or more. Those that cost less join, and it is solved
again. L is the least value of all actions. What the budget leaves, nature spends in the direction of the last r. Radii and gains are
divided by min(θ, 1) and costs counted from the smallest cost_a + V⁰_a, so that small radii keep their digits.

From θ = 1 on nature is unconstrained. If the last policy plays one action, its tables are made near the last r_i alone, chords outside: nowhere
more than the gains, so L holds; U = f(x) holds if every r_i found is inside its table, where a maximum of the concave g_i − μ r is one
everywhere. Other rows are made again in full.

With a policy x fixed, one knapsack: segments of all kernels by descending Σ_a x_a g'_ia.

Memory: by_kernel holds r, by_action[:, 0] μ (per unit of radius, in units of the stakes' range), and out.policy x.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman.budget_each import make_tables, with_room
from drmdp.bellman.layout import largest_state, prologue, row_scales
from drmdp.bellman.proximal import gains, make_work, rounds, worst_case
from drmdp.bellman.rows_linf import add_gains, ascending_states, row_gain, top_entries, walk_length
from drmdp.bellman.table_linf import lines_needed, places, tabulate, tabulate_row
from drmdp.compiled import INNER

JOIN = 3  # actions at a time
NEAR, FAR = 0.8, 0.1  # how far the tables of the only action reach, relative to its amounts and to the budget
PLAYED = 1e-12  # a smaller probability of the last policy does not count


class Room(NamedTuple):
    """Work space for states of A actions, N kernels and up to K entries in all."""

    scale: Array  # (A, N)
    action: Any  # (A,) of each table
    member: Any  # (A,) whether an action has tables
    joined: Any  # (JOIN,)
    values: Array  # (JOIN,)
    radius: Array  # (N,)
    span: Array  # (2, N) where the tables of the only action are its gains
    todo: Array  # (2, N)
    key: Array  # (K,)
    where: Any  # (S,) −1
    entry: Any  # (K + 1,)
    level: Array  # (K + 1,)
    stack: Any  # (K + 2,)
    place: Any  # (K,)
    mass: Array  # (K + 1,)
    index: Any  # (K + 1,)


@njit(**INNER)
def make_room(A, N, K, S):  # type: ignore[no-untyped-def]
    """Work space."""
    return Room(
        np.ones((A, N)), np.empty(A, dtype=np.int64), np.empty(A, dtype=np.bool_), np.empty(JOIN, dtype=np.int64),
        np.empty(JOIN), np.empty(N), np.empty((2, N)), np.empty((2, N)), np.empty(K), np.full(S, -1), np.empty(K + 1, dtype=np.int64), np.empty(K + 1),
        np.empty(K + 2, dtype=np.int64), np.empty(K, dtype=np.int64), np.empty(K + 1), np.empty(K + 1, dtype=np.int64),
    )  # fmt: skip


@njit(**INNER)
def _rank(layout, order, ascending, pair, u, least, room):  # type: ignore[no-untyped-def]
    """Entry and level of the top entries of a pair, as far as radii from `least` on reach."""
    lo, hi = layout.indptr[pair], layout.indptr[pair + 1]
    length = walk_length(hi - lo, order.u.size, layout.unlisted, least)
    top_entries(
        u,
        layout.indices[lo:hi],
        order,
        layout.unlisted,
        ascending,
        length,
        room.key,
        room.where,
        room.entry,
        room.level,
        room.stack,
    )
    return room.entry[:length], room.level[:length]


@njit(**INNER)
def _admit(layout, order, ascending, pair, u, a, size, tables, n, line, room):  # type: ignore[no-untyped-def]
    """Make the tables of action a as number n from `line` on; returns the tables and the next line."""
    N = layout.weights.size
    tables = with_room(tables, line, line + N * lines_needed(u.size))
    entry, level = _rank(layout, order, ascending, pair, u, 0.0, room)
    places(u.size, entry, room.place)
    y = layout.data[N * layout.indptr[pair] : N * layout.indptr[pair + 1]]
    line = tabulate(y, u, N, room.scale[a], size, entry, level, room.place, tables, n, line, room.mass, room.index)
    room.action[n] = a
    room.member[a] = True
    return tables, line


@njit(**INNER)
def _admit_near(layout, order, ascending, pair, u, a, size, tables, centre, room):  # type: ignore[no-untyped-def]
    """Make the tables of action a as the only one, each row near its r⁰ alone; returns the tables and the next line."""
    N, stride = layout.weights.size, lines_needed(u.size)
    tables = with_room(tables, 0, N * stride)
    tables.start[0], tables.stride[0] = 0, stride
    room.action[0] = a
    room.member[a] = True
    for i in range(N):
        r = centre[i]
        room.span[0, i] = NEAR * size * r if r > FAR else 0.0
        room.span[1, i] = size * (r / NEAR + FAR)
    _redo(layout, order, ascending, pair, u, a, size, tables, room.span, room)
    return tables, N * stride


@njit(**INNER)
def _redo(layout, order, ascending, pair, u, a, size, tables, span, room):  # type: ignore[no-untyped-def]
    """Tables of the only action on the spans, radii, where they begin at 0 or later; turns those into spans of the amounts."""
    N = layout.weights.size
    entry, level = _rank(layout, order, ascending, pair, u, 0.0, room)
    places(u.size, entry, room.place)
    y = layout.data[N * layout.indptr[pair] : N * layout.indptr[pair + 1]]
    for i in range(N):
        if span[0, i] >= 0.0:
            high = span[1, i]
            room.span[0, i] = tabulate_row(
                y,
                u,
                i,
                room.scale[a],
                size,
                entry,
                level,
                room.place,
                span[0, i],
                high,
                tables,
                0,
                room.mass,
                room.index,
            )
            room.span[1, i] = high / size if high < 2.0 else np.inf


@njit(**INNER)
def _widen(N, amounts, every, todo, span):  # type: ignore[no-untyped-def]
    """List in todo the rows whose amount is not inside the span of their table, or all that have one; returns how many."""
    count = 0
    for i in range(N):
        todo[0, i], todo[1, i] = -1.0, 2.0
        inside = amounts[i] > (1.0 + 1e-9) * span[0, i] and amounts[i] < (1.0 - 1e-9) * span[1, i]
        if not inside or (every and (span[0, i] >= 0.0 or span[1, i] < np.inf)):
            todo[0, i] = 0.0
            count += 1
    return count


@njit(**INNER)
def _mean_choice(layout, order, ascending, s, ptr, u, cost, nominal, room):  # type: ignore[no-untyped-def]
    """Best action for the mean kernel alone."""
    A = cost.size
    best = np.inf
    choice = 0
    for a in range(A):
        value = cost[a] + nominal[a]
        if value < min(best, 0.0):
            pair = s * A + a
            own = u[ptr[a] : ptr[a + 1]]
            entry, level = _rank(layout, order, ascending, pair, own, layout.radius[s], room)
            mean = layout.mean[layout.indptr[pair] : layout.indptr[pair + 1]]
            value += row_gain(mean, own, 1.0, layout.radius[s], entry, level)[0]
            if value < best:
                best = value
                choice = a
    return choice


@njit(**INNER)
def _others(layout, order, ascending, s, ptr, u, cost, nominal, enough, room):  # type: ignore[no-untyped-def]
    """Price the actions without tables at room.radius; returns the least value and how many are below `enough`, at most JOIN.

    Those are listed in room.joined, the lowest first.
    """
    A = cost.size
    least = np.inf
    for i in range(layout.weights.size):
        if room.radius[i] > 0.0:
            least = min(least, room.radius[i])
    lower = np.inf
    count = 0
    for a in range(A):
        value = cost[a] + nominal[a]
        if room.member[a] or value >= enough:
            continue
        own = u[ptr[a] : ptr[a + 1]]
        pair = s * A + a
        length = _rank(layout, order, ascending, pair, own, least, room)[0].size
        value = add_gains(
            layout.data, layout.weights.size * layout.indptr[pair], own.size, u, ptr[a], room.scale[a], layout.weights,
            room.radius, room.entry, room.level, length, value, enough,
        )  # fmt: skip
        lower = min(lower, value)
        if value < enough and (count < JOIN or value < room.values[JOIN - 1]):
            k = min(count, JOIN - 1)
            while k > 0 and room.values[k - 1] > value:
                room.values[k], room.joined[k] = room.values[k - 1], room.joined[k - 1]
                k -= 1
            room.values[k], room.joined[k] = value, a
            count = min(count + 1, JOIN)
    return lower, count


@njit(**INNER)
def solve_state(layout, order, ascending, s, u, cost, nominal, tol, mu, radius, policy, tables, work, room):  # type: ignore[no-untyped-def]
    """Solve one normalised state, from the memory in policy, radius and μ if that is sound, and fill them.

    Returns U, L, passes and the tables, which may have grown.
    """
    A, N = cost.size, layout.weights.size
    theta, w = layout.radius[s], layout.weights
    ptr = layout.indptr[s * A : (s + 1) * A + 1] - layout.indptr[s * A]
    first = 0  # attains the cap
    lowest = 0
    given = 0.0
    for a in range(A):
        room.member[a] = False
        if cost[a] < cost[first]:
            first = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
        if policy[a] > PLAYED and policy[a] <= 1.0 and cost[a] + nominal[a] < 0.0:
            given += policy[a]
    bottom = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or theta >= 1.0 or bottom >= -tol:
        policy[:] = 0.0
        radius[:] = min(theta, 1.0)
        mu[0] = 0.0
        policy[lowest if theta <= 0.0 else first] = 1.0
        return bottom if theta <= 0.0 else 0.0, 0.0 if theta >= 1.0 else bottom, 0, tables
    size = theta
    B, cap = 1.0, -bottom / size
    warm = given > 0.5
    near = False  # one action with tables near its amounts
    choice = -1 if warm else _mean_choice(layout, order, ascending, s, ptr, u, cost, nominal, room)
    work.mu[0] = mu[0] if warm and mu[0] >= 0.0 and mu[0] <= 2.0 else 0.1
    for i in range(N):
        r = radius[i]
        work.centre[0, i] = r / size if warm and r >= 0.0 and w[i] * r <= theta else B
        work.amounts[0, i] = work.centre[0, i]
    n = np.int64(0)
    line = np.int64(0)
    for a in range(A):
        if a == choice or (warm and policy[a] > PLAYED and policy[a] <= 1.0 and cost[a] + nominal[a] < 0.0):
            own = u[ptr[a] : ptr[a + 1]]
            near = warm and policy[a] == given
            if near:
                tables, line = _admit_near(
                    layout, order, ascending, s * A + a, own, a, size, tables, work.centre[0], room
                )
            else:
                tables, line = _admit(layout, order, ascending, s * A + a, own, a, size, tables, n, line, room)
            work.head[n] = (cost[a] + nominal[a] - bottom) / size
            work.x[n] = policy[a] / given if warm else 1.0
            n += 1
    policy[:] = 0.0
    mu[0] = 0.0
    high = cap
    low = -1.0
    passes = 0
    todo = room.todo
    while True:
        upper, lower, more = rounds(n, N, tables, w, B, cap, tol / size, work)
        passes += more
        if near:
            a = room.action[0]
            own = u[ptr[a] : ptr[a + 1]]
            if _widen(N, work.best[0], False, todo, room.span) > 0:
                _redo(layout, order, ascending, s * A + a, own, a, size, tables, todo, room)
                work.mu[0] = work.exact[0]
                continue
        if upper < high:
            high = upper
            mu[0] = work.best_mu[0]
            policy[:] = 0.0
            for k in range(n):
                policy[room.action[k]] = work.best_x[k]
        left = B
        for i in range(N):
            left -= w[i] * work.best[0, i]
        for i in range(N):
            room.radius[i] = size * (work.best[0, i] + max(left, 0.0))
        enough = bottom + size * high
        value, count = _others(layout, order, ascending, s, ptr, u, cost, nominal, enough, room)
        lower = min(lower, (value - bottom) / size)
        if lower > low:
            low = lower
            for i in range(N):
                radius[i] = room.radius[i]
        if high - low <= tol / size or count == 0:
            break
        if near and _widen(N, work.best[0], True, todo, room.span) > 0:
            a = room.action[0]
            own = u[ptr[a] : ptr[a + 1]]
            _redo(layout, order, ascending, s * A + a, own, a, size, tables, todo, room)
        near = False
        for k in range(count):
            a = room.joined[k]
            own = u[ptr[a] : ptr[a + 1]]
            tables, line = _admit(layout, order, ascending, s * A + a, own, a, size, tables, n, line, room)
            work.head[n] = (cost[a] + nominal[a] - bottom) / size
            work.x[n] = 0.0
            n += 1
        for i in range(N):
            work.amounts[0, i] = work.best[0, i]
            work.centre[0, i] = work.best[0, i]
    if not high < cap:
        policy[first] = 1.0
    return bottom + size * high, bottom + size * max(low, 0.0), passes, tables


@njit(**INNER)
def evaluate_state(layout, order, ascending, s, u, cost, nominal, mu, radius, x, tables, work, room):  # type: ignore[no-untyped-def]
    """Worst case of the policy x at one normalised state; fill r and μ; return U, L and the tables, which may have grown."""
    A, N = cost.size, layout.weights.size
    theta, w = layout.radius[s], layout.weights
    ptr = layout.indptr[s * A : (s + 1) * A + 1] - layout.indptr[s * A]
    base = 0.0
    for a in range(A):
        if x[a] > 0.0:
            base += x[a] * (cost[a] + nominal[a])
    if theta <= 0.0:
        radius[:] = 0.0
        mu[0] = 0.0
        return base, base, tables
    size = min(theta, 1.0)
    n = np.int64(0)
    line = np.int64(0)
    for a in range(A):
        if x[a] > 0.0:
            own = u[ptr[a] : ptr[a + 1]]
            tables, line = _admit(layout, order, ascending, s * A + a, own, a, size, tables, n, line, room)
            work.head[n] = 0.0
            work.x[n] = x[a]
            n += 1
    work.mu[0] = mu[0] if mu[0] >= 0.0 and mu[0] <= 2.0 else 0.1
    for i in range(N):
        work.centre[0, i] = radius[i] / size if radius[i] >= 0.0 and w[i] * radius[i] <= theta else 0.0
        work.amounts[0, i] = work.centre[0, i]
    upper = worst_case(n, N, tables, w, theta / size, work.x, work)
    gains(n, N, tables, w, work.amounts, work, work.q)
    lower = 0.0
    for k in range(n):
        lower += work.x[k] * work.q[k]
    mu[0] = work.exact[0]
    for i in range(N):
        radius[i] = size * work.amounts[0, i]
    return base + size * upper, base + size * lower, tables


@njit(cache=True, nogil=True, error_model="numpy")
def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal = np.empty(most), np.empty(A), np.empty(A)
    ascending, room = ascending_states(layout, value, start, stop), make_room(A, N, most, value.size)
    work, tables = make_work(A, N, True), make_tables(A, N)
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        row_scales(layout, s, room.scale)
        upper, lower, out.passes[s], tables = solve_state(
            layout, order, ascending, s, u, cost, nominal, tol, memory.by_action[s], memory.by_kernel[s],
            out.policy[s], tables, work, room,
        )  # fmt: skip
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal = np.empty(most), np.empty(A), np.empty(A)
    ascending, room = ascending_states(layout, value, start, stop), make_room(A, N, most, value.size)
    work, tables = make_work(A, N, True), make_tables(A, N)
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, room.scale)
        upper, lower, tables = evaluate_state(
            layout, order, ascending, s, u, cost, nominal, memory.by_action[s], memory.by_kernel[s], out.policy[s],
            tables, work, room,
        )  # fmt: skip
        out.upper[s], out.lower[s], out.passes[s] = base + unit * upper, base + unit * lower, 1
