"""Layouts: the data of a model and a set for the compiled routines.

Pair k = s·A + a has the entries indptr[k] … indptr[k+1] − 1 (its K listed next states) and the
(N, K) block of `data` at N·indptr[k]; kernels of weight 0 are left out. Four layouts cover every
model and set:

* support "observed": nature may use the listed states only;
* support "state": the same, and every pair of a state lists the states of all of them, with zeros
  (`widen`);
* support "all", costs (S, A): unlisted states have probability 0 in every kernel and the same
  stakes for every action, so they enter through prefix sums over v in descending order
  (`ValueOrder`), never one by one: a row costs O(K + log S);
* support "all", costs (S, A, S) or discounts (S, A): stakes differ per action, so every state is
  listed.

A layout may be of a range of the states only. Rows are then numbered from 0 in the range, and
columns as in the full model: `indices` point into a v of all states.

**Intervals** take the arrays of a `Layout` with one kernel. Listed are the next states with a
positive upper bound. `data` holds the upper bounds, `mean` the lower ones, `weights` is (1,), and
`radius` the margin by which both are widened: the bounds in force are max(0, lower − r) and min(1,
upper + r). Rows whose lower bounds sum to more than 1, or whose upper bounds sum to less, by no
more than `Intervals` admits, are divided by their sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.storage import offsets
from drmdp.errors import InputError, first_place
from drmdp.model import Model
from drmdp.model.support import costs_of, shared_support, widened
from drmdp.sets import AmbiguitySet, Intervals
from drmdp.sets.registry import entry_of, load

NEARLY, LARGE = 0.75, 2**24
"""Rows as full as this are worth filling up, if no more numbers are needed than that."""


class Layout(NamedTuple):
    """Static data of a (model, ambiguity)."""

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
    ground: Any = None  # of transport (`drmdp.layout.transport_layout.Grounding`)


def entries_of(layout: Any, pair: int) -> slice:
    """The entries of a pair."""
    return slice(*layout.indptr[pair : pair + 2].tolist())


def lay_out(model: Model, ambiguity: AmbiguitySet) -> Layout:
    """The layout of a model and a set; it shares the model's arrays where possible, and is cached
    with the model.
    """
    if ambiguity.moves == "events":
        rule = "this needs kernels, and nature moves laws of events here"
        raise InputError(f"{ambiguity.short}: {rule}")
    model.check_unchanged()
    cache, key = model.cache, ("layout", ambiguity.listing)
    if key not in cache:
        factory = entry_of(ambiguity).layout
        cache[key] = (load(factory) if factory else choose)(model, ambiguity)
    return at_radius(cache[key], model, ambiguity)


def lay_out_all(model: Model, ambiguity: AmbiguitySet) -> Layout:
    """The layout with every next state that nature may use, zeros included: for iterates that are
    full kernels.
    """
    layout = lay_out(model, ambiguity)
    return _list_all(model, ambiguity) if layout.unlisted else layout


def fill_up(model: Model, ambiguity: AmbiguitySet, layout: Layout) -> Layout:
    """The layout for many sweeps: where rows are nearly full, reading the zeros takes a quarter
    less time than skipping them.

    It takes as long as some ten sweeps save.
    """
    size = model.n_next * model.facts.pairs
    sparse = model.facts.entries < NEARLY * size or layout.weights.size * size > LARGE
    if entry_of(ambiguity).layout or not layout.unlisted or sparse:
        return layout
    key = "full layout", ambiguity.listing
    if key not in model.cache:
        model.cache[key] = _list_all(model, ambiguity)
    return at_radius(model.cache[key], model, ambiguity)


def at_radius(layout: Layout, model: Model, ambiguity: AmbiguitySet) -> Layout:
    """The same layout for another radius."""
    return layout._replace(radius=_radius(model, ambiguity))


def choose(model: Model, ambiguity: AmbiguitySet) -> Layout:
    """The layout of a model and a set that moves mass within its support."""
    blocks, used = model.blocks, model.weights > 0
    weights = np.ascontiguousarray(model.weights[used])
    facts, S = model.facts, model.n_next
    alike = not (model.next_costs or model.discounts is not None)
    if ambiguity.support == "all" and facts.shortest < S and not alike:
        return _list_all(model, ambiguity)
    data, indptr, indices, mean = blocks.data, blocks.indptr, blocks.indices, model.mean
    next_costs = model.listed_costs() if model.next_costs else np.zeros(0)
    if not used.all():
        data = np.ascontiguousarray(_rows(blocks, used))
        if ambiguity.support != "all":
            arrays = _only_observed(model, data, weights.size, next_costs)
            indptr, indices, data, mean, next_costs = arrays
    costs = np.zeros(model.available.shape) if model.next_costs else model.costs
    unlisted = ambiguity.support == "all" and alike and bool(facts.shortest < S or facts.closed)
    full = (facts.shortest if ambiguity.support == "all" else facts.shortest_seen) == S
    common = alike and (ambiguity.support == "all" or full)
    rows = indptr, indices, data, mean, weights, model.available
    numbers = _radius(model, ambiguity), discount_of(model)
    layout = Layout(*rows, costs, next_costs, *numbers, unlisted, common)
    if ambiguity.support != "state":
        return layout
    layout = widen(layout)
    if not model.next_costs:
        return layout
    return layout._replace(next_costs=costs_of(model, layout.indptr, layout.indices))


def by_pair(layout: Layout) -> Layout:
    """The layout of pairs as states with one action, for sets with a budget for each action: pair
    s·A + a becomes state s·A + a.
    """
    available, costs = layout.available.reshape(-1, 1), layout.costs.reshape(-1, 1)
    radius = np.ascontiguousarray(np.broadcast_to(layout.radius, layout.available.shape))
    return layout._replace(available=available, costs=costs, radius=radius.reshape(-1))


def widen(layout: Layout) -> Layout:
    """The same rows over the next states of all pairs of their state, with probability 0 where they
    listed none.
    """
    indptr, indices, place = shared_support(layout.indptr, layout.indices, layout.available)
    data, mean = widened(layout.indptr, (layout.data, layout.mean), indptr, place)
    return layout._replace(indptr=indptr, indices=indices, data=data, mean=mean)


def discount_of(model: Model) -> Any:
    """The discount, or one for each pair, (S·A,)."""
    return model.discount if model.discounts is None else model.discounts.reshape(-1)


def _radius(model: Model, ambiguity: AmbiguitySet) -> Array:
    return np.ascontiguousarray(ambiguity.radii(model))


def _rows(blocks: Any, used: Any) -> Array:
    """Data without the kernels of weight 0."""
    keep = np.repeat(np.tile(used, blocks.lengths.size), np.repeat(blocks.lengths, used.size))
    return np.asarray(blocks.data[keep])


def _only_observed(model: Model, data: Array, N: int, next_costs: Array) -> tuple[Any, ...]:
    """Drop listed states that only kernels of weight 0 reach."""
    blocks, lengths, keep = model.blocks, model.blocks.lengths, model.blocks.observed(model.weights)
    indptr = offsets(keep)[blocks.indptr]  # kept entries before each pair
    first = np.repeat(blocks.indptr[:-1], N * lengths)  # entry of each number's block
    column = (np.arange(data.size) - N * first) % np.repeat(np.maximum(lengths, 1), N * lengths)
    costs = next_costs[keep] if next_costs.size else next_costs
    return indptr, blocks.indices[keep], data[keep[first + column]], model.mean[keep], costs


def _list_all(model: Model, ambiguity: AmbiguitySet) -> Layout:
    """Every state listed, for support "all"."""
    n, S, A = model.n_states, model.n_next, model.n_actions
    pairs, used = model.available.reshape(-1), model.weights > 0
    weights, dense = np.ascontiguousarray(model.weights[used]), model.blocks.dense(0, n)
    dense = (dense if used.all() else dense[:, :, used]).reshape(n * A, weights.size, S)
    if not pairs.all():
        dense = dense[pairs]
    mean = (weights @ dense).ravel()
    indices = np.tile(np.arange(S, dtype=np.int32), int(pairs.sum()))
    costs, next_costs = np.asarray(model.costs), np.zeros(0)
    if model.next_costs:
        costs, next_costs = np.zeros((n, A)), costs.reshape(n * A, S)[pairs].ravel()
    rows = offsets(np.where(pairs, S, 0)), indices, dense.ravel(), mean, weights, model.available
    numbers = _radius(model, ambiguity), discount_of(model)
    common = not model.next_costs and model.discounts is None
    return Layout(*rows, costs, next_costs, *numbers, unlisted=False, common=common)


# ---------------------------------------------------------------------- intervals


def lay_out_intervals(model: Model, ambiguity: Intervals) -> Layout:
    """The layout of a model and its intervals."""
    S, A = model.available.shape
    pairs, lower, upper = ambiguity.listed(model)
    columns = ambiguity.columns(model)
    indptr = offsets(np.bincount(pairs, minlength=S * A))
    lower = lower / np.maximum(np.bincount(pairs, lower, minlength=S * A), 1.0)[pairs]
    upper = upper / np.minimum(np.bincount(pairs, upper, minlength=S * A), 1.0)[pairs]
    costs = np.asarray(model.costs), np.zeros(0)
    if model.next_costs:
        costs = np.zeros((S, A)), _listed_costs(model, indptr, columns)
    numbers = np.ascontiguousarray(ambiguity.radii(model)), discount_of(model)
    common = not model.next_costs and model.discounts is None and ambiguity.full
    rows = indptr, columns, upper, lower, np.ones(1), model.available
    return Layout(*rows, *costs, *numbers, unlisted=False, common=common)


def in_force(layout: Layout, entries: Any, r: Any) -> tuple[Array, Array]:
    """Bounds in force of some entries, at margins r."""
    return np.maximum(layout.mean[entries] - r, 0.0), np.minimum(layout.data[entries] + r, 1.0)


def _listed_costs(model: Model, indptr: IntArray, columns: Any) -> Array:
    """Cost of each listed transition; the first that has none is refused."""
    costs = costs_of(model, indptr, columns)
    if at := first_place(np.isnan(costs)):
        s, a = divmod(int(np.searchsorted(indptr, at[0], side="right")) - 1, model.n_actions)
        source = f"state {model.states[s]!r} with action {model.actions[a]!r}"
        way = f"from {source} to {model.states[int(columns[at])]!r}"
        cure = "that transition has no cost: give every cost as an (S, A, S) array"
        raise InputError(f"costs: nature may go {way}, and {cure}")
    return np.ascontiguousarray(costs)
