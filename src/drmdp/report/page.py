"""Put the page together and write it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from drmdp import plot
from drmdp.core.files import check_file, check_suffix, write_whole
from drmdp.core.progress import stage
from drmdp.errors import InputError, imported, shown
from drmdp.model import Model
from drmdp.plot._axes import ROWS, model_of
from drmdp.radius import Path
from drmdp.radius.path import check_path
from drmdp.report import facts
from drmdp.report.facts import Subject
from drmdp.report.lead import lead, switch, trust
from drmdp.report.matter import matter
from drmdp.report.rivals import rivals
from drmdp.report.svg import draw
from drmdp.sets import AmbiguitySet
from drmdp.solution import Solution


@stage("writing the report")
def write(
    solution: Solution,
    path: str | os.PathLike[str],
    sweep: Path | None = None,
    *,
    model: Model | None = None,
    ball: AmbiguitySet | None = None,
    title: str | None = None,
    command: str | None = None,
    baseline: Any = None,
    unit: str = "",
) -> None:
    """Write the page about a solution; see `drmdp.Solution.report`."""
    check_target(path)
    own = model_of(solution, model)
    if sweep is not None:
        check_path(sweep, "sweep")
    if sweep is not None and sweep.model.fingerprint != solution.fingerprint:
        raise InputError("sweep: it is of another model")
    if ball is not None and repr(ball) != solution.settings["ball"]:
        raise InputError(f"ball: the solution is for {solution.settings['ball']}, got {shown(ball)}")
    if ball is None and solution.problem is not None:
        ball = solution.problem[1]
    others = rivals(solution, own, ball, baseline)
    text = render(Subject.of(solution, own, ball, unit, sweep=sweep, command=command, rivals=others), title)
    write_whole(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a page cannot be written at the path, `MissingExtra` if none can be."""
    for package in ("jinja2", "matplotlib"):
        imported(package, "report")
    check_suffix(path, (".html", ".htm"), "a report is a page of HTML")
    check_file(path)


def render(subject: Subject, title: str | None = None) -> str:
    """The page as text."""
    panels = switch(subject)
    told, drawings = matter(subject, subject.solution, subject.rivals)
    return fill(
        "page.html",
        title=title or "A robust policy",
        noun=subject.noun,
        side=subject.side,
        certain=subject.certain,
        lead=lead(subject),
        panels=panels,
        trust=trust(panels),
        work=facts.work(subject),
        problem=facts.problem(subject),
        region=facts.region(subject),
        certificate=facts.certificate(subject),
        states=facts.states_table(subject),
        mixed=facts.mixed(subject),
        bent=None if subject.model is None or subject.certain else facts.bent_table(subject),
        radii=None if subject.sweep is None else facts.radius_table(subject),
        reproduce=facts.reproduce(subject),
        pictures=_pictures(subject),
        matter=told,
        figures=drawn(drawings),
        many=len(subject.solution.states) > facts.ALL,
        crowded=len(subject.solution.states) > ROWS,
        mapped=subject.mapped,
    )


def fill(template: str, pictures: dict[str, str], figures: dict[str, str], **given: Any) -> str:
    """A page of a template; everything given is escaped, but for the pictures, those of `matter` apart."""
    import jinja2
    from markupsafe import Markup

    loader = jinja2.FunctionLoader(lambda name: resources.files("drmdp.report").joinpath(name).read_text("utf-8"))
    pages = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=loader)
    return pages.get_template(template).render(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        pictures={name: Markup(text) for name, text in pictures.items()},
        figures={name: Markup(text) for name, text in figures.items()},
        **given,
    )


def _pictures(subject: Subject) -> dict[str, str]:
    solution, model, sweep = subject.solution, subject.model, subject.sweep
    wanted: dict[str, tuple[Callable[[Any], Any], str]] = {
        "policy": (lambda ax: plot.map(solution, ax=ax), "Map: the likeliest action where each state lies")
        if subject.mapped
        else (lambda ax: plot.policy(solution, ax=ax), "Heat map: probability of each action in each state"),
        "values": (lambda ax: plot.values(solution, model, ax=ax), "Worst-case values with bounds"),
        "convergence": (lambda ax: plot.convergence(solution, ax=ax), "Certified gap and residual by iteration"),
    }
    if model is not None and not subject.certain:
        wanted["kernel"] = (
            partial(_kernel, solution, model),
            "Heat map: how nature changed the transitions of the policy",
        )
        wanted["bent"] = (partial(_bent, solution, model), "The transitions nature changed most")
    if sweep is not None:
        radius = None if subject.ball is None or np.ndim(subject.ball.radius) else subject.ball.radius
        wanted["radius"] = (lambda ax: plot.radius(sweep, radius, ax=ax), "Worst-case and mean-kernel value by radius")
    return drawn(wanted)


def drawn(wanted: dict[str, tuple[Callable[[Any], Any], str]]) -> dict[str, str]:
    """Pictures by name, each of a function that draws on axes and of words for those who cannot see it."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="constrained_layout not applied"
        )  # very long names on a small picture
        return {name: draw(picture, name, escape(words)) for name, (picture, words) in wanted.items()}


def _kernel(solution: Solution, model: Model, ax: Any) -> Any:
    return plot.kernel(solution, model, ax=ax)


def _bent(solution: Solution, model: Model, ax: Any) -> Any:
    return plot.transitions(solution, model, facts.BENT, ax=ax)
