"""v as one sweep sees it, and a state of the layout at it.

**Normalisation.** For state s, z_a(t) = c(s,a,t) + λ v(t). With top_a = max z_a over what nature may use, base = min_a top_a and
unit = the largest range of any z_a, the kernels work on

    u_a(t) = (z_a(t) − top_a)/unit ∈ [−1, 0],      cost_a = (top_a − base)/unit ≥ 0,      F(v) = base + unit·F̄,   F̄ ∈ [−1, 0],

which keeps full precision at any scale and level of costs and values, and near saturation where nature sends all mass to the top.
Plateaus: differences of u below `FLAT` are rounding and count as 0; this moves a value by at most FLAT·unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.core.compiled import FAST, INLINE, KERNEL, LEAN, njit
from drmdp.layout.top import in_order, least, places_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout

FLAT = 1e-13
TINY = 1e-280  # a smaller unit is 0


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
    top, span = _native.look(value, layout.discount, common) if value.size else (0.0, 0.0)
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


class Scratch(NamedTuple):
    """One normalised state; see `normalise`."""

    u: Array  # its entries
    cost: Array  # (A,)
    nominal: Array  # (A,)
    scale: Array  # (A, N), see `row_scales`
    ptr: Any  # (A + 1,) where each action's entries begin


def scratch(layout: Layout, start: int, stop: int, extra: int = 0) -> Scratch:
    """Work space for any state of a range, with `extra` entries beyond."""
    A, N = layout.available.shape[1], layout.weights.size
    most = int(np.diff(layout.indptr[start * A : stop * A + 1 : A]).max(initial=0))
    return Scratch(np.empty(most + extra), np.empty(A), np.empty(A), np.ones((A, N)), np.empty(A + 1, dtype=np.int64))


@njit(**INLINE)
def row_scales(layout, s, scale):
    """1/Σ of the stored rows of state s: float32 rows are renormalised in float64, float64 rows already are.

    reads   layout, s
    fills   scale (A, N), for float32 only
    """
    n_actions, n = layout.available.shape[1], layout.weights.size
    if layout.data.itemsize == 8:
        return
    for a in range(n_actions):
        lo, hi = layout.indptr[s * n_actions + a], layout.indptr[s * n_actions + a + 1]
        for i in range(n):
            total = 0.0
            for e in range(n * lo + i * (hi - lo), n * lo + (i + 1) * (hi - lo)):
                total += layout.data[e]
            scale[a, i] = 1.0 / total if total > 0.0 else 0.0


@njit(fastmath=FAST, **LEAN)
def _look_up(indices, mean, lo, hi, common, u, first):
    """Look up the common stakes of the listed states of a pair.

    reads   indices and mean from lo to hi, common, first (where the entries of its state begin)
    fills   u
    returns Σ ȳ u
    """
    total = 0.0
    e0, u0 = np.uint64(lo), np.uint64(lo - first)
    for j in range(np.uint64(hi - lo)):
        z = common[np.uint32(indices[e0 + j])]
        u[u0 + j] = z
        total += mean[e0 + j] * z
    return total


@njit(fastmath=FAST, **LEAN)
def _stakes(layout, value, lo, hi, z):
    """The stakes next costs + λ v of the listed states of a pair.

    reads   layout from lo to hi, value
    fills   z
    returns the highest and the lowest
    """
    highest = -np.inf
    lowest = np.inf
    for j in range(hi - lo):
        x = layout.discount * value[layout.indices[lo + j]]
        if layout.next_costs.size > 0:
            x += layout.next_costs[lo + j]
        z[j] = x
        highest = x if x > highest else highest
        lowest = x if x < lowest else lowest
    return highest, lowest


@njit(fastmath=FAST, **LEAN)
def _shift(z, mean, highest, shrink):
    """Turn stakes into u in place.

    reads   mean, highest, shrink
    fills   z
    returns Σ ȳ u
    """
    total = 0.0
    for j in range(z.size):
        x = (z[j] - highest) * shrink
        x = 0.0 if x > -FLAT else x
        z[j] = x
        total += mean[j] * x
    return total


@njit(**KERNEL)
def normalise(layout, point, s, state):
    """Normalise state s at v.

    Where all stakes of every action are equal, nature can change nothing: u is 0 and the unit is the range of the costs.

    reads   layout, point, s
    fills   state: u (its entries in order), cost (A,), inf where unavailable, and nominal V⁰_a = Σ_t ȳ_a(t) u_a(t) (A,)
    returns base, which is inf for a terminal state, and unit
    """
    u, cost, nominal = state.u, state.cost, state.nominal
    n_actions = layout.available.shape[1]
    first = layout.indptr[s * n_actions]
    unit = layout.discount * point.span if layout.common else 0.0
    base = np.inf
    for a in range(n_actions):
        cost[a] = np.inf
        nominal[a] = 0.0
        if layout.available[s, a]:
            highest = layout.discount * point.top
            if not layout.common:
                lo, hi = layout.indptr[s * n_actions + a], layout.indptr[s * n_actions + a + 1]
                highest, lowest = _stakes(layout, point.value, lo, hi, u[lo - first : hi - first])
                unit = max(unit, highest - lowest)
            cost[a] = layout.costs[s, a] + highest
            nominal[a] = highest
            base = min(base, cost[a])
    shrink = 1.0 / unit if unit > TINY else 0.0
    if unit <= TINY:
        for a in range(n_actions):
            if layout.available[s, a]:
                unit = max(unit, cost[a] - base)
        unit = max(unit, TINY)
    for a in range(n_actions):
        if layout.available[s, a]:
            lo, hi = layout.indptr[s * n_actions + a], layout.indptr[s * n_actions + a + 1]
            if layout.common:
                nominal[a] = _look_up(layout.indices, layout.mean, lo, hi, point.order.common, u, first)
            else:
                nominal[a] = _shift(u[lo - first : hi - first], layout.mean[lo:hi], nominal[a], shrink)
            cost[a] = (cost[a] - base) / unit
    return base, unit
