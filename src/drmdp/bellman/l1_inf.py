"""(ℓ1, ∞): the exact update by a proximal-point method on the masses that nature moves.

Normalised as in `drmdp.layout.point`. With m_ia the mass moved in row (i, a), g_ia its gain (`drmdp.bellman.rows.l1`) and B = θ/2,

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   Σ_a m_ia ≤ B for every i,   m ≥ 0 },

which `drmdp.bellman.piecewise.method` solves with a budget for each kernel, U and L included. Tables are made for the actions that matter only: those of
the last policy, or cold of the policy for the mean kernel alone, are solved for. An action with cost_a + V⁰_a ≥ U takes no mass; the others join, and
it is solved again. Masses and gains are divided by min(B, 1) and costs counted from the smallest cost_a + V⁰_a, so that small radii keep
their digits.

With a policy x fixed, a knapsack for every kernel, all in the same order: that of x_a Δ.

Memory: by_row holds m, by_kernel μ (per unit of mass, in units of the stakes' range), and out.policy x.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import close_trivial, open_state
from drmdp.bellman.piecewise.budget_per_kernel import Tables, make_tables
from drmdp.bellman.piecewise.sweep import solve_open
from drmdp.bellman.piecewise.warm_l1 import Held, hold, locate, make_held
from drmdp.bellman.piecewise.work import Method, make_method, read_last_policy
from drmdp.bellman.rows.l1 import by_gain, tabulate
from drmdp.bellman.rows.pair import Pair
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point, Scratch, normalise, row_scales, scratch
from drmdp.layout.sorting import SortSpace, rank, sort_space

FAINTEST = 1e-14  # nature gains at most θ/2 of the stakes' range: of a smaller one differences of masses keep no digit
TABLED = -1.0  # in place of the probability of an action that has tables, or is held


class Scaled(NamedTuple):
    """The numbers of a state in which small radii keep their digits."""

    size: float  # masses and gains are divided by it
    B: float  # budget
    cap: float  # value of an unconstrained nature
    tol: float


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    sort: SortSpace
    owner: Any  # (K,) action of each entry
    member: Any  # (A,)
    action: Any  # (A,) that takes part under each number
    left: Array  # (N,) of the budgets
    unit: Array  # (1,) 1, the scale of the mean row
    tables: Tables
    held: Held
    method: Method


class Fixed(NamedTuple):
    """What a fixed policy needs of it: Numba takes long to unpack the rest."""

    state: Scratch
    sort: SortSpace
    owner: Any


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    state = scratch(layout, start, stop)
    (A, N), K = state.scale.shape, state.u.size
    whole: Any = np.int64
    return Work(
        state, sort_space(layout, point, start, stop, K), np.empty(K, whole), np.empty(A, np.bool_), np.empty(A, whole),
        np.empty(N), np.ones(1), make_tables(A, N, N * (K + A)), make_held(A, N), make_method(A, N, joint=False),
    )  # fmt: skip


def update(start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work) -> None:  # fmt: skip
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`."""
    out.passes[start:stop] = -1.0
    solve_open(_update, False, start, stop, layout, point, memory, out, tol, work)


