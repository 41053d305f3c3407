"""What the pictures share: how methods look, lines with their spread, legends, panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from drmdp.plot.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages.select import CUT_OFF, Point, points, where
from drmdp_lab.paper.records import Row

GREY = "#808080"
STYLE: dict[str, tuple[str, str, str]] = {
    "exact": (BLUE, "o", "-"),
    "exact-vi": (SKY, "s", "-"),
    "exact-gs": (PURPLE, "P", "-"),
    "exact-anderson": (BLACK, "X", "-"),
    "exact-avi": (GREY, "*", "-"),
    "fast": (GREEN, "^", "-"),
    "algorithm-1": (RED, "D", "-"),
    "conic-vi": (ORANGE, "v", "--"),
    "conic-gs": (PURPLE, "P", "--"),
    "conic-anderson": (BLACK, "X", "--"),
    "conic-avi": (GREY, "*", "--"),
    "baseline-2023": (BLACK, "X", ":"),
    "cvxpy-clarabel": (GREEN, "^", ":"),
    "cvxpy-scs": (PURPLE, "P", ":"),
    "quantecon": (ORANGE, "v", "-"),
    "mdpsolver": (GREEN, "^", "-"),
    "pymdptoolbox": (PURPLE, "P", "-"),
}
"""Colour, marker, line of each method: the same in every picture."""
FAMILIES = {
    "forest": "Forest",
    "machine": "Machine replacement",
    "garnet-rewards": "Garnet, rewards",
    "garnet-costs": "Garnet, costs",
}
SECONDS = "CPU seconds, one thread"
RULE = {"duality-gap": "one certificate: (DG) ≤ .05", "printed": "printed stopping rules"}
LETTERS = {"n_kernels": "kernels N", "n_states": "states S", "n_actions": "actions A"}


def line(axes: Any, found: list[Point], label: str, style: tuple[str, str, str]) -> None:
    """Medians with extremes; hollow where extrapolated, hollow with an arrow where the run was cut
    off.
    """
    if not found:
        return
    colour, marker, dash = style
    x, y = [p.x for p in found], np.array([p.middle for p in found])
    axes.plot(
        x, y, color=colour, linestyle=dash, label=label, marker=marker, markersize=0, zorder=2
    )  # for the legend
    spread = [[p.middle - p.low for p in found], [p.high - p.middle for p in found]]
    axes.errorbar(x, y, yerr=spread, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.6, zorder=1)
    for p in found:
        face = colour if p.kind == "measured" else "white"
        axes.plot(
            [p.x],
            [p.middle],
            marker=marker,
            color=colour,
            markerfacecolor=face,
            linestyle="none",
            zorder=3,
        )
        if p.kind == CUT_OFF:
            arrow = {"arrowstyle": "<-", "color": colour, "shrinkB": 3}  # from the point upwards
            axes.annotate(
                "", (p.x, p.middle), (0, 16), textcoords="offset points", arrowprops=arrow, zorder=3
            )


def methods(
    axes: Any, rows: list[Row], x: str | Callable[[Row], float], names: Sequence[str]
) -> None:
    """A line for each method."""
    for name in names:
        line(axes, points(where(rows, method=name), x), METHODS[name].label, STYLE[name])


def legend(figure: Any, grid: Any, rows: list[Row], columns: int = 4) -> None:
    """One legend below all panels, with what hollow markers and arrows mean if there are any."""
    from matplotlib.lines import Line2D

    handles: dict[str, Any] = {}
    for axes in np.ravel(grid):
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    for label, handle in handles.items():
        shown: dict[str, Any] = {
            "color": handle.get_color(),
            "linestyle": handle.get_linestyle(),
            "marker": handle.get_marker(),
        }
        handles[label] = Line2D([], [], **shown)
    statuses = {row["status"] for row in rows}
    plain: dict[str, Any] = {"color": GREY, "marker": "o", "linestyle": "none"}
    if "extrapolated" in statuses:
        handles["extrapolated"] = Line2D([], [], markerfacecolor="white", **plain)
    if "time_limit" in statuses:
        handles["cut off at the time limit"] = Line2D(
            [], [], color=GREY, marker=r"$\uparrow$", linestyle="none", markersize=9
        )
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=9
    )


def frame(plt: Any, n_rows: int, n_columns: int, height: float = 2.9) -> tuple[Any, Any]:
    """Panels that share the y axis of their row."""
    figure, grid = plt.subplots(
        n_rows,
        n_columns,
        figsize=(3.4 * n_columns, height * n_rows + 0.9),
        squeeze=False,
        sharey="row",
    )
    return figure, grid


def log_log(axes: Any, x: str, y: str = "", ticks: Sequence[float] = ()) -> None:
    """Log scales and labels; ticks at the sizes that were run."""
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.margins(y=0.1)  # room for arrows
    if ticks:
        axes.set_xticks(list(ticks), [f"{t:g}" for t in ticks])
        axes.set_xticks([], minor=True)


def sizes(rows: list[Row], x: str) -> list[float]:
    """Values of a setting, for ticks."""
    return sorted({row[x] for row in rows})


def present(rows: list[Row]) -> dict[str, str]:
    """The domains that were run, with their titles."""
    known = {row["family"] for row in rows}
    return {family: title for family, title in FAMILIES.items() if family in known}
