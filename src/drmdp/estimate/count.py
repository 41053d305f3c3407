"""How often each transition was seen: grouped sums over a lazy table, so memory grows with what is distinct, not with rows.

A *cell* is a triple (state, action, next state). Labels are sorted: integers by size, strings by character, and numbers in them by size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimate.findings import Finding, refuse
from drmdp.estimate.labels import Named, codes
from drmdp.estimate.numbers import DASHES
from drmdp.estimate.order import Steps
from drmdp.estimate.outliers import spread, spread_of_pairs
from drmdp.estimate.source import polars
from drmdp.estimate.table import NUMBERS, UntidyError, is_tidy

CELL = ("state", "action", "next_state")
PRICES = ("cost", "reward")
NOTHING = "no transitions"


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
    prices: Any = None  # a frame: `spread` of the costs, or rewards, of each pair

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
            cost, extra, self.prices,
        )  # fmt: skip


def _rules(names: list[str]) -> dict[str, Any]:
    """Where a transition lacks what it needs, by role."""
    pl = polars()
    rules = {role: pl.col(role).is_null() for role in (*CELL, "unit") if role in names}
    rules |= {role: ~pl.col(role).is_finite().fill_null(False) for role in PRICES if role in names}
    if "weight" in names:
        weight = pl.col("weight")
        rules["weight"] = ~(weight.is_finite() & (weight >= 0)).fill_null(False)
    return rules


def lacking(steps: Steps) -> tuple[list[Finding], Steps]:
    """What transitions lack, and those that can be counted; prices may be null there."""
    pl = polars()
    table = steps.table
    names = steps.frame.collect_schema().names()
    rules = _rules(names)
    new = {role: rule & ~pl.col(f"_bad_{role}") if f"_bad_{role}" in names else rule for role, rule in rules.items()}
    found = []
    asked = [rule.sum().alias(role) for role, rule in new.items()]
    for role, count in table.collect(steps.frame.select(asked))[0].row(0, named=True).items():
        if not count:
            continue
        cells = table.cells(new[role], role, steps.frame)
        empty = cells[0][1] is None or str(cells[0][1]).strip() in ("", "nan", *DASHES)
        low = " and not negative" if role == "weight" else ""
        what = f"the {role} is missing" if empty else f"the {role} must be finite{low}, got {{value}}"
        cure = "write 0 if a dash means that" if empty and str(cells[0][1]).strip() in DASHES else ""
        found.append(table.finding("missing" if empty else "number", int(count), cells, role, what, cure=cure))
    needed = [rule for role, rule in rules.items() if role not in PRICES]
    prices = [pl.when(~rules[role]).then(pl.col(role)).alias(role) for role in PRICES if role in rules]
    good = steps.frame.filter(~pl.any_horizontal(needed)).with_columns(prices)
    return found, Steps(table, good, steps.n_ends, checked=True)


def cells_of(steps: Steps, states: Named, actions: Named, by: list[str], sums: dict[str, Any] | None = None) -> Cells:
    """Sum by cell and the columns `by`; `sums` are more expressions to add up, each times the weight."""
    pl = polars()
    table = steps.table
    names = steps.frame.collect_schema().names()
    weight = pl.col("weight") if "weight" in names else pl.lit(1.0)
    cost = next((pl.col(name) for name in PRICES if name in names), None)
    asked = {"rows": pl.len(), "count": weight.sum() if "weight" in names else pl.len().cast(pl.Float64)}
    if cost is not None:
        asked["cost"] = (weight * cost).sum()
        asked |= spread(cost)
    numbers = {} if steps.checked else {role: rule for role, rule in _rules(names).items() if role in NUMBERS}
    asked |= {f"bad_{name}": rule.sum() for name, rule in numbers.items()}
    asked |= {name: (weight * factor).sum() for name, factor in (sums or {}).items()}
    cells = table.collect(steps.frame.group_by(*CELL, *by).agg(**asked))[0]
    if not cells.height and table.tidy:
        raise UntidyError
    if not cells.height:
        raise InputError(f"{table.name}: {NOTHING}")
    cells = cells.with_columns(pl.col(pl.Categorical).cast(pl.String), pl.col(pl.Int32).cast(pl.Int64))
    tidy = all(is_tidy(cells[role]) for role in (*CELL, *by)) and not any(
        cells[f"bad_{name}"].sum() for name in numbers
    )
    if table.tidy and not tidy:
        raise UntidyError
    if not tidy:
        refuse(table.name, lacking(steps)[0])
    return _coded(steps, cells, states, actions, [*by, *(sums or {})])


def _coded(steps: Steps, cells: Any, states: Named, actions: Named, extra: list[str]) -> Cells:
    """Replace labels by numbers, in sorted order of the cells."""
    pl = polars()
    types = {cells["state"].dtype, cells["next_state"].dtype}
    if len(types) > 1:
        cells = cells.with_columns(pl.col("state", "next_state").cast(pl.String if pl.String in types else pl.Float64))
    state_names, s, t = codes(steps.table, "state", [cells["state"], cells["next_state"]], states)
    action_names, a = codes(steps.table, "action", [cells["action"]], actions)
    pair = s * len(action_names) + a
    order = np.lexsort((t, pair))
    cost = cells["cost"].to_numpy() if "cost" in cells.columns else None
    found = Cells(
        state_names, action_names, pair, t, cells["count"].to_numpy(), cells["rows"].to_numpy().astype(np.int64), cost,
        {name: cells[name].to_numpy() for name in extra}, None if cost is None else spread_of_pairs(cells),
    )  # fmt: skip
    return found.keep(order)
