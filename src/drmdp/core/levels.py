"""Values around their level, and one-sided steps, rounded away from the truth.

Values v of very different size than their differences are handled as u = v − level(v), so that a
large common level costs no digits: F(v) = F(u) + λ level, and a bound b on F(u) becomes the bound
b − u − (1 − λ) level on F(v) − v. Where discounts differ between pairs there is no such rule, and
the level is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp import _native
from drmdp._typing import Array

if TYPE_CHECKING:
    from drmdp.model import Model

EPS = float(np.finfo(np.float64).eps)
ALL = slice(None)


def level(value: Array, model: Model) -> float:
    """Midrange of a value; removed before and added after every computation. 0 where discounts
    differ.
    """
    return 0.0 if model.discounts is not None else float((value.max() + value.min()) / 2)


def around(value: Array, model: Model) -> tuple[Array, float]:
    """A value without its level, and the level."""
    if model.discounts is not None:
        return value, 0.0
    u = np.empty(value.size)
    return u, _native.fill_around(value, u)


def both_steps(
    u: Array, shift: float, model: Model, lower: Array, upper: Array, states: slice = ALL
) -> tuple[Array, Array, Array]:
    """Turn bounds on F(u) into steps on F(v) − v, v = u + shift, rounded away from the truth, and
    F(v) midway between them.

    The bounds are those of `states` of the model.
    """
    low, high, middle = np.empty(u.size), np.empty(u.size), np.empty(u.size)
    terminal = model.terminal[states]
    _native.both_steps(u, shift, model.discount, terminal, lower, upper, low, high, middle)
    if model.ends is not None:
        middle[terminal] = model.ends[states][terminal]
        low[terminal] = high[terminal] = middle[terminal] - (u[terminal] + shift)
    return low, high, middle


def ended(model: Model, value: Any) -> Any:
    """Values (S,), with those of terminal states where the process ends."""
    return np.where(model.terminal, 0.0 if model.ends is None else model.ends, value)


def beyond(value: Array, step: Array, sign: int) -> Array:
    """Value plus a one-sided step, rounded away from the truth (sign ±1)."""
    return np.where(step == 0, value, np.nextafter(value + step, sign * np.inf))
