"""How far apart two times of a log are.

Distances are counted in *units*: plain numbers, or the years, quarters, months, weeks (from Monday), days, hours, minutes
or seconds of the calendar in which two times lie. 31 January and 1 February are one month apart, as are 1 January and
28 February. A *step* is a number of units.

A step with a tolerance (`within`) counts *elapsed* time instead: a distance is k steps if it is at most so far from k times
the mean length of the step, for the nearest k. A year has 365.2425 days, a quarter and a month a quarter and a twelfth of that.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from drmdp.errors import InputError, shown
from drmdp.estimate.source import polars

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""Coarsest first."""
CALENDAR = UNITS[:5]
"""Units of the clock on the wall; the others are the same everywhere."""
PERIODS = UNITS[:3]
"""Units that may make kernels."""
YEAR = 365.2425
DAYS = dict(zip(UNITS, (YEAR, YEAR / 4, YEAR / 12, 7, 1, 1 / 24, 1 / 1440, 1 / 86_400), strict=True))
"""Mean length of each unit."""
SECONDS = {"hour": 3600, "minute": 60, "second": 1}
NEAR = 1e-3
"""Numbers are a step apart up to this share of it."""
UNEVEN = 0.1
"""Steps of the calendar whose lengths are off by more than this share of the mean length are told."""
GAP = "_gap"
"""Column of the steps to the next row, where rows may be several apart."""
MOST = 24
"""Steps that are filled between two rows."""
CROWDED = 0.05
"""A unit is too coarse for a log if more than this share of neighbours lie in the same one."""
SURE = 0.3
"""A step that fewer neighbours than this share are apart is not guessed, but asked for, before a log is cut."""
YEAR_MONTH = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])((0[1-9]|[12]\d|3[01])?)")
SERIAL = range(20_000, 80_000)
"""Numbers that may be Excel's dates: from 1954 to 2119."""
CONTINUOUS = re.compile(rf"\s*continuous\s*(?:(?:/|per)\s*({'|'.join(UNITS)})\s*)?")
INTEREST = re.compile(rf"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*(?:/|per|an?)\s*({'|'.join(UNITS)})\s*")


@dataclass(frozen=True)
class Step:
    """So many units; plain numbers without one. With a tolerance it is elapsed time."""

    size: float
    unit: str | None = None
    within: Step | None = None
    is_continuous: bool = False  # no step at all: the unit is that of rates

    def __str__(self) -> str:
        if self.is_continuous:
            return "none, time is continuous" + (f", in {self.unit}s" if self.unit else "")
        return self.of(self.size) + (f" within {self.within}" if self.within is not None else "")

    def of(self, size: float) -> str:
        """A distance in words."""
        return f"{size:g}" if self.unit is None else f"{size:g} {self.unit}{'' if size == 1 else 's'}"

    @property
    def slack(self) -> float:
        """The tolerance, in the unit of the step, with room for the rounding of differences."""
        assert self.within is not None
        return max(self.within.size * _days(self.within.unit) / _days(self.unit) + 1e-9 * self.size, NEAR * self.size)

    def rounded(self, elapsed: Any) -> Any:
        """Distances as multiples of the step, where they are within the tolerance of one."""
        multiple = (elapsed / self.size).round() * self.size
        return polars().when((elapsed - multiple).abs() <= self.slack).then(multiple).otherwise(elapsed)


def _days(unit: str | None) -> float:
    return 1.0 if unit is None else DAYS[unit]


def parse_step(given: Any, dates: bool, within: Any = None) -> Step:
    """A step from "month", "2 weeks", "0.5", a number or "continuous/year", and its tolerance."""
    if continuous := CONTINUOUS.fullmatch(str(given).lower()):
        if dates != bool(continuous[1]):
            say = "dates, so say what rates and costs are per: 'continuous/year'"
            say = say if dates else "numbers, so give 'continuous': rates and costs are per unit of them"
            raise InputError(f"`step={given!r}`: the times are {say}")
        return Step(1.0, continuous[1], is_continuous=True)
    step = _parsed("step", given, dates, within is None)
    if within is None:
        return step
    slack = _parsed("within", within, dates, False)
    found = Step(step.size, step.unit, slack)
    if found.slack >= step.size / 2:
        raise InputError(f"`within={within!r}`: expected less than half of the step, which is {step}")
    return found


def _parsed(name: str, given: Any, dates: bool, whole: bool) -> Step:
    found = re.fullmatch(rf"\s*([\d.]*)\s*(?:({'|'.join(UNITS)})s?)?\s*", str(given).lower())
    size, unit = found.groups() if found and any(found.groups()) else (None, None)
    try:
        number = float(size or 1) if found and any(found.groups()) else 0.0
    except ValueError:
        number = 0.0
    if number <= 0 or (unit and whole and number % 1):
        raise InputError(f"`{name}`: expected a number, or {', '.join(UNITS)}, or as 2 weeks; got {shown(given)}")
    if dates and unit is None:
        raise InputError(f"`{name}={given!r}`: the times are dates, so give one of {', '.join(UNITS)}, or as 2 weeks")
    if unit is not None and not dates:
        raise InputError(f"`{name}={given!r}`: the times are numbers, so give a number")
    return Step(number, unit)


def parse_interest(given: Any) -> tuple[float, str]:
    """The rate of "3%/year", and the unit of time that it is for."""
    found = INTEREST.fullmatch(str(given).lower())
    if found is None:
        raise InputError(f"`interest`: expected a rate and its time, such as '3%/year'; got {shown(given)}")
    return float(found[1]) / (100 if found[2] else 1), found[3]


def discount_of_interest(given: Any, step: Step | None) -> float:
    """What a cost is worth a step earlier, (1 + rate) to the power of − the length of a step."""
    rate, unit = parse_interest(given)
    if step is None or step.unit is None:
        known = "the times are numbers" if step is not None else "no times of rows say how long a step is"
        example = math.exp(-math.log1p(rate) * DAYS["month"] / DAYS[unit])
        cure = f"give `discount` instead: {example:.6g} if a step is a month"
        raise InputError(f"`interest={given!r}` needs dates, but {known}; {cure}")
    return math.exp(-math.log1p(rate) * step.size * DAYS[step.unit] / DAYS[unit])


def cell(time: Any, unit: str | None) -> Any:
    """The number of the unit in which a time lies, counted from some origin."""
    pl = polars()
    if unit is None:
        return time
    if unit in SECONDS:
        return time.dt.epoch("us") // (SECONDS[unit] * 1_000_000)
    if unit in ("day", "week"):
        day = time.dt.date().cast(pl.Int64)
        return day if unit == "day" else (day + 3) // 7  # 1 January 1970 was a Thursday
    month = time.dt.year().cast(pl.Int64) * 12 + time.dt.month().cast(pl.Int64) - 1
    return month // {"year": 12, "quarter": 3, "month": 1}[unit]


def period(time: Any, unit: str) -> Any:
    """The name of the year, quarter or month in which a time lies."""
    pl = polars()
    year = time.dt.year().cast(pl.String)
    if unit == "month":
        return time.dt.strftime("%Y-%m")
    return year if unit == "year" else year + "Q" + time.dt.quarter().cast(pl.String)
