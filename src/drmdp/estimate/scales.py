"""Labels that were not in use at the same time: a scale that changed, such as words until 2019 and numbers from 2020 on.

Several states that appear together, late, and are frequent from then on were hardly possible before. Told are two or more
states that are all first seen within `TOGETHER` of the time that the log covers, from a date on that has `EARLY` of that time
before it, if the share that they have of the rows from then on would make `MISSED` of the rows before.
"""

from __future__ import annotations

from typing import Any

from drmdp.core.names import natural
from drmdp.estimate.findings import Finding
from drmdp.estimate.neighbours import shown_time
from drmdp.estimate.source import polars
from drmdp.estimate.table import Table, shown_names

EARLY, TOGETHER, MISSED = 0.2, 0.1, 20


def scale_findings(table: Table) -> list[Finding]:
    """States that appear together, where the times are dates."""
    pl = polars()
    if "time" not in table.wanted or not table.frame.collect_schema()["time"].is_temporal():
        return []
    time = pl.col("time")
    query = table.frame.group_by("state").agg(first=time.min(), last=time.max(), rows=pl.len())
    seen = table.collect(query)[0].drop_nulls().with_columns(pl.col("state").cast(pl.String))
    if seen.height < 3:
        return []
    begin = seen["first"].min()
    span = seen["last"].max() - begin
    after = pl.col("first").is_between(pl.col("at"), pl.col("at") + TOGETHER * span)
    starts = seen.select(at="first").unique().filter(pl.col("at") >= begin + EARLY * span)
    groups = starts.join(seen, how="cross").filter(after).group_by("at").agg(pl.col("rows").sum(), pl.len())
    groups = groups.filter(pl.col("len") >= 2).sort("rows", -pl.col("at").to_physical())
    if not groups.height:
        return []
    at, rows = groups["at"][-1], groups["rows"][-1]
    before, from_then, row = table.collect(
        table.frame.select(
            (time < at).sum().alias("before"),
            (time >= at).sum().alias("after"),
            pl.col("_row").filter(time == at).min(),
        )
    )[0].row(0)
    if rows / from_then * before < MISSED:
        return []
    new = seen.filter(pl.col("first").is_between(at, at + TOGETHER * span))
    return [_finding(table, seen, new, at, before, row)]


def _finding(table: Table, seen: Any, new: Any, at: Any, before: int, row: int) -> Finding:
    pl = polars()
    gone = seen.filter(pl.col("last") < at)
    names = {kind: shown_names(sorted(own["state"], key=natural)) for kind, own in (("new", new), ("gone", gone))}
    what = f"the states {names['new']} first appear from {shown_time(at)} on, after {before:,} rows without them"
    what += f", the last rows with {names['gone']} being of {shown_time(gone['last'].max())}" if gone.height else ""
    cure = "if the scale changed then, estimate from the rows of one scale, or `rename` labels that mean the same; `states` if all are meant"
    return Finding("scale", False, new.height, "states", table.places([([row], what, "state", None)]), cure)
