"""How far a kernel is from the data: the norm of a difference, and distances of N kernels put
together.

    d(y_i, ŷ_i) = ‖y_i − ŷ_i‖, stacked over the available actions,
    D = (Σ_i w_i d_iᵖ)^{1/p},  or  max_i d_i for p = ∞.

Each is written here and nowhere else in NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.sets.confinement import Leaving


@dataclass(frozen=True)
class NormMetric:
    """A metric between kernels: the ℓ1, ℓ2 or ℓ∞ norm of their difference."""

    power: float  # 1, 2, or ∞: the largest entry counts; also the order of its ball by default
    diameter: float  # of the distributions on a row
    words: str

    def of(self, difference: Array, axis: Any) -> Array:
        """Norm over some axes."""
        sizes = difference * difference if self.power == 2 else np.abs(difference)
        return np.asarray(self.root(self.gather(sizes, axis)))

    def corner(self, y: Array) -> Array:
        """Distance of rows (…, K) from each of the K single next states, (…, K); for ℓ2 its
        square.
        """
        if self.power == 2:
            squares = y * y
            others = squares.sum(axis=-1, keepdims=True) - squares  # rounding may make it negative
            return np.asarray((1 - y) ** 2 + np.maximum(others, 0))
        return np.asarray((2 if self.power == 1 else 1) * np.maximum(1 - y, 0))

    def gather(self, rows: Array, axis: Any = 0) -> Array:
        """Put distances (for ℓ2 squares) of rows (A, …) together over the actions."""
        return np.asarray(rows.max(axis=axis) if self.power == math.inf else rows.sum(axis=axis))

    def root(self, gathered: Any) -> Any:
        """Distance from what was gathered."""
        return np.sqrt(gathered) if self.power == 2 else gathered

    def confined(self, rows: Leaving, lost: Array) -> Array:
        """Distance of each row from the nearest that stays inside, (N, P), for ℓ2 its square;
        `lost` (N, P) is its mass outside.

        By ℓ1 what leaves a place arrives at another; by ℓ2 it goes to all places inside alike; by
        ℓ∞ the largest probability that has to go counts, or what each place inside gets.
        """
        if self.power == 1:
            return 2 * lost
        outside, room = np.where(rows.outside, rows.rows, 0.0), np.maximum(rows.room, 1)
        if self.power == 2:
            return np.asarray(rows.total(outside**2) + lost**2 / room)
        return np.maximum(np.maximum.reduceat(outside, rows.starts, axis=1), lost / room)


NORMS = {
    "l1": NormMetric(1, 2.0, "ℓ1: total probability moved, twice"),
    "l2": NormMetric(2, math.sqrt(2), "ℓ2"),
    "linf": NormMetric(math.inf, 1.0, "ℓ∞: largest change of a probability"),
}


def stack(order: float, each: Array, weights: Array) -> Array:
    """Distance of a tuple from the distances of its kernels, (…, N) → (…,)."""
    if order == math.inf:
        return np.asarray(each.max(axis=-1))
    most = each.max(axis=-1, keepdims=True)  # taken out: a large power of small numbers is 0
    with np.errstate(under="ignore"):
        part = (np.divide(each, most, where=most > 0, out=np.zeros_like(each)) ** order) @ weights
        return np.asarray(most[..., 0] * part ** (1 / order))


def order_words(order: float) -> str:
    """Distance that an order bounds, in words."""
    known = {
        1: "1: the mean distance over the kernels is bounded",
        2: "2: the root mean square of the distances is bounded",
        math.inf: "∞: the distance from every single kernel is bounded",
    }
    other = f"{order_text(order)}: the mean of this power of the distances is bounded"
    return known.get(order, other)


def order_text(order: float) -> str:
    """An order as it is typed."""
    if order == math.inf:
        return "inf"
    return str(int(order)) if order == int(order) else repr(float(order))
