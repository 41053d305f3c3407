"""v as one sweep sees it: looked at once, and in descending order where states that are not listed matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.layout.top import in_order, least, places_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout


class Order(NamedTuple):
    """v as all actions see it, and in descending order for the unlisted states; empty unless the layout needs it.

    It may be that of the top alone (`drmdp.layout.top`): then all but `common` and `rank` are as long as the top.
    """

    common: Array  # (S,) u of each state
    states: Any  # (S,) int32, best for nature first
    u: Array  # (S,) (v − max v)/span, descending from 0
    sum1: Array  # (S + 1,) prefix sums of u
    sum2: Array  # (S + 1,) prefix sums of u²
    rank: Any  # (S,) int32, position of each state, S if it has none
    below: Any  # (S,) int32, how many u are in the parts before each of S equal parts of [−1, 0], from 0 down
    second: float  # largest u below 0, or 0
    level: float  # u at the end of the least top; −inf where that is all
    beyond: Any  # (1,) not 0 once somebody counted past the end of the top


class Point(NamedTuple):
    """v as one sweep sees it; see `point_at`."""

    value: Array  # (S,) without its level
    top: float  # max v
    span: float  # max v − min v
    order: Order

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""
        return bool(self.order.u.size < self.order.rank.size)

    @property
    def beyond(self) -> Any:
        """That of the order."""
        return self.order.beyond


def point_at(layout: Layout, value: Array, whole: bool = True) -> Point:
    """Look at v, (S,) over all states and without its level, once for a sweep; `whole`: put all states in order, not the top alone."""
    common = np.empty(value.size if layout.common else 0)
    top, span = _native.look(value, layout.discount if layout.common else 1.0, common) if value.size else (0.0, 0.0)
    return Point(value, top, span, _ordered(layout, value, common, whole))


def _ordered(layout: Layout, value: Array, common: Array, whole: bool) -> Order:
    """Sort v if unlisted states matter."""
    beyond = np.zeros(1, dtype=np.int64)
    if not (layout.common and layout.unlisted):
        return Order(common, NONE, EMPTY, EMPTY, EMPTY, NONE, NONE, 0.0, 0.0, beyond)
    states = in_order(value, None if whole else layout)
    if states.size < value.size and common[states[-1]] == 0.0:  # nobody knows what comes below the highest
        states = in_order(value)
    n = states.size
    u, sum1, sum2, below = np.empty(n), np.empty(n + 1), np.empty(n + 1), np.empty(n, dtype=np.int32)
    second = _native.fill_order(common, states, u, sum1, sum2, below)
    level = float(u[least(value.size) - 1]) if least(value.size) < value.size else -np.inf
    return Order(common, states, u, sum1, sum2, places_of(states, value.size), below, second, level, beyond)


EMPTY, NONE = np.zeros(0), np.zeros(0, dtype=np.int32)
