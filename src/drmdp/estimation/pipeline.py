"""From a table to a model, or to everything that is odd in it: the steps in a row.

The process starts as episodes began, as transitions did, in every state alike, or as the user says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.random import generator
from drmdp.core.storage import Kernels, from_parts
from drmdp.core.validation import Names, find, lookup, low_discount, state_flags
from drmdp.core.validation import terminal_of as ends_of
from drmdp.errors import InputError
from drmdp.estimation import count as counting
from drmdp.estimation.costs import price
from drmdp.estimation.count import NOTHING, RESAMPLED, SAMPLED, Clock, CountCells, Samples, lacking
from drmdp.estimation.intervals import fill_gaps
from drmdp.estimation.log import labels, times
from drmdp.estimation.log.files import open_source
from drmdp.estimation.log.findings import LIMIT, Finding, LogCheck, Place, RefusedError, refuse
from drmdp.estimation.log.order import LogSurvey, OrderFacts
from drmdp.estimation.log.outliers import outliers
from drmdp.estimation.log.shared_rows import alike, copied, gathered, shrunk
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.survey import survey_log, without_ends
from drmdp.estimation.log.table import Columns, UntidyError, open_table
from drmdp.estimation.rates import fit_rates
from drmdp.estimation.rules import check_ends, coverage_of, fill, names_by_text, rule_findings
from drmdp.estimation.settings import Settings, check_settings, period_of, recorded
from drmdp.estimation.summary import Summary, summarise, thin_finding, thin_notes
from drmdp.model import Model, changed
from drmdp.ui.progress import stage
from drmdp.ui.text import count

Counted = tuple[LogSurvey, Samples, Any]
"""Transitions, counts, and what more is drawn with."""


@dataclass(frozen=True)
class Estimate:
    """A model and the summary."""

    model: Model
    summary: Summary


@stage("counting transitions")
def fit(table: Any, columns: Columns, settings: Settings) -> Estimate:
    """`estimate` with its summary."""
    survey, samples, rng = counted(table, columns, settings)
    estimate = build_model(survey, samples, rng, settings, counts_of(samples))
    origin = recorded(columns, settings, estimate.summary)
    return replace(estimate, model=changed(estimate.model, origin=origin))


def build_model(
    survey: LogSurvey, samples: Samples, rng: Any, settings: Settings, counts: Kernels
) -> Estimate:
    """The model of what was counted."""
    table = survey.steps.table
    coverage = coverage_of(samples, terminal_of(samples, settings), settings)
    weights = kernel_weights(samples, settings)
    refuse(table.name, rule_findings(samples, coverage, settings))
    kernels = fill(samples, coverage, settings, rng)
    available = coverage.available.reshape(samples.pooled.shape)
    initial, start = start_of(samples, settings, survey.facts, coverage.terminal)
    kind = str(check_settings(table.columns, settings))
    priced = price(samples.pooled, available, table.columns, settings, kind)
    summary = summarise(survey, samples, coverage, settings, start)
    thin = thin_notes(samples.pooled, kernels.lengths == 1, coverage.available)
    discount = discount_for(settings, survey.facts)
    make: Any = Model
    stated = {"kernels": kernels, "discount": discount, "counts": counts}
    if samples.clock is not None:
        make = Model.from_rates
        stated = _continuous(samples.clock, kernels, available, discount)
    model = make(
        **stated,
        **{f"{kind}s": priced},
        weights=weights,
        initial=initial,
        states=samples.pooled.states,
        actions=samples.pooled.actions,
        available=available,
        terminal=named_ends(samples, settings),
        kernel_names=None if settings.by is None else _kernel_names(samples.labels),
        notes=[*summary.assumed, *thin, *(finding.note for finding in survey.findings)],
    )
    return Estimate(changed(model, start=start), replace(summary, thin=thin))


def counts_of(samples: Samples) -> Kernels:
    """Counts of the transitions: by kernel where each has data of its own, else in all."""
    cells, S = samples.pooled, len(samples.pooled.states)
    observed = cells.count > 0
    parts = samples.parts if samples.grouped else [(cells.keys[observed], cells.count[observed])]
    return from_parts(parts, S, S, len(cells.actions), is_sparse=False)


def _continuous(
    clock: Clock, kernels: Kernels, available: BoolArray, discount: float
) -> dict[str, Any]:
    """Rates, interest and counts of a model whose rows are steps of continuous time; the discount
    is that of a unit of time.
    """
    S = len(clock.rates)
    here = np.arange(S)
    rates = clock.steps * kernels.dense(0, S).transpose(2, 0, 1, 3)
    rates[:, here, :, here] = 0.0
    leaving = rates.sum(axis=3)
    rates[:, here, :, here] = -leaving.transpose(1, 0, 2)
    fastest = float(leaving[:, available].max())
    counts = clock.counts(fastest) if fastest > 0 else None
    if discount == 0:
        nothing = "in continuous time the cost of a moment is nothing; give a positive one"
        raise InputError(f"`discount=0`: {nothing}")
    return {"rates": rates, "interest": -math.log(discount), "counts": counts}


def counted(table: Any, columns: Columns, settings: Settings) -> Counted:
    """Transitions with all that is odd in them, the counts of the kernels, and what more is drawn
    with.
    """
    if check_settings(columns, settings) is None:
        raise InputError("give exactly one of `cost`, `reward`, `costs`, `rewards`, got none")
    try:
        return _counted(table, columns, settings, tidy=True)
    except UntidyError:
        return _counted(table, columns, settings, tidy=False)


def _counted(table: Any, columns: Columns, settings: Settings, tidy: bool) -> Counted:
    survey = read_log(table, columns, settings, tidy)
    if tidy and any(finding.refused for finding in survey.findings):
        raise UntidyError
    refuse(survey.steps.table.name, survey.findings)
    rng = generator(settings.seed, "estimate")
    samples = samples_of(survey, settings, rng)
    odd = odd_cells(survey, samples, settings)
    return replace(survey, findings=survey.findings + odd), samples, rng


def _kernel_names(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels as a model takes them: text for dates, numbers with a fraction and the like."""
    plain = all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels)
    return labels if plain else tuple(str(label) for label in labels)


