"""Nature re-weights the N kernels: the exact update.

Normalised as in `drmdp.layout.point`. One pass over all N kernels gives G_ai = cost_a + ŷ_ia·u; what is left are A × N numbers.

* "s": one mixture q for all actions of a state. F̄ = min_x max_q Σ_a x_a Σ_i q_i G_ai is the saddle point of `drmdp.bellman.mixing`. Nature's move
  against one action may help another one, so
  nothing is left out for its mean.
* "sa": a mixture q_a for each action, F̄ = min_a max_q q·G_a: the best action is played. No mixture of a row is worth less than its mean to her: an action whose
  mean loss is no less than the best worst case so far is not looked at, and its q stays w.

U = f(x) and L = min_a Σ_i q_i G_ai by weak duality, for whatever x and q were found. With a policy fixed, f(x), or Σ_a x_a f(a).

Memory: by_action[0] ("s") or by_action[a] ("sa") holds τ of the last answer; by_kernel holds q ("s"), by_row q_a ("sa").
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.family import play_alone
from drmdp.bellman.mixing.answers import KINDS, dot
from drmdp.bellman.mixing.newton import ANSWERS, newton
from drmdp.bellman.mixing.saddle import Work, close_game, first_policy, game_of, gather, losses, make_work
from drmdp.bellman.nature_rows import Answer, begin, piece_at
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point, normalise, row_scales
from drmdp.layout.sorting import copy

MORE = 1e-12  # what rounding may hide between a mean and a worst case


class Family(NamedTuple):
    """A kind, as `drmdp.bellman.family` wants it."""

    update: Any
    evaluate: Any
    workspace: Any
    NATURE: Any


def workspace(kind: int, each: bool, layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    return make_work(layout, start, stop, kind, each)


def update(
    start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work
) -> None:
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    Newton's method is tried first; where it leaves a gap, out.passes is negative, and the others close it.
    """
    _sweep(start, stop, layout, point, memory, out, tol, work)
    passes = out.passes[start:stop]
    if (passes < 0.0).any():
        _close(start, stop, layout, point, memory, out, tol, work)
    np.abs(passes, out=passes)


