"""Sensitivity to which kernel is true: values over kernels, acceptability, tornado, shares; costs
and effects of policies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import ArrayLike
from drmdp.core.validation import integer, number
from drmdp.core.validation import numbers as numbers_of
from drmdp.errors import InputError, shown
from drmdp.plot._axes import COLUMNS, ROWS, axes, cells, check, label, legend, ticks, turn, upright
from drmdp.plot.curves import HEIGHT
from drmdp.plot.style import CELLS, MARKERS, PALETTE, ink, numbers
from drmdp.policies import CostEffectiveness
from drmdp.policies.kernel_problems import TIE
from drmdp.policies.sensitivity_result import Sensitivity, members
from drmdp.policies.single_kernels import noun_of

WRITTEN = 0.08
"""Shares that are smaller have no room for their number."""


def _kernels(result: Any) -> str:
    """The noun of its kernels; refuse what is no result."""
    check("result", result, Sensitivity, "what drmdp.sensitivity found")
    return noun_of(result.kernel_names)


def over_kernels(result: Sensitivity, what: str = "values", ax: Any = None) -> Any:
    """Values, or regret, of each policy under each kernel; returns the axes.

    Parameters
    ----------
    result : Sensitivity
        The result of `drmdp.sensitivity`.
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
        The result of `drmdp.sensitivity`.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    rows = {f"all {_kernels(result)}s": list(range(result.weights.size))}
    rows |= {} if result.labels is None else members([str(name) for name in result.labels])
    used = {label(name): members for name, members in rows.items() if result.weights[members].any()}
    first, w, start = result.first, result.weights, np.zeros(len(used))
    with axes(ax, 1.4 + 0.34 * max(len(used), 2)) as ax:
        for p, name in enumerate(result.names):
            part = np.array([first[p, i] @ w[i] / w[i].sum() for i in used.values()])
            place = {"left": 100 * start, "height": 0.7, "color": CELLS[p % 8]}
            bars = ax.barh(range(len(used)), 100 * part, label=label(name, 24), **place)
            texts = [f"{share:.0%}" if share >= WRITTEN else "" for share in part]
            ax.bar_label(bars, texts, label_type="center", color="black")
            start += part
        ticks(ax.yaxis, list(used))
        xlabel = f"best of these policies under … % of the {_kernels(result)}s"
        ax.set(xlabel=xlabel, xlim=(0, 100), ylim=(len(used) - 0.5, -0.5))
        ax.grid(False, axis="y")
        legend(ax, 3, list(used))
    return ax


def tornado(
    result: Sensitivity, by: str = "state", policy: str | int = 0, n: int = 15, ax: Any = None
) -> Any:
    """What moves the value of a policy, one part of the mean kernel replaced; returns the axes.

    Bars go from the 5 % to the 95 % quantile over the kernels; see `Sensitivity.tornado`.

    Parameters
    ----------
    result : Sensitivity
        The result of `drmdp.sensitivity`.
    by : "state", "kernel" or "label"
        Replace the rows of one state, or all rows by those of a kernel, or of those with a label.
    policy : str or int
        Name or number of the policy; the first one by default.
    n : int
        How many bars at most.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    kernels, top = _kernels(result), integer("n", n, 1)
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
        The result of `drmdp.sensitivity`.
    stage : int
        Of plans.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    words = ("optimal", f"share of the {_kernels(result)}s under which the action is optimal")
    table = result.share if result.share.ndim == 3 else result.share[None]
    share = table[integer("stage", stage, 0, len(table) - 1)]
    rows, which = np.flatnonzero(share.any(axis=1)), ""
    if rows.size > ROWS:
        order = rows[np.argsort(share[rows].max(axis=1), kind="stable")][:ROWS]
        apart = order[share[order].max(axis=1) < 1 - TIE]
        apart = apart if apart.size else order
        which, rows = f" ({apart.size} of {rows.size:,})", np.sort(apart)
    states = [result.states[s] for s in rows.tolist()]
    return cells(share[rows], states, result.actions, words, which, ax)


def cost_effectiveness(
    result: CostEffectiveness, threshold: float | None = None, ax: Any = None
) -> Any:
    """What policies cost and achieve more than the reference, a point for each kernel and a larger
    one for their mean; returns the axes.

    Parameters
    ----------
    result : CostEffectiveness
        The result of `drmdp.policies.cost_effectiveness`.
    threshold : float, optional
        What a unit of effect may cost: below the line a policy is worth more than the reference.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check("result", result, CostEffectiveness, "what drmdp.policies.cost_effectiveness returned")
    others = [p for p in range(len(result.names)) if p != result.reference] or [result.reference]
    with axes(ax, HEIGHT + 0.4) as ax:
        for p in others:
            colour, marker = CELLS[p % len(CELLS)], MARKERS[p % len(MARKERS)]
            more = [part[p] - part[result.reference] for part in (result.effects, result.costs)]
            ax.scatter(*more, s=10, color=colour, alpha=0.35, marker=marker, linewidths=0)
            mean, name = [part @ result.weights for part in more], label(result.names[p], 30)
            look = {"color": colour, "markersize": 9, "markeredgecolor": ink()}
            ax.plot(*mean, marker, label=name, **look)
        ax.axhline(0, color=ink(), linewidth=0.8)
        ax.axvline(0, color=ink(), linewidth=0.8)
        if threshold is not None:
            slope = number("threshold", threshold)
            line = {"color": ink(), "linestyle": ":", "label": f"{slope:,g} for a unit"}
            ax.axline((0, 0), slope=slope, **line)
        reference = label(result.names[result.reference], 30)
        ax.set(xlabel=f"effect, more than {reference}", ylabel=f"cost, more than {reference}")
        numbers(ax.xaxis)
        numbers(ax.yaxis)
        legend(ax, 3)
    return ax


def acceptability_curve(result: CostEffectiveness, thresholds: ArrayLike, ax: Any = None) -> Any:
    """How often each policy is the best choice, over what a unit of effect may cost; returns the
    axes.

    Parameters
    ----------
    result : CostEffectiveness
        The result of `drmdp.policies.cost_effectiveness`.
    thresholds : (K,)
        What a unit of effect may cost.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    check("result", result, CostEffectiveness, "what drmdp.policies.cost_effectiveness returned")
    at = np.sort(np.atleast_1d(numbers_of("thresholds", thresholds)))
    with axes(ax, HEIGHT) as ax:
        for p, line in enumerate(result.acceptability(at)):
            ax.plot(at, line, color=CELLS[p % len(CELLS)], label=label(result.names[p], 30))
        ax.set(xlabel="what a unit of effect may cost", ylim=(-0.03, 1.03))
        ax.set_ylabel("share of kernels where it is best")
        numbers(ax.xaxis)
        legend(ax, 3)
    return ax
