"""Curves: convergence, the price of robustness over the radius, values on held-out kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.errors import InputError, described
from drmdp.plot._axes import axes, kind, legend
from drmdp.plot.style import BLACK, BLUE, GREEN, ORANGE, RED
from drmdp.radius import Choice, Path
from drmdp.radius.path import check_path
from drmdp.solution import Solution, check_solution

HEIGHT = 3.2


def convergence(solution: Solution, ax: Any = None) -> Any:
    """Certified gap and residual after each iteration, on a logarithmic scale; returns the axes."""
    check_solution(solution)
    history = solution.history
    iterations = np.array([record.iteration for record in history])
    with axes(ax, HEIGHT) as ax:
        for name, text, colour, marker in (("gap", "certified gap", BLUE, "o"), ("residual", "residual", ORANGE, "s")):
            line = np.array([getattr(record, name) for record in history])
            shown = np.isfinite(line) & (line > 0)  # a logarithm needs it
            ax.plot(iterations[shown], line[shown], color=colour, marker=marker, label=text)
        if solution.tolerance > 0:
            ax.axhline(solution.tolerance, color=BLACK, linestyle=":", label="tolerance")
        ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="iteration", ylabel="largest over the states")
        legend(ax, 3)
    return ax


def radius(path: Path, mark: float | None = None, ax: Any = None) -> Any:
    """Worst-case and mean-kernel value of the best policy of each radius, over the start distribution; returns the axes.

    `mark` draws a line at one radius.
    """
    check_path(path, "path")
    noun = kind(path.model)
    with axes(ax, HEIGHT) as ax:
        ax.plot(path.radii, path.worst, color=BLUE, marker="o", label="worst case")
        ax.plot(path.radii, path.nominal, color=ORANGE, marker="s", label="under the mean kernel")
        if mark is not None:
            ax.axvline(mark, color=BLACK, linestyle=":", label="this ball")
        ax.set(xlabel="radius", ylabel=f"{noun}, mean over the start")
        legend(ax, 3)
    return ax


def choice(found: Choice, ax: Any = None) -> Any:
    """Value of the candidate of each radius on the kernels held out: mean, the middle 80 % and the worst; returns the axes."""
    if not isinstance(found, Choice):
        raise InputError(f"found: expected what drmdp.radius.choose or cross_validate returned, got {described(found)}")
    low, high = np.quantile(found.samples, [0.1, 0.9], axis=1)
    with axes(ax, HEIGHT) as ax:
        ax.fill_between(found.radii, low, high, color=BLUE, alpha=0.15, label="middle 80 %")
        ax.plot(found.radii, found.mean, color=BLUE, marker="o", label="mean")
        ax.plot(found.radii, found.worst, color=RED, marker="v", label="worst")
        ax.axvline(found.radius, color=GREEN, linestyle="--", label="chosen")
        noun = "reward" if found.maximise else "cost"
        ax.set(xlabel="radius", ylabel=f"{noun} on held-out kernels")
        legend(ax, 4)
    return ax
