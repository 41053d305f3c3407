"""Nature's answer: mean kernel rows and the chain of a pair (policy, nature), without ever listing all states.

A sweep leaves a few numbers per state (`Memory`); from them a row of nature's mean kernel Σ_i w_i y_ia is (`drmdp.core.compact`)

* listed entries, a number for each, and single ones: where ℓ1 sends the moved mass (a state of the highest stake), the pivots of ℓ∞;
* prefix terms (k, α, β) for unlisted states; listed ones are corrected in their own entries.

y is ŷ + share·(y − ŷ), share ≤ 1 being what feasibility allows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.core import threads as workers
from drmdp.core.compact import Rows
from drmdp.core.compiled import INLINE, njit
from drmdp.layout import events
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory
from drmdp.layout.point import Point, Scratch, normalise, point_at, row_scales, scratch
from drmdp.layout.sorting import SortSpace, sort_space


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


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    sort: SortSpace  # of the entries of a pair; `entry` holds the descending order


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    state = scratch(layout, start, stop)
    return Work(state, sort_space(layout, point, start, stop, state.u.size))


class Piece(NamedTuple):
    """One pair: its N rows of K entries, and its part of the target."""

    y: Array
    u: Array  # (K,)
    listed: Any  # (K,) states
    scale: Array  # (N,)
    states: Any
    mass: Array
    length: Any
    slope: Array
    level: Array


class Answer(NamedTuple):
    """How a family's memory becomes rows."""

    kernel: Any
    single: Any  # entries of a row beside the listed ones; EACH: one for each kernel; or how many for each pair, from the layout
    prefixes: int  # prefix terms of a row, so many for each kernel
    single_kernels: bool = True  # whether her kernel is the mean of N
    work: bool = True  # whether the kernel is given work space
    weights: Any = None  # makes mixtures of the N kernels, (S, N) or (S, A, N), of layout, memory and share, if that is what she plays


EACH = -1


def respond(
    answer: Answer, layout: Layout, point: Point, memory: Memory, weights: Array, share: Array, by_pair: bool, threads: int
) -> Rows:  # fmt: skip
    """Nature's mean kernel, a row per pair (S·A) or, summed with `weights` (S, A) over the actions, per state.

    Pairs of weight 0 get an empty row. `share` is (S, N), or (S, 1) for all kernels, as in the module.
    """
    S, A = layout.available.shape
    N = layout.weights.size
    extra = answer.single(layout) if callable(answer.single) else N if answer.single == EACH else answer.single
    entry_at, prefix_at = np.empty(S * A + 1, dtype=np.int64), np.empty(S * A + 1, dtype=np.int64)
    prefixes = N * answer.prefixes if layout.unlisted else 0
    if _native.allot(weights, layout.available, events.lengths(layout) + extra, prefixes, entry_at, prefix_at):
        weights = np.where(layout.available, weights, 0.0)
    stored = hasattr(layout, "data") and not by_pair  # a Newton direction needs no more
    real = layout.data.dtype if stored else np.float64
    entries, terms = int(entry_at[-1]), int(prefix_at[-1])
    estate, emass = np.zeros(entries, dtype=np.int32), np.zeros(entries, dtype=real)
    plength, pslope, plevel = np.zeros(terms, dtype=np.int32), np.zeros(terms, dtype=real), np.zeros(terms, dtype=real)
    question = Question(weights, share, Target(entry_at, estate, emass, prefix_at, plength, pslope, plevel))

    def over(lo: int, hi: int) -> None:
        for first, last, part, own in events.pieces(layout, lo, hi):
            parts = memory if own is events.EVERYTHING else Memory(*(array[own] for array in memory))
            work = workspace(part, point, first, last) if answer.work else None
            answer.kernel(first, last, part, point, parts, question.of(own, A), work)

    workers.run(over, entry_at[::A], 0, S, threads)
    step, order, deepest = 1 if by_pair else A, point.order, int(plength.max()) if terms else 0
    if order.beyond[0]:  # she may use more than the top
        return respond(answer, layout, point_at(layout, point.value), memory, weights, share, by_pair, threads)
    return Rows(
        point.value.size, entry_at[::step].copy(), estate, emass, prefix_at[::step].copy(), plength, pslope, plevel,
        order.states[:deepest].copy(), order.u[:deepest].copy(), threads,
    )  # fmt: skip


@njit(**INLINE)
def begin(layout, point, s, state):
    """Normalise state s.

    reads   layout, point, s
    fills   state
    returns whether it is not terminal
    """
    base, _ = normalise(layout, point, s, state)
    row_scales(layout, s, state.scale)
    return base < np.inf


@njit(**INLINE)
def piece_at(layout, s, a, state, target):
    """Gather the pair (s, a).

    reads   layout, s, a, state
    fills   target.states: the listed ones
    returns a Piece
    """
    A, N = state.scale.shape
    pair, first = s * A + a, layout.indptr[s * A]
    lo, hi = layout.indptr[pair], layout.indptr[pair + 1]
    at, end = target.entry_at[pair], target.entry_at[pair + 1]
    p, q = target.prefix_at[pair], target.prefix_at[pair + 1]
    states, listed = target.states[at:end], layout.indices[lo:hi]
    for j in range(hi - lo):
        states[j] = listed[j]
    return Piece(
        layout.data[N * lo : N * hi], state.u[lo - first : hi - first], listed, state.scale[a], states, target.mass[at:end],
        target.length[p:q], target.slope[p:q], target.level[p:q],
    )  # fmt: skip
