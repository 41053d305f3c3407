"""What a certified solution costs, and what value iteration with a conic solver would."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from drmdp import instances
from drmdp.bellman.conic.operator import ConicOperator
from drmdp.bellman.exact import ExactOperator
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.discounted import value_range
from drmdp.model import Model
from drmdp.sets import PAIRS, Wasserstein
from drmdp.solvers.loop import run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem
from drmdp.solvers.value_iteration import ValueIteration


@dataclass(frozen=True)
class SolveRow:
    """Cost of a certified solution by the default method, one thread."""

    instance: str
    metric: str
    order: float
    radius: float
    discount: float
    sweeps: dict[str, float]  # to a relative certified gap, evaluation sweeps included
    ms: dict[str, float]  # CPU
    status: str


def solve_row(name: str, model: Model, ball: Wasserstein, gaps: tuple[float, ...] = (1e-1, 1e-3, 1e-6)) -> SolveRow:
    """Measure the default method to relative certified gaps."""
    sweeps, ms, status = {}, {}, ""
    for gap in gaps:
        tolerance = Tolerance(gap * max(map(abs, value_range(model))))
        for _ in range(2):  # the first run loads what is needed
            operator = ExactOperator(model, ball, threads=1)
            begin = time.process_time()
            found = run(PolicyIteration(), Problem(operator), start=None, tolerance=tolerance)
            seconds = time.process_time() - begin
        sweeps[f"{gap:g}"], ms[f"{gap:g}"] = found.history[-1].kernel_passes, 1e3 * seconds
        status = str(found.status)
    return SolveRow(name, ball.metric, ball.order, float(ball.radius), model.discount, sweeps, ms, status)


def solves() -> Iterator[SolveRow]:
    """The table of solution costs."""
    for discount in (0.8, 0.95, 0.99, 0.999):
        for name, model, radius in (
            ("garnet", instances.perturb(instances.garnet(30, 30, discount=discount), 30), math.sqrt(6)),
            ("machine", instances.perturb(instances.machine(50, discount=discount), 30), 0.5),
            ("forest", instances.perturb(instances.forest(50, discount=discount), 30), 0.5),
            ("ring", instances.ring(200, 10, discount=discount), 0.02),
            ("cycle", instances.cycle(150, 5, discount=discount), 0.02),
        ):
            for metric, order in PAIRS:
                yield solve_row(name, model, Wasserstein(radius, metric, order, support="all"))


@dataclass(frozen=True)
class ConicRow:
    """The default method against value iteration with conic updates at the same certified gap, CPU seconds."""

    radius: float
    tol: float
    exact_seconds: float
    conic_states: int  # updated by the conic solver, the rest is extrapolated
    conic_state_seconds: float
    conic_sweeps: float  # of value iteration, counted with exact updates
    ratio: float


def against_conic(states: int = 4, tol: float = 0.05) -> Iterator[ConicRow]:
    """Garnet S = A = 30, N = 30, (l2, 2): the conic side is a few states, times S, times the sweeps that value iteration needs."""
    model = instances.perturb(instances.garnet(30, 30), 30)
    for radius in (0.1, math.sqrt(6)):
        ball = Wasserstein(radius, support="all")
        times = []
        for _ in range(5):
            operator = ExactOperator(model, ball, threads=1)
            begin = time.process_time()
            run(PolicyIteration(), Problem(operator), start=None, tolerance=Tolerance(tol))
            times.append(time.process_time() - begin)
        swept = run(
            ValueIteration(), Problem(ExactOperator(model, ball, threads=1)), start=None, tolerance=Tolerance(tol)
        )
        conic = ConicOperator(model, ball)
        value = swept.middle
        conic.update(value, 0, 1)  # builds the program
        begin = time.process_time()
        for s in range(1, states + 1):
            conic.update(value, s, s + 1)
        each = (time.process_time() - begin) / states
        exact, sweeps = float(np.median(times[1:])), swept.history[-1].kernel_passes
        yield ConicRow(radius, tol, exact, states, each, sweeps, each * model.n_states * sweeps / exact)
