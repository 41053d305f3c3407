"""The data of intervals, in the arrays of a `Layout` with one kernel.

Listed are the next states with a positive upper bound. `data` holds the upper bounds, `mean` the lower ones, `weights` is (1,), and `radius` the margin by
which both are widened: the bounds in force are max(0, lower − r) and min(1, upper + r). Rows whose lower bounds sum to more than 1, or
whose upper bounds sum to less, by no more than `Intervals` admits, are divided by their sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.errors import InputError
from drmdp.layout.layout import Layout, discount_of
from drmdp.model import Model
from drmdp.sets.intervals import Intervals


def lay_out(model: Model, ball: Intervals) -> Layout:
    """The layout of a model and its intervals."""
    S, A = model.available.shape
    pairs, lower, upper = ball.listed(model)
    columns = ball.columns(model)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs, minlength=S * A))]).astype(np.int64)
    lower = lower / np.maximum(np.bincount(pairs, lower, minlength=S * A), 1.0)[pairs]
    upper = upper / np.minimum(np.bincount(pairs, upper, minlength=S * A), 1.0)[pairs]
    costs, next_costs = np.asarray(model.costs) if not model.next_costs else np.zeros((S, A)), np.zeros(0)
    if model.next_costs:
        next_costs = _costs(model, pairs, columns)
    return Layout(
        indptr, columns, upper, lower, np.ones(1), model.available, costs, next_costs, np.ascontiguousarray(ball.radii(model)),
        discount_of(model), False, not model.next_costs and model.discounts is None and ball.full,
    )  # fmt: skip


def _costs(model: Model, pairs: IntArray, columns: Any) -> Array:
    """Cost of each listed transition; the first that has none is refused."""
    S = model.n_next
    flat = model.costs
    if isinstance(flat, np.ndarray):
        found = flat.reshape(-1, S)[pairs, columns]
    else:
        known = np.repeat(np.arange(model.available.size) * S, model.blocks.lengths) + model.blocks.indices
        keys = pairs * S + columns
        place = np.minimum(np.searchsorted(known, keys), max(known.size - 1, 0))
        found = np.where(known[place] == keys, model.listed_costs()[place], np.nan)
    missing = np.isnan(found)
    if missing.any():
        k = int(np.argmax(missing))
        s, a = divmod(int(pairs[k]), model.n_actions)
        raise InputError(
            f"costs: nature may go from state {model.states[s]!r} with action {model.actions[a]!r} to {model.states[int(columns[k])]!r}, "
            "and that transition has no cost: give every cost as an (S, A, S) array"
        )
    return np.ascontiguousarray(found)
