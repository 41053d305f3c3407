"""What the certificates of all metrics share: a state brought to the scale 1, sums that keep their digits, and margins.

Write ε = 2⁻⁵², so that a rounded operation is off by at most ε/2, relatively.

**Scale.** As in `drmdp.layout.point`, but from the raw data and without plateaus: z_a(t) = base + unit (cost_a + u_a(t)) with u ∈ [−1, 0] and
u = 0 at the top of each action. What rounding leaves out of this equation is at most `noise`, and a kernel's rows sum to 1, so that is also what
it moves any value by: base, (top − base)/unit and the value's level, which was taken off before, are each off by an ulp or two of
|base| + unit (cost_a + 1) + λ span. A unit below `TINY` counts as 0, and so does whatever underflows: `noise` contains TINY.

**Sums.** Entries are summed in blocks of `BLOCK`: a sum of n numbers is off by at most depth(n) ε/2 Σ|terms|. States that are not listed are summed
by tables over the states in descending order of u (`rises`),

    R₁(k) = Σ_{j<k} (u_j − u_{k−1}),    R₂(k) = Σ_{j<k} (u_j − u_{k−1})²,

which grow by terms of one sign and are right up to 8 ε, relatively, whatever k is. The sums needed follow without cancellation: with
d_j = d + t (u_j − u_{k−1}), d ≥ 0 the last of them, Σ d_j = t R₁ + k d and Σ d_j² = t² R₂ + 2 t d R₁ + k d².

**Data.** Rows and weights stand for what they are after division by their sums, which is done here; the mean kernel was made before, from rows
and weights that miss 1 by what rounding explains, 2 (K + 2) ε and 2 (N + 2) ε, and is off by at most 4 (K + N + 4) ε, relatively. Rows made of events are
such rows, however many events there are (`drmdp.core.merging`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.top import in_order, places_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout
    from drmdp.layout.memory import Memory

EPS = float(np.finfo(np.float64).eps)
TINY = 1e-280  # a smaller unit is 0
BLOCK = 64
EMPTY, NONE = np.zeros(0), np.zeros(0, dtype=np.int32)


class View(NamedTuple):
    """v as a proof sees it: without its level, and as all actions see it, (v − max v)/span; what the layout does not need is empty."""

    value: Array  # (S,)
    top: float  # largest value
    span: float  # largest − smallest
    u: Array  # (S,) by state
    states: Any  # (S,) in descending order of v, or the top of them
    place: Any  # (S,) of each state in that order, S if it has none
    down: Array  # (S,) u in that order
    rise: Array  # (S + 1,) R₁
    rise2: Array  # (S + 1,) R₂
    beyond: Any  # (1,) not 0 once somebody counted past the end of the top

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""
        return bool(self.down.size < self.place.size)


class Claim(NamedTuple):
    """What is claimed of a sweep, and what it is claimed for."""

    policy: Array  # (S, A)
    memory: Memory
    every: bool  # each kernel has a budget of its own
    fixed: bool  # L is for the policy, not for the best action


class Found(NamedTuple):
    """What is proved."""

    low: Array  # (S,) L
    high: Array  # (S,) U
    share: Array  # (S, N) of nature's move that is surely allowed


class Work(NamedTuple):
    """Work space for a state of K entries."""

    u: Array  # (K,)
    cost: Array  # (A,)
    scale: Array  # (A, N) 1/Σ of each row
    worth: Array  # (A,) lower bounds on the actions' values under nature's kernels, without cost
    own: Array  # (A, N) ŷ·u
    gain: Array  # (A, N)
    kernels: Array  # (4, N)
    actions: Array  # (4, A)
    sums: Array  # (9,)
    reals: Array  # (3, K)
    places: Any  # (4, K)


def work_space(layout: Layout, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    at = layout.indptr[start * A : stop * A + 1 : A]
    K = int(np.maximum.reduce(at[1:] - at[:-1])) if stop > start else 0
    return Work(
        np.empty(K), np.empty(A), np.empty((A, N)), np.empty(A), np.empty((A, N)), np.empty((A, N)), np.empty((4, N)),
        np.zeros((4, A)), np.empty(9), np.empty((3, K)), np.empty((4, K), dtype=np.int64),
    )  # fmt: skip


def view(layout: Layout, value: Array, whole: bool = True) -> View:
    """Normalise v where all actions see the same, and sort it, or its top, if states that are not listed matter."""
    beyond = np.zeros(1, dtype=np.int64)
    u = np.empty(value.size if layout.common else 0)
    top, span = _native.judge_look(value, layout.discount, u)
    if not (layout.common and layout.unlisted):
        return View(value, top, span, u, NONE, NONE, EMPTY, EMPTY, EMPTY, beyond)
    states = in_order(value, None if whole else layout)
    down = u[states]
    rise, rise2 = rises(down)
    return View(value, top, span, u, states, places_of(states, value.size), down, rise, rise2, beyond)


def rises(down: Array) -> tuple[Array, Array]:
    """R₁ and R₂ of the module for numbers in descending order, (S + 1,) each."""
    rise, rise2 = np.empty(down.size + 1), np.empty(down.size + 1)
    _native.judge_rises(down, rise, rise2)
    return rise, rise2


@njit(**INLINE)
def add(total, lost, x):
    """Add x to a sum that keeps what it loses.

    reads   total, lost, x
    returns total + x as rounded, and what all additions lost so far
    """
    new = total + x
    own = new - total
    return new, lost + ((total - (new - own)) + (x - own))


@njit(**LEAN)
def depth(n):
    """Most roundings that a number meets in a sum of n by blocks.

    reads   n
    returns how many
    """
    return min(n, BLOCK) + n // BLOCK + 1


@njit(**LEAN)
def row_sum(data, at, n):
    """Sum of n numbers from `at` on, by blocks.

    reads   data, at, n
    returns the sum
    """
    total = 0.0
    for lo in range(at, at + n, BLOCK):
        part = 0.0
        for e in range(lo, min(lo + BLOCK, at + n)):
            part += data[e]
        total += part
    return total


@njit(**LEAN)
def dot(data, at, u, first, n):
    """Σ data·u over n entries, by blocks.

    reads   data (from `at` on), at, u (from `first` on), first, n
    returns the sum
    """
    total = 0.0
    for lo in range(0, n, BLOCK):
        part = 0.0
        for j in range(lo, min(lo + BLOCK, n)):
            part += data[at + j] * u[first + j]
        total += part
    return total


@njit(**LEAN)
def prefix(view, t, tau, low):
    """How many u have (t u − τ) − low > 0 as computed, which never rises along the descending u.

    reads   view.down, t ≥ 0, tau, low
    fills   view.beyond, if there may be more of them below the top that is in order
    returns the number
    """
    down = view.down
    lo, hi = 0, down.size
    while lo < hi:
        mid = (lo + hi) // 2
        if (t * down[mid] - tau) - low > 0.0:
            lo = mid + 1
        else:
            hi = mid
    if lo == down.size and lo < view.place.size:
        view.beyond[0] = 1
    return lo


@njit(**LEAN)
def normalise(layout, view, s, work):
    """Bring state s to the scale 1.

    reads   layout, view, s
    fills   work.u, work.cost (inf for actions that are not available)
    returns base and unit; base is inf if the state is terminal
    """
    A = work.cost.size
    u, cost = work.u, work.cost
    first = layout.indptr[s * A]
    unit = layout.discount * view.span if layout.common else 0.0
    base = np.inf
    for a in range(A):
        cost[a] = np.inf
        if not layout.available[s, a]:
            continue
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        highest = layout.discount * view.top
        if not layout.common:
            listed, own = layout.indices[lo:hi], u[lo - first : hi - first]
            highest, lowest = -np.inf, np.inf
            for j in range(own.size):
                z = layout.discount * view.value[np.uint32(listed[j])]
                if layout.next_costs.size > 0:
                    z += layout.next_costs[lo + j]
                own[j] = z
                highest, lowest = max(highest, z), min(lowest, z)
            unit = max(unit, highest - lowest)
            for j in range(own.size):
                own[j] -= highest
        cost[a] = layout.costs[s, a] + highest
        base = min(base, cost[a])
    flat = not unit > TINY
    if flat:
        for a in range(A):
            if layout.available[s, a]:
                unit = max(unit, cost[a] - base)
        unit = max(unit, TINY)
    for a in range(A):
        if layout.available[s, a]:
            cost[a] = (cost[a] - base) / unit
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            if layout.common:
                for e in range(lo, hi):
                    u[e - first] = view.u[layout.indices[e]]
            else:
                own = u[lo - first : hi - first]
                for j in range(own.size):
                    own[j] = 0.0 if flat else own[j] / unit
    return base, unit


@njit(**LEAN)
def weigh_rows(layout, s, a, work):
    """Find the scales of an action's rows and ŷ·u.

    reads   layout, s, a, work.u
    fills   work.scale[a], work.own[a]
    """
    A, N = work.scale.shape
    lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
    for i in range(N):
        at = N * lo + i * (hi - lo)
        total = row_sum(layout.data, at, hi - lo)
        work.scale[a, i] = 1.0 / total if total > 0.0 else 0.0
        work.own[a, i] = work.scale[a, i] * dot(layout.data, at, work.u, lo - layout.indptr[s * A], hi - lo)


@njit(**INLINE)
def finish(s, base, unit, above, layout, view, claim, bounds, work):
    """L and U of state s in units of cost, noise included, from the actions' worths and the bound `above` on Σ_a x_a y_a·u.

    reads   s, base, unit, above, layout, view.span, claim.policy, claim.fixed, work.cost, work.worth
    fills   bounds.low[s], bounds.high[s]; infinite where nothing is proved
    """
    cost, worth, x = work.cost, work.worth, claim.policy[s]
    low, high = bounds.low, bounds.high
    given, free, noise, least, mean, sound = 0.0, 0.0, 0.0, np.inf, 0.0, True
    more = (cost.size + 4) * EPS
    for a in range(cost.size):
        if not layout.available[s, a]:
            continue
        off = 4.0 * EPS * (abs(base) + unit * (cost[a] + 1.0) + layout.discount * view.span) + TINY
        below = unit * (cost[a] + worth[a]) - off
        least = min(least, below)
        sound = sound and math.isfinite(below)
        if x[a] > 0.0:
            given += x[a]
            free += x[a] * cost[a]
            noise += x[a] * off
            mean += x[a] * (below - more * (abs(below) + off))
    high[s] = base + (unit * (free + above + more * (free + abs(above))) + (1.0 + more) * noise) / given
    low[s] = base + (mean / given if claim.fixed else least)
    if not (sound and math.isfinite(low[s])):
        low[s] = -np.inf
    if not math.isfinite(high[s]):
        high[s] = np.inf
