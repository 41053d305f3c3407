"""Times of a log: what a column of text says, and how far apart two rows are.

A time is a number or a date with a clock. Text is read in the form that most of the first cells have; each cell that
does not have it is named. Dates as 01/02/2020 have two readings. If every cell has both, nothing is guessed.

Distances are counted in *units*: plain numbers, or the years, quarters, months, weeks (from Monday), days, hours, minutes
or seconds of the calendar in which two times lie. 31 January and 1 February are one month apart, as are 1 January and
28 February. A *step* is a number of units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from drmdp.errors import InputError, shown
from drmdp.estimate.source import polars
from drmdp.estimate.table import parsed_number

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""Coarsest first."""
SECONDS = {"hour": 3600, "minute": 60, "second": 1}
NEAR = 1e-3
"""Numbers are a step apart up to this share of it."""
CROWDED = 0.05
"""A unit is too coarse for a log if more than this share of neighbours lie in the same one."""
SURE = 0.3
"""A step that fewer neighbours than this share are apart is not guessed, but asked for, before a log is cut."""
SAMPLE = 200
"""Cells that decide on the form."""
INTEGER = r"[-+]?\d+"
NUMBER = r"[-+]?((0|[1-9]\d*)?\.\d+|\d+\.?)([eE][-+]?\d+)?"
YEAR_MONTH = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])((0[1-9]|[12]\d|3[01])?)")


@dataclass(frozen=True)
class Step:
    """So many units; plain numbers without one."""

    size: float
    unit: str | None = None

    def __str__(self) -> str:
        return self.of(self.size)

    def of(self, size: float) -> str:
        """A distance in words."""
        return f"{size:g}" if self.unit is None else f"{size:g} {self.unit}{'' if size == 1 else 's'}"


def parse_step(given: Any, dates: bool) -> Step:
    """A step from "month", "2 weeks", "0.5" or a number."""
    found = re.fullmatch(rf"\s*([\d.]*)\s*(?:({'|'.join(UNITS)})s?)?\s*", str(given).lower())
    size, unit = found.groups() if found and any(found.groups()) else (None, None)
    try:
        number = float(size or 1) if found and any(found.groups()) else 0.0
    except ValueError:
        number = 0.0
    if number <= 0 or (unit and number % 1):
        raise InputError(f"`step`: expected a number, or {', '.join(UNITS)}, or as 2 weeks; got {shown(given)}")
    if dates and unit is None:
        raise InputError(f"`step={given!r}`: the times are dates, so give one of {', '.join(UNITS)}, or as 2 weeks")
    if unit is not None and not dates:
        raise InputError(f"`step={given!r}`: the times are numbers, so give a number")
    return Step(number, unit)


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


# ---------------------------------------------------------------------- text → times


@dataclass(frozen=True)
class Form:
    """One way to write a time: an example, the pattern of a cell, and how Polars reads it."""

    example: str
    pattern: str
    format: str

    def fits(self, cells: list[str]) -> bool:
        """Whether all cells are written so."""
        return all(re.fullmatch(self.pattern, text) for text in cells)

    def read(self, text: Any) -> Any:
        """The time that a text is, or null."""
        pl = polars()
        if not self.format:
            return text.cast(pl.Int64, strict=False) if self.pattern == INTEGER else parsed_number(text).fill_nan(None)
        if "%q" in self.format:  # a quarter is where it begins
            year, quarter = text.str.extract(r"(\d{4})", 1), text.str.extract(r"[Qq]([1-4])", 1).cast(pl.Int64)
            fits = text.str.contains(f"^(?:{self.pattern})$")
            month = (quarter * 3 - 2).cast(pl.String)
            return _date(pl.when(fits).then(year + "-" + month + "-1"), "%Y-%m-%d")
        if "%B" in self.format:  # Sept. and Jan. are months to people
            text = text.str.replace(r"(?i)\bsept\b", "Sep").str.replace(r"([A-Za-z])\.", "${1}")
        form, rest = completed(self.format)
        return _date(text + rest, form)


def _date(text: Any, form: str) -> Any:
    """Read dates; years of another number of digits than four are mistakes."""
    pl = polars()
    zone = {"time_zone": "UTC"} if "%#z" in form or "%z" in form else {}
    time = text.str.to_datetime(form, time_unit="us", strict=False, **zone)
    return pl.when(time.dt.year().is_between(1000, 9999)).then(time)


