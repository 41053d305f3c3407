"""A table of transitions, whatever it comes in, as a lazy Polars frame with columns of fixed names.

=========== ========================================================================================
role        meaning
=========== ========================================================================================
state       where a step begins; a string or an integer, as all labels
action      what was done
next_state  where the step ends; without it, the state of the next row of the same episode
episode     what belongs together: one patient, one machine, one run
time        order within an episode, and how far apart rows are; without it, rows are in order.
            Several columns, as "year,month",
            are joined by hyphens
cost        of the step (or `reward`)
weight      how much a row counts; 1 by default
stage       a number that rises from row to row, such as an age: where a model of its own begins
=========== ========================================================================================

Types follow from roles. Numbers are read from text as from numbers; a cell that is none is flagged,
not lost. Blanks around labels are removed and flagged. Labels become integers only if every one is
written like an integer: "007" stays "007". Empty cells, blanks alone and NaN are missing; a row
that is empty in every column used is no row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from drmdp.errors import InputError
from drmdp.estimation.log import numbers
from drmdp.estimation.log import source as sources
from drmdp.estimation.log.files import open_source, separator_hint
from drmdp.estimation.log.findings import LIMIT, Finding, Place
from drmdp.estimation.log.source import LazyTable, Reading, guarded, pl
from drmdp.estimation.log.times import PERIODS
from drmdp.ui.text import count, first_names

LABELS = ("state", "action", "next_state", "episode", "unit")
PRICES = ("cost", "reward")
NUMBERS = (*PRICES, "weight", "stage")


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
class LogTable:
    """A lazy frame, and where it came from.

    It has the column `_row`, one per role, among them `unit` (what makes a kernel), and flags:
    `_bad_cost` where a cell is there but means nothing, `_blank_state` where there are blanks
    around a label; `_unit_cost` where it is a number without the unit that most cells have;
    `_text_cost` are cells that are no number, and `_was_state` labels before they were renamed.
    """

    frame: Any
    raw: Any  # the same rows and roles, with cells as they were given
    wanted: dict[str, str]  # name of the column of each role
    columns: Columns
    source: LazyTable
    reading: Reading
    rename: Mapping[Any, Any]
    notes: tuple[str, ...] = ()  # what was assumed of cells
    findings: tuple[Finding, ...] = ()  # columns of numbers with two readings
    # whether it is taken for granted that each text means something and has no blanks around it
    tidy: bool = True

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return self.source.name

    @property
    def names(self) -> list[str]:
        """Columns of the frame."""
        return list(self.frame.collect_schema().names())

    def with_columns(self, **columns: Any) -> LogTable:
        """The same rows with more columns, or others."""
        return replace(self, frame=self.frame.with_columns(**columns))

    def filter(self, rule: Any) -> LogTable:
        """The rows for which a rule holds."""
        return replace(self, frame=self.frame.filter(rule))

    def query(self, frame: Any) -> Any:
        """Carry out a query."""
        return self.source.collect(frame)[0]

    def totals(self, frame: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Aggregates of a frame by name."""
        return dict(self.query(frame.select(**columns)).row(0, named=True)) if columns else {}

    def sample(self, hit: Any, **columns: Any) -> tuple[int, list[dict[str, Any]]]:
        """The number of rows for which a rule holds, and the first of them, with more columns."""
        return self.first_of(self.frame.with_columns(**columns, _hit=hit).filter("_hit"))

    def first_of(self, rows: Any) -> tuple[int, list[dict[str, Any]]]:
        """The number of rows, and the first of them."""
        n, first = self.source.collect(rows.select(pl.len()), rows.sort("_row").head(LIMIT))
        return int(n.item()), list(first.rows(named=True))

    def places(
        self, entries: Sequence[tuple[list[int], str, str | None, Any]]
    ) -> tuple[Place, ...]:
        """Name places given by rows, counted from 0, with what there is, in which role, and the
        value.
        """
        lines, places = iter(self.source.lines([row for rows, *_ in entries for row in rows])), []
        for rows, what, role, value in entries:
            here, column = tuple(next(lines) for _ in rows), self.wanted[role] if role else None
            value = value if isinstance(value, str | int | float | None) else str(value)
            places.append(Place(what, here, column, value, self.source.word))
        return tuple(places)

    def cells(self, condition: Any, role: str, frame: Any = None) -> list[tuple[int, Any]]:
        """Rows and cells as given, of the first places where a condition holds."""
        frame = self.frame if frame is None else frame
        chosen = frame.filter(condition).select("_row").sort("_row").head(LIMIT)
        listed = pl.col("_row").is_in(self.query(chosen)["_row"].to_list())
        shown = self.query(self.raw.filter(listed).select("_row", role).sort("_row"))
        return [(int(row), value) for row, value in shown.rows()]

    def finding(
        self, kind: str, count: int, cells: list[tuple[int, Any]], role: str, what: str, **more: Any
    ) -> Finding:
        """Describe cells of one column; `what` may hold {value}."""
        shown = ((what.replace("{value}", _quoted(value)), role, value) for _, value in cells)
        places = self.places([([row], *text) for (row, _), text in zip(cells, shown, strict=True)])
        return Finding(kind, more.pop("refused", True), count, "cells", places, **more)


