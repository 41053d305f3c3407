"""Bounds on compressed data of any size, from what a sweep keeps, by routines that share nothing with those that sweep (`native/judge`).

The formulas are those of `drmdp.certificate.dense`, row by row: U is the Lagrangian of the returned policy at multipliers that are handed over, valid
whatever their quality; L is the value of explicit kernels that are built from the few numbers handed over, measured, and pulled into the set.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.certificate import pairs
from drmdp.certificate.view import Claim, Found, View, view
from drmdp.core import threads as workers
from drmdp.layout import events
from drmdp.layout.memory import Memory, of_states
from drmdp.layout.top import Looks
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout


def derive(
    ball: AmbiguitySet, layout: Layout, value: Array, policy: Array, memory: Memory, fixed: bool, threads: int = 1
) -> Found:
    """L ≤ F_y(v), U ≥ F^x(v), (S,) each, and the share of nature's move that is surely feasible, (S, N).

    `value` is without its level. With `fixed`, L is the value of `policy` under nature's kernels instead of the best action's. The policy is divided
    by its sum; U, and L with `fixed`, are infinite where it is none (see `_playable`).
    """
    (S, A), N = layout.available.shape, layout.weights.size
    entry = entry_of(ball)
    split = entry.keeps.by_pair
    found = Found(np.zeros(S), np.zeros(S), np.empty((S, A * N if split else N)))
    found.share.fill(1.0)
    proof = part_of(entry.certificate, ball)
    looks = Looks(partial(view, layout, value))
    layout = layout._replace(weights=layout.weights / math.fsum(layout.weights.tolist()))
    claim = Claim(_playable(policy, layout.available), memory, ball.by_kernel, fixed)

    def prove(lo: int, hi: int, seen: View) -> None:
        for first, last, part, own in events.pieces(layout, lo, hi):
            asked = claim._replace(policy=claim.policy[own], memory=of_states(memory, own))
            (partial(pairs.states, proof) if split else proof.states)(
                first, last, part, seen, asked, of_states(found, own)
            )

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
