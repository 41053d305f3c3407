"""The data as the exact kernels read it, and what they need to know about v.

Pair k = s·A + a owns the entries indptr[k] … indptr[k+1] − 1 (its K listed next states) and the (N, K) block of `data` at
N·indptr[k]; kernels of weight 0 are left out. Three layouts cover every model and ball:

* support "observed": the listed states are all that nature may use;
* support "all", costs (S, A): unlisted states have probability 0 in every kernel and the same stakes for every action, so they
  enter through prefix sums over v in descending order (`Order`), never one by one: a row costs O(K + log S);
* support "all", costs (S, A, S): stakes differ per action, so every state is listed.

**Normalisation.** For state s, z_a(t) = c(s,a,t) + λ v(t). With top_a = max z_a over what nature may use, base = min_a top_a and
unit = the largest range of any z_a, the kernels work on

    u_a(t) = (z_a(t) − top_a)/unit ∈ [−1, 0],      cost_a = (top_a − base)/unit ≥ 0,      F(v) = base + unit·F̄,   F̄ ∈ [−1, 0],

which keeps full precision at any scale and level of costs and values, and near saturation where nature sends all mass to the top.
Plateaus: differences of u below `FLAT` are rounding and count as 0; this moves a value by at most FLAT·unit.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, KERNEL, LEAN
from drmdp.layout.sorting import rank
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import Kept

FAST = {"reassoc", "contract", "nsz", "arcp"}  # vectorised sums; NaN and inf keep their meaning
FLAT = 1e-13
TINY = 1e-280  # a smaller unit is 0
NEARLY, LARGE = 0.75, 2**24  # rows as full as this are worth filling up, if no more numbers are needed than that


class Layout(NamedTuple):
    """Static data of a (model, ball)."""

    indptr: Any  # (S·A + 1,) int64
    indices: Any  # (nnz,) int32
    data: Any  # (N·nnz,) float64 or float32
    mean: Array  # (nnz,)
    weights: Array  # (N,) positive
    available: Any  # (S, A) bool
    costs: Array  # (S, A); zeros where next_costs is used
    next_costs: Array  # (nnz,), or empty
    radius: Array  # (S,)
    discount: float
    unlisted: bool  # nature may use states that are not listed
    common: bool  # all actions have the same stakes, up to their costs


class Order(NamedTuple):
    """v as all actions see it, and in descending order for the unlisted states; empty unless the layout needs it."""

    common: Array  # (S,) u of each state
    states: Any  # (S,) int32, best for nature first
    u: Array  # (S,) (v − max v)/span, descending from 0
    sum1: Array  # (S + 1,) prefix sums of u
    sum2: Array  # (S + 1,) prefix sums of u²
    rank: Any  # (S,) int32, position of each state
    below: Any  # (S,) int32, how many u are in the parts before each of S equal parts of [−1, 0], from 0 down
    second: float  # largest u below 0, or 0


class Memory(NamedTuple):
    """What a kernel leaves behind for the next sweep, for nature's answer and for the certificate; see each family."""

    by_action: Array  # (S, A)
    by_kernel: Array  # (S, N) or (S, 0)
    by_row: Array  # (S, A, N)


def empty_memory(S: int, A: int, N: int, keeps: Kept, real: Any) -> Memory:
    """Memory before the first sweep; `real` is the type of the data."""
    rows = (S, A, N) if keeps.by_row else (S, 0, 0)
    kept = real if keeps.rounded else np.float64
    return Memory(np.zeros((S, A)), np.ones((S, N if keeps.by_kernel else 0)), np.zeros(rows, dtype=kept))


class Out(NamedTuple):
    """What a sweep finds; v is without its level."""

    upper: Array  # (S,) U ≥ F^x(v)
    lower: Array  # (S,) L ≤ F(v)
    policy: Array  # (S, A); read as a warm start by some kernels
    passes: Array  # (S,) passes over the candidate rows


_KEPT: WeakKeyDictionary[Model, dict[str, Layout]] = WeakKeyDictionary()
"""Layouts by model and support."""


def lay_out(model: Model, ball: AmbiguitySet) -> Layout:
    """Choose the layout for a model and a set; shares the model's arrays wherever it can. It is kept as long as the model is."""
    kept = _KEPT.setdefault(model, {})
    if ball.support not in kept:
        kept[ball.support] = _uniform(_choose(model, ball))
    return at_radius(kept[ball.support], model, ball)


def lay_out_all(model: Model, ball: AmbiguitySet) -> Layout:
    """List every next state that nature may use, zeros included: the layout of iterates that hold all her kernels."""
    layout = lay_out(model, ball)
    if not layout.unlisted:
        return layout
    return _uniform(_list_all(model, ball))


def fill_up(model: Model, ball: AmbiguitySet, layout: Layout) -> Layout:
    """The same for many sweeps: where rows are nearly full, reading the zeros takes a quarter less time than finding the states between them.

    It takes as long as some ten sweeps save.
    """
    whole = model.n_states * np.count_nonzero(model.available)
    if not layout.unlisted or layout.indices.size < NEARLY * whole or layout.weights.size * whole > LARGE:
        return layout
    full = _uniform(_list_all(model, ball))
    _KEPT.setdefault(model, {})[ball.support] = full
    return full


