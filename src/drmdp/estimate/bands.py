"""Stages of a horizon from a log: a model for each band of a column such as an age.

A transition belongs to the band in which it *begins*: that of the row where the action was taken, wherever it leads. So every transition counts once, and
none is lost at a border. Bands are [lo, hi), of one width from a multiple of it, or between borders that are given; rows beyond them are left out.

**How many stages a band has.** A decision is made every step, not every band. Let d be how much the column rises from a row to the next of its episode, on
average over all transitions (where gaps are filled, over all steps); a band has round((hi − lo)/d) stages, and one at least. Where a row tells its next state
itself, d is taken to be 1. The models of a horizon are the bands in order, each for as many stages as it has (`Model.stages`).

**Kernel i is the same source in every band**: of a column `by` each of its values; with "bootstrap", "folds" and "parts" the same episodes; posterior draws
are independent. Pairs that were seen, but not in a band, are *partial* there: the rule `partial` says what their rows are, and "pooled" are those of all bands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp.core.progress import stage
from drmdp.core.random import generator
from drmdp.core.text import count
from drmdp.core.validation import state_flags
from drmdp.errors import InputError
from drmdp.estimate.count import RESAMPLED, Cells, Samples
from drmdp.estimate.order import Survey
from drmdp.estimate.origin import recorded
from drmdp.estimate.pipeline import Estimate, counted, counts_of, made
from drmdp.estimate.settings import Settings
from drmdp.estimate.source import polars
from drmdp.estimate.stages import discount_odd, odd_cells, samples_of, terminal_of
from drmdp.estimate.table import Columns
from drmdp.estimate.times import GAP
from drmdp.model import changed

MOST = 1000
"""Bands; more are a slip."""


@stage("counting transitions by stage")
def fit_stages(table: Any, columns: Columns, settings: Settings) -> list[Estimate]:
    """One estimate a band, the first one first."""
    seen, samples, rng = counted(table, columns, settings)
    odd = [*seen.findings, *odd_cells(seen, samples, settings), *discount_odd(settings)]
    rows = seen.steps.table.collect(seen.steps.frame)[0]
    borders, (step, told) = _borders(rows["stage"], settings), _step(rows, columns)
    left = rows.height - int(rows["stage"].is_between(borders[0], borders[-1], closed="left").sum())
    told += [f"{count(left, 'transition')} of other stages left out"] if left else []
    again = settings.by in RESAMPLED and columns.episode is not None
    estimates = []
    for low, high in pairwise(borders):
        rng = generator(settings.seed, "estimate") if again else rng  # the same episodes in every band
        band = f"{columns.stage} from {low:g} to {high:g}"
        try:
            part = _part(seen, rows, low, high, samples)
            asked = _asked(settings, samples, part)
            drawn = samples_of(part, asked, rng)
            counts = counts_of(drawn)
            estimate = made(part, _widened(drawn, samples.pooled), rng, columns, asked, odd, counts)
        except InputError as error:
            name = seen.steps.table.name
            raise InputError(f"{name}: {band}: {str(error).removeprefix(f'{name}: ')}") from None
        n = max(1, round((high - low) / step))
        notes, model = [f"{band}: {count(n, 'stage')}", *told], estimate.model
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
    rows = rows.filter(polars().col("_advance").is_finite())
    step = float(rows["_advance"].sum()) / max(int(rows[GAP].sum()) if GAP in rows.columns else rows.height, 1)
    if not step > 0:
        raise InputError(f"`stage={columns.stage!r}` must rise from a row to the next: a step moves it by {step:.3g}")
    return step, [f"a step moves {columns.stage} by {step:.3g} on average"]


def _part(seen: Survey, rows: Any, low: float, high: float, samples: Samples) -> Survey:
    """What begins in a band."""
    pl = polars()
    here = pl.col("stage").is_between(low, high, closed="left")
    if not rows.filter(here).height:
        raise InputError("no transition begins there; give wider `bands`, or the borders of those there are")
    starts, steps = seen.facts.starts, replace(seen.steps, units=samples.labels if samples.grouped else None)
    if "episode" in rows.columns:
        steps = replace(steps, drawn=rows.lazy())
        first = (pl.col("episode") != pl.col("episode").shift(1)).fill_null(True)
        starts = starts and dict(rows.filter(first & here).group_by("state").agg(pl.len()).rows())
    facts = replace(seen.facts, rows=None, episodes=None, starts=starts or None)
    return replace(seen, steps=replace(steps, frame=rows.filter(here).lazy()), facts=facts)


def _asked(settings: Settings, samples: Samples, part: Survey) -> Settings:
    """The settings with all names that there are, for a band that may lack some, and a start that it has."""
    names = {kind: getattr(samples.pooled, kind) for kind in ("states", "actions")}
    end = state_flags("terminal", terminal_of(samples, settings), samples.pooled.states)
    texts = [str(name) for name, over in zip(samples.pooled.states, end.tolist(), strict=True) if over]
    initial = str(settings.initial) if isinstance(settings.initial, int) else settings.initial
    initial = None if initial == "first" and part.facts.starts is None else initial
    return replace(settings, **names, terminal=texts, initial=initial, typed=True)


def _widened(samples: Samples, cells: Cells) -> Samples:
    """Samples of a band, with what all bands together say of pairs that it lacks; no kernel has these."""
    here = samples.pooled
    other = cells.keep(~np.isin(cells.pair, here.pair[here.count > 0]) & (cells.count > 0))
    other = replace(other, rows=np.zeros_like(other.rows))
    joined: Any = {
        name: np.concatenate([getattr(here, name), getattr(other, name)])
        for name in ("pair", "column", "count", "rows", *([] if here.cost is None else ["cost"]))
    }
    both = replace(here, **joined, extra={}, gap=None)
    return replace(samples, pooled=both.keep(np.argsort(both.keys, kind="stable")))
