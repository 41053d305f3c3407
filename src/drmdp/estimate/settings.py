"""How kernels are made of a log: the settings of `estimate` and what they exclude."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

from drmdp.core.validation import Names, discount_of, number
from drmdp.errors import InputError, shown
from drmdp.estimate.count import SAMPLED
from drmdp.estimate.order import DUPLICATES, GAPS, Ordering
from drmdp.estimate.rules import PARTIAL, UNVISITED, check_rule
from drmdp.estimate.source import Reading
from drmdp.estimate.table import Columns
from drmdp.estimate.times import PERIODS, parse_interest

WEIGHTS = ("equal", "rows", "counts")
PRIOR_ON = ("state", "seen", "all")


@dataclass(frozen=True)
class Settings:
    """How kernels are made of counts; see `estimate`."""

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
    def pseudo(self) -> float:
        """Pseudo-count of a next state, where rows have a prior of their own."""
        return 1.0 if isinstance(self.prior, str) else self.prior

    @property
    def partial_rule(self) -> str:
        """What rows are that a kernel lacks; those of all data together where a kernel's rows are drawn to them."""
        return "pooled" if self.weights == "counts" and self.partial == "refuse" else self.partial


def log_settings(given: dict[str, Any]) -> tuple[Columns, Settings]:
    """The columns and settings that arguments of `estimate` say; what is not among them is as it is by default."""

    def taken(kind: Any) -> Any:
        return kind(**{own.name: given.pop(own.name) for own in fields(kind) if own.name in given})

    columns, ordering, reading = taken(Columns), taken(Ordering), taken(Reading)
    return columns, Settings(**{"discount": None, **given}, ordering=ordering, reading=reading)


def check_settings(columns: Columns, settings: Settings) -> str | None:
    """Refuse settings that contradict each other, before anything is read; "cost", "reward" or none of them."""
    sources = {
        "cost": columns.cost, "reward": columns.reward, "costs": settings.costs, "rewards": settings.rewards
    }  # fmt: skip
    given = [name for name, value in sources.items() if value is not None]
    if len(given) > 1:
        names = [", ".join(f"`{name}`" for name in sources), " and ".join(f"`{name}`" for name in given)]
        raise InputError(f"give exactly one of {names[0]}, got {names[1]}")
    _check_discount(settings)
    like = str(settings.unvisited).startswith("like:")
    check_rule("unvisited", UNVISITED[-1] if like else settings.unvisited, UNVISITED)
    check_rule("partial", settings.partial, PARTIAL)
    check_rule("prior_on", settings.prior_on, PRIOR_ON)
    check_rule("weights", settings.weights, WEIGHTS)
    _check_kernels(settings)
    _check_counts(settings)
    _check_ordering(columns, settings)
    check_bands(columns, settings)
    if settings.prior == "pooled":
        wrong = {
            "by": settings.by not in (None, "posterior"), "prior_on": settings.prior_on != "state",
            "gaps": settings.ordering.gaps == "fill", "step": settings.ordering.is_continuous,
        }  # fmt: skip
        _exclude("`prior='pooled'` is for counts of one kernel or its draws", settings, wrong)
        return given[0].removesuffix("s") if given else None
    prior = number("prior", settings.prior)
    if not (math.isfinite(prior) and prior > 0):
        raise InputError(f"`prior`: expected a positive number, got {shown(settings.prior)}")
    if settings.by != "posterior" and (prior != 1 or settings.prior_on != "state"):
        raise InputError("`prior` and `prior_on` are for posterior draws: `by='posterior'`")
    return given[0].removesuffix("s") if given else None


def _check_discount(settings: Settings) -> None:
    if settings.discount is not None:
        discount_of(settings.discount)
    if settings.interest is not None:
        parse_interest(settings.interest)
        if settings.discount is not None:
            raise InputError("give `discount` or `interest`, not both")


def _check_kernels(settings: Settings) -> None:
    n, by = settings.n_kernels, settings.by
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
        raise InputError(f"`n_kernels`: expected a positive whole number, got {shown(n)}")
    if by is None and n not in (None, 1):
        raise InputError(f"`n_kernels={n}` needs `by`: a column, {', '.join(SAMPLED)}")
    if by in SAMPLED and n is None:
        raise InputError(f"`by={by!r}` needs `n_kernels`")
    if by in ("folds", "parts") and n == 1:
        raise InputError(f"`by={by!r}` needs at least 2 kernels")


