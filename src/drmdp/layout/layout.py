"""The data as compiled code reads it.

Pair k = s·A + a owns the entries indptr[k] … indptr[k+1] − 1 (its K listed next states) and the (N, K) block of `data` at
N·indptr[k]; kernels of weight 0 are left out. Four layouts cover every model and ball:

* support "observed": the listed states are all that nature may use;
* support "state": the same, and every pair of a state lists what any of them has, with zeros (`widen`);
* support "all", costs (S, A): unlisted states have probability 0 in every kernel and the same stakes for every action, so they
  enter through prefix sums over v in descending order (`Order`), never one by one: a row costs O(K + log S);
* support "all", costs (S, A, S) or discounts (S, A): stakes differ per action, so every state is listed.

A layout may hold a range of the states only. Rows are then numbered from 0 in the range, and columns as in the whole model: `indices`
point into a v of all states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.unions import moved, shared
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.reach import costs_of
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load

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
    discount: Any  # a number, or (S·A,)
    unlisted: bool  # nature may use states that are not listed
    common: bool  # all actions have the same stakes, up to their costs
    ground: Any = None  # what transport has besides (`drmdp.layout.grounded.Grounding`)


def lay_out(model: Model, ball: AmbiguitySet) -> Layout:
    """Choose the layout for a model and a set; shares the model's arrays wherever it can. It is kept as long as the model is."""
    if ball.moves == "events":
        raise InputError(f"{ball.short}: this needs kernels, and nature moves laws of events here")
    model.check_unchanged()
    kept, key = model.kept, ("layout", ball.listing)
    if key not in kept:
        own = entry_of(ball).layout
        kept[key] = load(own)(model, ball) if own else choose(model, ball)
    asked = (ball.kin, ball.radius) if type(ball.radius) is float else id(ball)
    last: Any = kept.get("last layout")
    if last is None or last[0] != asked:
        last = kept["last layout"] = asked, at_radius(kept[key], model, ball), ball  # which keeps its number
    layout: Layout = last[1]
    return layout


def lay_out_all(model: Model, ball: AmbiguitySet) -> Layout:
    """List every next state that nature may use, zeros included: the layout of iterates that hold all her kernels."""
    layout = lay_out(model, ball)
    if not layout.unlisted:
        return layout
    return _list_all(model, ball)


def fill_up(model: Model, ball: AmbiguitySet, layout: Layout) -> Layout:
    """The same for many sweeps: where rows are nearly full, reading the zeros takes a quarter less time than finding the states between them.

    It takes as long as some ten sweeps save.
    """
    whole = model.n_next * model.facts.pairs
    if (
        entry_of(ball).layout
        or not layout.unlisted
        or model.facts.entries < NEARLY * whole
        or layout.weights.size * whole > LARGE
    ):
        return layout
    key = "full layout", ball.listing
    if key not in model.kept:
        model.kept[key] = _list_all(model, ball)
    return at_radius(model.kept[key], model, ball)


def at_radius(layout: Layout, model: Model, ball: AmbiguitySet) -> Layout:
    """The same layout for another radius."""
    return layout._replace(radius=_radius(model, ball))


def choose(model: Model, ball: AmbiguitySet) -> Layout:
    """The layout of a model and a set that moves mass within its support."""
    blocks, used = model.blocks, model.weights > 0
    weights = np.ascontiguousarray(model.weights[used])
    facts, S = model.facts, model.n_next
    alike = not (model.next_costs or model.discounts is not None)
    if ball.support == "all" and facts.shortest < S and not alike:
        return _list_all(model, ball)
    data, indptr, indices, mean = blocks.data, blocks.indptr, blocks.indices, model.mean
    next_costs = model.listed_costs() if model.next_costs else np.zeros(0)
    if not used.all():
        data = np.ascontiguousarray(_rows(blocks, used))
        if ball.support != "all":
            indptr, indices, data, mean, next_costs = _only_observed(model, data, weights.size, next_costs)
    costs = np.zeros(model.available.shape) if model.next_costs else model.costs
    unlisted = ball.support == "all" and alike and bool(facts.shortest < S or facts.closed)
    full = (facts.shortest if ball.support == "all" else facts.shortest_seen) == S
    layout = Layout(
        indptr, indices, data, mean, weights, model.available, costs, next_costs, _radius(model, ball),
        discount_of(model), unlisted, alike and (ball.support == "all" or full),
    )  # fmt: skip
    if ball.support != "state":
        return layout
    layout = widen(layout)
    return layout._replace(next_costs=costs_of(model, layout.indptr, layout.indices)) if model.next_costs else layout


def widen(layout: Layout) -> Layout:
    """The same rows over all that some pair of their state lists, with probability 0 where they did not."""
    ends, there, where = shared(layout.indptr, layout.indices, layout.available)
    data, mean = moved(layout.indptr, (layout.data, layout.mean), ends, where)
    return layout._replace(indptr=ends, indices=there, data=data, mean=mean)


def discount_of(model: Model) -> Any:
    """The discount, or one for each pair, (S·A,)."""
    return model.discount if model.discounts is None else model.discounts.reshape(-1)


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
    keep = blocks.seen(model.weights)
    new_lengths = np.bincount(pair[keep], minlength=lengths.size)
    first = np.repeat(N * blocks.indptr[:-1], N * lengths)  # of each number's block
    column = (np.arange(data.size) - first) % np.repeat(np.maximum(lengths, 1), N * lengths)
    entry = np.repeat(blocks.indptr[:-1], N * lengths) + column
    indptr = np.concatenate([[0], np.cumsum(new_lengths)]).astype(np.int64)
    costs = next_costs[keep] if next_costs.size else next_costs
    return indptr, blocks.indices[keep], data[keep[entry]], model.mean[keep], costs


def _list_all(model: Model, ball: AmbiguitySet) -> Layout:
    """Every state listed, for support "all"."""
    n, S, A = model.n_states, model.n_next, model.n_actions
    weights = np.ascontiguousarray(model.weights[model.weights > 0])
    lengths = np.where(model.available.ravel(), S, 0)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    pairs = model.available.reshape(-1)
    dense = model.blocks.dense(0, n)
    if weights.size < model.n_kernels:
        dense = dense[:, :, model.weights > 0]
    dense = dense.reshape(n * A, weights.size, S)
    if not pairs.all():
        dense = dense[pairs]
    mean = (weights @ dense).ravel()
    indices = np.tile(np.arange(S, dtype=np.int32), int(pairs.sum()))
    costs, next_costs = np.asarray(model.costs), np.zeros(0)
    if model.next_costs:
        costs, next_costs = np.zeros((n, A)), costs.reshape(n * A, S)[pairs].ravel()
    return Layout(
        indptr, indices, dense.ravel(), mean, weights, model.available, costs, next_costs,
        _radius(model, ball), discount_of(model), False, not model.next_costs and model.discounts is None,
    )  # fmt: skip