def _quoted(value: Any) -> str:
    """A cell as it was given, blanks and all."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def open_table(
    source: Any, columns: Columns, unit: str | None, reading: Reading, rename: Any, tidy: bool
) -> LogTable:
    """Open a frame or a file and give its columns their fixed names and types; nothing is read but
    the header.
    """
    numbers.writing(reading)
    times = [part.strip() for part in (columns.time or "").split(",")]  # there may be several
    needed = {*vars(replace(columns, time=None)).values(), *times, unit} - {None, ""}
    opened = open_source(source, reading, needed)
    if columns.next_state is None and "next_state" in opened.header:
        columns = replace(columns, next_state="next_state")
    roles = {**vars(columns), "unit": unit}
    wanted = {role: column for role, column in roles.items() if column is not None}
    _check_header(opened, wanted)
    cells = {role: _cells(opened, role, column) for role, column in wanted.items()}
    names = [part for role, column in wanted.items() for part in _parts(opened, role, column)]
    raw, notes = sources.used_columns(opened, cells, names, reading)
    return typed(LogTable(raw, raw, wanted, columns, opened, reading, rename, notes), tidy)


def typed(table: LogTable, tidy: bool) -> LogTable:
    """Give the columns their types."""
    schema = guarded(table.raw.collect_schema, table.name)
    exprs: list[Any] = []
    for role in table.wanted:
        where = f"{table.name}: column {table.wanted[role]!r} ({role})"
        if role in NUMBERS and schema[role] in (pl.String, pl.Categorical):
            table, columns = _read_numbers(table, role, cell_text(role, schema[role], tidy), tidy)
            exprs += columns
        elif role in NUMBERS:
            if not (schema[role].is_numeric() or schema[role] in (pl.Null, pl.Boolean)):
                raise InputError(f"{where} must hold numbers, got {schema[role]}")
            exprs.append(pl.col(role).cast(pl.Float64))
        elif role in LABELS:
            rename = table.rename if role != "episode" else {}
            exprs += _label(role, schema[role], rename, tidy, where)
    frame = table.raw
    if not tidy:
        frame = frame.filter(pl.any_horizontal(_there(role, schema[role]) for role in table.wanted))
    return replace(table, frame=frame.with_columns(exprs), tidy=tidy)


def is_tidy(labels: Any) -> bool:
    """Whether a series of distinct labels has no null, no blanks around texts and no empty text."""
    if labels.null_count() or labels.dtype != pl.String:
        return not labels.null_count()
    return not ((labels.str.strip_chars() != labels) | (labels == "")).any()


def cell_text(role: str, dtype: Any, tidy: bool) -> Any:
    """Cells of a column of text; null if there is nothing but blanks."""
    text = pl.col(role) if dtype == pl.String else pl.col(role).cast(pl.String)
    bare = text.str.strip_chars()
    return text if tidy else pl.when(bare != "").then(bare)


def unflagged(rules: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Rules for rows of roles, without the cells that are flagged already."""
    flags = {role: pl.col(f"_bad_{role}") for role in rules if f"_bad_{role}" in names}
    return {role: rule & ~flags[role] if role in flags else rule for role, rule in rules.items()}


def spoken(role: str) -> str:
    """The name of a role's parameter."""
    return "by" if role == "unit" else role


def _parts(opened: LazyTable, role: str, column: str) -> list[str]:
    """The columns of a role: a time may have several, as "year,month"."""
    several = role == "time" and column not in opened.header
    return [part.strip() for part in column.split(",")] if several else [column]


def _cells(opened: LazyTable, role: str, column: str) -> Any:
    """The cells of a role; several columns make 2020-1-31 of 2020, 1 and 31."""
    parts = _parts(opened, role, column)
    if len(parts) == 1:
        return pl.col(parts[0]).alias(role)
    schema, texts = opened.frame.collect_schema(), []
    for part in parts:
        whole = pl.Int64 if schema[part].is_float() else schema[part]
        text = pl.col(part).cast(whole, strict=False).cast(pl.String).str.strip_chars()
        texts.append(pl.when(text != "").then(text))
    return pl.concat_str(texts, separator="-").alias(role)


