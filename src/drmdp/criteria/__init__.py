"""What is optimised, and what a sweep proves of it.

A sweep at v gives L − v ≤ F_y(v) − v and F^x(v) − v ≤ U − v, proved by `drmdp.certificate`. A criterion turns such steps into bounds on what is
asked for, and owns whatever else would say 1/(1−λ) of a discounted cost:

* `discounted`: Σ λ^t c_t. One sweep bounds both sides: V^x ≤ U + λ/(1−λ) max(U − v), v* ≥ L + λ/(1−λ) min(L − v).

An object belongs to one problem, and may learn while that is solved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.core.surveys import Survey
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.discounted import Discounted
from drmdp.errors import InputError, shown
from drmdp.model import Model

TINY = 1e-318
Sides = tuple[Array | None, Array | None]
"""Bounds from below and above, (S,); None for a side that a sweep does not bound."""


class Criterion(Protocol):
    """What every criterion says."""

    name: str
    joint: bool
    """Whether both bounds of a result belong to one sweep; otherwise each side has its own."""
    range: tuple[float, float]
    """Numbers between which any value lies, and 0."""

    @property
    def share(self) -> float:
        """What a residual may be of the gap that is asked for: 1 over the steps that it may be repeated."""

    def bounds(self, value: Array, update: Update) -> Sides:
        """What a sweep at `value` bounds, terminal states included."""

    def direction(self, value: Array, residual: Array, update: Update, checkpoint: Callable[[], None]) -> Array:
        """The step of Newton's method from a sweep."""

    def one_step_does(self, seen: Survey, goal: float) -> bool:
        """Whether v ← F(v) is sure to reach a gap."""


CRITERIA: dict[str, type[Criterion]] = {"discounted": Discounted}
"""Criteria by name."""


def criterion_of(model: Model, name: str | None = None) -> Criterion:
    """The criterion of a model, by name, or the one that its discount says."""
    if model.discount == 1 and name is not None:
        raise InputError("discount: expected a number below 1, got 1.0")
    name = "discounted" if name is None else name
    if name not in CRITERIA:
        raise InputError(f"criterion: expected one of {', '.join(map(repr, CRITERIA))}, got {shown(name)}")
    return CRITERIA[name](model)  # type: ignore[call-arg]


def near(criterion: Criterion, share: float) -> Tolerance:
    """A share of what values can be at most; of what they are, where that is not known."""
    most = max(map(abs, criterion.range))
    return Tolerance(max(share * most, TINY)) if math.isfinite(most) else Tolerance(None, share)