# ---------------------------------------------------------------------- counts


def read_log(table: Any, columns: Columns, settings: Settings, tidy: bool) -> LogSurvey:
    """Open a table and make transitions of its rows, with what is odd about them."""
    period = period_of(settings.by)
    unit = None if settings.by in SAMPLED or period is not None else settings.by
    rename = settings.rename or {}
    opened = open_table(table, columns, unit, settings.reading, rename, tidy and not rename)
    if rename:
        labels.check_rename(opened, rename)
    survey = survey_log(opened, settings.ordering, settings.states, settings.ends)
    if settings.ends:
        valued = settings.ends if isinstance(settings.terminal, Mapping) else ()
        survey = without_ends(survey, valued)
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
    counted = _by_kernel(survey, kernels, rng)
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


def _by_kernel(survey: LogSurvey, settings: Settings, rng: Any) -> Samples:
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
    return ends_of(named_ends(samples, settings), samples.pooled.states)[0]


def named_ends(samples: Samples, settings: Settings) -> Any:
    """`terminal` as a model takes it: what was typed is the name of a state."""
    given, kind = settings.terminal, "terminal state"
    texts = list(given) if isinstance(given, Mapping) else given
    names = names_by_text(samples.pooled.states, texts, kind, settings.typed)
    return dict(zip(names, given.values(), strict=True)) if isinstance(given, Mapping) else names


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


# ---------------------------------------------------------------------- check


@stage("checking the log")
def check(table: Any, columns: Columns, settings: Settings) -> LogCheck:
    """`check_log` with settings."""
    asked = settings
    if settings.by in SAMPLED:  # such kernels have the same rows
        settings = replace(settings, by=None, n_kernels=None, prior=1.0, prior_on="state")
    try:
        result = _checked(table, columns, settings)
        more = [] if result.refused else _prices(table, columns, asked)
        return replace(result, findings=(*result.findings, *more))
    except InputError:
        wide = _wide(table, settings)
        if wide is None:
            raise
    settings = replace(settings, reading=replace(settings.reading, ragged=True))
    result = _checked(table, columns, settings)
    return replace(result, findings=(wide, *result.findings))


def _prices(table: Any, columns: Columns, settings: Settings) -> list[Finding]:
    """Problems of a table or formula of costs, which only an estimate reads."""
    if settings.costs is None and settings.rewards is None:
        return []
    if settings.interest is None and settings.discount is None:
        settings = replace(settings, discount=0.0)
    try:
        fit(table, columns, settings)
    except InputError as error:
        return [Finding("costs", True, 1, "problems", (Place(str(error)),))]
    return []


def _wide(table: Any, settings: Settings) -> Finding | None:
    """Lines with too many cells, which keep a file from being read."""
    source = open_source(table, settings.reading)
    lines = source.text.wide() if source.text is not None else []
    what = f"{{}} cells, but the header has {len(source.header)}; the last are cut off here"
    places = tuple(Place(what.format(n), (line,)) for line, n in lines[:LIMIT])
    cure = "put quotes around cells that hold the separator"
    return Finding("cells", True, len(lines), "lines", places, cure) if lines else None


def _checked(table: Any, columns: Columns, settings: Settings) -> LogCheck:
    check_settings(columns, settings)
    survey = read_log(table, columns, settings, False)
    findings, summary = list(survey.findings), None
    lack, steps = lacking(survey.steps)
    findings += lack
    survey = replace(survey, steps=steps)
    try:
        summary, odd = _summarised(survey, settings)
    except RefusedError as error:  # labels that are none of those given: go on without names
        findings += error.findings
        summary, odd = _summarised(survey, replace(settings, states=None, actions=None))
    except InputError as error:
        why = str(error).removeprefix(f"{survey.steps.table.name}: ")
        odd = [Finding("transitions", True, 1, "problems", (Place(why),))]
        if why == NOTHING and any(finding.refused for finding in findings):
            odd = []  # it follows of what is in the list already
    return LogCheck(survey.steps.table.name, tuple(findings + odd), summary)


def _summarised(survey: LogSurvey, settings: Settings) -> tuple[Summary, list[Finding]]:
    samples = samples_of(survey, settings, generator(0, "estimate"))
    coverage = coverage_of(samples, terminal_of(samples, settings), settings)
    odd = odd_cells(survey, samples, settings)
    if settings.interest is not None:
        discount_for(settings, survey.facts)
    start = start_of(samples, settings, survey.facts, coverage.terminal)[1]
    summary = summarise(replace(survey, findings=odd), samples, coverage, settings, start)
    odd = odd + rule_findings(samples, coverage, settings)
    return summary, odd + thin_finding(samples.pooled, coverage.available)
