"""Changes of transitions by nature, prices of doubt, and where data would help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import policies
from drmdp._typing import Array, IntArray
from drmdp.core.compact import MeanKernel
from drmdp.core.validation import integer
from drmdp.model import Model
from drmdp.plot._axes import (
    COLUMNS,
    ROWS,
    axes,
    check,
    heat_map,
    kind,
    label,
    legend,
    most_first,
    needed,
    side,
    ticks,
    upright,
)
from drmdp.plot.style import BLUE, CELLS, GREEN, ORANGE, RED, fading, ink, numbers
from drmdp.policies.values import NOTHING, known_model
from drmdp.radius import Measurements
from drmdp.solution import HorizonSolution, Solution, check_solution
from drmdp.solution.rows import in_words

BESIDE: Any = {"textcoords": "offset points", "va": "center"}
APART = 0.01
"""Prices of more and of less doubt that differ by a smaller share are one."""
VISITED = 100
"""In larger models, transitions are searched in the states visited most."""


def kernel(solution: Solution, model: Model | None = None, ax: Any = None) -> Any:
    """Heat map of how nature changed the transitions of the policy: worst-case minus mean kernel;
    returns the axes.

    Of many states so many are shown, beginning with the one that is visited most, as fit with all
    next states whose probabilities change.

    Parameters
    ----------
    solution : Solution
        The result of `drmdp.solve`.
    model : Model, optional
        For a solution that was loaded, which does not hold it.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    model = needed(solution, model)
    change, rows, columns = _fitting(solution, model)
    names, nexts = ([label(model.states[int(s)]) for s in states] for states in (rows, columns))
    S, others = model.n_states, np.unique(change.indices).size - columns.size
    with axes(ax, 1.4 + 0.19 * max(rows.size, 3) + upright(nexts)) as ax:
        most = float(abs(change).max()) or 1.0
        look: Any = {"cmap": fading(CELLS[3], CELLS[0]), "vmin": -most, "vmax": most}
        heat_map(ax, change[:, columns].toarray(), names, nexts, "change of probability", **look)
        which = ", all that change" if S > COLUMNS else ""
        if others > 0:
            which = f", the {columns.size} that change most; {others:,} more do"
        ylabel = f"from, {rows.size} of {S:,} states" if rows.size < S else "from"
        ax.set(xlabel=f"next state{which}", ylabel=ylabel)
    return ax


def _fitting(solution: Solution, model: Model) -> tuple[Any, IntArray, IntArray]:
    """Changes (n, S) from the states that are shown, these, and the next states that are shown."""
    S = model.n_states
    if S <= COLUMNS:
        return moved(solution, model, np.arange(S)), np.arange(S), np.arange(S)
    visits = np.where(model.terminal, -1.0, policies.visits(model, solution.policy))
    order = np.argsort(-visits, kind="stable")[:ROWS]
    change = moved(solution, model, order)
    nexts: set[int] = set()
    n = order.size
    for k in range(n):
        nexts.update(change.indices[change.indptr[k] : change.indptr[k + 1]].tolist())
        if len(nexts) > COLUMNS:
            n = max(k, 1)
            break
    place = np.argsort(order[:n])
    change = change[place]
    total = np.asarray(abs(change).sum(axis=0)).ravel()
    return change, order[:n][place], most_first(total, COLUMNS)


def moved(solution: Solution, model: Model, states: IntArray) -> Any:
    """Change of transition probabilities from n states under the policy, a sparse (n, S)."""
    mean, A, kernel = model.mean_matrix()[0], model.n_actions, solution.kernel
    rows = []
    for s in states.tolist():
        worst = kernel.rows(s) if isinstance(kernel, MeanKernel) else kernel[s]
        off = solution.policy[s] @ (worst - mean[s * A : (s + 1) * A].toarray())
        rows.append(sparse.csr_array(np.where(np.abs(off) > NOTHING, off, 0.0)[None]))
    return sparse.vstack(rows, format="csr")


