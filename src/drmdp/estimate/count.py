"""How often each transition was seen: grouped sums over a lazy table, so memory grows with what is distinct, not with rows.

A *cell* is a triple (state, action, next state). Labels are sorted: integers by size, strings by character, and numbers in them by size.

From counts to the counts of N kernels.

* one kernel of everything;
* one kernel per value of a column: a year, a hospital, a machine;
* ``"bootstrap"``: each kernel has as many episodes as the table, drawn with replacement (transitions, if there is no
  episode column);
* ``"folds"``: episodes (or transitions) are dealt at random into N parts, and kernel i is of all but part i;
* ``"parts"``: the same, and kernel i is of part i alone: what `drmdp.radius.cross_validate` holds out;
* ``"posterior"``: each row of each kernel is a draw from the Dirichlet distribution with parameters
  (prior + count), independently. Next states that were seen from the state under any action have a prior too: three rows that all went the same way
  are no certainty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.files import memory_limit
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimate.findings import Finding, refuse
from drmdp.estimate.labels import Named, codes
from drmdp.estimate.numbers import DASHES
from drmdp.estimate.order import Steps
from drmdp.estimate.outliers import spread, spread_of_pairs
from drmdp.estimate.source import polars
from drmdp.estimate.table import NUMBERS, UntidyError, is_tidy
from drmdp.estimate.times import GAP

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
    gap: IntArray | None = None  # steps to the next state, if rows several steps apart are counted too

    @property
    def keys(self) -> IntArray:
        """One number per cell, pair·S + column, ascending; (gap·S·A + pair)·S + column, where cells have a gap."""
        S, A = len(self.states), len(self.actions)
        return (self.pair if self.gap is None else self.gap * (S * A) + self.pair) * S + self.column

    def keep(self, chosen: Any) -> Cells:
        """Those cells only, in that order."""
        cost = None if self.cost is None else self.cost[chosen]
        extra = {name: values[chosen] for name, values in self.extra.items()}
        return Cells(
            self.states, self.actions, self.pair[chosen], self.column[chosen], self.count[chosen], self.rows[chosen],
            cost, extra, self.prices, None if self.gap is None else self.gap[chosen],
        )  # fmt: skip


def _rules(names: list[str]) -> dict[str, Any]:
    """Where a transition lacks what it needs, by role."""
    pl = polars()
    rules = {role: pl.col(role).is_null() for role in (*CELL, "unit") if role in names}
    rules |= {role: ~pl.col(role).is_finite().fill_null(False) for role in PRICES if role in names}
    if "weight" in names:
        weight = pl.col("weight")
        rules["weight"] = ~(weight.is_finite() & (weight >= 0)).fill_null(False)
    if "stage" in names:
        rules["stage"] = ~pl.col("stage").is_finite().fill_null(False)
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
    by = [*by, GAP] if GAP in names else by
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
    gap = cells[GAP].to_numpy().astype(np.int64) if GAP in cells.columns else None
    order = np.lexsort((t, pair) if gap is None else (t, pair, gap))
    cost = cells["cost"].to_numpy() if "cost" in cells.columns else None
    found = Cells(
        state_names, action_names, pair, t, cells["count"].to_numpy(), cells["rows"].to_numpy().astype(np.int64), cost,
        {name: cells[name].to_numpy() for name in extra}, None if cost is None else spread_of_pairs(cells), gap,
    )  # fmt: skip
    return found.keep(order)


# ---------------------------------------------------------------------- sample


SAMPLED = ("bootstrap", "folds", "parts", "posterior")
RESAMPLED = ("bootstrap", "folds", "parts")


@dataclass(frozen=True)
class Clock:
    """Of rows that are steps of continuous time; see `drmdp.estimate.rates`."""

    steps: float  # per unit of time
    rates: Array  # (S, A, S), of all data together
    variance: Array  # (S, A, S) of the logarithms of rates, NaN where rows do not tell it
    time: Array  # (S, A) observed
    rows: Array  # (S, A)

    def counts(self, steps: float) -> Array:
        """Transitions (S, A, S) of a model with so many steps per unit of time: as many as tell as much as the rows, at most as many."""
        p = self.rates / steps
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(np.isnan(self.variance) | (p <= 0), np.inf, 1 / (p * self.variance))
        size = np.minimum(np.minimum(size.min(axis=2), steps * self.time), self.rows)
        return np.asarray(size[:, :, None] * np.maximum(p + np.eye(len(p))[:, None], 0.0))


@dataclass(frozen=True)
class Samples:
    """Counts of N kernels, and all of them together."""

    labels: tuple[Any, ...]  # of the kernels
    pooled: Cells
    keys: list[IntArray]  # of each kernel: its cells, pair·S + next state, ascending
    counts: list[Array]  # and how often, positive; the arrays are its own
    rows: IntArray | None  # transitions of each kernel, where rows make a kernel
    grouped: bool = False  # whether each kernel has data of its own, by a column
    told: tuple[str, ...] = ()  # what was assumed to make rows of one step
    clock: Clock | None = None  # where rows are made of rates

    @property
    def totals(self) -> Array:
        """Weight of the rows of each kernel, (N,)."""
        return np.array([count.sum() for count in self.counts])


def by_column(steps: Steps, states: Named, actions: Named) -> Samples:
    """One kernel per value of the column `unit`."""
    cells = cells_of(steps, states, actions, ["unit"])
    labels, kernel = codes(steps.table, "unit", [polars().Series(cells.extra["unit"])], Named(steps.units))
    cells = cells.keep(np.argsort(kernel, kind="stable"))  # they are sorted by key
    kernel = np.sort(kernel)
    rows = np.bincount(kernel, weights=cells.rows, minlength=len(labels)).astype(np.int64)
    cuts = np.searchsorted(kernel, np.arange(1, len(labels)))
    found = _samples(tuple(labels), merge(cells), np.split(cells.keys, cuts), np.split(cells.count, cuts), rows)
    return replace(found, grouped=True)


def _samples(labels: tuple[Any, ...], pooled: Cells, keys: list[IntArray], counts: list[Array], rows: Any) -> Samples:
    """Leave out what was counted as 0."""
    seen = [count > 0 for count in counts]
    keys = [own if here.all() else own[here] for own, here in zip(keys, seen, strict=True)]
    counts = [count if here.all() else count[here] for count, here in zip(counts, seen, strict=True)]
    return Samples(labels, pooled, keys, counts, rows)


def single(steps: Steps, states: Named, actions: Named) -> Samples:
    """One kernel of everything."""
    cells = cells_of(steps, states, actions, [])
    return _wide(cells, cells.count[None], ("all",))


def resampled(steps: Steps, states: Named, actions: Named, by: str, n: int, rng: Any) -> Samples:
    """Bootstrap, folds or parts, over episodes if the table has them."""
    labels = tuple(f"{by} {i}" for i in range(n))
    if steps.table.columns.episode is None:
        if steps.table.columns.weight is not None:
            raise InputError(f"`by={by!r}` with weighted rows needs `episode`: what is drawn must be known")
        cells = cells_of(steps, states, actions, [])
        if by == "bootstrap":
            return _wide(cells, _bootstrap_rows(cells.rows, n, rng), labels)
        parts = _part_rows(cells.rows, n, by, rng)
        return _wide(cells, parts if by == "parts" else cells.rows - parts, labels)
    pl = polars()
    own = steps.frame if steps.drawn is None else steps.drawn
    episodes = steps.table.collect(own.select(pl.col("episode").unique()))[0]
    if steps.table.tidy and not is_tidy(episodes["episode"]):
        raise UntidyError
    episodes = episodes.sort(pl.col("episode").cast(pl.String))  # the order of categories is not fixed
    times = _multiplicities(episodes.height, n, by, rng)
    names = [f"times_{i}" for i in range(n)]
    drawn = episodes.with_columns(pl.Series(name, times[i]) for i, name in enumerate(names))
    joined = replace(steps, frame=steps.frame.join(drawn.lazy(), on="episode"))
    cells = cells_of(joined, states, actions, [], {name: pl.col(name) for name in names})
    return _wide(cells, np.stack([cells.extra[name] for name in names]), labels)


def _multiplicities(n_units: int, n: int, by: str, rng: Any) -> IntArray:
    """How often each kernel uses each unit, (n, units)."""
    if by == "bootstrap":
        return np.stack([np.bincount(rng.integers(0, n_units, n_units), minlength=n_units) for _ in range(n)])
    if n_units < n:
        raise InputError(f"`by={by!r}`: {n} {by} need as many episodes, got {n_units}")
    fold = rng.permutation(np.arange(n_units) % n)
    return np.stack([((fold == i) == (by == "parts")).astype(np.int64) for i in range(n)])


def _bootstrap_rows(rows: IntArray, n: int, rng: Any) -> Array:
    total = rows.sum()
    return np.asarray(rng.multinomial(total, rows / total, size=n), dtype=np.float64)


def _part_rows(rows: IntArray, n: int, by: str, rng: Any) -> Array:
    """Parts of nearly equal size dealt without replacement, (n, cells)."""
    total = int(rows.sum())
    if total < n:
        raise InputError(f"`by={by!r}`: {n} {by} need as many transitions, got {total}")
    left, found = rows.copy(), []
    for i in range(n):
        size = total // n + (i < total % n)
        part = rng.multivariate_hypergeometric(left, size, method="marginals") if i < n - 1 else left
        found.append(part)
        left = left - part
    return np.stack(found).astype(np.float64)


def posterior(cells: Cells, n: int, prior: float, on: str, rng: Any) -> Samples:
    """Dirichlet draws, as counts that are already shares: on the next states of the pair ("seen"), of the state, or on all."""
    keys, count = cells.keys, cells.count
    if on != "seen":
        keys = wider(cells, on, n)
        count = np.zeros(keys.size)
        count[np.searchsorted(keys, cells.keys)] = cells.count
    draws = [rng.standard_gamma(prior + count) for _ in range(n)]
    if prior < 0.1:  # such gamma variables may come out as zero, also a whole row of them
        draws = [np.maximum(draw, np.where(count > 0, np.finfo(float).tiny, 0)) for draw in draws]
    return _samples(tuple(f"draw {i}" for i in range(n)), cells, [keys] * n, draws, None)


def wider(cells: Cells, on: str, n: int) -> IntArray:
    """Keys of the seen pairs with all next states, or with those that their state has under any action, ascending."""
    S, A = len(cells.states), len(cells.actions)
    own = np.unique(cells.pair)
    states, columns = np.divmod(np.unique(cells.pair // A * S + cells.column), S)
    sizes = np.full(S, S) if on == "all" else np.bincount(states, minlength=S)
    lengths = sizes[own // A]
    if int(lengths.sum()) * n > memory_limit() // 32:
        raise InputError(
            f"`prior_on={on!r}`: {own.size} pairs, {int(lengths.sum())} next states and {n} kernels do not fit in memory"
        )
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if on != "all":
        place = columns[np.repeat((np.cumsum(sizes) - sizes)[own // A], lengths) + place]
    return np.asarray(np.repeat(own * S, lengths) + place)


def _wide(cells: Cells, counts: Array, labels: tuple[Any, ...]) -> Samples:
    """From counts (N, cells)."""
    if len(labels) == 1:
        rows: Any = np.array([cells.rows.sum()])
    else:
        plain = np.array_equal(cells.count, cells.rows)  # weights say nothing about rows
        rows = counts.sum(axis=1).astype(np.int64) if plain else None
    return _samples(labels, cells, [cells.keys] * len(labels), [np.array(count) for count in counts], rows)


def merge(cells: Cells) -> Cells:
    """Add up cells that are the same."""
    S, A = len(cells.states), len(cells.actions)
    keys, cell = np.unique(cells.keys, return_inverse=True)
    rest, column = np.divmod(keys, S)
    gap, pair = np.divmod(rest, S * A)

    def total(values: Any) -> Any:
        return np.bincount(cell, weights=values)

    cost = None if cells.cost is None else total(cells.cost)
    return Cells(
        cells.states,
        cells.actions,
        pair,
        column,
        total(cells.count),
        total(cells.rows).astype(np.int64),
        cost,
        {},
        cells.prices,
        None if cells.gap is None else gap,
    )
