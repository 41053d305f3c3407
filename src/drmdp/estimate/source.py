"""A file or a frame as a lazy Polars frame, and the way back from a row to a line of the file.

Cells of text files and workbooks come as text: what a column means is decided by its role, over all rows, and not by
its first rows. Paths are taken literally: ``log[1].csv`` is that file.

====================== ===============================================================================================
suffix                 what is read
====================== ===============================================================================================
.csv, .tsv, .txt       text in UTF-8, or in UTF-16 with a byte order mark; separated by commas (.tsv: by tabs; .txt: by
                       what `separator` says). Other encodings are decoded in memory.
.parquet               columns with types
.xlsx                  the first sheet, in memory; its first row names the columns. Needs the extra ``excel``.
====================== ===============================================================================================

A Parquet file that is none, or was cut off, is refused. One from a stranger is only as safe as Polars. Damage in its footer is an error
(4 000 flipped bits tried). Damage inside its pages goes unnoticed where it makes other numbers, for pages need not have checksums: of 956 flipped
bits, 811 were read, 144 refused, and one ended the process.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from drmdp.core.archives import check_parquet
from drmdp.core.environment import check_threads
from drmdp.errors import InputError, MissingExtra, shown

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None}
SUFFIXES = (*SEPARATORS, ".parquet", ".xlsx")
HEAD = 1 << 16
"""Bytes that are looked at to tell encodings and line ends."""


@dataclass(frozen=True)
class Reading:
    """How a text file is written."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."
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


def open_source(given: Any, reading: Reading) -> Source:
    """Open a frame, a mapping of columns or a file; nothing is read but the header."""
    pl = polars()
    frame = None
    if isinstance(given, pl.LazyFrame | pl.DataFrame):
        frame = given.lazy()
    elif _is_pandas(given) and hasattr(given, "columns"):
        frame = _from_columns({str(name): given[name] for name in given.columns})
    elif isinstance(given, Mapping):
        frame = _from_columns(given)
    if frame is not None:
        return Source(frame, "table", tuple(guarded(lambda: frame.collect_schema().names(), "table")))
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"table: expected a Polars or pandas frame, a mapping or a path, got {type(given).__name__}")
    path = Path(given)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise InputError(f"{path}: unknown suffix {suffix!r}; a table is a {known} file")
    if not path.is_file():
        what = (
            "is a directory"
            if path.is_dir()
            else "is a pipe or a device, not a file"
            if path.exists()
            else "no such file"
        )
        raise InputError(f"{path}: {what}")
    if suffix == ".parquet":
        try:
            check_parquet(path)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        frame = guarded(lambda: pl.scan_parquet(path, glob=False), os.fspath(path))
        return Source(frame, os.fspath(path), tuple(guarded(lambda: frame.collect_schema().names(), os.fspath(path))))
    return _workbook(path) if suffix == ".xlsx" else _text(path, reading)


# ---------------------------------------------------------------------- frames and workbooks


