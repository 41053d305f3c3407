"""Curves: convergence, the price of robustness over the radius, values on held-out kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drmdp.errors import InputError, described, shown
from drmdp.plot._axes import axes, kind, label, legend
from drmdp.plot.style import BLUE, GREEN, MARKERS, ORANGE, PALETTE, RED, ink, numbers
from drmdp.radius import Choice, Path
from drmdp.radius.path import check_path
from drmdp.solution import Solution, check_solution

HEIGHT = 3.2


def convergence(solution: Solution, ax: Any = None) -> Any:
    """Certified gap and residual after each iteration, on a logarithmic scale; returns the axes.

    Parameters
    ----------
    solution : Solution
        What `drmdp.solve` found.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check_solution(solution)
    history = solution.history
    iterations = np.array([record.iteration for record in history])
    with axes(ax, HEIGHT) as ax:
        for name, text, colour, marker in (("gap", "certified gap", BLUE, "o"), ("residual", "residual", ORANGE, "s")):
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


def radius(path: Path, mark: float | None = None, ax: Any = None) -> Any:
    """Worst-case and mean-kernel value of the best policy of each radius, over the start distribution; returns the axes.

    Between two radii at which a state acts otherwise the value under the mean kernel jumps somewhere: there is a step halfway.

    Parameters
    ----------
    path : `drmdp.radius.Path`
        What `drmdp.radius.path` found.
    mark : float, optional
        A radius to draw a line at.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check_path(path, "path")
    noun = kind(path.model)
    with axes(ax, HEIGHT) as ax:
        case = "best" if path.ball.nature == "cooperative" else "worst"
        ax.plot(path.radii, path.worst, color=BLUE, marker="o", label=f"{case} case")
        line, at = _steps(path)
        ax.plot(*line, color=ORANGE, marker="s", markevery=at, label="under the mean kernel")
        if mark is not None:
            ax.axvline(mark, color=ink(), linestyle=":", label="this ball")
        ax.set(xlabel="radius", ylabel=f"{noun}, mean over the start")
        numbers(ax.yaxis)
        legend(ax, 3)
    return ax


def sets(paths: Sequence[Path], names: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Worst case of the best policy over the size of several sets, each a `drmdp.radius.path` of the same model; returns the axes.

    Sizes are not comparable as numbers, so they are shares of the way from the mean kernel to where the set allows all that it ever does, or, of a set that has
    no such end (Burg's divergence), to the last radius of its path: its name says so.

    Parameters
    ----------
    paths : sequence of `drmdp.radius.Path`
        One for each set.
    names : sequence, optional
        What the sets are called; by default what they are.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    own = list(paths) if isinstance(paths, Sequence) else [paths]
    for k, path in enumerate(own):
        check_path(path, f"paths: {k}")
        if path.model.fingerprint != own[0].model.fingerprint:
            raise InputError(f"paths: {k} is of another model than 0")
    if not own or (names is not None and len(names) != len(own)):
        raise InputError(f"paths: expected one or more, and a name for each, got {len(own)} and {shown(names)}")
    labels = [path.ball.short for path in own] if names is None else [label(name, 40) for name in names]
    with axes(ax, HEIGHT + 0.1 * len(own)) as ax:
        for k, (path, name) in enumerate(zip(own, labels, strict=True)):
            share, end = _share(path)
            look = {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[k % len(MARKERS)]}
            ax.plot(share, path.worst, label=f"{name}{end}", **look)
        side = "best" if own[0].ball.nature == "cooperative" else "worst"
        ax.set(
            xlabel="size, as a share of the largest", ylabel=f"{side}-case {kind(own[0].model)}, mean over the start"
        )
        numbers(ax.yaxis)
        legend(ax, 2)
    return ax


def _steps(path: Path) -> tuple[Any, list[int]]:
    """Radii and values under the mean kernel, (2, n), with a step where an action of a state is dropped for another; and where the radii of the path are."""
    line, at = [], []
    for k, (point, value) in enumerate(zip(path.points, path.nominal, strict=True)):
        before = path.points[k - 1] if k else point
        if np.abs(point.policy - before.policy).max() > 0.5:
            middle = (before.radius + point.radius) / 2
            line += [(middle, path.nominal[k - 1]), (middle, value)]
        at.append(len(line))
        line.append((point.radius, value))
    return np.array(line).T, at


def _share(path: Path) -> tuple[Any, str]:
    """Sizes between 0, the mean kernel, and 1; and words where that is no end of the set."""
    if getattr(path.ball, "level", None) is not None:  # from 1 down
        return (1 - path.radii) / max(1 - path.saturation, np.finfo(float).tiny), ""
    if np.isfinite(path.saturation):
        return path.radii / (path.saturation or 1.0), ""
    return path.radii / (path.radii.max() or 1.0), f", up to {path.radii.max():.3g}"


def choice(found: Choice, ax: Any = None) -> Any:
    """Value of the candidate of each radius on the kernels held out: mean, the middle 80 % and the worst; returns the axes.

    Parameters
    ----------
    found : `drmdp.radius.Choice`
        What `drmdp.radius.choose` or `cross_validate` found.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
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
        numbers(ax.yaxis)
        legend(ax, 4)
    return ax
