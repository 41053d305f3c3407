"""(ℓ∞, 1): the exact update, one radius for every kernel.

Normalised as in `drmdp.layout.point`. With g_ia(r) the gain of row (i, a) when its probabilities may change by r (`drmdp.bellman.rows.linf`,
`linf_table`),

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(r_i) ≥ γ for every a,   Σ_i w_i r_i ≤ θ,   r ≥ 0 }.

An action costs nature nothing once the r_i are paid for, so few actions matter, usually one: if the last policy plays one action, or cold the best
one for the mean kernel alone, `piecewise.warm_linf` finds the best r for it. The other actions are priced at that r, without tables and only until
they are seen to cost U or more. If some cost less, or the policy mixes, `drmdp.bellman.piecewise.method` solves for the actions that matter with a joint
budget, U and L included; those that cost less join, and it is solved again. L is the least value of all actions. What the budget leaves, nature
spends in the direction of the last r. For the proximal method radii and gains are divided by θ and costs counted from the smallest cost_a + V⁰_a,
so that small radii keep their digits. From θ = 1 on nature is unconstrained.

With a policy x fixed, one knapsack: segments of all kernels by descending Σ_a x_a g'_ia.

Memory: by_kernel holds r, by_action[:, 0] μ (per unit of radius, in units of the stakes' range), and out.policy x.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import open_state, play_alone
from drmdp.bellman.piecewise.budget_per_kernel import Priced, Tables, make_tables
from drmdp.bellman.piecewise.method import gains, worst_case
from drmdp.bellman.piecewise.sweep import solve_open
from drmdp.bellman.piecewise.warm_linf import exchange
from drmdp.bellman.piecewise.work import Method, Solver, make_method, read_last_policy
from drmdp.bellman.rows.linf import add_gains, pair_at, rank_pair, row_at
from drmdp.bellman.rows.linf_table import lines_needed, place_entries, tabulate
from drmdp.bellman.rows.pair import Pair
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point, Scratch, normalise, row_scales, scratch
from drmdp.layout.sorting import SortSpace, sort_space

JOIN = 3  # actions at a time


class Prices(NamedTuple):
    """Actions that are priced, not solved for."""

    member: Any  # (A,) whether an action needs no price
    joined: Any  # (JOIN,) the lowest
    values: Array  # (JOIN,) their values


class Single(NamedTuple):
    """Work space where one action is enough: Numba takes long to unpack the rest."""

    state: Scratch
    sort: SortSpace
    prices: Prices
    slopes: Array  # (2, N)
    gain: Array  # (N,)
    unit: Array  # (1,) 1, the scale of the mean row


class Mixed(NamedTuple):
    """Work space where actions are mixed."""

    state: Scratch
    sort: SortSpace
    prices: Prices
    action: Any  # (A,) of each table
    radius: Array  # (N,)
    mass: Array  # (K + 1,)
    index: Any  # (K + 1,)
    tables: Tables
    method: Method


class Fixed(NamedTuple):
    """The same where a policy is fixed."""

    state: Scratch
    sort: SortSpace
    prices: Prices
    action: Any
    mass: Array
    index: Any
    tables: Tables
    solver: Solver


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    single: Single
    mixed: Mixed


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    state = scratch(layout, start, stop)
    (A, N), K = state.scale.shape, state.u.size
    whole: Any = np.int64
    sort = sort_space(layout, point, start, stop, K)
    prices = Prices(np.empty(A, np.bool_), np.empty(JOIN, whole), np.empty(JOIN))
    tables = make_tables(A, N, N * lines_needed(K, A))
    single = Single(state, sort, prices, np.empty((2, N)), np.empty(N), np.ones(1))
    mixed = Mixed(
        state, sort, prices, np.empty(A, whole), np.empty(N), np.empty(K + 1), np.empty(K + 1, whole), tables,
        make_method(A, N, joint=True),
    )  # fmt: skip
    return Work(state, single, mixed)


def update(start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work) -> None:  # fmt: skip
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`."""
    _single(start, stop, layout, point, memory, out, tol, work.single)
    if (out.passes[start:stop] < 0.0).any():
        solve_open(_mixed, True, start, stop, layout, point, memory, out, tol, work.mixed)


