"""The stages from a table to the counts of N kernels, which `estimate` and `check_log` share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp.core.validation import low_discount, state_flags
from drmdp.errors import InputError
from drmdp.estimate import times
from drmdp.estimate.alike import alike, copied, gathered, shrunk
from drmdp.estimate.count import RESAMPLED, SAMPLED, Samples, by_column, posterior, resampled, single
from drmdp.estimate.findings import Finding, Place
from drmdp.estimate.intervals import fill_gaps
from drmdp.estimate.labels import MANY, Named, check_rename, label_findings
from drmdp.estimate.order import Facts, Survey
from drmdp.estimate.outliers import outliers
from drmdp.estimate.rates import fit_rates
from drmdp.estimate.rules import check_ends, names_by_text
from drmdp.estimate.scales import scale_findings
from drmdp.estimate.settings import Settings, period_of
from drmdp.estimate.source import polars
from drmdp.estimate.survey import survey
from drmdp.estimate.table import Columns, open_table


def read_log(table: Any, columns: Columns, settings: Settings, tidy: bool) -> Survey:
    """Open a table and make transitions of its rows, with what is odd about them."""
    period = period_of(settings.by)
    unit = None if settings.by in SAMPLED or period is not None else settings.by
    opened = open_table(table, columns, unit, settings.reading, settings.rename, tidy and not settings.rename)
    if settings.rename:
        check_rename(opened, settings.rename)
    seen = survey(opened, settings.ordering, settings.states)
    return seen if period is None else _by_period(seen, period)


def _by_period(seen: Survey, period: str) -> Survey:
    """Transitions with the year, quarter or month in which they begin as what makes a kernel."""
    schema = seen.steps.frame.collect_schema()
    if "time" not in seen.steps.table.wanted:  # its cells are refused already
        return replace(seen, steps=replace(seen.steps, frame=seen.steps.frame.with_columns(unit=polars().lit("all"))))
    if not schema["time"].is_temporal():
        raise InputError(
            f"`by='time:{period}'` needs dates: the times in {seen.steps.table.wanted['time']!r} are numbers"
        )
    clock = polars().col("_clock" if "_clock" in schema else "time")
    return replace(
        seen, steps=replace(seen.steps, frame=seen.steps.frame.with_columns(unit=times.period(clock, period)))
    )


def discount_for(settings: Settings, facts: Facts) -> float:
    """The discount that was given, or that of the interest and the step."""
    if settings.interest is not None:
        return times.discount_of_interest(settings.interest, facts.step)
    if settings.discount is None:
        raise InputError("give `discount`, or `interest` such as '3%/year'")
    return float(settings.discount)


def discount_odd(settings: Settings) -> list[Finding]:
    """A discount that may be meant for a rate of interest."""
    if settings.discount is None or (question := low_discount(settings.discount)) is None:
        return []
    cure = f"or `interest='{100 * settings.discount:g}%/year'`"
    return [Finding("discount", False, 1, "discounts", (Place(question),), cure)]


def samples_of(seen: Survey, settings: Settings, rng: Any) -> Samples:
    """Counts of the kernels, of one step each."""
    draws = settings.n_kernels or 0 if settings.by == "posterior" else 0
    counted = _counted(seen, replace(settings, by=None, n_kernels=None) if draws else settings, rng)
    first = counted.pooled
    terminal = state_flags("terminal", terminal_of(counted, settings), first.states)
    rows = alike(first, settings.same_row, settings.unvisited, settings.typed, terminal)
    raw = gathered(counted, rows)
    if settings.ordering.spans and seen.facts.step is not None:
        samples = _spanned(raw, seen, terminal, settings, draws, rng)
    elif settings.prior == "pooled":
        samples = shrunk(raw, draws, rng)
    else:
        samples = posterior(raw.pooled, draws, settings.pseudo, settings.prior_on, rng) if draws else raw
    return copied(samples, first, rows)


def _spanned(raw: Samples, seen: Survey, terminal: Any, settings: Settings, draws: int, rng: Any) -> Samples:
    """Counts of one step, from rows that may be far apart."""
    check_ends(raw, terminal)
    exact = state_flags("exact", named(raw, settings, settings.exact, "exact state"), raw.pooled.states)
    if (exact & ~terminal).any():
        s = raw.pooled.states[int(np.argmax(exact & ~terminal))]
        raise InputError(f"`exact`: state {s!r} is not terminal: name it with `terminal` too")
    if settings.ordering.is_continuous:
        return fit_rates(raw, seen, terminal, exact, settings, rng)
    samples, told = fill_gaps(raw, terminal, exact, rng, draws, settings.pseudo)
    return replace(samples, told=tuple(told.notes))


def _counted(seen: Survey, settings: Settings, rng: Any) -> Samples:
    steps, by, n = seen.steps, settings.by, settings.n_kernels or 0
    names = Named(settings.states, settings.typed), Named(settings.actions, settings.typed)
    if by is None:
        return single(steps, *names)
    if by in RESAMPLED:
        return resampled(steps, *names, by, n, rng)
    samples = by_column(steps, *names)
    if n not in (0, len(samples.labels)):
        raise InputError(f"`n_kernels={n}`, but {by!r} has {len(samples.labels)} values")
    return samples


def terminal_of(samples: Samples, settings: Settings) -> Any:
    """Terminal states as they are named in the data."""
    return named(samples, settings, settings.terminal, "terminal state")


def named(samples: Samples, settings: Settings, given: Any, kind: str) -> Any:
    """States as they are named in the data."""
    return names_by_text(samples.pooled.states, given, kind) if settings.typed and given else given


def kernel_weights(samples: Samples, settings: Settings) -> Any:
    """Weights of the kernels; None if they are equal."""
    if settings.weights == "equal":
        return None
    if not samples.grouped:
        raise InputError(
            f"`weights={settings.weights!r}` needs `by` to name a column: other kernels have as much data each"
        )
    return None if settings.weights == "counts" else samples.totals / samples.totals.sum()


def odd_cells(seen: Survey, samples: Samples, settings: Settings) -> list[Finding]:
    """Labels that look alike, where the user did not say which there are, and costs that stand out."""
    table, cells = seen.steps.table, samples.pooled
    S, A = len(cells.states), len(cells.actions)
    state = np.maximum(np.bincount(cells.pair // A, cells.rows, S), np.bincount(cells.column, cells.rows, S))
    action = np.bincount(cells.pair % A, cells.rows, A)
    found = []
    if settings.states is None:
        found += scale_findings(table)
        found += label_findings(table, "state", dict(zip(cells.states, state.astype(int).tolist(), strict=True)))
    if settings.actions is None:
        found += label_findings(table, "action", dict(zip(cells.actions, action.astype(int).tolist(), strict=True)))
    if samples.grouped and samples.rows is not None:
        found += label_findings(table, "unit", dict(zip(samples.labels, samples.rows.tolist(), strict=True)))
    episodes = seen.facts.episodes
    if episodes is not None and episodes.height <= MANY and table.wanted.get("unit") != table.wanted["episode"]:
        found += label_findings(table, "episode", dict(episodes.rows()))
    return found + outliers(table, seen.steps.frame, cells.prices)
