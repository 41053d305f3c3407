"""Transport of order ∞: every kernel has a budget of its own, for all actions of a state.

What row (i, a) gains of an amount that is spent on it is concave and piecewise linear: the hulls of its sources (`drmdp.bellman.rows.transport`), merged in
the order of their slopes 1/t, which is the same for all kernels. So the update is that of `drmdp.bellman.piecewise`, with these tables for those of
(ℓ1, ∞). Segments whose t differ by rounding only are one.

Memory: by_action holds the policy behind U, by_kernel the multipliers κ_i = 1/μ_i, so that t_ia = κ_i x_a, and by_row for every action and kernel the two
answers that nature mixes, (t₁, t₂, f).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.family import close_trivial, longest_pair, open_state, play_alone
from drmdp.bellman.frame.ties import apart_of
from drmdp.bellman.frame.transport_nature import answer_of
from drmdp.bellman.nature_rows import Answer
from drmdp.bellman.piecewise.budget_per_kernel import Priced, Tables, make_tables
from drmdp.bellman.piecewise.method import worst_case
from drmdp.bellman.piecewise.sweep import solve_open
from drmdp.bellman.piecewise.work import Method, make_method
from drmdp.bellman.rows import LARGEST
from drmdp.bellman.rows.transport import NEAR, hull
from drmdp.core.cached import cached_property
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.grounded import Grounded, Lists, in_unit, plain
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point, Scratch, normalise, row_scales, scratch
from drmdp.layout.sorting import rank

TABLED = -1.0  # stands in a policy for an action that takes part
PLAYED = 1e-12  # a smaller probability of the last policy does not count


class Pieces(NamedTuple):
    """Segments of the hulls of all sources of a pair."""

    turn: Array
    cost: Array
    gain: Array
    source: Any
    order: Any
    spare: Any


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    lists: Lists
    source: Any  # (nnz,) the list of each entry
    free: bool
    hull: tuple[Array, Array, Array]
    pieces: Pieces
    tables: Tables
    reach: Array  # (lines, 2): smallest and largest t of each line
    action: Any  # (A,)
    method: Method


class Scaled(NamedTuple):
    """A state in units in which a small budget is 1."""

    size: float
    B: float
    cap: float
    tol: float
    apart: float


@njit(**LEAN)
def collect(layout, point, s, a, work):
    """Gather the segments of the hulls of a pair's sources.

    reads   layout, point, s, a, work: state.u, lists, source
    fills   work: hull, pieces
    returns how many, and the mean value after the moves that cost nothing
    """
    A = layout.available.shape[1]
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    stakes = point.order.common if layout.common else work.state.u[lo - first : hi - first]
    turn, far, high = work.hull
    n, value = 0, 0.0
    for e in range(lo, hi):
        if layout.mean[e] > 0.0:
            last = hull(work.lists, work.source[e], stakes, turn, far, high, 0)
            value += layout.mean[e] * high[0]
            for q in range(1, last + 1):
                work.pieces.turn[n], work.pieces.source[n] = turn[q], e - lo
                work.pieces.cost[n], work.pieces.gain[n] = far[q] - far[q - 1], high[q] - high[q - 1]
                n += 1
    return n, value


@njit(**KERNEL)
def lines_needed(start, stop, layout, point, work):
    """Lines of the tables of a state, at most.

    reads   start, stop, layout, point
    fills   work
    returns them
    """
    A, N = work.state.scale.shape
    most = 0
    for s in range(start, stop):
        base, _unit = normalise(layout, point, s, work.state)
        total = 0
        for a in range(A if base < np.inf else 0):
            if layout.available[s, a]:
                total += N * (collect(layout, point, s, a, work)[0] + 1)
        most = max(most, total)
    return most


@njit(**LEAN)
def tabulate(layout, point, s, a, n, line, scaled, work):
    """Write the tables of action a as number n.

    reads   layout, point, s, a, n, line (where they begin), scaled
    fills   work: tables, reach, pieces
    returns where they end
    """
    A, N = work.state.scale.shape
    count, _value = collect(layout, point, s, a, work)
    lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
    pieces, tables = work.pieces, work.tables
    rank(pieces.turn[:count], pieces.order, pieces.spare)
    tables.start[n], tables.stride[n] = line, count + 1
    for i in range(N):
        at, p, k = line + i * (count + 1), 0, 0
        scale = work.state.scale[a, i] / scaled.size
        tables.lines[at, 0], tables.lines[at, 1], tables.lines[at, 2] = 0.0, 0.0, 0.0
        while k < count:
            least = pieces.turn[pieces.order[k]]
            most, cost, gain = least, 0.0, 0.0
            while k < count and pieces.turn[pieces.order[k]] <= (1.0 + 8.0 * scaled.apart) * most:
                piece = pieces.order[k]
                most = pieces.turn[piece]
                y = scale * layout.data[N * lo + i * (hi - lo) + pieces.source[piece]]
                cost += y * pieces.cost[piece]
                gain += y * pieces.gain[piece]
                k += 1
            if cost > 0.0 and gain > 0.0:
                p += 1
                here, before = tables.lines[at + p], tables.lines[at + p - 1]
                here[0], here[1], here[2] = before[0] + cost, before[1] + gain, gain / cost
                work.reach[at + p, 0], work.reach[at + p, 1] = least, most
        tables.length[n, i] = p
    return line + N * (count + 1)


@njit(**LEAN)
def recalled(mixtures, n, B, work, centre):
    """Amounts that nature spent in the last sweep, as the tables see them now.

    reads   mixtures (3 N,), n, B, work: tables, reach
    fills   centre (N,)
    """
    tables = work.tables
    for i in range(centre.size):
        centre[i] = 0.0
        for side in range(2):
            share, p = mixtures[3 * i + 2] if side == 1 else 1.0 - mixtures[3 * i + 2], 0
            at = tables.start[n] + i * tables.stride[n]
            while p < tables.length[n, i] and work.reach[at + p + 1, 0] <= mixtures[3 * i + side]:
                p += 1
            centre[i] += share * tables.lines[at + p, 0]
        centre[i] = centre[i] if centre[i] >= 0.0 and centre[i] <= B else 0.0


@njit(**LEAN)
def told(n, amounts, work, mixtures):
    """Say by two answers and a share what is spent on the rows of an action, midway between ties.

    reads   n, amounts (N,), work: tables, reach
    fills   mixtures (3 N,)
    """
    tables = work.tables
    for i in range(amounts.size):
        at, p, m = tables.start[n] + i * tables.stride[n], 1, amounts[i]
        mixture = mixtures[3 * i : 3 * i + 3]
        mixture[0], mixture[1], mixture[2] = 0.0, 0.0, 0.0
        if not m > 0.0 or tables.length[n, i] == 0:
            continue
        while p < tables.length[n, i] and tables.lines[at + p, 0] < m:
            p += 1
        before, here = tables.lines[at + p - 1, 0], tables.lines[at + p, 0]
        least, most = work.reach[at + p, 0], work.reach[at + p, 1]
        below = work.reach[at + p - 1, 1] if p > 1 else 0.25 * least
        above = work.reach[at + p + 1, 0] if p < tables.length[n, i] else 4.0 * most
        mixture[0], mixture[1] = math.sqrt(below) * math.sqrt(least), math.sqrt(most) * math.sqrt(above)
        mixture[2] = min((m - before) / (here - before), 1.0)


@njit(**INLINE)
def enlist(layout, point, s, a, n, line, scaled, work, mixtures):
    """Let action a take part as number n.

    reads   layout, point, s, a, n, line, scaled, work.state.nominal (heads), mixtures (3 N,)
    fills   work: tables, reach, action, solver: head, centre, segment
    returns where its tables end
    """
    solver = work.method.solver
    end = tabulate(layout, point, s, a, n, line, scaled, work)
    solver.head[n], work.action[n] = work.state.nominal[a], a
    recalled(mixtures, n, scaled.B, work, solver.centre[n])
    for i in range(solver.mu.size):
        solver.segment[n, i] = 1
    return end


@njit(**INLINE)
def begin(layout, point, s, theta, work):
    """Normalise a state; its nominal values are those after the moves that cost nothing.

    reads   layout, point, s, theta, work: lists, source, free
    fills   work: state
    returns base and unit
    """
    base, unit = normalise(layout, point, s, work.state)
    if base < np.inf:
        row_scales(layout, s, work.state.scale)
        for a in range(work.state.cost.size):
            if work.free and layout.available[s, a]:
                work.state.nominal[a] = collect(layout, point, s, a, work)[1]
    return base, unit


@njit(**INLINE)
def forget(by_action, by_kernel, by_row, free):
    """Nothing is moved but what moves at no cost.

    reads   free
    fills   by_action (A,), by_kernel (N,), by_row (A, 3 N)
    """
    for a in range(by_action.size):
        by_action[a] = 0.0
        for k in range(by_row.shape[1]):
            by_row[a, k] = NEAR if free and k % 3 < 2 else 0.0
    for i in range(by_kernel.size):
        by_kernel[i] = 0.0


@njit(**INLINE)
def keep(n, amounts, mu, scaled, work, memory):
    """Keep what was found.

    reads   n, amounts (n, N), mu (N,), scaled, work
    fills   memory: by_kernel (N,) and by_row (A, 3 N) of a state
    """
    by_kernel, by_row = memory
    for k in range(n):
        told(k, amounts[k], work, by_row[work.action[k]])
        for j in range(by_row.shape[1]):
            if work.free and j % 3 < 2 and not by_row[work.action[k], j] > NEAR:
                by_row[work.action[k], j] = NEAR
    for i in range(mu.size):
        by_kernel[i] = min(1.0 / mu[i], LARGEST) if mu[i] > 0.0 else LARGEST


@njit(**INLINE)
def first_policy(policy, state, lowest):
    """The last policy on the actions that may be played; if nothing is left of it, the action of least nominal value.

    reads   state: cost, nominal; lowest
    fills   policy (A,)
    """
    total = 0.0
    for a in range(policy.size):
        open_action = policy[a] > PLAYED and policy[a] <= 1.0 and state.cost[a] + state.nominal[a] < 0.0
        policy[a] = policy[a] if open_action else 0.0
        total += policy[a]
    if not total > 0.5:
        play_alone(policy, lowest)
        return
    for a in range(policy.size):
        policy[a] /= total


@njit(**INLINE)
def search(layout, point, s, scaled, policy, by_row, work, solve):
    """Solve for the actions that are played; those that cost less than U join, until there are none.

    reads   layout, point, s, scaled, by_row (A, 3 N), solve
    fills   policy (A,), TABLED where an action takes part; work: best x, m and μ
    returns the number of actions that take part, U, L and nature's answers
    """
    solver, head = work.method.solver, work.state.nominal
    n, line, passes = np.int64(0), np.int64(0), 0
    high, low = -np.inf, 0.0
    while True:
        before = n
        for a in range(policy.size):
            if policy[a] > 0.0 or (policy[a] == 0.0 and head[a] < high):
                solver.x[n] = policy[a]
                line = enlist(layout, point, s, a, n, line, scaled, work, by_row[a])
                policy[a] = TABLED
                n += 1
        if n == before:
            break
        high, low, answers = solve(n, work.tables, layout.weights, scaled.B, scaled.cap, scaled.tol, work.method, None)
        passes += answers
        for k in range(n):
            solver.x[k] = solver.best_x[k] if high < scaled.cap else solver.x[k]
            for i in range(solver.mu.size):
                solver.centre[k, i] = solver.best[k, i]
    return n, high, low, passes


@njit(**KERNEL)
def _update(start, stop, layout, point, memory, out, tol, work, solve):
    """Update every open state (out.passes < 0); one whose gap stays above tol is left open.

    reads   layout, point, tol, solve (see `drmdp.bellman.piecewise.sweep`)
    fills   memory, out, work
    """
    solver = work.method.solver
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        out.passes[s] = 0.0
        theta, policy = layout.radius[s], out.policy[s]
        base, unit = begin(layout, point, s, theta, work)
        if not base < np.inf:
            continue
        by_action, by_kernel, by_row = memory.by_action[s], memory.by_kernel[s], memory.by_row[s]
        cheapest, lowest, bottom, trivial = open_state(work.state, theta, 0.0)
        if trivial:
            forget(by_action, by_kernel, by_row, work.free)
            upper, lower = close_trivial(theta, cheapest, lowest, bottom, policy)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower
            continue
        size = min(theta, 1.0)
        scaled = Scaled(size, theta / size, -bottom / size, tol / size, apart_of(base, unit))
        first_policy(policy, work.state, lowest)
        for a in range(policy.size):
            work.state.nominal[a] = (work.state.cost[a] + work.state.nominal[a] - bottom) / size
        for i in range(by_kernel.size):
            solver.mu[i] = 1.0 / by_kernel[i] if by_kernel[i] > 0.0 else 0.1
        n, high, low, passes = search(layout, point, s, scaled, policy, by_row, work, solve)
        if not high < scaled.cap:  # no multipliers were found: what is left is of another state
            for i in range(solver.best_mu.size):
                solver.best_mu[i] = 0.0
        forget(by_action, by_kernel, by_row, work.free)
        keep(n, solver.best, solver.best_mu, scaled, work, (by_kernel, by_row))
        for a in range(policy.size):
            policy[a] = 0.0
        if high < scaled.cap:
            for k in range(n):
                policy[work.action[k]] = solver.best_x[k]
                by_action[work.action[k]] = solver.best_x[k]
        else:
            policy[cheapest] = 1.0
        out.upper[s], out.lower[s] = base + unit * (bottom + size * high), base + unit * (bottom + size * max(low, 0.0))
        out.passes[s] = -max(passes, 1) if high - low > scaled.tol else passes


@njit(**KERNEL)
def _evaluate(start, stop, layout, point, memory, out, work):
    """Worst case of the policy in out.policy at the states start … stop − 1.

    reads   layout, point
    fills   memory, out, work
    """
    solver = work.method.solver
    for s in range(start, stop):
        theta, x = layout.radius[s], out.policy[s]
        base, unit = begin(layout, point, s, theta, work)
        if not base < np.inf:
            continue
        by_action, by_kernel, by_row = memory.by_action[s], memory.by_kernel[s], memory.by_row[s]
        size = min(theta, 1.0) if theta > 0.0 else 1.0
        scaled = Scaled(size, theta / size, 0.0, 0.0, apart_of(base, unit))
        n, line, worst = np.int64(0), np.int64(0), 0.0
        for i in range(by_kernel.size):
            solver.mu[i] = 1.0 / by_kernel[i] if by_kernel[i] > 0.0 else 0.1
        for a in range(x.size):
            if x[a] > 0.0:
                worst += x[a] * (work.state.cost[a] + work.state.nominal[a])
                work.state.nominal[a] = 0.0
                if theta > 0.0:
                    solver.x[n] = x[a]
                    line = enlist(layout, point, s, a, n, line, scaled, work, by_row[a])
                    n += 1
        forget(by_action, by_kernel, by_row, work.free)
        if n > 0:
            worst += size * worst_case(Priced(work.tables, n, scaled.B, solver.x), layout.weights, solver, None)
            keep(n, solver.amounts, solver.exact, scaled, work, (by_kernel, by_row))
        for a in range(x.size):
            by_action[a] = max(x[a], 0.0)
        out.upper[s], out.lower[s], out.passes[s] = base + unit * worst, base + unit * worst, 1


@dataclass(frozen=True)
class Family:
    """Transport of order ∞."""

    FRESH = True
    """How many lines tables have depends on v."""

    def workspace(self, layout: Grounded, point: Point, start: int, stop: int) -> Work:
        """Work space for the states start … stop − 1."""
        data = plain(layout)
        A, N = data.available.shape[1], data.weights.size
        longest = int(np.diff(layout.lists.ptr).max(initial=0))
        pieces = longest * longest_pair(data, start, stop)
        whole: Any = np.int64
        small = Work(
            scratch(data, start, stop), layout.lists, layout.source, layout.free,
            (np.empty(longest), np.empty(longest), np.empty(longest)),
            Pieces(np.empty(pieces), np.empty(pieces), np.empty(pieces), *(np.empty(pieces, whole) for _ in range(3))),
            make_tables(A, N, 1), np.empty((1, 2)), np.empty(A, whole), make_method(A, N, joint=False),
        )  # fmt: skip
        lines = lines_needed(start, stop, data, point, small)
        return small._replace(tables=make_tables(A, N, max(lines, 1)), reach=np.empty((max(lines, 1), 2)))

    def update(
        self, start: int, stop: int, layout: Grounded, point: Point, memory: Memory, out: Out, tol: float, work: Work
    ) -> None:
        """Minimise over the policy, let nature maximise."""
        out.passes[start:stop] = -1.0
        solve_open(_update, False, start, stop, plain(layout), point, memory, out, tol, work)

    def evaluate(
        self, start: int, stop: int, layout: Grounded, point: Point, memory: Memory, out: Out, tol: float, work: Work
    ) -> None:
        """Keep the policy in out.policy."""
        _evaluate(start, stop, plain(layout), point, memory, out, work)

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return answer_of(mean=False)

    def prepared(self, layout: Grounded) -> Grounded:
        """The radius in the unit of the lists."""
        return in_unit(layout)


EACH = Family()
