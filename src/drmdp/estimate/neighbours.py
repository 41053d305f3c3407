"""Rows and the row before: whether they are of one episode, how far apart they are, and which step that speaks for.

A step that is not given is guessed: its unit is the coarsest that rarely holds two neighbours, its size the most frequent distance
in that unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drmdp.estimate.source import polars
from drmdp.estimate.table import Table, UntidyError, is_tidy
from drmdp.estimate.times import CALENDAR, CROWDED, DAYS, NEAR, UNITS, Step, cell


def same_episode() -> Any:
    """Whether the row before is of the same episode."""
    pl = polars()
    return pl.col("episode") == pl.col("episode").shift(1)


def clock_of(table: Table, unit: str | None) -> Any:
    """The column of times that a unit is counted in."""
    walls = unit in CALENDAR and "_clock" in table.frame.collect_schema().names()
    return polars().col("_clock" if walls else "time")


def elapsed(unit: str | None) -> Any:
    """Time from the row before, in mean units."""
    between = polars().col("time") - polars().col("time").shift(1)
    return between if unit is None else between.dt.total_microseconds() / (DAYS[unit] * 86_400e6)


def delta_of(table: Table, step: Step) -> Any:
    """How many units after the row before, in the same episode."""
    pl = polars()
    at = cell(clock_of(table, step.unit), step.unit)
    delta = at - at.shift(1) if step.within is None else step.rounded(elapsed(step.unit))
    return pl.when(same_episode()).then(delta)


def one_step(table: Table, step: Step) -> Any:
    """Whether a row is one step after the row before."""
    return ((delta_of(table, step) / step.size - 1).abs() <= NEAR).fill_null(False)


@dataclass(frozen=True)
class Look:
    """Whether the rows of each episode are together and in order, and how far apart they are."""

    counts: dict[str, int]
    episodes: Any
    starts: Any  # a frame: states, and how many episodes begin there, if rows are in order
    distances: Any  # a frame: how many neighbours are so far apart

    @property
    def in_order(self) -> bool:
        """Whether rows of an episode are together, and none is before the one above."""
        return self.counts["changes"] + 1 <= self.episodes.height and not self.counts.get("backward")


def look_at(table: Table, dates: bool, step: Step | None) -> Look:
    """Count neighbours by their order and distance; a table that is not tidy after all is given up."""
    pl = polars()
    names = table.frame.collect_schema().names()
    asked = {"changes": (~same_episode()).sum()}
    if table.tidy:
        asked |= {name: pl.col(name).sum() for name in names if name.startswith("_bad_")}
    first = table.frame.filter(same_episode().is_null() | ~same_episode())
    queries = [table.frame.group_by("episode").agg(pl.len()), first.group_by("state").agg(pl.len())]
    if table.columns.time is not None:
        time = pl.col("time")
        asked["backward"] = (same_episode() & (time < time.shift(1))).sum()
        asked["equal"] = (same_episode() & (time == time.shift(1))).sum()
        asked["pairs"] = same_episode().sum()
        asked["timeless"] = time.is_null().sum()
        if "_clock" in names:
            ahead = (pl.col("_clock") - time).dt.total_minutes()
            asked |= {"least_ahead": ahead.min(), "most_ahead": ahead.max()}
        if dates and step is None:
            asked |= {name: (delta_of(table, Step(1, name)) == 0).sum() for name in UNITS}
        else:
            queries.append(_distances(table, step or Step(1)))
    found = table.collect(table.frame.select(**asked), *queries)
    counts = {name: int(value or 0) for name, value in found[0].row(0, named=True).items()}
    if dates and step is None and table.columns.time is not None and not counts["backward"]:
        found += table.collect(_distances(table, Step(1, unit_of(counts))))
    bad = counts.get("timeless", 0) + sum(count for name, count in counts.items() if name.startswith("_bad_"))
    if table.tidy and (bad or not is_tidy(found[1]["episode"])):
        raise UntidyError
    return Look(counts, found[1], found[2], found[3] if len(found) > 3 else None)


def _distances(table: Table, step: Step) -> Any:
    """How often each distance occurs, and from how many days (or numbers) to how many it goes."""
    pl = polars()
    delta = delta_of(table, step)
    if step.within is not None or (step.unit is None and table.frame.collect_schema()["time"].is_float()):
        delta = delta.round_sig_figs(6)
    apart = elapsed(None if step.unit is None else "day")
    found = table.frame.select(delta=delta, apart=apart).drop_nulls().group_by("delta")
    return found.agg(pl.len(), pl.col("apart").min().alias("least"), pl.col("apart").max().alias("most"))


def unit_of(counts: dict[str, int]) -> str:
    """The coarsest unit that rarely holds two neighbours of different times."""
    different = max(counts["pairs"] - counts["equal"], 1)
    fits = (name for name in UNITS if counts[name] - counts["equal"] <= CROWDED * different)
    return next(fits, UNITS[-1])


def guess(look: Look, dates: bool) -> Step:
    """The most frequent distance, the smallest of them if there are several."""
    pl = polars()
    apart = look.distances.filter(pl.col("delta") > 0).sort("len", -pl.col("delta"), descending=True)
    return Step(float(apart["delta"][0]) if apart.height else 1.0, unit_of(look.counts) if dates else None)
