"""Discounted cost, Σ λ^t c_t with λ < 1.

F^x and F_y are monotone and shift by λk when v shifts by k, so U ≥ F^x(v) and L ≤ F_y(v) imply

    V^x ≤ U + λ/(1−λ) max(U − v),        V_y ≥ L + λ/(1−λ) min(L − v),        V_y ≤ v* ≤ V^x.

Where each pair has a discount δ(s, a), the shift is at most max δ · k for k ≥ 0 and at most min δ ·
k for k ≤ 0, so λ is the largest of them where U − v > 0 somewhere and the smallest otherwise;
likewise below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.certificate.dense import Bounds
from drmdp.core.levels import EPS, ended
from drmdp.core.vectors import ResidualStats, by_state, ends
from drmdp.criteria import newton_systems
from drmdp.criteria.base import Criterion
from drmdp.model import Model
from drmdp.operators.operator import Update


class Discounted(Criterion):
    """The criterion of a model whose discount is below 1."""

    name = "discounted"
    joint = True

    def __init__(self, model: Model) -> None:
        self._model = model
        self.share = 1 - model.discount
        self.range = value_range(model)

    def bounds(self, value: Array, update: Update) -> tuple[Array, Array]:
        """Both sides."""
        model = self._model
        least = None if model.discounts is None else float(model.discounts[model.available].min())
        steps = value, update.lower_step, update.upper_step
        found = bounds(*steps, model.discount, model.terminal, *self.range, least)
        if model.ends is None:
            return found.lower, found.upper
        return ended(model, found.lower), ended(model, found.upper)

    def direction(self, problem: Any, value: Array, update: Update) -> Array:
        """(I − λP)⁻¹ (F(v) − v)."""
        chain, discount = newton_systems.chain_of(self._model, update), self._model.discount
        return newton_systems.solve(chain, discount, update.residual, problem.checkpoint)

    def one_step_does(self, seen: ResidualStats, goal: float) -> bool:
        """Spans of residuals shrink by λ, so the gap of v ← F(v) is at most (off + λ²
        span)/(1−λ).
        """
        discount = self._model.discount
        if self._model.discounts is not None:
            return False
        return bool(seen.off + discount * discount * seen.span <= (1 - discount) * goal)


def value_range(model: Model) -> tuple[float, float]:
    """Numbers between which the value of every policy under every kernel lies, and 0."""
    known = model.cost_range
    scale = 1 / (1 - model.discount) * (1 + 1e-12)
    final = [0.0] if model.ends is None else [float(model.ends.min()), float(model.ends.max())]
    return min(known[0] * scale, 0.0, *final), max(known[1] * scale, 0.0, *final)


def bounds(
    value: Array,
    lower_step: Array,
    upper_step: Array,
    discount: float,
    terminal: BoolArray,
    floor: float = -np.inf,
    ceiling: float = np.inf,
    least: float | None = None,
) -> Bounds:
    """Combine one sweep's one-sided steps L − v and U − v into bounds on the fixed points, which
    are known to lie between `floor` and `ceiling`.

    `least` is the smallest discount, where they differ and `discount` is the largest.
    """
    (below, _), (_, above) = ends(lower_step, upper_step)
    ratio = discount / (1 - discount)
    little = ratio if least is None else least / (1 - least)
    given = value, lower_step, upper_step, terminal, ratio * np.maximum(abs(below), abs(above))
    return Bounds(
        by_state(_bound, *given, (little if below > 0 else ratio) * below, floor, -1.0),
        by_state(_bound, *given, (little if above < 0 else ratio) * above, ceiling, +1.0),
    )


def _bound(
    value: Array,
    lower_step: Array,
    upper_step: Array,
    terminal: BoolArray,
    size: float,
    further: float,
    limit: float,
    side: float,
) -> Array:
    """One side of `bounds`; `further` is all steps to come, of which none is larger than `size`."""
    with np.errstate(all="ignore"):
        sizes = np.abs(value) + np.abs(lower_step) + np.abs(upper_step) + size
        x = value + (lower_step if side < 0 else upper_step) + further + side * 8 * EPS * sizes
    return np.where(terminal, 0.0, np.where(side * x > side * limit, limit, x))  # NaN stays
