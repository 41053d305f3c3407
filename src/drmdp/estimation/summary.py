"""Summaries of an estimate: counts, assumptions, and the pairs on which little rests.

Pairs on which little rests: seen a few times, or always followed by the same state.

A row with one next state is a point mass. Where mass moves among observed next states only, nature
cannot change it, whatever the radius: the fewer the data, the safer an action looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import BoolArray
from drmdp.estimation.count import CountCells, Samples
from drmdp.estimation.log.findings import LIMIT, Finding, Place
from drmdp.estimation.log.neighbours import offset
from drmdp.estimation.log.order import LogSurvey, OrderFacts, Ordering, Transitions, covered
from drmdp.estimation.log.table import LogTable
from drmdp.estimation.log.times import CALENDAR, MOST, discount_of_interest
from drmdp.estimation.rules import Coverage
from drmdp.estimation.settings import Settings, check_settings
from drmdp.solution.rows import FEW
from drmdp.ui.text import START, STEP, UNCHANGED, count, first_names


def thin_finding(cells: CountCells, open_pairs: BoolArray) -> list[Finding]:
    """The finding of `check_log` on thin pairs among those that are open, (S·A,)."""
    often = cells.by_pair(cells.count)
    open_pairs = open_pairs & (cells.by_pair(cells.rows) > 0)
    positive = cells.count > 0
    single = np.bincount(cells.pair[positive], minlength=often.size) == 1
    fixed = np.flatnonzero(open_pairs & single)
    pairs = np.flatnonzero(open_pairs & (single | ((often > 0) & (often < FEW))))
    if not pairs.size:
        return []
    pairs = pairs[np.argsort(often[pairs], kind="stable")]
    led = dict(zip(cells.pair[positive].tolist(), cells.column[positive].tolist(), strict=True))
    places = []
    for k in pairs[:LIMIT].tolist():
        always = f", and {'' if often[k] == 1 else 'always '}led to {cells.states[led[k]]!r}"
        what = f"{cells.quoted(k)}: seen {times(often[k])}{always if single[k] else ''}"
        places.append(Place(what))
    them = "it" if pairs.size == 1 else "them"
    cure = f"look at {them}; `min_count={FEW}` makes pairs seen fewer times unavailable"
    if fixed.size:
        sizes = _joined([f"{n:g}" for n in np.sort(often[fixed]).tolist()])
        rows = "this row" if fixed.size == 1 else f"these {fixed.size} rows"
        noun = "observation" if sizes == "1" else "observations"
        cure = f"nature cannot change {rows} within observed next states ({sizes} {noun}): {cure}"
    return [Finding("thin", False, int(pairs.size), "pairs", tuple(places), cure)]


def _joined(texts: list[str]) -> str:
    """List "1, 2 and 12"; what there is beyond `LIMIT` is left out."""
    if len(texts) > LIMIT:
        return first_names(texts, LIMIT)
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def thin_notes(cells: CountCells, fixed: BoolArray, available: BoolArray) -> list[str]:
    """Notes of a model on its thin pairs; `fixed` rows have one next state in all kernels,
    (S·A,).
    """
    often, notes = cells.by_pair(cells.count), []
    seen = available & (cells.by_pair(cells.rows) > 0)
    same, few = (np.flatnonzero(seen & rule) for rule in (fixed, ~fixed & (often < FEW)))
    if same.size:
        led = f"{count(same.size, 'pair')} always led to the same state"
        notes.append(f"{led}{UNCHANGED}: {named(cells, same)}")
    if few.size:
        what = f"{_pairs_were(few.size)} seen fewer than {FEW} times"
        notes.append(f"{what}: {named(cells, few)}")
    return notes


def named(cells: CountCells, pairs: Any) -> str:
    """Pairs with how often they were seen, the rarest first."""
    often = cells.by_pair(cells.count)
    order = pairs[np.argsort(often[pairs], kind="stable")].tolist()
    return first_names([f"{cells.spoken(k)} ({times(often[k])})" for k in order], LIMIT)


def times(n: float) -> str:
    """A number of times, in words."""
    return "once" if n == 1 else f"{n:g} times"


def _pairs_were(n: int) -> str:
    return f"{count(n, 'pair')} {'was' if n == 1 else 'were'}"


# ---------------------------------------------------------------------- summary


@dataclass(frozen=True)
class Summary:
    """Numbers about a table and the kernels made of it."""

    table: str
    columns: dict[str, str]
    rows: int
    episodes: int | None
    transitions: int
    ends: int  # rows that only end an episode, or come before a gap
    time: str | None  # how times are written, if they are text
    step: str | None
    order: str  # of the states: given, numbers or alphabet
    states: list[tuple[Any, int]]  # names in order, and how many transitions begin there
    actions: list[tuple[Any, int]]
    pairs: int  # that are not terminal
    pairs_seen: int
    pairs_seen_once: int
    least: int  # transitions of the seen pair that has fewest
    median: float  # transitions of a seen pair
    by: str
    kernels: list[Any]
    weights: str
    kernel_transitions: list[int] | None  # of each kernel; None for posterior draws
    kernel_pairs: list[int]  # rows of each kernel that come from data
    kernel_assumed: list[int]  # and rows that do not
    costs: str | None
    assumed: list[str]
    warnings: list[str]
    start: str | None  # where the process starts
    thin: list[str]  # pairs on which little rests


def summarise(
    survey: LogSurvey, samples: Samples, coverage: Coverage, settings: Settings, start: str | None
) -> Summary:
    """Count what there is to count; findings of the survey are warnings."""
    table, facts, cells = survey.steps.table, survey.facts, samples.pooled
    kind = check_settings(table.columns, settings)
    often = cells.by_pair(cells.rows).astype(np.int64).reshape(cells.shape)
    open_pairs = np.repeat(~coverage.terminal, len(cells.actions))
    counts = often.ravel()[open_pairs & (often.ravel() > 0)]
    order = "alphabet" if isinstance(cells.states[0], str) else "numbers"
    assumed = (coverage.part | coverage.never) & coverage.available
    return Summary(
        table=table.name,
        columns={role: name for role, name in table.wanted.items() if role != "unit"},
        rows=int(cells.rows.sum()) if facts.rows is None else facts.rows,
        episodes=None if facts.episodes is None else facts.episodes.height,
        transitions=int(cells.rows.sum()),
        ends=survey.steps.n_ends,
        time=facts.form,
        step=None if facts.step is None else f"{facts.step}{' (guessed)' if facts.guessed else ''}",
        order=order if settings.states is None else "given",
        states=list(zip(cells.states, often.sum(axis=1).tolist(), strict=True)),
        actions=list(zip(cells.actions, often.sum(axis=0).tolist(), strict=True)),
        pairs=int(open_pairs.sum()),
        pairs_seen=int(counts.size),
        pairs_seen_once=int((counts == 1).sum()),
        least=int(counts.min()) if counts.size else 0,
        median=float(np.median(counts)) if counts.size else 0.0,
        by=settings.by or "none",
        kernels=list(samples.labels),
        weights=settings.weights,
        kernel_transitions=None if samples.rows is None else samples.rows.tolist(),
        kernel_pairs=(coverage.observed & coverage.available).sum(axis=1).tolist(),
        kernel_assumed=assumed.sum(axis=1).tolist(),
        costs=None if kind is None else _costs(table, settings, kind),
        assumed=[
            *table.notes,
            *_order(facts, settings.ordering, table),
            *_left_out(survey.steps, kind),
            *(f"labels renamed: {old} is {new}" for old, new in (settings.rename or {}).items()),
            *_discounted(facts, settings),
            *samples.notes,
            *_kernels(samples, settings),
            *_rules(coverage, settings, cells),
            *([f"{START}{start}"] if start else []),
        ],
        warnings=list(map(str, survey.findings)),
        start=start,
        thin=[],
    )


def _costs(table: LogTable, settings: Settings, kind: str) -> str:
    column = getattr(table.columns, kind)
    if column is not None:
        return f"{kind}s: mean of {column!r} by state and action"
    stated = settings.costs if kind == "cost" else settings.rewards
    return f"{kind}s: {stated}" if isinstance(stated, str) else f"{kind}s: given"


def _order(facts: OrderFacts, ordering: Ordering, table: LogTable) -> list[str]:
    notes = []
    if facts.dropped and ordering.duplicates == "drop":
        notes.append(f"{count(facts.dropped, 'exact duplicate')} dropped")
    elif facts.dropped:
        kept = f"of several rows of an episode in one step the {ordering.duplicates} is kept"
        notes.append(f"{kept}: {facts.dropped:,} dropped")
    step = facts.step
    if facts.clocks is not None and step is not None and step.unit in CALENDAR:
        low, high = (offset(minutes) for minutes in facts.clocks)
        clock = f"that each stamp shows, {low}{'' if low == high else f' to {high}'}"
        clock = clock if ordering.zone is None else f"in {ordering.zone}"
        notes.append(f"days, months and years are those of the clock {clock}")
    if table.columns.next_state is not None:
        return notes
    if table.columns.time is None:
        return [*notes, "rows of an episode follow each other as in the table, one step apart"]
    if facts.forms > 1:
        notes.append(f"times are written in {facts.forms} ways: {facts.form}")
    if facts.swapped:
        notes.append(f"dates are read as {facts.form}, for not all of them can be read otherwise")
    if step is not None and step.is_continuous:
        per = step.unit or "unit of time"
        return [*notes, f"times count as they are: rates and costs are per {per}"]
    if step is not None and ordering.gaps != "bridge":
        notes.append(f"{STEP}{step}{', guessed' if facts.guessed else ''}")
        notes += filter(None, [covered(facts)])
    return notes + _gaps(facts, ordering.gaps)


def _gaps(facts: OrderFacts, rule: str) -> list[str]:
    again = "the episode ends there and begins again"
    if rule == "bridge":
        far = f"; {facts.gaps:,} pairs of rows are further apart than {facts.step}"
        what = "each row and the next of its episode make a transition, whatever the time between"
        return [what + (far if facts.gaps else "")]
    if facts.gaps and rule == "cut":
        return [f"{count(facts.gaps, 'gap')} in time: {again}"]
    if facts.beyond and rule == "fill":
        return [f"{count(facts.beyond, 'gap')} of more than {MOST} steps: {again}"]
    return []


def _discounted(facts: OrderFacts, settings: Settings) -> list[str]:
    if settings.interest is None:
        return []
    discount = discount_of_interest(settings.interest, facts.step)
    what = f"a step of {facts.step}"
    if facts.step is not None and facts.step.is_continuous:
        what = facts.step.of(facts.step.size)
    return [f"interest of {settings.interest}: {what} is discounted by {discount:.6g}"]


def _left_out(steps: Transitions, kind: str | None) -> list[str]:
    """Rows whose costs count nowhere."""
    if not steps.n_ends or kind is None or getattr(steps.table.columns, kind) is None:
        return []
    begin = f"{count(steps.n_ends, 'row')} {'begins' if steps.n_ends == 1 else 'begin'}"
    where = "at the end of an episode or before a gap"
    return [f"{begin} no transition, {where}: {kind}s in them are left out"]


def _kernels(samples: Samples, settings: Settings) -> list[str]:
    notes = []
    if settings.by == "posterior" and settings.prior != "pooled" and samples.clock is None:
        where = {
            "seen": "seen after the pair",
            "state": "seen from the state, under any action",
            "all": "there is",
        }[settings.prior_on]
        counts = f"pseudo-count{'' if settings.prior == 1 else 's'}"
        notes.append(f"prior: {settings.prior:g} {counts} for each next state {where}")
    rows = samples.rows
    if samples.grouped and rows is not None and rows.min() < rows.max():
        how = "weigh as much as they have data" if settings.weights == "rows" else "weigh the same"
        notes.append(f"kernels {how}; they have {rows.min():,} to {rows.max():,} transitions")
    if settings.weights == "counts":
        drawn = "drawn to those of all data together, which are the mean kernel"
        notes.append(f"rows of kernels with less data are {drawn}")
    return notes


def _spoken(rule: str) -> str:
    return "an estimate is refused" if rule == "refuse" else rule


def _rules(coverage: Coverage, settings: Settings, cells: CountCells) -> list[str]:
    texts = []
    marked = (coverage.never, coverage.part, coverage.rare, coverage.terminal)
    never, part, rare, ends = (int(flags.sum()) for flags in marked)
    if never:
        texts.append(f"{_pairs_were(never)} never seen: {_spoken(settings.unvisited)}")
    if part:
        rows = "row of a kernel lacks" if part == 1 else "rows of kernels lack"
        text = f"{part:,} {rows} data that others have: {_spoken(settings.partial_rule)}"
        if settings.partial_rule == "pooled" and settings.weights == "equal":
            text += "; kernels weigh the same, so that their mean need not be the kernel of all "
            text += "rows together (weights counts makes it so)"
        texts.append(text)
    if rare:
        observed = np.flatnonzero(coverage.rare & (cells.by_pair(cells.count) > 0))
        never_seen = f"; {rare - observed.size} never" if rare > observed.size else ""
        which = f": {named(cells, observed)}{never_seen}" if observed.size else ""
        what = f"seen fewer than {settings.min_count:g} times, and so unavailable{which}"
        texts.append(f"{_pairs_were(rare)} {what}")
    if ends:
        text = f"{count(ends, 'terminal state')}, where the process ends"
        if isinstance(settings.terminal, Mapping):
            values = (f"{name} {value:.12g}" for name, value in settings.terminal.items())
            text += f" at a final value: {', '.join(values)}"
        texts.append(text)
    return texts
