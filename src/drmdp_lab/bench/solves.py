"""What a certified solution costs."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from drmdp import instances
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.discounted import value_range
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS, Wasserstein
from drmdp.solvers.loop import run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem

REPEATS, SHORT = 6, 0.05
"""Runs of which the first does not count, if one takes less than so many seconds; else two."""


@dataclass(frozen=True)
class SolveRow:
    """Cost of a certified solution by the default method, one thread."""

    instance: str
    set: str
    radius: float
    discount: float
    sweeps: dict[str, float]  # to a relative certified gap, evaluation sweeps included
    ms: dict[str, float]  # CPU
    status: str


def solve_row(
    name: str, model: Model, ambiguity: Wasserstein, gaps: tuple[float, ...] = (1e-1, 1e-3, 1e-6)
) -> SolveRow:
    """Measure the default method to relative certified gaps."""
    sweeps, ms, status = {}, {}, ""
    for gap in gaps:
        tolerance = Tolerance(gap * max(map(abs, value_range(model))))
        times: list[float] = []
        while len(times) < 2 or (len(times) < REPEATS and times[-1] < SHORT):
            operator = ExactOperator(model, ambiguity, threads=1)
            begin = time.process_time()
            found = run(PolicyIteration(), Problem(operator), start=None, tolerance=tolerance)
            times.append(time.process_time() - begin)
        middle = statistics.median(times[1:])  # the first run loads what is needed
        sweeps[f"{gap:g}"], ms[f"{gap:g}"] = found.history[-1].kernel_passes, 1e3 * middle
        status = str(found.status)
    return SolveRow(
        name,
        ambiguity.short,
        float(ambiguity.radius),
        model.discount,
        sweeps,
        ms,
        status,
    )


def solves() -> Iterator[SolveRow]:
    """The table of solution costs."""
    for discount in (0.8, 0.95, 0.99, 0.999):
        for name, model, radius in (
            (
                "garnet",
                instances.perturb(instances.garnet(30, 30, discount=discount), 30),
                math.sqrt(6),
            ),
            ("machine", instances.perturb(instances.machine(50, discount=discount), 30), 0.5),
            ("forest", instances.perturb(instances.forest(50, discount=discount), 30), 0.5),
            ("ring", instances.ring(200, 10, discount=discount), 0.02),
            ("cycle", instances.cycle(150, 5, discount=discount), 0.02),
        ):
            for metric, order in PAIRS:
                yield solve_row(name, model, Wasserstein(radius, metric, order, support="all"))
