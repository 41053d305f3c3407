"""Layouts of models of events: a `Layout` for a few states at a time.

Rows are computed in scratch memory (`drmdp.model.events.laws`), and routines run over the pieces
of a range of states. States of a piece are numbered from 0, next states as in the full model, so
that the routines of stored models run unchanged, on the same rows in the same order: same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.layout.layout import Layout, lay_out, widen
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.events.laws import Laws, laws_of
from drmdp.model.support import support_sizes
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load


class EventLayout(NamedTuple):
    """Static data of a (model of events, set)."""

    model: EventModel
    laws: Laws  # of positive weight
    weights: Array  # (N,) positive
    available: Any  # (S, A) bool
    radius: Array  # (S,), or (S, A)
    discount: float
    unlisted: bool
    common: bool
    merged: bool  # entries are next states; else events, whatever state they lead to
    # for each range of states, completes its pieces with the data of the set
    finish: Callable[[], Callable[[Layout], Any]] | None = None
    wide: bool = False  # pairs list the next states of any pair of their state

    @property
    def longest(self) -> int:
        """Most entries that a pair can have."""
        if not self.merged:
            return int(self.laws.n_live.max())
        return int(support_sizes(self.model).max()) if self.wide else self.model.facts.longest


def layout_of(model: Model, ambiguity: AmbiguitySet) -> Any:
    """The layout of a model and a set: a `Layout`, or an `EventLayout`, which has one piece by
    piece.
    """
    entry, support = entry_of(ambiguity), ambiguity.support
    if not isinstance(model, EventModel):
        return lay_out(model, ambiguity)
    if entry.layout and (model.priced or not _by_pieces(entry)):
        return lay_out(model, ambiguity)
    facts, S, used = model.facts, model.n_next, model.weights > 0
    weights, numbers = np.array(model.weights[used]), (ambiguity.radii(model), model.discount)
    if ambiguity.moves == "events":
        model, every = model.by_state if support == "state" else (model, support == "all")
        laws = laws_of(model.laws, model.weights, used, every)
        return EventLayout(model, laws, weights, model.available, *numbers, False, False, False)
    if support == "all" and facts.shortest < S and model.next_costs:
        return lay_out(model, ambiguity)
    unlisted = support == "all" and not model.priced and bool(facts.shortest < S or facts.closed)
    common = not model.priced and (support == "all" or facts.shortest == S)
    finish, key = None, ("pieces", ambiguity.listing)
    if entry.layout:
        finish = model.cache.get(key) or _by_pieces(entry)(model, ambiguity, common)
        model.cache[key] = finish
    arrays = model.used, weights, model.available, *numbers
    return EventLayout(model, *arrays, unlisted, common, True, finish, support == "state")


def _by_pieces(entry: Any) -> Any:
    """The function that lays out a set piece by piece, if it has one."""
    return getattr(load(entry.layout.partition(":")[0]), "in_pieces", None)


EVERYTHING = slice(None)


def pieces(layout: Any, lo: int, hi: int) -> Iterator[tuple[int, int, Layout, slice]]:
    """Layouts that cover the states lo … hi − 1: first and last of their states as they number
    them, and the slice of these among all.

    A stored model has one. Those of events share memory: a piece is valid until the next.
    """
    if not isinstance(layout, EventLayout):
        yield lo, hi, layout, EVERYTHING
        return
    kind: Any = (layout.discount, layout.unlisted, layout.common)
    model, A, N = layout.model, layout.available.shape[1], layout.weights.size
    priced = model.priced or not layout.merged  # or a pair could be taken for one of all states
    finish = layout.finish() if layout.finish else lambda part: part
    for first, last, block, n in model.batches(layout.laws, lo, hi, layout.merged):
        states = slice(first, last)
        indptr = block.indptr[: (last - first) * A + 1]
        rows = indptr, block.indices[:n], block.data[: N * n], block.mean[:n]
        costs = np.ascontiguousarray(model._prices[states]), block.costs[: n if priced else 0]
        radius = np.ascontiguousarray(layout.radius[states])
        part = Layout(*rows, layout.weights, layout.available[states], *costs, radius, *kind)
        yield 0, last - first, finish(widen(part) if layout.wide else part), states


def lengths(layout: Any, states: slice = EVERYTHING) -> Any:
    """Most entries that each pair of some states may have, (n·A,)."""
    if not isinstance(layout, EventLayout):
        return layout.indptr[1:] - layout.indptr[:-1]
    model = layout.model
    if layout.wide:
        most = support_sizes(model)[states, None]
    elif layout.merged:
        most = model.lengths[states]
    else:
        n_live = layout.laws.n_live
        most = n_live[model.classes[states]] if model.classes.size else n_live
    return np.where(layout.available[states], most, 0).astype(np.int64).ravel()


def work(layout: Any) -> Any:
    """Probabilities before each state, (S + 1,), by which ranges are balanced."""
    A, N = layout.available.shape[1], layout.weights.size
    if not isinstance(layout, EventLayout):
        return np.ascontiguousarray(layout.indptr[::A]) * N
    per_state = N * A * layout.model.n_events
    return np.arange(layout.available.shape[0] + 1, dtype=np.int64) * per_state
