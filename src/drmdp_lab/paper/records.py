"""Rows on disk: a JSON object a line, in a file that is only appended to.

A row is one `write` of a whole line, flushed and synchronised before the next run starts. A process killed in the middle of that
leaves a line without its end; the next one to open the file cuts that off, and the run it belonged to is done again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from drmdp.core.archives import parse_json
from drmdp.errors import InputError, shown

Row = dict[str, Any]
NAME = "rows.jsonl"
TEXTS = ("key", "study", "task", "family", "metric", "method", "rule", "status")
COUNTS = ("n_states", "n_actions", "n_kernels", "seed")
NUMBERS = ("discount", "radius", "tol")
MEASURED = ("gap", "duality_gap", "n_iters", "kernel_passes", "seconds", "cpu_seconds", "loss", "own_gap", "memory_mb")
REACHED = ("solved", "stopped")
"""Statuses of runs that ended by their own rule."""


def read(path: str | Path) -> list[Row]:
    """Rows of a file; a line without its end is left out."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return _parse(path, content[: content.rfind(b"\n") + 1])


def _parse(path: str | Path, whole: bytes) -> list[Row]:
    found = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            row = parse_json(line)
            _check(row)
        except InputError as error:
            raise InputError(f"{path}, line {number}: not a row: {error}") from None
        found.append(row)
    return found


def _check(row: Any) -> None:
    """Refuse what no run has written."""
    if not isinstance(row, dict):
        raise InputError(f"expected an object, got {type(row).__name__}")
    for names, kinds in ((TEXTS, str), (COUNTS, int), (NUMBERS, int | float)):
        for name in names:
            if not isinstance(row.get(name), kinds) or isinstance(row[name], bool):
                raise InputError(f"{name}: {shown(row[name])}" if name in row else f"{name} is missing")
    for name in MEASURED:
        if not isinstance(row.get(name), int | float | None):
            raise InputError(f"{name}: {shown(row[name])}")


class Writer:
    """Context manager that holds the file for itself; `keys` are the runs that are done."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._stream: BinaryIO | None = None
        self.keys: set[str] = set()

    def __enter__(self) -> Writer:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        stream = self._stream = self._path.open("ab+", buffering=0)
        try:
            _lock(stream, self._path)
            stream.seek(0)
            content = stream.read()
            whole = content.rfind(b"\n") + 1
            self.keys = {row["key"] for row in _parse(self._path, content[:whole])}
            if whole < len(content):
                stream.truncate(whole)
        except BaseException:
            stream.close()
            raise
        return self

    def append(self, row: Row) -> None:
        """Write a row for good."""
        assert self._stream is not None
        if row["key"] in self.keys:
            raise ValueError(f"there is a row {row['key']!r} already")
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        if self._stream.write(line) != len(line):
            raise OSError(f"{self._path}: the disk is full")
        os.fsync(self._stream.fileno())
        self.keys.add(row["key"])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stream is not None
        self._stream.close()  # and with it the lock


def _lock(stream: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"{path}: another process is writing to it") from None