@njit(**KERNEL)
def _update(start, stop, layout, point, memory, out, tol, work, solver):
    """Update every open state (out.passes < 0) from the last policy, masses and μ where they are usable.

    A state whose gap U − L stays above tol is left open.

    reads   layout, point, tol, solver (that of `solve_open`)
    fills   memory: by_kernel, by_row; out, work
    """
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        out.passes[s] = 0.0
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:  # terminal
            continue
        policy, mass, mu, theta = out.policy[s], memory.by_row[s], memory.by_kernel[s], layout.radius[s]
        cheapest, lowest, bottom, trivial = open_state(work.state, theta, tol)
        _, total = read_last_policy(policy, work.state, work.member)
        if trivial:
            _clear(policy, mass, mu)
            upper, lower = close_trivial(theta, cheapest, lowest, bottom, policy)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower
            continue
        row_scales(layout, s, work.state.scale)
        size = min(0.5 * theta, 1.0)
        scaled = Scaled(size, 0.5 * theta / size, -bottom / size, tol / size)
        _rescale(bottom, size, total, policy, mu, work)
        n, passes = np.int64(0), 0
        high, low = np.inf, -np.inf
        if total > 0.5:
            n, high, low = _verify_held(layout, point, s, scaled, policy, mass, work)
            if high - low <= scaled.tol:
                passes = 1
                n, low = _take_rest(layout, point, s, scaled, n, high, low, policy, work)
            if not high - low <= scaled.tol:
                for k in range(n):
                    policy[work.action[k]] = work.method.solver.x[k]
        else:
            _lift_mean(layout, point, s, scaled, policy, mass, work)
        if not high - low <= scaled.tol:
            n, high, low, answers = _solve(layout, point, s, scaled, policy, mass, work, solver)
            passes += answers
        _store(n, scaled, cheapest, high, policy, mass, mu, work)
        out.upper[s], out.lower[s] = base + unit * (bottom + size * high), base + unit * (bottom + size * max(low, 0.0))
        out.passes[s] = -passes if high - low > scaled.tol else passes


@njit(**LEAN)
def _clear(policy, mass, mu):
    """Nothing is played, nothing moved.

    fills   policy (A,), mass (A, N), mu (N,)
    """
    for a in range(policy.size):
        policy[a] = 0.0
        for i in range(mu.size):
            mass[a, i] = 0.0
    for i in range(mu.size):
        mu[i] = 0.0


@njit(**INLINE)
def _rescale(bottom, size, total, policy, mu, work):
    """Count costs from the bottom, divide the last policy by its sum, and take μ from the memory.

    reads   bottom, size, total (Σ x of the last policy), mu (N,), work.state
    fills   policy (A,); work: state.nominal, from here on the heads of the actions, and solver.mu
    """
    cost, head = work.state.cost, work.state.nominal
    for a in range(policy.size):
        head[a] = (cost[a] + head[a] - bottom) / size
        policy[a] = policy[a] / total if total > 0.5 else 0.0
    for i in range(mu.size):
        work.method.solver.mu[i] = mu[i] if mu[i] >= 0.0 and mu[i] <= 1.0 else 0.1


@njit(**LEAN)
def _rank(layout, order, s, a, state, sort):
    """Bring the entries of the pair (s, a) in the order of decreasing Δ.

    reads   layout, order, s, a, state.u
    fills   sort
    returns how many lie below the top
    """
    k = s * state.cost.size
    lo, hi, first = layout.indptr[k + a], layout.indptr[k + a + 1], layout.indptr[k]
    return by_gain(state.u[lo - first : hi - first], layout.indices[lo:hi], order, sort)


@njit(**INLINE)
def _enlist(layout, order, s, a, n, x, work):
    """Let action a take part as number n.

    reads   layout, order, s, a, n, x (its probability), work.state
    fills   work: action[n], solver.head[n], solver.x[n], sort
    returns its rows, a Pair
    """
    state, sort = work.state, work.sort
    A, N = state.scale.shape
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    length = _rank(layout, order, s, a, state, sort)
    work.method.solver.head[n], work.method.solver.x[n], work.action[n] = state.nominal[a], x, a
    return Pair(layout.data, N * lo, hi - lo, state.u, lo - first, state.scale[a], sort.entry, sort.level, length)


@njit(**INLINE)
def _centre(x, mass, scaled, centre):
    """The masses to start from.

    reads   x (probability of the action), mass (N,): those of the last sweep, scaled
    fills   centre (N,)
    """
    for i in range(centre.size):
        m = scaled.B if x == 1.0 else mass[i] / scaled.size
        centre[i] = m if m >= 0.0 and m <= scaled.B else 0.0


