"""What to do in each state, and what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array
from drmdp.model import Model
from drmdp.plot import plans
from drmdp.plot._axes import ROWS, axes, kind, label, legend, model_of, ticks, turn, upright
from drmdp.plot.style import BLACK, BLUE, ORANGE
from drmdp.solution import HorizonSolution, Solution

COLOURS = "cividis"
MOST = 60
"""Rows of a map of states."""


def policy(solution: Solution, ax: Any = None) -> Any:
    """Heat map of the probability of each action in each state; returns the axes. That of a `HorizonSolution` is `drmdp.plot.plan`.

    Beyond `MOST` states those are shown that are visited most, or that come first if the model is not known: no row stands for several states. Of many
    actions, the most played are shown.
    """
    if isinstance(solution, HorizonSolution):
        return plans.plan(solution, ax)
    found = model_of(solution, None)
    total = len(solution.states)
    rows = np.arange(min(total, MOST))
    if total > MOST and found is not None:
        rows = policies.most_visited(found, solution.policy, MOST)
    x = np.asarray(solution.policy)[rows]
    often = x.sum(axis=0)
    columns = np.arange(often.size)
    if often.size > ROWS:
        columns = np.sort(np.argsort(-often, kind="stable")[: min(ROWS, max(int((often > 0).sum()), 1))])
    names = [label(solution.actions[a]) for a in columns]
    which = (
        f", {rows.size} {'visited most' if found is not None else 'that come first'} of {total:,}"
        if total > MOST
        else ""
    )
    with axes(ax, 1.3 + 0.19 * max(rows.size, 3) + upright(names)) as ax:
        image = ax.imshow(x[:, columns], aspect="auto", cmap=COLOURS, vmin=0, vmax=1, interpolation="nearest")
        ticks(ax.yaxis, [label(solution.states[int(s)]) for s in rows], MOST)
        ticks(ax.xaxis, names)
        turn(ax, names)
        some = columns.size < often.size
        ax.set(xlabel="action, most played" if some else "action", ylabel=f"state{which}")
        ax.grid(False)
        _bar(ax, image, "probability of the action")
    return ax


def values(solution: Solution, model: Model | None = None, ax: Any = None) -> Any:
    """Certified worst case of each state and, if the model is known, the value under the mean kernel; returns the axes.

    Up to 40 states are shown one by one, with the bound on what any policy can reach; more as a histogram.
    """
    found = model_of(solution, model)
    mean = None if found is None else policies.under(found, solution.policy, [None])[0]
    many = len(solution.states) > ROWS
    with axes(ax, 3.2 if many else 1.7 + 0.19 * max(len(solution.states), 3)) as ax:
        (_histogram if many else _dots)(ax, solution, mean, kind(found))
        legend(ax, 3, () if many else [label(name) for name in solution.states])
    return ax


def _dots(ax: Any, solution: Solution, mean: Array | None, noun: str) -> None:
    rows = np.arange(len(solution.states))
    other = np.where(solution.value == solution.upper, solution.lower, solution.upper)
    ax.hlines(rows, solution.lower, solution.upper, color=BLACK)
    if mean is not None:
        ax.hlines(rows, np.minimum(mean, solution.value), np.maximum(mean, solution.value), color=BLUE, alpha=0.35)
        ax.plot(mean, rows, "s", color=ORANGE, label="under the mean kernel")
    ax.plot(solution.value, rows, "o", color=BLUE, label="worst case")
    ax.plot(other, rows, "|", color=BLACK, markersize=9, label="no policy does better")
    ticks(ax.yaxis, [label(name) for name in solution.states])
    ax.invert_yaxis()
    ax.set(xlabel=noun, ylabel="state")


def _histogram(ax: Any, solution: Solution, mean: Array | None, noun: str) -> None:
    both = [solution.value] if mean is None else [solution.value, mean]
    edges = np.histogram_bin_edges(np.concatenate(both), bins=ROWS)
    shares = [np.histogram(values, edges)[0] / values.size for values in both]
    ax.stairs(shares[0], edges, fill=True, color=BLUE, alpha=0.6, label="worst case")
    if mean is not None:
        ax.stairs(shares[1], edges, color=ORANGE, linewidth=1.8, label="under the mean kernel")
    ax.set(xlabel=noun, ylabel="share of the states", ylim=(0, None))


def _bar(ax: Any, image: Any, text: str) -> None:
    """A colour bar that says what the colours are."""
    bar = ax.figure.colorbar(image, ax=ax, location="top", aspect=40, shrink=0.9)
    bar.outline.set_visible(False)
    bar.set_label(text, fontsize="small")
