"""From a table to a model, or to everything that is odd in it: the stages in a row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import BoolArray
from drmdp.core.random import generator
from drmdp.core.storage import Kernels, from_parts
from drmdp.errors import InputError
from drmdp.estimation import stages
from drmdp.estimation.costs import price
from drmdp.estimation.count import NOTHING, SAMPLED, Clock, Samples, lacking
from drmdp.estimation.log.files import open_source
from drmdp.estimation.log.findings import LIMIT, Finding, LogCheck, Place, RefusedError, refuse
from drmdp.estimation.log.order import LogSurvey
from drmdp.estimation.log.table import Columns, UntidyError
from drmdp.estimation.rules import coverage_of, fill, rule_findings
from drmdp.estimation.settings import Settings, check_settings, recorded
from drmdp.estimation.summary import Summary, summarise, thin_finding, thin_notes
from drmdp.model import Model, changed
from drmdp.ui.progress import stage

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
    coverage = coverage_of(samples, stages.terminal_of(samples, settings), settings)
    weights = stages.kernel_weights(samples, settings)
    refuse(table.name, rule_findings(samples, coverage, settings))
    kernels = fill(samples, coverage, settings, rng)
    available = coverage.available.reshape(samples.pooled.shape)
    initial, start = stages.start_of(samples, settings, survey.facts, coverage.terminal)
    kind = str(check_settings(table.columns, settings))
    priced = price(samples.pooled, available, table.columns, settings, kind)
    summary = summarise(survey, samples, coverage, settings, start)
    thin = thin_notes(samples.pooled, kernels.lengths == 1, coverage.available)
    discount = stages.discount_for(settings, survey.facts)
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
        terminal=coverage.terminal,
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
    survey = stages.read_log(table, columns, settings, tidy)
    if tidy and any(finding.refused for finding in survey.findings):
        raise UntidyError
    refuse(survey.steps.table.name, survey.findings)
    rng = generator(settings.seed, "estimate")
    samples = stages.samples_of(survey, settings, rng)
    odd = stages.odd_cells(survey, samples, settings)
    return replace(survey, findings=survey.findings + odd), samples, rng


def _kernel_names(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels as a model takes them: text for dates, numbers with a fraction and the like."""
    plain = all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels)
    return labels if plain else tuple(str(label) for label in labels)


# ---------------------------------------------------------------------- check


@stage("checking the log")
def check(table: Any, columns: Columns, settings: Settings) -> LogCheck:
    """`check_log` with settings."""
    asked = settings
    if settings.by in SAMPLED:  # such kernels have the same rows
        settings = replace(settings, by=None, n_kernels=None, prior=1.0, prior_on="state")
    try:
        result = _checked(table, columns, settings)
        if result.refused:
            return result
        return replace(result, findings=(*result.findings, *_prices(table, columns, asked)))
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
    survey = stages.read_log(table, columns, settings, False)
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
    samples = stages.samples_of(survey, settings, generator(0, "estimate"))
    coverage = coverage_of(samples, stages.terminal_of(samples, settings), settings)
    odd = stages.odd_cells(survey, samples, settings)
    if settings.interest is not None:
        stages.discount_for(settings, survey.facts)
    start = stages.start_of(samples, settings, survey.facts, coverage.terminal)[1]
    summary = summarise(replace(survey, findings=odd), samples, coverage, settings, start)
    odd = odd + rule_findings(samples, coverage, settings)
    return summary, odd + thin_finding(samples.pooled, coverage.available)
