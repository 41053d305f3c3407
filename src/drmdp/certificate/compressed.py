"""Bounds on compressed data of any size, from the memory of a sweep, by routines that share nothing
with those that sweep (`native/judge`).

U is the Lagrangian of the returned policy at the claimed multipliers, valid whatever their quality;
L is the value of explicit kernels that are built from the few claimed numbers, measured, and pulled
into the set.

States that are not listed are summed by tables over the states in descending order of u (`rises`),

    R₁(k) = Σ_{j<k} (u_j − u_{k−1}),    R₂(k) = Σ_{j<k} (u_j − u_{k−1})²,

which grow by terms of one sign and are right up to 8 ε, relatively, whatever k is.

**A budget for each action.** The proof is that of the set with one budget a state, for every pair
(s, a) as a state with one action. With L_a ≤ F_a ≤ U_a the bounds of the pairs, U = Σ_a x_a U_a ≥
F^x, and L = min_a L_a, or Σ_a x_a L_a for a fixed policy, as nature's rows in one action cost
nothing in another. The sum is made of differences from the smallest U_a, so that a common level
costs no digits: (A + 8) ε times their sizes and 4 ε times the level itself.
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
from drmdp.layout import event_layout
from drmdp.layout.layout import Layout, by_pair
from drmdp.layout.memory import SweepMemory, memory_by_pair, of_states
from drmdp.layout.partial_sort import SortedOnDemand, in_order, places_of
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of

TINY = 1e-280
"""A span below counts as 0, as in `native/judge/sums.hpp`."""
EMPTY, NONE = np.zeros(0), np.zeros(0, dtype=np.int32)


class View(NamedTuple):
    """v as a proof reads it: without its level, and normalised for all actions, (v − max v)/span;
    parts that the layout does not need are empty.
    """

    value: Array  # (S,)
    top: float  # largest value
    span: float  # largest − smallest
    u: Array  # (S,) by state
    states: Any  # (S,) in descending order of v, or the top of them
    place: Any  # (S,) of each state in that order, S if it has none
    down: Array  # (S,) u in that order
    rise: Array  # (S + 1,) R₁
    rise2: Array  # (S + 1,) R₂
    beyond: Any  # (1,) not 0 once a routine counted past the end of the top

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""
        return bool(self.down.size < self.place.size)


class SweepClaim(NamedTuple):
    """A claim about a sweep, and the problem that it is about."""

    policy: Array  # (S, A)
    memory: SweepMemory
    every: bool  # each kernel has a budget of its own
    fixed: bool  # L is for the policy, not for the best action


class ProvedBounds(NamedTuple):
    """Proved bounds."""

    low: Array  # (S,) L
    high: Array  # (S,) U
    share: Array  # (S, N) of nature's move that is surely allowed


def view(layout: Layout, value: Array, full: bool = True) -> View:
    """Normalise v where all actions have the same stakes, and sort it, or its top, if states that
    are not listed matter.
    """
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
    states = in_order(value, None if full else layout)
    order = states, places_of(states, value.size), u[states], *rises(u[states])
    return View(value, top, span, u, *order, beyond)


def rises(down: Array) -> tuple[Array, Array]:
    """R₁ and R₂ of the module for numbers in descending order, (S + 1,) each."""
    rise, rise2 = np.empty(down.size + 1), np.empty(down.size + 1)
    _native.judge_rises(down, rise, rise2)
    return rise, rise2


def derive(
    ambiguity: AmbiguitySet,
    layout: Layout,
    value: Array,
    policy: Array,
    memory: SweepMemory,
    fixed: bool,
    threads: int = 1,
) -> ProvedBounds:
    """Bounds L ≤ F_y(v), U ≥ F^x(v), (S,) each, and the share of nature's move that is surely
    feasible, (S, N), or (S, 1) of events where kernels share a budget.

    `value` is without its level. With `fixed`, L is the value of `policy` under nature's kernels
    instead of the best action's. The policy is divided by its sum; U, and L with `fixed`, are
    infinite where it is no distribution (see `_playable`).
    """
    (S, A), N, entry = layout.available.shape, layout.weights.size, entry_of(ambiguity)
    split = entry.keeps.by_pair
    # N numbers a state are many
    alike = isinstance(layout, event_layout.EventLayout) and not (split or ambiguity.by_kernel)
    width = 1 if alike else A * N if split else N
    bounds = ProvedBounds(np.zeros(S), np.zeros(S), np.ones((S, width)))
    proof = part_of(entry.certificate, ambiguity)
    orders = SortedOnDemand(partial(view, layout, value))
    layout = layout._replace(weights=layout.weights / math.fsum(layout.weights.tolist()))
    claim = SweepClaim(_playable(policy, layout.available), memory, ambiguity.by_kernel, fixed)
    routine = partial(_by_pair, proof) if split else proof.states

    def prove(lo: int, hi: int, view: View) -> None:
        for first, last, part, states in event_layout.pieces(layout, lo, hi):
            asked = claim._replace(policy=claim.policy[states], memory=of_states(memory, states))
            to = of_states(bounds, states)
            piece = to._replace(share=np.ones((last - first, N))) if alike else to
            routine(first, last, part, view, asked, piece)
            if alike:
                to.share[:] = piece.share[:, :1]

    workers.run(partial(orders.run, work=prove), event_layout.work(layout), 0, S, threads)
    return bounds


def _playable(policy: Array, available: BoolArray) -> Array:
    """The positive probabilities of available actions; all 0 in states where they do not sum to 1,
    not even roughly.
    """
    playable = np.where(available & (policy > 0), policy, 0.0)
    with np.errstate(over="ignore"):
        playable[~(np.abs(playable.sum(axis=1) - 1) <= 0.5)] = 0.0
    return playable


def _by_pair(
    proof: Any, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: ProvedBounds
) -> None:
    """Prove L, U and the shares of nature's moves for the states start … stop − 1; `proof` is that
    of the set with one budget a state.
    """
    S, A = layout.available.shape
    N, x = layout.weights.size, claim.policy[start:stop]
    alone, first, last = by_pair(layout), start * A, stop * A
    by_pairs = ProvedBounds(np.zeros(S * A), np.zeros(S * A), np.ones((S * A, N)))
    asked = np.zeros((S * A, 1))
    asked[first:last, 0] = (x > 0).ravel()
    each = claim._replace(policy=asked, memory=memory_by_pair(claim.memory), fixed=False)
    proof.states(first, last, alone, view, each, by_pairs)
    low, high = (part.reshape(S, A)[start:stop] for part in (by_pairs.low, by_pairs.high))
    least = np.where(layout.available[start:stop], low, np.inf).min(axis=1)
    bounds.high[start:stop] = mixed(x, high, +1)
    bounds.low[start:stop] = mixed(x, low, -1) if claim.fixed else least
    bounds.share[start:stop] = by_pairs.share.reshape(S, -1)[start:stop]


def mixed(x: Array, bounds: Array, side: int) -> Array:
    """Σ x·bounds/Σ x over the played actions, (n,), on the safe side; infinite where nothing is
    played or proved.
    """
    played: BoolArray = x > 0
    level = np.where(played, bounds, np.inf).min(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.where(played, bounds - level[:, None], 0.0)
        mean = (x * above).sum(axis=1) / x.sum(axis=1)
        margin = (x.shape[1] + 8) * EPS * mean + 4 * EPS * np.abs(level)
        bound = np.where(played.sum(axis=1) == 1, level, level + mean + side * margin)
    return np.where(np.isfinite(bound), bound, side * np.inf)
