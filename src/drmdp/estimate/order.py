"""Rows → transitions: rows in order, each once, and one time step from row to row.

Without a column of next states, a row and the next one of its episode make a transition. With a time they must be one
*step* apart, which is given or guessed (`drmdp.estimate.neighbours`). Rows further apart are a *gap*:

========= =========================================================================================================
gaps      what happens
========= =========================================================================================================
refuse    an error that says where
cut       the episode ends before the gap and begins again after it
bridge    the two rows make a transition all the same; time only orders the rows
fill      the two rows count as so many steps, of which rows of one step are made (`drmdp.estimate.intervals`)
========= =========================================================================================================

Rows nearer than a step are refused, unless gaps are bridged. Where gaps are filled, rows must be whole steps apart, those more than
`MOST` steps apart, which say next to nothing, end an episode, and an action that changes where no state was seen is refused. A step
with a tolerance counts elapsed time (`drmdp.estimate.times`):
whatever is not one step apart is then a gap, also if it is nearer.

Two rows of an episode at the same time are *exact duplicates* if they agree in every column used; these may be dropped. If they
differ, their order is unknown, unless one of them is kept: of the rows of an episode that lie in the same step, the first, the
last, or the one in the worst state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimate.findings import Finding
from drmdp.estimate.neighbours import (
    Look,
    clock_findings,
    contradictions,
    delta_of,
    distance_findings,
    guess,
    look_at,
    one_step,
    same_episode,
    twice_findings,
    unseen,
)
from drmdp.estimate.source import polars
from drmdp.estimate.table import NUMBERS, Table
from drmdp.estimate.times import CALENDAR, DAYS, GAP, MOST, NEAR, UNEVEN, Step, parse_step

GAPS = ("refuse", "cut", "bridge", "fill")
KEPT = ("first", "last", "worst")
DUPLICATES = ("refuse", "drop", *KEPT)


@dataclass(frozen=True)
class Ordering:
    """How rows follow each other; see `drmdp.estimate`."""

    step: Any = None
    gaps: str = "refuse"
    duplicates: str = "refuse"
    time_format: str | Sequence[str] | None = None
    within: Any = None
    zone: str | None = None

    @property
    def is_continuous(self) -> bool:
        """Whether rates are asked for."""
        return str(self.step).strip().lower().startswith("continuous")

    @property
    def spans(self) -> bool:
        """Whether rows may be far apart, and the action of a row holds until the next."""
        return self.gaps == "fill" or self.is_continuous


@dataclass(frozen=True)
class Steps:
    """One row per transition, lazily, and the table they were made of."""

    table: Table
    frame: Any
    n_ends: int = 0  # rows that only end an episode
    checked: bool = False  # whether rows that lack something are left out
    units: tuple[Any, ...] | None = None  # all kernels of a column, of which there may be fewer here
    drawn: Any = None  # a frame: all episodes that are drawn from, likewise


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
    beyond: int = 0  # of the gaps, those too long to be filled
    dropped: int = 0
    starts: dict[Any, int] | None = None  # states in which episodes began, and how many
    spans: Any = None  # distinct times between neighbours, (D,), where time is continuous


@dataclass(frozen=True)
class Survey:
    """Transitions of the rows that are fit for it, and what is odd about the others."""

    steps: Steps
    findings: list[Finding]
    facts: Facts


def _sorted(table: Table, stable: bool) -> Table:
    """Rows by episode and time, in memory, with labels as short as they can be; `stable`: equal times as in the table."""
    pl = polars()
    kept = ("_odd", "_clock", *(f"_bad_{role}" for role in NUMBERS))
    names = table.frame.collect_schema().names()
    frame = table.frame.select("_row", *table.roles, *(name for name in names if name in kept))
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
    look = look_at(table, dates, step)
    if not look.in_order:
        table = _sorted(table, ordering.duplicates in KEPT)
        look = look_at(table, dates, step)
    if ordering.spans and not table.tidy:
        table, changed = unseen(table)
        findings += changed
        look = look_at(table, dates, step)
    n = int(look.episodes["len"].sum())
    if not n:
        raise InputError(f"{table.name}: no rows")
    facts = replace(facts, episodes=look.episodes, rows=n if facts.rows is None else facts.rows)
    if ordering.duplicates in KEPT and look.distances is not None:
        table = _kept(table, step or guess(look, dates) if visits else None, ordering.duplicates, states)
        look = look_at(table, dates, step)
        facts = replace(facts, dropped=n - int(look.episodes["len"].sum()))
    elif look.counts.get("equal"):
        table, twice, dropped = twice_findings(table, ordering.duplicates)
        findings += twice
        facts = replace(facts, dropped=dropped)
    facts = replace(facts, starts=dict(look.starts.rows()))
    if look.distances is not None and look.counts["pairs"] > look.counts["equal"]:
        facts = _measured(look, step or guess(look, dates), step is None, facts)
        findings += clock_findings(table, ordering, facts)
    if not visits:
        findings += contradictions(table, facts.step)
        return Survey(Steps(table, whole_rows(table)), findings, facts)
    fills = ordering.gaps == "fill"
    joined, found = same_episode().shift(-1), facts.step
    if found is not None and found.is_continuous:
        table, spans = _spanned(table, found)
        joined = joined & pl.col(GAP).is_not_null()
        facts = replace(facts, spans=spans)
    elif found is not None:
        odd, gaps = distance_findings(table, ordering.gaps, facts, look)
        findings += odd
        facts = replace(facts, gaps=gaps)
        if fills:
            steps = (delta_of(table, found) / found.size).round().cast(pl.Int64)
            joined = joined & steps.is_between(1, MOST).shift(-1)
            table = replace(table, frame=table.frame.with_columns(steps.shift(-1).alias(GAP)))
            far = look.distances.filter((pl.col("delta") / found.size).round() > MOST)
            facts = replace(facts, beyond=int(far["len"].sum()))
        elif ordering.gaps != "bridge" and (gaps or odd):
            joined = joined & one_step(table, found).shift(-1)
    if "_odd" in table.frame.collect_schema().names():
        joined = joined & ~pl.col("_odd") & ~pl.col("_odd").shift(-1)
    later = {"next_state": pl.col("state").shift(-1)}
    if table.columns.stage is not None:
        later["_advance"] = pl.col("stage").shift(-1) - pl.col("stage")
    frame = table.frame.with_columns(**later).filter(joined)
    gone = facts.beyond if fills else facts.gaps if ordering.gaps != "bridge" else 0
    return Survey(Steps(table, frame, look.episodes.height + gone), findings, facts)


def whole_rows(table: Table) -> Any:
    """Rows without a cell that is refused."""
    return table.frame.filter(~polars().col("_odd")) if "_odd" in table.frame.collect_schema().names() else table.frame


def _measured(look: Look, step: Step, guessed: bool, facts: Facts) -> Facts:
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


def _kept(table: Table, step: Step | None, rule: str, states: Names | None) -> Table:
    """One row of those of an episode that lie in the same step; at the same time, without one."""
    pl = polars()
    time = pl.col("time")
    new = ~(same_episode() & (time == time.shift(1) if step is None else delta_of(table, step) == 0)).fill_null(False)
    if rule == "first":
        return replace(table, frame=table.frame.filter(new))
    if rule == "last":
        return replace(table, frame=table.frame.filter(new.shift(-1, fill_value=True)))
    names = [str(name) for name in states or ()]
    rank = pl.col("state").cast(pl.String).replace_strict(names, list(range(len(names))), default=len(names))
    ranked = table.frame.with_columns(_step=new.cum_sum(), _rank=rank).sort("_step", "_rank", maintain_order=True)
    last = (pl.col("_step") != pl.col("_step").shift(-1)).fill_null(True)
    return replace(table, frame=table.collect(ranked.filter(last).drop("_step", "_rank"))[0].lazy())


def _spanned(table: Table, step: Any) -> tuple[Table, Any]:
    """Rows with the number of the time until the next, and these times, in order."""
    delta = delta_of(table, step)
    spans = table.collect(table.frame.select(span=delta).drop_nulls().unique().sort("span"))[0]["span"]
    spans = spans.filter(spans > 0)
    code = delta.replace_strict(spans, list(range(len(spans))), default=None, return_dtype=polars().Int64)
    return replace(table, frame=table.frame.with_columns(code.shift(-1).alias(GAP))), spans.to_numpy()
