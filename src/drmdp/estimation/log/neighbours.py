"""Rows and the row before: whether they are of one episode, how far apart they are, and which step
that speaks for.

A step that is not given is guessed: its unit is the coarsest that rarely holds two neighbours, its
size the most frequent distance in that unit.

What is odd about the order of rows: two at one time, gaps, clocks that differ, next states that the
next row contradicts.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drmdp.estimation.log import times
from drmdp.estimation.log.findings import Finding, Place
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import LogTable, UntidyError, is_tidy
from drmdp.estimation.log.times import CALENDAR, DAYS, NEAR, Step
from drmdp.ui.text import count as counted

if TYPE_CHECKING:
    from drmdp.estimation.log.order import OrderFacts, Ordering


def same_episode() -> Any:
    """Whether the row before is of the same episode."""
    return pl.col("episode") == previous("episode")


def previous(name: str) -> Any:
    """The column in the row before."""
    return pl.col(name).shift(1)


def clock_of(table: LogTable, unit: str | None) -> Any:
    """The column of times that a unit is counted in."""
    walls = unit in CALENDAR and "_clock" in table.names
    return pl.col("_clock" if walls else "time")


def elapsed(unit: str | None) -> Any:
    """Time from the row before, in mean units."""
    between = pl.col("time") - previous("time")
    return between if unit is None else between.dt.total_microseconds() / (DAYS[unit] * 86_400e6)


def delta_of(table: LogTable, step: Step) -> Any:
    """Units since the row before, in the same episode."""
    at = times.cell(clock_of(table, step.unit), step.unit)
    if step.is_continuous:
        delta = elapsed(step.unit).cast(pl.Float64).round_sig_figs(9)
    else:
        delta = at - at.shift(1) if step.within is None else step.rounded(elapsed(step.unit))
    return pl.when(same_episode()).then(delta)


def one_step(table: LogTable, step: Step) -> Any:
    """Whether a row is one step after the row before."""
    return ((delta_of(table, step) / step.size - 1).abs() <= NEAR).fill_null(False)


def is_multiple(ratio: Any) -> Any:
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
        together = self.counts["changes"] + 1 <= self.episodes.height
        return together and not self.counts.get("backward")


def look_at(table: LogTable, dates: bool, step: Step | None) -> Look:
    """Count neighbours by their order and distance; a table that is not tidy after all is given
    up.
    """
    names = table.names
    asked = {"changes": (~same_episode()).sum()}
    if table.tidy:
        asked |= {name: pl.col(name).sum() for name in names if name.startswith("_bad_")}
    first = table.frame.filter(same_episode().is_null() | ~same_episode())
    queries = [table.frame.group_by("episode").agg(pl.len()), first.group_by("state").agg(pl.len())]
    if table.columns.time is not None:
        time = pl.col("time")
        order = {"backward": time < time.shift(1), "equal": time == time.shift(1), "pairs": True}
        asked |= {name: (same_episode() & rule).sum() for name, rule in order.items()}
        asked["timeless"] = time.is_null().sum()
        if "_clock" in names:
            ahead = (pl.col("_clock") - time).dt.total_minutes()
            asked |= {"least_ahead": ahead.min(), "most_ahead": ahead.max()}
        if dates and step is None:
            asked |= {name: (delta_of(table, Step(1, name)) == 0).sum() for name in times.UNITS}
        else:
            queries.append(_distances(table, step or Step(1)))
    frames = table.source.collect(table.frame.select(**asked), *queries)
    counts = {name: int(value or 0) for name, value in frames[0].row(0, named=True).items()}
    if dates and step is None and table.columns.time is not None and not counts["backward"]:
        frames += table.source.collect(_distances(table, Step(1, unit_of(counts))))
    bad = sum(n for name, n in counts.items() if name.startswith(("timeless", "_bad_")))
    if table.tidy and (bad or not is_tidy(frames[1]["episode"])):
        raise UntidyError
    return Look(counts, frames[1], frames[2], frames[3] if len(frames) > 3 else None)


def _distances(table: LogTable, step: Step) -> Any:
    """Frequency of each distance, and its least and largest number of days (or numbers)."""
    delta = delta_of(table, step)
    real = step.unit is None and table.frame.collect_schema()["time"].is_float()
    if step.within is not None or real:
        delta = delta.round_sig_figs(6)
    apart, days = pl.col("apart"), elapsed(None if step.unit is None else "day")
    groups = table.frame.select(delta=delta, apart=days).drop_nulls().group_by("delta")
    return groups.agg(pl.len(), least=apart.min(), most=apart.max())


def unit_of(counts: dict[str, int]) -> str:
    """The coarsest unit that rarely holds two neighbours of different times."""
    different = max(counts["pairs"] - counts["equal"], 1)
    together = {name: counts[name] - counts["equal"] for name in times.UNITS}
    fits = (name for name, n in together.items() if n <= times.CROWDED * different)
    return next(fits, times.UNITS[-1])


def guess(look: Look, dates: bool) -> Step:
    """The most frequent distance, the smallest of them if there are several."""
    apart = look.distances.filter(pl.col("delta") > 0)
    apart = apart.sort("len", -pl.col("delta"), descending=True)["delta"]
    unit = unit_of(look.counts) if dates else None
    return Step(float(apart[0]) if len(apart) else 1.0, unit)


# ---------------------------------------------------------------------- gaps

LONG = 10
"""Gaps of more steps are told even where they end an episode: a time may be wrong."""
KEEP = (
    "`duplicates='last'` keeps the last of them, 'first' the first, 'worst' that in the last "
    "of `states`"
)
TWICE = {
    "duplicate": ("that are the same", "`duplicates='drop'` keeps one of each"),
    "same time": ("that differ: their order is unknown", KEEP),
}
"""What rows at the same time are, and the cure."""


def twice_findings(table: LogTable, rule: str) -> tuple[LogTable, list[Finding], int]:
    """Rows of an episode at the same time: exact duplicates, dropped if so asked, and others."""
    same = (same_episode() & (pl.col("time") == previous("time"))).fill_null(False)
    others = [role for role in table.wanted if role not in ("episode", "time")]
    others += [name for name in table.names if name.startswith("_text_")]
    exact = same & pl.all_horizontal(pl.col(role).eq_missing(previous(role)) for role in others)
    findings, dropped = [], 0
    for kind, hit in (("duplicate", exact), ("same time", same & ~exact)):
        what, cure = TWICE[kind]
        n, first = table.sample(hit, _other=previous("_row"))
        if kind == "duplicate" and rule == "drop":
            dropped = n
        elif n:
            places = []
            for row in first:
                twice = f"episode {row['episode']!r} has two rows at {shown_time(row['time'])}"
                places.append((sorted((row["_other"], row["_row"])), f"{twice} {what}", None, None))
            findings.append(Finding(kind, True, n, "pairs of rows", table.places(places), cure))
    return table.filter(~exact), findings, dropped


def unseen(table: LogTable) -> tuple[LogTable, list[Finding]]:
    """Rows without a state, left out; where they say that the action changed between two states
    that were seen, it is refused.
    """
    known, action = pl.col("state").is_not_null(), pl.col("action")
    before = known.cum_sum().over("episode") > 0
    after = known.cum_sum(reverse=True).over("episode") > 0
    held = action.forward_fill().shift(1)
    hit = (~known & before & after & (action != held)).fill_null(False)
    n, first = table.sample(hit, _held=held)
    what = "the action changes from {_held!r} to {action!r} where no state was seen"
    places = [([row["_row"]], what.format(**row), "action", None) for row in first]
    cure = (
        "give the state there; or `skip_rows_without` that column, as if the action of the row "
        "before had held; or `gaps='cut'`"
    )
    findings = [Finding("action", True, n, "rows", table.places(places), cure)] if places else []
    return table.filter(known), findings


def distance_findings(
    table: LogTable, rule: str, facts: OrderFacts, look: Look
) -> tuple[list[Finding], int]:
    """Neighbours that are not one step apart; how many of them are gaps."""
    step = facts.step
    assert step is not None
    equal, said = look.counts["equal"], f"the step is {step}"
    said += ", as most often here" if facts.guessed else ""

    def often(rule: Any) -> int:
        return int(look.distances.filter(rule)["len"].sum())

    ratio = pl.col("delta") / step.size
    far = often(pl.col("delta") > step.size * (1 + NEAR))
    near = often(pl.col("delta") < step.size * (1 - NEAR)) - equal
    if rule == "fill":
        near = often(~is_multiple(ratio)) - equal
    elif step.within is not None:
        far, near = far + near, 0
    findings = []
    pairs = look.counts["pairs"] - equal
    even = pairs - far - near
    if facts.guessed and rule in ("cut", "fill") and even < times.SURE * pairs:
        what = f"only {even:,} of {pairs:,} neighbours are {step} apart, the most frequent distance"
        cure = "say with `step` which it is"
        findings.append(Finding("step", True, 1, "steps", (Place(what),), cure))
    if near and rule != "bridge":
        cure = "give a smaller `step`, or `gaps='bridge'`, which takes time for an order alone"
        if rule == "fill":
            cure = (
                "a larger `within`, up to half a step, counts it as the nearest number of steps; "
                "`gaps='cut'` ends the episode there"
            )
        cure = f"{said}; {cure}" + (f"; {KEEP}" if often(pl.col("delta") == 0) > equal else "")
        kind = "fill" if rule == "fill" else "grid"
        findings.append(_apart(table, step, kind, near, "pairs of rows", cure))
    if far and rule == "refuse":
        cure = (
            f"{said}; `gaps='cut'` ends the episode there, `gaps='bridge'` makes a transition "
            "all the same, `gaps='fill'` counts it as so many steps"
        )
        findings.append(_apart(table, step, "gap", far, "gaps", cure))
    long = often(ratio > LONG) if rule == "cut" else 0
    if long:
        cure = "if a time is wrong, mend it; otherwise the episode ends there and begins again"
        findings.append(_apart(table, step, "long gap", long, "gaps", cure))
    return findings, far


def _apart(table: LogTable, step: Step, kind: str, count: int, noun: str, cure: str) -> Finding:
    delta, clock = delta_of(table, step).cast(pl.Float64), clock_of(table, step.unit)
    ratio = delta / step.size
    if kind == "long gap":
        hit = ratio > LONG
    elif kind == "fill":
        hit = ~is_multiple(ratio) & same_episode()
    elif step.within:
        hit = ~one_step(table, step) & same_episode()
    else:
        hit = ratio > 1 + NEAR if kind == "gap" else ratio < 1 - NEAR
    hit = hit & (pl.col("time") != previous("time"))
    more = {"_other": previous("_row"), "_from": clock.shift(1), "_to": clock, "_delta": delta}
    first = table.sample(hit, **more, _apart=elapsed(step.unit))[1]
    places = []
    for row in first:
        between = _between(step, *(row[name] for name in ("_from", "_to", "_delta", "_apart")))
        what = f"episode {row['episode']!r}: {between}"
        places.append(([row["_other"], row["_row"]], what, None, None))
    if step.unit is None:
        cure = f"{_numbers([row[name] for row in first for name in ('_from', '_to')])}{cure}"
    kind = "grid" if kind == "fill" else kind
    return Finding(kind, kind != "long gap", count, noun, table.places(places), cure)


def _numbers(ends: list[Any]) -> str:
    """A cure for numbers that look like dates."""
    matches = [times.YEAR_MONTH.fullmatch(str(end)) for end in ends]
    if all(matches):
        day = "%d" if all(match and match[3] for match in matches) else ""
        return f"if these numbers are dates: `time_format='%Y%m{day}'`; "
    if all(times.SERIAL.start <= end < times.SERIAL.stop for end in ends):
        return "these numbers look like days since 1899-12-30: `time_format='excel'`; "
    return ""


def _between(step: Step, begin: Any, end: Any, delta: float, apart: float) -> str:
    """The distance of two times in words: `delta` in the unit of the step, as it counts, `apart` as
    time that elapsed.
    """
    if step.unit is not None and not delta and step.within is None:
        return f"{shown_time(begin)} and {shown_time(end)} lie in the same {step.unit}"
    off = ", which is no whole number of steps"
    if (delta / step.size + NEAR) % 1 <= 2 * NEAR:
        off = f", which counts as {counted(round(delta / step.size), 'step')}"
        off = "" if step.within is None else off
    distance = step.of(float(f"{delta if step.within is None else apart:.6g}"))
    return f"from {shown_time(begin)} to {shown_time(end)} is {distance}{off}"


def clock_findings(table: LogTable, ordering: Ordering, facts: OrderFacts) -> list[Finding]:
    """Clocks that differ by more than summer and winter do, where days are counted."""
    clocks, step = facts.clocks, facts.step
    if clocks is None or step is None or step.unit not in CALENDAR or ordering.zone is not None:
        return []
    if clocks[1] - clocks[0] <= 60:
        return []
    what = f"the clocks of the stamps are {offset(clocks[0])} to {offset(clocks[1])}"
    place = Place(f"{what}, and days are counted by each", column=table.wanted["time"])
    cure = "`zone='Europe/Zurich'` puts all on the clock of a place"
    return [Finding("clocks", False, 1, "columns", (place,), cure)]


def contradictions(table: LogTable, step: Step | None) -> list[Finding]:
    """Next states that are not the state of the next row, where that is one step later."""
    if step is None or table.columns.next_state is None:
        return []
    state, following = pl.col("state").cast(pl.String), pl.col("next_state").cast(pl.String)
    hit = (one_step(table, step).shift(-1) & (following != state.shift(-1))).fill_null(False)
    n, first = table.sample(hit, _other=pl.col("_row").shift(-1), _then=state.shift(-1))
    if not n:
        return []
    what = "the next state is {!r}, but the next row of episode {!r} is in {!r}"
    places = []
    for row in first:
        said = what.format(row["next_state"], row["episode"], row["_then"])
        places.append(([row["_row"], row["_other"]], said, "next_state", row["next_state"]))
    cure = "one of the two is wrong; in a table without the column, the next row is the next state"
    return [Finding("next state", False, n, "pairs of rows", table.places(places), cure)]


def offset(minutes: int) -> str:
    """A clock by how far it is ahead of UTC."""
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def shown_time(time: Any) -> str:
    """A time without what is zero at its end."""
    if not isinstance(time, datetime.datetime):
        return str(time)
    midnight = time.time() == datetime.time()
    return time.strftime("%Y-%m-%d") if midnight else str(time)