def transitions(solution: Solution, model: Model | None = None, n: int = 12, ax: Any = None) -> Any:
    """The n played transitions that nature bent most: probability in the mean kernel and in the
    worst case; returns the axes.

    Parameters
    ----------
    solution : Solution
        The result of `drmdp.solve`.
    model : Model, optional
        For a solution that was loaded, which does not hold it.
    n : int
        How many transitions.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    most = bent(solution, needed(solution, model), n)
    ends = ((label(b.state, 9), label(b.action, 9), label(b.next_state, 9)) for b in most)
    names = [f"{state}, {action} → {target}" for state, action, target in ends]
    rows = np.arange(len(most))
    with axes(ax, 1.4 + 0.24 * max(len(most), 2)) as ax:
        nominal, worst = np.array([[b.nominal, b.worst] for b in most]).reshape(-1, 2).T
        ax.hlines(rows, nominal, worst, color=RED, alpha=0.5)
        ax.plot(nominal, rows, "s", color=ORANGE, label="mean kernel")
        ax.plot(worst, rows, "o", color=RED, label=f"{side(solution)} case")
        ticks(ax.yaxis, names)
        ax.invert_yaxis()
        ax.set(xlabel="probability", ylabel="state, action → next state")
        ax.margins(y=0.5 / max(len(most), 1))
        legend(ax, 2, names)
    return ax


def bent(solution: Solution, model: Model, n: int) -> tuple[policies.Bent, ...]:
    """`policies.bent` of the actions played, in the states visited most if they are many."""
    states = policies.most_visited(model, solution.policy, VISITED)
    return policies.bent(model, solution.kernel, n, solution.policy, states=states)


def prices(solution: Solution | HorizonSolution, n: int = 12, ax: Any = None) -> Any:
    """The n largest prices of doubt (`Solution.prices`), by state or by pair; returns the axes.

    Bars are what a little more radius costs; a mark shows what a little less saves where that is
    another number. Those of a plan are summed over its stages. Bars that are marked ∞ have no end:
    there a divergence has radius 0.

    Parameters
    ----------
    solution : Solution or HorizonSolution
        The result of `drmdp.solve` or `drmdp.finite_horizon`, with its model.
    n : int
        How many states, or pairs, at most.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    if isinstance(solution, HorizonSolution):
        more, less = solution.prices.sum(axis=0), solution.prices_less.sum(axis=0)
        noun = solution.noun
        ambiguity = solution.natures.stages.sets[0]
    else:
        check_solution(solution)
        more, less = solution.prices, solution.prices_less
        noun = kind(known_model(solution, None))
        ambiguity = solution.problem[1]
    size = np.maximum(np.abs(more), np.abs(less))
    largest = np.argsort(-np.where(np.isinf(less), np.abs(more), size), axis=None, kind="stable")
    shown = largest[size.ravel()[largest] > 0][: integer("n", n, 1)]
    bars, marks = more.ravel()[shown], less.ravel()[shown]
    places = np.stack(np.unravel_index(shown, more.shape), axis=1)
    with _bars(solution, places, bars, BLUE, "a little more doubt", ax) as ax:
        apart = np.isfinite(marks) & (np.abs(marks) * (1 - APART) > np.abs(bars))
        if apart.any():
            rows = np.flatnonzero(apart)
            style = {"color": ink(), "markersize": 11, "markeredgewidth": 2}
            ax.plot(marks[apart], rows, "|", label="a little less", **style)
            legend(ax, 2)
        unit = ambiguity.size_name
        ax.set(xlabel=f"change of the {side(solution)}-case {noun} per unit of {unit}")
    return ax


def measure_next(measurements: Measurements, n: int = 12, ax: Any = None) -> Any:
    """The n states, or pairs, where more rows of data would improve most; returns the axes.

    Parameters
    ----------
    measurements : `drmdp.radius.Measurements`
        The result of `drmdp.radius.measure_next`.
    n : int
        How many at most.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check("measurements", measurements, Measurements, "what drmdp.radius.measure_next returned")
    places = measurements.order[: integer("n", n, 1)]
    with _bars(measurements, places, measurements.gains[tuple(places.T)], GREEN, "gain", ax) as ax:
        for k, rows in enumerate(measurements.counts[tuple(places.T)].tolist()):
            ax.annotate(in_words(rows), (0, k), (3, 0), fontsize="small", **BESIDE)
        ax.set(xlabel=f"improvement by {measurements.rows:,} more rows, estimated")
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
