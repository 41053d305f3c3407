"""Columns of times: numbers, or dates with a clock, in one form of writing or in several.

Text is read in the forms that its cells have; a form stands beside another if both say as much:
dates with dates, months with months, with a zone or without. Each cell that has none of them is
named, and so is one that two given formats read differently.

Dates as 01/02/2020 have two readings. If every cell has both, nothing is guessed. If some cells can
only begin with the day and others only with the month, nothing is read. If one of the two is left,
it is taken; but where it puts all the doubtful dates of a year, three or more, into one month that
the dates before do not lead up to, they may be written the other way round (05 is the day), and
this is asked.

A time with a zone is an instant (the column `time`), which orders rows and counts hours; days,
months and years are those of the clock that the cell shows, or of the clock in a given zone (the
column `_clock`).
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import Any

from drmdp.errors import InputError, unexpected
from drmdp.estimation.log.findings import Finding
from drmdp.estimation.log.order import OrderFacts, Ordering
from drmdp.estimation.log.source import guarded, pl
from drmdp.estimation.log.table import LogTable, cell_text

SAMPLE = 200
"""Cells that decide on the form, in a table that is taken for tidy."""
SHAPES = 500
"""Ways to write a time that are looked at."""
INTEGER = r"[-+]?\d+"
NUMBER = r"[-+]?((0|[1-9]\d*)?\.\d+|\d+\.?)([eE][-+]?\d+)?"
SLASHED = re.compile(r"%([dm])([/-])%([dm])\2%Y")
EXCEL = "excel"
EXAMPLES = {EXCEL: "43861 (days since 1899-12-30)"}
ORIGIN = datetime.datetime(1899, 12, 30)
"""Day 0 of Excel; right from day 61 on, for Excel has a 29 February 1900."""


@dataclass(frozen=True)
class Form:
    """One way to write a time: an example, the pattern of a cell, and how Polars reads it."""

    example: str
    pattern: str
    format: str

    def fits(self, text: str) -> bool:
        """Whether a cell is written so."""
        return re.fullmatch(self.pattern, text) is not None

    @property
    def says(self) -> tuple[str, bool]:
        """Its precision: the finest of day, week, quarter and month, and whether there is a
        zone.
        """
        fine = next((mark for mark in "dVq" if f"%{mark}" in self.format), "m")
        return fine, "z" in re.findall(r"%#?(\w)", self.format)

    def other(self) -> Form | None:
        """The form with the day and the month swapped, if cells may have both readings."""
        if not SLASHED.match(self.format):
            return None
        day, mark = self.format[:2], self.format[2]
        first = f"01{mark}31" if day == "%d" else f"31{mark}01"
        swapped = f"{self.format[3:5]}{mark}{day}{self.format[5:]}"
        return Form(first + self.example[5:], self.pattern, swapped)

    def read(self, text: Any) -> Any:
        """The time that a text is, or null; in UTC if there is a zone."""
        if not self.format:
            if self.pattern == INTEGER:
                return text.cast(pl.Int64, strict=False)
            return text.cast(pl.Float64, strict=False).fill_nan(None)
        if self.format == EXCEL:
            days = text.cast(pl.Float64, strict=False)
            days = pl.when(days.is_between(61, 2_958_465)).then(days)
            since = (days * 86_400e6).round().cast(pl.Int64).cast(pl.Duration("us"))
            return pl.lit(ORIGIN, pl.Datetime("us")) + since
        if "%q" in self.format:  # a quarter is where it begins
            year = text.str.extract(r"(\d{4})", 1)
            quarter = text.str.extract(r"[Qq]([1-4])", 1).cast(pl.Int64)
            fits = text.str.contains(f"^(?:{self.pattern})$")
            month = (quarter * 3 - 2).cast(pl.String)
            return _date(pl.when(fits).then(year + "-" + month + "-1"), "%Y-%m-%d")
        if "%B" in self.format:  # Sept. and Jan. are months to people
            text = text.str.replace(r"(?i)\bsept\b", "Sep").str.replace(r"([A-Za-z])\.", "${1}")
        form, rest = completed(self.format)
        return _date(text + rest, form)


def _date(text: Any, form: str) -> Any:
    """Read dates; years of another number of digits than four are mistakes."""
    zone = {"time_zone": "UTC"} if "%#z" in form or "%z" in form else {}
    time = text.str.to_datetime(form, time_unit="us", strict=False, **zone)
    time = time.dt.replace_time_zone(None)
    return pl.when(time.dt.year().is_between(1000, 9999)).then(time)


def _offset(text: Any) -> Any:
    """The offset of a cell's clock from UTC."""
    sign, hours, minutes = (text.str.extract(r"^.*([-+])(\d\d):?(\d\d)", k) for k in (1, 2, 3))
    size = hours.cast(pl.Int64) * 60 + minutes.cast(pl.Int64)
    ahead = pl.when(sign == "-").then(-size).otherwise(size)
    return pl.duration(minutes=pl.when(~text.str.contains("Z$")).then(ahead).fill_null(0))


