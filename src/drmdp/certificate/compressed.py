"""Bounds on compressed data of any size, from what a sweep keeps.

The formulas are those of `drmdp.certificate.dense`, row by row: U is the Lagrangian of the returned policy at the multipliers and thresholds
handed over (or, for ℓ1 and ℓ∞, at thresholds found there), valid whatever their quality; L is the value of explicit kernels that are
built from the few numbers handed over, measured, and pulled into the ball. Data, scale and sums are its own (`drmdp.certificate.sums`).

What is handed over (`Memory`): ℓ2: t_ia = by_action[a], for order ∞ times by_kernel[i], and thresholds by_row[a, i]; ℓ1: moved masses, by_action[a] on
the mean row for order 1 and by_row[a, i] for order ∞; ℓ∞: radii by_kernel[i], for order 1 also the multiplier by_action[0].
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from drmdp import _native
from drmdp._typing import Array, BoolArray
from drmdp.certificate import pairs
from drmdp.certificate.sums import Claim, Found, View, view, work_space
from drmdp.core import threads as workers
from drmdp.layout import events
from drmdp.layout.top import Looks
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout
    from drmdp.layout.memory import Memory


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
            asked, proved = claim, found
            if own is not events.EVERYTHING:
                own_memory = type(memory)(*(array[own] for array in memory))
                asked = claim._replace(policy=claim.policy[own], memory=own_memory)
                proved = Found(*(array[own] for array in found))
            if split:
                pairs.states(proof, first, last, part, seen, asked, proved)
            else:
                work = work_space(part, first, last) if getattr(proof, "WORK", True) else None
                proof.states(first, last, part, seen, asked, proved, work)

    if threads == 1:
        looks.run(0, S, prove)
    else:
        workers.run(lambda lo, hi: looks.run(lo, hi, prove), events.work(layout), 0, S, threads)
    return found


def _playable(policy: Array, available: BoolArray) -> Array:
    """The positive probabilities of available actions; all 0 in states where they do not sum to 1, not even roughly."""
    own = np.empty(policy.shape)
    _native.judge_clean(np.ascontiguousarray(policy, dtype=np.float64), available, own)
    return own
