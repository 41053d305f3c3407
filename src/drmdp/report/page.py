"""The page about a solution, put together and written.

In its pictures text stays text, colours follow the page's, and nothing refers to anything outside.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from drmdp import plot
from drmdp.errors import InputError, imported, shown
from drmdp.io.files import AnyPath, check_file, check_suffix, write_whole
from drmdp.plot._axes import FREE, ROWS, model_of
from drmdp.plot.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, styled
from drmdp.radius import RadiusPath
from drmdp.radius.path import check_path
from drmdp.report import facts
from drmdp.report.facts import Subject
from drmdp.report.lead import lead, switch, trust
from drmdp.report.matter import matter
from drmdp.report.rivals import rivals
from drmdp.solution import Solution
from drmdp.ui.progress import stage

NAMES = {BLUE: "blue", ORANGE: "orange", GREEN: "green", RED: "red", PURPLE: "purple"}
NAMES |= {SKY: "sky", BLACK: "ink"}
"""Colours that the page sets for light and dark; grids are drawn in `GRID`."""
GRID = "#b0b0b0"


@stage("writing the report")
def write(solution: Solution, path: AnyPath, sweep: RadiusPath | None, **asked: Any) -> None:
    """Write the page about a solution; `asked` are the other arguments of
    `drmdp.Solution.report`.
    """
    check_target(path)
    known, ambiguity = model_of(solution, asked["model"]), asked["ambiguity"]
    if sweep is not None:
        check_path(sweep, "sweep")
    if sweep is not None and sweep.model.fingerprint != solution.fingerprint:
        raise InputError("sweep: it is of another model")
    solved_for = solution.settings["ambiguity"]
    if ambiguity is not None and repr(ambiguity) != solved_for:
        raise InputError(f"ambiguity: the solution is for {solved_for}, got {shown(ambiguity)}")
    if ambiguity is None and solution.problem is not None:
        ambiguity = solution.problem[1]
    about: Any = {"sweep": sweep, "command": asked["command"]}
    about["rivals"] = rivals(solution, known, ambiguity, asked["baseline"])
    text = render(Subject.of(solution, known, ambiguity, asked["unit"], **about), asked["title"])
    write_whole(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def check_target(path: AnyPath) -> None:
    """Raise `InputError` if a page cannot be written at the path, `MissingExtra` if none can be."""
    for package in ("jinja2", "matplotlib"):
        imported(package, "report")
    check_suffix(path, (".html", ".htm"), "a report is a page of HTML")
    check_file(path)


def render(subject: Subject, title: str | None = None) -> str:
    """The page as text."""
    panels = switch(subject)
    section, drawings = matter(subject, subject.solution, subject.rivals)
    total = len(subject.solution.states)
    return fill(
        "page.html",
        _pictures(subject),
        drawn(drawings),
        subject=subject,
        facts=facts,
        title=title or "A robust policy",
        lead=lead(subject),
        panels=panels,
        trust=trust(panels, subject.size),
        matter=section,
        many=total > facts.ALL,
        crowded=total > ROWS,
    )


def fill(template: str, pictures: dict[str, str], figures: dict[str, str], **texts: Any) -> str:
    """A page of a template; texts are escaped, pictures (`figures` are those of `matter`) not."""
    import jinja2
    from markupsafe import Markup

    files = resources.files("drmdp.report")
    loader = jinja2.FunctionLoader(lambda name: files.joinpath(name).read_text("utf-8"))
    pages = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=loader)
    for kind, drawings in (("pictures", pictures), ("figures", figures)):
        texts[kind] = {name: Markup(drawing) for name, drawing in drawings.items()}
    texts["made"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return pages.get_template(template).render(**texts)


def _pictures(subject: Subject) -> dict[str, str]:
    solution, model, sweep = subject.solution, subject.model, subject.sweep
    words = "Heat map: probability of each action in each state"
    pictures: dict[str, Any] = {"policy": (partial(plot.policy, solution), words)}
    pictures["values"] = partial(plot.values, solution, model), "Worst-case values with bounds"
    words = "Certified gap and residual by iteration"
    pictures["convergence"] = partial(plot.convergence, solution), words
    if subject.mapped:
        words = "Map: the likeliest action where each state lies"
        pictures["policy"] = partial(plot.map, solution), words
    if model is not None and not subject.certain:
        words = "Heat map: how nature changed the transitions of the policy"
        pictures["kernel"] = partial(plot.kernel, solution, model), words
        bent = partial(plot.transitions, solution, model, facts.BENT)
        pictures["bent"] = bent, "The transitions nature changed most"
    if sweep is not None:
        several = subject.ambiguity is None or np.ndim(subject.ambiguity.radius)
        curve = partial(plot.radius, sweep, None if several else subject.ambiguity.radius)
        pictures["radius"] = curve, "Worst-case and mean-kernel value by radius"
    return drawn(pictures)


def drawn(wanted: dict[str, tuple[Callable[..., Any], str]]) -> dict[str, str]:
    """Pictures by name, each of a function that draws on axes (`ax`) and of words for those who
    cannot see it.
    """
    with warnings.catch_warnings():  # of very long names on a small picture
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        pairs = wanted.items()
        return {name: draw(picture, name, escape(words)) for name, (picture, words) in pairs}


# ------------------------------------------------------------------- pictures as pieces of a page


def draw(picture: Callable[..., Any], prefix: str, words: str) -> str:
    """An inline <svg> that `picture` draws on axes (`ax`), with a prefix for its ids, and words for
    those who cannot see it.
    """
    with styled({"grid.color": GRID}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has other fonts
        from matplotlib.figure import Figure

        figure = Figure(label=FREE)
        picture(ax=figure.subplots())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return _inline(stream.getvalue(), prefix, words)


def _inline(text: str, prefix: str, words: str) -> str:
    aside = r"<metadata>.*?</metadata>|<style type=\"text/css\">.*?</style>|<!--.*?-->"
    text = re.sub(aside, "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(\sid="|xlink:href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'style="[^"]*"', lambda style: _themed(style.group()), text)
    text = re.sub(r"[ \t]*\n\s*", "\n", text)  # a page of pictures is mostly indentation
    size = re.search(r'viewBox="0 0 ([\d.]+)', text)
    assert size is not None
    head = f'<svg role="img" aria-label="{words}" style="--wide:{float(size.group(1)):.0f}" '
    sizes = r'<svg (xmlns:xlink="[^"]*" )?width="[^"]*" height="[^"]*" '
    return re.sub(sizes, head, text, count=1).replace("xlink:href", "href")


def _themed(style: str) -> str:
    for colour, name in NAMES.items():
        style = re.sub(rf"{colour}\b", f"var(--{name})", style, flags=re.IGNORECASE)
    return style.replace(GRID, "var(--grid)")
