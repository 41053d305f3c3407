"""Rows on disk: a JSON object a line, in a file that is only appended to.

A row is one `write` of a whole line, flushed and synchronised before the next run starts. A process
killed in the middle of that leaves a line without its end; the next one to open the file cuts that
off, and the run it belonged to is done again.

A line is one visit to a run. Short calls are visited again later in the pass, so that their repeats
are spread over it; a run whose repeats scatter is visited once more. `joined` makes one row of the
visits. A run that two studies share is measured once and has a row in each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from drmdp.errors import InputError, shown
from drmdp.io.archives import parse_json
from drmdp_lab.paper.clocks import summary

Row = dict[str, Any]
NAME = "rows.jsonl"
TEXTS = ("key", "study", "task", "family", "metric", "method", "rule", "status")
COUNTS = ("n_states", "n_actions", "n_kernels", "seed")
NUMBERS = ("discount", "radius", "tol")
MEASURED = (
    "gap",
    "duality_gap",
    "n_iters",
    "kernel_passes",
    "seconds",
    "cpu_seconds",
    "loss",
    "own_gap",
    "memory_mb",
    "scatter",
    "load",
    "took",
)
REACHED = ("solved", "stopped")
"""Statuses of runs that ended by their own rule."""
SECOND, AGAIN = 1, 2
"""Visits after the first: that of short calls, and that of runs whose repeats scatter."""
SCATTERED = 0.2
"""Interquartile range of repeats, over their median, beyond which a run is measured again."""
BESIDE = ("session", "started", "took", "load")
"""What each visit tells of the pass."""


def read(path: str | Path) -> list[Row]:
    """Rows of a file, one a run; a line without its end is left out."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return joined(_parse(path, content[: content.rfind(b"\n") + 1]))


def settings(row: Row) -> str:
    """What a row measures, whatever study it is in: its key without the first part."""
    return str(row["key"]).partition("|")[2]


def joined(lines: list[Row]) -> list[Row]:
    """One row a run: the repeats of its visits together; of a run that was measured again because
    its repeats scattered only the new ones, unless they scatter too.
    """
    visits: dict[str, list[Row]] = {}
    for line in lines:
        if "cpu_times" in line and not line.get("shared"):
            visits.setdefault(settings(line), []).append(line)
    return [
        _joined(line, visits.get(settings(line), [line])) if "cpu_times" in line else line
        for line in lines
        if not line.get("visit")
    ]


def _joined(row: Row, visits: list[Row]) -> Row:
    """The row of a first visit, with the times of all."""
    last = visits[-1]
    calm = last["visit"] == AGAIN and not scattered(last)
    times = [time for line in (visits[-1:] if calm else visits) for time in line["cpu_times"]]
    loads = [line["load"] for line in visits if line["load"] is not None]
    return {
        **row,
        **summary(times),
        "again": last["visit"] == AGAIN,
        "load": max(loads) if loads else None,
        "visits": [{name: line[name] for name in BESIDE} for line in visits],
    }


def scattered(row: Row) -> bool:
    """Whether the repeats of a row lie too far apart."""
    found = row.get("scatter")
    return found is not None and found > SCATTERED


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
                raise InputError(
                    f"{name}: {shown(row[name])}" if name in row else f"{name} is missing"
                )
    for name in MEASURED:
        if not isinstance(row.get(name), int | float | None):
            raise InputError(f"{name}: {shown(row[name])}")


def _place(row: Row) -> tuple[str, int]:
    return row["key"], row.get("visit", 0)


class RowWriter:
    """Context manager that holds the file for itself; `lines` are the visits that are done, by key
    and number.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._stream: BinaryIO | None = None
        self.lines: dict[tuple[str, int], Row] = {}

    def __enter__(self) -> RowWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        stream = self._stream = self._path.open("ab+", buffering=0)
        try:
            _lock(stream, self._path)
            stream.seek(0)
            content = stream.read()
            whole = content.rfind(b"\n") + 1
            self.lines = {_place(row): row for row in _parse(self._path, content[:whole])}
            if whole < len(content):
                stream.truncate(whole)
        except BaseException:
            stream.close()
            raise
        return self

    def append(self, row: Row) -> None:
        """Write a row for good."""
        assert self._stream is not None
        if _place(row) in self.lines:
            raise ValueError(f"there is a row {row['key']!r} already")
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        if self._stream.write(line) != len(line):
            raise OSError(f"{self._path}: the disk is full")
        os.fsync(self._stream.fileno())
        self.lines[_place(row)] = row

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
