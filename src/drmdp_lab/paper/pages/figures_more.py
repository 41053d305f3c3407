"""The pictures that the paper does not have, each a function of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from drmdp.plot.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from drmdp_lab.paper.blocks import GARNETS
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages.figure_parts import (
    GREY,
    LETTERS,
    SECONDS,
    STYLE,
    frame,
    legend,
    line,
    log_log,
    methods,
    present,
    sizes,
)
from drmdp_lab.paper.pages.select import points, slope, where
from drmdp_lab.paper.records import Row


def _by_family(
    study: str, x: str | Callable[[Row], float], label: str, names: Sequence[str]
) -> Callable[[Any, list[Row]], Any]:
    """One panel a domain, time against a setting."""

    def make(plt: Any, rows: list[Row]) -> Any:
        own = where(rows, study=study)
        if not own:
            return None
        figure, grid = frame(plt, 1, len(present(own)))
        for axes, (family, title) in zip(grid[0], present(own).items(), strict=True):
            chosen = where(own, family=family)
            methods(axes, chosen, x, names)
            log_log(axes, label)
            size = (
                f"{chosen[0]['n_states']}/{chosen[0]['n_actions']}/{chosen[0]['n_kernels']}"
                if chosen
                else ""
            )
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
    colours = ((BLUE, SKY), (ORANGE, RED), (GREEN, BLACK), (PURPLE, GREY))
    looks = iter(look for one, two in colours for look in ((one, "o", "-"), (two, "s", "--")))
    for family, title in present(own).items():
        for radius in sorted({row["radius"] for row in where(own, family=family)}):
            chosen = where(own, family=family, radius=radius)
            found = slope(chosen, "n_kernels")
            line(
                axes,
                points(chosen, "n_kernels"),
                f"{title}, radius {radius:.3g}: N^({found})",
                next(looks),
            )
    log_log(axes, LETTERS["n_kernels"], SECONDS, sizes(own, "n_kernels"))
    first = own[0]
    axes.set_title(
        f"Exact engine to (DG) ≤ .05, S = {first['n_states']}; fitted growth", fontsize=9
    )
    legend(figure, grid, own, 1)
    return figure


POWERS = {
    "algorithm-1 p=0 q=2": (GREY, "-"),
    "algorithm-1 p=1 q=1": (RED, "--"),
    "algorithm-1 p=1 q=2": (PURPLE, ":"),
    "algorithm-1 p=1 q=3": (BLUE, "-."),
    "algorithm-1 p=2 q=2": (GREEN, "-"),
}
VARIANTS = {
    "algorithm-1 p=1 q=2": (PURPLE, ":"),
    "algorithm-1 mirror-prox": (ORANGE, "--"),
    "algorithm-1 mirror-descent": (RED, "-."),
    "algorithm-1 epoch": (BLUE, "-"),
}


def _rates(looks: dict[str, tuple[str, str]]) -> Callable[[Any, list[Row]], Any]:
    """(DG) against steps, a panel for each domain and radius, of methods with their colours and
    lines.
    """

    def make(plt: Any, rows: list[Row]) -> Any:
        own = where(rows, study="rates", method=tuple(looks))
        if not own:
            return None
        figure, grid = frame(plt, 2, len(present(own)))
        for k, small in enumerate((True, False)):
            for axes, (family, title) in zip(grid[k], present(own).items(), strict=True):
                chosen = [
                    row for row in where(own, family=family) if (row["radius"] == 0.1) == small
                ]
                _curves(axes, chosen, looks)
                if chosen:
                    axes.set_title(f"{title}, radius {chosen[0]['radius']:.3g}", fontsize=9)
            grid[k][0].set_ylabel("(DG), cost units")
        legend(figure, grid, [], 3)
        return figure

    return make


def _curves(axes: Any, rows: list[Row], looks: dict[str, tuple[str, str]]) -> None:
    """One panel, with the slope of theorem 1."""
    for name, (colour, dash) in looks.items():
        for row in where(rows, method=name):
            T, gap = np.array(row["curve"]).T if row["curve"] else ((), ())
            axes.plot(T, gap, color=colour, linestyle=dash, label=METHODS[name].label)
    T = np.array([3.0, 3000.0])
    axes.plot(
        T, 10 * T ** (-2 / 3), color=BLACK, linewidth=1, label="slope −2/3, the theorem's for q = 2"
    )
    log_log(axes, "steps T")


def _steps(plt: Any, rows: list[Row]) -> Any:
    own = where(rows, study=("step-N", "step-S", "step-A"))
    if not own:
        return None
    figure, grid = frame(plt, 1, 3)
    for axes, (letter, x) in zip(
        grid[0], (("N", "n_kernels"), ("S", "n_states"), ("A", "n_actions")), strict=True
    ):
        chosen = where(own, study=f"step-{letter}")
        line(axes, points(chosen, x), "a step of Algorithm 1 in all states", STYLE["algorithm-1"])
        found, title = slope(chosen, x), " and ".join(present(chosen).values())
        axes.set_title(f"{title}, radius .3:\ngrows as {letter}^({found})", fontsize=9)
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
    figure, grid = frame(plt, 1, len(present(own)), 3.2)
    for axes, (family, title) in zip(grid[0], present(own).items(), strict=True):
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
    nominal, updates = where(rows, study="nominal"), where(rows, study="update", family=GARNETS)
    if not nominal or not updates:
        return None
    figure, grid = plt.subplots(1, 2, figsize=(7.6, 4.3), squeeze=False)
    left, right = grid[0]
    methods(left, nominal, "n_states", ("exact", "quantecon", "mdpsolver", "pymdptoolbox"))
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
    figure, grid = plt.subplots(
        2, len(present(own)), figsize=(3.4 * len(present(own)), 6.4), squeeze=False, sharey="row"
    )
    for k, (y, label) in enumerate(
        (
            ("kernel_passes", "sweeps of value iteration"),
            ("share", "what the policy loses, in ε (from 10⁻⁶)"),
        )
    ):
        for axes, (family, title) in zip(grid[k], present(own).items(), strict=True):
            for rule, (name, style) in looks.items():
                chosen = [
                    {**row, "share": max(row["loss"] / row["tol"], 1e-6)}
                    for row in where(own, family=family, rule=rule, radius=0.1)
                ]
                line(axes, points(chosen, lambda row: 1 / (1 - row["discount"]), y), name, style)
            log_log(
                axes,
                "horizon 1/(1 − λ)",
                ticks=sorted({round(1 / (1 - row["discount"]), 6) for row in own}),
            )
            axes.set_title(f"{title}, radius .1", fontsize=9)
            if k == 1:
                axes.axhline(1.0, color=BLACK, linewidth=1)
        grid[k][0].set_ylabel(label)
    legend(figure, grid, [], 3)
    return figure


def _horizon(row: Row) -> float:
    return float(1 / (1 - row["discount"]))


Draw = Callable[[Any, list[Row]], Any]
FIGURES: dict[str, Draw] = {
    "growth": _growth,
    "rates": _rates(POWERS),
    "rates-variants": _rates(VARIANTS),
    "steps": _steps,
    "rules": _rules,
    "radii": _by_family(
        "radii", "radius", "radius θ", ("exact", "exact-vi", "fast", "algorithm-1", "conic-vi")
    ),
    "discounts": _by_family(
        "discounts",
        _horizon,
        "horizon 1/(1 − λ)",
        ("exact", "exact-vi", "exact-gs", "exact-anderson", "exact-avi", "fast"),
    ),
    "pairs": _pairs,
    "peers": _peers,
}
