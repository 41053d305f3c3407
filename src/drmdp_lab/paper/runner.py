"""Go through the runs that have no row yet, one row after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from drmdp.core import clock
from drmdp.core.progress import stage
from drmdp_lab.paper.measure import measure
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.provenance import one_thread
from drmdp_lab.paper.records import NAME, Row, Writer
from drmdp_lab.paper.specification import Run

TINY = (4, 2, 2)
"""Sizes of the instance that a method is tried on before."""


class Done(NamedTuple):
    """Rows that were added, and runs that still have none."""

    added: int
    left: int


def run_all(runs: list[Run], folder: str | Path, max_seconds: float | None = None) -> Done:
    """Measure what is not there yet, until time is up; a run that this cuts short leaves no row."""
    deadline = clock.deadline(max_seconds)
    with one_thread(), Writer(Path(folder) / NAME) as writer:
        todo = [run for run in runs if run.key not in writer.keys]
        if not todo:
            return Done(0, 0)
        shown, warmed = Shown(todo), set[tuple[str, ...]]()
        with stage("runs") as own:
            own.detail, own.share = shown.describe, shown.share
            for run in todo:
                warm(run, warmed)
                row = _in_time(run, deadline)
                if row is None:
                    break
                writer.append(row)
                shown.advance()
    return Done(shown.count, len(todo) - shown.count)


def _in_time(run: Run, deadline: float) -> Row | None:
    """Row of a run, or None if time is up before it would end of itself."""
    left = deadline - clock.now()
    if left <= 0:
        return None
    row = measure(run if left >= run.limit else replace(run, limit=left))
    cut = left < run.limit and (clock.now() > deadline or row["status"] in ("time_limit", "extrapolated"))
    return None if cut else row


def warm(run: Run, warmed: set[tuple[str, ...]]) -> None:
    """Load what a run needs, or let a baseline be compiled, on a tiny instance, unless that was done."""
    what = (run.task, run.method, run.metric, str(run.order), run.rule)
    if what not in warmed:
        S, A, N = TINY
        own = replace(
            run, n_states=S, n_actions=A, n_kernels=min(N, run.n_kernels), seed=0, radius=min(run.radius, 0.1)
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
        return 0.1 + min(1e-6 * run.numbers * many * (1 if run.method == "fast" else 20), run.limit)
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