def completed(form: str) -> tuple[str, str]:
    """A format with what a date lacks, and the text to add to each cell: months begin with their
    first day.
    """
    form = form.replace(".%f", "%.f")  # as Python writes it
    names = set(re.findall(r"%[-_0^.#]*([A-Za-z])", form.replace("%%", "")))
    coarse = (("VW", " %u", " 1"), ("mbBh", " %d", " 01"), ("Yy", " %m %d", " 01 01"), ("", "", ""))
    lacks = not names & set("sc+dejFDxvu")
    fits = ((more, text) for marks, more, text in coarse if not marks or names & set(marks))
    rest_form, rest = next(fits) if lacks else ("", "")
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
    minutes = ("13:45", r"\d{1,2}:\d\d", "%H:%M")
    seconds = ("13:45:59", r"\d{1,2}:\d\d:\d\d(\.\d+)?", "%H:%M:%S%.f")
    clocks = [("", "", "")]
    clocks += [(m + a, m + p, m + f) for m in " T" for a, p, f in (minutes, seconds)]
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
    forms = [Form("1", INTEGER, ""), Form("1.5", NUMBER, "")]
    forms += [Form(a + x, p + y, f + z) for a, p, f in dates for x, y, z in clocks]
    return forms + [Form(*parts) for parts in months]


FORMS = _forms()


def forms_of(cells: dict[str, int]) -> list[Form]:
    """The forms that may be meant, given cells and how often each way of writing occurs; none if no
    cell has a known one.

    Both kinds of numbers, or forms of dates that say as much as the most frequent one.
    """
    remaining, forms, known = dict(cells), list[Form](), FORMS
    while remaining:
        often = [sum(n for text, n in remaining.items() if form.fits(text)) for form in known]
        if not max(often):
            break
        best = known[often.index(max(often))]
        known = [form for form in FORMS if form.format and form.says == best.says]
        if not best.format:
            return FORMS[:2]
        forms.append(best)
        remaining = {text: n for text, n in remaining.items() if not best.fits(text)}
    return forms


def hint(text: str) -> str:
    """A cure for a cell that has no known form."""
    if re.fullmatch(r"\d{1,2}[./-]\d{1,2}[./-]\d\d", text):
        return "years of two digits have several readings; say which: `time_format='%d.%m.%y'`"
    if re.fullmatch(r"[A-Za-z]{3,9}[- ]\d\d", text):
        return "it may be a month or a day; say which: `time_format='%b-%y'`"
    return "say how it is written: `time_format='%d.%m.%Y %H:%M'`"


# ---------------------------------------------------------------------- columns


def read_times(table: LogTable, ordering: Ordering) -> tuple[LogTable, list[Finding], OrderFacts]:
    """Make numbers or dates of the column `time`; where that fails as a whole, the table has none
    any more.
    """
    if table.columns.time is None:
        return table, [], OrderFacts()
    dtype = guarded(table.raw.collect_schema, table.name)["time"]
    formats = formats_of(ordering)
    plain = dtype.is_integer() or (dtype.is_numeric() and formats == (EXCEL,))
    if dtype in (pl.String, pl.Categorical) or (formats and plain):
        return _read_text(table, cell_text("time", dtype, table.tidy), formats, ordering.zone)
    column = f"column {table.wanted['time']!r}"
    if formats:
        raise InputError(f"`time_format={formats[0]!r}`: {column} is no text, but {dtype}")
    time, clock = pl.col("time"), None
    if dtype.is_float() or dtype.is_decimal():
        time = time.cast(pl.Float64)
        time = pl.when(time.is_finite()).then(time)
    elif dtype.is_integer():
        time = time.cast(pl.Int64)
    elif dtype in (pl.Time, pl.Duration):
        time = time.cast(pl.Duration("us")).dt.total_microseconds() / 1e6
    elif dtype == pl.Date:
        time = time.cast(pl.Datetime("us"))
    elif dtype == pl.Datetime and dtype.time_zone is not None:
        clock = time.dt.replace_time_zone(None)
        time = time.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif dtype not in (pl.Datetime, pl.Null):
        where = f"{table.name}: {column} (time)"
        raise InputError(f"{where} must hold numbers or dates, got {dtype}")
    clocks = _clocks(table, time, clock, ordering.zone)
    return table.with_columns(time=time, **clocks), [], OrderFacts()