@njit(**INLINE)
def _verify_held(layout, point, s, scaled, policy, mass, work):
    """See whether nature holds on to the segments of the last sweep.

    reads   layout, point, s, scaled, mass (A, N)
    fills   policy (A,), TABLED where an action takes part; work: best x, m and μ
    returns the number of actions that take part, U and L
    """
    n = np.int64(0)
    for a in range(policy.size):
        if policy[a] > 0.0:
            pair = _enlist(layout, point.order, s, a, n, policy[a], work)
            _centre(policy[a], mass[a], scaled, work.method.solver.centre[n])
            locate(pair, scaled.size, work.method.solver.centre[n], work.held, n)
            n += 1
    high, low = hold(n, layout.weights.size, layout.weights, scaled.B, work.method.solver, work.held)
    for k in range(n):
        policy[work.action[k]] = TABLED
    return n, min(high, scaled.cap), min(low, scaled.cap)


@njit(**INLINE)
def _take_rest(layout, point, s, scaled, n, high, low, policy, work):
    """Give what is left of the budget to the actions that cost less than U and are not played.

    reads   layout, point, s, scaled, n, high, low, policy (A,)
    fills   work: best x and m of those actions
    returns the number of actions that take part now, and L
    """
    solver, left, w, head = work.method.solver, work.left, layout.weights, work.state.nominal
    others = 0
    for a in range(policy.size):
        others += 1 if policy[a] == 0.0 and head[a] < high else 0
    for i in range(w.size if others > 0 else 0):
        left[i] = scaled.B / others
        for k in range(n):
            left[i] -= solver.best[k, i] / others
    for a in range(policy.size if others > 0 else 0):
        if policy[a] == 0.0 and head[a] < high:
            pair = _enlist(layout, point.order, s, a, n, 0.0, work)
            centre = solver.centre[n]
            for i in range(w.size):
                centre[i] = left[i] if left[i] >= 0.0 and left[i] <= scaled.B else 0.0
            locate(pair, scaled.size, centre, work.held, n)
            solver.best_x[n] = 0.0
            for i in range(w.size):
                solver.best[n, i] = centre[i]
                solver.head[n] += w[i] * work.held.gain[n, i]
            low = min(low, solver.head[n])
            n += 1
    return n, low


@njit(**INLINE)
def _lift_mean(layout, point, s, scaled, policy, mass, work):
    """Start from the solution for the mean kernel alone.

    reads   layout, point, s, scaled
    fills   policy (A,); mass (A, N); work: solver.mu, tables
    """
    solver = work.method.solver
    n, line = np.int64(0), np.int64(0)
    for a in range(policy.size):
        if policy[a] == 0.0 and work.state.nominal[a] < scaled.cap:
            pair = _enlist(layout, point.order, s, a, n, 0.0, work)
            _centre(0.0, mass[a], scaled, solver.centre[n])
            at = layout.indptr[s * policy.size + a]
            row = Pair(layout.mean, at, pair.K, pair.u, pair.first, work.unit, pair.entry, pair.level, pair.length)
            line = tabulate(row, scaled.size, np.inf, work.tables, n, line, solver.centre[n], solver.segment[n])
            n += 1
    level = _lift(n, work.tables, solver.head, scaled.B, scaled.cap, solver.x, solver.q)
    for i in range(solver.mu.size):
        solver.mu[i] = level
    for k in range(n):
        policy[work.action[k]] = solver.x[k]
        for i in range(solver.mu.size):
            mass[work.action[k], i] = scaled.size * solver.q[k]


@njit(**INLINE)
def _solve(layout, point, s, scaled, policy, mass, work, solver):
    """Solve for the actions that are played; those that cost less than U join, until there are none.

    reads   layout, point, s, scaled, mass (A, N), solver
    fills   policy (A,), TABLED where an action takes part; work: best x, m and μ
    returns the number of actions that take part, U, L and nature's answers
    """
    problem, w, head = work.method.solver, layout.weights, work.state.nominal
    n, line, passes = np.int64(0), np.int64(0), 0
    high, low = -np.inf, 0.0
    while True:
        before = n
        for a in range(policy.size):
            if policy[a] > 0.0 or (policy[a] == 0.0 and head[a] < high):
                pair = _enlist(layout, point.order, s, a, n, policy[a], work)
                _centre(policy[a], mass[a], scaled, problem.centre[n])
                line = tabulate(
                    pair, scaled.size, scaled.B, work.tables, n, line, problem.centre[n], problem.segment[n]
                )
                policy[a] = TABLED
                n += 1
        if n == before:
            break
        high, low, answers = solver(n, work.tables, w, scaled.B, scaled.cap, scaled.tol, work.method, None)
        passes += answers
        for k in range(n):
            problem.x[k] = problem.best_x[k] if high < scaled.cap else problem.x[k]
            for i in range(w.size):
                problem.centre[k, i] = problem.best[k, i]
    return n, high, low, passes


