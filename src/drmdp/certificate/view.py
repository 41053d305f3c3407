"""v as proofs see it, what is claimed of a sweep, and what is proved; the proofs themselves are `native/judge`.

States that are not listed are summed by tables over the states in descending order of u (`rises`),

    R₁(k) = Σ_{j<k} (u_j − u_{k−1}),    R₂(k) = Σ_{j<k} (u_j − u_{k−1})²,

which grow by terms of one sign and are right up to 8 ε, relatively, whatever k is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.layout.top import in_order, places_of

if TYPE_CHECKING:
    from drmdp.layout.layout import Layout
    from drmdp.layout.memory import Memory

EPS = float(np.finfo(np.float64).eps)
TINY = 1e-280
"""A span below counts as 0, as in `native/judge/sums.hpp`."""
EMPTY, NONE = np.zeros(0), np.zeros(0, dtype=np.int32)


class View(NamedTuple):
    """v as a proof sees it: without its level, and as all actions see it, (v − max v)/span; what the layout does not need is empty."""

    value: Array  # (S,)
    top: float  # largest value
    span: float  # largest − smallest
    u: Array  # (S,) by state
    states: Any  # (S,) in descending order of v, or the top of them
    place: Any  # (S,) of each state in that order, S if it has none
    down: Array  # (S,) u in that order
    rise: Array  # (S + 1,) R₁
    rise2: Array  # (S + 1,) R₂
    beyond: Any  # (1,) not 0 once somebody counted past the end of the top

    @property
    def short(self) -> bool:
        """Whether only the top is in order."""
        return bool(self.down.size < self.place.size)


class Claim(NamedTuple):
    """What is claimed of a sweep, and what it is claimed for."""

    policy: Array  # (S, A)
    memory: Memory
    every: bool  # each kernel has a budget of its own
    fixed: bool  # L is for the policy, not for the best action


class Found(NamedTuple):
    """What is proved."""

    low: Array  # (S,) L
    high: Array  # (S,) U
    share: Array  # (S, N) of nature's move that is surely allowed


def view(layout: Layout, value: Array, whole: bool = True) -> View:
    """Normalise v where all actions see the same, and sort it, or its top, if states that are not listed matter."""
    beyond = np.zeros(1, dtype=np.int64)
    u = np.zeros(value.size if layout.common else 0)
    top, span = float(value.max()), float(value.max()) - float(value.min())
    if not isinstance(layout.discount, float):  # v is not around its level: sizes count from 0
        span = max(top, 0.0) - min(top - span, 0.0)
    if layout.common and layout.discount * span > TINY:
        with np.errstate(over="ignore"):
            u = (value - top) / span
    if not (layout.common and layout.unlisted):
        return View(value, top, span, u, NONE, NONE, EMPTY, EMPTY, EMPTY, beyond)
    states = in_order(value, None if whole else layout)
    down = u[states]
    rise, rise2 = rises(down)
    return View(value, top, span, u, states, places_of(states, value.size), down, rise, rise2, beyond)


def rises(down: Array) -> tuple[Array, Array]:
    """R₁ and R₂ of the module for numbers in descending order, (S + 1,) each."""
    rise, rise2 = np.empty(down.size + 1), np.empty(down.size + 1)
    _native.judge_rises(down, rise, rise2)
    return rise, rise2