def formats_of(ordering: Ordering) -> tuple[str, ...]:
    """The formats that were given."""
    formats = ordering.time_format
    return (formats,) if isinstance(formats, str) else tuple(formats or ())


def _clocks(table: LogTable, time: Any, clock: Any, zone: str | None) -> dict[str, Any]:
    """The column of clocks, if times have a zone."""
    if zone is None:
        return {} if clock is None else {"_clock": clock}
    if clock is None:
        what = f"the times in column {table.wanted['time']!r} have no zone"
        raise InputError(f"`zone={zone!r}`: {what}")
    try:
        pl.Series([ORIGIN]).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    except Exception:  # whatever Polars raises for it
        raise unexpected("`zone`", "a name such as 'Europe/Zurich'", zone) from None
    there = time.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return {"_clock": there.dt.replace_time_zone(None)}


def _read_text(
    table: LogTable, text: Any, formats: tuple[str, ...], zone: str | None
) -> tuple[LogTable, list[Finding], OrderFacts]:
    filled = table.raw.select("_row", time=cell_text("time", None, False)).drop_nulls()
    cells = _shapes(table, filled)
    if not cells:
        return table.with_columns(time=pl.lit(None, dtype=pl.Int64)), [], OrderFacts()
    forms = [Form(EXAMPLES.get(pattern, pattern), "", pattern) for pattern in formats]
    forms = forms or forms_of(cells)
    if len({form.says[1] for form in forms if form.format}) > 1:
        raise InputError("`time_format`: formats with a zone and without do not go together")
    findings, swapped = list[Finding](), False
    if not forms:
        findings = [_first(table, filled, "{value} is no number and no date that is known")]
    elif not forms[0].format:
        forms = [_number(table, filled, cells)]
    elif len(formats) < 2:
        for k, form in enumerate(forms):
            if form.other() is not None:
                forms[k], odd = _day_or_month(table, filled, form, bool(formats))
                findings += odd
        swapped = not formats and any(form.other() for form in forms)
    if any(finding.refused for finding in findings):
        wanted = {role: column for role, column in table.wanted.items() if role != "time"}
        timeless = replace(table, wanted=wanted, columns=replace(table.columns, time=None))
        return timeless, findings, OrderFacts()
    readings = [form.read(text) for form in forms]
    time = pl.coalesce(readings)
    zoned = any(form.says[1] for form in forms)
    bad = time.is_null() & text.is_not_null()
    if len(formats) > 1:
        bad |= pl.any_horizontal((reading != time).fill_null(False) for reading in readings)
    clocks = _clocks(table, time, time + _offset(text) if zoned else None, zone)
    what, like = "times" if forms[0].format else "numbers", [form.example for form in forms]
    facts = OrderFacts(form=f"{what} like {' or '.join(like)}", swapped=swapped, forms=len(forms))
    return table.with_columns(time=time, _bad_time=bad, **clocks), findings, facts


def _shapes(table: LogTable, filled: Any) -> dict[str, int]:
    """An example of each way of writing, and how often it occurs; in a tidy table, among the first
    rows.
    """
    digits = pl.col("time").str.replace_all(r"\d", "0")
    if table.tidy:
        column = table.raw.select("_row", time=cell_text("time", None, False))
        sample = table.query(column.head(SAMPLE)).drop_nulls()
        filled = sample.lazy() if sample.height else filled.head(SAMPLE)
    shapes = filled.group_by(digits.alias("shape")).agg(pl.col("time").min(), pl.len())
    shapes = shapes.sort("len", "time", descending=[True, False]).head(SHAPES)
    return dict(table.query(shapes.select("time", "len")).rows())


def _first(table: LogTable, filled: Any, what: str, cure: str | None = None) -> Finding:
    """A finding about the column as a whole, at its first cell; the cure is a hint on this cell."""
    row, cell = table.query(filled.head(1)).row(0)
    return table.finding("time", 1, [(int(row), cell)], "time", what, cure=cure or hint(cell))