def _check_header(opened: LazyTable, wanted: dict[str, str]) -> None:
    """All columns that are not there, and those that are there twice."""
    header = opened.header
    columns = ((role, _parts(opened, role, column)) for role, column in wanted.items())
    parts = [(role, part) for role, several in columns for part in several]
    missing = [(role, part) for role, part in parts if part not in header]
    if missing:
        folded = {name.strip().casefold(): name for name in header}
        texts = []
        for role, column in missing:
            close = folded.get(column.strip().casefold()), *get_close_matches(column, header, 1)
            near = next(filter(None, close), None)
            if role == "unit" and column in PERIODS and "time" in wanted:
                near = f"time:{column}"
            is_meant = near is not None and near not in wanted.values()
            meant = f" (did you mean {near!r}?)" if is_meant else ""
            texts.append(f"{column!r} for `{spoken(role)}`{meant}")
        hints = separator_hint(header) + sources.header_hint(opened, [part for _, part in missing])
        known = f"there are: {first_names(header, 10)}{hints}"
        what = f"{opened.name}: no column {', '.join(texts)}; {known}"
        raise InputError("; ".join((what, *opened.notes)))
    for _, column in parts:
        if header.count(column) > 1:
            raise InputError(f"{opened.name}: {header.count(column)} columns are called {column!r}")


def _there(role: str, dtype: Any) -> Any:
    if dtype == pl.String:
        return pl.col(role).str.strip_chars() != ""
    return pl.col(role).is_not_nan() if dtype.is_float() else pl.col(role).is_not_null()


def _read_numbers(table: LogTable, role: str, text: Any, tidy: bool) -> tuple[LogTable, list[Any]]:
    """Numbers of a column of text, and which cells are none; with more care their unit is removed
    and dashes are empty.
    """
    how, notes, findings = numbers.writing(table.reading), list(table.notes), list(table.findings)
    cells = first_cells(table, role)
    if not tidy:
        how = numbers.with_usual_unit(how, cells)
        text = pl.when(~text.is_in(numbers.DASHES)).then(text)
    asked: dict[str, Any] = {}
    column = table.raw.select(text=cell_text(role, None, False))
    unsaid = table.reading.thousands is None and table.reading.decimal in (None, ",")
    if unsaid and numbers.may_be_ambiguous(numbers.bare(cells), how.decimal):
        asked |= numbers.ambiguity(how.core(pl.col("text")), how.decimal)
    if not tidy:
        asked["dashes"] = pl.col("text").is_in(numbers.DASHES).sum()
    stats = table.totals(column, asked)
    if stats.get("marked") and not stats["certain"] and (stats["largest"] or 0) <= 999:
        findings.append(_two_readings(table, role, how))
    name = f"column {table.wanted[role]!r}"
    if how.unit:
        notes.append(f"{name}: the unit {how.unit!r} is removed")
    if stats.get("dashes"):
        notes.append(f"{name}: a dash is an empty cell, in {count(stats['dashes'], 'row')}")
    number = how.read(text)
    exprs = [number.alias(role), (number.is_null() & text.is_not_null()).alias(f"_bad_{role}")]
    if not tidy:
        exprs.append(pl.when(number.is_null()).then(text).alias(f"_text_{role}"))
    if how.unit:
        other = how.core(text).is_null() & text.str.contains("[0-9]")
        exprs.append(other.alias(f"_unit_{role}"))
    return replace(table, notes=tuple(notes), findings=tuple(findings)), exprs


def first_cells(table: LogTable, role: str) -> list[str]:
    """The first cells of a column of text, without empty ones."""
    column = table.raw.select(text=cell_text(role, None, False))
    cells = table.query(column.head(numbers.SAMPLE))["text"]
    return [cell for cell in cells.drop_nulls().to_list() if cell not in numbers.DASHES]


def _two_readings(table: LogTable, role: str, how: numbers.Writing) -> Finding:
    """A column whose marks may be those of fractions or of thousands."""
    mark = how.decimal
    other = numbers.Writing("," if mark == "." else ".", mark)
    marked = cell_text(role, None, False).str.contains(mark, literal=True)
    cells = table.cells(marked, role, table.raw)[:1]
    cell = numbers.bare([cells[0][1]])[0]
    what = (
        f"{{value}} may be {how.value(cell):.12g} or {other.value(cell):.12g}: every {mark!r} has "
        "three digits after it, and no cell without it is above 999"
    )
    point, group = "`decimal='.'`", f"`thousands={mark!r}`"
    first, second = (point, group) if mark == "." else ("`thousands='.'`", f"{point} and {group}")
    cure = f"say which: {first} for the first, {second} for the second"
    return table.finding("number", 1, cells, role, what, cure=cure)


def _label(role: str, dtype: Any, rename: Mapping[Any, Any], tidy: bool, where: str) -> list[Any]:
    """Make labels integers, floats or stripped strings."""
    column, flag = pl.col(role), []
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
        integer, text = label.cast(pl.Int64, strict=False), label.cast(pl.String)
        label = pl.when(integer == label).then(integer.cast(pl.String)).otherwise(text)
    new = label.replace({str(old): str(new) for old, new in rename.items()})
    return [new.alias(role), label.alias(f"_was_{role}"), *flag]
