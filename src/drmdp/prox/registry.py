"""The proximal map of a set, found through its entry."""

from __future__ import annotations

import numpy as np

from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.layout.layout import Layout
from drmdp.prox.displacement import Family, Memory
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load

ACCURACY = 1e-12
"""Relative accuracy of distances unless said otherwise."""


def family_of(ball: AmbiguitySet, entropy: bool = False) -> Family:
    """The map of a set, with the relative entropy for the distance if asked for; refuses sets that have none."""
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
    width = (N if family.each else 1) + family.more[0] + N * family.more[1]
    return Memory(np.zeros((S, width)), np.zeros((S * A, N)), np.zeros((S, width), dtype=np.int64))


def project_states(
    family: Family, start: int, stop: int, layout: Layout, y: Array, step: Array, value: Array, memory: Memory,
    accuracy: float = ACCURACY, inside: bool = False,
) -> None:  # fmt: skip
    """Project the states start … stop − 1 of an iterate y, (N·nnz,) like the layout's data, in place.

    Row (s, a, i) of the point to be projected is y_ia + w_i·step[s, a]·(c + λ v), with c the costs of next states,
    if the layout has any, and v = value: formed on the fly, so that the iterate is the only array of its size. Every next
    state that nature may use must be listed. With `inside` the iterate is in the ball already, so that rows without a step
    cost little.
    """
    family.kernel(start, stop, layout, y, step, value, accuracy, memory, family.each, inside)
