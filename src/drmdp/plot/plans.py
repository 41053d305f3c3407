"""What to do at each stage, as a map of stages and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.errors import InputError, described
from drmdp.plot._axes import ROWS, axes, bin_labels, label, ticks
from drmdp.plot.style import PALETTE
from drmdp.solution import HorizonSolution

COLUMNS = 400
"""Of more stages, every second, third, … is shown."""
GREY = "#999999"
"""Actions beyond the palette, and states that have none."""


def check_plan(given: Any) -> None:
    """Refuse what is not a plan."""
    if not isinstance(given, HorizonSolution):
        raise InputError(f"plan: expected a drmdp.HorizonSolution, got {described(given)}")


def plan(plan: HorizonSolution, ax: Any = None) -> Any:
    """Map of the likeliest action by stage and state, paler where it is not certain; returns the axes.

    Neighbouring states that act alike at every stage share a row. If there are more rows than fit, those of the most states are shown.
    """
    check_plan(plan)
    step = -(-plan.n_stages // COLUMNS)
    stages = np.arange(0, plan.n_stages, step)
    first, rows = groups(plan.policy[stages])
    ends = np.append(first, plan.policy.shape[1])[np.stack([rows, rows + 1])]
    x = plan.policy[stages][:, ends[0]].transpose(1, 0, 2)  # (rows, stages, A)
    used = np.argsort(-x.sum(axis=(0, 1)), kind="stable")
    used = used[x.sum(axis=(0, 1))[used] > 0][: len(PALETTE)]
    with axes(ax, 1.5 + 0.19 * max(len(rows), 3)) as ax:
        ax.imshow(_colours(x, used), aspect="auto", interpolation="nearest", extent=_extent(stages, step, len(rows)))
        ticks(ax.yaxis, _names(plan, ends))
        ax.xaxis.get_major_locator().set_params(integer=True)
        left_out = len(first) - len(rows)
        ax.set(xlabel="stage", ylabel=f"state ({left_out} groups of fewer left out)" if left_out else "state")
        ax.grid(False)
        _legend(ax, [(PALETTE[k], label(plan.actions[a])) for k, a in enumerate(used)], x)
    return ax


def groups(policy: Array) -> tuple[IntArray, IntArray]:
    """First states of the runs of neighbours that act alike at all of some stages (T, S, A), and which of the runs are shown."""
    alike = (np.abs(np.diff(policy, axis=1)) < 0.005).all(axis=(0, 2))
    first = np.flatnonzero(np.append(True, ~alike))
    sizes = np.diff(np.append(first, policy.shape[1]))
    return first, np.sort(np.argsort(-sizes, kind="stable")[:ROWS])


def _colours(x: Array, used: IntArray) -> Array:
    """RGBA of each cell: the colour of the likeliest action, as opaque as it is likely."""
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(GREY)] * x.shape[2])
    for k, a in enumerate(used):
        palette[a] = to_rgb(PALETTE[k])
    best = x.argmax(axis=2)
    opaque = np.where(x.any(axis=2), 0.25 + 0.75 * x.max(axis=2), 0.0)
    return np.concatenate([palette[best], opaque[:, :, None]], axis=2)


def _extent(stages: IntArray, step: int, rows: int) -> tuple[float, float, float, float]:
    return -0.5, float(stages[-1]) + step - 0.5, rows - 0.5, -0.5


def _names(plan: HorizonSolution, ends: Any) -> list[str]:
    names = [plan.states[s] for pair in ends.T.tolist() for s in (pair[0], pair[1] - 1)]
    return [
        label(names[2 * k]) if lo + 1 == hi else bin_labels(names[2 * k : 2 * k + 2], np.array([0, 2]))[0]
        for k, (lo, hi) in enumerate(ends.T.tolist())
    ]


def _legend(ax: Any, entries: list[tuple[str, str]], x: Array) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=name) for colour, name in entries]
    if (x > 0).any(axis=(0, 1)).sum() > len(entries):
        handles.append(Patch(color=GREY, label="others"))
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0, fontsize="small")
