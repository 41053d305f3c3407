"""A pass: go through the runs that have no row yet, one row after the other, each run first once,
then those of short calls a second time, and at last those whose repeats scatter once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from drmdp.ui import clock
from drmdp.ui.progress import stage
from drmdp_lab.paper.blocks import Run
from drmdp_lab.paper.clocks import SHORT
from drmdp_lab.paper.measure import measure
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.provenance import now, refuse_strangers
from drmdp_lab.paper.quiet import Neighbours, one_thread, pinned
from drmdp_lab.paper.records import (
    AGAIN,
    COUNTS,
    NAME,
    NUMBERS,
    REACHED,
    SECOND,
    TEXTS,
    Row,
    RowWriter,
    joined,
    scattered,
    settings,
)

TINY = (4, 2, 2)
"""Sizes of the instance that a method is tried on before."""
OF_A_VISIT = ("commit", "seconds", "cpu_seconds", "cpu_times", "repeats", "scatter")
"""What later visits to a run keep of what they measured."""


class Done(NamedTuple):
    """Rows that were added, and runs that are still to be visited."""

    added: int
    left: int


def run_all(runs: list[Run], folder: str | Path, max_seconds: float | None = None) -> Done:
    """Measure what is not there yet, until time is up; a run that this cuts short leaves no row."""
    with one_thread(), pinned() as core, RowWriter(Path(folder) / NAME) as writer:
        todo = [run for run in runs if (run.key, 0) not in writer.lines]
        work = Pass(writer, core, clock.deadline(max_seconds))
        added = work.visit(todo, 0)
        left = len(todo) - added
        for visit, wanted in ((SECOND, _short), (AGAIN, scattered)):
            if not left:
                todo = _unvisited(runs, writer, visit, wanted)
                left = len(todo) - work.visit(todo, visit)
    return Done(added, left)


def _short(row: Row) -> bool:
    return bool(row["repeats"] > 1 and row["cpu_seconds"] < SHORT)


def _unvisited(
    runs: list[Run], writer: RowWriter, visit: int, wanted: Callable[[Row], bool]
) -> list[Run]:
    """Runs that came to their end, whose rows ask for a visit that has not been made."""
    rows = {
        row["key"]: row
        for row in joined(list(writer.lines.values()))
        if "cpu_times" in row and row["status"] in REACHED and not row.get("shared")
    }
    return [
        run
        for run in runs
        if run.key in rows and wanted(rows[run.key]) and (run.key, visit) not in writer.lines
    ]


class Pass:
    """The visits of one session, each with when it was, on which core, and beside what load."""

    def __init__(self, writer: RowWriter, core: int | None, deadline: float) -> None:
        self._writer, self._core, self._deadline = writer, core, deadline
        self._neighbours, self._warmed = Neighbours(), set[tuple[str, ...]]()
        self._measured = {
            settings(row): row
            for (_, visit), row in writer.lines.items()
            if not visit and not row.get("shared")
        }

    def visit(self, todo: list[Run], visit: int) -> int:
        """Visit each run and write its row; how many were, before time was up."""
        if not todo:
            return 0
        refuse_strangers(list(self._writer.lines.values()))
        shown = Shown(todo)
        with stage("runs") as progress:
            progress.detail, progress.share = shown.describe, shown.share
            for run in todo:
                row = None if visit else self._shared(run)
                if row is None:
                    warm(run, self._warmed)
                    row = self._timed(run)
                if row is None:
                    break
                self._writer.append({**(_brief(row) if visit else row), "visit": visit})
                shown.advance()
        return shown.count

    def _shared(self, run: Run) -> Row | None:
        """The row of the same run in another study."""
        row = self._measured.get(run.settings)
        return row and {**row, "key": run.key, "study": run.study, "shared": True}

    def _timed(self, run: Run) -> Row | None:
        """Row of a run, or None if time is up before it would end of itself."""
        left = self._deadline - clock.now()
        if left <= 0:
            return None
        started, begin = now(), clock.now()
        row = measure(run if left >= run.limit else replace(run, limit=left))
        if left < run.limit and (
            clock.now() > self._deadline or row["status"] in ("time_limit", "extrapolated")
        ):
            return None
        beside = {"core": self._core, "load": self._neighbours.beside()}
        row = {**row, "started": started, "took": round(clock.now() - begin, 3), **beside}
        self._measured.setdefault(run.settings, row)
        return row


def _brief(row: Row) -> Row:
    """What a later visit adds."""
    names = (*TEXTS, *COUNTS, *NUMBERS, *OF_A_VISIT, "session", "started", "took", "load")
    return {name: row[name] for name in names if name in row}


def warm(run: Run, warmed: set[tuple[str, ...]]) -> None:
    """Load what a run needs, or let a baseline be compiled, on a tiny instance, unless that was
    done.
    """
    what = (run.task, run.method, run.metric, str(run.order), run.rule)
    if what not in warmed:
        S, A, N = TINY
        own = replace(
            run,
            n_states=S,
            n_actions=A,
            n_kernels=min(N, run.n_kernels),
            seed=0,
            radius=min(run.radius, 0.1),
        )
        measure(replace(own, limit=max(run.limit, 1.0), tol=max(run.tol, 1e-3)))
        warmed.add(what)


# ---------------------------------------------------------------------- progress


def effort(run: Run) -> float:
    """Rough seconds of a run on one core, only for the time left."""
    kind = METHODS[run.method].kind
    if kind in ("conic", "update") or run.method == "gap-conic":
        update = 2e-6 * run.numbers / run.n_states  # one state
        return 0.1 + min(update * run.n_states * 8, run.limit) + 4 * update
    if kind == "first-order":
        many = 10 if run.task == "curve" else 1
        return 0.1 + min(1e-6 * run.numbers * many * (1 if run.method == "fast" else 5), run.limit)
    return 0.1 + 2e-7 * run.numbers


class Shown:
    """The runs as a stage of work: which one, how much is done, how long the others will take."""

    def __init__(self, todo: list[Run]) -> None:
        self._todo, self._begin = todo, clock.now()
        self._total, self._done, self.count = sum(map(effort, todo)), 0.0, 0

    def advance(self) -> None:
        """A run is done."""
        self._done += effort(self._todo[self.count])
        self.count += 1

    def describe(self) -> str:
        """Name the run, and the time left once there is something to go by."""
        run = self._todo[min(self.count, len(self._todo) - 1)]
        sizes = f"{run.n_states}/{run.n_actions}/{run.n_kernels}"
        name = f"{self.count + 1:,} of {len(self._todo):,} {run.study} {run.family} {sizes} {run.method}"
        if not self._done:
            return name
        left = (clock.now() - self._begin) / self._done * (self._total - self._done)
        return f"{name}, {f'{left / 60:.0f} min' if left > 90 else f'{left:.0f} s'} left"

    def share(self) -> float:
        """How much is done."""
        return self._done / self._total
