"""A table of transitions, whatever it comes in, as a lazy Polars frame with columns of fixed names.

=========== ======================================================================================================
role        meaning
=========== ======================================================================================================
state       where a step begins; a string or an integer, as all labels
action      what was done
next_state  where the step ends; without it, the state of the next row of the same episode
episode     what belongs together: one patient, one machine, one run
time        order within an episode, and how far apart rows are; without it, rows are in order. Several columns, as "year,month",
            are joined by hyphens
cost        of the step (or `reward`)
weight      how much a row counts; 1 by default
stage       a number that rises from row to row, such as an age: where a model of its own begins
=========== ======================================================================================================

Types follow from roles. Numbers are read from text as from numbers; a cell that is none is flagged, not lost. Blanks
around labels are removed and flagged. Labels become integers only if every one is written like an integer: "007" stays
"007". Empty cells, blanks alone and NaN are missing; a row that is empty in every column used is no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from drmdp.core.text import count
from drmdp.errors import InputError
from drmdp.estimate import numbers
from drmdp.estimate.findings import LIMIT, Finding, Place
from drmdp.estimate.opening import open_source, separator_hint
from drmdp.estimate.source import Reading, Source, guarded, header_hint, polars, used_columns
from drmdp.estimate.times import PERIODS

LABELS = ("state", "action", "next_state", "episode", "unit")
NUMBERS = ("cost", "reward", "weight", "stage")


@dataclass(frozen=True)
class Columns:
    """Names of the columns by role."""

    state: str = "state"
    action: str = "action"
    next_state: str | None = None  # "next_state" if the table has it
    episode: str | None = None
    time: str | None = None
    cost: str | None = None
    reward: str | None = None
    weight: str | None = None
    stage: str | None = None


class UntidyError(Exception):
    """A table that was taken for tidy is not: read it with more care."""


@dataclass(frozen=True)
class Table:
    """A lazy frame, and where it came from.

    It has the column `_row`, one per role, among them `unit` (what makes a kernel), and flags: `_bad_cost` where a cell
    is there but means nothing, `_blank_state` where there are blanks around a label; `_was_state` are labels before they
    were renamed.
    """

    frame: Any
    raw: Any  # the same rows and roles, with cells as they were given
    wanted: dict[str, str]  # name of the column of each role
    columns: Columns
    source: Source
    reading: Reading
    rename: Mapping[Any, Any]
    told: tuple[str, ...] = ()  # what was assumed of cells
    findings: tuple[Finding, ...] = ()  # columns of numbers with two readings
    tidy: bool = True  # whether it is taken for granted that each text means something and has no blanks around it

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.source.name

    @property
    def roles(self) -> list[str]:
        """All there are, without `_row`."""
        return list(self.wanted)

    def collect(self, *frames: Any) -> list[Any]:
        """Carry out queries in one go, in pieces."""
        return self.source.collect(*frames)

    def places(self, found: Sequence[tuple[list[int], str, str | None, Any]]) -> tuple[Place, ...]:
        """Name places given by rows, counted from 0, with what there is, in which role, and the value."""
        lines = iter(self.source.lines([row for rows, *_ in found for row in rows]))
        return tuple(
            Place(
                what,
                tuple(next(lines) for _ in rows),
                None if role is None else self.wanted[role],
                _plain(value),
                self.source.word,
            )
            for rows, what, role, value in found
        )

    def cells(self, condition: Any, role: str, frame: Any = None) -> list[tuple[int, Any]]:
        """Rows and cells as given, of the first places where a condition holds."""
        pl = polars()
        chosen = (self.frame if frame is None else frame).filter(condition).select("_row").sort("_row").head(LIMIT)
        rows = self.collect(chosen)[0]["_row"].to_list()
        shown = self.collect(self.raw.filter(pl.col("_row").is_in(rows)).select("_row", role).sort("_row"))[0]
        return [(int(row), value) for row, value in shown.rows()]

    def finding(
        self, kind: str, count: int, cells: list[tuple[int, Any]], role: str, what: str, **more: Any
    ) -> Finding:
        """Describe cells of one column; `what` may hold {value}."""
        places = self.places([([row], what.replace("{value}", _quoted(value)), role, value) for row, value in cells])
        return Finding(kind, more.pop("refused", True), count, "cells", places, **more)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


def _quoted(value: Any) -> str:
    """A cell as it was given, blanks and all."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def open_table(
    source: Any,
    columns: Columns,
    unit: str | None,
    reading: Reading | None = None,
    rename: Mapping[Any, Any] | None = None,
    tidy: bool = False,
) -> Table:
    """Open a frame or a file and give its columns their fixed names and types; nothing is read but the header."""
    reading = reading or Reading()
    numbers.writing(reading)
    times = (columns.time or "").split(",")  # a time may have several columns
    needed = {*vars(replace(columns, time=None)).values(), *(part.strip() for part in times), unit} - {None, ""}
    opened = open_source(source, reading, needed)
    if columns.next_state is None and "next_state" in opened.header:
        columns = replace(columns, next_state="next_state")
    wanted = {role: column for role, column in {**vars(columns), "unit": unit}.items() if column is not None}
    _check_header(opened, wanted)
    cells = {role: _cells(opened, role, column) for role, column in wanted.items()}
    names = [part for role, column in wanted.items() for part in _parts(opened, role, column)]
    raw, told = used_columns(opened, cells, names, reading)
    return typed(Table(raw, raw, wanted, columns, opened, reading, rename or {}, told), tidy)