@njit(**KERNEL)
def _single(start, stop, layout, point, memory, out, tol, work):
    """Update the states where one action is enough, from the last policy and radii where they are usable.

    The other states are left open: out.passes is −1.

    reads   layout, point, tol
    fills   memory: by_action[:, 0], by_kernel; out, work
    """
    state, w, order = work.state, layout.weights, point.order
    for s in range(start, stop):
        out.passes[s] = 0.0
        base, unit = normalise(layout, point, s, state)
        if not base < np.inf:  # terminal
            continue
        policy, radius, theta = out.policy[s], memory.by_kernel[s], layout.radius[s]
        cheapest, lowest, bottom, trivial = open_state(state, theta, tol)
        only, total = read_last_policy(policy, state, work.prices.member)
        if trivial or theta >= 1.0:
            for i in range(w.size):
                radius[i] = min(theta, 1.0)
            memory.by_action[s, 0] = 0.0
            play_alone(policy, lowest if theta <= 0.0 else cheapest)
            out.upper[s] = base + unit * (bottom if theta <= 0.0 else 0.0)
            out.lower[s] = base + unit * (0.0 if theta >= 1.0 else bottom)
            continue
        row_scales(layout, s, state.scale)
        _into_budget(radius, w, theta, total > 0.5)
        if not total > 0.5:
            only, total = _mean_choice(layout, order, s, state, work.sort, work.unit), 1.0
            play_alone(policy, only)
        for a in range(policy.size):
            policy[a] /= total
        out.passes[s] = -1.0
        if only < 0:
            continue
        length = rank_pair(layout, order, s, only, 0.0, state, work.sort)
        pair = pair_at(layout, s, only, length, state, work.sort)
        gain, slack, mu = exchange(pair, w, theta, tol, radius, work.slopes, work.gain)
        memory.by_action[s, 0] = mu
        low = state.cost[only] + state.nominal[only] + gain
        if low + slack < 0.0 and slack <= 0.5 * tol:
            work.prices.member[only] = True
            lower, _ = _others(layout, order, s, radius, low + slack, state, work.sort, work.prices)
            lower = min(low, lower)
            if low + slack - lower <= tol:
                out.upper[s], out.lower[s], out.passes[s] = base + unit * (low + slack), base + unit * lower, 1.0


@njit(**INLINE)
def _into_budget(radius, w, theta, warm):
    """Make the radii of the last sweep usable; where they are not, or it was none, take θ.

    reads   w (N,), theta, warm
    fills   radius (N,)
    """
    spent = 0.0
    for i in range(w.size):
        if not (warm and radius[i] >= 0.0 and w[i] * radius[i] <= theta):
            radius[i] = theta
        spent += w[i] * radius[i]
    if spent > theta:
        for i in range(w.size):
            radius[i] *= theta / spent


@njit(**LEAN)
def _mean_choice(layout, order, s, state, sort, unit):
    """Choose the best action for the mean kernel alone.

    reads   layout, order, s, state, unit (the scale of the mean row)
    fills   sort
    returns the action
    """
    A, theta, first = state.cost.size, layout.radius[s], layout.indptr[s * state.cost.size]
    best = np.inf
    choice = 0
    for a in range(A):
        value = state.cost[a] + state.nominal[a]
        if value < min(best, 0.0):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            length = rank_pair(layout, order, s, a, theta, state, sort)
            pair = Pair(layout.mean, lo, hi - lo, state.u, lo - first, unit, sort.entry, sort.level, length)
            value += row_at(pair, np.int64(0), theta)[0]
            if value < best:
                best = value
                choice = a
    return choice


@njit(**LEAN)
def _others(layout, order, s, radius, enough, state, sort, prices):
    """Price the actions that are not members at the radii.

    reads   layout, order, s, radius (N,), enough, state, prices.member
    fills   prices: those below `enough`, at most JOIN, the lowest first; sort
    returns the least value, and how many are listed
    """
    least = np.inf
    for i in range(radius.size):
        if radius[i] > 0.0:
            least = min(least, radius[i])
    lower = np.inf
    count = 0
    for a in range(state.cost.size):
        value = state.cost[a] + state.nominal[a]
        if prices.member[a] or value >= enough:
            continue
        length = rank_pair(layout, order, s, a, least, state, sort)
        value = add_gains(pair_at(layout, s, a, length, state, sort), layout.weights, radius, value, enough)
        lower = min(lower, value)
        if value < enough and (count < JOIN or value < prices.values[JOIN - 1]):
            k = min(count, JOIN - 1)
            while k > 0 and prices.values[k - 1] > value:
                prices.values[k], prices.joined[k] = prices.values[k - 1], prices.joined[k - 1]
                k -= 1
            prices.values[k], prices.joined[k] = value, a
            count = min(count + 1, JOIN)
    return lower, count


