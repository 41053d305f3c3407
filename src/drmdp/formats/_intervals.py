"""Transitions with an interval for each probability: what PRISM and Storm call interval MDPs.

Of a row with bounds l ≤ u the model has l + f (u − l), f = (1 − Σ l)/(Σ u − Σ l): between the
bounds, a distribution, and the midpoint wherever that is one. A next state that gets nothing of it
gets nothing from any distribution between the bounds, and is left out. Sums that miss 1 by no more
than few printed digits explain are divided out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.formats._cells import TEXT_TOL, ModelParts, TransitionList, check_once, model_of
from drmdp.layout.layout import lay_out_intervals
from drmdp.model import Model
from drmdp.sets.intervals import Intervals

Bounded = tuple[int, int, int, float, float, float]
"""State, action, next state, lower and upper bound, reward."""


def check_bounds(place: str, lower: float, upper: float, text: str) -> None:
    """Refuse what is no interval of probabilities."""
    if not 0 <= lower <= upper <= 1:
        raise InputError(f"{place}: probability: expected 0 ≤ lower ≤ upper ≤ 1, got {text}")


class BoundedList(NamedTuple):
    """Transitions of a file that may have intervals."""

    cells: TransitionList  # p are the lower bounds
    upper: Array
    shape: tuple[int, int]  # S, A
    parts: ModelParts

    def model(self) -> Model:
        """The model, if no probability is an interval."""
        lower, upper = self.cells.p, self.upper
        for k in np.flatnonzero(lower < upper)[:1].tolist():
            interval = f"[{lower[k]:g},{upper[k]:g}] is an interval"
            raise InputError(f"{self.cells.place(k)}: {interval}: `read_intervals` reads those")
        return model_of(self.cells, (1, *self.shape), self.parts)


def model_between(bounded: BoundedList) -> tuple[Model, Intervals]:
    """The model between the bounds of a file, and the bounds."""
    cells, upper, (S, A), parts = bounded
    pair = cells.s * A + cells.a
    check_once(cells, pair)
    low, high = (np.bincount(pair, part, minlength=S * A) for part in (cells.p, upper))
    for sums, wrong, words in (
        (low, low > 1 + TEXT_TOL, "lower bounds of the row that begins here sum to {!r} > 1"),
        (high, high < 1 - TEXT_TOL, "upper bounds of the row that begins here sum to {!r} < 1"),
    ):
        for k in np.flatnonzero(wrong[pair])[:1].tolist():
            raise InputError(f"{cells.place(k)}: the {words.format(float(sums[pair[k]]))}")
    lower, upper = cells.p / np.maximum(low, 1)[pair], upper / np.minimum(high, 1)[pair]
    low, high = np.minimum(low, 1), np.maximum(high, 1)
    part = np.where(high > low, (1 - low) / np.where(high > low, high - low, 1), 0)
    p = lower + part[pair] * (upper - lower)
    used = p > 0
    model = model_of(replace(cells, p=p).keep(used), (1, S, A), parts)
    where = pair[used], cells.t[used]
    bounds = (sparse.csr_array((part[used], where), shape=(S * A, S)) for part in (lower, upper))
    return model, Intervals(*bounds)


def list_bounds(model: Model, intervals: Intervals) -> list[Bounded]:
    """The transitions of a model between bounds, as they are in force."""
    layout = lay_out_intervals(model, intervals.fitted(model))
    pairs = np.repeat(np.arange(model.available.size), np.diff(layout.indptr))
    s, a = np.divmod(pairs, model.n_actions)
    margin = layout.radius[s]
    lower, upper = np.maximum(layout.mean - margin, 0), np.minimum(layout.data + margin, 1)
    costs = layout.next_costs if layout.next_costs.size else layout.costs[s, a]
    columns = (s, a, layout.indices, lower, upper, 0.0 - costs)
    return list(zip(*(column.tolist() for column in columns), strict=True))
