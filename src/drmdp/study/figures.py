"""The pictures, each a function of the rows. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.plot.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, styled
from drmdp.study.methods import METHODS
from drmdp.study.rows import Row
from drmdp.study.select import Point, panel, points, slope, where

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
}
"""Colour, marker, line of each method: the same in every picture."""
FAMILIES = {"forest": "Forest", "machine": "Machine replacement", "garnet": "Garnet"}
SECONDS = "CPU seconds, one thread"
RULE = {"duality-gap": "same certificate: (DG) ≤ .05", "printed": "printed stopping rules"}
LETTERS = {"n_kernels": "kernels N", "n_states": "states S", "n_actions": "actions A"}


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
                    figure.savefig(target / f"{name}.{suffix}", metadata={"Date": None} if suffix == "svg" else None)
                plt.close(figure)
                done.append(name)
    return done


# ---------------------------------------------------------------------- parts


def line(axes: Any, found: list[Point], label: str, style: tuple[str, str, str]) -> None:
    """Medians with extremes; hollow where extrapolated, hollow with an arrow where the run was cut off."""
    if not found:
        return
    colour, marker, dash = style
    x, y = [p.x for p in found], np.array([p.middle for p in found])
    axes.plot(x, y, color=colour, linestyle=dash, label=label, marker=marker, markersize=0, zorder=2)  # for the legend
    spread = [[p.middle - p.low for p in found], [p.high - p.middle for p in found]]
    axes.errorbar(x, y, yerr=spread, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.6, zorder=1)
    for p in found:
        face = colour if p.kind == "measured" else "white"
        axes.plot([p.x], [p.middle], marker=marker, color=colour, markerfacecolor=face, linestyle="none", zorder=3)
        if p.kind == "cut off":
            arrow = {"arrowstyle": "<-", "color": colour, "shrinkB": 3}  # from the point upwards
            axes.annotate("", (p.x, p.middle), (0, 16), textcoords="offset points", arrowprops=arrow, zorder=3)


def methods(axes: Any, rows: list[Row], x: str | Callable[[Row], float], names: Sequence[str]) -> None:
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
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=9)


def frame(plt: Any, n_rows: int, n_columns: int, height: float = 2.9) -> tuple[Any, Any]:
    """Panels that share the y axis of their row."""
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=(3.4 * n_columns, height * n_rows + 0.9), squeeze=False, sharey="row"
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


# ---------------------------------------------------------------------- the paper's figures

COMPARED = ("exact", "exact-vi", "fast", "algorithm-1", "conic-vi", "conic-gs", "conic-anderson", "conic-avi")


def _against(study: str, x: str) -> Callable[[Any, list[Row]], Any]:
    def make(plt: Any, rows: list[Row]) -> Any:
        own = where(rows, study=study, radius="paper")
        if not own:
            return None
        figure, grid = frame(plt, 2, 3)
        for k, rule in enumerate(RULE):
            for axes, (family, title) in zip(grid[k], FAMILIES.items(), strict=True):
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
        figure, grid = frame(plt, 2, 3)
        for k, radius in enumerate((0.1, 0.5)):
            for axes, (family, title) in zip(grid[k], FAMILIES.items(), strict=True):
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
            solver = "" if method == "gap-exact" else " (Clarabel)" if metric == "l2" else " (HiGHS)"
            label = f"{METHODS[method].label}{solver}, ({metric}, {2 if metric == 'l2' else 1})"
            line(axes, points(chosen, x), label, style)
        log_log(axes, LETTERS[x], ticks=sizes(where(own, study=study), x))
        other = where(own, study=study)[0]
        fixed = f"S = A = {other['n_states']}" if x == "n_kernels" else f"N = A = {other['n_kernels']}"
        axes.set_title(f"Garnet, {fixed}: time to compute (DG) to .25", fontsize=9)
    grid[0][0].set_ylabel(SECONDS)
    legend(figure, grid, own, 2)
    return figure


# ---------------------------------------------------------------------- beyond


def _by_family(
    study: str, x: str | Callable[[Row], float], label: str, names: Sequence[str]
) -> Callable[[Any, list[Row]], Any]:
    """One panel a domain, time against a setting."""

    def make(plt: Any, rows: list[Row]) -> Any:
        own = where(rows, study=study)
        if not own:
            return None
        figure, grid = frame(plt, 1, 3)
        for axes, (family, title) in zip(grid[0], FAMILIES.items(), strict=True):
            chosen = where(own, family=family)
            methods(axes, chosen, x, names)
            log_log(axes, label)
            size = f"{chosen[0]['n_states']}/{chosen[0]['n_actions']}/{chosen[0]['n_kernels']}" if chosen else ""
            axes.set_title(f"{title}, S/A/N = {size}", fontsize=9)
        grid[0][0].set_ylabel(SECONDS)
        legend(figure, grid, own)
        return figure

    return make


def _growth(plt: Any, rows: list[Row]) -> Any:
    own = where(rows, study="growth", method="exact")
    if not own:
        return None
    figure, grid = frame(plt, 1, 1, 3.3)
    axes = grid[0][0]
    figure.set_size_inches(5.6, 4.2)
    looks = iter(
        [
            (BLUE, "o", "-"),
            (SKY, "s", "--"),
            (ORANGE, "v", "-"),
            (RED, "D", "--"),
            (GREEN, "^", "-"),
            (BLACK, "X", "--"),
        ]
    )
    for family, title in FAMILIES.items():
        for radius in sorted({row["radius"] for row in where(own, family=family)}):
            chosen = where(own, family=family, radius=radius)
            found = slope(chosen, "n_kernels")
            line(axes, points(chosen, "n_kernels"), f"{title}, radius {radius:.3g}: N^({found})", next(looks))
    log_log(axes, LETTERS["n_kernels"], SECONDS, sizes(own, "n_kernels"))
    first = own[0]
    axes.set_title(f"Exact engine to (DG) ≤ .05, S = {first['n_states']}; fitted growth", fontsize=9)
    legend(figure, grid, own, 1)
    return figure


def _rates(plt: Any, rows: list[Row]) -> Any:
    own = where(rows, study="rates")
    if not own:
        return None
    figure, grid = frame(plt, 2, 3)
    colours = (GREY, RED, PURPLE, BLUE, GREEN)
    names = sorted({row["method"] for row in own if " p=" in row["method"]})
    for k, small in enumerate((True, False)):
        for axes, (family, title) in zip(grid[k], FAMILIES.items(), strict=True):
            chosen = [row for row in where(own, family=family) if (row["radius"] == 0.1) == small]
            for number, (name, colour) in enumerate(zip(names, colours, strict=True)):
                for row in where(chosen, method=name):
                    T, gap = np.array(row["curve"]).T if row["curve"] else ((), ())
                    axes.plot(
                        T, gap, color=colour, linestyle=("-", "--", ":", "-.", "-")[number], label=METHODS[name].label
                    )
            if chosen:
                T = np.array([3.0, 3000.0])
                axes.plot(T, 10 * T ** (-2 / 3), color=BLACK, linewidth=1, label="slope −2/3, the theorem's for q = 2")
                axes.set_title(f"{title}, radius {chosen[0]['radius']:.3g}", fontsize=9)
            log_log(axes, "steps T", "(DG), cost units" if family == "forest" else "")
    legend(figure, grid, [], 3)
    return figure


def _steps(plt: Any, rows: list[Row]) -> Any:
    own = where(rows, study=("step-N", "step-S", "step-A"))
    if not own:
        return None
    figure, grid = frame(plt, 1, 3)
    for axes, (letter, x) in zip(grid[0], (("N", "n_kernels"), ("S", "n_states"), ("A", "n_actions")), strict=True):
        chosen = where(own, study=f"step-{letter}")
        line(axes, points(chosen, x), "a step of Algorithm 1 in all states", STYLE["algorithm-1"])
        found = slope(chosen, x)
        axes.set_title(f"Garnet, radius .3: grows as {letter}^({found})", fontsize=9)
        log_log(axes, LETTERS[x], ticks=sizes(chosen, x))
    grid[0][0].set_ylabel(SECONDS)
    return figure


def _pairs(plt: Any, rows: list[Row]) -> Any:
    own = where(rows, study=("pairs", "baseline"))
    if not own:
        return None
    smallest = min(row["n_states"] for row in own)
    own = where(own, n_states=smallest)
    kinds = sorted({(row["metric"], str(row["order"]).removesuffix(".0")) for row in own})
    names = ("exact", "exact-vi", "fast", "algorithm-1", "conic-vi", "baseline-2023")
    figure, grid = frame(plt, 1, 3, 3.2)
    for axes, (family, title) in zip(grid[0], FAMILIES.items(), strict=True):
        for number, name in enumerate(names):
            chosen = where(own, family=family, method=name)
            spot = {kind: k + 0.12 * (number - 2.5) for k, kind in enumerate(kinds)}
            place = lambda row, spot=spot: spot[row["metric"], str(row["order"]).removesuffix(".0")]  # noqa: E731
            colour, marker, _ = STYLE[name]
            line(axes, points(chosen, place), METHODS[name].label, (colour, marker, "none"))
        axes.set(yscale="log", title=f"{title}, S/A/N = {_size(own, family)}")
        axes.title.set_fontsize(9)
        axes.set_xticks(range(len(kinds)), [f"{m}\n{p}" for m, p in kinds])
        axes.set_xlabel("metric and order of the ball, radius .1")
    grid[0][0].set_ylabel(SECONDS)
    legend(figure, grid, own, 3)
    return figure


def _size(rows: list[Row], family: str) -> str:
    own = where(rows, family=family)
    return f"{own[0]['n_states']}/{own[0]['n_actions']}/{own[0]['n_kernels']}" if own else ""


def _peers(plt: Any, rows: list[Row]) -> Any:
    nominal, updates = where(rows, study="nominal"), where(rows, study="update", family="garnet")
    if not nominal or not updates:
        return None
    figure, grid = plt.subplots(1, 2, figsize=(7.6, 4.3), squeeze=False)
    left, right = grid[0]
    methods(left, nominal, "n_states", ("exact", "quantecon", "mdpsolver"))
    log_log(left, LETTERS["n_states"], SECONDS, sizes(nominal, "n_states"))
    left.set_title(f"Radius 0: an ordinary MDP, A = {nominal[0]['n_actions']}", fontsize=9)
    methods(
        right,
        updates,
        lambda row: row["n_states"] * row["n_actions"] * row["n_kernels"],
        ("exact", "conic-vi", "cvxpy-clarabel", "cvxpy-scs"),
    )
    log_log(right, "probabilities of a state, S·A·N", SECONDS)
    right.set_title("Garnet, (l2, 2), radius .1: (DG) ≤ .05", fontsize=9)
    legend(figure, grid, nominal + updates, 3)
    return figure


def _rules(plt: Any, rows: list[Row]) -> Any:
    own = where(rows, study="rules")
    if not own:
        return None
    looks = {
        "paper": ("as printed", (RED, "D", "--")),
        "puterman": ("corrected", (BLUE, "o", "-")),
        "certified": ("certified gap", (GREEN, "^", "-")),
    }
    figure, grid = plt.subplots(2, 3, figsize=(10.2, 6.4), squeeze=False, sharey="row")
    for k, (y, label) in enumerate(
        (("kernel_passes", "sweeps of value iteration"), ("share", "what the policy loses, in ε (from 10⁻⁶)"))
    ):
        for axes, (family, title) in zip(grid[k], FAMILIES.items(), strict=True):
            for rule, (name, style) in looks.items():
                chosen = [
                    {**row, "share": max(row["loss"] / row["tol"], 1e-6)}
                    for row in where(own, family=family, rule=rule, radius=0.1)
                ]
                line(axes, points(chosen, lambda row: 1 / (1 - row["discount"]), y), name, style)
            log_log(axes, "horizon 1/(1 − λ)", ticks=sorted({round(1 / (1 - row["discount"]), 6) for row in own}))
            axes.set_title(f"{title}, radius .1", fontsize=9)
            if k == 1:
                axes.axhline(1.0, color=BLACK, linewidth=1)
        grid[k][0].set_ylabel(label)
    legend(figure, grid, [], 3)
    return figure


def _horizon(row: Row) -> float:
    return float(1 / (1 - row["discount"]))


FIGURES: dict[str, Callable[[Any, list[Row]], Any]] = {
    "figure-1-kernels": _against("kernels", "n_kernels"),
    "figure-1-other-radii": _other_radii("kernels", "n_kernels"),
    "figure-2-states": _against("states", "n_states"),
    "figure-2-other-radii": _other_radii("states", "n_states"),
    "figure-3-4-gap": _gap,
    "growth": _growth,
    "rates": _rates,
    "steps": _steps,
    "rules": _rules,
    "radii": _by_family("radii", "radius", "radius θ", ("exact", "exact-vi", "fast", "algorithm-1", "conic-vi")),
    "discounts": _by_family("discounts", _horizon, "horizon 1/(1 − λ)", ("exact", "exact-vi", "exact-gs", "exact-anderson", "exact-avi", "fast")),
    "pairs": _pairs,
    "peers": _peers,
}  # fmt: skip