def _is_pandas(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas"


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    """Make a frame column by column: a conversion of pandas as a whole would need pyarrow."""
    pl = polars()

    def series(values: Any) -> Any:
        if not _is_pandas(values):
            return values
        if hasattr(values.dtype, "freq") and hasattr(values, "dt"):  # periods: where they begin
            values = values.dt.to_timestamp()
        plain = values.to_numpy()
        if plain.dtype != object:
            return plain
        return [None if missing else value for value, missing in zip(plain, list(values.isna()), strict=True)]

    return guarded(lambda: pl.DataFrame({n: series(v) for n, v in columns.items()}, strict=False), "table").lazy()


def _workbook(path: Path) -> Source:
    """Read the first sheet as text: typed columns would silently empty the cells of another type."""
    pl = polars()
    name = os.fspath(path)
    try:
        import fastexcel
    except ImportError as error:
        raise MissingExtra("fastexcel", "excel") from error

    def work() -> tuple[Any, str]:
        try:
            sheet = fastexcel.read_excel(path).sheet_names[0]
            options = {"dtypes": "string"}
            return pl.read_excel(path, sheet_name=sheet, drop_empty_rows=False, read_options=options), sheet
        except fastexcel.FastExcelError as error:
            raise InputError(f"{name}: {str(error).splitlines()[0]}") from None

    frame, sheet = guarded(work, name)
    return Source(frame.lazy(), f"{name}, sheet {sheet!r}", tuple(frame.columns), first=2)


# ---------------------------------------------------------------------- text


@dataclass(frozen=True)
class TextFile:
    """A separated text file: what Polars reads, and where a record stands."""

    path: Path
    encoding: str
    separator: str

    def records(self, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Line where each record begins, and its cells; blank lines are records without cells."""
        with open(self.path, encoding=self.encoding, errors="replace", newline="") as text:
            reader = csv.reader(text, delimiter=self.separator, strict=strict)
            begin = 1
            try:
                for cells in reader:
                    yield begin, cells
                    begin = reader.line_num + 1
            except csv.Error as error:
                raise csv.Error(f"the record that begins in line {begin} cannot be read: {error}") from None

    def body(self) -> Iterator[tuple[int, list[str]]]:
        """Records after the header; Polars skips blank lines before it, and only there."""
        records = self.records()
        next((cells for _, cells in records if cells), None)
        return records

    def header(self) -> tuple[str, ...]:
        """Names of the columns, as written."""
        try:
            first = next((cells for _, cells in self.records() if cells), [])
        except csv.Error as error:
            raise InputError(f"{self.path}: {error}") from None
        return tuple(name.removeprefix("\ufeff") for name in first)  # a mark of byte order

    def lines(self, rows: list[int]) -> dict[int, int]:
        """Line of each of some rows: not row + 2 where cells hold line breaks or blank lines precede the header."""
        if not rows:
            return {}
        wanted = set(rows)
        try:
            body = islice(self.body(), max(rows) + 1)
            return {row: line for row, (line, _) in enumerate(body) if row in wanted}
        except csv.Error:  # a cell beyond the limit of the module `csv`
            return {}

    def wide(self) -> list[tuple[int, int]]:
        """Lines with more cells than the header, and how many they have."""
        width = len(self.header())
        try:
            return [(line, len(cells)) for line, cells in self.body() if len(cells) > width]
        except csv.Error:
            return []

    def fault(self) -> str | None:
        """Why Polars could not read it, with a line; None if that is not seen from here."""
        if self.encoding in ("utf-8", "utf-8-sig"):
            with open(self.path, "rb") as raw:
                for number, content in enumerate(raw, 1):
                    try:
                        content.decode()
                    except UnicodeDecodeError as error:
                        byte = f"byte 0x{content[error.start]:02x} is no UTF-8"
                        return f"line {number}: {byte}; if it was saved by an older program: `encoding='latin-1'`"
        width = len(self.header())
        try:
            for line, cells in self.records(strict=True):
                if len(cells) > width:
                    what = f"{len(cells)} cells, but the header has {width}"
                    return f"line {line} has {what}: cells that hold {self.separator!r} need quotes"
        except csv.Error as error:
            return str(error)
        return None


def _text(path: Path, reading: Reading) -> Source:
    pl = polars()
    name = os.fspath(path)
    head = guarded(lambda: _head(path), name)
    file = TextFile(path, _encoding(name, head, reading.encoding), _separator(name, path, reading.separator))
    if b"\r" in head and b"\n" not in head and b"\x00" not in head:
        raise InputError(f"{name}: lines end with a carriage return alone: save it with ordinary line ends")
    content: Any = path
    if file.encoding not in ("utf-8", "utf-8-sig"):
        content = io.BytesIO(guarded(lambda: _decoded(path, file.encoding), name).encode())
    header = file.header()
    if not header:
        raise InputError(f"{name}: empty")
    options = {"separator": file.separator, "infer_schema": False, "glob": False}
    options["truncate_ragged_lines"] = reading.ragged
    frame = guarded(lambda: pl.scan_csv(content, **options), name)
    source = Source(frame, name, header, "line", 2, file)
    guarded(frame.collect_schema, name)
    return source


def _head(path: Path) -> bytes:
    with open(path, "rb") as raw:
        return raw.read(HEAD)


def _encoding(name: str, head: bytes, given: str | None) -> str:
    if given is not None:
        try:
            b"a".decode(given, "replace")  # some codecs are not for text
            return codecs.lookup(given).name
        except (LookupError, ValueError):
            raise InputError(
                f"`encoding={given!r}` is unknown; common ones are utf-8, latin-1, cp1252, utf-16"
            ) from None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\x00" in head:
        raise InputError(f"{name}: holds zero bytes; if it is UTF-16: `encoding='utf-16-le'`")
    return "utf-8-sig"


def _decoded(path: Path, encoding: str) -> str:
    raw = path.read_bytes()
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}: line {line}: not {encoding}: {error.reason}") from None
    except LookupError as error:
        raise InputError(f"{path}: {error}") from None


def _separator(name: str, path: Path, given: str | None) -> str:
    found = {"tab": "\t", "\\t": "\t"}.get(given, given) if given is not None else SEPARATORS[path.suffix.lower()]
    if found is None:
        raise InputError(f"{name}: say what separates the cells of a .txt file: `separator=';'`, `separator='tab'`")
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise InputError(f"`separator`: expected one character, or tab, got {shown(given)}")
    return found


def separator_hint(header: tuple[str, ...]) -> str:
    """What to try if a file has a single column whose name looks like several."""
    if len(header) != 1:
        return ""
    found: Callable[[str], int] = header[0].count
    mark = max((";", "\t", "|", ","), key=found)
    return (
        f"; its cells look separated by {mark!r}: `separator={'tab' if mark == chr(9) else mark!r}`"
        if found(mark)
        else ""
    )
