"""A table as a lazy Polars frame, and the way back from a row to a line of the file.

The first row that is not blank names the columns, or the row that `header_row` says; a name that is missing there stands above it, as where cells are
merged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from drmdp.core.environment import check_threads
from drmdp.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from drmdp.estimate.opening import TextFile


KEEP = "\0keep"
TOP = 20
"""Rows among which names of columns are looked for."""


@dataclass(frozen=True)
class Reading:
    """How a table is written; see `drmdp.estimate`."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None  # None: a point, if that is the only reading
    thousands: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    fill_down: str | Collection[str] = ()
    skip_rows_without: str | None = None
    ragged: bool = False  # cut lines with too many cells, instead of an error


@dataclass(frozen=True)
class Source:
    """A lazy frame with the columns as they are, and how to name its rows."""

    frame: Any
    name: str
    header: tuple[str, ...]  # as written, so names may be there twice
    word: str = "row"  # what a row is called, "line" in text files
    first: int = 1  # number of the first row
    text: TextFile | None = None
    top: tuple[tuple[str, ...], ...] = ()  # the first rows of a file, line by line
    told: tuple[str, ...] = ()  # what was assumed

    def lines(self, rows: list[int]) -> list[int]:
        """Numbers of rows, counted from 0, as a reader of the file counts them."""
        found = self.text.lines(rows) if self.text is not None else {}
        return [found.get(row, row + self.first) for row in rows]

    def collect(self, *frames: Any) -> list[Any]:
        """Carry out queries that share what they read, in pieces; failures name the line where that is known."""
        try:
            return list(guarded(lambda: polars().collect_all(list(frames), engine="streaming"), self.name))
        except InputError:
            reason = self.text.fault() if self.text is not None else None
            if reason is None:
                raise
            raise InputError(f"{self.name}: {reason}") from None


def polars() -> Any:
    """Import Polars, or say what to install."""
    try:
        check_threads("POLARS_MAX_THREADS")
        import polars
    except ImportError as error:
        raise MissingExtra("polars", "data") from error
    return polars


def guarded(work: Any, name: str) -> Any:
    """Do some work with Polars; whatever it makes of the data is an `InputError` that begins with `name`."""
    pl = polars()
    try:
        return work()
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or str(error).splitlines()[0]}") from None


def used_columns(
    source: Source, cells: Mapping[str, Any], names: Collection[str], reading: Reading
) -> tuple[Any, tuple[str, ...]]:
    """Expressions in some columns, and `_row`; cells are filled and rows skipped as `reading` says. Also what to tell of that."""
    pl = polars()
    filled = (reading.fill_down,) if isinstance(reading.fill_down, str) else tuple(reading.fill_down)
    for name in filled:
        if name not in names:
            known = ", ".join(map(repr, names))
            raise InputError(f"{source.name}: `fill_down`: {name!r} is none of the columns used: {known}")
    without = reading.skip_rows_without
    if without is not None and (without not in source.header or without in filled):
        why = "is filled down" if without in filled else "is no column"
        raise InputError(f"{source.name}: `skip_rows_without`: {without!r} {why}")
    schema = guarded(source.frame.collect_schema, source.name)

    def there(name: str) -> Any:
        column = pl.col(name)
        return (column.str.strip_chars() != "").fill_null(False) if schema[name] == pl.String else column.is_not_null()

    keep = pl.lit(True) if without is None else there(without)
    down = {name: pl.when(there(name) & keep).then(pl.col(name)).forward_fill() for name in filled}
    frame = source.frame.with_columns(**down, **{KEEP: keep}).select(_keep=pl.col(KEEP), **cells)
    frame = frame.with_row_index("_row")
    told = [f"an empty cell of {name!r} means what stands above it" for name in filled]
    if without is not None:
        gone = frame.filter(~pl.col("_keep"))
        n, first = source.collect(gone.select(pl.len()), gone.select("_row").head(1))
        where = f", the first in {source.word} {source.lines(first['_row'].to_list())[0]}" if first.height else ""
        told.append(f"rows without {without!r} are skipped: {n.item():,}{where}")
        frame = frame.filter("_keep")
    return frame.drop("_keep"), (*source.told, *told)


def header_of(rows: Collection[tuple[str, ...]], number: int | None) -> tuple[tuple[str, ...], int]:
    """Names of columns in the first rows, and how many rows they take; names that are missing in row `number` stand above."""
    rows = list(rows)
    if number is None:
        number = next((k for k, row in enumerate(rows, 1) if any(cell.strip() for cell in row)), 0)
        return (rows[number - 1] if number else ()), number
    columns = zip_longest(*rows[:number], fillvalue="") if number <= len(rows) else ()
    return tuple(next((cell for cell in reversed(cells) if cell.strip()), "") for cells in columns), number


def titles(name: str, rows: Collection[tuple[str, ...]], number: int | None) -> tuple[tuple[str, ...], int]:
    """The same; refused if there is none."""
    header, taken = header_of(rows, number)
    if number is not None and not any(header):
        raise InputError(f"{name}: `header_row={number}`: there is no name in that row, nor above")
    return header, taken


def new_names(columns: list[str], header: tuple[str, ...]) -> dict[str, str]:
    """Names of the header for columns of a frame, as far as they are there once."""
    return {old: new for old, new in zip(columns, header, strict=False) if new and header.count(new) == 1}


def header_hint(source: Source, missing: Collection[str]) -> str:
    """The first row that has the names which the header has not."""
    rows = range(1, len(source.top) + 1)
    found = next((k for k in rows if set(missing) <= set(header_of(source.top, k)[0])), None)
    return "" if found is None else f"; row {found} has them: `header_row={found}`"
