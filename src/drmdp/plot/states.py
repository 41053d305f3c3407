"""Policies and values by state."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array, IntArray
from drmdp.plot import plans
from drmdp.plot._axes import ROWS, axes, cells, chosen, kind, label, legend, model_of, side, ticks
from drmdp.plot.style import BLUE, CELLS, ORANGE, ink, numbers
from drmdp.policies.values import by_kernel, plan_under
from drmdp.solution import HorizonSolution, Solution

SEEN = 0.004
"""Bounds that are nearer than this share of the axis are one point."""


def policy(solution: Solution, ax: Any = None) -> Any:
    """Heat map of the probability of each action in each state; returns the axes. That of a
    `HorizonSolution` is `drmdp.plot.plan`.

    Of many states those are shown that are visited most, or that come first if the model is not
    known: no row stands for several states. Of many actions, the most played are shown. See
    `drmdp.plot.map` for states that are places.

    Parameters
    ----------
    solution : Solution
        The result of `drmdp.solve`.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if isinstance(solution, HorizonSolution):
        return plans.plan(solution, ax)
    rows, which = chosen(solution, model_of(solution, None), ROWS)
    names, x = [solution.states[int(s)] for s in rows], np.asarray(solution.policy)[rows]
    return cells(x, names, solution.actions, ("played", "probability of the action"), which, ax)


def values(solution: Solution | HorizonSolution, model: Any = None, ax: Any = None) -> Any:
    """Certified worst case of each state and, if the model is known, the value under the mean
    kernel; returns the axes. Of a plan, from each stage on.

    The bound on what any policy can reach is drawn where it can be told from the worst case. Of
    many states those are shown that are visited most, or that come first if the model is not known.

    Parameters
    ----------
    solution : Solution or HorizonSolution
        The result of `drmdp.solve` or `drmdp.finite_horizon`.
    model : Model, or a sequence of models, optional
        For a solution that was loaded, which does not hold it.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if isinstance(solution, HorizonSolution):
        return _by_stage(solution, model, ax)
    model = model_of(solution, model)
    rows, which = chosen(solution, model, ROWS)
    names = [label(solution.states[int(s)]) for s in rows]
    mean = None if model is None else policies.under(model, solution.policy, [None])[0]
    with axes(ax, 1.7 + 0.19 * max(rows.size, 3)) as ax:
        _dots(ax, solution, mean, rows)
        ticks(ax.yaxis, names)
        ax.set(xlabel=kind(model), ylabel=f"state{which}", ylim=(rows.size - 0.5, -0.5))
        numbers(ax.xaxis)
        legend(ax, 3, names)
    return ax


def _by_stage(plan: HorizonSolution, models: Any, ax: Any) -> Any:
    """Lines over stages, one a state: the first ones that have a value."""
    alive = np.flatnonzero(plan.value.any(axis=0))
    shown = alive[: len(CELLS)]
    means = None if models is None else by_kernel(models, plan, [None])[0]
    if plan.natures is not None:
        means = plan_under(plan.natures.stages, plan.policy, [None])[0]
    with axes(ax, 3.2) as ax:
        for colour, s in zip(CELLS, shown.tolist(), strict=False):
            ax.plot(plan.value[:, s], color=colour, label=label(plan.states[s]))
            if means is not None:
                ax.plot(means[:, s], color=colour, linestyle=":")
        if means is not None:
            ax.plot([], [], color=ink(), linestyle=":", label="under the mean kernels")
        if shown.size < alive.size:
            ax.plot([], [], " ", label=f"{alive.size - shown.size:,} more states")
        plans.stage_axis(ax, plan)
        ax.set_ylabel(f"{plan.noun} from here on, {side(plan)} case")
        numbers(ax.yaxis)
        legend(ax, 3)
    return ax


def _dots(ax: Any, solution: Solution, mean: Array | None, rows: IntArray) -> None:
    value, lower, upper = (x[rows] for x in (solution.value, solution.lower, solution.upper))
    y = np.arange(rows.size)
    ends = [lower, upper]
    if mean is not None:
        ends.append(mean[rows])
        ax.hlines(y, np.minimum(ends[2], value), np.maximum(ends[2], value), color=BLUE, alpha=0.35)
        ax.plot(ends[2], y, "s", color=ORANGE, label="under the mean kernel")
    ax.plot(value, y, "o", color=BLUE, label=f"{side(solution)} case")
    if float((upper - lower).max()) > SEEN * float(np.ptp(np.concatenate(ends))):
        ax.hlines(y, lower, upper, color=ink())
        other = np.where(value == upper, lower, upper)
        ax.plot(other, y, "|", color=ink(), markersize=9, label="no policy does better")
