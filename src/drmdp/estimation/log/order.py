"""Rows → transitions: rows in order, each once, and one time step from row to row.

Without a column of next states, a row and the next one of its episode make a transition. With a
time they must be one *step* apart, which is given or guessed (`drmdp.estimation.log.neighbours`).
Rows further apart are a *gap*:

========= ==========================================================================================
gaps      what happens
========= ==========================================================================================
refuse    an error that says where
cut       the episode ends before the gap and begins again after it
bridge    the two rows make a transition all the same; time only orders the rows
fill      the two rows count as so many steps, of which rows of one step are made
          (`drmdp.estimation.intervals`)
========= ==========================================================================================

Rows nearer than a step are refused, unless gaps are bridged. Where gaps are filled, rows must be
whole steps apart, those more than `MOST` steps apart, which say next to nothing, end an episode,
and an action that changes where no state was seen is refused. A step with a tolerance counts
elapsed time (`drmdp.estimation.log.times`): whatever is not one step apart is then a gap, also if
it is nearer.

Two rows of an episode at the same time are *exact duplicates* if they agree in every column used;
these may be dropped. If they differ, their order is unknown, unless one of them is kept: of the
rows of an episode that lie in the same step, the first, the last, or the one in the worst state.

A row that follows one in a terminal state is refused, or begins a new episode (`after_terminal`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimation.log import neighbours
from drmdp.estimation.log.findings import Finding
from drmdp.estimation.log.neighbours import (
    Look,
    delta_of,
    look_at,
    one_step,
    previous,
    same_episode,
)
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import NUMBERS, LogTable
from drmdp.estimation.log.times import CALENDAR, DAYS, GAP, MOST, NEAR, UNEVEN, Step, parse_step

GAPS = ("refuse", "cut", "bridge", "fill")
KEPT = ("first", "last", "worst")
DUPLICATES = ("refuse", "drop", *KEPT)
AFTER = ("refuse", "new")


@dataclass(frozen=True)
class Ordering:
    """Settings on the order of rows; see `drmdp.estimate`."""

    step: Any = None
    gaps: str = "refuse"
    duplicates: str = "refuse"
    time_format: str | Sequence[str] | None = None
    within: Any = None
    zone: str | None = None
    after_terminal: str = "refuse"

    @property
    def is_continuous(self) -> bool:
        """Whether rates are asked for."""
        return str(self.step).strip().lower().startswith("continuous")

    @property
    def spans(self) -> bool:
        """Whether rows may be far apart, and the action of a row holds until the next."""
        return self.gaps == "fill" or self.is_continuous


@dataclass(frozen=True)
class Transitions:
    """One row per transition, lazily, and the table they were made of."""

    table: LogTable
    frame: Any
    n_ends: int = 0  # rows that only end an episode
    checked: bool = False  # whether rows that lack something are left out
    units: tuple[Any, ...] | None = None  # all kernels of a column; here may be fewer
    drawn: Any = None  # a frame: all episodes that are drawn from, likewise


@dataclass(frozen=True)
class OrderFacts:
    """Figures of rows and times, and of what was done about them."""

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
class LogSurvey:
    """Transitions of the rows that are fit for it, and what is odd about the others."""

    steps: Transitions
    findings: list[Finding]
    facts: OrderFacts


def _sorted(table: LogTable, stable: bool) -> LogTable:
    """Rows by episode and time, in memory, with labels as short as they can be; `stable`: equal
    times as in the table.
    """
    extra = {
        "_odd",
        "_clock",
        "_ends",
        *(f"_{kind}_{role}" for kind in ("bad", "text") for role in NUMBERS),
    }
    kept = (name for name in table.names if name in extra)
    frame = table.frame.select("_row", *table.wanted, *kept)
    schema = frame.collect_schema()
    integers = [name for name, dtype in schema.items() if dtype.is_integer() and name != "time"]
    ends = {f"{name} low": pl.col(name).min() for name in integers}
    ends |= {f"{name} high": pl.col(name).max() for name in integers}
    bounds = {name: bound or 0 for name, bound in table.totals(frame, ends).items()}
    fits = (bounds[f"{n} low"] >= -(2**31) and bounds[f"{n} high"] < 2**31 for n in integers)
    short = list(compress(integers, fits))
    texts = [name for name in schema if schema[name] == pl.String]
    frame = frame.with_columns(pl.col(short).cast(pl.Int32), pl.col(texts).cast(pl.Categorical))
    episode = pl.col("episode")
    keys = [episode.to_physical() if schema["episode"] == pl.String else episode]
    keys += [pl.col("time")] if table.columns.time is not None else []
    rows = table.query(frame.sort(keys, maintain_order=stable or len(keys) == 1))
    return replace(table, frame=rows.lazy())


def ordered(
    table: LogTable, ordering: Ordering, findings: list[Finding], facts: OrderFacts, states: Any
) -> LogSurvey:
    """Put rows in order, drop duplicates, find gaps and make transitions; `states` are in order,
    the worst is the last.
    """
    dates, step, visits = False, None, table.columns.next_state is None
    if table.columns.time is not None:
        dates = table.frame.collect_schema()["time"].is_temporal()
        if ordering.step is not None:
            step = parse_step(ordering.step, dates, ordering.within)
    look = look_at(table, dates, step)
    if not look.in_order:
        keeps = ordering.duplicates in KEPT or ordering.after_terminal == "new"
        table = _sorted(table, keeps)
        look = look_at(table, dates, step)
    if ordering.spans and not table.tidy:
        table, changed = neighbours.unseen(table)
        findings += changed
        look = look_at(table, dates, step)
    if ordering.after_terminal == "new" and visits:
        table = _begun_anew(table)
        look = look_at(table, dates, step)
    n = int(look.episodes["len"].sum())
    if not n:
        raise InputError(f"{table.name}: no rows")
    facts = replace(facts, episodes=look.episodes, rows=n if facts.rows is None else facts.rows)
    if ordering.duplicates in KEPT and look.distances is not None:
        within = step or neighbours.guess(look, dates) if visits else None
        table = _deduplicated(table, within, ordering.duplicates, states)
        look = look_at(table, dates, step)
        facts = replace(facts, dropped=n - int(look.episodes["len"].sum()))
    elif look.counts.get("equal"):
        table, twice, dropped = neighbours.twice_findings(table, ordering.duplicates)
        findings += twice
        facts = replace(facts, dropped=dropped)
    facts = replace(facts, starts=dict(look.starts.rows()))
    if look.distances is not None and look.counts["pairs"] > look.counts["equal"]:
        facts = _measured(look, step or neighbours.guess(look, dates), step is None, facts)
        findings += neighbours.clock_findings(table, ordering, facts)
    if visits:
        return _joined(table, ordering, findings, facts, look)
    findings += neighbours.contradictions(table, facts.step)
    return LogSurvey(Transitions(table, whole_rows(table)), findings, facts)


def _joined(
    table: LogTable, ordering: Ordering, findings: list[Finding], facts: OrderFacts, look: Look
) -> LogSurvey:
    """Each row and the next of its episode, where these are one step apart, as transitions."""
    joined, step, gone = same_episode().shift(-1), facts.step, 0
    if step is not None and step.is_continuous:
        table, spans = _spanned(table, step)
        joined = joined & pl.col(GAP).is_not_null()
        facts = replace(facts, spans=spans)
    elif step is not None:
        odd, gaps = neighbours.distance_findings(table, ordering.gaps, facts, look)
        findings += odd
        facts = replace(facts, gaps=gaps)
        gone = gaps if ordering.gaps != "bridge" else 0
        if ordering.gaps == "fill":
            steps = (delta_of(table, step) / step.size).round().cast(pl.Int64)
            joined = joined & steps.is_between(1, MOST).shift(-1)
            table = table.with_columns(**{GAP: steps.shift(-1)})
            far = look.distances.filter((pl.col("delta") / step.size).round() > MOST)
            gone = int(far["len"].sum())
            facts = replace(facts, beyond=gone)
        elif ordering.gaps != "bridge" and (gaps or odd):
            joined = joined & one_step(table, step).shift(-1)
    if "_odd" in table.names:
        joined = joined & ~pl.col("_odd") & ~pl.col("_odd").shift(-1)
    later = {"next_state": pl.col("state").shift(-1)}
    if table.columns.stage is not None:
        later["_advance"] = pl.col("stage").shift(-1) - pl.col("stage")
    frame = table.frame.with_columns(**later).filter(joined)
    return LogSurvey(Transitions(table, frame, look.episodes.height + gone), findings, facts)


def _begun_anew(table: LogTable) -> LogTable:
    """A new episode, such as "M07 (2)", wherever a row follows one in a terminal state."""
    begins = (same_episode() & previous("_ends") & ~pl.col("_ends")).fill_null(False)
    name, number = pl.col("episode").cast(pl.String), begins.cum_sum().over("episode") + 1
    later = pl.when(number > 1).then(pl.format("{} ({})", name, number))
    return table.with_columns(episode=later.otherwise(name))


def whole_rows(table: LogTable) -> Any:
    """Rows without a cell that is refused."""
    return table.frame.filter(~pl.col("_odd")) if "_odd" in table.names else table.frame


def _measured(look: Look, step: Step, guessed: bool, facts: OrderFacts) -> OrderFacts:
    """Add the step to the facts: its length, and how clocks differ."""
    steps = look.distances.filter(((pl.col("delta") / step.size) - 1).abs() <= NEAR)
    covers = (float(steps["least"].min()), float(steps["most"].max())) if steps.height else None
    names = [name for name in ("least_ahead", "most_ahead") if name in look.counts]
    clocks: Any = tuple(look.counts[name] for name in names) or None
    return replace(facts, step=step, guessed=guessed, covers=covers, clocks=clocks)


def covered(facts: OrderFacts) -> str:
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


def _deduplicated(table: LogTable, step: Step | None, rule: str, states: Names | None) -> LogTable:
    """One row of those of an episode that lie in the same step; at the same time, without one."""
    time = pl.col("time")
    together = time == time.shift(1) if step is None else delta_of(table, step) == 0
    new = ~(same_episode() & together).fill_null(False)
    if rule == "first":
        return table.filter(new)
    if rule == "last":
        return table.filter(new.shift(-1, fill_value=True))
    names = [str(name) for name in states or ()]
    state, ranks = pl.col("state").cast(pl.String), list(range(len(names)))
    rank = state.replace_strict(names, ranks, default=len(names))
    ranked = table.frame.with_columns(_step=new.cum_sum(), _rank=rank)
    ranked = ranked.sort("_step", "_rank", maintain_order=True)
    last = (pl.col("_step") != pl.col("_step").shift(-1)).fill_null(True)
    return replace(table, frame=table.query(ranked.filter(last).drop("_step", "_rank")).lazy())


def _spanned(table: LogTable, step: Any) -> tuple[LogTable, Any]:
    """Rows with the number of the time until the next, and these times, in order."""
    delta = delta_of(table, step)
    spans = table.query(table.frame.select(span=delta).drop_nulls().unique().sort("span"))["span"]
    spans = spans.filter(spans > 0)
    codes, dtype = list(range(len(spans))), pl.Int64
    code = delta.replace_strict(spans, codes, default=None, return_dtype=dtype)
    return table.with_columns(**{GAP: code.shift(-1)}), spans.to_numpy()
