"""Bounds on compressed data of any size, from what a sweep keeps, by routines that share nothing with those that sweep (`native/judge`).

U is the Lagrangian of the returned policy at multipliers that are handed over, valid whatever their quality; L is the value of explicit kernels that are
built from the few numbers handed over, measured, and pulled into the set.

States that are not listed are summed by tables over the states in descending order of u (`rises`),

    R₁(k) = Σ_{j<k} (u_j − u_{k−1}),    R₂(k) = Σ_{j<k} (u_j − u_{k−1})²,

which grow by terms of one sign and are right up to 8 ε, relatively, whatever k is.

**A budget for each action.** The proof is that of the set with one budget a state, for every pair (s, a) as a state with one action. With L_a ≤ F_a ≤ U_a the
bounds of the pairs, U = Σ_a x_a U_a ≥ F^x, and L = min_a L_a, or Σ_a x_a L_a for a fixed policy, as nature's rows in one action cost nothing in another. The
sum is made of differences from the smallest U_a, so that a common level costs no digits: (A + 8) ε times their sizes and 4 ε times the level itself.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array, BoolArray
from drmdp.core import threads as workers
from drmdp.core.levels import EPS
from drmdp.layout import events
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, of_states
from drmdp.layout.pairs import by_pair, memory_by_pair
from drmdp.layout.top import Looks, in_order, places_of
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of

TINY = 1e-280
"""A span below counts as 0, as in `native/judge/sums.hpp`."""
EMPTY, NONE = np.zeros(0), np.zeros(0, dtype=np.int32)


class View(NamedTuple):
    """v as a proof sees it: without its level, and as all actions see it, (v − max v)/span; what the layout does not need is empty."""

    value: Array  # (S,)
    top: float  # largest value
    span: float  # largest − smallest
    u: Array  # (S,) by state
    states: Any  # (S,) in descending order of v, or the top of them
    place: Any  # (S,) of each state in that order, S if it has none
    down: Array  # (S,) u in that order
    rise: Array  # (S + 1,) R₁
    rise2: Array  # (S + 1,) R₂
    beyond: Any  # (1,) not 0 once somebody counted past the end of the top

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""
        return bool(self.down.size < self.place.size)


class Claim(NamedTuple):
    """What is claimed of a sweep, and what it is claimed for."""

    policy: Array  # (S, A)
    memory: Memory
    every: bool  # each kernel has a budget of its own
    fixed: bool  # L is for the policy, not for the best action


class Found(NamedTuple):
    """What is proved."""

    low: Array  # (S,) L
    high: Array  # (S,) U
    share: Array  # (S, N) of nature's move that is surely allowed


def view(layout: Layout, value: Array, whole: bool = True) -> View:
    """Normalise v where all actions see the same, and sort it, or its top, if states that are not listed matter."""
    beyond = np.zeros(1, dtype=np.int64)
    u = np.zeros(value.size if layout.common else 0)
    top, span = float(value.max()), float(value.max()) - float(value.min())
    if not isinstance(layout.discount, float):  # v is not around its level: sizes count from 0
        span = max(top, 0.0) - min(top - span, 0.0)
    if layout.common and layout.discount * span > TINY:
        with np.errstate(over="ignore"):
            u = (value - top) / span
    if not (layout.common and layout.unlisted):
        return View(value, top, span, u, NONE, NONE, EMPTY, EMPTY, EMPTY, beyond)
    states = in_order(value, None if whole else layout)
    down = u[states]
    rise, rise2 = rises(down)
    return View(value, top, span, u, states, places_of(states, value.size), down, rise, rise2, beyond)


def rises(down: Array) -> tuple[Array, Array]:
    """R₁ and R₂ of the module for numbers in descending order, (S + 1,) each."""
    rise, rise2 = np.empty(down.size + 1), np.empty(down.size + 1)
    _native.judge_rises(down, rise, rise2)
    return rise, rise2


def derive(
    ball: AmbiguitySet, layout: Layout, value: Array, policy: Array, memory: Memory, fixed: bool, threads: int = 1
) -> Found:
    """L ≤ F_y(v), U ≥ F^x(v), (S,) each, and the share of nature's move that is surely feasible, (S, N), or (S, 1) of events where kernels share a budget.

    `value` is without its level. With `fixed`, L is the value of `policy` under nature's kernels instead of the best action's. The policy is divided
    by its sum; U, and L with `fixed`, are infinite where it is none (see `_playable`).
    """
    (S, A), N = layout.available.shape, layout.weights.size
    entry = entry_of(ball)
    split = entry.keeps.by_pair
    alike = isinstance(layout, events.EventLayout) and not (split or ball.by_kernel)  # N numbers a state are many
    found = Found(np.zeros(S), np.zeros(S), np.empty((S, 1 if alike else A * N if split else N)))
    found.share.fill(1.0)
    proof = part_of(entry.certificate, ball)
    looks = Looks(partial(view, layout, value))
    layout = layout._replace(weights=layout.weights / math.fsum(layout.weights.tolist()))
    claim = Claim(_playable(policy, layout.available), memory, ball.by_kernel, fixed)

    def prove(lo: int, hi: int, seen: View) -> None:
        for first, last, part, own in events.pieces(layout, lo, hi):
            asked = claim._replace(policy=claim.policy[own], memory=of_states(memory, own))
            to = of_states(found, own)
            each = to._replace(share=np.ones((last - first, N))) if alike else to
            (partial(_by_pair, proof) if split else proof.states)(first, last, part, seen, asked, each)
            if alike:
                to.share[:] = each.share[:, :1]

    if threads == 1:
        looks.run(0, S, prove)
    else:
        workers.run(lambda lo, hi: looks.run(lo, hi, prove), events.work(layout), 0, S, threads)
    return found


def _playable(policy: Array, available: BoolArray) -> Array:
    """The positive probabilities of available actions; all 0 in states where they do not sum to 1, not even roughly."""
    own = np.where(available & (policy > 0), policy, 0.0)
    with np.errstate(over="ignore"):
        own[~(np.abs(own.sum(axis=1) - 1) <= 0.5)] = 0.0
    return own


def _by_pair(proof: Any, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Found) -> None:
    """Prove L, U and the shares of nature's moves for the states start … stop − 1; `proof` is that of the set with one budget a state."""
    S, A = layout.available.shape
    N, x = layout.weights.size, claim.policy[start:stop]
    alone, first, last = by_pair(layout), start * A, stop * A
    found = Found(np.zeros(S * A), np.zeros(S * A), np.ones((S * A, N)))
    asked = np.zeros((S * A, 1))
    asked[first:last, 0] = (x > 0).ravel()
    each = claim._replace(policy=asked, memory=memory_by_pair(claim.memory, N), fixed=False)
    proof.states(first, last, alone, view, each, found)
    low, high = (part.reshape(S, A)[start:stop] for part in (found.low, found.high))
    available = layout.available[start:stop]
    ends = ~available.any(axis=1)
    bounds.high[start:stop] = np.where(ends, 0.0, mixed(x, high, +1))
    least = np.where(available, low, np.inf).min(axis=1)
    bounds.low[start:stop] = np.where(ends, 0.0, mixed(x, low, -1) if claim.fixed else least)
    bounds.share[start:stop] = found.share.reshape(S, -1)[start:stop]


def mixed(x: Array, bounds: Array, side: int) -> Array:
    """Σ x·bounds/Σ x over the played actions, (n,), on the safe side; infinite where nothing is played or proved."""
    played: BoolArray = x > 0
    level = np.where(played, bounds, np.inf).min(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.where(played, bounds - level[:, None], 0.0)
        mean = (x * above).sum(axis=1) / x.sum(axis=1)
        alone = played.sum(axis=1) == 1
        margin = np.where(alone, 0.0, (x.shape[1] + 8) * EPS * mean + 4 * EPS * np.abs(level))
        found = np.where(alone, level, level + mean + side * margin)
    return np.where(np.isfinite(found), found, side * np.inf)
