"""Curves: convergence, the price of robustness over the radius, values on held-out kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drmdp.errors import InputError, shown
from drmdp.plot._axes import axes, check, kind, label, legend
from drmdp.plot.style import BLUE, GREEN, MARKERS, ORANGE, PALETTE, RED, ink, numbers
from drmdp.radius import Choice, RadiusPath
from drmdp.radius.path import check_path
from drmdp.solution import Solution, check_solution

HEIGHT = 3.2


def convergence(solution: Solution, ax: Any = None) -> Any:
    """Certified gap and residual after each iteration, on a logarithmic scale; returns the axes.

    Parameters
    ----------
    solution : Solution
        The result of `drmdp.solve`.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check_solution(solution)
    history = solution.history
    iterations = np.array([record.iteration for record in history])
    with axes(ax, HEIGHT) as ax:
        looks = ("gap", "certified gap", BLUE, "o"), ("residual", "residual", ORANGE, "s")
        for name, text, colour, marker in looks:
            line = np.array([getattr(record, name) for record in history])
            shown = np.isfinite(line) & (line > 0)  # a logarithm needs it
            ax.plot(iterations[shown], line[shown], color=colour, marker=marker, label=text)
        if solution.tolerance > 0:
            ax.axhline(solution.tolerance, color=ink(), linestyle=":", label="tolerance")
        ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="iteration", ylabel="largest over the states")
        legend(ax, 3)
    return ax


def radius(path: RadiusPath, mark: float | None = None, ax: Any = None) -> Any:
    """Worst-case and mean-kernel value of the best policy of each radius, over the start
    distribution; returns the axes.

    Between two radii at which a state acts otherwise the value under the mean kernel jumps
    somewhere: there is a step halfway.

    Parameters
    ----------
    path : `drmdp.radius.RadiusPath`
        The result of `drmdp.radius.path`.
    mark : float, optional
        A radius to draw a line at.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check_path(path, "path")
    noun, size = kind(path.model), path.ambiguity.size_name
    with axes(ax, HEIGHT) as ax:
        case = "best" if path.ambiguity.nature == "cooperative" else "worst"
        ax.plot(path.radii, path.worst, color=BLUE, marker="o", label=f"{case} case")
        line, at = _steps(path)
        ax.plot(*line, color=ORANGE, marker="s", markevery=at, label="under the mean kernel")
        if mark is not None:
            ax.axvline(mark, color=ink(), linestyle=":", label=f"this {size}")
        ax.set(xlabel=size, ylabel=f"{noun}, mean over the start")
        numbers(ax.yaxis)
        legend(ax, 3)
    return ax


def sets(paths: Sequence[RadiusPath], names: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Worst case of the best policy over the size of several sets, each a `drmdp.radius.path` of
    the same model; returns the axes.

    Sizes are not comparable as numbers, so they are shares of the way from the mean kernel to where
    the set allows all that it ever does, or, of a set that has no such end (Burg's divergence), to
    the last radius of its path: its name says so.

    Parameters
    ----------
    paths : sequence of `drmdp.radius.RadiusPath`
        One for each set.
    names : sequence, optional
        What the sets are called; by default what they are.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    paths = list(paths) if isinstance(paths, Sequence) else [paths]
    for k, path in enumerate(paths):
        check_path(path, f"paths: {k}")
        if path.model.fingerprint != paths[0].model.fingerprint:
            raise InputError(f"paths: {k} is of another model than 0")
    if not paths or (names is not None and len(names) != len(paths)):
        expected = "expected one or more, and a name for each"
        raise InputError(f"paths: {expected}, got {len(paths)} and {shown(names)}")
    labels = [label(name, 40) for name in names or ()]
    labels = labels or [path.ambiguity.short for path in paths]
    with axes(ax, HEIGHT + 0.1 * len(paths)) as ax:
        for k, (path, name) in enumerate(zip(paths, labels, strict=True)):
            share, end = _share(path)
            look = {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[k % len(MARKERS)]}
            ax.plot(share, path.worst, label=f"{name}{end}", **look)
        side = "best" if paths[0].ambiguity.nature == "cooperative" else "worst"
        noun = f"{side}-case {kind(paths[0].model)}"
        ax.set(xlabel="size, as a share of the largest", ylabel=f"{noun}, mean over the start")
        numbers(ax.yaxis)
        legend(ax, 2)
    return ax


def _steps(path: RadiusPath) -> tuple[Any, list[int]]:
    """Radii and values under the mean kernel, (2, n), with a step where an action of a state is
    dropped for another; and where the radii of the path are.
    """
    line, at = [], []
    for k, (point, value) in enumerate(zip(path.points, path.nominal, strict=True)):
        before = path.points[k - 1] if k else point
        if np.abs(point.policy - before.policy).max() > 0.5:
            middle = (before.radius + point.radius) / 2
            line += [(middle, path.nominal[k - 1]), (middle, value)]
        at.append(len(line))
        line.append((point.radius, value))
    return np.array(line).T, at


def _share(path: RadiusPath) -> tuple[Any, str]:
    """Sizes between 0, the mean kernel, and 1; and words where that is no end of the set."""
    if getattr(path.ambiguity, "level", None) is not None:  # from 1 down
        return (1 - path.radii) / max(1 - path.saturation, np.finfo(float).tiny), ""
    if np.isfinite(path.saturation):
        return path.radii / (path.saturation or 1.0), ""
    return path.radii / (path.radii.max() or 1.0), f", up to {path.radii.max():.3g}"


def choice(result: Choice, ax: Any = None) -> Any:
    """Value of the candidate of each radius on the kernels held out: mean, the middle 80 % and the
    worst; returns the axes.

    Parameters
    ----------
    result : `drmdp.radius.Choice`
        The result of `drmdp.radius.choose` or `cross_validate`.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check("result", result, Choice, "what drmdp.radius.choose or cross_validate returned")
    low, high = np.quantile(result.samples, [0.1, 0.9], axis=1)
    with axes(ax, HEIGHT) as ax:
        ax.fill_between(result.radii, low, high, color=BLUE, alpha=0.15, label="middle 80 %")
        ax.plot(result.radii, result.mean, color=BLUE, marker="o", label="mean")
        ax.plot(result.radii, result.worst, color=RED, marker="v", label="worst")
        ax.axvline(result.radius, color=GREEN, linestyle="--", label="chosen")
        noun = "reward" if result.maximise else "cost"
        ax.set(xlabel="radius", ylabel=f"{noun} on held-out kernels")
        numbers(ax.yaxis)
        legend(ax, 4)
    return ax