@njit(**INLINE)
def _store(n, scaled, cheapest, high, policy, mass, mu, work):
    """Keep what was found.

    reads   n, scaled, cheapest, high (U), work
    fills   policy (A,), mass (A, N), mu (N,)
    """
    solver, action = work.method.solver, work.action
    _clear(policy, mass, mu)
    for k in range(n):
        for i in range(mu.size):
            mass[action[k], i] = scaled.size * solver.best[k, i]
    if high < scaled.cap:
        for i in range(mu.size):
            mu[i] = solver.best_mu[i]
        for k in range(n):
            policy[action[k]] = solver.best_x[k]
    else:
        policy[cheapest] = 1.0


@njit(**INLINE)
def _lift(n, tables, head, B, cap, x, m):
    """Solve for one kernel alone.

    γ is found from above by Newton's method on the convex Σ_a m_a(γ) = B, where m_a(γ) lifts action a to γ.

    reads   n, tables, head (n,), B, cap
    fills   x (n,), m (n,)
    returns μ
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


@njit(**INLINE)
def _evaluate_state(layout, s, x, work, mu, mass):
    """Worst case of a policy at one normalised state.

    reads   layout, s, x (A,), work.state
    fills   mu (N,), mass (A, N), work: sort, owner
    returns it
    """
    state, sort = work.state, work.sort
    A, N = state.scale.shape
    theta, w, delta = layout.radius[s], layout.weights, sort.key
    steepest, entry, owner = sort.entry, sort.stack, work.owner
    n = 0
    worst = 0.0
    mass[:] = 0.0
    mu[:] = 0.0
    for a in range(A):
        if x[a] > 0.0:
            worst += x[a] * (state.cost[a] + state.nominal[a])
            for e in range(layout.indptr[s * A + a], layout.indptr[s * A + a + 1]):
                d = x[a] * state.u[e - layout.indptr[s * A]]
                if d < 0.0:
                    delta[n], entry[n], owner[n] = d, e, a
                    n += 1
    if theta <= 0.0 or n == 0:
        return worst
    rank(delta[:n], steepest, sort.place)
    for i in range(N):
        left = 0.5 * theta
        for k in range(n):
            j = steepest[k]
            a, d = owner[j], -delta[j]
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            p = layout.data[N * lo + i * (hi - lo) + entry[j] - lo] * state.scale[a, i]
            taken = min(p, left)
            mass[a, i] += taken
            worst += w[i] * taken * d
            left -= taken
            if p >= left + taken:
                mu[i] = d
                break
    return worst


def evaluate(start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work) -> None:  # fmt: skip
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`."""
    _evaluate(start, stop, layout, point, memory, out, Fixed(work.state, work.sort, work.owner))


@njit(**KERNEL)
def _evaluate(start, stop, layout, point, memory, out, work):
    """Worst case of the policy in out.policy at the states start … stop − 1.

    reads   layout, point
    fills   memory: by_kernel, by_row; out, work
    """
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:  # not terminal
            row_scales(layout, s, work.state.scale)
            worst = _evaluate_state(layout, s, out.policy[s], work, memory.by_kernel[s], memory.by_row[s])
            out.upper[s], out.lower[s], out.passes[s] = base + unit * worst, base + unit * worst, 1


NATURE = nature_rows.L1
"""How her rows follow from the memory."""
