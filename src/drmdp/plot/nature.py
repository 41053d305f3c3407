"""What nature did to the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array, IntArray
from drmdp.model import Model
from drmdp.plot._axes import axes, bin_labels, bins, label, needed, ticks, turn, upright
from drmdp.plot.states import _bar
from drmdp.plot.style import ORANGE, RED
from drmdp.solution import Solution

DIVERGING = "PuOr_r"
VISITED = 100
"""In larger models, transitions are searched in the states visited most."""


def kernel(solution: Solution, model: Model | None = None, ax: Any = None) -> Any:
    """Heat map of how nature changed the transitions of the policy: worst-case minus mean kernel; returns the axes.

    Many states are put into bins of neighbours: the colour is the change of the probability to move from a state of one bin into another bin.
    """
    found = needed(solution, model)
    edges = bins(found.n_states)
    change = moved(solution, found, edges)
    names = bin_labels(found.states, edges)
    with axes(ax, 1.4 + 0.19 * max(len(change), 3) + upright(names)) as ax:
        most = float(np.abs(change).max()) or 1.0
        image = ax.imshow(change, aspect="auto", cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
        ticks(ax.yaxis, names)
        ticks(ax.xaxis, names)
        turn(ax, names)
        binned = len(change) < found.n_states
        ax.set(
            xlabel="next states, in bins" if binned else "next state", ylabel="from" if not binned else "from, in bins"
        )
        ax.grid(False)
        _bar(ax, image, "change of probability, worst case − mean")
    return ax


def moved(solution: Solution, model: Model, edges: IntArray) -> Array:
    """Change of the probability to go from bin to bin under the policy, (bins, bins); rows are means over their states."""
    mean = model.blocks.matrix(model.mean)
    S, A, n = model.n_states, model.n_actions, len(edges) - 1
    by_state = np.empty((S, n))
    for k in range(n):
        inside = np.zeros(S)
        inside[edges[k] : edges[k + 1]] = 1
        off = np.asarray(solution.kernel @ inside) - (mean @ inside).reshape(S, A)
        by_state[:, k] = (solution.policy * off).sum(axis=1)
    return np.asarray(np.add.reduceat(by_state, edges[:-1], axis=0) / np.diff(edges)[:, None])


def transitions(solution: Solution, model: Model | None = None, n: int = 12, ax: Any = None) -> Any:
    """The n played transitions that nature bent most: probability in the mean kernel and in the worst case; returns the axes."""
    found = needed(solution, model)
    most = bent(solution, found, n)
    names = [f"{label(one.state, 9)}, {label(one.action, 9)} → {label(one.next_state, 9)}" for one in most]
    rows = np.arange(len(most))
    with axes(ax, 1.4 + 0.24 * max(len(most), 2)) as ax:
        nominal, worst = np.array([[one.nominal, one.worst] for one in most]).reshape(-1, 2).T
        ax.hlines(rows, nominal, worst, color=RED, alpha=0.5)
        ax.plot(nominal, rows, "s", color=ORANGE, label="mean kernel")
        ax.plot(worst, rows, "o", color=RED, label="worst case")
        ticks(ax.yaxis, names)
        ax.invert_yaxis()
        ax.set(xlabel="probability", ylabel="state, action → next state")
        ax.margins(y=0.5 / max(len(most), 1))
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0, fontsize="small")
    return ax


def bent(solution: Solution, model: Model, n: int) -> tuple[policies.Bent, ...]:
    """`policies.bent` of the actions played, in the states visited most if they are many."""
    states = policies.most_visited(model, solution.policy, VISITED)
    return policies.bent(model, solution.kernel, n, solution.policy, states=states)