def _number(table: LogTable, filled: Any, cells: dict[str, int]) -> Form:
    """Whole numbers, or any: the form that fewer cells contradict."""
    if table.tidy and all(FORMS[0].fits(text) for text in cells):
        return FORMS[0]
    whole, real = (form.read(pl.col("time")).is_null().sum() for form in FORMS[:2])
    return FORMS[int(table.query(filled.select(real < whole)).item())]


# ---------------------------------------------------------------------- day or month first


def _day_or_month(
    table: LogTable, filled: Any, form: Form, stated: bool
) -> tuple[Form, list[Finding]]:
    mark, other = form.format[2], form.other() or form
    pattern = rf"^(\d{{1,2}}){mark}(\d{{1,2}}){mark}(\d{{4}})"
    one, two, year = (pl.col("time").str.extract(pattern, k).cast(pl.Int32) for k in (1, 2, 3))
    dates = filled.select("_row", one=one, two=two, year=year).drop_nulls()
    dates = table.query(dates.group_by("one", "two", "year").agg(pl.len(), pl.col("_row").min()))
    if stated:
        return form, _one_month(table, dates, form, True)
    low = [pl.col(name).is_between(1, 12) for name in ("one", "two")]
    only = {"day": dates.filter(~low[0] & low[1]), "month": dates.filter(low[0] & ~low[1])}
    often = {name: int(group["len"].sum()) for name, group in only.items()}
    if all(often.values()):
        only_with = "{{value}} can only begin with the {}, as {:,} cells do"
        rows = {name: int(group["_row"].min()) for name, group in only.items()}
        what = {row: only_with.format(name, often[name]) for name, row in rows.items()}
        return form, [_both(table, filled, what, [form, other])]
    if not any(often.values()):
        formats = " or ".join(f"`time_format={group.format!r}`" for group in (form, other))
        doubt = "{value} may begin with the day or the month"
        return form, [_first(table, filled, doubt, f"say which: {formats}")]
    chosen = form if bool(often["day"]) == form.format.startswith("%d") else other
    return chosen, _one_month(table, dates, chosen, False)


def _both(table: LogTable, filled: Any, what: dict[int, str], forms: list[Form]) -> Finding:
    """Cells of both orders in one column."""
    cells = table.query(filled.filter(pl.col("_row").is_in(list(what))).sort("_row")).rows()
    said = [what[row].replace("{value}", repr(cell)) for row, cell in cells]
    places = table.places([([row], said[k], "time", cell) for k, (row, cell) in enumerate(cells)])
    formats = ", ".join(repr(form.format) for form in forms)
    cure = f"`time_format=({formats})` reads both, where no cell has two readings"
    cure += "; else write all dates alike"
    return Finding("time", True, len(places), "orders", places, cure)


def _one_month(table: LogTable, dates: Any, form: Form, stated: bool) -> list[Finding]:
    """Years whose doubtful dates all lie in one month that nothing leads up to, as a form reads
    them.
    """
    day, month = ("one", "two") if form.format.startswith("%d") else ("two", "one")
    months = set(dates.select("year", month).rows())
    doubtful = dates.filter(pl.all_horizontal(pl.col("one", "two").is_between(1, 12)))
    sure = set(dates.filter(pl.col(day) > 12).select("year", month).rows())
    odd = []
    for (year,), group in doubtful.group_by("year"):
        at = group[month][0]
        before = (year, at - 1) if at > 1 else (year - 1, 12)
        alone = group[month].n_unique() == 1 and group[day].n_unique() >= 3
        if alone and (year, at) not in sure and before not in months:
            odd.append(group)
    if not odd:
        return []
    doubts = pl.concat(odd)
    row, n, days = int(doubts["_row"].min()), int(doubts["len"].sum()), doubts[day].n_unique()
    cell = table.query(table.raw.filter(pl.col("_row") == row).select("time")).item()
    first, second = ("day", "month") if day == "one" else ("month", "day")
    when = " to ".join(map(str, dict.fromkeys((doubts["year"].min(), doubts["year"].max()))))
    what = (
        f"if {{value}} begins with the {first}, the {n:,} such dates of {when} lie in one month of "
        f"each year; if with the {second}, they are one day of {days} months"
    )
    cure = f"if they begin with the {second}, write them as 2020-01-31"
    say = f"; if all dates begin with the {first}: `time_format={form.format!r}`"
    cure += "" if stated else say
    return [table.finding("time", n, [(row, cell)], "time", what, cure=cure, refused=not stated)]
