"""(ℓ∞, 1): the exact update, one radius for every kernel.

Normalised as in `drmdp.layout.layout`. With g_ia(r) the gain of row (i, a) when its probabilities may change by r (`rows_linf`,
`table_linf`),

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(r_i) ≥ γ for every a,   Σ_i w_i r_i ≤ θ,   r ≥ 0 }.

An action costs nature nothing once the r_i are paid for, so few actions matter, usually one: if the last policy plays one action, or cold the best
one for the mean kernel alone, `held_linf` finds the best r for it. The other actions are priced at that r, without tables and only until
they are seen to cost U or more. If some cost less, or the policy mixes, `drmdp.bellman.piecewise.method` solves for the actions that matter with a joint
budget, U and L included; those that cost less join, and it is solved again. L is the least value of all actions. What the budget leaves, nature
spends in the direction of the last r. For the proximal method radii and gains are divided by θ and costs counted from the smallest cost_a + V⁰_a,
so that small radii keep their digits. From θ = 1 on nature is unconstrained.

With a policy x fixed, one knapsack: segments of all kernels by descending Σ_a x_a g'_ia.

Memory: by_kernel holds r, by_action[:, 0] μ (per unit of radius, in units of the stakes' range), and out.policy x.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.bellman import nature_rows
from drmdp.bellman.piecewise.budget_per_kernel import make_tables
from drmdp.bellman.piecewise.finish import sweep
from drmdp.bellman.piecewise.method import gains, make_work, worst_case
from drmdp.bellman.piecewise.warm_linf import exchange
from drmdp.bellman.piecewise.work import JOIN, make_room, scan
from drmdp.bellman.rows.linf import add_gains, ascending_states, row_at, top_entries, walk_length
from drmdp.bellman.rows.linf_table import lines_needed, places, tabulate
from drmdp.core.compiled import KERNEL, LEAN
from drmdp.layout.layout import prologue, row_scales


@njit(**LEAN)
def _rank(layout, order, ascending, pair, first, least, room):  # type: ignore[no-untyped-def]
    """Fill entry and level with the top entries of a pair, as far as radii from `least` on reach; returns how many.

    The entries of its state begin at `first`.
    """
    lo, hi = layout.indptr[pair], layout.indptr[pair + 1]
    length = walk_length(hi - lo, order.u.size, layout.unlisted, least)
    top_entries(
        room.u[lo - first : hi - first], layout.indices[lo:hi], order, layout.unlisted, ascending, length, room.key, room.where,
        room.entry, room.level, room.stack,
    )  # fmt: skip
    return length


@njit(**LEAN)
def _mean_choice(layout, order, ascending, s, room):  # type: ignore[no-untyped-def]
    """Best action for the mean kernel alone."""
    A, theta, first = room.cost.size, layout.radius[s], layout.indptr[s * room.cost.size]
    best = np.inf
    choice = 0
    for a in range(A):
        value = room.cost[a] + room.nominal[a]
        if value < min(best, 0.0):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            length = _rank(layout, order, ascending, s * A + a, first, theta, room)
            value += row_at(
                layout.mean, np.uint64(lo), np.uint64(hi - lo), room.u, np.uint64(lo - first), 1.0, theta,
                room.entry, room.level, length,
            )[0]  # fmt: skip
            if value < best:
                best = value
                choice = a
    return choice


@njit(**LEAN)
def _others(layout, order, ascending, s, radius, enough, room):  # type: ignore[no-untyped-def]
    """Price the actions that are not members at the radii; returns the least value and how many are below `enough`, at most JOIN.

    Those are listed in room.joined, the lowest first.
    """
    A, N, first = room.cost.size, layout.weights.size, layout.indptr[s * room.cost.size]
    least = np.inf
    for i in range(N):
        if radius[i] > 0.0:
            least = min(least, radius[i])
    lower = np.inf
    count = 0
    for a in range(A):
        value = room.cost[a] + room.nominal[a]
        if room.member[a] or value >= enough:
            continue
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        length = _rank(layout, order, ascending, s * A + a, first, least, room)
        value = add_gains(
            layout.data, N * lo, hi - lo, room.u, lo - first, room.scale[a], layout.weights, radius, room.entry, room.level,
            length, value, enough,
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


def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    room = make_room(layout, start, stop)
    given = layout, order, value, top, span, tol, memory, ascending_states(layout, value, start, stop), room
    _single(start, stop, out, *given)
    if (out.passes[start:stop] < 0.0).any():
        tables = make_tables(A, N, N * lines_needed(room.u.size, A))
        sweep(_mixed, True, start, stop, out, *given, make_work(A, N, True), tables)


@njit(**KERNEL)
def _single(start, stop, out, layout, order, value, top, span, tol, memory, ascending, room):  # type: ignore[no-untyped-def]
    """Update the states where one action is enough, from the memory in policy and radius if that is sound; for others passes are −1."""
    A, N, w = layout.available.shape[1], layout.weights.size, layout.weights
    for s in range(start, stop):
        out.passes[s] = 0.0
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if not base < np.inf:  # terminal
            continue
        policy, radius, theta = out.policy[s], memory.by_kernel[s], layout.radius[s]
        first, lowest, only, given = scan(policy, room)
        bottom = room.cost[lowest] + room.nominal[lowest]
        if theta <= 0.0 or theta >= 1.0 or bottom >= -tol:
            for a in range(A):
                policy[a] = 0.0
            for i in range(N):
                radius[i] = min(theta, 1.0)
            memory.by_action[s, 0] = 0.0
            policy[lowest if theta <= 0.0 else first] = 1.0
            out.upper[s] = base + unit * (bottom if theta <= 0.0 else 0.0)
            out.lower[s] = base + unit * (0.0 if theta >= 1.0 else bottom)
            continue
        row_scales(layout, s, room.scale)
        spent = 0.0
        for i in range(N):
            if not (given > 0.5 and radius[i] >= 0.0 and w[i] * radius[i] <= theta):
                radius[i] = theta
            spent += w[i] * radius[i]
        if spent > theta:
            for i in range(N):
                radius[i] *= theta / spent
        if not given > 0.5:
            only, given = _mean_choice(layout, order, ascending, s, room), 1.0
            for a in range(A):
                policy[a] = 1.0 if a == only else 0.0
        for a in range(A):
            policy[a] /= given
        out.passes[s] = -1.0
        if only < 0:
            continue
        lo, at, end = layout.indptr[s * A], layout.indptr[s * A + only], layout.indptr[s * A + only + 1]
        length = _rank(layout, order, ascending, s * A + only, lo, 0.0, room)
        gain, more, mu = exchange(
            layout.data, N * at, end - at, room.u, at - lo, room.scale[only], w, theta, tol, radius, room.entry, room.level, length,
            room.slopes, room.gain,
        )  # fmt: skip
        memory.by_action[s, 0] = mu
        low = room.cost[only] + room.nominal[only] + gain
        if low + more < 0.0 and more <= 0.5 * tol:
            room.member[only] = True
            lower, _ = _others(layout, order, ascending, s, radius, low + more, room)
            lower = min(low, lower)
            if low + more - lower <= tol:
                out.upper[s], out.lower[s], out.passes[s] = base + unit * (low + more), base + unit * lower, 1.0


@njit(**KERNEL)
def _mixed(start, stop, out, layout, order, value, top, span, tol, memory, ascending, room, work, tables, solver):  # type: ignore[no-untyped-def]
    """Update the states where passes are negative by the proximal method, from policy, radius and μ; it remains so where U − L is too large."""
    A, N, w = layout.available.shape[1], layout.weights.size, layout.weights
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        row_scales(layout, s, room.scale)
        policy, radius, size = out.policy[s], memory.by_kernel[s], layout.radius[s]
        first, lowest, _, _ = scan(policy, room)
        bottom = room.cost[lowest] + room.nominal[lowest]
        cap = -bottom / size
        mu = memory.by_action[s, 0]
        work.mu[0] = mu if mu >= 0.0 and mu <= 2.0 else 0.1
        for i in range(N):
            work.centre[0, i] = radius[i] / size
            work.amounts[0, i] = radius[i] / size
        high, low = cap, -1.0
        n, line, passes, count = np.int64(0), np.int64(0), 0, A
        begun = False
        while True:
            for k in range(count):
                a = room.joined[k] if begun else k
                if begun or policy[a] > 0.0:
                    line = _admit(layout, order, ascending, s, a, tables, n, line, room)
                    work.head[n] = (room.cost[a] + room.nominal[a] - bottom) / size
                    work.x[n] = 0.0 if begun else policy[a]
                    n += 1
            for a in range(0 if begun else A):
                policy[a] = 0.0
            begun = True
            upper, lower, more = solver(n, N, tables, w, 1.0, cap, tol / size, work, True)
            passes += more
            if upper < high:
                high = upper
                memory.by_action[s, 0] = work.best_mu[0]
                for k in range(n):
                    policy[room.action[k]] = work.best_x[k]
            left = 1.0
            for i in range(N):
                left -= w[i] * work.best[0, i]
            for i in range(N):
                room.radius[i] = size * (work.best[0, i] + max(left, 0.0))
                work.amounts[0, i] = work.best[0, i]
                work.centre[0, i] = work.best[0, i]
            price, count = _others(layout, order, ascending, s, room.radius, bottom + size * high, room)
            lower = min(lower, (price - bottom) / size)
            if lower > low:
                low = lower
                for i in range(N):
                    radius[i] = room.radius[i]
            if high - low <= tol / size or count == 0:
                break
        if not high < cap:
            policy[first] = 1.0
            memory.by_action[s, 0] = 0.0
        out.upper[s], out.lower[s] = base + unit * (bottom + size * high), base + unit * (bottom + size * max(low, 0.0))
        out.passes[s] = -passes if high - low > tol / size else passes


@njit(**LEAN)
def _admit(layout, order, ascending, s, a, tables, n, line, room):  # type: ignore[no-untyped-def]
    """Make the tables of action a as number n from `line` on; returns the next line."""
    A, N = room.cost.size, layout.weights.size
    first, lo, hi = layout.indptr[s * A], layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
    length = _rank(layout, order, ascending, s * A + a, first, 0.0, room)
    places(hi - lo, room.entry[:length], room.place)
    line = tabulate(
        layout.data[N * lo : N * hi], room.u[lo - first : hi - first], N, room.scale[a], min(layout.radius[s], 1.0),
        room.entry[:length], room.level[:length], room.place, tables, n, line, room.mass, room.index,
    )  # fmt: skip
    room.action[n] = a
    room.member[a] = True
    return line


def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    room = make_room(layout, start, stop)
    given = layout, order, value, top, span, memory, ascending_states(layout, value, start, stop), room
    _evaluate(start, stop, out, *given, make_work(A, N, True), make_tables(A, N, N * lines_needed(room.u.size, A)))


@njit(**KERNEL)
def _evaluate(start, stop, out, layout, order, value, top, span, memory, ascending, room, work, tables):  # type: ignore[no-untyped-def]
    A, N, w = layout.available.shape[1], layout.weights.size, layout.weights
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if not base < np.inf:
            continue
        x, radius, mu, theta = out.policy[s], memory.by_kernel[s], memory.by_action[s, 0], layout.radius[s]
        row_scales(layout, s, room.scale)
        size = min(theta, 1.0)
        mean = 0.0
        n, line = np.int64(0), np.int64(0)
        for a in range(A):
            if x[a] > 0.0:
                mean += x[a] * (room.cost[a] + room.nominal[a])
                if theta > 0.0:
                    line = _admit(layout, order, ascending, s, a, tables, n, line, room)
                    work.head[n], work.x[n] = 0.0, x[a]
                    n += 1
        for i in range(N):
            work.centre[0, i] = (
                radius[i] / size if radius[i] >= 0.0 and w[i] * radius[i] <= theta and theta > 0.0 else 0.0
            )
            work.amounts[0, i] = work.centre[0, i]
        work.mu[0] = mu if mu >= 0.0 and mu <= 2.0 else 0.1
        upper, lower, work.exact[0] = 0.0, 0.0, 0.0
        if theta > 0.0:
            upper = worst_case(n, N, tables, w, theta / size, work.x, work, True)
            gains(n, N, tables, w, work.amounts, work, work.q, True)
            for k in range(n):
                lower += work.x[k] * work.q[k]
        memory.by_action[s, 0] = work.exact[0]
        for i in range(N):
            radius[i] = size * work.amounts[0, i]
        out.upper[s], out.lower[s], out.passes[s] = (
            base + unit * (mean + size * upper),
            base + unit * (mean + size * lower),
            1,
        )


NATURE = nature_rows.LINF
"""How her rows follow from the memory."""
