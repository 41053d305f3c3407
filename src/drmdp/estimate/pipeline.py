"""From a table to a model: the stages in a row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp.core.progress import stage
from drmdp.core.random import generator
from drmdp.core.storage import Kernels, from_parts
from drmdp.errors import InputError
from drmdp.estimate.costs import price
from drmdp.estimate.count import Clock, Samples
from drmdp.estimate.findings import Finding, refuse
from drmdp.estimate.order import Survey
from drmdp.estimate.origin import recorded
from drmdp.estimate.rules import Filled, fill, visited
from drmdp.estimate.settings import Settings, check_settings
from drmdp.estimate.stages import (
    discount_for,
    discount_odd,
    kernel_weights,
    odd_cells,
    read_log,
    samples_of,
    terminal_of,
)  # fmt: skip
from drmdp.estimate.start import start_of
from drmdp.estimate.summary import Summary, summarise, thin_notes
from drmdp.estimate.table import Columns, UntidyError
from drmdp.model import Model, changed


@dataclass(frozen=True)
class Estimate:
    """A model, the labels of its kernels, and the summary."""

    model: Model
    labels: tuple[Any, ...]
    summary: Summary


@stage("counting transitions")
def fit(table: Any, columns: Columns, settings: Settings) -> Estimate:
    """`estimate` with its summary and the labels of the kernels."""
    seen, samples, rng = counted(table, columns, settings)
    odd = [*seen.findings, *odd_cells(seen, samples, settings), *discount_odd(settings)]
    return made(seen, samples, rng, columns, settings, odd, counts_of(samples))


def made(
    seen: Survey, samples: Samples, rng: Any, columns: Columns, settings: Settings, odd: list[Finding], counts: Kernels
) -> Estimate:
    """The model of what was counted."""
    kind, name = str(check_settings(columns, settings)), seen.steps.table.name
    found = visited(samples, terminal_of(samples, settings), settings.min_count)
    prior = settings.pseudo if settings.by == "posterior" else None
    weights = kernel_weights(samples, settings)
    rules, shrunk = (settings.unvisited, settings.partial_rule), settings.weights == "counts"
    filled = fill(name, samples, found, *rules, prior, rng, shrunk)
    initial, start = start_of(settings.initial, settings.typed, samples.pooled, seen.facts.starts, found.terminal)
    given = settings.costs if kind == "cost" else settings.rewards
    priced = price(samples.pooled, filled, columns, given, kind, settings.reading)
    summary = summarise(seen, samples, found, filled.available, settings, kind, odd, start)
    thin = thin_notes(samples.pooled, filled.kernels.lengths == 1, filled.available.ravel())
    discount = discount_for(settings, seen.facts)
    make: Any = Model
    stated = {"kernels": filled.kernels, "discount": discount, "counts": counts}
    if samples.clock is not None:
        make, stated = Model.from_rates, _continuous(samples.clock, filled, discount)
    model = make(
        **stated,
        **{f"{kind}s": priced},
        weights=weights,
        initial=initial,
        states=samples.pooled.states,
        actions=samples.pooled.actions,
        available=filled.available,
        terminal=filled.terminal,
        kernel_names=None if settings.by is None else _kernel_names(samples.labels),
        notes=[*summary.assumed, *thin, *(finding.note for finding in odd)],
    )
    origin = recorded(columns, settings, summary)
    return Estimate(changed(model, start=start, origin=origin), samples.labels, replace(summary, thin=thin))


def counts_of(samples: Samples) -> Kernels:
    """How often each transition was seen: by kernel where each has data of its own, else in all."""
    cells, S = samples.pooled, len(samples.pooled.states)
    seen = cells.count > 0
    own = zip(samples.keys, samples.counts, strict=True) if samples.grouped else [(cells.keys[seen], cells.count[seen])]
    return from_parts(list(own), S, S, len(cells.actions), is_sparse=False)


def _continuous(clock: Clock, filled: Filled, discount: float) -> dict[str, Any]:
    """Rates, interest and counts of a model whose rows are steps of continuous time; the discount is that of a unit of time."""
    S = len(clock.rates)
    here = np.arange(S)
    rates = clock.steps * filled.kernels.dense(0, S).transpose(2, 0, 1, 3)
    rates[:, here, :, here] = 0.0
    left = rates.sum(axis=3)
    rates[:, here, :, here] = -left.transpose(1, 0, 2)
    fastest = float(left[:, filled.available].max())
    counts = clock.counts(fastest) if fastest > 0 else None
    if discount == 0:
        raise InputError("`discount=0`: in continuous time the cost of a moment is nothing; give a positive one")
    return {"rates": rates, "interest": -math.log(discount), "counts": counts}


def counted(table: Any, columns: Columns, settings: Settings) -> tuple[Survey, Samples, Any]:
    """Transitions, the counts of the kernels, and what more is drawn with."""
    if check_settings(columns, settings) is None:
        raise InputError("give exactly one of `cost`, `reward`, `costs`, `rewards`, got none")
    try:
        return _counted(table, columns, settings, tidy=True)
    except UntidyError:
        return _counted(table, columns, settings, tidy=False)


def _counted(table: Any, columns: Columns, settings: Settings, tidy: bool) -> tuple[Survey, Samples, Any]:
    seen = read_log(table, columns, settings, tidy)
    if tidy and any(finding.refused for finding in seen.findings):
        raise UntidyError
    refuse(seen.steps.table.name, seen.findings)
    rng = generator(settings.seed, "estimate")
    return seen, samples_of(seen, settings, rng), rng


def _kernel_names(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels as a model takes them: text for dates, numbers with a fraction and the like."""
    plain = all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels)
    return labels if plain else tuple(str(label) for label in labels)