@njit(**KERNEL)
def _mixed(start, stop, layout, point, memory, out, tol, work, solver):
    """Update every open state (out.passes < 0) by the proximal method, from policy, radii and μ.

    A state whose gap U − L stays above tol is left open.

    reads   layout, point, tol, solver (that of `solve_open`)
    fills   memory: by_action[:, 0], by_kernel; out, work
    """
    state, problem, prices, w = work.state, work.method.solver, work.prices, layout.weights
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        base, unit = normalise(layout, point, s, state)
        row_scales(layout, s, state.scale)
        policy, radius, size = out.policy[s], memory.by_kernel[s], layout.radius[s]
        cheapest, _, bottom, _ = open_state(state, size, tol)
        read_last_policy(policy, state, prices.member)
        cap = -bottom / size
        _begin(radius, memory.by_action[s, 0], size, problem)
        high, low = cap, -1.0
        n, line, passes, count = np.int64(0), np.int64(0), 0, policy.size
        begun = False
        while True:
            for k in range(count):
                a = prices.joined[k] if begun else k
                if begun or policy[a] > 0.0:
                    line = _admit(layout, point.order, s, a, n, line, work)
                    problem.head[n] = (state.cost[a] + state.nominal[a] - bottom) / size
                    problem.x[n] = 0.0 if begun else policy[a]
                    n += 1
            for a in range(0 if begun else policy.size):
                policy[a] = 0.0
            begun = True
            upper, lower, answers = solver(n, work.tables, w, 1.0, cap, tol / size, work.method, True)
            passes += answers
            if upper < high:
                high = upper
                memory.by_action[s, 0] = problem.best_mu[0]
                for k in range(n):
                    policy[work.action[k]] = problem.best_x[k]
            _spend_rest(size, w, problem, work.radius)
            price, count = _others(layout, point.order, s, work.radius, bottom + size * high, state, work.sort, prices)
            lower = min(lower, (price - bottom) / size)
            if lower > low:
                low = lower
                for i in range(w.size):
                    radius[i] = work.radius[i]
            if high - low <= tol / size or count == 0:
                break
        if not high < cap:
            policy[cheapest] = 1.0
            memory.by_action[s, 0] = 0.0
        out.upper[s], out.lower[s] = base + unit * (bottom + size * high), base + unit * (bottom + size * max(low, 0.0))
        out.passes[s] = -passes if high - low > tol / size else passes


@njit(**INLINE)
def _begin(radius, mu, size, problem):
    """Start the method from radii and a multiplier.

    reads   radius (N,), mu, size (by which radii are divided)
    fills   problem: centre, amounts, mu
    """
    problem.mu[0] = mu if mu >= 0.0 and mu <= 2.0 else 0.1
    for i in range(radius.size):
        problem.centre[0, i] = radius[i] / size
        problem.amounts[0, i] = problem.centre[0, i]


@njit(**INLINE)
def _spend_rest(size, w, problem, radius):
    """Go on from the best radii, and spend what they leave of the budget.

    reads   size, w (N,), problem.best
    fills   problem: amounts, centre; radius (N,)
    """
    left = 1.0
    for i in range(w.size):
        left -= w[i] * problem.best[0, i]
    for i in range(w.size):
        radius[i] = size * (problem.best[0, i] + max(left, 0.0))
        problem.amounts[0, i] = problem.best[0, i]
        problem.centre[0, i] = problem.best[0, i]


@njit(**INLINE)
def _admit(layout, order, s, a, n, line, work):
    """Make the tables of action a as number n.

    reads   layout, order, s, a, n, line (a free one)
    fills   work: tables, action[n], prices.member[a]
    returns the next free line
    """
    length = rank_pair(layout, order, s, a, 0.0, work.state, work.sort)
    pair = pair_at(layout, s, a, length, work.state, work.sort)
    place_entries(pair, work.sort.place)
    work.action[n] = a
    work.prices.member[a] = True
    return tabulate(pair, min(layout.radius[s], 1.0), work.sort.place, work.tables, n, line, work.mass, work.index)


def evaluate(start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work) -> None:  # fmt: skip
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`."""
    state, sort, prices, action, _, mass, index, tables, method = work.mixed
    fixed = Fixed(state, sort, prices, action, mass, index, tables, method.solver)
    _evaluate(start, stop, layout, point, memory, out, fixed)


@njit(**KERNEL)
def _evaluate(start, stop, layout, point, memory, out, work):
    """Worst case of the policy in out.policy at the states start … stop − 1.

    reads   layout, point
    fills   memory: by_action[:, 0], by_kernel; out, work
    """
    state, problem, w = work.state, work.solver, layout.weights
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, state)
        if not base < np.inf:
            continue
        x, radius, theta = out.policy[s], memory.by_kernel[s], layout.radius[s]
        row_scales(layout, s, state.scale)
        size = min(theta, 1.0)
        mean = 0.0
        n, line = np.int64(0), np.int64(0)
        for a in range(x.size):
            if x[a] > 0.0:
                mean += x[a] * (state.cost[a] + state.nominal[a])
                if theta > 0.0:
                    line = _admit(layout, point.order, s, a, n, line, work)
                    problem.head[n], problem.x[n] = 0.0, x[a]
                    n += 1
        for i in range(w.size):
            if not (radius[i] >= 0.0 and w[i] * radius[i] <= theta and theta > 0.0):
                radius[i] = 0.0
        upper, lower, problem.exact[0] = 0.0, 0.0, 0.0
        if theta > 0.0:
            _begin(radius, memory.by_action[s, 0], size, problem)
            priced = Priced(work.tables, n, theta / size, problem.x)
            upper = worst_case(priced, w, problem, True)
            gains(priced, w, problem.amounts, problem, problem.q, True)
            for k in range(n):
                lower += problem.x[k] * problem.q[k]
            for i in range(w.size):
                radius[i] = size * problem.amounts[0, i]
        memory.by_action[s, 0] = problem.exact[0]
        upper, lower = mean + size * upper, mean + size * lower
        out.upper[s], out.lower[s], out.passes[s] = base + unit * upper, base + unit * lower, 1


NATURE = nature_rows.LINF
"""How her rows follow from the memory."""
