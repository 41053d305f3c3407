"""Distances between times of a log.

Distances are counted in *units*: plain numbers, or the years, quarters, months, weeks (from
Monday), days, hours, minutes or seconds of the calendar in which two times lie. 31 January and 1
February are one month apart, as are 1 January and 28 February. A *step* is a number of units.

A step with a tolerance (`within`) counts *elapsed* time instead: a distance is k steps if it is at
most so far from k times the mean length of the step, for the nearest k. A year has 365.2425 days, a
quarter and a month a quarter and a twelfth of that.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from drmdp.errors import InputError, shown
from drmdp.estimation.log.source import pl

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""Coarsest first."""
CALENDAR = UNITS[:5]
"""Units of the clock on the wall; the others are the same everywhere."""
PERIODS = UNITS[:3]
"""Units that may make kernels."""
YEAR = 365.2425
LENGTHS = (YEAR, YEAR / 4, YEAR / 12, 7, 1, 1 / 24, 1 / 1440, 1 / 86_400)
DAYS: dict[str | None, float] = {None: 1.0, **dict(zip(UNITS, LENGTHS, strict=True))}
"""Mean length of each unit; without one numbers are counted."""

NEAR = 1e-3
"""Numbers are a step apart up to this share of it."""
UNEVEN = 0.1
"""Steps of the calendar whose lengths are off by more than this share of the mean length are
told.
"""
GAP = "_gap"
"""Column of the steps to the next row, where rows may be several apart."""
MOST = 24
"""Steps that are filled between two rows."""
CROWDED = 0.05
"""A unit is too coarse for a log if more than this share of neighbours lie in the same one."""
SURE = 0.3
"""A step that fewer neighbours than this share are apart is not guessed, but asked for, before a
log is cut.
"""
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
        plural = "" if size == 1 else "s"
        return f"{size:g}" if self.unit is None else f"{size:g} {self.unit}{plural}"

    @property
    def slack(self) -> float:
        """The tolerance, in the unit of the step, with room for the rounding of differences."""
        assert self.within is not None
        within = self.within.size * DAYS[self.within.unit] / DAYS[self.unit]
        return max(within + 1e-9 * self.size, NEAR * self.size)

    def rounded(self, elapsed: Any) -> Any:
        """Distances as multiples of the step, where they are within the tolerance of one."""
        multiple = (elapsed / self.size).round() * self.size
        return pl.when((elapsed - multiple).abs() <= self.slack).then(multiple).otherwise(elapsed)


def parse_step(value: Any, dates: bool, within: Any = None) -> Step:
    """A step from "month", "2 weeks", "0.5", a number or "continuous/year", and its tolerance."""
    if continuous := CONTINUOUS.fullmatch(str(value).lower()):
        if dates != bool(continuous[1]):
            say = "numbers, so give 'continuous': rates and costs are per unit of them"
            say = "dates, so say what rates and costs are per: 'continuous/year'" if dates else say
            raise InputError(f"`step={value!r}`: the times are {say}")
        return Step(1.0, continuous[1], is_continuous=True)
    step = _parsed("step", value, dates, within is None)
    if within is None:
        return step
    tolerant = Step(step.size, step.unit, _parsed("within", within, dates, False))
    if tolerant.slack < step.size / 2:
        return tolerant
    raise InputError(f"`within={within!r}`: expected less than half of the step, which is {step}")


def _parsed(name: str, value: Any, dates: bool, integral: bool) -> Step:
    match = re.fullmatch(rf"\s*([\d.]*)\s*(?:({'|'.join(UNITS)})s?)?\s*", str(value).lower())
    size, unit = match.groups() if match and any(match.groups()) else ("0", None)
    try:
        number = float(size or 1)
    except ValueError:
        number = 0.0
    known = f"{', '.join(UNITS)}, or as 2 weeks"
    if number <= 0 or (unit and integral and number % 1):
        raise InputError(f"`{name}`: expected a number, or {known}; got {shown(value)}")
    if dates and unit is None:
        raise InputError(f"`{name}={value!r}`: the times are dates, so give one of {known}")
    if unit is not None and not dates:
        raise InputError(f"`{name}={value!r}`: the times are numbers, so give a number")
    return Step(number, unit)


def parse_interest(interest: Any) -> tuple[float, str]:
    """The rate of "3%/year", and the unit of time that it is for."""
    match = INTEREST.fullmatch(str(interest).lower())
    if match is None:
        expected = "expected a rate and its time, such as '3%/year'"
        raise InputError(f"`interest`: {expected}; got {shown(interest)}")
    return float(match[1]) / (100 if match[2] else 1), match[3]


def discount_of_interest(interest: Any, step: Step | None) -> float:
    """The discount of a step, (1 + rate) to the power of − its length."""
    rate, unit = parse_interest(interest)
    if step is None or step.unit is None:
        known = "no times of rows say how long a step is"
        known = known if step is None else "the times are numbers"
        example = math.exp(-math.log1p(rate) * DAYS["month"] / DAYS[unit])
        cure = f"give `discount` instead: {example:.6g} if a step is a month"
        raise InputError(f"`interest={interest!r}` needs dates, but {known}; {cure}")
    return math.exp(-math.log1p(rate) * step.size * DAYS[step.unit] / DAYS[unit])


def cell(time: Any, unit: str | None) -> Any:
    """The number of the unit in which a time lies, counted from some origin."""
    if unit is None:
        return time
    if unit in PERIODS:
        month = time.dt.year().cast(pl.Int64) * 12 + time.dt.month().cast(pl.Int64) - 1
        return month // {"year": 12, "quarter": 3, "month": 1}[unit]
    day = 86_400_000_000  # in microseconds; 1 January 1970 was a Thursday
    return (time.dt.epoch("us") + (3 * day if unit == "week" else 0)) // round(DAYS[unit] * day)


def period(time: Any, unit: str) -> Any:
    """The name of the year, quarter or month in which a time lies."""
    year = time.dt.year().cast(pl.String)
    if unit == "month":
        return time.dt.strftime("%Y-%m")
    return year if unit == "year" else year + "Q" + time.dt.quarter().cast(pl.String)
