"""Files and frames as sources of rows.

Cells of text files and workbooks come as text: what a column means is decided by its role, over all
rows, and not by its first rows. Paths are taken literally: ``log[1].csv`` is that file.

====================== =============================================================================
suffix                 what is read
====================== =============================================================================
.csv, .tsv, .txt       separated text
.parquet               columns with types
.xlsx                  a sheet, in memory; needs the extra ``excel``
====================== =============================================================================

A Parquet file that is none, or was cut off, is refused. One from a stranger is only as safe as
Polars. Damage in its footer is an error (4 000 flipped bits tried). Damage inside its pages goes
unnoticed where it makes other numbers, for pages need not have checksums: of 956 flipped bits, 811
were read, 144 refused, and one ended the process.

Separated text files: encodings, separators, and where a record stands.

UTF-8, or UTF-16 with a byte order mark, is read in pieces; other encodings are decoded in memory.
Cells are separated by commas (.tsv: by tabs; .txt: by what `separator` says).

Workbooks: which sheet is read, as text. Typed columns would silently empty the cells of another
type.

It is the sheet that was asked for, or the visible one that has the columns; if several have them,
none is guessed.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from drmdp.errors import InputError, imported, shown, unexpected
from drmdp.estimation.log import source
from drmdp.estimation.log.source import LazyTable, Reading, guarded, pl
from drmdp.io.archives import check_parquet

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None}
HEAD = 1 << 16
"""Bytes that are looked at to tell encodings and line ends."""
ENCODINGS = ("cp1252", "cp850", "mac_roman", "latin-1")
"""What a file that is not UTF-8 may be in; the last reads everything."""
LETTERS = frozenset("äöüÄÖÜßàâæçéèêëîïôœùûÿÀÂÆÇÉÈÊËÎÏÔŒÙÛáíóúñÁÍÓÚÑãõÃÕåøÅØ€£§°²³µ½–’")
"""What letters beyond ASCII usually are."""


@dataclass(frozen=True)
class TextFile:
    """A separated text file: what Polars reads, and where a record stands."""

    path: Path
    encoding: str
    separator: str
    header_row: int | None = None

    def opened(self) -> TextIO:
        """The file as text, whatever bytes it has."""
        return open(self.path, encoding=self.encoding, errors="replace", newline="")

    def records(self, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Line where each record begins, and its cells; blank lines are records without cells."""
        with self.opened() as text:
            skipped = sum(1 for _ in islice(text, (self.header_row or 1) - 1))
            reader = csv.reader(text, delimiter=self.separator, strict=strict)
            begin = skipped + 1
            try:
                for cells in reader:
                    yield begin, cells
                    begin = skipped + reader.line_num + 1
            except csv.Error as error:
                what = f"the record that begins in line {begin} cannot be read"
                raise csv.Error(f"{what}: {error}") from None

    def body(self) -> Iterator[tuple[int, list[str]]]:
        """Records after the header; Polars skips blank lines before it, and only there."""
        records = self.records()
        next((cells for _, cells in records if cells), None)
        return records

    def top(self) -> tuple[tuple[str, ...], ...]:
        """Cells of the first lines, each read as a record of its own."""
        with self.opened() as text:
            lines = islice(text, max(source.TOP, self.header_row or 0))
            bare = [line.removeprefix("\ufeff") for line in lines]  # a mark of byte order
        readers = (csv.reader([line], delimiter=self.separator) for line in bare)
        try:
            return tuple(tuple(next(reader, ())) for reader in readers)
        except csv.Error as error:
            raise InputError(f"{self.path}: {error}") from None

    def header(self) -> tuple[str, ...]:
        """Names of the columns, as written."""
        if self.header_row is not None:
            return source.titles(os.fspath(self.path), self.top(), self.header_row)[0]
        try:
            first = next((cells for _, cells in self.records() if cells), [])
        except csv.Error as error:
            raise InputError(f"{self.path}: {error}") from None
        return tuple(name.removeprefix("\ufeff") for name in first)

    def lines(self, rows: list[int]) -> dict[int, int]:
        """Line of each of some rows: not row + 2 where cells hold line breaks or blank lines
        precede the header.
        """
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
        """The fault that keeps Polars from reading it, with a line; None if that is not seen from
        here.
        """
        if self.encoding in ("utf-8", "utf-8-sig"):
            with open(self.path, "rb") as raw:
                for number, content in enumerate(raw, 1):
                    if (reason := _not_utf8(content)) is not None:
                        return f"line {number}: {reason}"
        width = len(self.header())
        try:
            for line, cells in self.records(strict=True):
                if len(cells) > width:
                    what = f"{len(cells)} cells, but the header has {width}"
                    return f"line {line} has {what}: cells that hold {self.separator!r} need quotes"
        except csv.Error as error:
            return str(error)
        return None


