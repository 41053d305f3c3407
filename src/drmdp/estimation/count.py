"""Counts of transitions: grouped sums over a lazy table, so memory grows with what is distinct, not
with rows.

A *cell* is a triple (state, action, next state). Labels are sorted: integers by size, strings by
character, and numbers in them by size.

The counts of N kernels are those of

* everything, for a single kernel;
* each value of a column: a year, a hospital, a machine;
* ``"bootstrap"``: each kernel has as many episodes as the table, drawn with replacement
  (transitions, if there is no episode column);
* ``"folds"``: episodes (or transitions) are dealt at random into N parts, and kernel i is of all
  but part i;
* ``"parts"``: the same, and kernel i is of part i alone, which `drmdp.radius.cross_validate` holds
  out;
* ``"posterior"``: each row of each kernel is a draw from the Dirichlet distribution with parameters
  (prior + count), independently. Next states that were seen from the state under any action have a
  prior too: three rows that all went the same way are no certainty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.storage import offsets, row_entries
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimation.log.findings import Finding, refuse
from drmdp.estimation.log.labels import GivenNames, codes
from drmdp.estimation.log.numbers import DASHES
from drmdp.estimation.log.order import Transitions
from drmdp.estimation.log.outliers import spread, spread_of_pairs
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import NUMBERS, PRICES, LogTable, UntidyError, is_tidy, unflagged
from drmdp.estimation.log.times import GAP
from drmdp.io.files import memory_limit

CELL = ("state", "action", "next_state")
NOTHING = "no transitions"
Row = tuple[IntArray, Array]
"""Keys of cells, ascending, and a number of each: a count, or a probability."""
Given = tuple[GivenNames, GivenNames]
"""Names of states and of actions."""


@dataclass(frozen=True)
class CountCells:
    """Cells as numbers: entry k has `count[k]` (weighted) for the pair s·A + a and the next state
    `column[k]`.
    """

    states: Names
    actions: Names
    pair: IntArray
    column: IntArray
    count: Array
    rows: IntArray  # not weighted
    cost: Array | None  # weighted sum
    extra: dict[str, Any]  # further columns asked for
    prices: Any = None  # a frame: `spread` of the costs, or rewards, of each pair
    gap: IntArray | None = None  # steps to the next state, where rows may be several apart

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of states and of actions."""
        return len(self.states), len(self.actions)

    def by_pair(self, values: Any) -> Array:
        """Sums over the cells of each pair, (S·A,)."""
        sums = np.bincount(self.pair, values, len(self.states) * len(self.actions))
        return sums.astype(np.float64)

    def parts(self, keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Gap, pair and next state of keys; the gap is 0 where keys have none."""
        rest, column = np.divmod(keys, len(self.states))
        gap, pair = np.divmod(rest, len(self.states) * len(self.actions))
        return gap, pair, column

    def spoken(self, pair: Any) -> str:
        """A pair in words: "replace when worn"."""
        s, a = divmod(int(pair), len(self.actions))
        return f"{self.actions[a]} when {self.states[s]}"

    def quoted(self, pair: Any) -> str:
        """A pair with its names as they are: "state 'worn', action 'replace'"."""
        s, a = divmod(int(pair), len(self.actions))
        return f"state {self.states[s]!r}, action {self.actions[a]!r}"

    @property
    def keys(self) -> IntArray:
        """One number per cell, pair·S + column, ascending; (gap·S·A + pair)·S + column, where cells
        have a gap.
        """
        S, A = self.shape
        return (self.pair if self.gap is None else self.gap * (S * A) + self.pair) * S + self.column

    def summed(self, keys: IntArray, place: IntArray) -> CountCells:
        """Cells with other keys, ascending: cell k counts for `keys[place[k]]`."""
        gap, pair, column = self.parts(keys)
        named = (("count", self.count), ("rows", self.rows), ("cost", self.cost))
        sums: Any = {n: np.bincount(place, x, keys.size) for n, x in named if x is not None}
        sums |= {"rows": sums["rows"].astype(np.int64), "gap": None if self.gap is None else gap}
        return replace(self, pair=pair, column=column, **sums, extra={})

    def keep(self, chosen: Any) -> CountCells:
        """Those cells only, in that order."""
        names = ("pair", "column", "count", "rows", "cost", "gap")
        arrays: Any = {name: x[chosen] for name in names if (x := getattr(self, name)) is not None}
        extra = {name: values[chosen] for name, values in self.extra.items()}
        return replace(self, **arrays, extra=extra)


def _rules(names: list[str]) -> dict[str, Any]:
    """Expressions for rows that lack a role."""
    rules = {role: pl.col(role).is_null() for role in (*CELL, "unit")}
    for role in NUMBERS:
        fits = pl.col(role).is_finite() & ((pl.col(role) >= 0) | (role != "weight"))
        rules[role] = ~fits.fill_null(False)
    return {role: rule for role, rule in rules.items() if role in names}


def lacking(steps: Transitions) -> tuple[list[Finding], Transitions]:
    """Findings on incomplete transitions, and the complete ones; prices may be null there."""
    table = steps.table
    names = steps.frame.collect_schema().names()
    rules = _rules(names)
    new = unflagged(rules, names)
    findings = []
    asked = {role: rule.sum() for role, rule in new.items()}
    for role, count in table.totals(steps.frame, asked).items():
        if not count:
            continue
        cells = table.cells(new[role], role, steps.frame)
        text = "" if cells[0][1] is None else str(cells[0][1]).strip()
        kind, what = "missing", f"the {role} is missing"
        if text not in ("", "nan", *DASHES):
            low = " and not negative" if role == "weight" else ""
            kind, what = "number", f"the {role} must be finite{low}, got {{value}}"
        cure = "write 0 if a dash means that" if text in DASHES else ""
        if kind == "missing":
            what = "the cell is empty, and `by` needs it" if role == "unit" else what
            cure = "; ".join(filter(None, (cure or "fill it in", _skip(table, role))))
        findings.append(table.finding(kind, int(count), cells, role, what, cure=cure))
    needed = [rule for role, rule in rules.items() if role not in PRICES]
    prices = {role: pl.when(~rules[role]).then(role) for role in PRICES if role in rules}
    good = steps.frame.filter(~pl.any_horizontal(needed)).with_columns(**prices)
    return findings, Transitions(table, good, steps.n_ends, checked=True)


def _skip(table: LogTable, role: str) -> str:
    """How to leave rows out that lack a role, where that does not join what is around them."""
    visits = table.columns.next_state is None
    if visits and table.columns.time is None:
        return ""
    skip = f"or leave such rows out with `skip_rows_without={table.wanted[role]!r}`"
    return f"{skip}, as gaps" if visits else skip


def cells_of(
    steps: Transitions, names: Given, by: list[str], sums: dict[str, Any] | None = None
) -> CountCells:
    """Sum by cell and the columns `by`; `sums` are more expressions to add up, each times the
    weight.
    """
    table = steps.table
    columns = steps.frame.collect_schema().names()
    weight = pl.col("weight") if "weight" in columns else pl.lit(1.0)
    cost = next((pl.col(name) for name in PRICES if name in columns), None)
    total = weight.sum() if "weight" in columns else pl.len().cast(pl.Float64)
    asked = {"rows": pl.len(), "count": total}
    if cost is not None:
        asked["cost"] = (weight * cost).sum()
        asked |= spread(cost)
    rules = {} if steps.checked else _rules(columns)
    numbers = {role: rule for role, rule in rules.items() if role in NUMBERS}
    asked |= {f"bad_{name}": rule.sum() for name, rule in numbers.items()}
    asked |= {name: (weight * factor).sum() for name, factor in (sums or {}).items()}
    by = [*by, GAP] if GAP in columns else by
    cells = table.query(steps.frame.group_by(*CELL, *by).agg(**asked))
    plain = {pl.Categorical: pl.String, pl.Int32: pl.Int64}
    cells = cells.with_columns(pl.col(old).cast(new) for old, new in plain.items())
    tidy = all(is_tidy(cells[role]) for role in (*CELL, *by))
    tidy = tidy and not any(cells[f"bad_{name}"].sum() for name in numbers)
    if table.tidy and not (cells.height and tidy):
        raise UntidyError
    if not cells.height:
        raise InputError(f"{table.name}: {NOTHING}")
    if not tidy:
        refuse(table.name, lacking(steps)[0])
    return _coded(steps, cells, names, [*by, *(sums or {})])


def _coded(steps: Transitions, cells: Any, names: Given, extra: list[str]) -> CountCells:
    """Replace labels by numbers, in sorted order of the cells."""
    types = {cells["state"].dtype, cells["next_state"].dtype}
    if len(types) > 1:
        common = pl.String if pl.String in types else pl.Float64
        cells = cells.with_columns(pl.col("state", "next_state").cast(common))
    state_names, s, t = codes(steps.table, "state", [cells["state"], cells["next_state"]], names[0])
    action_names, a = codes(steps.table, "action", [cells["action"]], names[1])
    pair = s * len(action_names) + a
    gap = cells[GAP].to_numpy().astype(np.int64) if GAP in cells.columns else None
    order = np.lexsort((t, pair) if gap is None else (t, pair, gap))
    cost = cells["cost"].to_numpy() if "cost" in cells.columns else None
    count, rows = cells["count"].to_numpy(), cells["rows"].to_numpy().astype(np.int64)
    sums = {name: cells[name].to_numpy() for name in extra}
    prices = None if cost is None else spread_of_pairs(cells)
    coded = CountCells(state_names, action_names, pair, t, count, rows, cost, sums, prices, gap)
    return coded.keep(order)


# ---------------------------------------------------------------------- sample


SAMPLED = ("bootstrap", "folds", "parts", "posterior")
RESAMPLED = ("bootstrap", "folds", "parts")


@dataclass(frozen=True)
class Clock:
    """Rates and their precision, where rows are steps of continuous time; see
    `drmdp.estimation.rates`.
    """

    steps: float  # per unit of time
    rates: Array  # (S, A, S), of all data together
    variance: Array  # (S, A, S) of the logarithms of rates, NaN where rows do not tell it
    time: Array  # (S, A) observed
    rows: Array  # (S, A)

    def counts(self, steps: float) -> Array:
        """Transitions (S, A, S) of a model with so many steps per unit of time: as many as tell as
        much as the rows, at most as many.
        """
        p = self.rates / steps
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(np.isnan(self.variance) | (p <= 0), np.inf, 1 / (p * self.variance))
        size = np.minimum(np.minimum(size.min(axis=2), steps * self.time), self.rows)
        return np.asarray(size[:, :, None] * np.maximum(p + np.eye(len(p))[:, None], 0.0))


@dataclass(frozen=True)
class Samples:
    """Counts of N kernels, and all of them together."""

    labels: tuple[Any, ...]  # of the kernels
    pooled: CountCells
    parts: list[Row]  # cells of each kernel and how often, positive; the arrays are its own
    rows: IntArray | None  # transitions of each kernel, where rows make a kernel
    grouped: bool = False  # whether each kernel has data of its own, by a column
    notes: tuple[str, ...] = ()  # what was assumed to make rows of one step
    clock: Clock | None = None  # where rows are made of rates

    @property
    def totals(self) -> Array:
        """Weight of the rows of each kernel, (N,)."""
        return np.array([number.sum() for _, number in self.parts])


def by_column(steps: Transitions, names: Given) -> Samples:
    """One kernel per value of the column `unit`."""
    cells = cells_of(steps, names, ["unit"])
    units = [pl.Series(cells.extra["unit"])]
    labels, kernel = codes(steps.table, "unit", units, GivenNames(steps.units))
    cells = cells.keep(np.argsort(kernel, kind="stable"))  # they are sorted by key
    kernel = np.sort(kernel)
    rows = np.bincount(kernel, weights=cells.rows, minlength=len(labels)).astype(np.int64)
    cuts = np.searchsorted(kernel, np.arange(1, len(labels)))
    parts = zip(np.split(cells.keys, cuts), np.split(cells.count, cuts), strict=True)
    pooled = cells.summed(*np.unique(cells.keys, return_inverse=True))
    return replace(_samples(tuple(labels), pooled, parts, rows), grouped=True)


def _samples(
    labels: tuple[Any, ...], pooled: CountCells, parts: Iterable[Row], rows: Any
) -> Samples:
    """Leave out what was counted as 0."""
    positive = [
        (keys, number) if (number > 0).all() else (keys[number > 0], number[number > 0])
        for keys, number in parts
    ]
    return Samples(labels, pooled, positive, rows)


def single(steps: Transitions, names: Given) -> Samples:
    """One kernel of everything."""
    cells = cells_of(steps, names, [])
    return _samples_of(cells, cells.count[None], ("all",))


def resampled(steps: Transitions, names: Given, by: str, n: int, rng: Any) -> Samples:
    """Bootstrap, folds or parts, over episodes if the table has them."""
    labels = tuple(f"{by} {i}" for i in range(n))
    if steps.table.columns.episode is None:
        if steps.table.columns.weight is not None:
            needs = "needs `episode`: what is drawn must be known"
            raise InputError(f"`by={by!r}` with weighted rows {needs}")
        cells = cells_of(steps, names, [])
        if by == "bootstrap":
            total = cells.rows.sum()
            drawn = rng.multinomial(total, cells.rows / total, size=n)
            return _samples_of(cells, np.asarray(drawn, dtype=np.float64), labels)
        parts = _part_rows(cells.rows, n, by, rng)
        return _samples_of(cells, parts if by == "parts" else cells.rows - parts, labels)
    frame = steps.frame if steps.drawn is None else steps.drawn
    episodes = steps.table.query(frame.select(pl.col("episode").unique()))
    if steps.table.tidy and not is_tidy(episodes["episode"]):
        raise UntidyError
    episodes = episodes.sort(pl.col("episode").cast(pl.String))  # categories have no fixed order
    times = _multiplicities(episodes.height, n, by, rng)
    drawn_times = [f"times_{i}" for i in range(n)]
    drawn = episodes.with_columns(map(pl.Series, drawn_times, times))
    joined = replace(steps, frame=steps.frame.join(drawn.lazy(), on="episode"))
    cells = cells_of(joined, names, [], {name: pl.col(name) for name in drawn_times})
    return _samples_of(cells, np.stack([cells.extra[name] for name in drawn_times]), labels)


def _multiplicities(n_units: int, n: int, by: str, rng: Any) -> IntArray:
    """Multiplicity of each unit in each kernel, (n, units)."""
    if by == "bootstrap":
        drawn = (rng.integers(0, n_units, n_units) for _ in range(n))
        return np.stack([np.bincount(units, minlength=n_units) for units in drawn])
    if n_units < n:
        raise InputError(f"`by={by!r}`: {n} {by} need as many episodes, got {n_units}")
    fold = rng.permutation(np.arange(n_units) % n)
    return np.stack([((fold == i) == (by == "parts")).astype(np.int64) for i in range(n)])


def _part_rows(rows: IntArray, n: int, by: str, rng: Any) -> Array:
    """Parts of nearly equal size dealt without replacement, (n, cells)."""
    total = int(rows.sum())
    if total < n:
        raise InputError(f"`by={by!r}`: {n} {by} need as many transitions, got {total}")
    remaining, parts = rows.copy(), []
    for i in range(n - 1):
        size = total // n + (i < total % n)
        parts.append(rng.multivariate_hypergeometric(remaining, size, method="marginals"))
        remaining = remaining - parts[-1]
    return np.stack([*parts, remaining]).astype(np.float64)


def posterior(cells: CountCells, n: int, prior: float, on: str, rng: Any) -> Samples:
    """Dirichlet draws, as counts that are already shares: on the next states of the pair ("seen"),
    of the state, or on all.
    """
    keys, count = cells.keys, cells.count
    if on != "seen":
        keys = wider(cells, on, n)
        count = spread_over(keys, cells.keys, cells.count)
    draws = [rng.standard_gamma(prior + count) for _ in range(n)]
    if prior < 0.1:  # such gamma variables may come out as zero, also a whole row of them
        draws = [np.maximum(draw, np.where(count > 0, np.finfo(float).tiny, 0)) for draw in draws]
    labels = tuple(f"draw {i}" for i in range(n))
    return _samples(labels, cells, ((keys, draw) for draw in draws), None)


def spread_over(keys: IntArray, fewer: IntArray, number: Array) -> Array:
    """Numbers of some of the keys, and 0 for the others."""
    wide = np.zeros(keys.size)
    wide[np.searchsorted(keys, fewer)] = number
    return wide


def wider(cells: CountCells, on: str, n: int) -> IntArray:
    """Keys of the seen pairs with all next states, or with those that their state has under any
    action, ascending.
    """
    S, A = cells.shape
    pairs = np.unique(cells.pair)
    states, columns = np.divmod(np.unique(cells.pair // A * S + cells.column), S)
    sizes = np.full(S, S) if on == "all" else np.bincount(states, minlength=S)
    total = int(sizes[pairs // A].sum())
    if total * n > memory_limit() // 32:
        size = f"{pairs.size} pairs, {total} next states and {n} kernels"
        raise InputError(f"`prior_on={on!r}`: {size} do not fit in memory")
    at, lengths = row_entries(offsets(sizes), pairs // A)
    return np.asarray(np.repeat(pairs * S, lengths) + (at % S if on == "all" else columns[at]))


def _samples_of(cells: CountCells, counts: Array, labels: tuple[Any, ...]) -> Samples:
    """From counts (N, cells)."""
    if len(labels) == 1:
        rows: Any = np.array([cells.rows.sum()])
    else:
        plain = np.array_equal(cells.count, cells.rows)  # weights say nothing about rows
        rows = counts.sum(axis=1).astype(np.int64) if plain else None
    return _samples(labels, cells, [(cells.keys, np.array(count)) for count in counts], rows)
