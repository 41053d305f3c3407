"""Costs or rewards of an estimated model: means of a column, or given from outside.

Given ones are an array in the order of the names, a mapping from (state, action), a .csv or
.parquet file with the columns of state and action and one called cost or reward, or an SQL
expression in those two columns, such as ``"0.025 * mileage + 10 * replace"``. Means are over all
rows of a pair, whatever the kernel, and rounded to 12 digits, as the order of summation is not
fixed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.validation import find, lookup
from drmdp.errors import InputError, shown
from drmdp.estimation.count import CountCells, cells_of
from drmdp.estimation.log import numbers
from drmdp.estimation.log.files import SUFFIXES, open_source, sniffed
from drmdp.estimation.log.findings import refuse
from drmdp.estimation.log.labels import GivenNames
from drmdp.estimation.log.order import Ordering
from drmdp.estimation.log.source import Reading, guarded, pl
from drmdp.estimation.log.survey import survey_log
from drmdp.estimation.log.table import Columns, open_table
from drmdp.estimation.settings import Settings

LONGEST, DEEPEST = 1000, 30
"""Characters of an expression, and levels of brackets: Polars ends the process at some thousands of
characters (measured: 500 terms), and never ends with 50 CASTs, one inside the other."""
EXACT = 2.0**53
"""Whole numbers beyond this are looked at twice: Polars goes on at the other end of their type."""


def price(
    cells: CountCells, available: BoolArray, columns: Columns, settings: Settings, kind: str
) -> Any:
    """Costs (or rewards: `kind`) as the model takes them, known wherever an action is available."""
    stated = settings.costs if kind == "cost" else settings.rewards
    if stated is None:
        costs = _means(cells)
        source = f"no {kind} was seen there; give them with `{kind}s`"
    elif isinstance(stated, str) and not stated.lower().endswith(SUFFIXES):
        costs = _from_expression(cells, columns, stated, kind)
        source = f"{kind}s: {stated!r} is no finite number there"
    elif isinstance(stated, str | os.PathLike):
        costs = _from_file(cells, columns, stated, kind, settings.reading)
        source = f"{os.fspath(stated)} has no row for it"
    elif isinstance(stated, Mapping):
        costs, source = _from_mapping(cells, stated, kind), f"{kind}s has no entry for it"
    else:
        return stated
    unknown = available & ~np.isfinite(costs)
    for pair in np.flatnonzero(unknown)[:1]:
        raise InputError(f"{cells.quoted(pair)}: {source}")
    return costs


def _means(cells: CountCells) -> Array:
    weight, total = cells.by_pair(cells.count), cells.by_pair(cells.cost)
    costs, observed = np.full(weight.size, np.nan), weight > 0
    means = (total[observed] / weight[observed]).tolist()
    costs[observed] = [float(f"{mean:.12g}") for mean in means]
    return costs.reshape(cells.shape)


def _from_mapping(cells: CountCells, stated: Mapping[Any, Any], kind: str) -> Array:
    costs = np.full(cells.shape, np.nan)
    states, actions = lookup(cells.states), lookup(cells.actions)
    for key, value in stated.items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InputError(f"{kind}s: expected keys (state, action), got {shown(key)}")
        s = find(states, key[0], f"{kind}s", "state")
        costs[s, find(actions, key[1], f"{kind}s", "action")] = value
    return costs


def _from_expression(cells: CountCells, columns: Columns, text: str, kind: str) -> Array:
    S, A = cells.shape
    what, cure = f"{kind}s {shown(text)}", "give a .csv file instead"
    if len(text) > LONGEST:
        long = f"an expression of {len(text)} characters, at most {LONGEST}"
        raise InputError(f"{what}: {long}; {cure}")
    if max(accumulate((letter == "(") - (letter == ")") for letter in text), default=0) > DEEPEST:
        raise InputError(f"{what}: brackets in more than {DEEPEST} levels; {cure}")

    def work() -> list[Any]:
        states = pl.Series(list(cells.states)).gather(np.repeat(np.arange(S), A))
        actions = pl.Series(list(cells.actions)).gather(np.tile(np.arange(A), S))
        grid = pl.DataFrame({columns.state: states, columns.action: actions})
        real = grid.with_columns(pl.selectors.integer().cast(pl.Float64))
        costs = pl.sql_expr(text).cast(pl.Float64).alias("cost")
        frames = (frame.select(costs)["cost"] for frame in (grid, grid.reverse(), real))
        return [column.to_numpy().astype(np.float64) for column in frames]

    values, backwards, real = guarded(work, what)
    if (np.abs(real) > EXACT).any() and not np.allclose(values, real, rtol=1e-6, equal_nan=True):
        cure = "write one of them with a decimal point"
        raise InputError(f"{what}: its whole numbers grow too large; {cure}")
    if values.size not in (1, S * A):
        pairs = f"{S * A} pairs of state and action"
        raise InputError(f"{what}: gives {values.size} numbers for {pairs}")
    if not np.array_equal(values, backwards[::-1], equal_nan=True):
        raise InputError(f"{what}: depends on more than the state and the action")
    return np.array(np.broadcast_to(values, S * A)).reshape(S, A)


def _costs_reading(path: Any, columns: Columns, kind: str, reading: Reading) -> Reading:
    """The dialect of a table of costs, which need not be that of the log."""
    dialect = sniffed(path, reading)
    source = open_source(path, dialect, (columns.state, columns.action, kind))
    if source.frame.collect_schema().get(kind) != pl.String:
        return dialect
    cells = source.collect(source.frame.select(kind))[0][kind].drop_nulls().to_list()
    return numbers.likely(numbers.bare(cells), dialect)


def _from_file(
    cells: CountCells, columns: Columns, path: Any, kind: str, reading: Reading
) -> Array:
    state, action = columns.state, columns.action
    roles = Columns(state=state, action=action, next_state=state, **{kind: kind})
    table = open_table(path, roles, None, _costs_reading(path, roles, kind, reading), {}, False)
    survey = survey_log(table, Ordering())
    refuse(table.name, survey.findings)
    names = (GivenNames(cells.states, True), GivenNames(cells.actions, True))
    entries = cells_of(survey.steps, names, [])
    costs = np.full(cells.shape, np.nan)
    for k in np.flatnonzero(entries.rows > 1)[:1]:
        raise InputError(f"{table.name}: {cells.quoted(entries.pair[k])} is given twice")
    costs.ravel()[entries.pair] = entries.cost
    return costs