def _uniform(layout: Layout) -> Layout:
    """Plain and read-only arrays, so that a kernel is compiled once and not for each mixture; kernels make weights of their own."""
    parts: Any = (_plain(part) if isinstance(part, np.ndarray) else part for part in layout)
    return Layout(*parts)._replace(weights=np.array(layout.weights))


def at_radius(layout: Layout, model: Model, ball: AmbiguitySet) -> Layout:
    """The same layout for another radius."""
    return layout._replace(radius=_plain(_radius(model, ball)))


def _plain(array: Any) -> Any:
    view = np.asarray(array).view(np.ndarray)
    view.setflags(write=False)
    return view


def _choose(model: Model, ball: AmbiguitySet) -> Layout:
    blocks, used = model.blocks, model.weights > 0
    weights = np.ascontiguousarray(model.weights[used])
    short = bool((blocks.lengths < model.n_states)[model.available.ravel()].any())
    if ball.support == "all" and short and model.next_costs:
        return _list_all(model, ball)
    data, indptr, indices, mean = blocks.data, blocks.indptr, blocks.indices, model.mean
    next_costs = model.listed_costs() if model.next_costs else np.zeros(0)
    if not used.all():
        data = np.ascontiguousarray(_rows(blocks, used))
        if ball.support == "observed":
            indptr, indices, data, mean, next_costs = _only_observed(model, data, weights.size, next_costs)
    costs = np.zeros(model.available.shape) if model.next_costs else model.costs
    unlisted = ball.support == "all" and not model.next_costs and bool((np.diff(indptr) < model.n_states).any())
    full = bool((np.diff(indptr)[model.available.ravel()] == model.n_states).all())
    return Layout(
        indptr, indices, data, mean, weights, model.available, costs, next_costs, _radius(model, ball),
        model.discount, unlisted, not model.next_costs and (ball.support == "all" or full),
    )  # fmt: skip


def _radius(model: Model, ball: AmbiguitySet) -> Array:
    return np.ascontiguousarray(ball.radii(model))


def _rows(blocks: Any, used: Any) -> Array:
    """Data without the kernels of weight 0."""
    keep = np.repeat(np.tile(used, blocks.lengths.size), np.repeat(blocks.lengths, used.size))
    return np.asarray(blocks.data[keep])


def _only_observed(model: Model, data: Array, N: int, next_costs: Array) -> tuple[Any, ...]:
    """Drop listed states that only kernels of weight 0 reach."""
    blocks = model.blocks
    lengths = blocks.lengths
    pair = np.repeat(np.arange(lengths.size), lengths)
    keep = model.mean > 0
    new_lengths = np.bincount(pair[keep], minlength=lengths.size)
    first = np.repeat(N * blocks.indptr[:-1], N * lengths)  # of each number's block
    column = (np.arange(data.size) - first) % np.repeat(np.maximum(lengths, 1), N * lengths)
    entry = np.repeat(blocks.indptr[:-1], N * lengths) + column
    indptr = np.concatenate([[0], np.cumsum(new_lengths)]).astype(np.int64)
    costs = next_costs[keep] if next_costs.size else next_costs
    return indptr, blocks.indices[keep], data[keep[entry]], model.mean[keep], costs


def _list_all(model: Model, ball: AmbiguitySet) -> Layout:
    """Every state listed, for support "all"."""
    S, A = model.n_states, model.n_actions
    weights = np.ascontiguousarray(model.weights[model.weights > 0])
    lengths = np.where(model.available.ravel(), S, 0)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    pairs = model.available.reshape(-1)
    dense = model.blocks.dense(0, S)
    if weights.size < model.n_kernels:
        dense = dense[:, :, model.weights > 0]
    dense = dense.reshape(S * A, weights.size, S)
    if not pairs.all():
        dense = dense[pairs]
    mean = (weights @ dense).ravel()
    indices = np.tile(np.arange(S, dtype=np.int32), int(pairs.sum()))
    costs, next_costs = np.asarray(model.costs), np.zeros(0)
    if model.next_costs:
        costs, next_costs = np.zeros((S, A)), costs.reshape(S * A, S)[pairs].ravel()
    return Layout(
        indptr, indices, dense.ravel(), mean, weights, model.available, costs, next_costs,
        _radius(model, ball), model.discount, False, not model.next_costs,
    )  # fmt: skip


def order_of(layout: Layout, value: Array) -> Order:
    """Normalise v once per sweep where all actions see the same, and sort it if unlisted states matter."""
    empty, none = np.zeros(0), np.zeros(0, dtype=np.int32)
    if not layout.common:
        return Order(empty, none, empty, empty, empty, none, none, 0.0)
    top = value.max()
    span = top - value.min()
    common = (value - top) / span if layout.discount * span > TINY else np.zeros(value.size)
    common[common > -FLAT] = 0.0
    if not layout.unlisted:
        return Order(common, none, empty, empty, empty, none, none, 0.0)
    states = np.argsort(-value, kind="stable").astype(np.int32)
    u = common[states]
    position = np.empty_like(states)
    position[states] = np.arange(states.size, dtype=np.int32)
    prefix = np.zeros((2, u.size + 1))
    np.cumsum(u, out=prefix[0, 1:])
    np.cumsum(u * u, out=prefix[1, 1:])
    part = np.minimum((u * -u.size).astype(np.int32), u.size - 1)
    below = np.searchsorted(part, np.arange(u.size, dtype=np.int32)).astype(np.int32)
    second = float(u[min(np.count_nonzero(u == 0.0), u.size - 1)])
    return Order(common, states, u, prefix[0], prefix[1], position, below, second)


