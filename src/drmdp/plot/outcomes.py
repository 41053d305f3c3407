"""Costs and effects of policies: the plane of differences, and how often each is the best choice."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import ArrayLike
from drmdp.core.validation import number
from drmdp.core.validation import numbers as numbers_of
from drmdp.errors import InputError, described
from drmdp.plot._axes import axes, label, legend
from drmdp.plot.curves import HEIGHT
from drmdp.plot.style import CELLS, MARKERS, ink, numbers
from drmdp.policies import CostEffectiveness


def _checked(found: Any) -> None:
    if not isinstance(found, CostEffectiveness):
        raise InputError(f"found: expected what drmdp.policies.cost_effectiveness returned, got {described(found)}")


def cost_effectiveness(found: CostEffectiveness, threshold: float | None = None, ax: Any = None) -> Any:
    """What policies cost and achieve more than the reference, a point for each kernel and a larger one for their mean; returns the axes.

    Parameters
    ----------
    found : CostEffectiveness
        What `drmdp.policies.cost_effectiveness` found.
    threshold : float, optional
        What a unit of effect may cost: below the line a policy is worth more than the reference.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    _checked(found)
    others = [p for p in range(len(found.names)) if p != found.reference] or [found.reference]
    with axes(ax, HEIGHT + 0.4) as ax:
        for p in others:
            colour, marker = CELLS[p % len(CELLS)], MARKERS[p % len(MARKERS)]
            more = [own[p] - own[found.reference] for own in (found.effects, found.costs)]
            ax.scatter(*more, s=10, color=colour, alpha=0.35, marker=marker, linewidths=0)
            mean = [own @ found.weights for own in more]
            ax.plot(*mean, marker, color=colour, markersize=9, markeredgecolor=ink(), label=label(found.names[p], 30))
        ax.axhline(0, color=ink(), linewidth=0.8)
        ax.axvline(0, color=ink(), linewidth=0.8)
        if threshold is not None:
            slope = number("threshold", threshold)
            ax.axline((0, 0), slope=slope, color=ink(), linestyle=":", label=f"{slope:,g} for a unit")
        reference = label(found.names[found.reference], 30)
        ax.set(xlabel=f"effect, more than {reference}", ylabel=f"cost, more than {reference}")
        numbers(ax.xaxis)
        numbers(ax.yaxis)
        legend(ax, 3)
    return ax


def acceptability_curve(found: CostEffectiveness, thresholds: ArrayLike, ax: Any = None) -> Any:
    """How often each policy is the best choice, over what a unit of effect may cost; returns the axes.

    Parameters
    ----------
    found : CostEffectiveness
        What `drmdp.policies.cost_effectiveness` found.
    thresholds : (K,)
        What a unit of effect may cost.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    """
    _checked(found)
    at = np.sort(np.atleast_1d(numbers_of("thresholds", thresholds)))
    with axes(ax, HEIGHT) as ax:
        for p, line in enumerate(found.acceptability(at)):
            ax.plot(at, line, color=CELLS[p % len(CELLS)], label=label(found.names[p], 30))
        ax.set(xlabel="what a unit of effect may cost", ylabel="share of kernels where it is best", ylim=(-0.03, 1.03))
        numbers(ax.xaxis)
        legend(ax, 3)
    return ax
