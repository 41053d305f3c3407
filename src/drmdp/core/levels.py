"""Values around their level, and one-sided steps, rounded away from the truth.

Values v of very different size than their differences are handled as u = v − level(v), so that a large common level costs no digits:
F(v) = F(u) + λ level, and a bound b on F(u) becomes the bound b − u − (1 − λ) level on F(v) − v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drmdp import _native
from drmdp._typing import Array, BoolArray

if TYPE_CHECKING:
    from drmdp.model import Model

EPS = float(np.finfo(np.float64).eps)


def level(value: Array) -> float:
    """Midrange of a value; removed before and added after every computation."""
    return float((value.max() + value.min()) / 2)


def around(value: Array) -> tuple[Array, float]:
    """A value without its level, and the level."""
    u = np.empty(value.size)
    return u, _native.fill_around(value, u)


def both_steps(
    u: Array, shift: float, discount: float, terminal: BoolArray, lower: Array, upper: Array
) -> tuple[Array, Array, Array]:
    """Turn bounds on F(u) into steps on F(v) − v, v = u + shift, rounded away from the truth, and F(v) midway between them."""
    low, high, middle = np.empty(u.size), np.empty(u.size), np.empty(u.size)
    _native.both_steps(u, shift, discount, terminal, lower, upper, low, high, middle)
    return low, high, middle


def beyond(value: Array, step: Array, sign: int) -> Array:
    """Value plus a one-sided step, rounded away from the truth (sign ±1)."""
    return np.where(step == 0, value, np.nextafter(value + step, sign * np.inf))


def value_range(model: Model) -> tuple[float, float]:
    """Numbers between which the value of every policy under every kernel lies."""
    known = model.cost_range
    scale = 1 / (1 - model.discount) * (1 + 1e-12)
    return min(known[0], 0.0) * scale, max(known[1], 0.0) * scale
