"""The stages from a table to the counts of N kernels, and to the start distribution, which
`estimate` and `check_log` share.

The process starts as episodes began, as transitions did, in every state alike, or as the user says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.validation import Names, find, lookup, low_discount, state_flags
from drmdp.errors import InputError
from drmdp.estimation import count as counting
from drmdp.estimation.count import RESAMPLED, SAMPLED, CountCells, Samples
from drmdp.estimation.intervals import fill_gaps
from drmdp.estimation.log import labels, times
from drmdp.estimation.log.findings import Finding, Place
from drmdp.estimation.log.order import LogSurvey, OrderFacts
from drmdp.estimation.log.outliers import outliers
from drmdp.estimation.log.shared_rows import alike, copied, gathered, shrunk
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.survey import survey_log
from drmdp.estimation.log.table import Columns, open_table
from drmdp.estimation.rates import fit_rates
from drmdp.estimation.rules import check_ends, names_by_text
from drmdp.estimation.settings import Settings, period_of
from drmdp.ui.text import count


def read_log(table: Any, columns: Columns, settings: Settings, tidy: bool) -> LogSurvey:
    """Open a table and make transitions of its rows, with what is odd about them."""
    period = period_of(settings.by)
    unit = None if settings.by in SAMPLED or period is not None else settings.by
    rename = settings.rename or {}
    opened = open_table(table, columns, unit, settings.reading, rename, tidy and not rename)
    if rename:
        labels.check_rename(opened, rename)
    survey = survey_log(opened, settings.ordering, settings.states)
    return survey if period is None else _by_period(survey, period)


def _by_period(survey: LogSurvey, period: str) -> LogSurvey:
    """Transitions with the year, quarter or month in which they begin as what makes a kernel."""
    steps, unit = survey.steps, pl.lit("all")
    schema, wanted = steps.frame.collect_schema(), steps.table.wanted
    if "time" in wanted:  # its cells are refused otherwise
        if not schema["time"].is_temporal():
            what = f"needs dates: the times in {wanted['time']!r} are numbers"
            raise InputError(f"`by='time:{period}'` {what}")
        unit = times.period(pl.col("_clock" if "_clock" in schema else "time"), period)
    return replace(survey, steps=replace(steps, frame=steps.frame.with_columns(unit=unit)))


def discount_for(settings: Settings, facts: OrderFacts) -> float:
    """The discount that was given, or that of the interest and the step."""
    if settings.interest is not None:
        return times.discount_of_interest(settings.interest, facts.step)
    if settings.discount is None:
        raise InputError("give `discount`, or `interest` such as '3%/year'")
    return float(settings.discount)


def samples_of(survey: LogSurvey, settings: Settings, rng: Any) -> Samples:
    """Counts of the kernels, of one step each."""
    draws = settings.n_kernels or 0 if settings.by == "posterior" else 0
    kernels = replace(settings, by=None, n_kernels=None) if draws else settings
    counted = _counted(survey, kernels, rng)
    first, terminal = counted.pooled, terminal_of(counted, settings)
    rows = alike(first, settings.same_row, settings.unvisited, settings.typed, terminal)
    raw = gathered(counted, rows)
    if settings.ordering.spans and survey.facts.step is not None:
        samples = _spanned(raw, survey, terminal, settings, draws, rng)
    elif settings.prior == "pooled":
        samples = shrunk(raw, draws, rng)
    elif draws:
        samples = counting.posterior(raw.pooled, draws, settings.pseudo, settings.prior_on, rng)
    else:
        samples = raw
    return copied(samples, first, rows)


def _spanned(
    raw: Samples, survey: LogSurvey, terminal: Any, settings: Settings, draws: int, rng: Any
) -> Samples:
    """Counts of one step, from rows that may be far apart."""
    check_ends(raw, terminal)
    names = names_by_text(raw.pooled.states, settings.exact, "exact state", settings.typed)
    exact = state_flags("exact", names, raw.pooled.states)
    for s in np.flatnonzero(exact & ~terminal)[:1]:
        state = raw.pooled.states[s]
        raise InputError(f"`exact`: state {state!r} is not terminal: name it with `terminal` too")
    if settings.ordering.is_continuous:
        return fit_rates(raw, survey, terminal, exact, settings, rng)
    return fill_gaps(raw, terminal, exact, rng, draws, settings.pseudo)


def _counted(survey: LogSurvey, settings: Settings, rng: Any) -> Samples:
    steps, by, n = survey.steps, settings.by, settings.n_kernels or 0
    states = labels.GivenNames(settings.states, settings.typed)
    names = states, labels.GivenNames(settings.actions, settings.typed)
    if by is None:
        return counting.single(steps, names)
    if by in RESAMPLED:
        return counting.resampled(steps, names, by, n, rng)
    samples = counting.by_column(steps, names)
    if n not in (0, len(samples.labels)):
        raise InputError(f"`n_kernels={n}`, but {by!r} has {len(samples.labels)} values")
    return samples


def terminal_of(samples: Samples, settings: Settings) -> BoolArray:
    """Terminal states, (S,)."""
    states = samples.pooled.states
    names = names_by_text(states, settings.terminal, "terminal state", settings.typed)
    return state_flags("terminal", names, states)


def kernel_weights(samples: Samples, settings: Settings) -> Any:
    """Weights of the kernels; None if they are equal."""
    if settings.weights == "equal":
        return None
    if not samples.grouped:
        needs = "needs `by` to name a column: other kernels have as much data each"
        raise InputError(f"`weights={settings.weights!r}` {needs}")
    return None if settings.weights == "counts" else samples.totals / samples.totals.sum()


def odd_cells(survey: LogSurvey, samples: Samples, settings: Settings) -> list[Finding]:
    """Labels that look alike, where the user did not say which there are, costs that stand out, and
    a discount that may be meant for something else.
    """
    table, cells = survey.steps.table, samples.pooled
    S, A = cells.shape
    begun, ended = (np.bincount(s, cells.rows, S) for s in (cells.pair // A, cells.column))
    findings, often = list[Finding](), dict[str, Any]()
    if settings.states is None:
        findings += labels.scale_findings(table)
        often["state"] = zip(cells.states, np.maximum(begun, ended).astype(int), strict=True)
    if settings.actions is None:
        rows = np.bincount(cells.pair % A, cells.rows, A)
        often["action"] = zip(cells.actions, rows.astype(int), strict=True)
    if samples.grouped and samples.rows is not None:
        often["unit"] = zip(samples.labels, samples.rows, strict=True)
    episodes, wanted = survey.facts.episodes, table.wanted
    few = episodes is not None and episodes.height <= labels.MANY
    if few and wanted.get("unit") != wanted["episode"]:
        often["episode"] = episodes.rows()
    for role, pairs in often.items():
        findings += labels.label_findings(table, role, {label: int(n) for label, n in pairs})
    findings += outliers(table, survey.steps.frame, cells.prices)
    if settings.discount is not None and (question := low_discount(settings.discount)) is not None:
        cure = f"or `interest='{100 * settings.discount:g}%/year'`"
        findings.append(Finding("discount", False, 1, "discounts", (Place(question),), cure))
    return findings


# ---------------------------------------------------------------------- start


STARTS = ("first", "rows", "uniform")


def start_of(
    samples: Samples, settings: Settings, facts: OrderFacts, terminal: BoolArray
) -> tuple[Any, str | None]:
    """The start distribution, and where it comes from, in words; terminal states have 0 unless the
    user says otherwise.

    `initial` is one of `STARTS`, the name of a state, or what a model takes; by default "first",
    and "rows" where nobody knows how episodes began.
    """
    initial, cells, starts = settings.initial, samples.pooled, facts.starts
    if initial is not None and not isinstance(initial, str | int):
        return initial, None
    rule = initial if initial is not None else "rows" if starts is None else "first"
    if rule not in ("first", "rows") or (initial is not None and initial in lookup(cells.states)):
        return explicit_start(rule, cells.states, terminal, settings.typed)
    mass, unit = _mass(rule, cells, starts)
    mass = np.where(terminal, 0.0, mass)
    if not mass.any():
        return explicit_start("uniform", cells.states, terminal, False)
    return mass / mass.sum(), f"as the {count(round(float(mass.sum())), unit)} began"


def explicit_start(
    initial: Any, states: Names, terminal: BoolArray, typed: bool
) -> tuple[Array, str]:
    """A start in every state alike, but for terminal ones, or in one; `typed` names may mean
    integers.
    """
    known = lookup(states)
    if initial in STARTS and initial in known:
        cure = f"give {{{initial!r}: 1}} for the state"
        raise InputError(f"`initial={initial!r}` is a rule and a state: {cure}")
    if initial == "uniform":
        mass = np.where(terminal & ~terminal.all(), 0.0, 1.0)
        return mass / mass.sum(), "in every state alike"
    (name,) = names_by_text(states, [initial], "state to start in", typed)
    s = find(known, name, "`initial`", f"rule ({', '.join(STARTS)}) or state")
    return np.eye(1, terminal.size, s)[0], f"in state {states[s]!r}"


def _mass(rule: str, cells: CountCells, starts: Mapping[Any, int] | None) -> tuple[Array, str]:
    """The number of starts in each state, and their unit."""
    S = len(cells.states)
    if rule == "rows":
        counts = np.where(cells.rows > 0, cells.count, 0.0)  # without rows of other stages
        mass = np.bincount(cells.pair // len(cells.actions), counts, S)
        return mass.astype(np.float64), "transition"
    if starts is None:
        needs = "`episode`, and `time` to tell which row of an episode is the first"
        raise InputError(f"`initial='first'` needs {needs}")
    numbers = {str(label): n for label, n in starts.items()}  # also of states without transitions
    return np.array([numbers.get(str(name), 0) for name in cells.states], dtype=float), "episode"
