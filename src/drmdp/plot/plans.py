"""Plans as maps of stages and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.names import coordinates
from drmdp.plot._axes import ROWS, axes, check, label, legend, span, ticks
from drmdp.plot.style import CELLS
from drmdp.solution import HorizonSolution
from drmdp.ui.text import count

STAGES = 400
"""Of more stages, every second, third, … is shown."""
TICKS = 8
"""Stages that are named."""
SORTED = 250_000
"""Names of more states are not sorted."""
GREY = "#999999"
"""Actions beyond the palette, and states that have none."""


def plan(plan: HorizonSolution, ax: Any = None) -> Any:
    """Map of the likeliest action by stage and state, fainter where it is not certain; returns the
    axes.

    Neighbouring states that act alike at every stage share a row. If there are more rows than fit,
    states that are named by numbers are put in their order, and the rows of the most states are
    shown. See `drmdp.plot.map` for states that are places.

    Parameters
    ----------
    plan : HorizonSolution
        The result of `drmdp.finite_horizon`.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check("plan", plan, HorizonSolution, "a drmdp.HorizonSolution")
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
        extent = -0.5, float(stages[-1]) + step - 0.5, len(rows) - 0.5, -0.5
        ax.imshow(cells, aspect="auto", interpolation="nearest", extent=extent)
        ticks(ax.yaxis, [span(names, lo, hi) for lo, hi in ends.T.tolist()])
        stage_axis(ax, plan)
        omitted = len(first) - len(rows)
        ax.set_ylabel(f"state, {count(omitted, 'group')} of fewer left out" if omitted else "state")
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
    parts = coordinates(names, range(len(names))) if len(names) <= SORTED else None
    return None if parts is None else np.lexsort(parts[0].T[::-1])


def groups(policy: Array) -> tuple[IntArray, IntArray]:
    """First states of the runs of neighbours that act alike at T stages, (T, S, A), and the numbers
    of the runs that are shown.
    """
    alike = (np.abs(np.diff(policy, axis=1)) < 0.005).all(axis=(0, 2))
    first = np.flatnonzero(np.append(True, ~alike))
    sizes = np.diff(np.append(first, policy.shape[1]))
    return first, np.sort(np.argsort(-sizes, kind="stable")[:ROWS])


def colours(x: Array) -> tuple[Array, IntArray]:
    """RGBA of cells (…, A) of probabilities: the colour of the likeliest action, as opaque as it is
    likely; and the actions that have their own.
    """
    from matplotlib.colors import to_rgb

    often = x.reshape(-1, x.shape[-1]).sum(axis=0)
    used = np.argsort(-often, kind="stable")
    used = np.sort(used[often[used] > 0][: len(CELLS)])
    palette = np.array([to_rgb(GREY)] * often.size)
    palette[used] = [to_rgb(colour) for colour in CELLS[: used.size]]
    opaque = np.where(x.any(axis=-1), 0.25 + 0.75 * x.max(axis=-1), 0.0)
    return np.concatenate([palette[x.argmax(axis=-1)], opaque[..., None]], axis=-1), used


def palette_legend(ax: Any, actions: Any, used: IntArray, x: Array) -> None:
    """A legend of the colours of actions."""
    from matplotlib.patches import Patch

    pairs = zip(CELLS, used.tolist(), strict=False)
    handles = [Patch(color=colour, label=label(actions[a])) for colour, a in pairs]
    if (x > 0).reshape(-1, x.shape[-1]).any(axis=0).sum() > used.size:
        handles.append(Patch(color=GREY, label="others"))
    if not x.any(axis=-1).all():
        handles.append(Patch(facecolor="none", edgecolor=GREY, label="no action"))
    legend(ax, 5, handles=handles)
