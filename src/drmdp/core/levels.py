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


def steps(u: Array, shift: float, discount: float, terminal: BoolArray, one_sided: Array, sign: int) -> Array:
    """Turn a bound on F(u) into one on F(v) − v, v = u + shift, rounding away from the truth (sign ±1)."""
    out = np.empty(u.size)
    _steps(u, shift, discount, terminal, one_sided, sign * 4 * EPS, out)
    return out


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
