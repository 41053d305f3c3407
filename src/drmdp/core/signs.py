"""Costs inside, the user's sign outside: where signs are turned.

Inside the package costs are minimised. A model with rewards is turned on the way in (`inward`) and on the
way out (`sides`, `outward`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core.levels import ended
from drmdp.core.validation import numbers
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model


def inward(model: Model, value: Array) -> Array:
    """Values (S,) as costs, with those of terminal states."""
    found: Array = ended(model, -value if model.maximise else value)
    return found


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
    if v.shape != (model.n_states,):
        raise InputError(f"{name}: expected shape {(model.n_states,)}, got {v.shape}")
    if not np.isfinite(v).all():
        s = int(np.argmax(~np.isfinite(v)))
        raise InputError(f"{name} must be finite: state {model.states[s]!r} has {float(v[s])!r}")
    return inward(model, v)
