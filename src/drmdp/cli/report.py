"""`drmdp solve --report`: the page, with a curve over radii around the one asked for."""

from __future__ import annotations

import math
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import HorizonSolution, Solution

RADII = 11
PLAN_RADII = 5
LARGE = 1_000_000
"""Models with more stored probabilities, in all stages of a plan, get a curve only on request."""


def options(command: Any) -> Any:
    """Options of a page about a solution."""
    for option in (
        click.option("--baseline", help="Current practice, to compare with: a policy as `drmdp evaluate` reads it."),
        click.option("--unit", help="Of costs and rewards, as in €; shown in the report."),
        click.option("--title", help="Of the report."),
        click.option(
            "--report-radii",
            type=int,
            help="Radii to compare, up to twice the ball's; by default 11, of a plan 5, and 0 for large models.",
        ),
        click.option("--report", help="Write a page about the result here (.html); needs the extra `report`."),
    ):
        command = option(command)
    return command


def check(path: str | None, radii: int | None, **words: str | None) -> None:
    """Refuse what cannot be written, or drawn, before any work is done."""
    if radii is not None and radii != 0 and radii < 2:
        raise InputError(f"--report-radii: expected 0 or at least 2, got {radii}")
    if path is None:
        if radii is not None:
            raise InputError("--report-radii: there is no --report")
        for name, given in words.items():
            if given is not None:
                raise InputError(f"--{name}: there is no --report")
        return
    from drmdp.report.page import check_target

    check_target(path)


def write(
    model: Model,
    ball: AmbiguitySet,
    solution: Solution,
    path: str,
    radii: int | None,
    deadline: float = math.inf,
    **words: Any,
) -> None:
    """Write the page about a solution, without the curve if time is up."""
    from drmdp import radius
    from drmdp.core import clock
    from drmdp.radius.path import CUT_SHORT

    n = radii if radii is not None else RADII if model.blocks.data.size <= LARGE else 0
    sweep = None
    left = deadline - clock.now()
    alike = isinstance(ball.radius, float)  # a radius for each pair has no curve
    if n and ball.sized and alike and left > 0 and solution.status not in CUT_SHORT:
        far = float(ball.saturation(model).max())
        top = min(2 * float(ball.radius), far) or far
        limits: Any = {"top": top if 0 < top < math.inf else None, "max_seconds": left}
        sweep = radius.path(model, ball, n, solution.asked.tol, solution.asked.rtol, **limits)
    solution.report(path, sweep, command=command(), **words)


def write_plan(plan: HorizonSolution, path: str, radii: int | None, deadline: float = math.inf, **words: Any) -> None:
    """Write the page about a plan, with as many radii as there is time for."""
    stages = plan.natures.stages
    small = len(stages) * stages.first.blocks.data.size <= LARGE
    n = radii if radii is not None else PLAN_RADII if small else 0
    plan.report(path, command=command(), sweep=_other_plans(plan, n, deadline) if n else None, **words)


def _other_plans(plan: HorizonSolution, n: int, deadline: float) -> dict[float, HorizonSolution] | None:
    """Plans for sets of up to twice the size; nothing where sets have no radius, or it is 0."""
    import numpy as np

    from drmdp.core import clock
    from drmdp.radius.path import CUT_SHORT
    from drmdp.solvers.horizon import finite_horizon

    models, balls = list(plan.natures.stages.given), plan.natures.stages.balls
    own = float(np.max(balls[0].radius)) if balls[0].sized else 0.0
    if own == 0 or not all(ball.sized and getattr(ball, "level", None) is None for ball in balls):
        return None
    found = {own: plan}
    for factor in np.linspace(0, 2, n).tolist():
        if factor != 1 and plan.status not in CUT_SHORT and clock.now() < deadline:
            sized = {id(ball): ball.with_radius(factor * ball.radius).facing(ball.nature) for ball in balls}
            ends: Any = {"max_seconds": None if deadline == math.inf else deadline - clock.now()}
            given: Any = {name: getattr(plan, name) for name in ("final", "costs", "discount", "half_cycle")}
            other = finite_horizon(models, [sized[id(ball)] for ball in balls], **given, **ends)
            if other.status not in CUT_SHORT:
                found[factor * own] = other
    return found


def command() -> str:
    """How this run was asked for."""
    return shlex.join(["drmdp", *sys.argv[1:]])
