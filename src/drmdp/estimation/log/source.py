"""A table as a lazy Polars frame, and the way back from a row to a line of the file.

The first row that is not blank names the columns, or the row that `header_row` says; a name that is
missing there stands above it, as where cells are merged.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from drmdp.errors import InputError, Notice, imported, shown

if TYPE_CHECKING:
    from drmdp.estimation.log.files import TextFile


KEEP = "\0keep"
TOP = 20
"""Rows among which names of columns are looked for."""
Titles = tuple[tuple[str, ...], int]
"""Names of columns, and how many rows they take."""


@dataclass(frozen=True)
class Reading:
    """Settings on the form of a table; see `drmdp.estimate`."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None  # None: a point, if that is the only reading
    thousands: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    fill_down: str | Collection[str] = ()
    skip_rows_without: str | Collection[str] = ()
    ragged: bool = False  # cut lines with too many cells, instead of an error


@dataclass(frozen=True)
class LazyTable:
    """A lazy frame with the columns as they are, and how to name its rows."""

    frame: Any
    name: str
    header: tuple[str, ...]  # as written, so names may be there twice
    word: str = "row"  # what a row is called, "line" in text files
    first: int = 1  # number of the first row
    text: TextFile | None = None
    top: tuple[tuple[str, ...], ...] = ()  # the first rows of a file, line by line
    notes: tuple[str, ...] = ()  # what was assumed

    def lines(self, rows: list[int]) -> list[int]:
        """Numbers of rows, counted from 0, as a reader of the file counts them."""
        lines = self.text.lines(rows) if self.text is not None else {}
        return [lines.get(row, row + self.first) for row in rows]

    def collect(self, *frames: Any) -> list[Any]:
        """Carry out queries that share what they read, in pieces; failures name the line where that
        is known.
        """
        try:
            work = guarded(lambda: pl.collect_all(list(frames), engine="streaming"), self.name)
            return list(work)
        except InputError:
            reason = self.text.fault() if self.text is not None else None
            if reason is None:
                raise
            raise InputError(f"{self.name}: {reason}") from None


class _Polars:
    """Polars, imported where it is first used, or what to install.

    A variable of the environment that holds no number of threads would end the process with a
    traceback of Polars: it is dropped with a notice.
    """

    def __getattr__(self, name: str) -> Any:
        threads = os.environ.get(variable := "POLARS_MAX_THREADS")
        if threads is not None and not (threads.strip().isdigit() and 0 < int(threads) < 10_000):
            del os.environ[variable]
            ignored = f"{variable}={shown(threads)} is no number of threads and is ignored"
            warnings.warn(ignored, Notice, stacklevel=2)
        return getattr(imported("polars", "data"), name)


pl: Any = _Polars()


def guarded(work: Any, name: str) -> Any:
    """Do some work with Polars; whatever it makes of the data is an `InputError` that begins with
    `name`.
    """
    kinds = pl.exceptions
    try:
        return work()
    except InputError:
        raise
    except OSError as error:
        what = error.strerror or str(error).splitlines()[0]
    except (kinds.PolarsError, kinds.PanicException, TypeError, ValueError, OverflowError) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0]
    raise InputError(f"{name}: {what}")


def as_names(names: str | Collection[str] | None) -> tuple[str, ...]:
    """Names that may be one alone, or none."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def used_columns(
    source: LazyTable, cells: Mapping[str, Any], names: Collection[str], reading: Reading
) -> tuple[Any, tuple[str, ...]]:
    """Expressions in some columns, and `_row`; cells are filled and rows skipped as `reading` says.
    Also what to tell of that.
    """
    filled, without = as_names(reading.fill_down), as_names(reading.skip_rows_without)
    for name in (name for name in filled if name not in names):
        known = f"is none of the columns used: {', '.join(map(repr, names))}"
        raise InputError(f"{source.name}: `fill_down`: {name!r} {known}")
    for name in (name for name in without if name not in source.header or name in filled):
        why = "is filled down" if name in filled else "is no column"
        raise InputError(f"{source.name}: `skip_rows_without`: {name!r} {why}")
    schema = guarded(source.frame.collect_schema, source.name)

    def has_content(name: str) -> Any:
        column = pl.col(name)
        if schema[name] == pl.String:
            return (column.str.strip_chars() != "").fill_null(False)
        return column.is_not_null()

    keep = pl.all_horizontal(pl.lit(True), *map(has_content, without))
    above = {name: pl.when(has_content(name) & keep).then(name).forward_fill() for name in filled}
    frame = source.frame.with_columns(**above, **{KEEP: keep}).select(_keep=pl.col(KEEP), **cells)
    frame = frame.with_row_index("_row")
    notes = [f"an empty cell of {name!r} means what stands above it" for name in filled]
    if without:
        gone = frame.filter(~pl.col("_keep"))
        n, first = source.collect(gone.select(pl.len()), gone.select("_row").head(1))
        lines = source.lines(first["_row"].to_list())
        where = f", the first in {source.word} {lines[0]}" if lines else ""
        named = " or ".join(map(repr, without))
        notes.append(f"rows without {named} are skipped: {n.item():,}{where}")
        frame = frame.filter("_keep")
    return frame.drop("_keep"), (*source.notes, *notes)


def header_of(rows: Collection[tuple[str, ...]], number: int | None) -> Titles:
    """Names of columns in the first rows, and how many rows they take; names that are missing in
    row `number` stand above.
    """
    rows = list(rows)
    if number is None:
        number = next((k for k, row in enumerate(rows, 1) if any(cell.strip() for cell in row)), 0)
        return (rows[number - 1] if number else ()), number
    columns = zip_longest(*rows[:number], fillvalue="") if number <= len(rows) else ()
    upwards = ((cell for cell in reversed(cells) if cell.strip()) for cells in columns)
    return tuple(next(cells, "") for cells in upwards), number


def titles(name: str, rows: Collection[tuple[str, ...]], number: int | None) -> Titles:
    """Names of columns, and how many rows they take; refused if there are none."""
    header, taken = header_of(rows, number)
    if number is not None and not any(header):
        raise InputError(f"{name}: `header_row={number}`: there is no name in that row, nor above")
    return header, taken


def new_names(columns: list[str], header: tuple[str, ...]) -> dict[str, str]:
    """Names of the header for columns of a frame, as far as they are there once."""
    pairs = zip(columns, header, strict=False)
    return {old: new for old, new in pairs if new and header.count(new) == 1}


def header_hint(source: LazyTable, missing: Collection[str]) -> str:
    """The first row that has the names which the header has not."""
    rows = range(1, len(source.top) + 1)
    number = next((k for k in rows if set(missing) <= set(header_of(source.top, k)[0])), None)
    return "" if number is None else f"; row {number} has them: `header_row={number}`"
