"""Costs inside, the user's sign outside.

Inside the package costs are minimised. Values of a model with rewards change their sign on the way
in (`inward`) and on the way out (`sides`, `outward`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core.levels import ended
from drmdp.core.validation import check_shape, numbers
from drmdp.errors import InputError, first_place

if TYPE_CHECKING:
    from drmdp.model import Model


def inward(model: Model, value: Array) -> Array:
    """Values (S,) as costs, with those of terminal states."""
    cost: Array = ended(model, -value if model.maximise else value)
    return cost


def outward(model: Model, cost: Array) -> Array:
    """Costs of any shape in the user's sign."""
    return -cost if model.maximise else cost


def sides(model: Model, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds on costs in the user's sign, if they are of the data that was read."""
    model.check_unchanged()
    return (0.0 - upper, 0.0 - lower) if model.maximise else (lower, upper)  # never −0.0


def pessimistic(model: Model, lower: Array, upper: Array) -> Array:
    """The worse of two bounds in the user's sign."""
    return lower if model.maximise else upper


def value_of(model: Model, value: ArrayLike, name: str = "value") -> Array:
    """Check a value (S,) that a user gave, and turn it inward."""
    v = numbers(name, value)
    check_shape(name, v, (model.n_states,))
    if at := first_place(~np.isfinite(v)):
        state = f"state {model.states[at[0]]!r} has {float(v[at])!r}"
        raise InputError(f"{name} must be finite: {state}")
    return inward(model, v)
