"""The saddle point where nature's answers are corners: the simplex method on the actions that matter.

The method of `drmdp.bellman.piecewise.columns` mixes answers of nature against a few actions; an action whose gain against the mixture is below the value of
that game joins them, and the game begins anew from the mixture. It is finite for tv, cvar and any, and where the budget of another ball is slack.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.mixing.game import note
from drmdp.bellman.mixing.newton import choose
from drmdp.bellman.piecewise.columns import admit, balance, begin
from drmdp.core.compiled import INLINE, njit
from drmdp.layout.sorting import copy

POINTS = 60  # answers against one set of actions
STALLED = 20  # rounds that neither halve the gap nor add an action


@njit(**INLINE)
def _against(game, m, tol, bounds, space):
    """Mix answers against the members.

    reads   game, m (members), tol
    fills   bounds; space: q, the mixture, best_x, best_q
    returns the answers
    """
    basis, member, x, g = space.basis, space.member, space.x, space.step[0]
    level, unit = bounds[1], max(bounds[0] - bounds[1], 0.1 * tol)
    game.gains(game.data, game.n, space.q, space.gain)
    for k in range(m):
        g[k] = (space.gain[member[k]] - level) / unit
    copy(space.q, space.points[0])
    begin(basis, m, g)
    answers = 0
    tau = 0.0
    for _ in range(POINTS):
        gamma = level + unit * balance(basis, m, 1e-3 * tol / unit)
        if not gamma > -np.inf:
            break
        total = 0.0
        for k in range(m):
            total += max(basis.price[k], 0.0)
        for a in range(game.n):
            x[a] = 0.0
        for k in range(m):
            x[member[k]] = max(basis.price[k], 0.0) / total
        upper, tau = game.answer(game.data, game.n, x, tau, 0.01 * tol, space.q, space.gain)
        answers += 1
        note(game, upper, tau, x, bounds, space)
        if upper - gamma <= 0.5 * tol or bounds[0] - bounds[1] <= tol:
            break
        for k in range(m):
            g[k] = (space.gain[member[k]] - level) / unit
        slot = admit(basis, m, g)
        if slot < 0:
            break
        copy(space.q, space.points[slot])
    total = 0.0
    for k in range(m + 1):
        if basis.kind[k] >= m:
            total += max(basis.level[k], 0.0) * basis.matrix[m, k]
    for i in range(space.q.size):
        space.q[i] = 0.0
        for k in range(m + 1):
            if basis.kind[k] >= m:
                part = max(basis.level[k], 0.0) * basis.matrix[m, k] / total
                space.q[i] += part * space.points[basis.kind[k] - m, i]
    return answers


@njit(**INLINE)
def play(game, tol, rounds, bounds, space):
    """Play from the actions of space.x and the best answer so far.

    reads   game, tol, rounds (at most)
    fills   bounds: U, L and τ; space: best_x, best_q
    returns the answers
    """
    n, x = game.n, space.x
    copy(space.best_q, space.q)
    game.gains(game.data, n, space.q, space.gain)
    level = 0.0
    for a in range(n):
        level += x[a] * space.gain[a]
    m = choose(n, x, space.gain, level, 0.0, space.member)
    answers, stalled, gap = 0, 0, np.inf
    for _ in range(rounds):
        answers += _against(game, m, tol, bounds, space)
        least = game.gains(game.data, n, space.q, space.gain)
        if least > bounds[1]:
            bounds[1] = least
            copy(space.q, space.best_q)
        if bounds[0] - bounds[1] <= tol:
            break
        worst = -1
        level = np.inf
        for k in range(m):
            level = min(level, space.gain[space.member[k]])
        for a in range(n):
            inside = False
            for k in range(m):
                inside = inside or space.member[k] == a
            if not inside and space.gain[a] < level and (worst < 0 or space.gain[a] < space.gain[worst]):
                worst = a
        if worst >= 0:
            space.member[m] = worst
            m += 1
        elif bounds[0] - bounds[1] > 0.5 * gap:
            stalled += 1
            if stalled >= STALLED:
                break
        else:
            stalled, gap = 0, bounds[0] - bounds[1]
    return answers
