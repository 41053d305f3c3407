"""Go through the runs that have no row yet, one row after the other."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from drmdp.core import clock
from drmdp.core.progress import stage
from drmdp.sets import PAIRS
from drmdp_lab.paper.measure import measure
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.provenance import one_thread
from drmdp_lab.paper.records import NAME, Row, Writer
from drmdp_lab.paper.specification import Run

TINY = (4, 2, 2)
"""Sizes of the instance on which compilation is warmed."""


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
        with stage("runs", "the balls of the study") as own:
            own.detail, own.share = shown.describe, shown.share
            compile_ahead(todo)
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
    """Compile what a run needs, on a tiny instance, unless that was done."""
    what = (run.task, run.method, run.metric, str(run.order), run.rule)
    if what not in warmed:
        S, A, N = TINY
        own = replace(
            run, n_states=S, n_actions=A, n_kernels=min(N, run.n_kernels), seed=0, radius=min(run.radius, 0.1)
        )
        measure(replace(own, limit=max(run.limit, 1.0), tol=max(run.tol, 1e-3)))
        warmed.add(what)


# ---------------------------------------------------------------------- compilation, by two processes

_COMPILE = "from drmdp_lab.paper.runner import compile_pairs; compile_pairs({!r})"


def compile_ahead(runs: list[Run]) -> None:
    """Fill the cache of compiled code from two processes, when more than one pair is needed: one takes those with ℓ2."""
    needed = {(run.metric, run.order) for run in runs}
    first = any(METHODS[run.method].kind == "first-order" for run in runs)
    if len(needed) < 2:
        return
    halves = [
        [pair for pair in PAIRS if (pair[0], float(pair[1])) in needed and (pair[0] == "l2") == side]
        for side in (True, False)
    ]
    jobs = [
        subprocess.Popen([sys.executable, "-c", _COMPILE.format([(m, str(p), first and side == 0) for m, p in half])])
        for side, half in enumerate(halves)
        if half
    ]
    clock.begin_compiling()
    try:
        for job in jobs:
            job.wait()
    finally:
        clock.end_compiling()


def compile_pairs(pairs: list[tuple[str, str, bool]]) -> None:
    """Compile the operators of some pairs, and where asked the first-order method, by solving a tiny problem."""
    from drmdp import instances
    from drmdp.api import certify, solve
    from drmdp.sets import Wasserstein
    from drmdp.solvers.first_order import FirstOrder

    model = instances.perturb(instances.garnet(4, 2), 2)
    for metric, order, first_order in pairs:
        ball = Wasserstein(0.1, metric, float(order), support="all")
        found = solve(model, ball, tol=0.05, threads=1)
        certify(model, ball, found.policy, found.kernel)
        if first_order:
            solve(model, ball, FirstOrder(), tol=0.05, threads=1, max_iters=5)


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
