"""What every criterion says."""

from __future__ import annotations

from typing import Any

from drmdp._typing import Array
from drmdp.core.vectors import ResidualStats
from drmdp.operators.operator import Update
from drmdp.solution import Status

Sides = tuple[Array | None, Array | None]
"""Bounds from below and above, (S,); None for a side that a sweep does not bound."""


class Criterion:
    """An object of one problem, which may learn while that is solved."""

    name: str
    joint = False
    """Whether both bounds of a result belong to one sweep; otherwise each side has its own."""
    range: tuple[float, float]
    """Numbers between which any value lies, and 0."""
    share: float
    """What a residual may be of the gap that is asked for: 1 over the steps that it may be
    repeated.
    """
    unit = 1.0
    """What costs are divided by to compare with values: how long a step lasts at most."""
    width = 0.0
    """What proofs of steps could not tell from 0, where each side has its own."""
    guess = 0.0
    """Size of the values, where nothing is known of it yet."""
    over: Status | None = None
    """Why there is no use in going on, if so."""

    def bounds(self, value: Array, update: Update) -> Sides:
        """What a sweep at `value` bounds, terminal states included."""
        raise NotImplementedError

    def direction(self, problem: Any, value: Array, update: Update) -> Array:
        """The step of Newton's method from a sweep, on the way to the goal of a problem."""
        raise NotImplementedError

    def widen(self, update: Update) -> None:
        """Learn from a proof that did not confirm a side."""

    def start(self, problem: Any) -> Array | None:
        """Where to begin; None: wherever the method does."""
        return None

    def one_step_does(self, seen: ResidualStats, goal: float) -> bool:
        """Whether v ← F(v) is sure to reach a gap."""
        return False
