"""Nature's answer: mean kernel rows and the chain of a pair (policy, nature), without ever listing all states.

A sweep leaves a few numbers per state (`Memory`); from them a row of nature's mean kernel Σ_i w_i y_ia is (`drmdp.core.compact`)

* listed entries, a number for each, and single ones: where ℓ1 sends the moved mass (a state of the highest stake), the pivots of ℓ∞;
* prefix terms (k, α, β) for unlisted states; listed ones are corrected in their own entries.

y is ŷ + share·(y − ŷ), share ≤ 1 being what feasibility allows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.native import NativeFamily
from drmdp.core import threads as workers
from drmdp.core.compact import DENSE, Rows
from drmdp.layout import events
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, of_states
from drmdp.layout.point import Point, point_at


class Target(NamedTuple):
    """Where rows are written; see `drmdp.core.compact`."""

    entry_at: Any  # (S·A + 1,)
    states: Any
    mass: Array
    prefix_at: Any  # (S·A + 1,)
    length: Any
    slope: Array
    level: Array


class Question(NamedTuple):
    """Which rows are asked for, and where they go."""

    weights: Array  # (S, A) of each pair; those of weight 0 get none
    share: Array  # (S, N), or (S, 1) for all kernels, as in the module
    target: Target

    def of(self, own: slice, A: int) -> Question:
        """The same for some states."""
        if own.start is None:
            return self
        pairs = slice(own.start * A, own.stop * A + 1)
        target = self.target._replace(entry_at=self.target.entry_at[pairs], prefix_at=self.target.prefix_at[pairs])
        return Question(self.weights[own], self.share[own], target)


def respond(
    family: NativeFamily, layout: Layout, point: Point, memory: Memory, weights: Array, share: Array, by_pair: bool, threads: int
) -> Rows:  # fmt: skip
    """Nature's mean kernel, a row per pair (S·A) or, summed with `weights` (S, A) over the actions, per state.

    Pairs of weight 0 get an empty row. `share` is (S, N), or (S, 1) for all kernels, as in the module.
    """
    S, A = layout.available.shape
    prefixes = layout.weights.size * family.prefixes if layout.unlisted else 0
    if weights[~layout.available].any():
        weights = np.where(layout.available, weights, 0.0)
    entry_at, prefix_at = np.zeros((2, S * A + 1), dtype=np.int64)  # zeros that nobody writes to take no memory
    for at, each in ((entry_at[1:], events.lengths(layout) + family.singles(layout)), (prefix_at[1:], prefixes)):
        if np.any(each):
            np.multiply(weights.ravel() > 0, each, out=at)
            np.cumsum(at, out=at)
    real: Any = np.float64
    if not by_pair:  # a Newton direction needs no more
        real = layout.data.dtype if hasattr(layout, "data") else np.float32 if point.value.size > DENSE else real
    entries, terms = int(entry_at[-1]), int(prefix_at[-1])
    estate, emass = np.zeros(entries, dtype=np.int32), np.zeros(entries, dtype=real)
    plength, pslope, plevel = np.zeros(terms, dtype=np.int32), np.zeros(terms, dtype=real), np.zeros(terms, dtype=real)
    question = Question(weights, share, Target(entry_at, estate, emass, prefix_at, plength, pslope, plevel))

    def over(lo: int, hi: int) -> None:
        for first, last, part, own in events.pieces(layout, lo, hi):
            family.respond(first, last, part, point, of_states(memory, own), question.of(own, A))

    workers.run(over, entry_at[::A], 0, S, threads)
    step, order, deepest = 1 if by_pair else A, point.order, int(plength.max()) if terms else 0
    if order.beyond[0]:  # she may use more than the top
        return respond(family, layout, point_at(layout, point.value), memory, weights, share, by_pair, threads)
    ends = prefix_at[::step].copy() if terms else np.zeros(S * A // step + 1, dtype=np.int64)
    return Rows(
        point.value.size, entry_at[::step].copy(), estate, emass, ends, plength, pslope, plevel,
        order.states[:deepest].copy(), order.u[:deepest].copy(), threads,
    )  # fmt: skip