def evaluate(
    start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Work
) -> None:
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`."""
    _sweep(start, stop, layout, point, memory, out, tol, work._replace(fixed=True))


@njit(**INLINE)
def _rows(layout, s, g, best, policy, work):
    """Gather game g of state s: all actions that count, or with `each` one of them, the first being that of least mean loss.

    reads   layout, s, g, best (worst case so far), policy (A,)
    fills   work: G, act, space.x
    returns its rows; 0 if there is nothing to play
    """
    state, n, x = work.state, 0, work.space.x
    if work.each and not work.fixed:
        low, a = np.inf, 0
        for b in range(policy.size):
            if layout.available[s, b] and state.cost[b] + state.nominal[b] < low:
                low, a = state.cost[b] + state.nominal[b], b
        a = a if g == 0 else g - 1 if g <= a else g
        if not layout.available[s, a] or (g > 0 and state.cost[a] + state.nominal[a] >= best + MORE):
            work.act[0] = a
            return 0
        losses(layout, s, a, state, work.G[0])
        work.act[0], x[0] = a, 1.0
        return 1
    if not work.fixed:
        return gather(layout, s, work)
    for a in range(policy.size):
        if policy[a] > 0.0 and (not work.each or a == g):
            losses(layout, s, a, state, work.G[n])
            work.act[n], x[n] = a, 1.0 if work.each else policy[a]
            n += 1
    work.act[0] = g if n == 0 else work.act[0]
    return n


@njit(**INLINE)
def _keep(s, n, memory, out, work):
    """Write down what was found of a game.

    reads   s, n (rows), work
    fills   memory, out.policy
    """
    space, bounds, a = work.space, work.bounds, work.act[0]
    if work.each:
        memory.by_action[s, a] = bounds[2]
        copy(space.best_q, memory.by_row[s, a])
        return
    memory.by_action[s, 0] = bounds[2]
    copy(space.best_q, memory.by_kernel[s])
    if not work.fixed:
        for b in range(out.policy.shape[1]):
            out.policy[s, b] = 0.0
        for k in range(n):
            out.policy[s, work.act[k]] = space.best_x[k]


@njit(**KERNEL)
def _sweep(start, stop, layout, point, memory, out, tol, work):
    """Update by Newton's method, or evaluate.

    reads   layout, point
    fills   memory, out, work
    """
    space, bounds, w = work.space, work.bounds, layout.weights
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        out.passes[s] = 0.0
        if not base < np.inf:
            continue
        row_scales(layout, s, work.state.scale)
        high, low = (0.0, 0.0) if work.fixed else (np.inf, np.inf)
        played = 0
        for g in range(out.policy.shape[1] if work.each else 1):
            n = _rows(layout, s, g, high, out.policy[s], work)
            if n == 0:
                copy(w, memory.by_row[s, work.act[0]])
                continue
            game = game_of(work, n, w, layout.radius[s])
            alone = work.each or work.fixed
            if not alone:
                first_policy(game, out.policy[s], work.act, space.x)
            bounds[0], bounds[1], bounds[2] = np.inf, -np.inf, memory.by_action[s, work.act[0] if work.each else 0]
            answers = newton(game, tol, 1 if alone else ANSWERS, bounds, space)
            lower = dot(space.q, space.vectors[0]) if work.fixed else bounds[1]
            out.passes[s] += -answers if not alone and bounds[0] - bounds[1] > tol else answers
            _keep(s, n, memory, out, work)
            if work.fixed:
                share = out.policy[s, work.act[0]] if work.each else 1.0
                high, low = high + share * bounds[0], low + share * lower
            else:
                played = work.act[0] if bounds[0] < high else played
                high, low = min(high, bounds[0]), min(low, lower)
        if work.each and not work.fixed:
            play_alone(out.policy[s], played)
        out.upper[s] = base + unit * high
        out.lower[s] = base + unit * low


@njit(**KERNEL)
def _close(start, stop, layout, point, memory, out, tol, work):
    """Close the gaps that Newton's method left.

    reads   layout, point
    fills   memory, out, work
    """
    space, bounds = work.space, work.bounds
    for s in range(start, stop):
        if not out.passes[s] < 0.0:
            continue
        base, unit = normalise(layout, point, s, work.state)
        row_scales(layout, s, work.state.scale)
        n = gather(layout, s, work)
        game = game_of(work, n, layout.weights, layout.radius[s])
        first_policy(game, out.policy[s], work.act, space.x)
        bounds[0], bounds[1], bounds[2] = np.inf, -np.inf, memory.by_action[s, 0]
        out.passes[s] -= close_game(game, tol, bounds, space)
        _keep(s, n, memory, out, work)
        out.upper[s] = base + unit * bounds[0]
        out.lower[s] = base + unit * bounds[1]


def mixtures(layout: Layout, memory: Memory, share: Any) -> Array:
    """The mixtures that nature plays, (S, N), or (S, A, N); what is no mixture is w."""
    q = np.asarray(memory.by_row if memory.by_row.shape[1] else memory.by_kernel)
    q = np.where(np.isfinite(q) & (q > 0), q, 0.0)
    total = q.sum(axis=-1, keepdims=True)
    w = layout.weights / layout.weights.sum()
    q = np.where(total > 0, q / np.where(total > 0, total, 1.0), w)
    part = 1.0 if share is None else share[:, :1] if q.ndim == 2 else share[:, :1, None]
    return np.asarray(w + part * (q - w))


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work):
    """Rows of the states start … stop − 1: mixtures of the kernels.

    reads   layout, point, memory.by_kernel or memory.by_row, question: weights, share
    fills   question.target, work
    """
    w = layout.weights
    for s in range(start, stop):
        if begin(layout, point, s, work.state):
            for a in range(question.weights.shape[1]):
                x = question.weights[s, a]
                if x > 0.0:
                    piece = piece_at(layout, s, a, work.state, question.target)
                    q = memory.by_kernel[s] if memory.by_row.shape[1] == 0 else memory.by_row[s, a]
                    mass = 0.0
                    for i in range(w.size):
                        mass += q[i] if q[i] > 0.0 else 0.0
                    share = question.share[s, 0] if mass > 0.0 and mass < np.inf else 0.0
                    for i in range(w.size):
                        part = w[i] + share * (max(q[i], 0.0) / mass - w[i]) if share > 0.0 else w[i]
                        for j in range(piece.u.size):
                            piece.mass[j] += x * part * piece.scale[i] * piece.y[i * piece.u.size + j]


NATURE = Answer(_respond, single=0, prefixes=False, single_kernels=False, weights=mixtures)
"""How her rows follow from the mixtures."""


FAMILIES = {
    (kind, rectangular): Family(update, evaluate, partial(workspace, number, rectangular == "sa"), NATURE)
    for kind, number in KINDS.items()
    for rectangular in ("s", "sa")
}
