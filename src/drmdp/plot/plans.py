"""What to do at each stage, as a map of stages and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.names import coordinates
from drmdp.core.text import count
from drmdp.errors import InputError, described
from drmdp.plot._axes import ROWS, axes, label, legend, span, ticks
from drmdp.plot.style import CELLS
from drmdp.solution import HorizonSolution

STAGES = 400
"""Of more stages, every second, third, … is shown."""
TICKS = 8
"""Stages that are named."""
SORTED = 250_000
"""Names of more states are not sorted."""
GREY = "#999999"
"""Actions beyond the palette, and states that have none."""


def check_plan(given: Any) -> None:
    """Refuse what is not a plan."""
    if not isinstance(given, HorizonSolution):
        raise InputError(f"plan: expected a drmdp.HorizonSolution, got {described(given)}")


def plan(plan: HorizonSolution, ax: Any = None) -> Any:
    """Map of the likeliest action by stage and state, fainter where it is not certain; returns the axes.

    Neighbouring states that act alike at every stage share a row. If there are more rows than fit, states that are named by numbers are put in their order, and
    the rows of the most states are shown. See `drmdp.plot.map` for states that are places.

    Parameters
    ----------
    plan : HorizonSolution
        What `drmdp.finite_horizon` found.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check_plan(plan)
    step = -(-plan.n_stages // STAGES)
    stages = np.arange(0, plan.n_stages, step)
    policy, names = plan.policy[stages], plan.states
    first, rows = groups(policy)
    order = _by_number(names) if len(first) > len(rows) else None
    if order is not None:
        policy, names = policy[:, order], [names[int(s)] for s in order]
        first, rows = groups(policy)
    ends = np.append(first, policy.shape[1])[np.stack([rows, rows + 1])]
    x = policy[:, ends[0]].transpose(1, 0, 2)  # (rows, stages, A)
    cells, used = colours(x)
    with axes(ax, 1.5 + 0.19 * max(len(rows), 3)) as ax:
        ax.imshow(cells, aspect="auto", interpolation="nearest", extent=_extent(stages, step, len(rows)))
        ticks(ax.yaxis, [span(names, lo, hi) for lo, hi in ends.T.tolist()])
        stage_axis(ax, plan)
        left_out = len(first) - len(rows)
        ax.set(ylabel=f"state, {count(left_out, 'group')} of fewer left out" if left_out else "state")
        ax.grid(False)
        palette_legend(ax, plan.actions, used, x)
    return ax


def stage_axis(ax: Any, plan: HorizonSolution) -> None:
    """Stages on the x axis, by their numbers or names."""
    word, names = plan.stage_labels
    ax.set_xlabel(label(word))
    ax.xaxis.get_major_locator().set_params(integer=True)
    if plan.stage_names is not None:
        shown = range(0, len(names), max(1, -(-len(names) // TICKS)))
        ax.set_xticks(shown, [label(names[t], 10) for t in shown])


def _by_number(names: Any) -> IntArray | None:
    """Places of names in the order of the numbers that they are made of; None if they are not."""
    found = coordinates(names, range(len(names))) if len(names) <= SORTED else None
    return None if found is None else np.lexsort(found[0].T[::-1])


def groups(policy: Array) -> tuple[IntArray, IntArray]:
    """First states of the runs of neighbours that act alike at all of some stages (T, S, A), and which of the runs are shown."""
    alike = (np.abs(np.diff(policy, axis=1)) < 0.005).all(axis=(0, 2))
    first = np.flatnonzero(np.append(True, ~alike))
    sizes = np.diff(np.append(first, policy.shape[1]))
    return first, np.sort(np.argsort(-sizes, kind="stable")[:ROWS])


def colours(x: Array) -> tuple[Array, IntArray]:
    """RGBA of cells (…, A) of probabilities: the colour of the likeliest action, as opaque as it is likely; and the actions that have their own."""
    from matplotlib.colors import to_rgb

    often = x.reshape(-1, x.shape[-1]).sum(axis=0)
    used = np.argsort(-often, kind="stable")
    used = np.sort(used[often[used] > 0][: len(CELLS)])
    palette = np.array([to_rgb(GREY)] * often.size)
    palette[used] = [to_rgb(colour) for colour in CELLS[: used.size]]
    opaque = np.where(x.any(axis=-1), 0.25 + 0.75 * x.max(axis=-1), 0.0)
    return np.concatenate([palette[x.argmax(axis=-1)], opaque[..., None]], axis=-1), used


def _extent(stages: IntArray, step: int, rows: int) -> tuple[float, float, float, float]:
    return -0.5, float(stages[-1]) + step - 0.5, rows - 0.5, -0.5


def palette_legend(ax: Any, actions: Any, used: IntArray, x: Array) -> None:
    """Which action has which colour."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=label(actions[a])) for colour, a in zip(CELLS, used.tolist(), strict=False)]
    if (x > 0).reshape(-1, x.shape[-1]).any(axis=0).sum() > used.size:
        handles.append(Patch(color=GREY, label="others"))
    if not x.any(axis=-1).all():
        handles.append(Patch(facecolor="none", edgecolor=GREY, label="no action"))
    legend(ax, 5, handles=handles)
