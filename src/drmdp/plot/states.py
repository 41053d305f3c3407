"""What to do in each state, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array, IntArray
from drmdp.core.signs import outward
from drmdp.plot import plans
from drmdp.plot._axes import COLUMNS, ROWS, axes, chosen, kind, label, legend, model_of, side, ticks, turn, upright
from drmdp.plot.style import BLUE, CELLS, ORANGE, fading, ink, numbers
from drmdp.policies.fixed_kernel import plan_values
from drmdp.policies.values import by_kernel
from drmdp.solution import HorizonSolution, Solution

COLOURS = "cividis"
SEEN = 0.004
"""Bounds that are nearer than this share of the axis are one point."""


def policy(solution: Solution, ax: Any = None) -> Any:
    """Heat map of the probability of each action in each state; returns the axes. That of a `HorizonSolution` is `drmdp.plot.plan`.

    Of many states those are shown that are visited most, or that come first if the model is not known: no row stands for several states. Of many actions,
    the most played are shown. See `drmdp.plot.map` for states that are places.

    Parameters
    ----------
    solution : Solution
        What `drmdp.solve` found.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if isinstance(solution, HorizonSolution):
        return plans.plan(solution, ax)
    rows, which = chosen(solution, model_of(solution, None), ROWS)
    shown = np.asarray(solution.policy)[rows]
    return cells(
        shown,
        [solution.states[int(s)] for s in rows],
        solution.actions,
        ("played", "probability of the action"),
        which,
        ax,
    )


def cells(
    x: Array, states: Sequence[Any], actions: Sequence[Any], words: tuple[str, str], which: str = "", ax: Any = None
) -> Any:
    """Heat map of numbers in [0, 1] for each of some states and each action, or the actions that have most: what they are then, and what the numbers are."""
    often = x.sum(axis=0)
    columns = np.arange(often.size)
    if often.size > COLUMNS:
        columns = np.sort(np.argsort(-often, kind="stable")[: min(COLUMNS, max(int((often > 0).sum()), 1))])
    names = [label(actions[a]) for a in columns]
    with axes(ax, 1.3 + 0.19 * max(len(states), 3) + upright(names)) as ax:
        image = ax.imshow(x[:, columns], aspect="auto", cmap=fading(CELLS[0]), vmin=0, vmax=1, interpolation="nearest")
        ticks(ax.yaxis, [label(state) for state in states])
        ticks(ax.xaxis, names)
        turn(ax, names)
        some = columns.size < often.size
        ax.set(
            xlabel=f"action, the {columns.size} {words[0]} most of {often.size:,}" if some else "action",
            ylabel=f"state{which}",
        )
        ax.grid(False)
        bar(ax, image, words[1])
    return ax


def values(solution: Solution | HorizonSolution, model: Any = None, ax: Any = None) -> Any:
    """Certified worst case of each state and, if the model is known, the value under the mean kernel; returns the axes. Of a plan, from each stage on.

    The bound on what any policy can reach is drawn where it can be told from the worst case. Of many states those are shown that are visited most, or that
    come first if the model is not known.

    Parameters
    ----------
    solution : Solution or HorizonSolution
        What `drmdp.solve` or `drmdp.finite_horizon` found.
    model : Model, or a sequence of models, optional
        For a solution that was loaded, which does not hold it.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if isinstance(solution, HorizonSolution):
        return _by_stage(solution, model, ax)
    found = model_of(solution, model)
    rows, which = chosen(solution, found, ROWS)
    names = [label(solution.states[int(s)]) for s in rows]
    with axes(ax, 1.7 + 0.19 * max(rows.size, 3)) as ax:
        _dots(ax, solution, None if found is None else policies.under(found, solution.policy, [None])[0], rows)
        ticks(ax.yaxis, names)
        ax.set(xlabel=kind(found), ylabel=f"state{which}", ylim=(rows.size - 0.5, -0.5))
        numbers(ax.xaxis)
        legend(ax, 3, names)
    return ax


def _by_stage(plan: HorizonSolution, models: Any, ax: Any) -> Any:
    """Lines over stages, one a state: the first ones that have a value."""
    alive = np.flatnonzero(plan.value.any(axis=0))
    shown = alive[: len(CELLS)]
    means = None if models is None else by_kernel(models, plan, [None])[0]
    if plan.natures is not None:
        stages = plan.natures.stages
        means = outward(stages.first, plan_values(stages.models, plan.policy, None, stages.final))
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
    value, lower, upper = (array[rows] for array in (solution.value, solution.lower, solution.upper))
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


def bar(ax: Any, image: Any, text: str) -> None:
    """A colour bar that says what the colours are."""
    own = ax.figure.colorbar(
        image, ax=ax, location="top", aspect=40, shrink=0.9, pad=0.15 / ax.figure.get_size_inches()[1]
    )
    own.outline.set_visible(False)
    own.ax.tick_params(labelsize=ax.xaxis.label.get_size())
    own.set_label(text, fontsize="small")
