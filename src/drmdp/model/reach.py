"""T(s), what support "state" is: the next states that some kernel of positive weight has seen from state s, under any available action.

T(s) = ∪_{a available} ∪_{i: w_i > 0} {t : ŷ_i(t | s, a) > 0}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.storage import entry_keys
from drmdp.core.unions import shared
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.events import EventModel

COSTS = "give every cost as an (S, A, S) array, or take support='observed'"
"""What to do about costs that are missing."""


def reached(model: Model) -> Any:
    """How many next states T(s) has, (S,)."""
    if "reached" not in model.kept:
        found = np.zeros(model.n_states, np.int64)
        for lo, hi, indptr, indices in _seen(model):
            ends, *_ = shared(indptr, indices, model.available[lo:hi])
            found[lo:hi] = np.diff(ends).reshape(hi - lo, -1).max(axis=1)
        model.kept["reached"] = found
    return model.kept["reached"]


def check_priced(model: Model) -> None:
    """Refuse a model with a pair (s, a) that has no cost for a next state of T(s)."""
    if "unpriced" not in model.kept:
        model.kept["unpriced"] = _unpriced(model)
    if model.kept["unpriced"] is not None:
        s, a, t = model.kept["unpriced"]
        there = model.states[t] if model.n_next == model.n_states else t
        raise InputError(
            f"state {model.states[s]!r}, action {model.actions[a]!r}: the cost of going to {there!r} is unknown, and with support='state' nature may "
            f"use it, for another action has been seen to lead there: {COSTS}"
        )


def costs_of(model: Model, indptr: Any, indices: Any) -> Array:
    """Next-state costs of the listed next states of each pair; NaN where unknown."""
    keys, costs = entry_keys(indptr, indices, model.n_next), model._costs
    if costs.ndim == 3:
        return np.asarray(costs.ravel()[keys])
    own = entry_keys(model.blocks.indptr, model.blocks.indices, model.n_next)
    place = np.minimum(np.searchsorted(own, keys), own.size - 1)
    return np.where(own[place] == keys, costs[place], np.nan)


def _unpriced(model: Model) -> tuple[int, int, int] | None:
    """The first such pair and next state."""
    for lo, hi, indptr, indices in _seen(model):
        ends, there, _ = shared(indptr, indices, model.available[lo:hi])
        if isinstance(
            model, EventModel
        ):  # events of a pair say what it costs to go where they lead, and nobody what it costs elsewhere
            unknown: Any = ~np.isin(entry_keys(ends, there, model.n_next), entry_keys(indptr, indices, model.n_next))
        else:
            unknown = np.isnan(costs_of(model, ends, there))
        if unknown.any():
            k = int(np.argmax(unknown))
            s, a = divmod(int(np.searchsorted(ends, k, side="right")) - 1, model.n_actions)
            return lo + s, a, int(there[k])
    return None


def _seen(model: Model) -> Iterator[tuple[int, int, Any, Any]]:
    """Next states that kernels of positive weight have, some states at a time: which states, and `indptr` and `indices` of their pairs."""
    if isinstance(model, EventModel):
        for first, last, block, n in model.batches(model.bare, 0, model.n_states, priced=False):
            yield first, last, block.indptr[: (last - first) * model.n_actions + 1], block.indices[:n]
        return
    blocks, seen = model.blocks, model.blocks.seen(model.weights)
    yield 0, model.n_states, np.concatenate([[0], np.cumsum(seen)])[blocks.indptr], blocks.indices[seen]
