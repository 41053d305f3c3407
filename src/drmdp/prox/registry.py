"""The proximal map of each (metric, order): a new one is one file and one line here."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.ambiguity import Pair
from drmdp.layout.layout import Layout
from drmdp.prox import entropy, l1, l2, linf
from drmdp.prox import linf_radii as linf_1
from drmdp.prox.displacement import Memory


class Family(NamedTuple):
    """A compiled map over ranges of states, and what it finds."""

    kernel: Any
    each: bool  # one multiplier a kernel, else one a state
    more: tuple[int, int] = 0, 0  # numbers beside them, a state and a kernel


FAMILIES: dict[Pair, Family] = {
    ("l1", 1): Family(l1.project_states, each=False),
    ("l2", 2): Family(l2.project_states, each=False),
    ("linf", 1): Family(linf_1.project_states, each=True, more=(1, 1)),
    ("l1", math.inf): Family(l1.project_states, each=True),
    ("l2", math.inf): Family(l2.project_states, each=True),
    ("linf", math.inf): Family(linf.boxes, each=True),
}

ENTROPY: dict[Pair, Family] = {("linf", math.inf): Family(entropy.boxes, each=True)}
"""The same with the relative entropy for the distance, where it is cheap."""

ACCURACY = 1e-12
"""Relative accuracy of distances unless said otherwise."""


def remember(pair: Pair, layout: Layout) -> Memory:
    """Empty memory for a layout."""
    (S, A), N = layout.available.shape, layout.weights.size
    family = FAMILIES[pair]
    width = (N if family.each else 1) + family.more[0] + N * family.more[1]
    return Memory(np.zeros((S, width)), np.zeros((S * A, N)), np.zeros((S, width), dtype=np.int64))


def project_states(
    pair: Pair, start: int, stop: int, layout: Layout, y: Array, step: Array, value: Array, memory: Memory,
    accuracy: float = ACCURACY, inside: bool = False, families: dict[Pair, Family] = FAMILIES,
) -> None:  # fmt: skip
    """Project the states start … stop − 1 of an iterate y, (N·nnz,) like the layout's data, in place.

    Row (s, a, i) of the point to be projected is y_ia + w_i·step[s, a]·(c + λ v), with c the costs of next states,
    if the layout has any, and v = value: formed on the fly, so that the iterate is the only array of its size. Every next
    state that nature may use must be listed. With `inside` the iterate is in the ball already, so that rows without a step
    cost little.
    """
    family = families[pair]
    family.kernel(start, stop, layout, y, step, value, accuracy, memory, family.each, inside)
