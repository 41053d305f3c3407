"""What a column of times says: numbers, or dates with a clock, in one form of writing or in several.

Text is read in the forms that its cells have; a form stands beside another if both say as much: dates with dates, months with
months, with a zone or without. Each cell that has none of them is named, and so is one that two given formats read differently.

Dates as 01/02/2020 have two readings. If every cell has both, nothing is guessed. If some cells can only begin with the day and
others only with the month, nothing is read. If one of the two is left, it is taken; but where it puts all the doubtful dates of a
year, three or more, into one month that the dates before do not lead up to, they may be written the other way round (05 is the
day), and this is asked.

A time with a zone is an instant (the column `time`), which orders rows and counts hours; days, months and years are those of the
clock that the cell shows, or of the clock in a given zone (the column `_clock`).
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import Any

from drmdp.errors import InputError, shown
from drmdp.estimate.findings import Finding
from drmdp.estimate.order import Facts, Ordering
from drmdp.estimate.source import guarded, polars
from drmdp.estimate.table import Table, cell_text

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
        """How much it says: the finest of day, week, quarter and month, and whether there is a zone."""
        fine = next((mark for mark in "dVq" if f"%{mark}" in self.format), "m")
        return fine, "z" in re.findall(r"%#?(\w)", self.format)

    def other(self) -> Form | None:
        """The form with the day and the month swapped, if cells may have both readings."""
        if not SLASHED.match(self.format):
            return None
        day, mark = self.format[:2], self.format[2]
        first = f"01{mark}31" if day == "%d" else f"31{mark}01"
        return Form(first + self.example[5:], self.pattern, f"{self.format[3:5]}{mark}{day}{self.format[5:]}")

    def read(self, text: Any) -> Any:
        """The time that a text is, or null; in UTC if there is a zone."""
        pl = polars()
        if not self.format:
            return (
                text.cast(pl.Int64, strict=False)
                if self.pattern == INTEGER
                else text.cast(pl.Float64, strict=False).fill_nan(None)
            )
        if self.format == EXCEL:
            days = text.cast(pl.Float64, strict=False)
            days = pl.when(days.is_between(61, 2_958_465)).then(days)
            return pl.lit(ORIGIN, pl.Datetime("us")) + (days * 86_400e6).round().cast(pl.Int64).cast(pl.Duration("us"))
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
    time = text.str.to_datetime(form, time_unit="us", strict=False, **zone).dt.replace_time_zone(None)
    return pl.when(time.dt.year().is_between(1000, 9999)).then(time)


def _offset(text: Any) -> Any:
    """How far the clock of a cell is ahead of UTC."""
    pl = polars()
    sign, hours, minutes = (text.str.extract(r"^.*([-+])(\d\d):?(\d\d)", k) for k in (1, 2, 3))
    size = hours.cast(pl.Int64) * 60 + minutes.cast(pl.Int64)
    ahead = pl.when(sign == "-").then(-size).otherwise(size)
    return pl.duration(minutes=pl.when(~text.str.contains("Z$")).then(ahead).fill_null(0))


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


def forms_of(cells: dict[str, int]) -> list[Form]:
    """The forms that may be meant, given cells and how often each way of writing occurs; none if no cell has a known one.

    Both kinds of numbers, or forms of dates that say as much as the most frequent one.
    """
    left, found = dict(cells), list[Form]()
    while left:
        known = [form for form in FORMS if not found or (form.format and form.says == found[0].says)]
        often = [sum(n for text, n in left.items() if form.fits(text)) for form in known]
        if not max(often):
            break
        best = known[often.index(max(often))]
        if not best.format:
            return FORMS[:2]
        found.append(best)
        left = {text: n for text, n in left.items() if not best.fits(text)}
    return found


def hint(text: str) -> str:
    """What to try with a cell that has no known form."""
    if re.fullmatch(r"\d{1,2}[./-]\d{1,2}[./-]\d\d", text):
        return "years of two digits have several readings; say which: `time_format='%d.%m.%y'`"
    if re.fullmatch(r"[A-Za-z]{3,9}[- ]\d\d", text):
        return "it may be a month or a day; say which: `time_format='%b-%y'`"
    return "say how it is written: `time_format='%d.%m.%Y %H:%M'`"


# ---------------------------------------------------------------------- columns


def read_times(table: Table, ordering: Ordering) -> tuple[Table, list[Finding], Facts]:
    """Make numbers or dates of the column `time`; where that fails as a whole, the table has none any more."""
    pl = polars()
    if table.columns.time is None:
        return table, [], Facts()
    dtype = guarded(table.raw.collect_schema, table.name)["time"]
    formats = formats_of(ordering)
    plain = dtype.is_integer() or (dtype.is_numeric() and formats == (EXCEL,))
    if dtype in (pl.String, pl.Categorical) or (formats and plain):
        return _read_text(table, cell_text("time", dtype, table.tidy), formats, ordering.zone)
    if formats:
        raise InputError(f"`time_format={formats[0]!r}`: column {table.wanted['time']!r} is no text, but {dtype}")
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
        time, clock = time.dt.convert_time_zone("UTC").dt.replace_time_zone(None), time.dt.replace_time_zone(None)
    elif dtype not in (pl.Datetime, pl.Null):
        where = f"{table.name}: column {table.wanted['time']!r} (time)"
        raise InputError(f"{where} must hold numbers or dates, got {dtype}")
    clocks = _clocks(table, time, clock, ordering.zone)
    return replace(table, frame=table.frame.with_columns(time=time, **clocks)), [], Facts()


def formats_of(ordering: Ordering) -> tuple[str, ...]:
    """The formats that were given."""
    given = ordering.time_format
    return (given,) if isinstance(given, str) else tuple(given or ())


def _clocks(table: Table, time: Any, clock: Any, zone: str | None) -> dict[str, Any]:
    """The column of clocks, if times have a zone."""
    if zone is None:
        return {} if clock is None else {"_clock": clock}
    if clock is None:
        raise InputError(f"`zone={zone!r}`: the times in column {table.wanted['time']!r} have no zone")
    try:
        polars().Series([ORIGIN]).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    except Exception:  # whatever Polars raises for it
        raise InputError(f"`zone`: expected a name such as 'Europe/Zurich', got {shown(zone)}") from None
    return {"_clock": time.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)}


def _read_text(
    table: Table, text: Any, formats: tuple[str, ...], zone: str | None
) -> tuple[Table, list[Finding], Facts]:
    pl = polars()
    filled = table.raw.select("_row", time=cell_text("time", None, False)).filter(pl.col("time").is_not_null())
    cells = _shapes(table, filled)
    if not cells:
        return replace(table, frame=table.frame.with_columns(time=pl.lit(None, dtype=pl.Int64))), [], Facts()
    forms = [Form(EXAMPLES.get(given, given), "", given) for given in formats] or forms_of(cells)
    if len({form.says[1] for form in forms if form.format}) > 1:
        raise InputError("`time_format`: formats with a zone and without do not go together")
    findings = list[Finding]()
    swapped = False
    if not forms:
        findings = [_first(table, filled, "{value} is no number and no date that is known", hint)]
    elif not forms[0].format:
        forms = [_number(table, filled, cells)]
    elif len(formats) < 2:
        forms, findings = _decided(table, filled, forms, bool(formats))
        swapped = not formats and any(form.other() for form in forms)
    if any(finding.refused for finding in findings):
        return _timeless(table), findings, Facts()
    readings = [form.read(text) for form in forms]
    time = pl.coalesce(readings)
    zoned = any(form.says[1] for form in forms)
    bad = time.is_null() & text.is_not_null()
    if len(formats) > 1:
        bad |= pl.any_horizontal((reading != time).fill_null(False) for reading in readings)
    columns = {"time": time, "_bad_time": bad}
    columns |= _clocks(table, time, time + _offset(text) if zoned else None, zone)
    form = f"{'times' if forms[0].format else 'numbers'} like {' or '.join(form.example for form in forms)}"
    return (
        replace(table, frame=table.frame.with_columns(**columns)),
        findings,
        Facts(form=form, swapped=swapped, forms=len(forms)),
    )


def _shapes(table: Table, filled: Any) -> dict[str, int]:
    """An example of each way of writing, and how often it occurs; in a tidy table, among the first rows."""
    pl = polars()
    digits = pl.col("time").str.replace_all(r"\d", "0")
    if table.tidy:
        some = table.collect(table.raw.select("_row", time=cell_text("time", None, False)).head(SAMPLE))[0].drop_nulls()
        filled = some.lazy() if some.height else filled.head(SAMPLE)
    shapes = filled.group_by(digits.alias("shape")).agg(pl.col("time").min(), pl.len())
    return dict(
        table.collect(shapes.sort("len", "time", descending=[True, False]).head(SHAPES).select("time", "len"))[0].rows()
    )


def _first(table: Table, filled: Any, what: str, cure: Any) -> Finding:
    """A finding about the column as a whole, at its first cell."""
    row, cell = table.collect(filled.head(1))[0].row(0)
    return table.finding("time", 1, [(int(row), cell)], "time", what, cure=cure(cell))


def _number(table: Table, filled: Any, cells: dict[str, int]) -> Form:
    """Whole numbers, or any: what fewer cells contradict."""
    if table.tidy and all(FORMS[0].fits(text) for text in cells):
        return FORMS[0]
    asked = [form.read(polars().col("time")).is_null().sum().alias(str(k)) for k, form in enumerate(FORMS[:2])]
    wrong = table.collect(filled.select(asked))[0].row(0)
    return FORMS[int(wrong[1] < wrong[0])]


def _timeless(table: Table) -> Table:
    wanted = {role: column for role, column in table.wanted.items() if role != "time"}
    return replace(table, wanted=wanted, columns=replace(table.columns, time=None))


# ---------------------------------------------------------------------- day or month first


def _decided(table: Table, filled: Any, forms: list[Form], stated: bool) -> tuple[list[Form], list[Finding]]:
    """Choose between day and month first for each form that has both; what speaks against it."""
    chosen, findings = [], []
    for form in forms:
        if form.other() is not None:
            form, odd = _day_or_month(table, filled, form, stated)
            findings += odd
        chosen.append(form)
    return chosen, findings


def _day_or_month(table: Table, filled: Any, form: Form, stated: bool) -> tuple[Form, list[Finding]]:
    pl = polars()
    mark, other = form.format[2], form.other() or form
    numbers = [
        pl.col("time").str.extract(rf"^(\d{{1,2}}){mark}(\d{{1,2}}){mark}(\d{{4}})", k + 1).cast(pl.Int32)
        for k in range(3)
    ]
    parts = filled.select("_row", one=numbers[0], two=numbers[1], year=numbers[2]).drop_nulls()
    seen = table.collect(parts.group_by("one", "two", "year").agg(pl.len(), pl.col("_row").min()))[0]
    low = [pl.col(name).is_between(1, 12) for name in ("one", "two")]
    only = {"day": seen.filter(~low[0] & low[1]), "month": seen.filter(low[0] & ~low[1])}
    often = {name: int(own["len"].sum()) for name, own in only.items()}
    if stated:
        return form, _one_month(table, seen, form, True)
    if all(often.values()):
        rows = {name: int(own["_row"].min()) for name, own in only.items()}
        what = {
            row: f"{{value}} can only begin with the {name}, as {often[name]:,} cells do" for name, row in rows.items()
        }
        return form, [_both(table, filled, what, [form, other])]
    if not any(often.values()):
        formats = " or ".join(f"`time_format={own.format!r}`" for own in (form, other))
        doubt = "{value} may begin with the day or the month"
        return form, [_first(table, filled, doubt, lambda cell: f"say which: {formats}")]
    chosen = form if bool(often["day"]) == form.format.startswith("%d") else other
    return chosen, _one_month(table, seen, chosen, False)


def _both(table: Table, filled: Any, what: dict[int, str], forms: list[Form]) -> Finding:
    """Cells of both orders in one column."""
    cells = table.collect(filled.filter(polars().col("_row").is_in(list(what))).sort("_row"))[0].rows()
    places = table.places([([row], what[row].replace("{value}", repr(cell)), "time", cell) for row, cell in cells])
    formats = ", ".join(repr(form.format) for form in forms)
    cure = f"`time_format=({formats})` reads both, where no cell has two readings; else write all dates alike"
    return Finding("time", True, len(places), "orders", places, cure)


def _one_month(table: Table, seen: Any, form: Form, stated: bool) -> list[Finding]:
    """Years whose doubtful dates all lie in one month that nothing leads up to, as a form reads them."""
    pl = polars()
    day, month = ("one", "two") if form.format.startswith("%d") else ("two", "one")
    months = set(seen.select("year", month).rows())
    doubtful = seen.filter(pl.col("one").is_between(1, 12), pl.col("two").is_between(1, 12))
    sure = set(seen.filter(pl.col(day) > 12).select("year", month).rows())
    odd = []
    for (year,), own in doubtful.group_by("year"):
        at = own[month][0]
        before = (year, at - 1) if at > 1 else (year - 1, 12)
        if own[month].n_unique() == 1 and own[day].n_unique() >= 3 and (year, at) not in sure and before not in months:
            odd.append(own)
    if not odd:
        return []
    found = pl.concat(odd)
    row, n, days = int(found["_row"].min()), int(found["len"].sum()), found[day].n_unique()
    cell = table.collect(table.raw.filter(pl.col("_row") == row).select("time"))[0].item()
    first, second = ("day", "month") if day == "one" else ("month", "day")
    years = sorted(found["year"].unique().to_list())
    when = f"{years[0]}" if len(years) == 1 else f"{years[0]} to {years[-1]}"
    what = f"if {{value}} begins with the {first}, the {n:,} such dates of {when} lie in one month of each year"
    what += f"; if with the {second}, they are one day of {days} months"
    cure = f"if they begin with the {second}, write them as 2020-01-31"
    cure += "" if stated else f"; if all dates begin with the {first}: `time_format={form.format!r}`"
    return [table.finding("time", n, [(row, cell)], "time", what, cure=cure, refused=not stated)]
