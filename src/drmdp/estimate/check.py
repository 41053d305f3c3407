"""Everything that is odd in a log, in one go, and what an estimate would assume."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drmdp.core.progress import stage
from drmdp.core.random import generator
from drmdp.errors import InputError
from drmdp.estimate.count import NOTHING, SAMPLED, lacking
from drmdp.estimate.findings import LIMIT, Finding, LogCheck, Place, RefusedError
from drmdp.estimate.opening import open_source
from drmdp.estimate.order import Survey
from drmdp.estimate.pipeline import fit
from drmdp.estimate.rules import available_pairs, rule_findings, visited
from drmdp.estimate.settings import Settings, check_settings
from drmdp.estimate.stages import discount_for, discount_odd, odd_cells, read_log, samples_of, terminal_of
from drmdp.estimate.start import start_of
from drmdp.estimate.summary import Summary, summarise, thin_finding
from drmdp.estimate.table import Columns


@stage("checking the log")
def check(table: Any, columns: Columns, settings: Settings) -> LogCheck:
    """`check_log` with settings."""
    asked = settings
    if settings.by in SAMPLED:  # such kernels have the same rows
        settings = replace(settings, by=None, n_kernels=None, prior=1.0, prior_on="state")
    try:
        found = _check(table, columns, settings)
        if found.refused:
            return found
        return replace(found, findings=(*found.findings, *_prices(table, columns, asked)))
    except InputError:
        wide = _wide(table, settings)
        if wide is None:
            raise
    settings = replace(settings, reading=replace(settings.reading, ragged=True))
    found = _check(table, columns, settings)
    return replace(found, findings=(wide, *found.findings))


def _prices(table: Any, columns: Columns, settings: Settings) -> list[Finding]:
    """What is wrong with a table or formula of costs, which only an estimate reads."""
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
    return (
        Finding("cells", True, len(lines), "lines", places, "put quotes around cells that hold the separator")
        if lines
        else None
    )


def _check(table: Any, columns: Columns, settings: Settings) -> LogCheck:
    kind = check_settings(columns, settings)
    seen = read_log(table, columns, settings, False)
    findings, summary = list(seen.findings), None
    lack, steps = lacking(seen.steps)
    findings += lack
    seen = replace(seen, steps=steps)
    try:
        summary, odd = _counted(seen, settings, kind)
    except RefusedError as error:  # labels that are none of those given: go on without names
        findings += error.findings
        summary, odd = _counted(seen, replace(settings, states=None, actions=None), kind)
    except InputError as error:
        why = str(error).removeprefix(f"{seen.steps.table.name}: ")
        follows = why == NOTHING and any(finding.refused for finding in findings)  # of what was found already
        odd = [] if follows else [Finding("transitions", True, 1, "problems", (Place(why),))]
    return LogCheck(seen.steps.table.name, tuple(findings + odd), summary)


def _counted(seen: Survey, settings: Settings, kind: str | None) -> tuple[Summary, list[Finding]]:
    samples = samples_of(seen, settings, generator(0, "estimate"))
    found = visited(samples, terminal_of(samples, settings), settings.min_count)
    rules = settings.unvisited, settings.partial_rule
    odd = [*odd_cells(seen, samples, settings), *discount_odd(settings)]
    if settings.interest is not None:
        discount_for(settings, seen.facts)
    open_pairs = available_pairs(found, *rules)
    start = start_of(settings.initial, settings.typed, samples.pooled, seen.facts.starts, found.terminal)[1]
    summary = summarise(seen, samples, found, open_pairs, settings, kind, odd, start)
    return summary, [*odd, *rule_findings(samples, found, *rules), *thin_finding(samples.pooled, open_pairs)]
