"""What was seen, how often, and what was assumed.

Pairs on which little rests: seen a few times, or always followed by the same state.

A row with one next state is a point mass. Where mass moves among observed next states only, nature cannot change it, whatever the radius: the fewer the data,
the safer an action looks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.counts import FEW
from drmdp.core.text import START, STEP, count, some
from drmdp.estimate.count import Cells
from drmdp.estimate.findings import LIMIT, Finding, Place
from drmdp.estimate.neighbours import offset
from drmdp.estimate.order import covered
from drmdp.estimate.times import CALENDAR, MOST, discount_of_interest

if TYPE_CHECKING:
    from drmdp.estimate.count import Cells, Samples
    from drmdp.estimate.order import Facts, Ordering, Steps, Survey
    from drmdp.estimate.rules import Visited
    from drmdp.estimate.settings import Settings
    from drmdp.estimate.table import Table


def pair_rows(cells: Cells) -> Array:
    """How much was seen of each pair, (S·A,)."""
    return np.bincount(cells.pair, cells.count, len(cells.states) * len(cells.actions)).astype(np.float64)


def thin_finding(cells: Cells, open_pairs: BoolArray) -> list[Finding]:
    """What `check_log` says of thin pairs among those that are open, (S·A,)."""
    seen = pair_rows(cells)
    open_pairs = open_pairs & (np.bincount(cells.pair, cells.rows, seen.size) > 0)
    there = cells.count > 0
    single = np.bincount(cells.pair[there], minlength=seen.size) == 1
    few, fixed = (np.flatnonzero(open_pairs & own) for own in ((seen > 0) & (seen < FEW), single))
    pairs = np.union1d(few, fixed)
    if not pairs.size:
        return []
    pairs = pairs[np.argsort(seen[pairs], kind="stable")]
    led = dict(zip(cells.pair[there].tolist(), cells.column[there].tolist(), strict=True))
    places = tuple(_place(cells, k, seen[k], led[k] if single[k] else None) for k in pairs[:LIMIT].tolist())
    cure = f"look at them; `min_count={FEW}` makes pairs seen fewer times unavailable"
    if fixed.size:
        own = _joined([f"{n:g}" for n in np.sort(seen[fixed]).tolist()])
        rows = "this row" if fixed.size == 1 else f"these {fixed.size} rows"
        noun = "observation" if own == "1" else "observations"
        cure = f"nature cannot change {rows} within observed next states ({own} {noun}): {cure}"
    return [Finding("thin", False, int(pairs.size), "pairs", places, cure)]


def _joined(texts: list[str]) -> str:
    """List "1, 2 and 12"; what there is beyond `LIMIT` is left out."""
    return some(texts, LIMIT) if len(texts) > LIMIT else " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _place(cells: Cells, pair: int, n: float, to: int | None) -> Place:
    A, led = len(cells.actions), ""
    if to is not None:
        led = f", and {'' if n == 1 else 'always '}led to {cells.states[to]!r}"
    return Place(f"state {cells.states[pair // A]!r}, action {cells.actions[pair % A]!r}: seen {times(n)}{led}")


def thin_notes(cells: Cells, fixed: BoolArray, available: BoolArray) -> list[str]:
    """The same as notes of a model; `fixed` rows have one next state in all kernels, (S·A,)."""
    seen, found = pair_rows(cells), []
    cannot = "always led to the same state, and nature cannot change that within observed next states"
    for own, what in ((fixed, cannot), (~fixed & (seen < FEW), f"seen fewer than {FEW} times")):
        pairs = np.flatnonzero(available & own & (np.bincount(cells.pair, cells.rows, seen.size) > 0))
        if pairs.size:
            was = "" if what == cannot else "was " if pairs.size == 1 else "were "
            found.append(f"{count(pairs.size, 'pair')} {was}{what}: {named(cells, pairs)}")
    return found


def named(cells: Cells, pairs: Any) -> str:
    """Pairs with how often they were seen, the rarest first."""
    seen, A = pair_rows(cells), len(cells.actions)
    order = pairs[np.argsort(seen[pairs], kind="stable")].tolist()
    return some([f"{cells.actions[k % A]} when {cells.states[k // A]} ({times(seen[k])})" for k in order], LIMIT)


def times(n: float) -> str:
    """How often, in words."""
    return "once" if n == 1 else f"{n:g} times"


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

    def as_dict(self) -> dict[str, Any]:
        """All fields, as JSON takes them."""
        return asdict(self)


def summarise(
    seen: Survey,
    samples: Samples,
    found: Visited,
    available: Any,
    settings: Settings,
    kind: str | None,
    odd: list[Finding],
    start: str | None,
) -> Summary:
    """Count what there is to count; `odd` are findings that are not refused."""
    table, facts = seen.steps.table, seen.facts
    cells = samples.pooled
    S, A = len(cells.states), len(cells.actions)
    often = np.bincount(cells.pair, weights=cells.rows, minlength=S * A).astype(np.int64).reshape(S, A)
    open_pairs = np.repeat(~found.terminal, A)
    counts = often.ravel()[open_pairs & (often.ravel() > 0)]
    used = np.asarray(available).ravel()
    assumed = (found.part | found.never) & used
    return Summary(
        table=table.name,
        columns={role: name for role, name in table.wanted.items() if role != "unit"},
        rows=int(cells.rows.sum()) if facts.rows is None else facts.rows,
        episodes=None if facts.episodes is None else facts.episodes.height,
        transitions=int(cells.rows.sum()),
        ends=seen.steps.n_ends,
        time=facts.form,
        step=None if facts.step is None else f"{facts.step}{' (guessed)' if facts.guessed else ''}",
        order="given" if settings.states is not None else "alphabet" if isinstance(cells.states[0], str) else "numbers",
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
        kernel_pairs=(found.seen & used).sum(axis=1).tolist(),
        kernel_assumed=assumed.sum(axis=1).tolist(),
        costs=None if kind is None else _costs(table, settings, kind),
        assumed=[
            *table.told,
            *_order(facts, settings.ordering, table),
            *_left_out(seen.steps, kind),
            *(f"labels renamed: {old} is {new}" for old, new in (settings.rename or {}).items()),
            *_discounted(facts, settings),
            *samples.told,
            *_kernels(samples, settings),
            *_rules(found, settings, cells),
            *([f"{START}{start}"] if start else []),
        ],
        warnings=[str(finding) for finding in odd],
        start=start,
        thin=[],
    )


def _costs(table: Table, settings: Settings, kind: str) -> str:
    column = getattr(table.columns, kind)
    if column is not None:
        return f"{kind}s: mean of {column!r} by state and action"
    given = settings.costs if kind == "cost" else settings.rewards
    return f"{kind}s: {given}" if isinstance(given, str) else f"{kind}s: given"


def _order(facts: Facts, ordering: Ordering, table: Table) -> list[str]:
    found = []
    if facts.dropped and ordering.duplicates == "drop":
        found.append(f"{facts.dropped:,} exact duplicate{'s' if facts.dropped > 1 else ''} dropped")
    elif facts.dropped:
        found.append(
            f"of several rows of an episode in one step the {ordering.duplicates} is kept: {facts.dropped:,} dropped"
        )
    found += _clocks(facts, ordering)
    if table.columns.next_state is not None:
        return found
    if table.columns.time is None:
        return [*found, "rows of an episode follow each other as in the table, one step apart"]
    if facts.forms > 1:
        found.append(f"times are written in {facts.forms} ways: {facts.form}")
    if facts.swapped:
        found.append(f"dates are read as {facts.form}, for not all of them can be read otherwise")
    if facts.step is not None and facts.step.is_continuous:
        return [*found, f"times count as they are: rates and costs are per {facts.step.unit or 'unit of time'}"]
    if facts.step is not None and ordering.gaps != "bridge":
        found.append(f"{STEP}{facts.step}{', guessed' if facts.guessed else ''}")
        found += filter(None, [covered(facts)])
    if facts.gaps and ordering.gaps == "cut":
        found.append(
            f"{facts.gaps:,} gap{'s' if facts.gaps > 1 else ''} in time: the episode ends there and begins again"
        )
    if facts.beyond and ordering.gaps == "fill":
        found.append(f"{count(facts.beyond, 'gap')} of more than {MOST} steps: the episode ends there and begins again")
    if ordering.gaps == "bridge":
        far = f"; {facts.gaps:,} pairs of rows are further apart than {facts.step}" if facts.gaps else ""
        found.append(f"each row and the next of its episode make a transition, whatever the time between{far}")
    return found


def _clocks(facts: Facts, ordering: Ordering) -> list[str]:
    if facts.clocks is None or facts.step is None or facts.step.unit not in CALENDAR:
        return []
    low, high = (offset(minutes) for minutes in facts.clocks)
    clock = f"that each stamp shows, {low}{'' if low == high else f' to {high}'}"
    return [
        f"days, months and years are those of the clock {clock if ordering.zone is None else f'in {ordering.zone}'}"
    ]


def _discounted(facts: Facts, settings: Settings) -> list[str]:
    if settings.interest is None:
        return []
    discount = discount_of_interest(settings.interest, facts.step)
    what = f"a step of {facts.step}"
    if facts.step is not None and facts.step.is_continuous:
        what = facts.step.of(facts.step.size)
    return [f"interest of {settings.interest}: {what} is discounted by {discount:.6g}"]


def _left_out(steps: Steps, kind: str | None) -> list[str]:
    """Rows whose costs count nowhere."""
    if not steps.n_ends or kind is None or getattr(steps.table.columns, kind) is None:
        return []
    rows = "row begins no transition" if steps.n_ends == 1 else "rows begin no transition"
    return [f"{steps.n_ends:,} {rows}, at the end of an episode or before a gap: {kind}s in them are left out"]


def _kernels(samples: Samples, settings: Settings) -> list[str]:
    found = []
    if settings.by == "posterior" and settings.prior != "pooled" and samples.clock is None:
        where = {"seen": "seen after the pair", "state": "seen from the state, under any action", "all": "there is"}[
            settings.prior_on
        ]
        found.append(f"prior: {settings.prior:g} pseudo-counts for each next state {where}")
    rows = samples.rows
    if samples.grouped and rows is not None and rows.min() < rows.max():
        how = "weigh as much as they have data" if settings.weights == "rows" else "weigh the same"
        found.append(f"kernels {how}; they have {rows.min():,} to {rows.max():,} transitions")
    if settings.weights == "counts":
        found.append(
            "rows of kernels with less data are drawn to those of all data together, which are the mean kernel"
        )
    return found


def _rules(found: Visited, settings: Settings, cells: Cells) -> list[str]:
    texts = []
    never, part = int(found.never.sum()), int(found.part.sum())
    if never:
        texts.append(f"{never:,} pair{' was' if never == 1 else 's were'} never seen: {settings.unvisited}")
    if part:
        rows = "row of a kernel lacks" if part == 1 else "rows of kernels lack"
        texts.append(f"{part:,} {rows} data that others have: {settings.partial_rule}")
    if found.rare.any():
        n, seen = int(found.rare.sum()), np.flatnonzero(found.rare & (pair_rows(cells) > 0))
        was = "pair was" if n == 1 else "pairs were"
        which = f": {named(cells, seen)}{f'; {n - seen.size} never' if n > seen.size else ''}" if seen.size else ""
        texts.append(f"{n:,} {was} seen fewer than {settings.min_count:g} times, and so unavailable{which}")
    if found.terminal.any():
        n = int(found.terminal.sum())
        texts.append(f"{n} terminal state{'s' if n > 1 else ''}, where the process ends")
    return texts
