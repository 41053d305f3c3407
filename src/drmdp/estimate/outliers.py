"""Costs that stand out: placeholders and typing errors.

A row is listed if its cost x is

* the least or largest of all, written in nines alone, as −999 and 99999, and at least twice as far from 0 as the ends of what else the pairs have;
* of a sign that at most one in `RARE` rows has; or
* decisive for its pair: the mean m of the n ≥ `FEW` costs of its state and action differs from m', that of the others, by more than |m'|/2, and x lies
  further from m' than `FAR` standard deviations of the others.

All of this follows from a few numbers a pair, which are counted with the transitions. Where rows have weights, no row is called decisive.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.estimate.findings import LIMIT, Finding
from drmdp.estimate.source import polars
from drmdp.estimate.table import Table

FEW, FAR, RARE = 5, 20.0, 1000
NINES = re.compile(r"-?9{3,}(\.9+)?")
Reason = tuple[Any, str]  # which rows, and what to say of one


def spread(cost: Any) -> dict[str, Any]:
    """What is kept of the costs of a cell; see `spread_of_pairs`."""
    return {
        "n": cost.count(), "total": cost.sum(), "square": (cost * cost).sum(), "low": cost.min(), "high": cost.max(),
        "negative": (cost < 0).sum(), "positive": (cost > 0).sum(),
    }  # fmt: skip


def spread_of_pairs(cells: Any) -> Any:
    """The same for each pair of state and action."""
    pl = polars()
    sums = [pl.col(name).sum() for name in ("n", "total", "square", "negative", "positive")]
    return cells.group_by("state", "action").agg(*sums, pl.col("low").min(), pl.col("high").max())


def outliers(table: Table, frame: Any, prices: Any) -> list[Finding]:
    """Rows whose costs, or rewards, stand out."""
    kind = "reward" if "reward" in table.wanted else "cost"
    pl = polars()
    prices = None if prices is None else prices.filter(pl.col("n") > 0).sort("state", "action")
    if prices is None or not prices.height:
        return []
    decisive = [] if "weight" in table.wanted else _decisive(prices, kind)
    reasons = [*_nines(prices, kind), *_signs(prices, kind), *decisive][:LIMIT]
    if not reasons:
        return []
    first = pl.coalesce(pl.when(rule).then(pl.lit(k)) for k, (rule, _) in enumerate(reasons))
    rows = frame.select("_row", kind, reason=first).filter(pl.col("reason").is_not_null())
    count, some = table.collect(rows.select(pl.len()), rows.sort("_row").head(LIMIT))
    places = table.places([([row], f"{x:.12g} {reasons[k][1]}", kind, x) for row, x, k in some.rows()])
    return [
        Finding("outlier", False, int(count.item()), "rows", places, "if it is an error, mend it or leave the row out")
    ]


def _nines(prices: Any, kind: str) -> list[Reason]:
    ends = np.unique(np.concatenate([prices["low"].to_numpy(), prices["high"].to_numpy()]))
    found = [
        float(x)
        for x in dict.fromkeys((ends[0], ends[-1]))
        if NINES.fullmatch(f"{x:.12g}") and (2 * np.abs(ends[ends != x]) <= abs(x)).all()
    ]
    return [(polars().col(kind) == x, "looks like a placeholder") for x in found]


def _signs(prices: Any, kind: str) -> list[Reason]:
    n = int(prices["n"].sum())
    found = []
    for sign, other, rule in (
        ("negative", "positive", polars().col(kind) < 0),
        ("positive", "negative", polars().col(kind) > 0),
    ):
        rare = int(prices[sign].sum())
        if rare and int(prices[other].sum()) > 2 and rare <= max(1, n // RARE):
            only = f"is the only {sign} {kind}" if rare == 1 else f"is one of {rare:,} {sign} {kind}s"
            found.append((rule, f"{only} of {n:,}"))
    return found


def _decisive(prices: Any, kind: str) -> list[Reason]:
    pl = polars()
    n, total, square = (prices[name].cast(pl.Float64).to_numpy() for name in ("n", "total", "square"))
    found = []
    for name in ("low", "high"):
        x = prices[name].to_numpy()
        with np.errstate(all="ignore"):
            others: Array = (total - x) / (n - 1)
            deviation = np.sqrt(np.maximum((square - x * x) / (n - 1) - others**2, 0.0))
            far = np.abs(x - others) > FAR * deviation + 1e-6 * np.abs(x)
            moved = np.abs(total / n - others) > np.abs(others) / 2
        for k in np.flatnonzero((n >= FEW) & far & moved)[:LIMIT]:
            s, a, mean = prices["state"][int(k)], prices["action"][int(k)], total[k] / n[k]
            rule = (pl.col("state") == s) & (pl.col("action") == a) & (pl.col(kind) == x[k])
            what = f"alone takes the mean {kind} of state {s!r}, action {a!r} from {others[k]:.6g} to {mean:.6g}"
            found.append((rule, f"{what} ({n[k]:.0f} rows)"))
    return found
