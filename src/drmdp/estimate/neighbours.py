"""Rows and the row before: whether they are of one episode, how far apart they are, and which step that speaks for.

A step that is not given is guessed: its unit is the coarsest that rarely holds two neighbours, its size the most frequent distance
in that unit.

What is odd about the order of rows: two at one time, gaps, clocks that differ, next states that the next row contradicts.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from drmdp.core.text import count as counted
from drmdp.estimate.findings import LIMIT, Finding, Place
from drmdp.estimate.source import polars
from drmdp.estimate.table import Table, UntidyError, is_tidy
from drmdp.estimate.times import CALENDAR, CROWDED, DAYS, NEAR, SERIAL, SURE, UNITS, YEAR_MONTH, Step, cell

if TYPE_CHECKING:
    from drmdp.estimate.order import Facts, Ordering


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
    if step.is_continuous:
        delta = elapsed(step.unit).cast(pl.Float64).round_sig_figs(9)
    else:
        delta = at - at.shift(1) if step.within is None else step.rounded(elapsed(step.unit))
    return pl.when(same_episode()).then(delta)


def one_step(table: Table, step: Step) -> Any:
    """Whether a row is one step after the row before."""
    return ((delta_of(table, step) / step.size - 1).abs() <= NEAR).fill_null(False)


def whole(ratio: Any) -> Any:
    """Whether a distance is a whole number of steps, one or more."""
    return ((ratio - ratio.round()).abs() <= NEAR) & (ratio.round() >= 1)


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


# ---------------------------------------------------------------------- gaps


KEEP = "`duplicates='last'` keeps the last of them, 'first' the first, 'worst' that in the last of `states`"


def twice_findings(table: Table, rule: str) -> tuple[Table, list[Finding], int]:
    """Rows of an episode at the same time: exact duplicates, dropped if so asked, and others."""
    pl = polars()
    same = (same_episode() & (pl.col("time") == pl.col("time").shift(1))).fill_null(False)
    others = [role for role in table.roles if role not in ("episode", "time")]
    exact = same & pl.all_horizontal(pl.col(role).eq_missing(pl.col(role).shift(1)) for role in others)
    findings, dropped = [], 0
    for kind, rule_of in (("duplicate", exact), ("same time", same & ~exact)):
        rows = table.frame.with_columns(_other=pl.col("_row").shift(1), _hit=rule_of).filter("_hit")
        count, some = table.collect(rows.select(pl.len()), rows.sort("_row").head(LIMIT))
        if not count.item():
            continue
        if kind == "duplicate" and rule == "drop":
            dropped = int(count.item())
            continue
        exactly = "that are the same" if kind == "duplicate" else "that differ: their order is unknown"
        cure = "`duplicates='drop'` keeps one of each" if kind == "duplicate" else KEEP
        places = []
        for row in some.rows(named=True):
            what = f"episode {row['episode']!r} has two rows at {shown_time(row['time'])} {exactly}"
            places.append((sorted((row["_other"], row["_row"])), what, None, None))
        findings.append(Finding(kind, True, int(count.item()), "pairs of rows", table.places(places), cure))
    return replace(table, frame=table.frame.filter(~exact)), findings, dropped


def unseen(table: Table) -> tuple[Table, list[Finding]]:
    """Rows without a state, left out; where they say that the action changed between two states that were seen, it is refused."""
    pl = polars()
    seen, action = pl.col("state").is_not_null(), pl.col("action")
    before = seen.cum_sum().over("episode") > 0
    after = seen.cum_sum(reverse=True).over("episode") > 0
    held = action.forward_fill().shift(1)
    hit = (~seen & before & after & (action != held)).fill_null(False)
    rows = table.frame.with_columns(_held=held, _hit=hit).filter("_hit")
    count, some = table.collect(rows.select(pl.len()), rows.sort("_row").head(LIMIT))
    places = [
        (
            [row["_row"]],
            f"the action changes from {row['_held']!r} to {row['action']!r} where no state was seen",
            "action",
            None,
        )
        for row in some.rows(named=True)
    ]
    cure = "give the state there; or `skip_rows_without` that column, as if the action of the row before had held; or `gaps='cut'`"
    found = [Finding("action", True, int(count.item()), "rows", table.places(places), cure)] if places else []
    return replace(table, frame=table.frame.filter(seen)), found


def distance_findings(table: Table, rule: str, facts: Facts, look: Look) -> tuple[list[Finding], int]:
    """Neighbours that are not one step apart; how many of them are gaps."""
    pl = polars()
    step = facts.step
    assert step is not None
    delta, often = pl.col("delta"), look.distances
    far = int(often.filter(delta > step.size * (1 + NEAR))["len"].sum())
    near = int(often.filter(delta < step.size * (1 - NEAR))["len"].sum()) - look.counts["equal"]
    if rule == "fill":
        steps = delta / step.size
        near = int(often.filter(~whole(steps))["len"].sum()) - look.counts["equal"]
    elif step.within is not None:
        far, near = far + near, 0
    said = f"the step is {step}{', as most often here' if facts.guessed else ''}"
    findings = []
    pairs = look.counts["pairs"] - look.counts["equal"]
    if facts.guessed and rule in ("cut", "fill") and pairs - far - near < SURE * pairs:
        what = f"only {pairs - far - near:,} of {pairs:,} neighbours are {step} apart, the most frequent distance"
        findings.append(Finding("step", True, 1, "steps", (Place(what),), "say with `step` which it is"))
    if near and rule != "bridge":
        cure = f"{said}; give a smaller `step`, or `gaps='bridge'`, which takes time for an order alone"
        if rule == "fill":
            cure = f"{said}; a larger `within`, up to half a step, counts it as the nearest number of steps; `gaps='cut'` ends the episode there"
        cure += f"; {KEEP}" if int(often.filter(delta == 0)["len"].sum()) > look.counts["equal"] else ""
        findings.append(_apart(table, step, "fill" if rule == "fill" else "grid", near, "pairs of rows", cure))
    if far and rule == "refuse":
        cure = f"{said}; `gaps='cut'` ends the episode there, `gaps='bridge'` makes a transition all the same, `gaps='fill'` counts it as so many steps"
        findings.append(_apart(table, step, "gap", far, "gaps", cure))
    return findings, far


def _apart(table: Table, step: Step, kind: str, count: int, noun: str, cure: str) -> Finding:
    pl = polars()
    delta, clock = delta_of(table, step).cast(pl.Float64), clock_of(table, step.unit)
    ratio = delta / step.size
    hit = (
        ~whole(ratio) & same_episode()
        if kind == "fill"
        else ~one_step(table, step) & same_episode()
        if step.within
        else ratio > 1 + NEAR
        if kind == "gap"
        else ratio < 1 - NEAR
    )
    hit = hit & (pl.col("time") != pl.col("time").shift(1))
    rows = table.frame.with_columns(
        _other=pl.col("_row").shift(1), _from=clock.shift(1), _to=clock, _delta=delta, _hit=hit, _apart=elapsed(step.unit)
    )  # fmt: skip
    places = []
    some = table.collect(rows.filter("_hit").sort("_row").head(LIMIT))[0].rows(named=True)
    for row in some:
        what = f"episode {row['episode']!r}: {_between(step, row['_from'], row['_to'], row['_delta'], row['_apart'])}"
        places.append(([row["_other"], row["_row"]], what, None, None))
    cure = f"{_numbers([row[name] for row in some for name in ('_from', '_to')])}{cure}" if step.unit is None else cure
    return Finding("grid" if kind == "fill" else kind, True, count, noun, table.places(places), cure)


def _numbers(ends: list[Any]) -> str:
    """What to try with numbers that look like dates."""
    found = [YEAR_MONTH.fullmatch(str(end)) for end in ends]
    if all(found):
        day = "%d" if all(match and match[3] for match in found) else ""
        return f"if these numbers are dates: `time_format='%Y%m{day}'`; "
    if all(SERIAL.start <= end < SERIAL.stop for end in ends):
        return "these numbers look like days since 1899-12-30: `time_format='excel'`; "
    return ""


def _between(step: Step, begin: Any, end: Any, delta: float, apart: float) -> str:
    """How far apart two times are, in words: `delta` in the unit of the step, as it counts, `apart` as time that elapsed."""
    if step.unit is not None and not delta and step.within is None:
        return f"{shown_time(begin)} and {shown_time(end)} lie in the same {step.unit}"
    even = (delta / step.size + NEAR) % 1 <= 2 * NEAR
    off = ", which is no whole number of steps"
    if even:
        off = "" if step.within is None else f", which counts as {counted(round(delta / step.size), 'step')}"
    told = delta if step.within is None else apart
    return f"from {shown_time(begin)} to {shown_time(end)} is {step.of(float(f'{told:.6g}'))}{off}"


def clock_findings(table: Table, ordering: Ordering, facts: Facts) -> list[Finding]:
    """Clocks that differ by more than summer and winter do, where days are counted."""
    clocks, step = facts.clocks, facts.step
    if clocks is None or step is None or step.unit not in CALENDAR or clocks[1] - clocks[0] <= 60:
        return []
    what = f"the clocks of the stamps are {offset(clocks[0])} to {offset(clocks[1])}, and days are counted by each"
    cure = "`zone='Europe/Zurich'` puts all on the clock of a place"
    place = Place(what, column=table.wanted["time"])
    return [Finding("clocks", False, 1, "columns", (place,), cure)] if ordering.zone is None else []


def contradictions(table: Table, step: Step | None) -> list[Finding]:
    """Next states that are not the state of the next row, where that is one step later."""
    pl = polars()
    if step is None or table.columns.next_state is None:
        return []
    state, told = pl.col("state").cast(pl.String), pl.col("next_state").cast(pl.String)
    hit = (one_step(table, step).shift(-1) & (told != state.shift(-1))).fill_null(False)
    rows = table.frame.with_columns(_hit=hit, _other=pl.col("_row").shift(-1), _then=state.shift(-1)).filter("_hit")
    count, some = table.collect(rows.select(pl.len()), rows.sort("_row").head(LIMIT))
    if not count.item():
        return []
    places = []
    for row in some.rows(named=True):
        what = f"the next state is {row['next_state']!r}, but the next row of episode {row['episode']!r} is in {row['_then']!r}"
        places.append(([row["_row"], row["_other"]], what, "next_state", row["next_state"]))
    cure = "one of the two is wrong; in a table without the column, the next row is the next state"
    return [Finding("next state", False, int(count.item()), "pairs of rows", table.places(places), cure)]


def offset(minutes: int) -> str:
    """A clock by how far it is ahead of UTC."""
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def shown_time(time: Any) -> str:
    """A time without what is zero at its end."""
    if not isinstance(time, datetime.datetime):
        return str(time)
    midnight = time.time() == datetime.time()
    return time.strftime("%Y-%m-%d") if midnight else str(time)
