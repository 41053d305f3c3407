"""Values around their level, and one-sided steps, rounded away from the truth.

Values v of very different size than their differences are handled as u = v − level(v), so that a large common level costs no digits:
F(v) = F(u) + λ level, and a bound b on F(u) becomes the bound b − u − (1 − λ) level on F(v) − v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.compiled import KERNEL, njit

if TYPE_CHECKING:
    from drmdp.model import Model

EPS = float(np.finfo(np.float64).eps)


def level(value: Array) -> float:
    """Midrange of a value; removed before and added after every computation."""
    return float((value.max() + value.min()) / 2)


def around(value: Array) -> tuple[Array, float]:
    """A value without its level, and the level."""
    u = np.empty(value.size)
    return u, fill_around(value, u)


@njit(**KERNEL)
def fill_around(value, u):
    """See `around`.

    reads   value (n,)
    fills   u (n,)
    returns the level; NaN where some number is
    """
    low, high, odd = np.inf, -np.inf, False
    for k in range(u.size):
        low, high = min(low, value[k]), max(high, value[k])
        odd |= np.isnan(value[k])
    shift = np.nan if odd else (high + low) / 2
    for k in range(u.size):
        u[k] = value[k] - shift
    return shift


def steps(u: Array, shift: float, discount: float, terminal: BoolArray, one_sided: Array, sign: int) -> Array:
    """Turn a bound on F(u) into one on F(v) − v, v = u + shift, rounding away from the truth (sign ±1)."""
    out = np.empty(u.size)
    _steps(u, shift, discount, terminal, one_sided, sign * 4 * EPS, out)
    return out


def both_steps(
    u: Array, shift: float, discount: float, terminal: BoolArray, lower: Array, upper: Array
) -> tuple[Array, Array, Array]:
    """Both steps, and F(v) midway between the bounds on F(u), which takes the place of `lower`."""
    low, high = np.empty(u.size), np.empty(u.size)
    fill_both_steps(u, shift, discount, terminal, lower, upper, 4 * EPS, low, high)
    return low, high, lower


@njit(**KERNEL)
def fill_both_steps(u, shift, discount, terminal, lower, upper, margin, low, high):
    """See `both_steps`.

    reads   u (n,), shift, discount, terminal (n,), lower (n,), upper (n,), margin (relative)
    fills   low, high, (n,) each, and lower with their middle
    """
    _steps(u, shift, discount, terminal, lower, -margin, low)
    _steps(u, shift, discount, terminal, upper, margin, high)
    for k in range(lower.size):
        lower[k] = 0.0 if terminal[k] else (lower[k] + upper[k]) / 2 + discount * shift


@njit(**KERNEL)
def _steps(u, shift, discount, terminal, one_sided, margin, out):
    """See `steps`.

    reads   u (n,), shift, discount, terminal (n,), one_sided (n,), margin (relative)
    fills   out (n,)
    """
    far, size = (1 - discount) * shift, (1 - discount) * abs(shift)
    for k in range(out.size):
        if terminal[k]:
            out[k] = -(u[k] + shift)
        else:
            out[k] = one_sided[k] - u[k] - far + margin * (abs(one_sided[k]) + abs(u[k]) + size)


def beyond(value: Array, step: Array, sign: int) -> Array:
    """Value plus a one-sided step, rounded away from the truth (sign ±1)."""
    return np.where(step == 0, value, np.nextafter(value + step, sign * np.inf))


def value_range(model: Model) -> tuple[float, float]:
    """Numbers between which the value of every policy under every kernel lies."""
    known = model.cost_range
    scale = 1 / (1 - model.discount) * (1 + 1e-12)
    return min(known[0], 0.0) * scale, max(known[1], 0.0) * scale