def typed(table: Table, tidy: bool) -> Table:
    """Give the columns their types."""
    pl = polars()
    schema = guarded(table.raw.collect_schema, table.name)
    exprs: list[Any] = []
    for role in table.wanted:
        where = f"{table.name}: column {table.wanted[role]!r} ({role})"
        if role in NUMBERS and schema[role] in (pl.String, pl.Categorical):
            table, found = _read_numbers(table, role, cell_text(role, schema[role], tidy), tidy)
            exprs += found
        elif role in NUMBERS:
            exprs += _number(role, schema[role], where)
        elif role in LABELS:
            exprs += _label(role, schema[role], table.rename if role != "episode" else {}, tidy, where)
    frame = table.raw
    if not tidy:
        frame = frame.filter(pl.any_horizontal(_there(role, schema[role]) for role in table.wanted))
    return replace(table, frame=frame.with_columns(exprs), tidy=tidy)


def is_tidy(labels: Any) -> bool:
    """Whether a series of distinct labels has no null, no blanks around texts and no empty text."""
    if labels.null_count():
        return False
    return labels.dtype != polars().String or not ((labels.str.strip_chars() != labels) | (labels == "")).any()


def cell_text(role: str, dtype: Any, tidy: bool) -> Any:
    """Cells of a column of text; null if there is nothing but blanks."""
    pl = polars()
    text = pl.col(role) if dtype == pl.String else pl.col(role).cast(pl.String)
    bare = text.str.strip_chars()
    return text if tidy else pl.when(bare != "").then(bare)


def spoken(role: str) -> str:
    """The name of a role's parameter."""
    return "by" if role == "unit" else role


def _parts(opened: Source, role: str, column: str) -> list[str]:
    """The columns of a role: a time may have several, as "year,month"."""
    several = role == "time" and column not in opened.header
    return [part.strip() for part in column.split(",")] if several else [column]


def _cells(opened: Source, role: str, column: str) -> Any:
    """The cells of a role; several columns make 2020-1-31 of 2020, 1 and 31."""
    pl = polars()
    parts = _parts(opened, role, column)
    if len(parts) == 1:
        return pl.col(parts[0]).alias(role)
    schema = opened.frame.collect_schema()
    texts = [pl.col(part).cast(pl.Int64, strict=False) if schema[part].is_float() else pl.col(part) for part in parts]
    bare = [text.cast(pl.String).str.strip_chars() for text in texts]
    return pl.concat_str([pl.when(text != "").then(text) for text in bare], separator="-").alias(role)


def _check_header(opened: Source, wanted: dict[str, str]) -> None:
    """All columns that are not there, and those that are there twice."""
    header = opened.header
    parts = [(role, part) for role, column in wanted.items() for part in _parts(opened, role, column)]
    missing = [(role, part) for role, part in parts if part not in header]
    if missing:
        folded = {name.strip().casefold(): name for name in header}
        texts = []
        for role, column in missing:
            near = folded.get(column.strip().casefold()) or next(iter(get_close_matches(column, header, 1)), None)
            near = f"time:{column}" if role == "unit" and column in PERIODS and "time" in wanted else near
            meant = f" (did you mean {near!r}?)" if near is not None and near not in wanted.values() else ""
            texts.append(f"{column!r} for `{spoken(role)}`{meant}")
        known = f"there are: {shown_names(header)}{separator_hint(header)}{header_hint(opened, [part for _, part in missing])}"
        raise InputError("; ".join((f"{opened.name}: no column {', '.join(texts)}; {known}", *opened.told)))
    for _, column in parts:
        if header.count(column) > 1:
            raise InputError(f"{opened.name}: {header.count(column)} columns are called {column!r}")


def _there(role: str, dtype: Any) -> Any:
    pl = polars()
    column = pl.col(role)
    if dtype == pl.String:
        return column.str.strip_chars() != ""
    return column.is_not_nan() if dtype.is_float() else column.is_not_null()


