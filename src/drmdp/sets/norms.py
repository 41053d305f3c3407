"""How far a kernel is from the data: the norm of a difference, and distances of N kernels put together.

    d(y_i, ŷ_i) = ‖y_i − ŷ_i‖, stacked over the available actions,        D = (Σ_i w_i d_iᵖ)^{1/p},  or  max_i d_i for p = ∞.

Each is written here and nowhere else in NumPy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.sets.keeping import Leaving


class Norm(ABC):
    """A metric between kernels: the norm of their difference."""

    power: float  # 1, 2, or ∞: the largest entry counts
    diameter: float  # of the distributions on a row
    order: float  # of its ball unless another one is asked for
    words: str

    @abstractmethod
    def of(self, difference: Array, axis: Any) -> Array:
        """Norm over some axes."""

    @abstractmethod
    def corner(self, y: Array) -> Array:
        """Distance of rows (…, K) from each of the K single next states, (…, K); for ℓ2 its square."""

    def gather(self, rows: Array) -> Array:
        """Put distances (for ℓ2 squares) of rows (A, …) together over the actions."""
        return np.asarray(rows.sum(axis=0))

    def root(self, gathered: Any) -> Any:
        """Distance from what was gathered."""
        return gathered

    @abstractmethod
    def confined(self, rows: Leaving, lost: Array) -> Array:
        """Distance of each row from the nearest that stays inside, (N, P), for ℓ2 its square; `lost` (N, P) is its mass outside."""


class L1(Norm):
    """Σ|·|."""

    power, diameter, order, words = 1, 2.0, 1, "ℓ1: total probability moved, twice"

    def of(self, difference: Array, axis: Any) -> Array:
        """Norm over some axes."""
        return np.asarray(np.abs(difference).sum(axis=axis))

    def corner(self, y: Array) -> Array:
        """Distance from single next states."""
        return np.asarray(2 * np.maximum(1 - y, 0))

    def confined(self, rows: Leaving, lost: Array) -> Array:
        """What leaves one place arrives at another."""
        return 2 * lost


class L2(Norm):
    """√Σ(·)²."""

    power, diameter, order, words = 2, math.sqrt(2), 2, "ℓ2"

    def of(self, difference: Array, axis: Any) -> Array:
        """Norm over some axes."""
        return np.asarray(np.sqrt((difference * difference).sum(axis=axis)))

    def corner(self, y: Array) -> Array:
        """Squared distance from single next states."""
        others = np.maximum((y * y).sum(axis=-1, keepdims=True) - y * y, 0)  # apart, or rounding makes it negative
        return np.asarray((1 - y) ** 2 + others)

    def root(self, gathered: Any) -> Any:
        """Square root."""
        return np.sqrt(gathered)

    def confined(self, rows: Leaving, lost: Array) -> Array:
        """What is outside goes to all places inside alike."""
        return np.asarray(rows.total(np.where(rows.outside, rows.rows, 0.0) ** 2) + lost**2 / np.maximum(rows.room, 1))


class Linf(Norm):
    """max|·|."""

    power, diameter, order, words = math.inf, 1.0, math.inf, "ℓ∞: largest change of a probability"

    def of(self, difference: Array, axis: Any) -> Array:
        """Norm over some axes."""
        return np.asarray(np.abs(difference).max(axis=axis))

    def corner(self, y: Array) -> Array:
        """Distance from single next states."""
        return np.asarray(np.maximum(1 - y, 0))

    def gather(self, rows: Array) -> Array:
        """The largest counts."""
        return np.asarray(rows.max(axis=0))

    def confined(self, rows: Leaving, lost: Array) -> Array:
        """The largest probability that has to go, or what each place inside gets."""
        most = np.maximum.reduceat(np.where(rows.outside, rows.rows, 0.0), rows.starts, axis=1)
        return np.maximum(most, lost / np.maximum(rows.room, 1))


NORMS: dict[str, Norm] = {"l1": L1(), "l2": L2(), "linf": Linf()}


def stack(order: float, each: Array, weights: Array) -> Array:
    """Distance of a tuple from the distances of its kernels, (…, N) → (…,)."""
    if order == math.inf:
        return np.asarray(each.max(axis=-1))
    most = each.max(axis=-1, keepdims=True)  # taken out: a large power of small numbers is 0
    with np.errstate(under="ignore"):
        part = (np.divide(each, most, where=most > 0, out=np.zeros_like(each)) ** order) @ weights
        return np.asarray(most[..., 0] * part ** (1 / order))


def order_words(order: float) -> str:
    """What an order bounds."""
    known = {
        1: "1: the mean distance over the kernels is bounded",
        2: "2: the root mean square of the distances is bounded",
        math.inf: "∞: the distance from every single kernel is bounded",
    }
    return known.get(order, f"{order_text(order)}: the mean of this power of the distances is bounded")


def order_text(order: float) -> str:
    """An order as it is typed."""
    return "inf" if order == math.inf else str(int(order)) if order == int(order) else repr(float(order))
