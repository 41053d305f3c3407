"""One state: gather its game, solve it.

An action is left out where even its least loss is no less than the largest loss of another one: whatever nature mixes, that one is better.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.mixing.answers import SMOOTH, Mix, dot, make_mix
from drmdp.bellman.mixing.game import Game, Space, make_space, note
from drmdp.bellman.mixing.interior import interior
from drmdp.bellman.mixing.play import play
from drmdp.core.compiled import FAST, INLINE, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Scratch, scratch

CORNERS = 3  # rounds of play before the interior-point method
ROUNDS = 1000
KEPT = 1e-12  # a smaller probability of the last policy does not count


class Work(NamedTuple):
    """Work space of a range of states."""

    state: Scratch
    mix: Mix
    act: Any  # (A,) the action of each row
    bounds: Array  # (3,): U, L, τ
    space: Space
    fixed: bool  # of a policy that is given


def make_work(layout: Layout, start: int, stop: int, kind: int) -> Work:
    """Work space for the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    return Work(
        scratch(layout, start, stop),
        make_mix(A, N, kind),
        np.empty(A, dtype=np.int64),
        np.empty(3),
        make_space(A, N),
        False,
    )


@njit(fastmath=FAST, **LEAN)
def _losses(data, at, u, first, cost, scale, row):
    """Losses of a pair in all kernels.

    reads   data (from `at` on), at, u (K,), first, cost, scale (N,)
    fills   row (N,)
    returns the least and the largest
    """
    K, least, most = u.size, np.inf, -np.inf
    for i in range(row.size):
        total = 0.0
        begin = np.uint64(at + i * K)
        for j in range(np.uint64(K)):
            total += data[begin + j] * u[j]
        row[i] = cost + scale[i] * total
        least = row[i] if row[i] < least else least
        most = row[i] if row[i] > most else most
    return least, most


@njit(**LEAN)
def losses(layout, s, a, state, row):
    """Losses of the pair (s, a).

    reads   layout, s, a, state
    fills   row (N,)
    returns the least and the largest
    """
    A = layout.available.shape[1]
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    return _losses(layout.data, row.size * lo, state.u[lo - first : hi - first], 0, state.cost[a], state.scale[a], row)


@njit(**INLINE)
def gather(layout, s, policy, work):
    """The rows of G of the actions of state s that may be played; of a policy that is given, of those that are.

    reads   layout, s, policy (A,), work.state
    fills   work: mix.G, act
    returns how many
    """
    low, G, act = work.space.step[0], work.mix.G, work.act
    enough, n = np.inf, 0
    for a in range(act.size):
        if layout.available[s, a] and (not work.fixed or policy[a] > 0.0):
            low[n], high = losses(layout, s, a, work.state, G[n])
            enough = min(enough, high)
            act[n] = a
            n += 1
    m = 0
    for k in range(n):
        if low[k] <= enough or work.fixed:
            if m < k:
                act[m] = act[k]
                for i in range(G.shape[1]):
                    G[m, i] = G[k, i]
            m += 1
    return m


@njit(**INLINE)
def first_policy(game, policy, act, x):
    """Where to begin: the last policy on what is left of it, else the action of least mean loss.

    reads   game, policy (A,), act
    fills   x (n,)
    """
    total = 0.0
    lowest, least = 0, np.inf
    for k in range(game.n):
        x[k] = policy[act[k]] if policy[act[k]] > KEPT and policy[act[k]] <= 1.0 else 0.0
        total += x[k]
    if total > 0.5:
        for k in range(game.n):
            x[k] /= total
        return
    for k in range(game.n):
        x[k] = 0.0
        mean = dot(game.data.w, game.data.G[k])
        if mean < least:
            lowest, least = k, mean
    x[lowest] = 1.0


@njit(**INLINE)
def close_game(game, tol, bounds, space):
    """Close the gap from space.x where Newton's method left one.

    reads   game, tol
    fills   bounds: U, L, τ; space: best_x, best_q
    returns nature's answers
    """
    upper, tau = game.answer(game.data, game.n, space.x, bounds[2], 0.01 * tol, space.q, space.gain)
    note(game, upper, tau, space.x, bounds, space)
    answers = 1 + play(game, tol, CORNERS if game.smooth else ROUNDS, bounds, space)
    if bounds[0] - bounds[1] > tol and game.smooth and game.data.B > 0.0:
        answers += interior(game, tol, bounds, space)
    return answers


@njit(**INLINE)
def game_of(work, n, w, radius, walls):
    """The game of the rows gathered.

    reads   work, n, w (N,), radius, walls
    returns it; χ² costs half of what it is called
    """
    mix = work.mix
    data = Mix(
        mix.G, w, mix.kind, 0.5 * radius if mix.kind == SMOOTH else radius, mix.vectors, mix.ones, mix.order, mix.along, mix.inner,
        mix.matrix, mix.multipliers,
    )  # fmt: skip
    return Game(n, data, walls[1], walls[2], walls[3], mix.kind <= walls[0])
