"""What nature did to the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp import policies
from drmdp._typing import IntArray
from drmdp.core.compact import MeanKernel
from drmdp.model import Model
from drmdp.plot._axes import COLUMNS, ROWS, axes, label, legend, needed, side, ticks, turn, upright
from drmdp.plot.states import bar
from drmdp.plot.style import CELLS, ORANGE, RED, fading
from drmdp.policies.bent import NOTHING
from drmdp.solution import Solution

VISITED = 100
"""In larger models, transitions are searched in the states visited most."""


def kernel(solution: Solution, model: Model | None = None, ax: Any = None) -> Any:
    """Heat map of how nature changed the transitions of the policy: worst-case minus mean kernel; returns the axes.

    Of many states so many are shown, beginning with the one that is visited most, as fit with all next states whose probabilities change.

    Parameters
    ----------
    solution : Solution
        What `drmdp.solve` found.
    model : Model, optional
        For a solution that was loaded, which does not hold it.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    found = needed(solution, model)
    change, rows, columns = _fitting(solution, found)
    names, nexts = ([label(found.states[int(s)]) for s in states] for states in (rows, columns))
    S, left = found.n_states, np.unique(change.indices).size - columns.size
    with axes(ax, 1.4 + 0.19 * max(rows.size, 3) + upright(nexts)) as ax:
        most = float(abs(change).max()) or 1.0
        cells = change[:, columns].toarray()
        image = ax.imshow(
            cells, aspect="auto", cmap=fading(CELLS[3], CELLS[0]), vmin=-most, vmax=most, interpolation="nearest"
        )
        ticks(ax.yaxis, names)
        ticks(ax.xaxis, nexts)
        turn(ax, nexts)
        where = (
            f", the {columns.size} that change most; {left:,} more do"
            if left > 0
            else ", all that change"
            if S > COLUMNS
            else ""
        )
        ax.set(xlabel=f"next state{where}", ylabel=f"from, {rows.size} of {S:,} states" if rows.size < S else "from")
        ax.grid(False)
        bar(ax, image, "change of probability")
    return ax


def _fitting(solution: Solution, model: Model) -> tuple[Any, IntArray, IntArray]:
    """Changes (n, S) from the states that are shown, these, and the next states that are shown."""
    S = model.n_states
    if S <= COLUMNS:
        return moved(solution, model, np.arange(S)), np.arange(S), np.arange(S)
    order = np.argsort(-np.where(model.terminal, -1.0, policies.visits(model, solution.policy)), kind="stable")[:ROWS]
    change = moved(solution, model, order)
    seen: set[int] = set()
    n = 0
    for n in range(order.size):
        seen.update(change.indices[change.indptr[n] : change.indptr[n + 1]].tolist())
        if len(seen) > COLUMNS:
            break
    else:
        n = order.size
    n = max(n, 1)
    place = np.argsort(order[:n])
    change = change[place]
    total = np.asarray(abs(change).sum(axis=0)).ravel()
    columns = np.sort(np.argsort(-total, kind="stable")[: min(COLUMNS, max(int((total > 0).sum()), 1))])
    return change, order[:n][place], columns


def moved(solution: Solution, model: Model, states: IntArray) -> Any:
    """Change of the probability to go from some states to any under the policy, a sparse (n, S)."""
    mean, A = model.blocks.matrix(model.mean), model.n_actions
    rows = []
    for s in states.tolist():
        worst = solution.kernel.rows(s) if isinstance(solution.kernel, MeanKernel) else solution.kernel[s]
        off = solution.policy[s] @ (worst - mean[s * A : (s + 1) * A].toarray())
        rows.append(sparse.csr_array(np.where(np.abs(off) > NOTHING, off, 0.0)[None]))
    return sparse.vstack(rows, format="csr")


def transitions(solution: Solution, model: Model | None = None, n: int = 12, ax: Any = None) -> Any:
    """The n played transitions that nature bent most: probability in the mean kernel and in the worst case; returns the axes.

    Parameters
    ----------
    solution : Solution
        What `drmdp.solve` found.
    model : Model, optional
        For a solution that was loaded, which does not hold it.
    n : int
        How many transitions.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    found = needed(solution, model)
    most = bent(solution, found, n)
    names = [f"{label(one.state, 9)}, {label(one.action, 9)} → {label(one.next_state, 9)}" for one in most]
    rows = np.arange(len(most))
    with axes(ax, 1.4 + 0.24 * max(len(most), 2)) as ax:
        nominal, worst = np.array([[one.nominal, one.worst] for one in most]).reshape(-1, 2).T
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