def open_text(path: Path, reading: Reading) -> LazyTable:
    """Open a text file; nothing is read but its head."""
    name, header_row = os.fspath(path), reading.header_row
    head = guarded(lambda: _head(path), name)
    encoding = _encoding(name, head, reading.encoding)
    file = TextFile(path, encoding, _separator(name, path, reading.separator), header_row)
    if b"\r" in head and b"\n" not in head and b"\x00" not in head:
        what = "lines end with a carriage return alone: save it with ordinary line ends"
        raise InputError(f"{name}: {what}")
    content: Any = path
    if encoding not in ("utf-8", "utf-8-sig"):
        content = io.BytesIO(guarded(lambda: _decoded(path, encoding), name).encode())
    header = file.header()
    if not header:
        raise InputError(f"{name}: empty")
    options = {"separator": file.separator, "infer_schema": False, "glob": False}
    options |= {"truncate_ragged_lines": reading.ragged, "skip_lines": (header_row or 1) - 1}
    frame = guarded(lambda: pl.scan_csv(content, **options), name)
    columns = guarded(lambda: frame.collect_schema().names(), name)
    if header_row is not None:
        frame = frame.rename(source.new_names(columns, header))
    return LazyTable(frame, name, header, "line", 2, file, file.top())


def _head(path: Path) -> bytes:
    with open(path, "rb") as raw:
        return raw.read(HEAD)


def _encoding(name: str, head: bytes, encoding: str | None) -> str:
    if encoding is not None:
        try:
            b"a".decode(encoding, "replace")  # some codecs are not for text
            return codecs.lookup(encoding).name
        except (LookupError, ValueError):
            known = "common ones are utf-8, latin-1, cp1252, utf-16"
            raise InputError(f"`encoding={encoding!r}` is unknown; {known}") from None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\x00" in head:
        raise InputError(f"{name}: holds zero bytes; if it is UTF-16: `encoding='utf-16-le'`")
    for number, line in enumerate(head[: head.rfind(b"\n") + 1].splitlines(), 1):
        if (reason := _not_utf8(line)) is not None:
            raise InputError(f"{name}: line {number}: {reason}")
    return "utf-8-sig"


def _not_utf8(content: bytes) -> str | None:
    """The fault of bytes that are no UTF-8, and the encoding that makes the likeliest letters of
    them; None if they are.
    """
    try:
        content.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and error.end == len(content) == HEAD:
            return None

        def likely(encoding: str) -> int:
            letters = [x for x in content.decode(encoding, "replace") if not x.isascii()]
            return sum(1 if letter in LETTERS else -1 for letter in letters)

        best = max(ENCODINGS, key=likely)
        words = re.findall(r"[^\W\d]*[^\x00-\x7f][\w]*", content.decode(best, "replace"))
        read = f"`encoding={best!r}` reads {shown(words[0])} there"
        return f"byte 0x{content[error.start]:02x} is no UTF-8: {read}"
    return None


def _decoded(path: Path, encoding: str) -> str:
    raw = path.read_bytes()
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}: line {line}: not {encoding}: {error.reason}") from None
    except LookupError as error:
        raise InputError(f"{path}: {error}") from None


