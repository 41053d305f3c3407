"""The point v of a sweep: its range, and its descending order where unlisted states matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.layout.partial_sort import in_order, least, places_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout


class ValueOrder(NamedTuple):
    """v in descending order, for the unlisted states; empty unless the layout needs it.

    It may be the order of the top alone (`drmdp.layout.partial_sort`): then all but `common` and
    `rank` are as long as the top.
    """

    common: Array  # (S,) u of each state
    states: Any  # (S,) int32, best for nature first
    u: Array  # (S,) (v − max v)/span, descending from 0
    sum1: Array  # (S + 1,) prefix sums of u
    sum2: Array  # (S + 1,) prefix sums of u²
    rank: Any  # (S,) int32, position of each state, S if it has none
    # (S,) int32, number of u in the parts before each of S equal parts of [−1, 0], from 0 down
    below: Any
    second: float  # largest u below 0, or 0
    level: float  # u at the end of the least top; −inf where that is all
    beyond: Any  # (1,) not 0 once a routine counted past the end of the top


class SweepPoint(NamedTuple):
    """v of a sweep; see `point_at`."""

    value: Array  # (S,) without its level
    top: float  # max v
    span: float  # max v − min v
    order: ValueOrder

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""
        return bool(self.order.u.size < self.order.rank.size)

    @property
    def beyond(self) -> Any:
        """The flag of the order."""
        return self.order.beyond


def point_at(layout: Layout, value: Array, full: bool = True) -> SweepPoint:
    """The point of a sweep at v, (S,) over all states and without its level; `full`: sort all
    states, not the top alone.
    """
    common = np.empty(value.size if layout.common else 0)
    top, span = 0.0, 0.0
    if value.size:
        top, span = _native.look(value, layout.discount if layout.common else 1.0, common)
    return SweepPoint(value, top, span, _ordered(layout, value, common, full))


def _ordered(layout: Layout, value: Array, common: Array, full: bool) -> ValueOrder:
    """Sort v if unlisted states matter."""
    beyond = np.zeros(1, dtype=np.int64)
    if not (layout.common and layout.unlisted):
        return ValueOrder(common, NONE, EMPTY, EMPTY, EMPTY, NONE, NONE, 0.0, 0.0, beyond)
    S, states = value.size, in_order(value, None if full else layout)
    if states.size < S and common[states[-1]] == 0.0:  # the second largest is not in the top
        states = in_order(value)
    n = states.size
    u, below = np.empty(n), np.empty(n, dtype=np.int32)
    sums = np.empty(n + 1), np.empty(n + 1)
    second = _native.fill_order(common, states, u, *sums, below)
    level = float(u[least(S) - 1]) if least(S) < S else -np.inf
    rank = places_of(states, S)
    return ValueOrder(common, states, u, *sums, rank, below, second, level, beyond)


EMPTY, NONE = np.zeros(0), np.zeros(0, dtype=np.int32)
