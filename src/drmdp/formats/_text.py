"""Lines of text files: numbers, and errors that name the line."""

from __future__ import annotations

import csv
import io
import math
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp.errors import InputError, shown, unexpected
from drmdp.io.files import Write, memory_limit, open_regular

LARGEST_ID = 2**31
TEXT = 20
"""Bytes in memory of a byte of text, half of them for a while (measured: 16 for craam, 37 for PRISM
files of short lines).
"""


def _opened(path: Path, encoding: str, newline: str | None) -> IO[str]:
    stream = open_regular(path)
    size = os.fstat(stream.fileno()).st_size
    if size > memory_limit() // TEXT:
        stream.close()
        cure = "models of this size are .npz files or .drmdp directories"
        raise InputError(f"{size} bytes of text do not fit in memory; {cure}")
    return io.TextIOWrapper(stream, encoding, "replace", newline)


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line that is not empty."""
    with _opened(path, "utf-8-sig", "") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            for fields in reader:
                if any(text.strip() for text in fields):
                    yield reader.line_num, [text.strip() for text in fields]
        except csv.Error as error:
            raise InputError(f"line {reader.line_num}: {error}") from None


def words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and words of every line that is neither empty nor a comment."""
    with _opened(path, "utf-8", None) as stream:
        for line, text in enumerate(stream, 1):
            fields = text.split()
            if fields and not fields[0].startswith("#"):
                yield line, fields


def lines_of(lines: Sequence[str]) -> Write:
    """A writer of lines to a stream."""
    try:
        content = ("\n".join(lines) + "\n").encode()
    except UnicodeEncodeError as error:
        raise InputError(f"no text can hold {shown(error.object[error.start])}") from None
    return lambda stream: stream.write(content)


def number(line: int, name: str, text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        raise unexpected(f"line {line}: {name}", "a number", text) from None
    if not math.isfinite(value):
        raise InputError(f"line {line}: {name} must be finite, got {shown(text)}")
    return value


def index(line: int, name: str, text: str, below: int = LARGEST_ID) -> int:
    """A whole number of no sign, below a limit."""
    value = number(line, name, text)
    if value != int(value) or not 0 <= value < below:
        raise unexpected(f"line {line}: {name}", f"a whole number from 0 to {below - 1}", text)
    return int(value)


def check_number(line: int, fields: list[str], n: int) -> None:
    """Refuse a line of another number of fields."""
    if len(fields) != n:
        raise InputError(f"line {line}: expected {n} fields, got {len(fields)}")


def table(
    path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> tuple[dict[str, Any], Any]:
    """Read a CSV file with a header in any order; columns by name, and the line of each row."""
    rows = csv_rows(path)
    line, header = next(rows, (1, []))
    names = [name.lower() for name in header]
    if header and not set(names) & set(required):
        has = f"there are {', '.join(map(shown, header))}, and a model has {', '.join(required)}"
        fault, cure = f"no column of a model: {has}", "`estimate` makes a model of a log"
        raise InputError(f"line {line}: {fault}; {cure}")
    known = (*required, *optional)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"line {line}: column {shown(name)} is given twice")
        if name not in known:
            rule = f"unknown; known: {', '.join(known)}"
            raise InputError(f"line {line}: column {shown(name)} is {rule}")
    for name in required:
        if name not in names:
            raise InputError(f"line {line}: column {name!r} is missing")
    readers = [index if name.startswith("id") else number for name in names]
    columns: list[Any] = [array("q" if read is index else "d") for read in readers]
    lines = array("q")
    for line, fields in rows:
        check_number(line, fields, len(names))
        for name, read, column, text in zip(names, readers, columns, fields, strict=True):
            column.append(read(line, name, text))
        lines.append(line)
    return {name: np.array(column) for name, column in zip(names, columns, strict=True)}, lines
