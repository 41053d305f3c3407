"""The next states T(s) of support "state": those that some kernel of positive weight has seen from
state s, under any available action.

    T(s) = ∪_{a available} ∪_{i: w_i > 0} {t : ŷ_i(t | s, a) > 0}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.storage import entry_keys
from drmdp.errors import InputError, first_place
from drmdp.model import Model
from drmdp.model.events import EventModel

COSTS = "give every cost as an (S, A, S) array, or take support='observed'"
"""Cure of missing costs."""


def support_sizes(model: Model) -> Any:
    """Number of next states in T(s), (S,)."""
    if "support sizes" not in model.cache:
        sizes = np.zeros(model.n_states, np.int64)
        for lo, hi, indptr, indices in _observed(model):
            ptr, *_ = shared_support(indptr, indices, model.available[lo:hi])
            sizes[lo:hi] = np.diff(ptr).reshape(hi - lo, -1).max(axis=1)
        model.cache["support sizes"] = sizes
    return model.cache["support sizes"]


def check_priced(model: Model) -> None:
    """Refuse a model with a pair (s, a) that has no cost for a next state of T(s)."""
    if "unpriced" not in model.cache:
        model.cache["unpriced"] = _unpriced(model)
    if model.cache["unpriced"] is not None:
        s, a, t = model.cache["unpriced"]
        target = model.states[t] if model.n_next == model.n_states else t
        raise InputError(
            f"state {model.states[s]!r}, action {model.actions[a]!r}: the cost of going to "
            f"{target!r} is unknown, and with support='state' nature may use it, for another "
            f"action has been seen to lead there: {COSTS}"
        )


def costs_of(model: Model, indptr: Any, indices: Any) -> Array:
    """Next-state costs of the listed next states of each pair; NaN where unknown."""
    keys, costs = entry_keys(indptr, indices, model.n_next), model._costs
    if costs.ndim == 3:
        return np.asarray(costs.ravel()[keys])
    stored = entry_keys(model.blocks.indptr, model.blocks.indices, model.n_next)
    place = np.minimum(np.searchsorted(stored, keys), stored.size - 1)
    return np.where(stored[place] == keys, costs[place], np.nan)


def _unpriced(model: Model) -> tuple[int, int, int] | None:
    """Find the first pair (s, a) and next state of T(s) without a cost."""
    for lo, hi, indptr, indices in _observed(model):
        ptr, targets, _ = shared_support(indptr, indices, model.available[lo:hi])
        if isinstance(model, EventModel):  # events of a pair tell costs only of where they lead
            listed = entry_keys(indptr, indices, model.n_next)
            unknown: Any = ~np.isin(entry_keys(ptr, targets, model.n_next), listed)
        else:
            unknown = np.isnan(costs_of(model, ptr, targets))
        if at := first_place(unknown):
            s, a = divmod(int(np.searchsorted(ptr, at[0], side="right")) - 1, model.n_actions)
            return lo + s, a, int(targets[at])
    return None


def _observed(model: Model) -> Iterator[tuple[int, int, Any, Any]]:
    """Next states that kernels of positive weight have, some states at a time: the states lo, hi,
    and `indptr` and `indices` of their pairs.
    """
    if isinstance(model, EventModel):
        A = model.n_actions
        for lo, hi, block, n in model.batches(model.bare, 0, model.n_states, priced=False):
            yield lo, hi, block.indptr[: (hi - lo) * A + 1], block.indices[:n]
        return
    blocks, observed = model.blocks, model.blocks.observed(model.weights)
    indptr = np.concatenate([[0], np.cumsum(observed)])[blocks.indptr]
    yield 0, model.n_states, indptr, blocks.indices[observed]


# ---------------------------------------------------------------------- lists of all pairs


def shared_support(
    indptr: Any, indices: Any, available: BoolArray
) -> tuple[IntArray, Any, IntArray]:
    """`indptr` and `indices` where each available pair, of (n, A), lists the next states that some
    pair of its state does.

    The third says where each entry is in them. Lists ascend, and what is not available lists
    nothing.
    """
    n, A = available.shape
    state = np.repeat(np.arange(n), np.diff(indptr[::A]))
    keys = state << 32 | indices
    order = np.argsort(keys, kind="stable")  # which merges what ascends
    ranked = keys[order]
    new = np.diff(ranked, prepend=-1) > 0
    union, place = ranked[new], np.empty(keys.size, np.int64)
    place[order] = np.cumsum(new) - 1
    count = np.bincount(union >> 32, minlength=n)
    first = np.repeat(np.cumsum(count) - count, A)  # of each pair, in the union
    lengths = np.where(available, count[:, None], 0).ravel()
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    targets = union.astype(np.int32)[np.arange(ptr[-1]) + np.repeat(first - ptr[:-1], lengths)]
    return ptr, targets, place + np.repeat(ptr[:-1] - first, np.diff(indptr))


def widened(indptr: Any, rows: tuple[Any, Any], ptr: Any, place: Any) -> tuple[Any, Array]:
    """N rows and mean row of all pairs, as they lie, over longer lists: 0 where a pair did not list
    a next state.
    """
    data, mean = rows
    N, short, long = data.size // max(mean.size, 1), np.diff(indptr), np.diff(ptr)
    wide, wide_mean = np.zeros(N * int(ptr[-1]), data.dtype), np.zeros(int(ptr[-1]))
    wide_mean[place] = mean
    source = np.arange(mean.size) + np.repeat((N - 1) * np.asarray(indptr[:-1]), short)
    target = place + np.repeat((N - 1) * ptr[:-1], short)
    for i in range(N):
        wide[target + i * np.repeat(long, short)] = data[source + i * np.repeat(short, short)]
    return wide, wide_mean
