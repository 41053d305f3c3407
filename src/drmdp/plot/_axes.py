"""Axes in the style of the package, and the user's names on them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array, IntArray
from drmdp.errors import InputError, described
from drmdp.model import Model
from drmdp.plot.style import CELLS, fading, styled
from drmdp.policies.values import known_model
from drmdp.solution import Solution, check_solution

WIDTH = 5.4
"""Of a picture, in inches: its letters are still read on a phone."""
ROWS, COLUMNS = 60, 40
"""More do not fit: those that matter most are shown."""
LETTERS = 20
"""Longer names are cut in the middle: what tells them apart is often at the end."""
FREE = "free"
"""Label of a figure that takes the size its picture asks for; that of a caller's own figure is left
alone.
"""


@contextmanager
def axes(ax: Any, height: float) -> Iterator[Any]:
    """Axes to draw on: those given, or new ones, as high as the picture needs. Dollar signs are no
    mathematics: names are data.
    """
    with styled({"text.parse_math": False}) as plt:
        if ax is None:
            ax = plt.subplots(figsize=(WIDTH, height))[1]
        elif ax.figure.get_label() == FREE:
            ax.figure.set_size_inches(WIDTH, height)
        yield ax


def check(name: str, value: Any, kind: type, expected: str) -> None:
    """Refuse what is of another kind than what is expected."""
    if not isinstance(value, kind):
        raise InputError(f"{name}: expected {expected}, got {described(value)}")


def label(name: Any, letters: int = LETTERS) -> str:
    """A name on one short line that any backend can draw."""
    text = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(name))
    text = " ".join(text.split())
    if len(text) <= letters:
        return text
    half = letters // 2
    return f"{text[: letters - half]}…{text[len(text) - half + 1 :]}"


def span(names: Sequence[Any], lo: int, hi: int) -> str:
    """The name of a state, or the first and the last one of neighbours lo, …, hi − 1."""
    if hi - lo == 1:
        return label(names[lo])
    return f"{label(names[lo], 9)} – {label(names[hi - 1], 9)}"


def most_first(weights: Array, most: int) -> IntArray:
    """Numbers of the largest positive weights, at most so many, ascending; at least one."""
    largest = np.argsort(-weights, kind="stable")
    return np.sort(largest[: min(most, max(np.count_nonzero(weights > 0), 1))])


def chosen(solution: Solution, model: Model | None, most: int) -> tuple[IntArray, str]:
    """Numbers of the states that are shown, and words that say which they are: all, or those
    visited most, or first if the model is not known.
    """
    total = len(solution.states)
    if total <= most:
        return np.arange(total), ""
    if model is None:
        return np.arange(most), f", the first {most} of {total:,}"
    rows = policies.most_visited(model, solution.policy, most)
    return rows, f", the {rows.size} visited most of {total:,}"


def inches(ax: Any) -> tuple[float, float]:
    """Width and height of axes, about: before their labels take room."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def ticks(axis: Any, labels: Sequence[str], most: int = ROWS) -> None:
    """Name positions 0, 1, 2, …; every second, third, … if they are many, in small letters where
    rows are low.
    """
    step = max(1, -(-len(labels) // most))
    axis.set_ticks(range(0, len(labels), step), list(labels)[::step])
    if axis.axis_name == "y":
        points = 72 * inches(axis.axes)[1] / max(1, -(-len(labels) // step))
        axis.set_tick_params(labelsize=min(max(0.9 * points, 5.0), axis.label.get_size()))


def upright(labels: Sequence[str]) -> float:
    """Inches that names on the x axis need to stand upright; 0 if they can lie."""
    return 0.08 * max(map(len, labels)) if sum(map(len, labels)) > 45 else 0.0


def turn(ax: Any, labels: Sequence[str]) -> None:
    """Turn names on the x axis that would run into each other."""
    if upright(labels):
        size = min(ax.xaxis.label.get_size(), 270 / len(labels))
        ax.tick_params(axis="x", labelrotation=90, labelsize=size)


def heat_map(
    ax: Any, cells: Array, rows: Sequence[str], columns: Sequence[str], text: str, **look: Any
) -> None:
    """Cells with names of rows and columns, and what their colours are."""
    image = ax.imshow(cells, aspect="auto", interpolation="nearest", **look)
    ticks(ax.yaxis, rows)
    ticks(ax.xaxis, columns)
    turn(ax, columns)
    ax.grid(False)
    bar(ax, image, text)


def cells(x: Array, states: Any, actions: Any, words: tuple[str, str], which: str, ax: Any) -> Any:
    """Heat map of numbers in [0, 1] by state and action, or by the actions that have most; `words`
    are a participle for these and a name for the numbers.
    """
    often, xlabel = x.sum(axis=0), "action"
    columns = np.arange(often.size)
    if often.size > COLUMNS:
        columns = most_first(often, COLUMNS)
        xlabel += f", the {columns.size} {words[0]} most of {often.size:,}"
    names = [label(actions[a]) for a in columns]
    with axes(ax, 1.3 + 0.19 * max(len(states), 3) + upright(names)) as ax:
        rows = [label(state) for state in states]
        heat_map(ax, x[:, columns], rows, names, words[1], vmin=0, vmax=1, cmap=fading(CELLS[0]))
        ax.set(xlabel=xlabel, ylabel=f"state{which}")
    return ax


def bar(ax: Any, image: Any, text: str) -> None:
    """A colour bar above the axes, with a text."""
    pad = 0.15 / ax.figure.get_size_inches()[1]
    look = {"location": "top", "aspect": 40, "shrink": 0.9}
    colourbar = ax.figure.colorbar(image, ax=ax, pad=pad, **look)
    colourbar.outline.set_visible(False)
    colourbar.ax.tick_params(labelsize=ax.xaxis.label.get_size())
    colourbar.set_label(text, fontsize="small")


def legend(ax: Any, columns: int, labels: Sequence[str] = (), **options: Any) -> None:
    """A legend above the axes, of at most so many columns: as many as there is room for beside long
    names on the left.
    """
    handles = options.get("handles") or ax.get_legend_handles_labels()[0]
    entries = [0.5 + 0.06 * len(str(handle.get_label())) for handle in handles]  # inches
    room = inches(ax)[0] - 0.06 * max(0, max(map(len, labels), default=0) - 10)
    counts = range(1, columns + 1)
    widths = [sum(max(entries[k::n], default=0.0) for k in range(n)) for n in counts]
    ncols = max((n for n, width in zip(counts, widths, strict=True) if width <= room), default=1)
    options |= {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
    ax.legend(ncols=ncols, fontsize="small", **options)


def model_of(solution: Solution, model: Model | None) -> Model | None:
    """`drmdp.policies.values.known_model`, after checking the solution."""
    check_solution(solution)
    return known_model(solution, model)


def needed(solution: Solution, model: Model | None) -> Model:
    """The same, or an error."""
    known = model_of(solution, model)
    if known is None:
        raise InputError("a loaded solution does not hold its model: give model=…")
    return known


def side(solution: Any) -> str:
    """The certified case of a solution or plan: best or worst."""
    return "best" if solution.settings.get("nature") == "cooperative" else "worst"


def kind(model: Model | None) -> str:
    """The noun of values: cost, reward, or value if the model is not known."""
    return "value" if model is None else "reward" if model.maximise else "cost"
