"""The proximal map of a set, found through its entry."""

from __future__ import annotations

import numpy as np

from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.layout.layout import Layout
from drmdp.prox.displacement import Family, How, Memory, Push, make_work
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load

ACCURACY = 1e-12
"""Relative accuracy of distances unless said otherwise."""


def family_of(ball: AmbiguitySet, entropy: bool = False) -> Family:
    """The map of a set, with the relative entropy for the distance if asked for; refuses sets that have none."""
    if ball.nature != "adversarial":
        raise InputError("method: the first-order method is for an adversarial nature; take another method")
    entry = entry_of(ball)
    where = entry.entropy if entropy else entry.projection
    if not where:
        kind = "entropic projection" if entropy else "projection"
        raise InputError(f"{ball.short} has no {kind}, which the first-order method needs; take another method")
    found: Family = load(where)
    return found


def remember(family: Family, layout: Layout) -> Memory:
    """Empty memory for a layout."""
    (S, A), N = layout.available.shape, layout.weights.size
    width = (N if family.each else 1) + family.extra[0] + N * family.extra[1]
    return Memory(np.zeros((S, width)), np.zeros((S * A, N)), np.zeros((S, width), dtype=np.int64))


def project_states(
    family: Family, start: int, stop: int, layout: Layout, push: Push, y: Array, memory: Memory,
    accuracy: float = ACCURACY, inside: bool = False,
) -> None:  # fmt: skip
    """Project the states start … stop − 1 of an iterate y, (N·nnz,) like the layout's data, pushed, in place.

    The pushed point is formed on the fly, so that the iterate is the only array of its size. Every next state that nature may use must be
    listed. With `inside` the iterate is in the ball already, so that rows without a step cost little.
    """
    how = How(accuracy, family.each, inside)
    family.kernel(start, stop, layout, push, y, memory, how, make_work(layout, start, stop))
