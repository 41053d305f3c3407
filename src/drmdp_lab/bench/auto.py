"""The default method against value iteration with exact updates, to the same certified gap, on the instances of the reproduction.

CPU milliseconds of one thread, in turn, the least of several; a row for the seeds of an instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from drmdp.api import solve
from drmdp_lab.bench.nominal import in_turn
from drmdp_lab.paper.measure import problem
from drmdp_lab.paper.specification import CERTIFIED, SCALES, Run, expand


@dataclass(frozen=True)
class AutoRow:
    """Times of the seed with the largest ratio."""

    instance: str
    states: int
    actions: int
    kernels: int
    discount: float
    ball: str
    radius: float
    seeds: int
    auto_ms: float
    vi_ms: float
    worst_ratio: float


def auto(scale: str = "standard") -> Iterator[AutoRow]:
    """The table."""
    for _, group in groupby(runs(scale), key=_kind):
        seeds = list(group)
        timed = [_times(run) for run in seeds]
        ours, theirs = max(timed, key=lambda pair: pair[0] / pair[1])
        run = seeds[0]
        sizes = run.n_states, run.n_actions, run.n_kernels
        ball = f"({run.metric}, {run.order:g})"
        yield AutoRow(
            run.family, *sizes, run.discount, ball, run.radius, len(seeds), 1e3 * ours, 1e3 * theirs, ours / theirs
        )


def runs(scale: str) -> list[Run]:
    """A run for each instance that value iteration solves in the reproduction, those that differ by their seed together."""
    found = {
        run.instance: run
        for run in expand(SCALES[scale])
        if run.task == "solve" and run.method == "exact-vi" and run.rule == CERTIFIED
    }
    return sorted(found.values(), key=lambda run: (run.numbers, _kind(run), run.seed))


def _kind(run: Run) -> tuple[object, ...]:
    return run.family, run.n_states, run.n_actions, run.n_kernels, run.discount, run.metric, run.order, run.radius


def _times(run: Run) -> list[float]:
    model, ball = problem(run)
    return in_turn(
        lambda: solve(model, ball, tol=run.tol, threads=1, progress=False),
        lambda: solve(model, ball, "value-iteration", tol=run.tol, threads=1, progress=False),
    )
