"""Families of balls of finite order: a metric and an order, as `drmdp.bellman.family` wants them; see `drmdp.bellman.orders`.

An action with cost_a + V⁰_a ≥ 0 cannot matter: 0 is what the cheapest action costs against an unconstrained nature. Newton's method is tried first where
p > 1, then the interior-point method for ℓ2 and p ≤ 2; where they leave a gap, the simplex method closes it.

Memory, for the certificate and for the next sweep: by_action[0] is μ; nature's rows and what explains U are

    ℓ1: masses by_row, prices λ by_kernel;    ℓ2: multipliers by_row, κ by_kernel;    ℓ∞: radii by_kernel, prices λ by_row[0].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import close_trivial, longest_pair, open_state, play_alone
from drmdp.bellman.mixing.game import Game, Space, make_space, note
from drmdp.bellman.mixing.newton import ANSWERS, newton
from drmdp.bellman.mixing.play import play
from drmdp.bellman.orders.ball import IDLE, L2, LINF, METRICS, Ball, make_parts
from drmdp.bellman.orders.budget import answered, gained
from drmdp.bellman.orders.curvature import bent
from drmdp.bellman.orders.interior import interior
from drmdp.bellman.orders.l2 import first_slopes
from drmdp.bellman.orders.nature import L2_NATURE
from drmdp.bellman.rows.l2 import WIDE, State, forget, state_of
from drmdp.bellman.rows.linf import pair_at, rank_pair
from drmdp.bellman.rows.linf_table import place_entries, tabulate
from drmdp.core.compiled import INLINE, KERNEL, LEAN, Walls, njit, wall
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Order, Point, Scratch, normalise, scratch
from drmdp.layout.sorting import SortSpace, sort_space
from drmdp.sets import AmbiguitySet

ROUNDS = 1000
KEPT = 1e-12  # a smaller probability of the last policy does not count


class Work(NamedTuple):
    """Work space of a range of states."""

    state: Scratch
    sort: SortSpace
    metric: int
    p: float
    head: Array  # (A,)
    live: Any  # (A,)
    parts: Any  # of a Ball
    space: Space
    bounds: Array  # (3,): U, L, μ
    fixed: bool  # the policy is given


@cache
def _walls(real: Any, metric: int) -> Walls:
    """The metric, and what the game calls, `answer`, `gains` and `bend`, for data of a type."""
    y, row, whole = np.empty(1, dtype=real), np.empty(1), np.empty(1, dtype=np.int64)
    y.setflags(write=False)
    small = np.empty(1, dtype=np.int32)
    order = Order(row, small, row, row, row, small, small, 0.0, 0.0, whole)
    state = State(y, whole, row, row, row, row, 0.0, order, True, np.empty((1, 1)))
    ball = Ball(metric, 0.0, 0.0, row, np.empty(1, dtype=np.bool_), state, *make_parts(metric, 1, 1, 1, 1))
    return Walls(
        (
            metric,
            wall(answered, (0.0, 0.0), ball, 0, row, 0.0, 0.0, row, row),
            wall(gained, 0.0, ball, 0, row, row),
            wall(bent, 0.0, ball, 0, whole, 0.0, np.empty((1, 1))),
        )
    )


@dataclass(frozen=True)
class Family:
    """A metric and an order."""

    metric: int
    p: float

    def workspace(self, layout: Layout, point: Point, start: int, stop: int) -> Work:
        """Work space for the states start … stop − 1."""
        A, N, K = layout.available.shape[1], layout.weights.size, longest_pair(layout, start, stop)
        state = scratch(layout, start, stop, 2 * WIDE)
        E = state.u.size
        return Work(
            state, sort_space(layout, point, start, stop, E), self.metric, self.p, np.empty(A), np.empty(A, dtype=np.bool_),
            make_parts(self.metric, A, N, E, K), make_space(A, N if self.metric == LINF else A * N), np.empty(3),
            False,
        )  # fmt: skip

    def update(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work
    ) -> None:
        """Minimise over the policy, let nature maximise."""
        calls = _walls(layout.data.dtype, self.metric)
        _sweep(start, stop, layout, point, memory, out, tol, work, calls)
        passes = out.passes[start:stop]
        if (passes < 0.0).any():
            _close(start, stop, layout, point, memory, out, tol, work, calls)
        np.abs(passes, out=passes)

    def evaluate(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work
    ) -> None:
        """Keep the policy in out.policy."""
        calls = _walls(layout.data.dtype, self.metric)
        _sweep(start, stop, layout, point, memory, out, tol, work._replace(fixed=True), calls)

    @property
    def NATURE(self) -> nature_rows.Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return (nature_rows.L1, L2_NATURE, nature_rows.LINF)[self.metric]


class Orders(NamedTuple):
    """The families of a metric."""

    metric: int

    def of(self, ball: AmbiguitySet) -> Family:
        """That of the order of a ball."""
        order: Any = ball.order  # type: ignore[attr-defined]
        return Family(self.metric, float(order))


@njit(**INLINE)
def _begin(layout, order, s, x, memory, work, calls):
    """Gather a state that was normalised, and where to begin.

    reads   layout, order, s, x (A,): the last policy, or the one that is given; memory, work, calls
    fills   work: head, live, parts, space.x, bounds
    returns its game
    """
    state, head, live, parts, space = work.state, work.head, work.live, work.parts, work.space
    rows = state_of(layout, order, s, state)
    total, lowest = 0.0, -1
    for a in range(x.size):
        head[a] = state.cost[a] + state.nominal[a] if layout.available[s, a] else IDLE
        live[a] = layout.available[s, a] and (x[a] > 0.0 if work.fixed else head[a] < 0.0)
        head[a] = head[a] if live[a] else IDLE
        space.x[a] = x[a] if live[a] and (work.fixed or (x[a] > KEPT and x[a] <= 1.0)) else 0.0
        total += space.x[a]
        if live[a] and (lowest < 0 or head[a] < head[lowest]):
            lowest = a
    if total > 0.5 or work.fixed:
        for a in range(x.size):
            space.x[a] /= total
    else:
        play_alone(space.x, lowest)
    kernels, warm = parts[0], memory.by_action[s, 0] > 0.0 and total > 0.5
    for i in range(rows.w.size):
        kernels.r[i] = layout.radius[s]
        kernels.kappa[i] = memory.by_kernel[s, i] if warm and work.metric == L2 else 1.0
    if work.metric == L2:
        for a in range(x.size):
            forget(parts[3].rows[a])
            for i in range(rows.w.size):
                parts[3].tau[a, i] = np.nan
            if work.p == 1.0 and live[a]:
                first_slopes(rows, a, parts[3].first[a])
    elif work.metric == LINF:
        _tabulate(layout, order, s, work)
    work.bounds[2] = memory.by_action[s, 0] if warm else 0.0
    ball = Ball(
        work.metric, work.p, layout.radius[s], head, live, rows, parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]
    )  # fmt: skip
    return Game(x.size, ball, calls[1], calls[2], calls[3], work.p > 1.0)


@njit(**LEAN)
def _tabulate(layout, order, s, work):
    """Make the tables of the actions that count.

    reads   layout, order, s, work: state, live
    fills   work: parts (the profiles), sort
    """
    profiles, line, N = work.parts[4], np.int64(0), layout.weights.size
    for a in range(work.live.size):
        for i in range(N):
            profiles.tables.length[a, i] = 0
            profiles.segment[a, i] = 1
        profiles.tables.start[a], profiles.tables.stride[a] = 0, 0
        if work.live[a]:
            length = rank_pair(layout, order, s, a, 0.0, work.state, work.sort)
            pair = pair_at(layout, s, a, length, work.state, work.sort)
            place_entries(pair, work.sort.place)
            line = tabulate(pair, 1.0, work.sort.place, profiles.tables, a, line, profiles.mass, profiles.index)


@njit(**INLINE)
def _keep(s, game, memory, work):
    """Write down nature's best point and what explains U.

    reads   s, game, work: space.best_q
    fills   memory
    """
    ball, space = game.data, work.space
    N = ball.rows.w.size
    memory.by_action[s, 0] = work.bounds[2]
    claim, amounts = ball.kernels.claim, ball.points.amounts[0]
    if ball.metric == LINF:
        for i in range(N):
            memory.by_kernel[s, i], memory.by_row[s, 0, i] = space.best_q[i], claim[i]
        return
    for i in range(N):
        memory.by_kernel[s, i] = claim[i]
    if ball.metric == L2:
        game.gains(ball, game.n, space.best_q, space.gain)
    for a in range(game.n):
        for i in range(N):
            memory.by_row[s, a, i] = amounts[a, i] if ball.metric == L2 else space.best_q[a * N + i]


@njit(**INLINE)
def _trivial(s, theta, memory, work):
    """Nature stays, or does not matter.

    reads   s, theta, work
    fills   memory
    """
    memory.by_action[s, 0] = 0.0
    for i in range(memory.by_kernel.shape[1]):
        memory.by_kernel[s, i] = 0.0
        for a in range(memory.by_row.shape[1]):
            memory.by_row[s, a, i] = 0.0


@njit(**INLINE)
def _last(game, tol, answers, out_x, space, bounds):
    """Explain U, if the last answer was not one to the best policy.

    reads   game, tol, answers (so far)
    fills   out_x (A,): the best policy; game.data: claim; bounds
    returns the answers
    """
    for a in range(game.n):
        out_x[a] = space.best_x[a]
    same = True
    for a in range(game.n):
        same = same and space.best_x[a] == space.trial[a]
    if answers == 1 or same or not bounds[0] < 0.0:
        return answers
    copy_of = space.trial
    for a in range(game.n):
        copy_of[a] = space.best_x[a]
    upper, mu = game.answer(game.data, game.n, copy_of, bounds[2], 0.01 * tol, space.q, space.gain)
    note(game, upper, mu, copy_of, bounds, space)
    return answers + 1


@njit(**KERNEL)
def _sweep(start, stop, layout, point, memory, out, tol, work, calls):
    """Update by Newton's method, or by one answer where there is none, or evaluate.

    reads   layout, point, tol, calls (see `_walls`)
    fills   memory, out, work
    """
    space, bounds = work.space, work.bounds
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        out.passes[s] = 0.0
        if not base < np.inf:
            continue
        x, theta = out.policy[s], layout.radius[s]
        cheapest, lowest, bottom, trivial = open_state(work.state, theta, tol)
        if theta <= 0.0 or (trivial and not work.fixed):
            _trivial(s, theta, memory, work)
            if work.fixed:
                upper = 0.0
                for a in range(x.size):
                    upper += x[a] * (work.state.cost[a] + work.state.nominal[a]) if x[a] > 0.0 else 0.0
                lower = upper
            else:
                upper, lower = close_trivial(theta, cheapest, lowest, bottom, x)
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower
            continue
        game = _begin(layout, point.order, s, x, memory, work, calls)
        bounds[0], bounds[1] = np.inf if work.fixed else 0.0, -np.inf
        play_alone(space.best_x, cheapest)
        answers = newton(game, tol, 1 if work.fixed else ANSWERS, bounds, space)
        if work.fixed:
            bounds[1] = 0.0
            for a in range(x.size):
                bounds[1] += space.x[a] * space.gain[a] if space.x[a] > 0.0 else 0.0
        elif bounds[0] - bounds[1] <= tol:
            answers = _last(game, tol, answers, x, space, bounds)
        else:
            for a in range(x.size):
                x[a] = space.best_x[a]
        out.passes[s] = -answers if not work.fixed and bounds[0] - bounds[1] > tol else answers
        _keep(s, game, memory, work)
        out.upper[s], out.lower[s] = base + unit * bounds[0], base + unit * min(bounds[0], bounds[1])


@njit(**KERNEL)
def _close(start, stop, layout, point, memory, out, tol, work, calls):
    """Close the gaps that Newton's method, or one answer, left.

    reads   layout, point, tol, calls (see `_walls`)
    fills   memory, out, work
    """
    space, bounds = work.space, work.bounds
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        base, unit = normalise(layout, point, s, work.state)
        cheapest, _, _, _ = open_state(work.state, layout.radius[s], tol)
        game = _begin(layout, point.order, s, out.policy[s], memory, work, calls)
        bounds[0], bounds[1] = 0.0, -np.inf
        play_alone(space.best_x, cheapest)
        upper, mu = game.answer(game.data, game.n, space.x, bounds[2], 0.01 * tol, space.q, space.gain)
        note(game, upper, mu, space.x, bounds, space)
        answers = 1 + (interior(game, tol, bounds, space) if work.metric == L2 and work.p <= 2.0 else 0)
        if bounds[0] - bounds[1] > tol:
            answers += play(game, tol, ROUNDS, bounds, space)
        for a in range(game.n):
            space.trial[a] = -1.0
        answers = _last(game, tol, answers, out.policy[s], space, bounds)
        out.passes[s] -= answers
        _keep(s, game, memory, work)
        out.upper[s], out.lower[s] = base + unit * bounds[0], base + unit * min(bounds[0], bounds[1])


L1_ORDERS, L2_ORDERS, LINF_ORDERS = (Orders(number) for number in METRICS.values())
