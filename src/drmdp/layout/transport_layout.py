"""Layouts of transport: a `Layout`, and for every source of mass the list of its targets, nearest
first.

Costs are divided by a power of two, which is exact, so that none exceeds 1. A list begins with the
source itself. Targets are positions in what the stakes are read from:

* where all actions have the same stakes (`common`), and where rows list every state: a list for
  each state, targets are states;
* otherwise a list for each listed entry, targets are entries of its pair: mass stays within the
  list of the pair.

The length of a list is that of the ground's row, so that memory is linear in the entries, times the
length of their lists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array, IntArray
from drmdp.core.storage import offsets
from drmdp.errors import InputError
from drmdp.layout.layout import Layout, choose
from drmdp.model import Model
from drmdp.sets.transport import Ground, check_fits

MOST = 2**27
"""Most numbers in lists."""


class Lists(NamedTuple):
    """Targets of mass."""

    ptr: Any  # (n + 1,) int64, where each list begins
    target: Any  # int32
    cost: Array  # ascending in each list, divided by the ground's scale


class Grounding(NamedTuple):
    """The data of transport in a `Layout`."""

    lists: Lists
    source: Any  # (nnz,) int32: the list of each entry
    unit: float  # the ground's scale
    free: bool  # mass can move at no cost


def lay_out(model: Model, ambiguity: Any) -> Layout:
    """The layout of a model and a set of transport."""
    check_fits(ambiguity, model)
    layout, ground = choose(model, ambiguity), ambiguity.ground
    everywhere = ambiguity.support == "all"
    shortest = model.facts.shortest if everywhere else model.facts.shortest_seen
    if layout.common or shortest == model.n_next or (everywhere and not layout.unlisted):
        return _joined(layout, by_state(ground), layout.indices, ground)
    near = NearestEntries(ground)
    _check_size(near.most(layout.indptr, layout.indices), ground)
    return near.joined(layout, near.places())


def in_pieces(
    model: Model, ambiguity: Any, common: bool
) -> Callable[[], Callable[[Layout], Layout]]:
    """A function that is called once for each range of states of a model of events, and returns the
    one that completes its pieces.
    """
    check_fits(ambiguity, model)
    ground = ambiguity.ground
    if common:
        lists = by_state(ground)
        return lambda: lambda part: _joined(part, lists, part.indices, ground)
    near = NearestEntries(ground)

    return lambda: partial(near.joined, places=near.places())


def _joined(layout: Layout, lists: Lists, source: Any, ground: Ground) -> Layout:
    return layout._replace(ground=Grounding(lists, source, ground.scale, ground.free))


def by_state(ground: Ground) -> Lists:
    """A list for each state."""
    S, near = ground.n_states, NearestEntries(ground)
    if ground.kind != "sparse":
        _check_size(S * S, ground)
    return near.lists(np.array([0, S]), np.arange(S, dtype=np.int32), near.places())


def _stored(ground: Ground) -> Lists:
    """A list for each state of a sparse ground, diagonal included; its costs are not divided."""
    S, costs = ground.n_states, ground.data
    row = np.repeat(np.arange(S), np.diff(costs.indptr))
    keep = (row != costs.indices) & np.isfinite(costs.data)
    row = np.concatenate([np.arange(S), row[keep]])
    target = np.concatenate([np.arange(S), costs.indices[keep]])
    cost = np.concatenate([np.full(S, -1.0), costs.data[keep]])
    order = np.lexsort((target, cost, row))
    ptr = offsets(np.bincount(row, minlength=S))
    return Lists(ptr, target[order].astype(np.int32), np.maximum(cost[order], 0.0))


class NearestEntries:
    """Lists for the entries of a layout, each within its pair."""

    def __init__(self, ground: Ground) -> None:
        self._ground, none = ground, np.zeros(0, dtype=np.int32)
        if ground.kind == "sparse":
            self._stored, self._at = _stored(ground), np.zeros((0, 0))
        else:
            self._stored = Lists(np.zeros(1, dtype=np.int64), none, np.zeros(0))
            dense = ground.kind == "dense"
            self._at = ground.data if dense else ground.data.reshape(ground.n_states, -1)

    def most(self, indptr: IntArray, indices: Any) -> int:
        """Most numbers in the lists of the entries of some pairs."""
        if self._ground.kind == "sparse":
            return int(np.diff(self._stored.ptr)[indices].sum())
        lengths = np.diff(indptr)
        return int((lengths * lengths).sum())

    def places(self) -> Any:
        """Workspace, for any number of layouts."""
        return np.full(self._ground.n_states, -1)

    def lists(self, indptr: IntArray, indices: Any, places: Any) -> Lists:
        """A list for each entry of some pairs."""
        most, ptr = self.most(indptr, indices), np.zeros(indices.size + 1, dtype=np.int64)
        out, dense = (
            Lists(ptr, np.empty(most, np.int32), np.empty(most)),
            self._ground.kind == "dense",
        )
        end = _native.fill_lists(places, indptr, indices, self._stored, self._at, dense, out)
        return Lists(out.ptr, out.target[:end].copy(), out.cost[:end] / self._ground.scale)

    def joined(self, layout: Layout, places: Any) -> Layout:
        """A layout with its lists."""
        lists = self.lists(layout.indptr, layout.indices, places)
        source = np.arange(layout.indices.size, dtype=np.int32)
        return _joined(layout, lists, source, self._ground)


def _check_size(numbers: int, ground: Ground) -> None:
    if numbers > MOST:
        size = f"{ground.words} makes lists of {numbers} costs, more than {MOST}"
        raise InputError(f"ground: {size}: give a sparse matrix of what is near")
