"""Costs that stand out: placeholders and typing errors.

A row is listed if its cost x is

* the least or largest of all, written in nines alone, as −999 and 99999, and at least twice as far
  from 0 as the ends of what else the pairs have;
* of a sign that at most one in `RARE` rows has; or
* decisive for its pair: the mean m of the n ≥ `FEW` costs of its state and action differs from m',
  that of the others, by more than |m'|/2, and x lies further from m' than `FAR` standard deviations
  of the others.

All of this follows from a few numbers a pair, which are counted with the transitions. Where rows
have weights, no row is called decisive.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.estimation.log.findings import LIMIT, Finding
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import LogTable

FEW, FAR, RARE = 5, 20.0, 1000
NINES = re.compile(r"-?9{3,}(\.9+)?")
Reason = tuple[Any, str]  # which rows, and what to say of one


def spread(cost: Any) -> dict[str, Any]:
    """Aggregates of the costs of a cell; see `spread_of_pairs`."""
    return {
        "n": cost.count(),
        "total": cost.sum(),
        "square": (cost * cost).sum(),
        "low": cost.min(),
        "high": cost.max(),
        "negative": (cost < 0).sum(),
        "positive": (cost > 0).sum(),
    }


def spread_of_pairs(cells: Any) -> Any:
    """The aggregates of each pair of state and action."""
    sums = [pl.col(name).sum() for name in ("n", "total", "square", "negative", "positive")]
    return cells.group_by("state", "action").agg(*sums, pl.col("low").min(), pl.col("high").max())


def outliers(table: LogTable, frame: Any, prices: Any) -> list[Finding]:
    """Rows whose costs, or rewards, stand out."""
    kind = "reward" if "reward" in table.wanted else "cost"
    prices = None if prices is None else prices.filter(pl.col("n") > 0).sort("state", "action")
    if prices is None or not prices.height:
        return []
    decisive = [] if "weight" in table.wanted else _decisive(prices, kind)
    reasons = [*_nines(prices, kind), *_signs(prices, kind), *decisive][:LIMIT]
    if not reasons:
        return []
    first = pl.coalesce(pl.when(rule).then(pl.lit(k)) for k, (rule, _) in enumerate(reasons))
    rows = frame.select("_row", kind, reason=first).filter(pl.col("reason").is_not_null())
    n, sample = table.first_of(rows)
    places = []
    for row in sample:
        cost, (_, why) = row[kind], reasons[row["reason"]]
        places.append(([row["_row"]], f"{cost:.12g} {why}", kind, cost))
    cure = "if it is an error, mend it or leave the row out"
    return [Finding("outlier", False, n, "rows", table.places(places), cure)]


def _nines(prices: Any, kind: str) -> list[Reason]:
    ends = np.unique(np.concatenate([prices["low"].to_numpy(), prices["high"].to_numpy()]))
    return [
        (pl.col(kind) == float(x), "looks like a placeholder")
        for x in dict.fromkeys((ends[0], ends[-1]))
        if NINES.fullmatch(f"{x:.12g}") and (2 * np.abs(ends[ends != x]) <= abs(x)).all()
    ]


def _signs(prices: Any, kind: str) -> list[Reason]:
    n = int(prices["n"].sum())
    reasons = []
    rules = {"negative": pl.col(kind) < 0, "positive": pl.col(kind) > 0}
    for (sign, rule), other in zip(rules.items(), reversed(rules), strict=True):
        rare = int(prices[sign].sum())
        if rare and int(prices[other].sum()) > 2 and rare <= max(1, n // RARE):
            only = f"the only {sign} {kind}" if rare == 1 else f"one of {rare:,} {sign} {kind}s"
            reasons.append((rule, f"is {only} of {n:,}"))
    return reasons


def _decisive(prices: Any, kind: str) -> list[Reason]:
    sums = prices.select("n", "total", "square").cast(pl.Float64)
    n, total, square = (column.to_numpy() for column in sums)
    reasons = []
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
            what = f"alone takes the mean {kind} of state {s!r}, action {a!r}"
            moved_by = f"from {others[k]:.6g} to {mean:.6g} ({n[k]:.0f} rows)"
            reasons.append((rule, f"{what} {moved_by}"))
    return reasons