def completed(form: str) -> tuple[str, str]:
    """A format with what a date lacks, and the text to add to each cell: months begin with their first day."""
    form = form.replace(".%f", "%.f")  # as Python writes it
    names = set(re.findall(r"%[-_0^.#]*([A-Za-z])", form.replace("%%", "")))
    rest_form, rest = "", ""
    if not names & set("sc+") and not names & set("dejFDxvu"):
        if names & set("VW"):
            rest_form, rest = " %u", " 1"
        elif names & set("mbBh"):
            rest_form, rest = " %d", " 01"
        elif names & set("Yy"):
            rest_form, rest = " %m %d", " 01 01"
    if names & set("HIkl") and "M" not in names:
        rest_form, rest = f"{rest_form} %M", f"{rest} 00"
    return form + rest_form, rest


def _forms() -> list[Form]:
    word = r"[A-Za-z]{3,9}\.?"
    dates = [
        ("2020-01-31", r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
        ("2020/01/31", r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
        ("2020.01.31", r"\d{4}\.\d{1,2}\.\d{1,2}", "%Y.%m.%d"),
        ("31.01.2020", r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
        ("31/01/2020", r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y"),
        ("31-01-2020", r"\d{1,2}-\d{1,2}-\d{4}", "%d-%m-%Y"),
        ("31 Jan 2020", rf"\d{{1,2}} {word} \d{{4}}", "%d %B %Y"),
        ("31-Jan-2020", rf"\d{{1,2}}-{word}-\d{{4}}", "%d-%B-%Y"),
        ("Jan 31, 2020", rf"{word} \d{{1,2}}, ?\d{{4}}", "%B %d, %Y"),
        ("Jan 31 2020", rf"{word} \d{{1,2}} \d{{4}}", "%B %d %Y"),
    ]
    clocks = [("", "", "")]
    for mark in " T":
        clocks.append((f"{mark}13:45", rf"{mark}\d{{1,2}}:\d\d", f"{mark}%H:%M"))
        clocks.append((f"{mark}13:45:59", rf"{mark}\d{{1,2}}:\d\d:\d\d(\.\d+)?", f"{mark}%H:%M:%S%.f"))
    clocks += [(f"{a}Z", f"{p}(Z|[-+]\\d\\d:?\\d\\d)", f"{f}%#z") for a, p, f in clocks[1:]]
    clocks.append((" 1:45 PM", r" \d{1,2}:\d\d ?[AaPp][Mm]", " %I:%M %p"))
    clocks.append((" 1:45:59 PM", r" \d{1,2}:\d\d:\d\d ?[AaPp][Mm]", " %I:%M:%S %p"))
    months = [
        ("2020-01", r"\d{4}-\d{1,2}", "%Y-%m"),
        ("2020/01", r"\d{4}/\d{1,2}", "%Y/%m"),
        ("01/2020", r"\d{1,2}/\d{4}", "%m/%Y"),
        ("01.2020", r"\d{1,2}\.\d{4}", "%m.%Y"),
        ("Jan 2020", rf"{word} \d{{4}}", "%B %Y"),
        ("Jan-2020", rf"{word}-\d{{4}}", "%B-%Y"),
        ("2020-W05", r"\d{4}-W\d\d", "%G-W%V"),
        ("2020W05", r"\d{4}W\d\d", "%GW%V"),
        ("2020Q1", r"\d{4}[- ]?[Qq][1-4]", "%Y%q"),
        ("Q1 2020", r"[Qq][1-4][- /]?\d{4}", "%q %Y"),
    ]
    found = [Form("1", INTEGER, ""), Form("1.5", NUMBER, "")]
    found += [Form(a + x, p + y, f + z) for a, p, f in dates for x, y, z in clocks]
    return found + [Form(*parts) for parts in months]


FORMS = _forms()


def forms_of(cells: list[str]) -> list[Form]:
    """The forms that may be meant, given the first cells; none if no cell has a known one."""
    fits = [sum(re.fullmatch(form.pattern, text) is not None for text in cells) for form in FORMS]
    best = max(fits, default=0)
    if not best:
        return []
    chosen = FORMS[fits.index(best)]
    if not chosen.format:
        return FORMS[:2]
    if re.match(r"%d([/-])%m\1%Y", chosen.format):  # month first is as common
        swapped = chosen.format[3:5] + chosen.format[2] + chosen.format[:2] + chosen.format[5:]
        mark = chosen.format[2]
        other = Form(f"01{mark}31{mark}2020{chosen.example[10:]}", chosen.pattern, swapped)
        return [chosen, other]
    return [chosen]


def hint(text: str) -> str:
    """What to try with a cell that has no known form."""
    if re.fullmatch(r"\d{1,2}[./-]\d{1,2}[./-]\d\d", text):
        return "years of two digits have several readings; say which: `time_format='%d.%m.%y'`"
    if re.fullmatch(r"[A-Za-z]{3,9}[- ]\d\d", text):
        return "it may be a month or a day; say which: `time_format='%b-%y'`"
    return "say how it is written: `time_format='%d.%m.%Y %H:%M'`"
