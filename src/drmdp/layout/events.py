"""The data of a model of events as compiled code reads it: a `Layout` for a few states at a time.

Rows are made in scratch memory (`drmdp.core.merging`), and whoever runs kernels over a range of states runs them over its pieces. States of a piece are
numbered from 0, next states as in the whole model, so that the kernels of stored models run unchanged, on the same rows in the same order: same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.event_laws import Laws, laws_of
from drmdp.layout.layout import Layout, lay_out, widen
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.reach import reached
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
    finish: Callable[[], Callable[[Layout], Any]] | None = None  # makes of a piece what the kernels of the set read
    wide: bool = False  # pairs list what any pair of their state has

    @property
    def longest(self) -> int:
        """Most entries that a pair can have."""
        if not self.merged:
            return int(self.laws.n_live.max())
        return int(reached(self.model).max()) if self.wide else self.model.facts.longest


def spread_out(model: Model, ball: AmbiguitySet) -> Any:
    """The layout of a model and a set: a `Layout`, or that of events, which is laid out piece by piece."""
    entry = entry_of(ball)
    if not isinstance(model, EventModel) or (entry.layout and (model.priced or not _by_pieces(entry))):
        return lay_out(model, ball)
    facts, S = model.facts, model.n_next
    if ball.moves == "events":
        used = model.weights > 0
        model, every = model.by_state if ball.support == "state" else (model, ball.support == "all")
        laws = laws_of(model.laws, model.weights, used, every)
        return EventLayout(
            model, laws, np.array(model.weights[used]), model.available, ball.radii(model), model.discount, False, False, False
        )  # fmt: skip
    if ball.support == "all" and facts.shortest < S and model.next_costs:
        return lay_out(model, ball)
    weights = np.array(model.weights[model.weights > 0])
    full = ball.support == "all" or facts.shortest == S
    unlisted = ball.support == "all" and not model.priced and bool(facts.shortest < S or facts.closed)
    common = not model.priced and full
    own, key = None, ("pieces", ball.listing)
    if entry.layout:
        own = model.kept[key] = model.kept.get(key) or _by_pieces(entry)(model, ball, common)
    return EventLayout(
        model, model.used, weights, model.available, ball.radii(model), model.discount, unlisted, common, True, own,
        ball.support == "state",
    )  # fmt: skip


def _by_pieces(entry: Any) -> Any:
    """What makes the data of a set piece by piece, if its own data can be made so."""
    return getattr(load(entry.layout.partition(":")[0]), "in_pieces", None)


EVERYTHING = slice(None)


def pieces(layout: Any, lo: int, hi: int) -> Iterator[tuple[int, int, Layout, slice]]:
    """Layouts that cover the states lo … hi − 1: first and last of their own states, and where these are among all.

    That of a stored model is one, and its states are numbered as all are. The others share memory: one is gone when the next is asked for.
    """
    if not isinstance(layout, EventLayout):
        yield lo, hi, layout, EVERYTHING
        return
    kind: Any = (layout.discount, layout.unlisted, layout.common)
    model, A, N = layout.model, layout.available.shape[1], layout.weights.size
    priced = model.priced or not layout.merged  # so that no pair is taken for one that lists every state
    finish = layout.finish() if layout.finish else lambda part: part
    for first, last, block, n in model.batches(layout.laws, lo, hi, layout.merged):
        indptr = block.indptr[: (last - first) * A + 1]
        parts = (
            indptr, block.indices[:n], block.data[: N * n], block.mean[:n], layout.weights, layout.available[first:last],
            np.ascontiguousarray(model._prices[first:last]), block.costs[:n] if priced else np.zeros(0), np.ascontiguousarray(layout.radius[first:last]),
        )  # fmt: skip
        part = Layout(*parts, *kind)
        yield 0, last - first, finish(widen(part) if layout.wide else part), slice(first, last)


def lengths(layout: Any) -> Any:
    """Most entries that each pair may have, (S·A,)."""
    if not isinstance(layout, EventLayout):
        return layout.indptr[1:] - layout.indptr[:-1]
    model, each = layout.model, layout.laws.n_live
    own = (
        reached(model)[:, None]
        if layout.wide
        else model.lengths
        if layout.merged
        else each[model.classes]
        if model.classes.size
        else np.broadcast_to(each, layout.available.shape)
    )
    return np.where(layout.available, own, 0).astype(np.int64).ravel()


def work(layout: Any) -> Any:
    """Probabilities before each state, (S + 1,), by which ranges are cut."""
    A, N = layout.available.shape[1], layout.weights.size
    if not isinstance(layout, EventLayout):
        return np.ascontiguousarray(layout.indptr[::A]) * N
    per_state = N * A * layout.model.n_events
    return np.arange(layout.available.shape[0] + 1, dtype=np.int64) * per_state
