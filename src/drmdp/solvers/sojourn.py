"""Averages per unit of time: the rate g at which steps of the operator with costs c − gτ are 0.

Newton's method in g: the average of c − gτ falls by the time that a step of the pair lasts on
average, so that the next rate is the cost of the pair per unit of time. Each rate is a separate
problem, which begins where the one before ended; whatever the rate, bounds hold
(`drmdp.criteria.average`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drmdp._typing import Array
from drmdp.criteria import criterion_of
from drmdp.criteria.average import Average
from drmdp.model import Model
from drmdp.model.rates import at_rate
from drmdp.operators.operator import Operator
from drmdp.solution import Status
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.problem import Method, Problem

ROUNDS, IDLE = 40, 3
"""Limits on rates, and on rates in a row that do not halve the gap."""


def run_at_rates(
    method: Method,
    make: Callable[[Model], Operator],
    model: Model,
    name: str | None,
    policy: Array | None = None,
    start: Array | None = None,
    **settings: Any,
) -> tuple[Problem, Outcome]:
    """`drmdp.solvers.loop.run` with the operator that is made of a model; where steps last
    differently, at one rate after the other.
    """
    problem = Problem(make(model), policy, criterion=criterion_of(model, name))
    best = problem, run(method, problem, start=start, **settings)
    outcome, idle, within = best[1], 0, (float("-inf"), float("inf"))
    for _ in range(ROUNDS):
        criterion, side = problem.criterion, outcome.best.sweeps[1]
        if not isinstance(criterion, Average) or not criterion.uneven or side is None:
            break
        if outcome.status is not Status.precision_limit or idle >= IDLE:
            break
        within = max(within[0], float(outcome.lower[0])), min(within[1], float(outcome.upper[0]))
        rate = criterion.better(side, within)
        paced, passes = at_rate(model, rate), problem.kernel_passes
        average = Average(paced, rate, criterion.again)
        problem = Problem(make(paced), policy, criterion=average, kernel_passes=passes)
        outcome = run(method, problem, start=side.value, **settings)
        idle = 0 if outcome.best.gap <= best[1].best.gap / 2 else idle + 1
        if outcome.best.gap < best[1].best.gap or outcome.status is Status.solved:
            best = problem, outcome
    return best
