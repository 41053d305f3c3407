"""One state as the ℓ2 kernels see it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import njit

from drmdp._typing import Array
from drmdp.core.compiled import INLINE
from drmdp.layout.layout import Order, row_scales


class State(NamedTuple):
    """One normalised state."""

    y: Array  # N rows per action
    ptr: Any  # (A + 1,) where each action's entries begin
    u: Array  # entries
    w: Array  # (N,)
    cost: Array  # (A,), inf where unavailable
    nominal: Array  # (A,)
    theta: float
    order: Order
    unlisted: bool
    scale: Array  # (A, N)


@njit(**INLINE)
def state_of(layout, order, s, room):  # type: ignore[no-untyped-def]
    """Gather state s after its prologue."""
    A, N = room.scale.shape
    row_scales(layout, s, room.scale)
    first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
    for a in range(A + 1):
        room.ptr[a] = layout.indptr[s * A + a] - first
    theta = min(layout.radius[s], 2.0 * math.sqrt(A))  # no distance exceeds √(2A)
    return State(
        layout.data[N * first : N * last], room.ptr, room.u, layout.weights, room.cost, room.nominal, theta,
        order, layout.unlisted, room.scale,
    )  # fmt: skip
