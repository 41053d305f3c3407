"""How much it matters which kernel is true: values over kernels, acceptability, tornado, shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.core.validation import whole
from drmdp.errors import InputError, described, shown
from drmdp.plot._axes import COLUMNS, ROWS, axes, label, legend, ticks, turn, upright
from drmdp.plot.curves import HEIGHT
from drmdp.plot.states import cells
from drmdp.plot.style import CELLS, MARKERS, PALETTE, ink, numbers
from drmdp.policies.ordinary import TIE
from drmdp.policies.sensitivity_result import Sensitivity, members
from drmdp.policies.single import noun_of

WRITTEN = 0.08
"""Shares that are smaller have no room for their number."""


def _kernels(result: Any) -> str:
    """What its kernels are called, of what is a result."""
    if not isinstance(result, Sensitivity):
        raise InputError(f"result: expected what drmdp.sensitivity found, got {described(result)}")
    return noun_of(result.kernel_names)


def over_kernels(result: Sensitivity, what: str = "values", ax: Any = None) -> Any:
    """Values, or regret, of each policy under each kernel; returns the axes.

    Parameters
    ----------
    result : Sensitivity
        What `drmdp.sensitivity` found.
    what : "values" or "regret"
        What is drawn.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    kernels, used = _kernels(result), np.flatnonzero(result.weights > 0)
    if what not in ("values", "regret"):
        raise InputError(f"what: expected 'values' or 'regret', got {shown(what)}")
    used = used[np.argsort(result.best[used], kind="stable")]
    names = [label(result.kernel_names[i]) for i in used.tolist()] if used.size <= COLUMNS else []
    side = "less than" if result.maximise else "more than"
    with axes(ax, HEIGHT + (upright(names) if names else 0)) as ax:
        for k, (name, line) in enumerate(zip(result.names, getattr(result, what), strict=True)):
            mark = {"marker": MARKERS[k % 8], "markersize": 5 if names else 2, "linestyle": ""}
            ax.plot(line[used], color=PALETTE[k % 8], label=label(name, 24), **mark)
        if what == "values":
            ax.plot(result.best[used], color=ink(), label=f"optimum of the {kernels}")
        if names:
            ticks(ax.xaxis, names)
            turn(ax, names)
        noun = result.noun if what == "values" else f"{result.noun}, {side} the optimum"
        ax.set(xlabel=f"{kernels}s in the order of their optima", ylabel=noun)
        numbers(ax.yaxis)
        legend(ax, 3)
    return ax


def acceptability(result: Sensitivity, ax: Any = None) -> Any:
    """Share of the kernels, and of each label, under which each policy is best; returns the axes.

    Parameters
    ----------
    result : Sensitivity
        What `drmdp.sensitivity` found.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    rows = {f"all {_kernels(result)}s": list(range(result.weights.size))}
    rows |= {} if result.labels is None else members([str(name) for name in result.labels])
    used = {label(name): own for name, own in rows.items() if result.weights[own].any()}
    first, w, left = result.first, result.weights, np.zeros(len(used))
    with axes(ax, 1.4 + 0.34 * max(len(used), 2)) as ax:
        for p, name in enumerate(result.names):
            part = np.array([first[p, own] @ w[own] / w[own].sum() for own in used.values()])
            place = {"left": 100 * left, "height": 0.7, "color": CELLS[p % 8]}
            bars = ax.barh(range(len(used)), 100 * part, label=label(name, 24), **place)
            texts = [f"{share:.0%}" if share >= WRITTEN else "" for share in part]
            ax.bar_label(bars, texts, label_type="center", color="black")
            left += part
        ticks(ax.yaxis, list(used))
        xlabel = f"best of these policies under … % of the {_kernels(result)}s"
        ax.set(xlabel=xlabel, xlim=(0, 100), ylim=(len(used) - 0.5, -0.5))
        ax.grid(False, axis="y")
        legend(ax, 3, list(used))
    return ax


def tornado(
    result: Sensitivity, by: str = "state", policy: str | int = 0, n: int = 15, ax: Any = None
) -> Any:  # fmt: skip
    """What moves the value of a policy, one part of the mean kernel replaced; returns the axes.

    Bars go from the 5 % to the 95 % quantile over the kernels; see `Sensitivity.tornado`.

    Parameters
    ----------
    result : Sensitivity
        What `drmdp.sensitivity` found.
    by : "state", "kernel" or "label"
        Replace the rows of one state, or all rows by those of a kernel, or of those with a label.
    policy : str or int
        Name or number of the policy; the first one by default.
    n : int
        How many bars at most.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    kernels, top = _kernels(result), whole("n", n, 1)
    bars = result.tornado(by, policy)
    ends = np.isfinite(bars.low + bars.high)[:top].tolist()
    names = [label(name) for name in bars.names[:top]]
    names = [name if end else f"{name}: never ends" for name, end in zip(names, ends, strict=True)]
    low, high, y = bars.low[:top][ends], bars.high[:top][ends], np.flatnonzero(ends)
    with axes(ax, 1.6 + 0.24 * max(len(names), 2)) as ax:
        for colour, side in ((CELLS[0], "below"), (CELLS[1], "above")):
            clip = np.minimum if side == "below" else np.maximum
            start = np.full(y.size, bars.base) if by == "kernel" else clip(low, bars.base)
            wide = clip(high, bars.base) - start
            ax.barh(y, wide, 0.7, start, color=colour, label=f"{side} the mean kernel")
        ax.axvline(bars.base, color=ink(), linewidth=1)
        ax.use_sticky_edges = False
        ax.margins(x=0.05)
        ticks(ax.yaxis, names)
        what = {"state": "rows of the state", "kernel": kernels, "label": "label"}[by]
        what += f", {len(names)} of {len(bars.names):,}" if top < len(bars.names) else ""
        name = policy if isinstance(policy, str) else result.names[policy]
        ax.set(xlabel=f"{result.noun}, {label(name)}", ylabel=what, ylim=(len(names) - 0.5, -0.5))
        numbers(ax.xaxis)
        ax.grid(False, axis="y")
        legend(ax, 2, names)
    return ax


def shares(result: Sensitivity, stage: int = 0, ax: Any = None) -> Any:
    """Heat map of how often each action is optimal in each state; returns the axes.

    Of many states those are shown in which kernels disagree.

    Parameters
    ----------
    result : Sensitivity
        What `drmdp.sensitivity` found.
    stage : int
        Of plans.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    words = ("optimal", f"share of the {_kernels(result)}s under which the action is optimal")
    table = result.share if result.share.ndim == 3 else result.share[None]
    share = table[whole("stage", stage, 0, len(table) - 1)]
    rows, which = np.flatnonzero(share.any(axis=1)), ""
    if rows.size > ROWS:
        order = rows[np.argsort(share[rows].max(axis=1), kind="stable")][:ROWS]
        apart = order[share[order].max(axis=1) < 1 - TIE]
        apart = apart if apart.size else order
        which, rows = f" ({apart.size} of {rows.size:,})", np.sort(apart)
    return cells(share[rows], [result.states[s] for s in rows.tolist()], result.actions, words, which, ax)