class Scratch(NamedTuple):
    """Work space of one state."""

    u: Array  # its entries
    cost: Array  # (A,)
    nominal: Array  # (A,)
    scale: Array  # (A, N), see `row_scales`
    ptr: Any  # (A + 1,) where each action's entries begin


def scratch(layout: Layout, start: int, stop: int, more: int = 0) -> Scratch:
    """Work space for any state of a range, with room for more entries."""
    A, N = layout.available.shape[1], layout.weights.size
    most = int(np.diff(layout.indptr[start * A : stop * A + 1 : A]).max(initial=0))
    return Scratch(np.empty(most + more), np.empty(A), np.empty(A), np.ones((A, N)), np.empty(A + 1, dtype=np.int64))


@njit(**INLINE)
def count_above(order, t, tau):  # type: ignore[no-untyped-def]
    """#{t u > τ}, galloping from where the part of τ/t begins."""
    u = order.u
    n = u.size
    part = -n * tau / t
    lo = np.int64(order.below[np.int64(part)]) if part >= 0.0 and part < n else 0
    hi = lo
    step = 1
    if lo < n and t * u[lo] > tau:
        while hi < n and t * u[hi] > tau:
            lo = hi + 1
            hi += step
            step *= 2
        hi = min(hi, n)
    else:
        while lo > 0 and not t * u[lo - 1] > tau:
            hi = lo - 1
            lo -= step
            step *= 2
        lo = max(lo, 0)
    while lo < hi:
        mid = (lo + hi) // 2
        if t * u[mid] > tau:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(**INLINE)
def places(order, unlisted, listed, u, key, place, down):  # type: ignore[no-untyped-def]
    """Place of each listed state among all by descending u, and the listed states in that order; key is work space."""
    for j in range(u.size):
        key[j] = order.rank[listed[j]] if unlisted else -u[j]
    rank(key[: u.size], down, place)
    for n in range(u.size):
        place[down[n]] = key[down[n]] if unlisted else n


@njit(**INLINE)
def row_scales(layout, s, scale):  # type: ignore[no-untyped-def]
    """1/Σ of the stored rows of state s, (A, N): float32 rows are renormalised in float64, float64 rows already are."""
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
def _look_up(indices, mean, lo, hi, common, u, first):  # type: ignore[no-untyped-def]
    """Fill u with the common stakes of the listed states; returns Σ ȳ u."""
    total = 0.0
    e0, u0 = np.uint64(lo), np.uint64(lo - first)
    for j in range(np.uint64(hi - lo)):
        z = common[np.uint32(indices[e0 + j])]
        u[u0 + j] = z
        total += mean[e0 + j] * z
    return total


@njit(fastmath=FAST, **LEAN)
def _stakes(layout, value, lo, hi, z):  # type: ignore[no-untyped-def]
    """Z = next costs + λ v at the listed states; returns its extremes."""
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
def _shift(z, mean, highest, shrink):  # type: ignore[no-untyped-def]
    """Turn z into u in place; returns Σ ȳ u."""
    total = 0.0
    for j in range(z.size):
        x = (z[j] - highest) * shrink
        x = 0.0 if x > -FLAT else x
        z[j] = x
        total += mean[j] * x
    return total


@njit(**KERNEL)
def prologue(layout, order, value, top, span, s, u, cost, nominal):  # type: ignore[no-untyped-def]
    """Normalise state s: fill u (its entries in order), cost (A,), nominal V⁰_a = Σ_t ȳ_a(t) u_a(t) (A,); return base, unit.

    `span` and `top` are those of v over all states. Where all stakes of every action are equal, nature can change nothing: u is 0 and
    the unit is the range of the costs. For a terminal state base is inf.
    """
    n_actions = layout.available.shape[1]
    first = layout.indptr[s * n_actions]
    unit = layout.discount * span if layout.common else 0.0
    base = np.inf
    for a in range(n_actions):
        cost[a] = np.inf
        nominal[a] = 0.0
        if layout.available[s, a]:
            highest = layout.discount * top
            if not layout.common:
                lo, hi = layout.indptr[s * n_actions + a], layout.indptr[s * n_actions + a + 1]
                highest, lowest = _stakes(layout, value, lo, hi, u[lo - first : hi - first])
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
                nominal[a] = _look_up(layout.indices, layout.mean, lo, hi, order.common, u, first)
            else:
                nominal[a] = _shift(u[lo - first : hi - first], layout.mean[lo:hi], nominal[a], shrink)
            cost[a] = (cost[a] - base) / unit
    return base, unit
