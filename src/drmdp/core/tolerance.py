"""Tolerances of certified gaps.

A run ends as `solved` when its certified gap, the largest upper − lower over the states, is

    at most tol                if tol is given: absolute, in the unit of the costs,
    at most rtol · scale       otherwise, with scale = max(max |value|, max |c|),

where `value` is the certified worst-case value that is returned and c are the known costs of the
available pairs. The scale is part of the result: it moves while a run goes on and is fixed when it
ends. Values far below the costs, as where costs and rewards cancel, do not ask for more digits than
the costs have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from drmdp._typing import Array
from drmdp.core.validation import number
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model

RTOL = 1e-6
"""The relative tolerance unless told otherwise."""


@dataclass(frozen=True)
class Tolerance:
    """The pair (tol, rtol): tol if it is given, else rtol of the scale."""

    tol: float | None = None
    rtol: float = RTOL

    @classmethod
    def of(cls, tol: float | None, rtol: float) -> Tolerance:
        """The pair that a user gave, checked."""
        return cls(None if tol is None else _checked("tol", tol), _checked("rtol", rtol))

    def goal(self, scale: float) -> float:
        """The gap to reach, absolute."""
        return self.rtol * scale if self.tol is None else self.tol

    def compare(self, gap: float, scale: float) -> str:
        """A gap beside the tolerance, in words."""
        relative = f", relative {gap / scale:.2g}" if scale > 0 else ""
        return f"{gap:.3g}{relative} ({self.short})"

    @property
    def short(self) -> str:
        """In words: "rtol 1e-06"."""
        return ", ".join(f"{name} {value:g}" for name, value in self.given.items())

    @property
    def given(self) -> dict[str, float]:
        """The tolerance in force, by name."""
        return {"rtol": self.rtol} if self.tol is None else {"tol": self.tol}

    def __str__(self) -> str:
        return f"{self.rtol:g} relative" if self.tol is None else f"{self.tol:g}"


def _checked(name: str, given: float) -> float:
    value = number(name, given)
    if not 0 <= value < np.inf:
        raise InputError(f"{name} must be finite and not negative, got {value!r}")
    return value


def largest_cost(model: Model) -> float:
    """Max |c| over the known costs of the available pairs, and values of terminal states."""
    known = max(map(abs, model.cost_range))
    return known if model.ends is None else max(known, float(np.abs(model.ends).max()))


def scale_of(model: Model, value: Array) -> float:
    """max(max |value|, max |c|): what a relative gap is relative to."""
    return max(float(np.abs(value).max()), largest_cost(model))
