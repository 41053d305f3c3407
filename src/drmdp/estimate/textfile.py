"""Separated text files: encodings, separators, and where a record stands.

UTF-8, or UTF-16 with a byte order mark, is read in pieces; other encodings are decoded in memory. Cells are separated by commas (.tsv: by tabs; .txt: by what
`separator` says).
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from drmdp.errors import InputError, shown
from drmdp.estimate.source import TOP, Reading, Source, guarded, new_names, polars, titles

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

    def records(self, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Line where each record begins, and its cells; blank lines are records without cells."""
        with open(self.path, encoding=self.encoding, errors="replace", newline="") as text:
            skipped = sum(1 for _ in islice(text, (self.header_row or 1) - 1))
            reader = csv.reader(text, delimiter=self.separator, strict=strict)
            begin = skipped + 1
            try:
                for cells in reader:
                    yield begin, cells
                    begin = skipped + reader.line_num + 1
            except csv.Error as error:
                raise csv.Error(f"the record that begins in line {begin} cannot be read: {error}") from None

    def body(self) -> Iterator[tuple[int, list[str]]]:
        """Records after the header; Polars skips blank lines before it, and only there."""
        records = self.records()
        next((cells for _, cells in records if cells), None)
        return records

    def top(self) -> tuple[tuple[str, ...], ...]:
        """Cells of the first lines, each read as a record of its own."""
        with open(self.path, encoding=self.encoding, errors="replace", newline="") as text:
            lines = [
                line.removeprefix("\ufeff") for line in islice(text, max(TOP, self.header_row or 0))
            ]  # a mark of byte order
        try:
            return tuple(tuple(next(csv.reader([line], delimiter=self.separator), ())) for line in lines)
        except csv.Error as error:
            raise InputError(f"{self.path}: {error}") from None

    def header(self) -> tuple[str, ...]:
        """Names of the columns, as written."""
        if self.header_row is not None:
            return titles(os.fspath(self.path), self.top(), self.header_row)[0]
        try:
            first = next((cells for _, cells in self.records() if cells), [])
        except csv.Error as error:
            raise InputError(f"{self.path}: {error}") from None
        return tuple(name.removeprefix("\ufeff") for name in first)

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
                    reason = _not_utf8(content)
                    if reason is not None:
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


def open_text(path: Path, reading: Reading) -> Source:
    """Open a text file; nothing is read but its head."""
    pl = polars()
    name = os.fspath(path)
    head = guarded(lambda: _head(path), name)
    file = TextFile(
        path, _encoding(name, head, reading.encoding), _separator(name, path, reading.separator), reading.header_row
    )
    if b"\r" in head and b"\n" not in head and b"\x00" not in head:
        raise InputError(f"{name}: lines end with a carriage return alone: save it with ordinary line ends")
    content: Any = path
    if file.encoding not in ("utf-8", "utf-8-sig"):
        content = io.BytesIO(guarded(lambda: _decoded(path, file.encoding), name).encode())
    header = file.header()
    if not header:
        raise InputError(f"{name}: empty")
    options = {"separator": file.separator, "infer_schema": False, "glob": False}
    options |= {"truncate_ragged_lines": reading.ragged, "skip_lines": (reading.header_row or 1) - 1}
    frame = guarded(lambda: pl.scan_csv(content, **options), name)
    columns = guarded(lambda: frame.collect_schema().names(), name)
    if reading.header_row is not None:
        frame = frame.rename(new_names(columns, header))
    return Source(frame, name, header, "line", 2, file, file.top())


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
    for number, line in enumerate(head[: head.rfind(b"\n") + 1].splitlines(), 1):
        reason = _not_utf8(line)
        if reason is not None:
            raise InputError(f"{name}: line {number}: {reason}")
    return "utf-8-sig"


def _not_utf8(content: bytes) -> str | None:
    """Why bytes are no UTF-8, and the encoding that makes the likeliest letters of them; None if they are."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and error.end == len(content) == HEAD:
            return None

        def likely(encoding: str) -> int:
            text = content.decode(encoding, "replace")
            return sum((letter in LETTERS) - (letter not in LETTERS) for letter in text if not letter.isascii())

        best = max(ENCODINGS, key=likely)
        words = re.findall(r"[^\W\d]*[^\x00-\x7f][\w]*", content.decode(best, "replace"))
        return f"byte 0x{content[error.start]:02x} is no UTF-8: `encoding={best!r}` reads {shown(words[0])} there"
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


def _separator(name: str, path: Path, given: str | None) -> str:
    found = given if given is not None else SEPARATORS[path.suffix.lower()]
    if found is None:
        raise InputError(f"{name}: say what separates the cells of a .txt file: `separator=';'`, `separator='tab'`")
    return checked_mark(found)


def checked_mark(given: str) -> str:
    """A mark between cells, as it was said."""
    found = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise InputError(f"`separator`: expected one character, or tab, got {shown(given)}")
    return found


def sniffed(path: Any, reading: Reading) -> Reading:
    """How a small table beside the log is written: UTF-8 if that reads it, separated by what its header has most of."""
    path = Path(path)
    own = Reading(decimal=reading.decimal, thousands=reading.thousands)
    if path.suffix.lower() not in SEPARATORS or not path.is_file():
        return own
    head = guarded(lambda: _head(path), os.fspath(path))
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = None if utf16 or _not_utf8(head) is None else reading.encoding
    text = head.decode("utf-16" if utf16 else encoding or "utf-8", "replace")
    line = next((line for line in text.splitlines() if line.strip()), "")
    return replace(own, encoding=encoding, separator=_likely(line) or reading.separator)


def _likely(line: str) -> str | None:
    """The mark that separates cells in a header; None if there is none."""
    mark = max((";", "\t", "|", ","), key=line.count)
    return mark if mark in line else None


def separator_hint(header: tuple[str, ...]) -> str:
    """What to try if a file has a single column whose name looks like several."""
    mark = _likely(header[0]) if len(header) == 1 else None
    if mark is None:
        return ""
    return f"; its cells look separated by {mark!r}: `separator={'tab' if mark == chr(9) else mark!r}`"
