"""`drmdp solve --report`: the page, with a curve over radii around the one asked for."""

from __future__ import annotations

import math
import shlex
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp.cli.option_groups import REPORT, integer, options
from drmdp.cli.options import refuse
from drmdp.cli.show import fields
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.ui import clock

if TYPE_CHECKING:
    from drmdp.solution import HorizonSolution, Solution

RADII = 11
PLAN_RADII = 5
LARGE = 1_000_000
"""Models with more stored probabilities, in all stages of a plan, get a curve only on request."""


REPORT_OPTIONS = options(
    REPORT,
    report="Write a page about the result here (.html); needs the extra `report`.",
    report_radii=integer(
        "Radii to compare, up to twice the ball's, or levels, from half to twice its own; by "
        "default 11, of a plan 5, and 0 for large models."
    ),
    title="Of the report.",
    unit="Of costs and rewards, as in €; shown in the report.",
    baseline="Current practice, to compare with: a policy as `drmdp evaluate` reads it.",
)


def check(asked: Any) -> None:
    """Refuse what cannot be written, or drawn, before any work is done."""
    radii = asked.report_radii
    if radii is not None and radii != 0 and radii < 2:
        raise InputError(f"--report-radii: expected 0 or at least 2, got {radii}")
    if asked.report is None:
        refuse(asked, REPORT_OPTIONS, "there is no --report")
        return
    from drmdp.report.page import check_target

    check_target(asked.report)


def check_sizes(asked: Any, sets: list[AmbiguitySet], plan: bool = False) -> None:
    """Refuse --report-radii for sets that have no size to compare others with."""
    for each in sets if asked.report_radii else ():
        if not each.sized:
            why = f"the set ({each.short}) has no radius"
        elif plan:
            why = "a plan has no curve over levels" if each.size_name == "level" else ""
        else:
            several = "the set has several radii, and a curve is over one"
            why = several if np.ndim(each.radius) else ""
        if why:
            raise InputError(f"--report-radii: {why}; leave it out")


def _words(asked: Any, practice: Any) -> dict[str, Any]:
    """Words of the page, the command line of this run among them, and the policy of current
    practice.
    """
    command = shlex.join(["drmdp", *sys.argv[1:]])
    words = {"title": asked.title, "unit": asked.unit or "", "command": command}
    return {**words, "baseline": practice}


def write(
    asked: Any, solution: Solution, model: Model, ambiguity: AmbiguitySet, practice: Any
) -> None:
    """Write the page about a solution, without the curve if time is up."""
    from drmdp import radius
    from drmdp.radius.path import CUT_SHORT

    n, sweep = RADII if model.n_probabilities <= LARGE else 0, None
    n = n if asked.report_radii is None else asked.report_radii
    seconds = asked.deadline - clock.now()
    alike = isinstance(ambiguity.radius, float)  # a radius for each pair has no curve
    if n and ambiguity.sized and alike and seconds > 0 and solution.status not in CUT_SHORT:
        far = float(ambiguity.saturation(model).max())
        top = min(2 * float(ambiguity.radius), far) or far
        limits: Any = {"top": top if 0 < top < math.inf else None, "max_seconds": seconds}
        limits["criterion"] = solution.criterion
        sizes: Any = n
        if ambiguity.size_name == "level":
            sizes = _levels(ambiguity.radius, far, n)
        near = solution.asked.tol, solution.asked.rtol
        sweep = radius.path(model, ambiguity, sizes, *near, **limits)
    solution.report(asked.report, sweep, **_words(asked, practice))


def _levels(level: float, least: float, n: int) -> Any:
    """Levels from half to twice one, that among them, and at most 1; around the level 0 from 0 to
    twice that at which every mixture is allowed.
    """
    centre = level or least
    levels = np.geomspace(centre / 2, min(2 * centre, 1.0), n)
    levels[np.abs(levels - level).argmin()] = level
    return levels


def write_plan(asked: Any, plan: HorizonSolution, practice: Any) -> None:
    """Write the page about a plan, with as many radii as there is time for."""
    stages = plan.natures.stages
    small = len(stages) * stages.first.blocks.data.size <= LARGE
    n = asked.report_radii if asked.report_radii is not None else PLAN_RADII if small else 0
    sweep = _other_plans(plan, n, asked.deadline) if n else None
    plan.report(asked.report, sweep=sweep, **_words(asked, practice))


def _other_plans(
    plan: HorizonSolution, n: int, deadline: float
) -> dict[float, HorizonSolution] | None:
    """Plans for sets of up to twice the size; nothing where sets have no radius, or it is 0."""
    from drmdp.radius.path import CUT_SHORT
    from drmdp.solvers.horizon import finite_horizon

    models, balls = list(plan.natures.stages.given), plan.natures.stages.sets
    size = float(np.max(balls[0].radius)) if balls[0].sized else 0.0
    has_radius = (ball.sized and getattr(ball, "level", None) is None for ball in balls)
    if size == 0 or not all(has_radius):
        return None
    plans = {size: plan}
    settings: Any = fields(plan, "final", "costs", "discount", "half_cycle")
    for factor in np.linspace(0, 2, n).tolist():
        if factor != 1 and plan.status not in CUT_SHORT and clock.now() < deadline:
            left = None if deadline == math.inf else deadline - clock.now()
            sized = {id(ball): ball.with_radius(factor * ball.radius) for ball in balls}
            sets = [sized[id(ball)].facing(ball.nature) for ball in balls]
            other = finite_horizon(models, sets, **settings, max_seconds=left)
            if other.status not in CUT_SHORT:
                plans[factor * size] = other
    return plans
