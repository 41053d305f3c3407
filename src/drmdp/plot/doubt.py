"""What doubt costs, and where data would help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.validation import whole
from drmdp.errors import InputError, described
from drmdp.plot._axes import axes, kind, label, legend, side, ticks
from drmdp.plot.style import BLUE, GREEN, ink, numbers
from drmdp.policies.tables import known_model
from drmdp.radius import Measurements
from drmdp.solution import HorizonSolution, Solution, check_solution
from drmdp.solution.rows import in_words

BESIDE: Any = {"textcoords": "offset points", "va": "center"}
APART = 0.01
"""Prices of more and of less doubt that differ by a smaller share are one."""


def prices(solution: Solution | HorizonSolution, n: int = 12, ax: Any = None) -> Any:
    """The n largest prices of doubt (`Solution.prices`), by state or by pair; returns the axes.

    Bars are what a little more radius costs; a mark shows what a little less saves where that is
    another number. Those of a plan are summed over its stages. Bars that are marked ∞ have no end:
    there a divergence has radius 0.

    Parameters
    ----------
    solution : Solution or HorizonSolution
        What `drmdp.solve` or `drmdp.finite_horizon` found, with its model.
    n : int
        How many states, or pairs, at most.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if isinstance(solution, HorizonSolution):
        more, less = solution.prices.sum(axis=0), solution.prices_less.sum(axis=0)
        noun = solution.noun
        ambiguity = solution.natures.stages.balls[0]
    else:
        check_solution(solution)
        more, less = solution.prices, solution.prices_less
        noun = kind(known_model(solution, None))
        ambiguity = solution.problem[1]
    size = np.maximum(np.abs(more), np.abs(less))
    largest = np.argsort(-np.where(np.isinf(less), np.abs(more), size), axis=None, kind="stable")
    shown = largest[size.ravel()[largest] > 0][: whole("n", n, 1)]
    bars, marks = more.ravel()[shown], less.ravel()[shown]
    places = np.stack(np.unravel_index(shown, more.shape), axis=1)
    with _bars(solution, places, bars, BLUE, "a little more doubt", ax) as ax:
        apart = np.isfinite(marks) & (np.abs(marks) * (1 - APART) > np.abs(bars))
        if apart.any():
            rows = np.flatnonzero(apart)
            style = {"color": ink(), "markersize": 11, "markeredgewidth": 2}
            ax.plot(marks[apart], rows, "|", label="a little less", **style)
            legend(ax, 2)
        unit = "radius" if getattr(ambiguity, "level", None) is None else "level"
        ax.set(xlabel=f"change of the {side(solution)}-case {noun} per unit of {unit}")
    return ax


def measure_next(found: Measurements, n: int = 12, ax: Any = None) -> Any:
    """The n states, or pairs, where more rows of data would improve most; returns the axes.

    Parameters
    ----------
    found : `drmdp.radius.Measurements`
        What `drmdp.radius.measure_next` found.
    n : int
        How many at most.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if not isinstance(found, Measurements):
        expected = "what drmdp.radius.measure_next returned"
        raise InputError(f"found: expected {expected}, got {described(found)}")
    places = found.order[: whole("n", n, 1)]
    with _bars(found, places, found.gains[tuple(places.T)], GREEN, "gain", ax) as ax:
        for k, rows in enumerate(found.counts[tuple(places.T)].tolist()):
            ax.annotate(in_words(rows), (0, k), (3, 0), fontsize="small", **BESIDE)
        ax.set(xlabel=f"improvement by {found.rows:,} more rows, estimated")
    return ax


@contextmanager
def _bars(named: Any, places: Any, widths: Array, colour: str, what: str, ax: Any) -> Iterator[Any]:
    """Axes with a bar for each of some states, or pairs (n, 2), the first above."""
    lists = (named.states, named.actions)[: places.shape[1]]
    pairs = (zip(lists, place, strict=True) for place in places.tolist())
    names = [", ".join(label(known[k], 12) for known, k in pair) for pair in pairs]
    endless = np.isinf(widths)
    most = float(np.abs(widths[~endless]).max(initial=0.0)) or 1.0
    ends = np.where(endless, np.copysign(1.1 * most, widths), widths)
    with axes(ax, 1.2 + 0.26 * max(len(names), 2)) as ax:
        ax.barh(range(len(names)), ends, color=colour, alpha=0.6, label=what)
        for k in np.flatnonzero(endless).tolist():
            ax.annotate("∞", (ends[k], k), (3, 0), **BESIDE)
        ticks(ax.yaxis, names)
        what = ", ".join(("state", "action")[: len(lists)])
        ax.set(ylabel=what, ylim=(max(len(names), 1) - 0.5, -0.5))
        numbers(ax.xaxis)
        yield ax
