"""The pictures, each a function of the rows. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from drmdp.io.files import write_whole
from drmdp.plot.style import BLUE, ORANGE, RED, SKY, styled
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages import figures_more
from drmdp_lab.paper.pages.figure_parts import (
    LETTERS,
    RULE,
    SECONDS,
    frame,
    legend,
    line,
    log_log,
    methods,
    present,
    sizes,
)
from drmdp_lab.paper.pages.select import panel, points, where
from drmdp_lab.paper.records import Row


def draw(rows: list[Row], folder: str | Path) -> list[str]:
    """Draw what the rows allow, as SVG and PNG; return the names."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    done = []
    with styled() as plt:
        for name, make in FIGURES.items():
            figure = make(plt, rows)
            if figure is not None:
                for suffix in ("svg", "png"):
                    settings = {
                        "format": suffix,
                        "metadata": {"Date": None} if suffix == "svg" else None,
                    }
                    write_whole(target / f"{name}.{suffix}", partial(figure.savefig, **settings))
                    figure.set_layout_engine(
                        "none"
                    )  # laid out once, which takes as long as drawing
                plt.close(figure)
                done.append(name)
    return done


COMPARED = (
    "exact",
    "exact-vi",
    "fast",
    "algorithm-1",
    "conic-vi",
    "conic-gs",
    "conic-anderson",
    "conic-avi",
)


def _against(study: str, x: str) -> Callable[[Any, list[Row]], Any]:
    def make(plt: Any, rows: list[Row]) -> Any:
        own = where(rows, study=study, radius="paper")
        if not own:
            return None
        figure, grid = frame(plt, 2, len(present(own)))
        for k, rule in enumerate(RULE):
            for axes, (family, title) in zip(grid[k], present(own).items(), strict=True):
                chosen = where(panel(own, rule), family=family)
                methods(axes, chosen, x, COMPARED)
                log_log(axes, LETTERS[x], ticks=sizes(chosen, x))
                radius = f"radius {chosen[0]['radius']:.3g}" if chosen else ""
                axes.set_title(f"{title}, {radius}\n{RULE[rule]}", fontsize=9)
            grid[k][0].set_ylabel(SECONDS)
        legend(figure, grid, own)
        return figure

    return make


def _other_radii(study: str, x: str) -> Callable[[Any, list[Row]], Any]:
    def make(plt: Any, rows: list[Row]) -> Any:
        own = where(rows, study=study, rule="duality-gap", radius=(0.1, 0.5))
        if not own:
            return None
        figure, grid = frame(plt, 2, len(present(own)))
        for k, radius in enumerate((0.1, 0.5)):
            for axes, (family, title) in zip(grid[k], present(own).items(), strict=True):
                chosen = where(own, family=family, radius=radius)
                methods(axes, chosen, x, COMPARED)
                log_log(axes, LETTERS[x], ticks=sizes(chosen, x))
                axes.set_title(f"{title}, radius {radius:g}\n{RULE['duality-gap']}", fontsize=9)
            grid[k][0].set_ylabel(SECONDS)
        legend(figure, grid, own)
        return figure

    return make


def _gap(plt: Any, rows: list[Row]) -> Any:
    panels = {"gap-kernels": "n_kernels", "gap-states": "n_states"}
    own = where(rows, study=tuple(panels))
    if not own:
        return None
    figure, grid = frame(plt, 1, 2, 3.3)
    looks = {("gap-exact", "l2"): (BLUE, "o", "-"), ("gap-exact", "l1"): (SKY, "s", "-")}
    looks |= {("gap-conic", "l2"): (ORANGE, "v", "--"), ("gap-conic", "l1"): (RED, "D", "--")}
    for axes, (study, x) in zip(grid[0], panels.items(), strict=True):
        for (method, metric), style in looks.items():
            chosen = where(own, study=study, method=method, metric=metric)
            solver = (
                "" if method == "gap-exact" else " (Clarabel)" if metric == "l2" else " (HiGHS)"
            )
            label = f"{METHODS[method].label}{solver}, ({metric}, {2 if metric == 'l2' else 1})"
            line(axes, points(chosen, x), label, style)
        log_log(axes, LETTERS[x], ticks=sizes(where(own, study=study), x))
        other = where(own, study=study)[0]
        fixed = (
            f"S = A = {other['n_states']}" if x == "n_kernels" else f"N = A = {other['n_kernels']}"
        )
        title = " and ".join(present(own).values())
        axes.set_title(f"{title}, {fixed}:\ntime to compute (DG) to .25", fontsize=9)
    grid[0][0].set_ylabel(SECONDS)
    legend(figure, grid, own, 2)
    return figure


FIGURES: dict[str, Callable[[Any, list[Row]], Any]] = {
    "figure-1-kernels": _against("kernels", "n_kernels"),
    "figure-1-other-radii": _other_radii("kernels", "n_kernels"),
    "figure-2-states": _against("states", "n_states"),
    "figure-2-other-radii": _other_radii("states", "n_states"),
    "figure-3-4-gap": _gap,
    **figures_more.FIGURES,
}