def _separator(name: str, path: Path, separator: str | None) -> str:
    mark = separator if separator is not None else SEPARATORS[path.suffix.lower()]
    if mark is None:
        say = "say what separates the cells of a .txt file: `separator=';'`, `separator='tab'`"
        raise InputError(f"{name}: {say}")
    return checked_mark(mark)


def checked_mark(separator: str) -> str:
    """A mark between cells, as it was said."""
    mark = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
        raise unexpected("`separator`", "one character, or tab", separator)
    return mark


def sniffed(path: Any, reading: Reading) -> Reading:
    """Guess the dialect of a small table beside the log: UTF-8 if that reads it, separated by the
    commonest mark of its header.
    """
    path = Path(path)
    plain = Reading(decimal=reading.decimal, thousands=reading.thousands)
    if path.suffix.lower() not in SEPARATORS or not path.is_file():
        return plain
    head = guarded(lambda: _head(path), os.fspath(path))
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = None if utf16 or _not_utf8(head) is None else reading.encoding
    text = head.decode("utf-16" if utf16 else encoding or "utf-8", "replace")
    line = next((line for line in text.splitlines() if line.strip()), "")
    return replace(plain, encoding=encoding, separator=_likely(line) or reading.separator)


def _likely(line: str) -> str | None:
    """The mark that separates cells in a header; None if there is none."""
    mark = max((";", "\t", "|", ","), key=line.count)
    return mark if mark in line else None


def separator_hint(header: tuple[str, ...]) -> str:
    """A cure for a file with a single column whose name looks like several."""
    mark = _likely(header[0]) if len(header) == 1 else None
    say = "`separator='tab'`" if mark == "\t" else f"`separator={mark!r}`"
    return "" if mark is None else f"; its cells look separated by {mark!r}: {say}"


# ---------------------------------------------------------------------- sheets


def open_workbook(path: Path, reading: Reading, wanted: Collection[str]) -> LazyTable:
    """Read a sheet as text: typed columns would silently empty the cells of another type."""
    name = os.fspath(path)
    fastexcel = imported("fastexcel", "excel")

    def work() -> tuple[str, Any, tuple[str, ...]]:
        try:
            book = fastexcel.read_excel(path)
            options: dict[str, Any] = {"header_row": None, "skip_rows": 0, "dtypes": "string"}
            sheet, notes = _sheet(name, reading, wanted, book, options)
            return sheet, pl.DataFrame(book.load_sheet(sheet, **options)), notes
        except fastexcel.FastExcelError as error:
            raise InputError(f"{name}: {str(error).splitlines()[0]}") from None

    sheet, frame, notes = guarded(work, name)
    top = _rows(frame.head(max(source.TOP, reading.header_row or 0)))
    name = f"{name}, sheet {sheet!r}"
    header, taken = source.titles(name, top, reading.header_row)
    frame = frame.slice(taken).rename(source.new_names(frame.columns, header))
    return LazyTable(frame.lazy(), name, header, first=taken + 1, top=top, notes=notes)


