"""The saddle point where nature's answer is smooth: Newton's method on f over the policies that matter.

Each answer gives U = f(x) and, from the gains of all actions against it, L = min_a g_a; the best of both are kept, with the x and the q that they belong to.
A step solves the quadratic program of `drmdp.bellman.qp` over the actions that are played and those whose gain is below the mean, at most `NEW` of them; its
length is halved, or interpolated, until f falls. It ends where it stalls, with a gap that `play` and `interior` close.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.mixing.game import note
from drmdp.bellman.qp import simplex_qp
from drmdp.core.compiled import INLINE, njit

ANSWERS = 60
STALLED = 6  # steps that do not halve the gap
SEARCHES = 12
NEW = 4  # actions that a step may add
PLAYED = 1e-15  # a smaller probability is 0


@njit(**INLINE)
def choose(n, x, gain, level, tol, member):
    """Members: what is played, and the actions whose gains are farthest below a level.

    reads   n, x (A,), gain (A,), level, tol
    fills   member (A,): their numbers
    returns how many
    """
    m = 0
    for a in range(n):
        if x[a] > 0.0:
            member[m] = a
            m += 1
    played = m
    for _ in range(NEW):
        worst = -1
        for a in range(n):
            if not x[a] > 0.0 and gain[a] < level - tol and (worst < 0 or gain[a] < gain[worst]):
                taken = False
                for k in range(played, m):
                    taken = taken or member[k] == a
                worst = worst if taken else a
        if worst < 0:
            break
        member[m] = worst
        m += 1
    return m


@njit(**INLINE)
def _step(game, m, tau, space):
    """Solve the quadratic program of a step on the members.

    reads   game, m (members), tau, space: x, gain, member
    fills   space: step[1] (where it ends), H
    returns its slope; 0 if there is none
    """
    gain, member, g, z = space.gain, space.member, space.step[0], space.step[1]
    level, least = 0.0, gain[0]
    for a in range(game.n):
        level += space.x[a] * gain[a]
        least = min(least, gain[a])
    trace = game.bend(game.data, m, member, tau, space.H)
    extra = 1e-5 * min(1.0, level - least) * max(1.0, trace / m) + 1e-13
    for k in range(m):
        g[k] = gain[member[k]] - least
        space.trial[k] = space.x[member[k]]
        space.H[k, k] += extra
    if not simplex_qp(space.H, g, space.trial, m, 0, z, space.program):
        return 0.0
    slope = 0.0
    for k in range(m):
        slope += g[k] * (z[k] - space.trial[k])
    return slope


@njit(**INLINE)
def _along(game, m, part, space):
    """Go a part of a step.

    reads   game, m (members), part, space: x, member, step[1]
    fills   space: trial
    """
    x, trial, z, total = space.x, space.trial, space.step[1], 0.0
    for a in range(game.n):
        trial[a] = x[a]
    for k in range(m):
        a = space.member[k]
        trial[a] = (1.0 - part) * x[a] + part * z[k]
        trial[a] = trial[a] if trial[a] > PLAYED else 0.0
        total += trial[a]
    for a in range(game.n):
        trial[a] /= total


@njit(**INLINE)
def newton(game, tol, limit, bounds, space):
    """Newton's method from space.x and τ = bounds[2]; only the first answer where it is not smooth.

    reads   game, tol, limit (answers at most)
    fills   bounds: U, L and τ; space: best_x, best_q
    returns the answers
    """
    x, trial = space.x, space.trial
    answers, stalled, searches, m, gap = 0, 0, 0, 0, np.inf
    upper, slope, part, tau = np.inf, 0.0, 1.0, bounds[2]
    for a in range(game.n):
        trial[a] = x[a]
    while True:
        new, tau = game.answer(game.data, game.n, trial, tau, 0.01 * tol, space.q, space.gain)
        note(game, new, tau, trial, bounds, space)
        answers += 1
        if bounds[0] - bounds[1] <= tol or answers >= limit or not game.smooth:
            break
        if answers == 1 or new <= upper + 1e-4 * part * slope:
            upper, part, searches, level = new, 1.0, 0, 0.0
            stalled = stalled + 1 if bounds[0] - bounds[1] > 0.5 * gap else 0
            gap = min(gap, bounds[0] - bounds[1])
            for a in range(game.n):
                x[a] = trial[a]
                level += x[a] * space.gain[a]
            m = choose(game.n, x, space.gain, level, 0.0, space.member)
            slope = _step(game, m, tau, space)
            if not slope < 0.0 or stalled >= STALLED:
                break
        else:
            guess = -0.5 * slope * part * part / (new - upper - slope * part)
            part = min(max(guess, 0.1 * part), 0.5 * part)
            searches += 1
            if searches >= SEARCHES:
                break
        _along(game, m, part, space)
    return answers