def _read_numbers(table: Table, role: str, text: Any, tidy: bool) -> tuple[Table, list[Any]]:
    """Numbers of a column of text, and which cells are none; with more care their unit is removed and dashes are empty."""
    pl = polars()
    how, told, findings = numbers.writing(table.reading), list(table.told), list(table.findings)
    cells = first_cells(table, role)
    if not tidy:
        units = numbers.units(cells)
        if len(units) == 1 and all(map(numbers.is_unit, *units)):
            how = replace(how, **dict(zip(("before", "after"), units.pop(), strict=True)))
        text = pl.when(~text.is_in(numbers.DASHES)).then(text)
    asked: dict[str, Any] = {}
    column = table.raw.select(text=cell_text(role, None, False))
    unsaid = table.reading.thousands is None and table.reading.decimal in (None, ",")
    if unsaid and numbers.may_be_ambiguous(numbers.bare(cells), how.decimal):
        asked |= numbers.ambiguity(how.core(pl.col("text")), how.decimal)
    if not tidy:
        asked["dashes"] = pl.col("text").is_in(numbers.DASHES).sum()
    seen = table.collect(column.select(**asked))[0].row(0, named=True) if asked else {}
    if seen.get("marked") and not seen["certain"] and (seen["largest"] or 0) <= 999:
        findings.append(_two_readings(table, role, how))
    if how.unit:
        told.append(f"column {table.wanted[role]!r}: the unit {how.unit!r} is removed")
    if seen.get("dashes"):
        told.append(f"column {table.wanted[role]!r}: a dash is an empty cell, in {count(seen['dashes'], 'row')}")
    number = how.read(text)
    exprs = [number.alias(role), (number.is_null() & text.is_not_null()).alias(f"_bad_{role}")]
    return replace(table, told=tuple(told), findings=tuple(findings)), exprs


def first_cells(table: Table, role: str) -> list[str]:
    """The first cells of a column of text, without empty ones."""
    cells = table.collect(table.raw.select(text=cell_text(role, None, False)).head(numbers.SAMPLE))[0]["text"]
    return [cell for cell in cells.drop_nulls().to_list() if cell not in numbers.DASHES]


def _two_readings(table: Table, role: str, how: numbers.Writing) -> Finding:
    """A column whose marks may be those of fractions or of thousands."""
    mark = how.decimal
    other = numbers.Writing("," if mark == "." else ".", mark)
    cells = table.cells(cell_text(role, None, False).str.contains(mark, literal=True), role, table.raw)[:1]
    cell = numbers.bare([cells[0][1]])[0]
    what = (
        f"{{value}} may be {how.value(cell):.12g} or {other.value(cell):.12g}: every {mark!r} has three digits after it"
    )
    point, group = "`decimal='.'`", f"`thousands={mark!r}`"
    first, second = (point, group) if mark == "." else ("`thousands='.'`", f"{point} and {group}")
    cure = f"say which: {first} for the first, {second} for the second"
    return table.finding("number", 1, cells, role, f"{what}, and no cell without it is above 999", cure=cure)


def _number(role: str, dtype: Any, where: str) -> list[Any]:
    pl = polars()
    if not (dtype.is_numeric() or dtype in (pl.Null, pl.Boolean)):
        raise InputError(f"{where} must hold numbers, got {dtype}")
    return [pl.col(role).cast(pl.Float64)]


def _label(role: str, dtype: Any, rename: Mapping[Any, Any], tidy: bool, where: str) -> list[Any]:
    """Make labels integers, floats or stripped strings."""
    pl = polars()
    column = pl.col(role)
    flag = []
    if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
        raise InputError(f"{where}: labels are strings or integers, got {dtype}")
    if dtype == pl.Boolean or dtype.is_integer():
        label = column.cast(pl.Int64)
    elif dtype.is_float():
        label = column.fill_nan(None)
    else:
        label = cell_text(role, dtype, tidy)
        flag = [(label != column.cast(pl.String)).alias(f"_blank_{role}")]
    if not rename:
        return [label.alias(role), *flag]
    if not flag:
        whole = label.cast(pl.Int64, strict=False)
        label = pl.when(whole == label).then(whole.cast(pl.String)).otherwise(label.cast(pl.String))
    new = label.replace({str(old): str(new) for old, new in rename.items()})
    return [new.alias(role), label.alias(f"_was_{role}"), *flag]


def shown_names(names: Any) -> str:
    """A few names, for messages."""
    some = [str(name) for name in names]
    return ", ".join(some[:10]) + (", …" if len(some) > 10 else "")
