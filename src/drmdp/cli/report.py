"""`drmdp solve --report`: the page, with a curve over radii around the one asked for."""

from __future__ import annotations

import math
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from drmdp.errors import InputError, imported

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Solution

RADII = 11
LARGE = 1_000_000
"""Models with more stored probabilities get a curve only on request."""


def options(command: Any) -> Any:
    """Options of a page about a solution."""
    for option in (
        click.option("--baseline", help="Current practice, to compare with: a policy as `drmdp evaluate` reads it."),
        click.option("--unit", help="Of costs and rewards, as in €; shown in the report."),
        click.option("--title", help="Of the report."),
        click.option(
            "--report-radii",
            type=int,
            help="Radii of its curve, up to twice the ball's; 11, or 0 for large models, by default.",
        ),
        click.option("--report", help="Write a page about the solution here (.html); needs the extra `report`."),
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
    for package in ("jinja2", "matplotlib"):
        imported(package, "report")
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
    if n and ball.sized and left > 0 and solution.status not in CUT_SHORT:
        far = float(ball.saturation(model).max())
        top = min(2 * float(ball.radius), far) or far
        limits: Any = {"top": top if 0 < top < math.inf else None, "max_seconds": left}
        sweep = radius.path(model, ball, n, solution.asked.tol, solution.asked.rtol, **limits)
    solution.report(path, sweep, command=command(), **words)


def command() -> str:
    """How this run was asked for."""
    return shlex.join(["drmdp", *sys.argv[1:]])