def _check_counts(settings: Settings) -> None:
    least = number("`min_count`", settings.min_count)
    if not (math.isfinite(least) and least >= 0):
        raise InputError(f"`min_count`: expected a number that is not negative, got {shown(settings.min_count)}")
    if least > 0 and settings.unvisited not in ("refuse", "unavailable"):
        raise InputError(
            f"`min_count={settings.min_count}` makes pairs that were never seen unavailable: it takes no `unvisited={settings.unvisited!r}`"
        )
    if settings.weights == "counts" and settings.partial not in ("refuse", "unavailable", "pooled"):
        raise InputError(
            f"`weights='counts'` makes the mean kernel that of all data together: it takes no `partial={settings.partial!r}`"
        )


def _check_ordering(columns: Columns, settings: Settings) -> None:
    ordering = settings.ordering
    check_rule("gaps", ordering.gaps, GAPS)
    check_rule("duplicates", ordering.duplicates, DUPLICATES)
    timed = {
        "step": ordering.step is not None, "gaps": ordering.gaps != "refuse",
        "duplicates": ordering.duplicates != "refuse", "time_format": bool(ordering.time_format),
        "within": ordering.within is not None, "zone": ordering.zone is not None,
    }  # fmt: skip
    for name, given in timed.items():
        if given and columns.time is None:
            raise InputError(f"`{name}={getattr(ordering, name)!r}` needs `time`, the column with the times")
    if ordering.step is not None and ordering.gaps == "bridge":
        raise InputError("`gaps='bridge'` pairs rows whatever the time between: it takes no `step`")
    if ordering.gaps == "fill":
        if settings.weights == "counts":
            raise InputError("`gaps='fill'` takes no `weights='counts'`: rows of one step are not sums of counts")
        if settings.prior_on != "state":
            raise InputError("`gaps='fill'` has its prior on what was seen from the state: `prior_on='state'`")
    if ordering.is_continuous:
        wrong = {
            "gaps": ordering.gaps != "refuse", "within": ordering.within is not None,
            "weights": settings.weights == "counts", "prior_on": settings.prior_on != "state",
            "unvisited": settings.unvisited.startswith(("prior", "like:")), "partial": settings.partial == "prior",
            "same_row": settings.same_row is not None,
        }  # fmt: skip
        _exclude(f"`step={ordering.step!r}` fits rates to times as they are", settings, wrong)
    elif settings.jumps is not None:
        raise InputError("`jumps` is for rates: `step='continuous'`")
    elif settings.exact and ordering.gaps != "fill":
        raise InputError("`exact` is for rows that may be far apart: `gaps='fill'`, or `step='continuous'`")
    if ordering.within is not None and ordering.step is None:
        raise InputError(f"`within={ordering.within!r}` needs `step`, which it is a tolerance of")
    if ordering.duplicates == "worst" and settings.states is None:
        raise InputError("`duplicates='worst'` needs `states` in order, the worst last")
    if period_of(settings.by) is not None and columns.time is None:
        raise InputError(f"`by={settings.by!r}` needs `time`, the column with the times")


def _exclude(what: str, settings: Settings, wrong: dict[str, bool]) -> None:
    """Refuse the first setting that is wrong."""
    for name in (name for name, excluded in wrong.items() if excluded):
        value = getattr(settings.ordering if hasattr(settings.ordering, name) else settings, name)
        raise InputError(f"{what}: it takes no `{name}={value!r}`")


def check_bands(columns: Columns, settings: Settings) -> None:
    """Refuse bands of stages that are none, or that contradict something else."""
    bands, several = settings.bands, isinstance(settings.bands, Sequence) and not isinstance(settings.bands, str)
    if columns.stage is None:
        if bands is not None:
            raise InputError(f"`bands={bands!r}` needs `stage`, the column that they are of")
        return
    borders = [number("`bands`", border) for border in (bands if several else [bands or 1])]
    rising = all(low < high for low, high in pairwise(borders)) if several else borders[0] > 0
    if not rising or not all(map(math.isfinite, borders)) or (several and len(borders) < 2) or bands == 0:
        raise InputError(f"`bands`: expected a width above 0, or rising borders, got {shown(bands)}")
    if settings.weights == "counts":
        raise InputError("`weights='counts'` draws rows to those of all stages: it takes no `stage`")


def period_of(by: str | None) -> str | None:
    """The period of the calendar that makes a kernel, if `by` names one, as "time:year"."""
    word, mark, period = (by or "").partition(":")
    if word != "time" or not mark:
        return None
    if period not in PERIODS:
        raise InputError(f"`by={by!r}`: expected one of {', '.join(f'time:{name}' for name in PERIODS)}")
    return period
