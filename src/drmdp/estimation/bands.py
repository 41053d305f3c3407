"""Stages of a horizon from a log: a model for each band of a column such as an age.

A transition belongs to the band in which it *begins*: that of the row where the action was taken,
wherever it leads. So every transition counts once, and none is lost at a border. Bands are [lo,
hi), of one width from a multiple of it, or between borders that are given; rows beyond them are
left out.

**How many stages a band has.** A decision is made every step, not every band. Let d be how much the
column rises from a row to the next of its episode, on average over all transitions (where gaps are
filled, over all steps); a band has round((hi − lo)/d) stages, and one at least. Where a row tells
its next state itself, d is taken to be 1. The models of a horizon are the bands in order, each for
as many stages as it has (`Model.stages`).

**Kernel i is the same source in every band**: of a column `by` each of its values; with
"bootstrap", "folds" and "parts" the same episodes; posterior draws are independent. Pairs that were
seen, but not in a band, are *partial* there: the rule `partial` says what their rows are, and
"pooled" are those of all bands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp.core.random import generator
from drmdp.core.validation import terminal_of
from drmdp.errors import InputError
from drmdp.estimation import pipeline
from drmdp.estimation.count import RESAMPLED, CountCells, Samples
from drmdp.estimation.log.order import LogSurvey
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import Columns
from drmdp.estimation.log.times import GAP
from drmdp.estimation.settings import Settings, recorded
from drmdp.model import changed
from drmdp.ui.progress import stage
from drmdp.ui.text import count

MOST = 1000
"""Bands; more are a slip."""


@stage("counting transitions by stage")
def fit_stages(table: Any, columns: Columns, settings: Settings) -> list[pipeline.Estimate]:
    """One estimate a band, the first one first."""
    survey, samples, rng = pipeline.counted(table, columns, settings)
    rows = survey.steps.table.query(survey.steps.frame)
    borders, (step, remarks) = _borders(rows["stage"], settings), _step(rows, columns)
    inside = rows["stage"].is_between(borders[0], borders[-1], closed="left")
    outside = rows.height - int(inside.sum())
    remarks += [f"{count(outside, 'transition')} of other stages left out"] if outside else []
    again = settings.by in RESAMPLED and columns.episode is not None
    estimates = []
    for low, high in pairwise(borders):
        if again:  # the same episodes in every band
            rng = generator(settings.seed, "estimate")
        band = f"{columns.stage} from {low:g} to {high:g}"
        try:
            part = _part(survey, rows, low, high, samples)
            asked = _asked(settings, samples, part)
            drawn = pipeline.samples_of(part, asked, rng)
            counts, wide = pipeline.counts_of(drawn), _widened(drawn, samples.pooled)
            estimate = pipeline.build_model(part, wide, rng, asked, counts)
        except InputError as error:
            name = survey.steps.table.name
            raise InputError(f"{name}: {band}: {str(error).removeprefix(f'{name}: ')}") from None
        n = max(1, round((high - low) / step))
        notes, model = [f"{band}: {count(n, 'stage')}", *remarks], estimate.model
        summary = replace(estimate.summary, assumed=[*notes, *estimate.summary.assumed])
        names = [f"{columns.stage} {round(low + k * (high - low) / n, 2):g}" for k in range(n)]
        origin = {**recorded(columns, settings, summary), "stages": names}
        model = changed(model, notes=(*notes, *model.notes), origin=origin)
        estimates.append(replace(estimate, model=model, summary=summary))
    return estimates


def _borders(stage: Any, settings: Settings) -> list[float]:
    if isinstance(settings.bands, Sequence):
        return [float(border) for border in settings.bands]
    width, low, high = float(settings.bands or 1), float(stage.min()), float(stage.max())
    first, last = math.floor(low / width), math.floor(high / width)
    if last - first >= MOST:
        n = f"{last - first + 1:,} bands from {low:g} to {high:g}"
        raise InputError(f"`bands={width:g}` makes {n}, at most {MOST:,}")
    return [width * k for k in range(first, last + 2)]


def _step(rows: Any, columns: Columns) -> tuple[float, list[str]]:
    """By how much the column rises in a step, and what to say of that."""
    if "_advance" not in rows.columns:
        return 1.0, [f"a step is taken to move {columns.stage} by 1"]
    rows = rows.filter(pl.col("_advance").is_finite())
    n_steps = int(rows[GAP].sum()) if GAP in rows.columns else rows.height
    step = float(rows["_advance"].sum()) / max(n_steps, 1)
    if not step > 0:
        what = f"must rise from a row to the next: a step moves it by {step:.3g}"
        raise InputError(f"`stage={columns.stage!r}` {what}")
    return step, [f"a step moves {columns.stage} by {step:.3g} on average"]


def _part(survey: LogSurvey, rows: Any, low: float, high: float, samples: Samples) -> LogSurvey:
    """The transitions that begin in a band."""
    here = pl.col("stage").is_between(low, high, closed="left")
    if not rows.filter(here).height:
        cure = "give wider `bands`, or the borders of those there are"
        raise InputError(f"no transition begins there; {cure}")
    starts = survey.facts.starts
    steps = replace(survey.steps, units=samples.labels if samples.grouped else None)
    if "episode" in rows.columns:
        steps = replace(steps, drawn=rows.lazy())
        first = (pl.col("episode") != pl.col("episode").shift(1)).fill_null(True)
        starts = starts and dict(rows.filter(first & here).group_by("state").agg(pl.len()).rows())
    facts = replace(survey.facts, rows=None, episodes=None, starts=starts or None)
    return replace(survey, steps=replace(steps, frame=rows.filter(here).lazy()), facts=facts)


def _asked(settings: Settings, samples: Samples, part: LogSurvey) -> Settings:
    """The settings with all names that there are, for a band that may lack some, and a start that
    it has.
    """
    states = samples.pooled.states
    names: Any = {"states": states, "actions": samples.pooled.actions}
    flags, values = terminal_of(pipeline.named_ends(samples, settings), states)
    texts: Any = [str(states[s]) for s in np.flatnonzero(flags).tolist()]
    if values is not None:
        texts = dict(zip(texts, values[flags].tolist(), strict=True))
    initial = str(settings.initial) if isinstance(settings.initial, int) else settings.initial
    initial = None if initial == "first" and part.facts.starts is None else initial
    return replace(settings, **names, terminal=texts, initial=initial, typed=True)


def _widened(samples: Samples, cells: CountCells) -> Samples:
    """Samples of a band, with what all bands together say of pairs that it lacks; no kernel has
    these.
    """
    here = samples.pooled
    other = cells.keep(~np.isin(cells.pair, here.pair[here.count > 0]) & (cells.count > 0))
    other = replace(other, rows=np.zeros_like(other.rows))
    joined: Any = {
        name: np.concatenate([getattr(here, name), getattr(other, name)])
        for name in ("pair", "column", "count", "rows", *([] if here.cost is None else ["cost"]))
    }
    both = replace(here, **joined, extra={}, gap=None)
    return replace(samples, pooled=both.keep(np.argsort(both.keys, kind="stable")))
