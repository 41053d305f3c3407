"""The data of transport: those of a `Layout`, and for every source of mass the list of where it can go, nearest first.

Costs are divided by a power of two, which is exact, so that none exceeds 1. A list begins with the source itself. Targets are positions in what the
stakes are read from:

* where all actions have the same stakes (`common`), and where rows list every state: a list for each state, targets are states;
* otherwise a list for each listed entry, targets are entries of its pair: mass stays within what the pair lists.

The length of a list is that of the ground's row, so that memory is linear in the entries, times the length of their lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.layout.layout import Layout, choose
from drmdp.model import Model
from drmdp.sets.ground import Ground
from drmdp.sets.transport import check_fits

MOST = 2**27
"""Numbers that lists may have."""
BLOCK = 2**20


class Lists(NamedTuple):
    """Where mass can go."""

    ptr: Any  # (n + 1,) int64, where each list begins
    target: Any  # int32
    cost: Array  # ascending in each list, divided by the ground's scale


class Grounding(NamedTuple):
    """What a `Layout` has beside its arrays."""

    lists: Lists
    source: Any  # (nnz,) int32: the list of each entry
    unit: float  # the ground's scale
    free: bool  # mass can move at no cost


def in_unit(layout: Layout) -> Layout:
    """The same with the radius in the unit of the lists."""
    own = layout.ground
    return layout._replace(radius=layout.radius / own.unit, ground=own._replace(unit=1.0))


def besides(layout: Layout) -> tuple[float, Lists, Any, bool]:
    """What routines of `drmdp._native` are told of it beside a layout."""
    own = layout.ground
    return math.nan, own.lists, own.source, own.free


def lay_out(model: Model, ball: Any) -> Layout:
    """The layout of a model and a ball of transport."""
    check_fits(ball, model)
    layout, ground = choose(model, ball), ball.ground
    seen = model.facts.shortest if ball.support == "all" else model.facts.shortest_seen
    if (
        layout.common or seen == model.n_next or (ball.support == "all" and not layout.unlisted)
    ):  # every state is listed
        return _joined(layout, by_state(ground), layout.indices, ground)
    near = Near(ground)
    _check_size(near.most(layout), ground)
    return _joined(layout, near.lists(layout, near.places()), _numbered(layout), ground)


def in_pieces(model: Model, ball: Any, common: bool) -> Callable[[], Callable[[Layout], Layout]]:
    """For a model of events: what is called once for each range of states, and gives what makes the data of its pieces, one after the other."""
    check_fits(ball, model)
    ground = ball.ground
    if common:
        lists = by_state(ground)
        return lambda: lambda part: _joined(part, lists, part.indices, ground)
    near = Near(ground)

    def begin() -> Callable[[Layout], Layout]:
        where = near.places()
        return lambda part: _joined(part, near.lists(part, where), _numbered(part), ground)

    return begin


def _joined(layout: Layout, lists: Lists, source: Any, ground: Ground) -> Layout:
    return layout._replace(ground=Grounding(lists, source, ground.scale, ground.free))


def _numbered(layout: Layout) -> Any:
    return np.arange(layout.indices.size, dtype=np.int32)


def by_state(ground: Ground) -> Lists:
    """A list for each state."""
    S = ground.n_states
    if ground.kind == "sparse":
        return _stored(ground)
    _check_size(S * S, ground)
    lengths, targets, costs = [], [], []
    for lo in range(0, S, max(1, BLOCK // S)):
        block = np.arange(lo, min(lo + max(1, BLOCK // S), S))
        near = ground.between(block, np.arange(S))
        near[np.arange(block.size), block] = -1.0  # first, whatever else costs nothing
        order = np.argsort(near, axis=1, kind="stable")
        near = np.maximum(np.take_along_axis(near, order, axis=1), 0.0)
        there = np.isfinite(near)
        lengths.append(there.sum(axis=1))
        targets.append(order[there])
        costs.append(near[there])
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return Lists(ptr, np.concatenate(targets).astype(np.int32), np.concatenate(costs) / ground.scale)


def _stored(ground: Ground) -> Lists:
    """The same of a sparse ground, diagonal included."""
    S, costs = ground.n_states, ground.data
    row = np.repeat(np.arange(S), np.diff(costs.indptr))
    keep = (row != costs.indices) & np.isfinite(costs.data)
    row = np.concatenate([np.arange(S), row[keep]])
    target = np.concatenate([np.arange(S), costs.indices[keep]])
    cost = np.concatenate([np.full(S, -1.0), costs.data[keep]])
    order = np.lexsort((target, cost, row))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=S))]).astype(np.int64)
    return Lists(ptr, target[order].astype(np.int32), np.maximum(cost[order], 0.0) / ground.scale)


class Near:
    """Lists for the listed entries of a layout, each within its pair."""

    def __init__(self, ground: Ground) -> None:
        self._ground, none = ground, np.zeros(0, dtype=np.int32)
        if ground.kind == "sparse":
            self._stored, self._at = _stored(ground), np.zeros((0, 0))
        else:
            self._stored = Lists(np.zeros(1, dtype=np.int64), none, np.zeros(0))
            self._at = ground.data if ground.kind == "dense" else ground.data.reshape(ground.n_states, -1)

    def most(self, layout: Layout) -> int:
        """Numbers that the lists have at most."""
        if self._ground.kind == "sparse":
            return int(np.diff(self._stored.ptr)[layout.indices].sum())
        lengths = np.diff(layout.indptr)
        return int((lengths * lengths).sum())

    def places(self) -> Any:
        """Work space, for any number of layouts."""
        return np.full(self._ground.n_states, -1)

    def lists(self, layout: Layout, where: Any) -> Lists:
        """Those of a layout."""
        most = self.most(layout)
        out = Lists(np.zeros(layout.indices.size + 1, dtype=np.int64), np.empty(most, dtype=np.int32), np.empty(most))
        kind = self._ground.kind
        end = _native.fill_lists(where, layout.indptr, layout.indices, self._stored, self._at, kind == "dense", out)
        unit = 1.0 if kind == "sparse" else self._ground.scale  # stored lists are divided already
        return Lists(out.ptr, out.target[:end].copy(), out.cost[:end] / unit)


def _check_size(numbers: int, ground: Ground) -> None:
    if numbers > MOST:
        raise InputError(
            f"ground: {ground.words} makes lists of {numbers} costs, more than {MOST}: give a sparse matrix of what is near"
        )
