"""Rows → transitions: rows in order, each once, and one time step from row to row.

Without a column of next states, a row and the next one of its episode make a transition. With a time they must be one
*step* apart. The step is given, or guessed: its unit is the coarsest that rarely holds two neighbours, its size the most
frequent distance in that unit. Rows further apart are a *gap*:

========= =========================================================================================================
gaps      what happens
========= =========================================================================================================
refuse    an error that says where
cut       the episode ends before the gap and begins again after it
bridge    the two rows make a transition all the same; time only orders the rows
========= =========================================================================================================

Rows nearer than a step are refused, unless gaps are bridged. A step with a tolerance counts elapsed time (`drmdp.estimate.times`):
whatever is not one step apart is then a gap, also if it is nearer.

Two rows of an episode at the same time are *exact duplicates* if they agree in every column used; these may be dropped. If they
differ, their order is unknown, unless one of them is kept: of the rows of an episode that lie in the same step, the first, the
last, or the one in the worst state.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimate.findings import LIMIT, Finding, Place
from drmdp.estimate.source import polars
from drmdp.estimate.table import Table, UntidyError, is_tidy
from drmdp.estimate.times import (
    CALENDAR,
    CROWDED,
    DAYS,
    NEAR,
    SERIAL,
    SURE,
    UNEVEN,
    UNITS,
    YEAR_MONTH,
    Step,
    cell,
    parse_step,
)  # fmt: skip

GAPS = ("refuse", "cut", "bridge")
KEPT = ("first", "last", "worst")
DUPLICATES = ("refuse", "drop", *KEPT)
KEEP = "`duplicates='last'` keeps the last of them, 'first' the first, 'worst' that in the last of `states`"


@dataclass(frozen=True)
class Ordering:
    """How rows follow each other; see `drmdp.estimate`."""

    step: Any = None
    gaps: str = "refuse"
    duplicates: str = "refuse"
    time_format: str | Sequence[str] | None = None
    within: Any = None
    zone: str | None = None


@dataclass(frozen=True)
class Steps:
    """One row per transition, lazily, and the table they were made of."""

    table: Table
    frame: Any
    n_ends: int = 0  # rows that only end an episode


@dataclass(frozen=True)
class Facts:
    """What was seen of rows and times, and what was done about it."""

    rows: int | None = None  # None if only transitions were counted
    episodes: Any = None  # a frame: names, and rows of each
    form: str | None = None  # how times are written
    forms: int = 1  # in how many ways
    swapped: bool = False  # whether a date had two readings until all were seen
    step: Step | None = None
    guessed: bool = False
    covers: tuple[float, float] | None = None  # shortest and longest step, in days or numbers
    clocks: tuple[int, int] | None = None  # least and most minutes that clocks are ahead of UTC
    gaps: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class Survey:
    """Transitions of the rows that are fit for it, and what is odd about the others."""

    steps: Steps
    findings: list[Finding]
    facts: Facts


def _same() -> Any:
    """Whether the row before is of the same episode."""
    pl = polars()
    return pl.col("episode") == pl.col("episode").shift(1)


def _clock(table: Table, unit: str | None) -> Any:
    """The column of times that a unit is counted in."""
    walls = unit in CALENDAR and "_clock" in table.frame.collect_schema().names()
    return polars().col("_clock" if walls else "time")


def _elapsed(unit: str | None) -> Any:
    """Time from the row before, in mean units."""
    between = polars().col("time") - polars().col("time").shift(1)
    return between if unit is None else between.dt.total_microseconds() / (DAYS[unit] * 86_400e6)


def _delta(table: Table, step: Step) -> Any:
    """How many units after the row before, in the same episode."""
    pl = polars()
    at = cell(_clock(table, step.unit), step.unit)
    delta = at - at.shift(1) if step.within is None else step.rounded(_elapsed(step.unit))
    return pl.when(_same()).then(delta)


@dataclass(frozen=True)
class _Look:
    """Whether the rows of each episode are together and in order, and how far apart they are."""

    counts: dict[str, int]
    episodes: Any
    distances: Any  # a frame: how many neighbours are so far apart

    @property
    def in_order(self) -> bool:
        return self.counts["changes"] + 1 <= self.episodes.height and not self.counts.get("backward")


def _look(table: Table, dates: bool, step: Step | None) -> _Look:
    pl = polars()
    names = table.frame.collect_schema().names()
    asked = {"changes": (~_same()).sum()}
    if table.tidy:
        asked |= {name: pl.col(name).sum() for name in names if name.startswith("_bad_")}
    queries = [table.frame.group_by("episode").agg(pl.len())]
    if table.columns.time is not None:
        time = pl.col("time")
        asked["backward"] = (_same() & (time < time.shift(1))).sum()
        asked["equal"] = (_same() & (time == time.shift(1))).sum()
        asked["pairs"] = _same().sum()
        asked["timeless"] = time.is_null().sum()
        if "_clock" in names:
            ahead = (pl.col("_clock") - time).dt.total_minutes()
            asked |= {"least_ahead": ahead.min(), "most_ahead": ahead.max()}
        if dates and step is None:
            asked |= {name: (_delta(table, Step(1, name)) == 0).sum() for name in UNITS}
        else:
            queries.append(_distances(table, step or Step(1)))
    found = table.collect(table.frame.select(**asked), *queries)
    counts = {name: int(value or 0) for name, value in found[0].row(0, named=True).items()}
    if dates and step is None and table.columns.time is not None and not counts["backward"]:
        found += table.collect(_distances(table, Step(1, unit_of(counts))))
    bad = counts.get("timeless", 0) + sum(count for name, count in counts.items() if name.startswith("_bad_"))
    if table.tidy and (bad or not is_tidy(found[1]["episode"])):
        raise UntidyError
    return _Look(counts, found[1], found[2] if len(found) > 2 else None)


def _distances(table: Table, step: Step) -> Any:
    """How often each distance occurs, and from how many days (or numbers) to how many it goes."""
    pl = polars()
    delta = _delta(table, step)
    if step.within is not None or (step.unit is None and table.frame.collect_schema()["time"].is_float()):
        delta = delta.round_sig_figs(6)
    apart = _elapsed(None if step.unit is None else "day")
    found = table.frame.select(delta=delta, apart=apart).drop_nulls().group_by("delta")
    return found.agg(pl.len(), pl.col("apart").min().alias("least"), pl.col("apart").max().alias("most"))


def unit_of(counts: dict[str, int]) -> str:
    """The coarsest unit that rarely holds two neighbours of different times."""
    different = max(counts["pairs"] - counts["equal"], 1)
    fits = (name for name in UNITS if counts[name] - counts["equal"] <= CROWDED * different)
    return next(fits, UNITS[-1])


def _sorted(table: Table, stable: bool) -> Table:
    """Rows by episode and time, in memory, with labels as short as they can be; `stable`: equal times as in the table."""
    pl = polars()
    names = table.frame.collect_schema().names()
    frame = table.frame.select("_row", *table.roles, *(name for name in names if name in ("_odd", "_clock")))
    schema = frame.collect_schema()
    whole = [name for name, dtype in schema.items() if dtype.is_integer() and name != "time"]
    bounds = [pl.col(name).min().alias(f"{name}_low") for name in whole]
    bounds += [pl.col(name).max().alias(f"{name}_high") for name in whole]
    found = table.collect(frame.select(bounds))[0].row(0, named=True)
    short = [name for name in whole if -(2**31) <= (found[f"{name}_low"] or 0) <= (found[f"{name}_high"] or 0) < 2**31]
    frame = frame.with_columns(
        pl.col(short).cast(pl.Int32), pl.col([n for n in schema if schema[n] == pl.String]).cast(pl.Categorical)
    )
    keys = [pl.col("episode").to_physical()] if schema["episode"] == pl.String else [pl.col("episode")]
    keys += [pl.col("time")] if table.columns.time is not None else []
    return replace(table, frame=table.collect(frame.sort(keys, maintain_order=stable or len(keys) == 1))[0].lazy())


def ordered(
    table: Table, ordering: Ordering, findings: list[Finding], facts: Facts, visits: bool, states: Names | None = None
) -> Survey:
    """Put rows in order, drop duplicates, find gaps and make transitions; `states` are in order, the worst is the last."""
    pl = polars()
    dates, step = False, None
    if table.columns.time is not None:
        dates = table.frame.collect_schema()["time"].is_temporal()
        step = parse_step(ordering.step, dates, ordering.within) if ordering.step is not None else None
    look = _look(table, dates, step)
    if not look.in_order:
        table = _sorted(table, ordering.duplicates in KEPT)
        look = _look(table, dates, step)
    n = int(look.episodes["len"].sum())
    if not n:
        raise InputError(f"{table.name}: no rows")
    facts = replace(facts, episodes=look.episodes, rows=n if facts.rows is None else facts.rows)
    if ordering.duplicates in KEPT and look.distances is not None:
        same = step or (_guess(look, dates) if visits else Step(1))
        table = _kept(table, same, ordering.duplicates, states)
        look = _look(table, dates, step)
        facts = replace(facts, dropped=n - int(look.episodes["len"].sum()))
    elif look.counts.get("equal"):
        table, twice, dropped = _twice(table, ordering.duplicates)
        findings += twice
        facts = replace(facts, dropped=dropped)
    if look.distances is not None and look.counts["pairs"] > look.counts["equal"]:
        facts = _measured(look, step or _guess(look, dates), step is None, facts)
        findings += _clock_findings(table, ordering, facts)
    if not visits:
        findings += _contradictions(table, facts.step)
        return Survey(Steps(table, whole_rows(table)), findings, facts)
    joined, found = _same().shift(-1), facts.step
    if found is not None:
        odd, gaps = _distance_findings(table, ordering.gaps, facts, look)
        findings += odd
        facts = replace(facts, gaps=gaps)
        if ordering.gaps != "bridge" and (gaps or odd):
            joined = joined & _one(table, found).shift(-1)
    if "_odd" in table.frame.collect_schema().names():
        joined = joined & ~pl.col("_odd") & ~pl.col("_odd").shift(-1)
    frame = table.frame.with_columns(next_state=pl.col("state").shift(-1)).filter(joined)
    gone = facts.gaps if ordering.gaps != "bridge" else 0
    return Survey(Steps(table, frame, look.episodes.height + gone), findings, facts)


def whole_rows(table: Table) -> Any:
    """Rows without a cell that is refused."""
    return table.frame.filter(~polars().col("_odd")) if "_odd" in table.frame.collect_schema().names() else table.frame


def _guess(look: _Look, dates: bool) -> Step:
    """The most frequent distance, the smallest of them if there are several."""
    pl = polars()
    apart = look.distances.filter(pl.col("delta") > 0).sort("len", -pl.col("delta"), descending=True)
    return Step(float(apart["delta"][0]) if apart.height else 1.0, unit_of(look.counts) if dates else None)


def _one(table: Table, step: Step) -> Any:
    """Whether a row is one step after the row before."""
    return ((_delta(table, step) / step.size - 1).abs() <= NEAR).fill_null(False)


def _measured(look: _Look, step: Step, guessed: bool, facts: Facts) -> Facts:
    """What is known of the step: how long it is, and how clocks differ."""
    one = look.distances.filter(((polars().col("delta") / step.size) - 1).abs() <= NEAR)
    covers = (float(one["least"].min()), float(one["most"].max())) if one.height else None
    ahead = tuple(look.counts[name] for name in ("least_ahead", "most_ahead") if name in look.counts)
    return replace(facts, step=step, guessed=guessed, covers=covers, clocks=ahead or None)  # type: ignore[arg-type]


def covered(facts: Facts) -> str:
    """From how many days to how many a step goes, where that is worth telling."""
    step, covers = facts.step, facts.covers
    if step is None or step.unit is None or covers is None:
        return ""
    unit = "day" if step.unit in CALENDAR else step.unit
    low, high = (days * DAYS["day"] / DAYS[unit] for days in covers)
    length = step.size * DAYS[step.unit] / DAYS[unit]
    if step.within is None and (1 - UNEVEN) * length <= low <= high <= (1 + UNEVEN) * length:
        return ""
    return f"distances from {low:.3g} to {high:.3g} {unit}s count as {step.of(step.size)}"


# ---------------------------------------------------------------------- duplicates and gaps


def _kept(table: Table, step: Step, rule: str, states: Names | None) -> Table:
    """One row of those of an episode that lie in the same step."""
    pl = polars()
    new = (_delta(table, step) != 0).fill_null(True)
    if rule == "first":
        return replace(table, frame=table.frame.filter(new))
    if rule == "last":
        return replace(table, frame=table.frame.filter(new.shift(-1, fill_value=True)))
    names = [str(name) for name in states or ()]
    rank = pl.col("state").cast(pl.String).replace_strict(names, list(range(len(names))), default=len(names))
    ranked = table.frame.with_columns(_step=new.cum_sum(), _rank=rank).sort("_step", "_rank", maintain_order=True)
    last = (pl.col("_step") != pl.col("_step").shift(-1)).fill_null(True)
    return replace(table, frame=table.collect(ranked.filter(last).drop("_step", "_rank"))[0].lazy())


def _twice(table: Table, rule: str) -> tuple[Table, list[Finding], int]:
    """Rows of an episode at the same time: exact duplicates, dropped if so asked, and others."""
    pl = polars()
    same = (_same() & (pl.col("time") == pl.col("time").shift(1))).fill_null(False)
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


def _distance_findings(table: Table, rule: str, facts: Facts, look: _Look) -> tuple[list[Finding], int]:
    """Neighbours that are not one step apart; how many of them are gaps."""
    pl = polars()
    step = facts.step
    assert step is not None
    delta, often = pl.col("delta"), look.distances
    far = int(often.filter(delta > step.size * (1 + NEAR))["len"].sum())
    near = int(often.filter(delta < step.size * (1 - NEAR))["len"].sum()) - look.counts["equal"]
    if step.within is not None:
        far, near = far + near, 0
    said = f"the step is {step}{', as most often here' if facts.guessed else ''}"
    findings = []
    pairs = look.counts["pairs"] - look.counts["equal"]
    if facts.guessed and rule == "cut" and pairs - far - near < SURE * pairs:
        what = f"only {pairs - far - near:,} of {pairs:,} neighbours are {step} apart, the most frequent distance"
        findings.append(Finding("step", True, 1, "steps", (Place(what),), "say with `step` which it is"))
    if near and rule != "bridge":
        cure = f"{said}; give a smaller `step`, or `gaps='bridge'`, which takes time for an order alone"
        cure += f"; {KEEP}" if int(often.filter(delta == 0)["len"].sum()) > look.counts["equal"] else ""
        findings.append(_apart(table, step, "grid", near, "pairs of rows", cure))
    if far and rule == "refuse":
        cure = f"{said}; `gaps='cut'` ends the episode there, `gaps='bridge'` makes a transition all the same"
        findings.append(_apart(table, step, "gap", far, "gaps", cure))
    return findings, far


def _apart(table: Table, step: Step, kind: str, count: int, noun: str, cure: str) -> Finding:
    pl = polars()
    delta, clock = _delta(table, step).cast(pl.Float64), _clock(table, step.unit)
    ratio = delta / step.size
    hit = ~_one(table, step) & _same() if step.within else ratio > 1 + NEAR if kind == "gap" else ratio < 1 - NEAR
    hit = hit & (pl.col("time") != pl.col("time").shift(1))
    rows = table.frame.with_columns(
        _other=pl.col("_row").shift(1), _from=clock.shift(1), _to=clock, _delta=delta, _hit=hit
    )  # fmt: skip
    places = []
    some = table.collect(rows.filter("_hit").sort("_row").head(LIMIT))[0].rows(named=True)
    for row in some:
        what = f"episode {row['episode']!r}: {_between(step, row['_from'], row['_to'], row['_delta'])}"
        places.append(([row["_other"], row["_row"]], what, None, None))
    cure = f"{_numbers([row[name] for row in some for name in ('_from', '_to')])}{cure}" if step.unit is None else cure
    return Finding(kind, True, count, noun, table.places(places), cure)


def _numbers(ends: list[Any]) -> str:
    """What to try with numbers that look like dates."""
    found = [YEAR_MONTH.fullmatch(str(end)) for end in ends]
    if all(found):
        day = "%d" if all(match and match[3] for match in found) else ""
        return f"if these numbers are dates: `time_format='%Y%m{day}'`; "
    if all(SERIAL.start <= end < SERIAL.stop for end in ends):
        return "these numbers look like days since 1899-12-30: `time_format='excel'`; "
    return ""


def _clock_findings(table: Table, ordering: Ordering, facts: Facts) -> list[Finding]:
    """Clocks that differ by more than summer and winter do, where days are counted."""
    clocks, step = facts.clocks, facts.step
    if clocks is None or step is None or step.unit not in CALENDAR or clocks[1] - clocks[0] <= 60:
        return []
    what = f"the clocks of the stamps are {offset(clocks[0])} to {offset(clocks[1])}, and days are counted by each"
    cure = "`zone='Europe/Zurich'` puts all on the clock of a place"
    place = Place(what, column=table.wanted["time"])
    return [Finding("clocks", False, 1, "columns", (place,), cure)] if ordering.zone is None else []


def offset(minutes: int) -> str:
    """A clock by how far it is ahead of UTC."""
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _contradictions(table: Table, step: Step | None) -> list[Finding]:
    """Next states that are not the state of the next row, where that is one step later."""
    pl = polars()
    if step is None or table.columns.next_state is None:
        return []
    state, told = pl.col("state").cast(pl.String), pl.col("next_state").cast(pl.String)
    hit = (_one(table, step).shift(-1) & (told != state.shift(-1))).fill_null(False)
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


def _between(step: Step, begin: Any, end: Any, delta: float) -> str:
    """How far apart two times are, in words."""
    if step.unit is not None and not delta:
        return f"{shown_time(begin)} and {shown_time(end)} lie in the same {step.unit}"
    whole = (delta / step.size + NEAR) % 1 <= 2 * NEAR
    off = "" if whole else ", which is no whole number of steps"
    return f"from {shown_time(begin)} to {shown_time(end)} is {step.of(float(f'{delta:.6g}'))}{off}"


def shown_time(time: Any) -> str:
    """A time without what is zero at its end."""
    if not isinstance(time, datetime.datetime):
        return str(time)
    midnight = time.time() == datetime.time()
    return time.strftime("%Y-%m-%d") if midnight else str(time)
