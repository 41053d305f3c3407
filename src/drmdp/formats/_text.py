"""What text formats share: lines with numbers, and errors that name the line."""

from __future__ import annotations

import csv
import io
import math
import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp.core.files import Write, memory_limit, open_regular
from drmdp.errors import InputError, shown

LARGEST_ID = 2**31
TEXT = 20
"""Bytes in memory of a byte of text, half of them for a while (measured: 16 for craam, 37 for PRISM files of short lines)."""


@contextmanager
def within(file: Path) -> Iterator[None]:
    """Name a file beside the model in errors."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file.name}: {error}") from None


def _opened(path: Path, encoding: str, newline: str | None) -> IO[str]:
    stream = open_regular(path)
    size = os.fstat(stream.fileno()).st_size
    if size > memory_limit() // TEXT:
        stream.close()
        raise InputError(
            f"{size} bytes of text do not fit in memory; models of this size are .npz files or .drmdp directories"
        )
    return io.TextIOWrapper(stream, encoding, "replace", newline)


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line that is not empty."""
    with _opened(path, "utf-8-sig", "") as stream:
        reader = csv.reader(stream, strict=True)
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(f"line {reader.line_num}: {error}") from None
            if fields and any(text.strip() for text in fields):
                yield reader.line_num, [text.strip() for text in fields]


def words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and words of every line that is neither empty nor a comment."""
    with _opened(path, "utf-8", None) as stream:
        for line, text in enumerate(stream, 1):
            fields = text.split()
            if fields and not fields[0].startswith("#"):
                yield line, fields


def lines_of(lines: Sequence[str]) -> Write:
    """What writes some lines to a stream."""
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
        raise InputError(f"line {line}: {name}: expected a number, got {shown(text)}") from None
    if not math.isfinite(value):
        raise InputError(f"line {line}: {name} must be finite, got {shown(text)}")
    return value


def index(line: int, name: str, text: str, below: int = LARGEST_ID) -> int:
    """A whole number of no sign, below a limit."""
    value = number(line, name, text)
    if value != int(value) or not 0 <= value < below:
        raise InputError(f"line {line}: {name}: expected a whole number from 0 to {below - 1}, got {shown(text)}")
    return int(value)


def table(path: Path, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> tuple[dict[str, Any], Any]:
    """Read a CSV file with a header in any order; columns by name, and the line of each row."""
    rows = csv_rows(path)
    line, header = next(rows, (1, []))
    names = [name.lower() for name in header]
    if header and not set(names) & set(required):
        has = f"there are {', '.join(map(shown, header))}, and a model has {', '.join(required)}"
        raise InputError(f"line {line}: no column of a model: {has}; `estimate` makes a model of a log")
    for name in names:
        if name not in (*required, *optional) or names.count(name) > 1:
            why = "twice" if names.count(name) > 1 else f"unknown; known: {', '.join((*required, *optional))}"
            raise InputError(f"line {line}: column {shown(name)} is {'given ' if why == 'twice' else ''}{why}")
    for name in required:
        if name not in names:
            raise InputError(f"line {line}: column {name!r} is missing")
    columns = [array("d") for _ in names]
    lines = array("q")
    for line, fields in rows:
        if len(fields) != len(names):
            raise InputError(f"line {line}: expected {len(names)} fields, got {len(fields)}")
        for name, column, text in zip(names, columns, fields, strict=True):
            column.append(index(line, name, text) if name.startswith("id") else number(line, name, text))
        lines.append(line)
    found = {name: np.array(column) for name, column in zip(names, columns, strict=True)}
    ids = {name: column.astype(np.int64) if name.startswith("id") else column for name, column in found.items()}
    return ids, lines
