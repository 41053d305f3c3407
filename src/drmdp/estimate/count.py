"""How often each transition was seen: grouped sums over a lazy table, so memory grows with what is distinct, not with rows.

A *cell* is a triple (state, action, next state). Labels are sorted: integers by size, strings by character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.checks import Names, find, lookup
from drmdp.errors import InputError, shown
from drmdp.estimate.table import Table, collected, guarded, polars

CELL = ("state", "action", "next_state")
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")


@dataclass(frozen=True)
class Steps:
    """One row per transition, lazily, and what the table had besides."""

    table: Table
    n_ends: int  # rows that only end an episode


@dataclass(frozen=True)
class Cells:
    """Cells as numbers: entry k has `count[k]` (weighted) for the pair s·A + a and the next state `column[k]`."""

    states: Names
    actions: Names
    pair: IntArray
    column: IntArray
    count: Array
    rows: IntArray  # not weighted
    cost: Array | None  # weighted sum
    extra: dict[str, Any]  # further columns asked for

    @property
    def keys(self) -> IntArray:
        """One number per cell, pair·S + column, ascending."""
        return self.pair * len(self.states) + self.column

    def keep(self, chosen: Any) -> Cells:
        """Those cells only, in that order."""
        cost = None if self.cost is None else self.cost[chosen]
        extra = {name: values[chosen] for name, values in self.extra.items()}
        return Cells(
            self.states, self.actions, self.pair[chosen], self.column[chosen], self.count[chosen], self.rows[chosen],
            cost, extra,
        )  # fmt: skip


# ---------------------------------------------------------------------- rows → transitions


def steps_of(table: Table) -> Steps:
    """Make transitions of the rows: as they are, or each row with the next one of its episode."""
    pl = polars()
    columns = table.columns
    if columns.next_state is not None:
        return Steps(table, 0)
    if columns.episode is None:
        raise InputError(
            f"{table.name}: no next_state column, so name the episode column: its rows make the transitions"
        )
    frame = table.frame
    if columns.time is not None:
        dtype = guarded(frame.collect_schema, table.name)["time"]
        if not (dtype.is_numeric() or dtype.is_temporal()):
            raise InputError(f"{table.name}: column {columns.time!r} (time) must hold numbers or dates, got {dtype}")
    order = _order(table, frame)
    if not order["n"]:
        raise InputError(f"{table.name}: no rows")
    for role in ("episode", "time"):
        if order.get(f"{role}_nulls"):
            raise InputError(f"{table.row_of(pl.col(role).is_null())}: {role} is missing")
    if order["changes"] + 1 > order["episodes"] or order.get("backward"):
        frame = _sorted(table)
        order = _order(table, frame)
    if order.get("equal"):
        twice = (pl.col("episode") == pl.col("episode").shift(1)) & (pl.col("time") == pl.col("time").shift(1))
        row = collected(frame.filter(twice).head(1), table.name)
        when = f"{row['time'][0]} in episode {row['episode'][0]!r}"
        raise InputError(f"{table.name}: two rows have the time {when}: their order is unknown")
    follows = pl.col("episode") == pl.col("episode").shift(-1)
    frame = frame.with_columns(next_state=pl.col("state").shift(-1)).filter(follows)
    return Steps(replace(table, frame=frame), order["episodes"])


def _sorted(table: Table) -> Any:
    """Rows by episode and time, in memory, with labels as short as they can be."""
    pl = polars()
    schema = table.frame.collect_schema()
    whole = [name for name, dtype in schema.items() if dtype.is_integer()]
    bounds = [pl.col(name).min().alias(f"{name}_low") for name in whole]
    bounds += [pl.col(name).max().alias(f"{name}_high") for name in whole]
    found = collected(table.frame.select(bounds), table.name).row(0, named=True)
    short = [name for name in whole if -(2**31) <= (found[f"{name}_low"] or 0) <= (found[f"{name}_high"] or 0) < 2**31]
    frame = table.frame.with_columns(
        pl.col(short).cast(pl.Int32), pl.col([n for n in schema if schema[n] == pl.String]).cast(pl.Categorical)
    )
    keys = [pl.col("episode").to_physical()] if schema["episode"] == pl.String else [pl.col("episode")]
    keys += [pl.col("time")] if table.columns.time is not None else []
    return collected(frame.sort(keys, maintain_order=len(keys) == 1), table.name).lazy()


def _order(table: Table, frame: Any) -> dict[str, int]:
    """Whether the rows of each episode are together and in order."""
    pl = polars()
    episode = pl.col("episode")
    asked = {
        "n": pl.len(),
        "changes": (episode != episode.shift(1)).sum(),
        "episodes": episode.n_unique(),
        "episode_nulls": episode.null_count(),
    }
    if table.columns.time is not None:
        time, same = pl.col("time"), episode == episode.shift(1)
        asked["time_nulls"] = time.null_count()
        asked["backward"] = (same & (time < time.shift(1))).sum()
        asked["equal"] = (same & (time == time.shift(1))).sum()
    found = collected(frame.select(**asked), table.name)
    return {name: int(value) for name, value in found.row(0, named=True).items()}


# ---------------------------------------------------------------------- transitions → cells


def cells_of(
    steps: Steps, states: Names | None, actions: Names | None, by: list[str], sums: dict[str, Any] | None = None
) -> Cells:
    """Sum by cell and the columns `by`; `sums` are more expressions to add up, each times the weight."""
    pl = polars()
    table = steps.table
    names = table.frame.collect_schema().names()
    weight = pl.col("weight") if "weight" in names else pl.lit(1.0)
    cost = next((pl.col(name) for name in ("cost", "reward") if name in names), None)
    asked = {"rows": pl.len(), "count": weight.sum() if "weight" in names else pl.len().cast(pl.Float64)}
    bad = {}
    if "weight" in names:
        bad["weight"] = ~(weight.is_finite() & (weight >= 0)).fill_null(False)
    if cost is not None:
        asked["cost"] = (weight * cost).sum()
        bad["reward" if "reward" in names else "cost"] = ~cost.is_finite().fill_null(False)
    asked |= {f"bad_{name}": rule.sum() for name, rule in bad.items()}
    asked |= {name: (weight * factor).sum() for name, factor in (sums or {}).items()}
    cells = collected(table.frame.group_by(*CELL, *by).agg(**asked), table.name)
    if not cells.height:
        raise InputError(f"{table.name}: no transitions")
    cells = cells.with_columns(pl.col(pl.Categorical).cast(pl.String), pl.col(pl.Int32).cast(pl.Int64))
    for role in (*CELL, *by):
        if cells[role].null_count():
            raise InputError(f"{table.row_of(pl.col(role).is_null())}: {role} is missing")
    for name, rule in bad.items():
        if cells[f"bad_{name}"].sum():
            value = collected(table.frame.filter(rule).sort("_row").head(1), table.name)[name][0]
            low = " and not negative" if name == "weight" else ""
            raise InputError(f"{table.row_of(rule)}: {name} must be finite{low}, got {value!r}")
    return _coded(table, cells, states, actions, [*by, *(sums or {})])


def _coded(table: Table, cells: Any, states: Names | None, actions: Names | None, extra: list[str]) -> Cells:
    """Replace labels by numbers, in sorted order of the cells."""
    pl = polars()
    types = {cells["state"].dtype, cells["next_state"].dtype}
    if len(types) > 1:
        cells = cells.with_columns(pl.col("state", "next_state").cast(pl.String if pl.String in types else pl.Float64))
    state_names, s, t = codes(table, "state", [cells["state"], cells["next_state"]], states)
    action_names, a = codes(table, "action", [cells["action"]], actions)
    pair = s * len(action_names) + a
    order = np.lexsort((t, pair))
    cost = cells["cost"].to_numpy() if "cost" in cells.columns else None
    found = Cells(
        state_names, action_names, pair, t, cells["count"].to_numpy(), cells["rows"].to_numpy().astype(np.int64), cost,
        {name: cells[name].to_numpy() for name in extra},
    )  # fmt: skip
    return found.keep(order)


def codes(table: Table, role: str, given: list[Any], names: Names | None = None) -> tuple[Any, ...]:
    """Names of the labels in some columns, and each column as numbers of names."""
    pl = polars()
    unique = pl.concat([series.unique() for series in given]).unique()
    labels = _labels(table, role, unique)
    if names is None:
        names = sorted(labels)
        index = lookup(names)
    else:
        index = lookup(names)
        for label in sorted(labels):
            find(index, label, table.name, role)
    numbers = pl.Series([index[label] for label in labels], dtype=pl.Int64)
    return (names, *(series.replace_strict(unique, numbers).to_numpy() for series in given))


def _labels(table: Table, role: str, unique: Any) -> list[Any]:
    """Labels as Python integers or strings."""
    values = unique.to_list()
    if unique.dtype.is_float():
        for value in values:
            if not (np.isfinite(value) and value == int(value)):
                raise InputError(f"{table.name}: {role}: labels are strings or integers, got {shown(value)}")
        return [int(value) for value in values]
    if unique.dtype == polars().String and all(INTEGER.fullmatch(value) for value in values):
        return [int(value) for value in values]
    return list(values)