def _sheet(
    name: str, reading: Reading, wanted: Collection[str], book: Any, options: dict[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """The sheet to read, and what to tell of the others: the one that was asked for, or the visible
    one that has the columns.
    """
    sheets, row = book.sheet_names, reading.header_row
    if reading.sheet is not None:
        if reading.sheet not in sheets:
            near = get_close_matches(reading.sheet, sheets, 1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            known = ", ".join(map(repr, sheets))
            raise InputError(f"{name}: no sheet {reading.sheet!r}{meant}; there are: {known}")
        return reading.sheet, ()
    if len(sheets) == 1:
        return sheets[0], ()
    tops = {x: book.load_sheet(x, n_rows=max(source.TOP, row or 0), **options) for x in sheets}
    visible = [sheet for sheet in sheets if tops[sheet].visible == "visible"] or sheets
    rows = {sheet: _rows(pl.DataFrame(tops[sheet])) for sheet in visible}
    fits = [x for x in visible if set(wanted) <= set(source.header_of(rows[x], row)[0])]
    if len(fits) > 1 and wanted:
        both = f"{len(fits)} sheets have these columns: {', '.join(map(repr, fits))}"
        raise InputError(f"{name}: {both}; say which: `sheet={fits[0]!r}`")
    chosen = (fits or visible)[0]
    others = {"also": [other for other in visible if other != chosen]}
    others["hidden"] = [other for other in sheets if other not in visible]
    rest = (f"; {kind}: {', '.join(map(repr, names))}" for kind, names in others.items() if names)
    return chosen, (f"sheet {chosen!r} was read{''.join(rest)}",)


def _rows(frame: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(cell or "" for cell in row) for row in frame.rows())


# ---------------------------------------------------------------------- opening


SUFFIXES = (*SEPARATORS, ".parquet", ".xlsx")
DEEPEST = 1000
"""Row that may name the columns; the rows above it are read into memory."""


def open_source(table: Any, reading: Reading, wanted: Collection[str] = ()) -> LazyTable:
    """Open a frame, a mapping of columns or a file; nothing is read but the header. `wanted`
    columns choose the sheet.
    """
    row = reading.header_row
    if row is not None and not (type(row) is int and 1 <= row <= DEEPEST):
        raise unexpected("`header_row`", f"the number of a row, from 1 to {DEEPEST}", row)
    suffix = Path(table).suffix.lower() if isinstance(table, str | os.PathLike) else ""
    if reading.sheet is not None and suffix != ".xlsx":
        raise InputError(f"`sheet={reading.sheet!r}`: only a workbook (.xlsx) has sheets")
    if row is not None and suffix not in (*SEPARATORS, ".xlsx"):
        raise InputError(f"`header_row={row}`: only text files and workbooks have one")
    filed = isinstance(table, str | os.PathLike)  # what is wrong with a path is told without polars
    if not filed and isinstance(table, pl.LazyFrame | pl.DataFrame):
        return _typed_table(table.lazy(), "table")
    if _is_pandas(table) and hasattr(table, "columns"):
        table = {str(name): table[name] for name in table.columns}
    if isinstance(table, Mapping):
        return _typed_table(_from_columns(table), "table")
    if not filed:
        expected = "expected a Polars or pandas frame, a mapping or a path"
        raise InputError(f"table: {expected}, got {type(table).__name__}")
    path = Path(table)
    if suffix not in SUFFIXES:
        known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise InputError(f"{path}: unknown suffix {suffix!r}; a table is a {known} file")
    if not path.is_file():
        what = "is a pipe or a device, not a file" if path.exists() else "no such file"
        raise InputError(f"{path}: {'is a directory' if path.is_dir() else what}")
    if suffix == ".parquet":
        try:
            check_parquet(path)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        frame = guarded(lambda: pl.scan_parquet(path, glob=False), os.fspath(path))
        return _typed_table(frame, os.fspath(path))
    return open_workbook(path, reading, wanted) if suffix == ".xlsx" else open_text(path, reading)


def _typed_table(frame: Any, name: str) -> LazyTable:
    return LazyTable(frame, name, tuple(guarded(lambda: frame.collect_schema().names(), name)))


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    """Make a frame column by column: a conversion of pandas as a whole would need pyarrow."""

    def series(values: Any) -> Any:
        if not _is_pandas(values):
            return values
        if hasattr(values.dtype, "freq") and hasattr(values, "dt"):  # periods: where they begin
            values = values.dt.to_timestamp()
        plain = values.to_numpy()
        if plain.dtype != object:
            return plain
        pairs = zip(plain, list(values.isna()), strict=True)
        return [None if missing else value for value, missing in pairs]

    def work() -> Any:
        return pl.LazyFrame({name: series(v) for name, v in columns.items()}, strict=False)

    return guarded(work, "table")
