"""A log of events → laws of events: a column says what happened, and how often that was is all
there is to know.

The laws are the shares of the counts: of everything, of each value of a column, of rows drawn with
replacement ("bootstrap"), of all but a part of the rows ("folds"), of a part of them ("parts"), or
draws of the Dirichlet posterior. What an event does in the model is the user's function, which is
not estimated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core import validation as checks
from drmdp.core.names import natural
from drmdp.core.random import generator
from drmdp.errors import InputError, shown
from drmdp.estimation.count import SAMPLED
from drmdp.estimation.log.files import open_source
from drmdp.estimation.log.numbers import writing
from drmdp.estimation.log.source import Reading, pl, used_columns
from drmdp.estimation.settings import Settings
from drmdp.model import Model


def fit_events(
    table: Any, event: Any, events: Any, transition: Any, weight: str | None, settings: Settings
) -> Model:
    """The model of a transition function and a log of events."""
    needed = {"event": event, "transition": transition, "events": events}
    needed |= {"states": settings.states, "actions": settings.actions}
    for name, value in needed.items():
        if value is None:
            known = ", ".join(needed).replace(", actions", " and actions")
            raise InputError(f"{name}: a model of events needs {known}")
    counted = isinstance(events, int | np.integer) and not isinstance(events, bool)
    names = range(checks.integer("events", events, 1)) if counted else list(events)
    group = settings.by if settings.by not in (None, *SAMPLED) else None
    labels, counts = _counts(table, str(event), names, group, weight, settings.reading)
    total = counts.sum(axis=1)
    weighed = settings.weights in ("rows", "counts") and group is not None
    taken = ("discount", "costs", "rewards", "terminal")
    more: Any = {name: getattr(settings, name) for name in taken}
    more |= {"kernel_names": labels, "weights": total / total.sum() if weighed else None}
    about = (settings.states, settings.actions, events, transition, _laws(counts, settings))
    model: Model = Model.from_events(*about, **more)
    return model


def _counts(
    table: Any, event: str, events: Any, group: str | None, weight: str | None, reading: Reading
) -> tuple[Any, Array]:
    """The names of the groups, if there are any, and how often each event was seen, (groups, E)."""
    wanted = [name for name in (event, group, weight) if name is not None]
    source = open_source(table, reading, wanted)
    for name in (name for name in wanted if name not in source.header):
        known = ", ".join(map(repr, source.header))
        raise InputError(f"{source.name}: there is no column {name!r}; there are {known}")
    chosen = {name: pl.col(name) for name in wanted}
    (frame,) = source.collect(used_columns(source, chosen, wanted, reading)[0])
    index = {str(name): k for k, name in enumerate(events)}
    cells = frame[event].to_list()
    for row, value in zip(frame["_row"], cells, strict=True):
        if value is None or _plain(value) not in index:
            known = ", ".join(map(repr, events[:8]))
            known = f"0 … {len(events) - 1}" if isinstance(events, range) else known
            where = f"{source.word} {source.lines([row])[0]}, column {event!r}"
            what = f"{shown(value)} is no event; events are {known}"
            raise InputError(f"{source.name}: {where}: {what}")
    amount = np.ones(len(cells)) if weight is None else _amounts(frame[weight], reading)
    if not ((amount >= 0) & np.isfinite(amount)).all() or not amount.sum() > 0:
        what = "there are no events, or weights that are negative or no numbers"
        raise InputError(f"{source.name}: {what}")
    groups = [None] * len(cells) if group is None else frame[group].to_list()
    labels = list(dict.fromkeys(groups))
    if len({type(label) for label in labels}) == 1 and labels[0] is not None:
        labels = sorted(labels, key=natural)
    counts = np.zeros((len(labels), len(events)))
    at = [labels.index(label) for label in groups], [index[_plain(value)] for value in cells]
    np.add.at(counts, at, amount)
    return None if group is None else labels, counts


def _laws(counts: Array, settings: Settings) -> Array:
    """The laws (N, E)."""
    by, n = settings.by, settings.n_kernels
    if by not in SAMPLED:
        if n is not None and n != len(counts):
            raise InputError(f"n_kernels is {n}, and the log has {len(counts)}")
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    if n is None:
        raise InputError(f"n_kernels: how many laws shall {by!r} make?")
    n = checks.integer("n_kernels", n, 1 if by in ("bootstrap", "posterior") else 2)
    rng = generator(settings.seed, "estimate")
    total = counts[0]
    if by == "posterior":
        return np.asarray(rng.dirichlet(total + checks.number("prior", settings.prior), n))
    if (total != np.round(total)).any():
        raise InputError(f"weight: {by!r} draws rows, and a row counts once")
    rows = np.repeat(np.arange(total.size), total.astype(np.int64))
    if by == "bootstrap":
        drawn = rng.multinomial(rows.size, total / total.sum(), n).astype(np.float64)
    else:
        if n > rows.size:
            raise InputError(f"n_kernels: {n} parts of {rows.size} rows")
        dealt = np.array_split(rng.permutation(rows), n)
        parts = np.stack([np.bincount(part, minlength=total.size) for part in dealt])
        drawn = (total - parts if by == "folds" else parts).astype(np.float64)
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def _plain(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value).strip()


def _amounts(column: Any, reading: Reading) -> Array:
    """Numbers; NaN where there is none."""
    number = pl.col(column.name).cast(pl.Float64)
    if column.dtype == pl.String:
        number = writing(reading).read(pl.col(column.name).str.strip_chars())
    return np.asarray(column.to_frame().select(number).to_series().fill_null(np.nan).to_numpy())
