"""Settings of `estimate`, which of them exclude each other, and their record, with which an
estimate is repeated with another log.

The record holds arguments that differ from their defaults, as JSON, with the names that
`drmdp.estimate` gives them. Of a path that is absolute it holds the file's name alone. What is no
text, number or list of them (arrays and mappings of costs, of starts, of terminal states) is
`GIVEN`: it is in the model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp._version import __version__
from drmdp.core.validation import Names, discount_of, number
from drmdp.errors import InputError, shown
from drmdp.estimation.count import SAMPLED
from drmdp.estimation.log.order import AFTER, DUPLICATES, GAPS, Ordering
from drmdp.estimation.log.source import Reading
from drmdp.estimation.log.table import Columns
from drmdp.estimation.log.times import PERIODS, parse_interest
from drmdp.estimation.rules import PARTIAL, UNVISITED, check_rule
from drmdp.model import Model

if TYPE_CHECKING:
    from drmdp.estimation.summary import Summary

WEIGHTS = ("equal", "rows", "counts")
PRIOR_ON = ("state", "seen", "all")
PRICES = ("cost", "reward", "costs", "rewards")


@dataclass(frozen=True)
class Settings:
    """Settings on how kernels are made of counts; see `estimate`."""

    discount: float | None
    by: str | None = None
    n_kernels: int | None = None
    seed: int = 0
    prior: float | str = 1.0
    prior_on: str = "state"
    unvisited: str = "refuse"
    same_row: Any = None
    partial: str = "refuse"
    costs: Any = None
    rewards: Any = None
    terminal: Any = None
    states: Names | None = None
    actions: Names | None = None
    rename: Mapping[Any, Any] | None = None
    weights: str = "equal"
    min_count: float = 0
    initial: Any = None
    jumps: Any = None
    exact: Any = None
    ordering: Ordering = field(default_factory=Ordering)
    reading: Reading = field(default_factory=Reading)
    interest: str | None = None
    bands: Any = None
    typed: bool = False  # whether names are texts from a command line, that may mean integers

    @property
    def ends(self) -> list[str]:
        """Terminal states as text, where they are named."""
        given = self.terminal
        if given is None or isinstance(given, np.ndarray):
            return []
        alone = isinstance(given, str) or not isinstance(given, Iterable)
        names = [str(name) for name in ([given] if alone else given) if not isinstance(name, bool)]
        return [name.encode(errors="replace").decode() for name in names]

    @property
    def pseudo(self) -> float:
        """Pseudo-count of a next state, where rows have a prior of their own."""
        return 1.0 if isinstance(self.prior, str) else self.prior

    @property
    def partial_rule(self) -> str:
        """The rule for rows that a kernel lacks; those of all data together where a kernel's rows
        are drawn to them.
        """
        return "pooled" if self.weights == "counts" and self.partial == "refuse" else self.partial


def log_settings(arguments: dict[str, Any]) -> tuple[Columns, Settings]:
    """Columns and settings of arguments of `estimate`; others are as by default."""

    def taken(kind: Any) -> Any:
        names = [item.name for item in fields(kind) if item.name in arguments]
        return kind(**{name: arguments.pop(name) for name in names})

    columns, ordering, reading = taken(Columns), taken(Ordering), taken(Reading)
    return columns, Settings(**{"discount": None, **arguments}, ordering=ordering, reading=reading)


def check_settings(columns: Columns, settings: Settings) -> str | None:
    """Refuse settings that contradict each other; whether "cost", "reward" or none is given."""
    prices = columns.cost, columns.reward, settings.costs, settings.rewards
    stated = [name for name, x in zip(PRICES, prices, strict=True) if x is not None]
    if len(stated) > 1:
        known, both = ([f"`{name}`" for name in names] for names in (PRICES, stated))
        raise InputError(f"give exactly one of {', '.join(known)}, got {' and '.join(both)}")
    if settings.discount is not None:
        discount_of(settings.discount)
    if settings.interest is not None:
        parse_interest(settings.interest)
    like = str(settings.unvisited).startswith("like:")
    check_rule("unvisited", UNVISITED[-1] if like else settings.unvisited, UNVISITED)
    check_rule("partial", settings.partial, PARTIAL)
    check_rule("prior_on", settings.prior_on, PRIOR_ON)
    check_rule("weights", settings.weights, WEIGHTS)
    check_rule("gaps", settings.ordering.gaps, GAPS)
    check_rule("duplicates", settings.ordering.duplicates, DUPLICATES)
    check_rule("after_terminal", settings.ordering.after_terminal, AFTER)
    parts = (_kernels(settings), _order(columns, settings), _bands(columns, settings))
    for problem in chain(*parts, _priors(settings)):
        raise InputError(problem)
    return stated[0].removesuffix("s") if stated else None


def _kernels(settings: Settings) -> Iterator[str]:
    """Problems of the number of kernels and of counts."""
    n, by = settings.n_kernels, settings.by
    if settings.interest is not None and settings.discount is not None:
        yield "give `discount` or `interest`, not both"
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
        yield f"`n_kernels`: expected a positive whole number, got {shown(n)}"
    if by is None and n not in (None, 1):
        yield f"`n_kernels={n}` needs `by`: a column, {', '.join(SAMPLED)}"
    if by in SAMPLED and n is None:
        yield f"`by={by!r}` needs `n_kernels`"
    if by in ("folds", "parts") and n == 1:
        yield f"`by={by!r}` needs at least 2 kernels"
    least = number("`min_count`", settings.min_count)
    if not (math.isfinite(least) and least >= 0):
        yield f"`min_count`: expected a number that is not negative, got {shown(settings.min_count)}"
    if least > 0 and settings.unvisited not in ("refuse", "unavailable"):
        what = f"`min_count={settings.min_count}` makes pairs that were never seen unavailable"
        yield f"{what}: it takes no `unvisited={settings.unvisited!r}`"
    if settings.weights == "counts" and settings.partial not in ("refuse", "unavailable", "pooled"):
        what = "`weights='counts'` makes the mean kernel that of all data together"
        yield f"{what}: it takes no `partial={settings.partial!r}`"


def _order(columns: Columns, settings: Settings) -> Iterator[str]:
    """Problems of the order of rows and the time between them."""
    ordering = settings.ordering
    for item in fields(ordering) if columns.time is None else ():
        value = getattr(ordering, item.name)
        if item.name == "after_terminal":
            continue
        if value if item.name == "time_format" else value != item.default:
            yield f"`{item.name}={value!r}` needs `time`, the column with the times"
    if ordering.step is not None and ordering.gaps == "bridge":
        yield "`gaps='bridge'` pairs rows whatever the time between: it takes no `step`"
    if ordering.gaps == "fill" and settings.weights == "counts":
        yield "`gaps='fill'` takes no `weights='counts'`: rows of one step are not sums of counts"
    if ordering.gaps == "fill" and settings.prior_on != "state":
        yield "`gaps='fill'` has its prior on what was seen from the state: `prior_on='state'`"
    if ordering.is_continuous:
        wrong = {
            "gaps": ordering.gaps != "refuse",
            "within": ordering.within is not None,
            "weights": settings.weights == "counts",
            "prior_on": settings.prior_on != "state",
            "unvisited": settings.unvisited.startswith(("prior", "like:")),
            "partial": settings.partial == "prior",
            "same_row": settings.same_row is not None,
        }
        what = f"`step={ordering.step!r}` fits rates to times as they are"
        yield from _excluded(what, settings, wrong)
    elif settings.jumps is not None:
        yield "`jumps` is for rates: `step='continuous'`"
    elif settings.exact and ordering.gaps != "fill":
        yield "`exact` is for rows that may be far apart: `gaps='fill'`, or `step='continuous'`"
    if ordering.after_terminal == "new" and not settings.ends:
        yield "`after_terminal='new'` needs the names of `terminal` states"
    if ordering.within is not None and ordering.step is None:
        yield f"`within={ordering.within!r}` needs `step`, which it is a tolerance of"
    if ordering.duplicates == "worst" and settings.states is None:
        yield "`duplicates='worst'` needs `states` in order, the worst last"
    if period_of(settings.by) is not None and columns.time is None:
        yield f"`by={settings.by!r}` needs `time`, the column with the times"


def _excluded(what: str, settings: Settings, wrong: dict[str, bool]) -> Iterator[str]:
    """Settings that are wrong."""
    for name in (name for name, excluded in wrong.items() if excluded):
        value = getattr(settings.ordering if hasattr(settings.ordering, name) else settings, name)
        yield f"{what}: it takes no `{name}={value!r}`"


def _bands(columns: Columns, settings: Settings) -> Iterator[str]:
    """Problems of bands of stages that are none, or that contradict something else."""
    bands = settings.bands
    several = isinstance(bands, Sequence) and not isinstance(bands, str)
    if columns.stage is None:
        if bands is not None:
            yield f"`bands={bands!r}` needs `stage`, the column that they are of"
        return
    borders = [number("`bands`", border) for border in (bands if several else [bands or 1])]
    rising = all(low < high for low, high in pairwise(borders)) if several else borders[0] > 0
    few = bands == 0 or (several and len(borders) < 2)
    if few or not rising or not all(map(math.isfinite, borders)):
        yield f"`bands`: expected a width above 0, or rising borders, got {shown(bands)}"
    if settings.weights == "counts":
        yield "`weights='counts'` draws rows to those of all stages: it takes no `stage`"


def _priors(settings: Settings) -> Iterator[str]:
    """Problems of the prior."""
    if settings.prior == "pooled":
        wrong = {
            "by": settings.by not in (None, "posterior"),
            "prior_on": settings.prior_on != "state",
            "gaps": settings.ordering.gaps == "fill",
            "step": settings.ordering.is_continuous,
        }
        what = "`prior='pooled'` is for counts of one kernel or its draws"
        yield from _excluded(what, settings, wrong)
        return
    prior = number("prior", settings.prior)
    if not (math.isfinite(prior) and prior > 0):
        yield f"`prior`: expected a positive number, got {shown(settings.prior)}"
    if settings.by != "posterior" and (prior != 1 or settings.prior_on != "state"):
        yield "`prior` and `prior_on` are for posterior draws: `by='posterior'`"


def period_of(by: str | None) -> str | None:
    """The period of the calendar that makes a kernel, if `by` names one, as "time:year"."""
    word, mark, period = (by or "").partition(":")
    if word != "time" or not mark:
        return None
    if period not in PERIODS:
        known = ", ".join(f"time:{name}" for name in PERIODS)
        raise InputError(f"`by={by!r}`: expected one of {known}")
    return period


# ---------------------------------------------------------------------- record


GIVEN = {"given": "in the model"}


def recorded(columns: Columns, settings: Settings, summary: Summary) -> dict[str, Any]:
    """The record of an estimate: its arguments, and how many rows it had."""
    asked: dict[str, Any] = {}
    for part in (columns, settings.ordering, settings.reading, settings):
        for item in fields(part):
            value = getattr(part, item.name)
            default = None if item.default is MISSING else item.default
            is_default = value is default or (value == default) is True
            if not is_default and item.name not in ("ordering", "reading"):
                asked[item.name] = _plain(value)
    counts = {name: getattr(summary, name) for name in ("rows", "transitions")}
    return {"estimate": asked, "table": Path(summary.table).name, "version": __version__, **counts}


def _plain(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return Path(text).name if os.path.isabs(text) else text
    if isinstance(value, dict) and _are(str, value) and _are(int | float, value.values()):
        return dict(value)  # terminal states
    if isinstance(value, dict) and _are(str | int, chain(*value.items())):
        return {str(old): str(new) for old, new in value.items()}  # labels that are renamed
    if isinstance(value, list | tuple | set | range) and _are(str | int | float, value):
        return list(value)
    return value if isinstance(value, int | float) else GIVEN


def _are(kind: Any, values: Iterable[Any]) -> bool:
    return all(isinstance(value, kind) for value in values)


def asked_again(model: Model, beside: Path) -> dict[str, Any]:
    """The arguments of the estimate that made a model; files that it names are here, or beside the
    model.
    """
    record = (model.origin or {})["estimate"]
    asked = {name: beside_or_here(value, beside) for name, value in record.items()}
    sign = "rewards" if model.maximise else "costs"
    names = {kind: list(getattr(model, kind)) for kind in ("states", "actions")}
    ends: Any = [name for name, end in zip(model.states, model.terminal, strict=True) if end]
    if model.ends is not None:
        values = (-model.ends if model.maximise else model.ends)[model.terminal]
        ends = dict(zip(ends, values.tolist(), strict=True))
    held = {sign: getattr(model, sign), "initial": model.initial, "terminal": ends, **names}
    for name, value in asked.items():
        if value == GIVEN and name not in held:
            raise InputError(f"origin: `{name}` was given as what no file holds")
        asked = {**asked, name: held[name], **names} if value == GIVEN else asked
    return asked


def beside_or_here(value: Any, beside: Path) -> Any:
    """An option; a file that is not here is beside the model."""
    is_beside = isinstance(value, str) and not Path(value).exists() and (beside / value).is_file()
    return str(beside / value) if is_beside else value
