"""Go through the runs that have no row yet, one row after the other, with a progress bar."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from drmdp.study.machine import one_thread
from drmdp.study.measure import measure
from drmdp.study.methods import METHODS
from drmdp.study.rows import NAME, Writer
from drmdp.study.specification import PAIRS, Run

TINY = (4, 2, 2)
"""Sizes of the instance on which compilation is warmed."""
Step = Callable[[Run | None], None]


def run_all(runs: list[Run], folder: str | Path, bar: bool | None = None) -> int:
    """Measure what is not there yet; return how many rows were added."""
    with one_thread(), Writer(Path(folder) / NAME) as writer:
        todo = [run for run in runs if run.key not in writer.keys]
        warmed: set[tuple[str, ...]] = set()
        with progress(todo, bar) as step:
            if todo:
                compile_ahead(todo)
            for run in todo:
                step(run)
                warm(run, warmed)
                writer.append(measure(run))
                step(None)
    return len(todo)


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

_COMPILE = "from drmdp.study.runner import compile_pairs; compile_pairs({!r})"


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
    for job in jobs:
        job.wait()


def compile_pairs(pairs: list[tuple[str, str, bool]]) -> None:
    """Compile the operators of some pairs, and where asked the first-order method, by solving a tiny problem."""
    from drmdp import instances
    from drmdp.ambiguity import Wasserstein
    from drmdp.api import certify, solve
    from drmdp.solvers.first_order import FirstOrder

    model = instances.perturb(instances.garnet(4, 2), 2)
    for metric, order, first_order in pairs:
        ball = Wasserstein(0.1, metric, float(order), support="all")  # type: ignore[arg-type]
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


@contextmanager
def progress(todo: list[Run], shown: bool | None) -> Iterator[Step]:
    """A bar on standard error with the time left; by default on terminals only."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda run: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    total, begin, done, count = sum(map(effort, todo)), time.monotonic(), 0.0, 0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("compiling", total=total or 1.0, left="")
        current: list[Run] = []

        def step(run: Run | None) -> None:
            nonlocal done, count
            if run is not None:
                current[:] = [run]
                name = (
                    f"{count + 1}/{len(todo)} {run.study} {run.family} {run.n_states}/{run.n_actions}/{run.n_kernels}"
                )
                display.update(task, description=f"{name} {run.method}")
                return
            done, count = done + effort(current[0]), count + 1
            left = (time.monotonic() - begin) / done * (total - done)
            display.update(
                task, completed=done, left=f"{left / 60:.0f} min left" if left > 90 else f"{left:.0f} s left"
            )

        yield step
