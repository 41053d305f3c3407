"""Costs or rewards of an estimated model: means of a column, or given from outside.

Given ones are an array in the order of the names, a mapping from (state, action), a .csv or .parquet file with the
columns of state and action and one called cost or reward, or an SQL expression in those two columns, such as
``"0.025 * mileage + 10 * replace"``. Means are over all rows of a pair, whatever the kernel, and rounded to 12 digits, as
the order of summation is not fixed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.validation import find, lookup
from drmdp.errors import InputError, shown
from drmdp.estimate import numbers
from drmdp.estimate.count import Cells, cells_of
from drmdp.estimate.findings import refuse
from drmdp.estimate.labels import Named
from drmdp.estimate.opening import SUFFIXES, open_source, sniffed
from drmdp.estimate.order import Ordering
from drmdp.estimate.rules import Filled
from drmdp.estimate.source import Reading, guarded, polars
from drmdp.estimate.survey import survey
from drmdp.estimate.table import Columns, open_table

LONGEST, DEEPEST = 1000, 30
"""Characters of an expression, and levels of brackets: Polars ends the process at some thousands of characters (measured: 500 terms), and never
ends with 50 CASTs, one inside the other."""
EXACT = 2.0**53
"""Whole numbers beyond this are looked at twice: Polars goes on at the other end of their type."""


def price(cells: Cells, filled: Filled, columns: Columns, given: Any, kind: str, reading: Reading) -> Any:
    """Costs (or rewards: `kind`) as the model takes them, known wherever an action is available."""
    if given is None:
        costs = _means(cells)
        source = f"no {kind} was seen there; give them with `{kind}s`"
    elif isinstance(given, str) and not given.lower().endswith(SUFFIXES):
        costs, source = _from_expression(cells, columns, given, kind), f"{kind}s: {given!r} is no finite number there"
    elif isinstance(given, str | os.PathLike):
        costs, source = _from_file(cells, columns, given, kind, reading), f"{os.fspath(given)} has no row for it"
    elif isinstance(given, Mapping):
        costs, source = _from_mapping(cells, given, kind), f"{kind}s has no entry for it"
    else:
        return given
    unknown = filled.available & ~np.isfinite(costs)
    if unknown.any():
        s, a = np.argwhere(unknown)[0]
        raise InputError(f"state {cells.states[s]!r}, action {cells.actions[a]!r}: {source}")
    return costs


def _empty(cells: Cells) -> Array:
    return np.full((len(cells.states), len(cells.actions)), np.nan)


def _means(cells: Cells) -> Array:
    costs = _empty(cells)
    weight = np.bincount(cells.pair, weights=cells.count, minlength=costs.size)
    total = np.bincount(cells.pair, weights=cells.cost, minlength=costs.size)
    seen = weight > 0
    costs.ravel()[seen] = [float(f"{mean:.12g}") for mean in (total[seen] / weight[seen]).tolist()]
    return costs


def _from_mapping(cells: Cells, given: Mapping[Any, Any], kind: str) -> Array:
    costs = _empty(cells)
    states, actions = lookup(cells.states), lookup(cells.actions)
    for key, value in given.items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InputError(f"{kind}s: expected keys (state, action), got {shown(key)}")
        s, a = find(states, key[0], f"{kind}s", "state"), find(actions, key[1], f"{kind}s", "action")
        costs[s, a] = value
    return costs


def _from_expression(cells: Cells, columns: Columns, text: str, kind: str) -> Array:
    pl = polars()
    S, A = len(cells.states), len(cells.actions)
    pairs = {columns.state: np.repeat(np.arange(S), A), columns.action: np.tile(np.arange(A), S)}
    names = {columns.state: list(cells.states), columns.action: list(cells.actions)}

    what = f"{kind}s {shown(text)}"
    if len(text) > LONGEST:
        raise InputError(
            f"{what}: an expression of {len(text)} characters, at most {LONGEST}; give a .csv file instead"
        )

    if max(accumulate((letter == "(") - (letter == ")") for letter in text), default=0) > DEEPEST:
        raise InputError(f"{what}: brackets in more than {DEEPEST} levels; give a .csv file instead")

    def work() -> list[Any]:
        grid = pl.DataFrame({name: pl.Series(names[name]).gather(index) for name, index in pairs.items()})
        real = grid.with_columns(pl.selectors.integer().cast(pl.Float64))
        costs = pl.sql_expr(text).cast(pl.Float64).alias("cost")
        return [own.select(costs)["cost"].to_numpy().astype(np.float64) for own in (grid, grid.reverse(), real)]

    found, backwards, real = guarded(work, what)
    if (np.abs(real) > EXACT).any() and not np.allclose(found, real, rtol=1e-6, equal_nan=True):
        raise InputError(f"{what}: its whole numbers grow too large; write one of them with a decimal point")
    if found.size not in (1, S * A):
        raise InputError(f"{what}: gives {found.size} numbers for {S * A} pairs of state and action")
    if not np.array_equal(found, backwards[::-1], equal_nan=True):
        raise InputError(f"{what}: depends on more than the state and the action")
    return np.array(np.broadcast_to(found, S * A)).reshape(S, A)


def _own_reading(path: Any, columns: Columns, kind: str, reading: Reading) -> Reading:
    """How a table of costs is written, which need not be as the log is."""
    own = sniffed(path, reading)
    source = open_source(path, own, (columns.state, columns.action, kind))
    if source.frame.collect_schema().get(kind) != polars().String:
        return own
    cells = source.collect(source.frame.select(kind))[0][kind].drop_nulls().to_list()
    return numbers.likely(numbers.bare(cells), own)


def _from_file(cells: Cells, columns: Columns, path: Any, kind: str, reading: Reading) -> Array:
    own = Columns(state=columns.state, action=columns.action, next_state=columns.state, **{kind: kind})
    table = open_table(path, own, None, _own_reading(path, own, kind, reading))
    seen = survey(table, Ordering())
    refuse(table.name, seen.findings)
    found = cells_of(seen.steps, Named(cells.states, True), Named(cells.actions, True), [])
    costs = _empty(cells)
    if (found.rows > 1).any():
        s, a = divmod(int(found.pair[int(np.argmax(found.rows > 1))]), len(cells.actions))
        raise InputError(f"{table.name}: state {cells.states[s]!r}, action {cells.actions[a]!r} is given twice")
    costs.ravel()[found.pair] = found.cost
    return costs
