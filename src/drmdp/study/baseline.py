r"""A baseline: the Bellman update of Yu, Dai, Xu, Gao and Ho (NeurIPS 2023), written from its published description.

"Fast Bellman Updates for Wasserstein Distributionally Robust MDPs" decides by bisection whether a value γ can be enforced by nature.
Nature needs, for each action, at least the budget

    B_a(γ) = min { Σ_i w_i d(y_i, ŷ_ia)^p : c_a + λ Σ_i w_i y_i·v ≥ γ },

and γ can be enforced iff the budgets fit, Σ_a B_a(γ) ≤ θ^p. B_a is the maximum over α ≥ 0 of the concave dual

    α (γ − c_a)/λ + Σ_i w_i min_{y ∈ Δ} { d(y, ŷ_ia)^p − α y·v },

found by trisection; the inner minima are projections that need one sort a row. For the ℓ∞ ball of order ∞, kernels and actions decouple: an action needs the least
radius r with c_a + λ Σ_i w_i max{y·v : y ∈ Δ, |y − ŷ_ia| ≤ r} ≥ γ, found by bisection, and γ can be enforced iff no action needs more than θ.

All actions are searched at once, so a pass is array arithmetic on (A, N, S) numbers and costs about what compiled code would.
The authors' code stops at an inverted rule and leaves out a lower bound for ℓ∞; neither is repeated here. This is a yardstick, not a part of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.ambiguity import Wasserstein
from drmdp.errors import InputError
from drmdp.model import Model

PAIRS = (("l1", 1), ("l2", 2), ("linf", np.inf))


def bellman(model: Model, ball: Wasserstein, value: Array, s: int, accuracy: float = 1e-6) -> float:
    """F(v) in one state, costs minimised, to within `accuracy`; all actions available, dense kernels, one radius."""
    if (ball.metric, ball.order) not in PAIRS:
        raise InputError(f"the baseline knows {PAIRS}, not {(ball.metric, ball.order)}")
    rows = model.blocks.dense(s, s + 1)[0]  # (A, N, S)
    costs = model.costs[s]
    fits = _SEARCH[ball.metric](rows, model.weights, value, float(ball.radii(model)[s]))
    discount = model.discount
    low = float(np.min(costs + discount * rows.swapaxes(1, 2) @ model.weights @ value))  # nature does nothing
    high = float(np.min(costs)) + discount * float(value.max())
    if discount == 0:
        return low
    while high - low > accuracy:
        middle = (low + high) / 2
        if fits((middle - costs) / discount, accuracy):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _summed(inner: Callable[[Array, Array, Array], tuple[Array, Array]], order: int) -> Any:
    """Search for pairs whose budgets add up: `inner` gives min_y d(y, ŷ)^p − α y·v for each row."""

    def search(rows: Array, weights: Array, value: Array, radius: float) -> Callable[[Array, float], bool]:
        span = max(float(np.ptp(value)), 1e-300)
        nominal = rows.swapaxes(1, 2) @ weights @ value  # (A,)

        def budgets(targets: Array, accuracy: float) -> Array:
            """Lower bounds on B_a, the dual at the end of a trisection, and 0 where nature need not move."""
            moves = targets > nominal
            if not moves.any():
                return np.zeros(targets.size)
            own, goal = rows[moves], targets[moves]
            low, high = np.zeros(goal.size), np.full(goal.size, _STEEPEST / span)

            def dual(alpha: Array) -> Array:
                return alpha * goal + inner(own, alpha, value) @ weights

            best = np.zeros(goal.size)
            for _ in range(_TRISECTIONS):
                third = (high - low) / 3
                left, right = dual(low + third), dual(high - third)
                best = np.maximum(best, np.maximum(left, right))
                low, high = np.where(left < right, low + third, low), np.where(left < right, high, high - third)
                if (high - low).max() * span <= 1e-3 * accuracy:
                    break
            found = np.zeros(targets.size)
            found[moves] = best
            return found

        return lambda targets, accuracy: bool(budgets(targets, accuracy).sum() <= radius**order)

    return search


_STEEPEST = 1e4
"""Largest multiplier searched, over the span of v: beyond it all mass is at the top."""
_TRISECTIONS = 80


def _l1(rows: Array, alpha: Array, value: Array) -> Any:
    """min_y ‖y − ŷ‖₁ − α y·v: mass at j moves to the top if that pays, α (max v − v_j) > 2."""
    gain = np.maximum(alpha[:, None] * (value.max() - value) - 2, 0.0)  # (A, S)
    return -alpha[:, None] * (rows @ value) - np.einsum("ans,as->an", rows, gain)


def _l2(rows: Array, alpha: Array, value: Array) -> Any:
    """min_y ‖y − ŷ‖₂² − α y·v, at the projection of ŷ + α v/2 on the simplex."""
    y = _project(rows + alpha[:, None, None] / 2 * value)
    return ((y - rows) ** 2).sum(axis=2) - alpha[:, None] * (y @ value)


def _project(points: Array) -> Array:
    """Euclidean projections on the simplex, by sorting."""
    ordered = -np.sort(-points, axis=-1)
    sums = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, points.shape[-1] + 1)
    last = (ordered > sums).sum(axis=-1, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(sums, last, axis=-1), 0.0)


def _linf(rows: Array, weights: Array, value: Array, radius: float) -> Callable[[Array, float], bool]:
    """Search for (ℓ∞, ∞): the values at the radius itself decide, and are the same for every γ."""
    order = np.argsort(-value, kind="stable")
    sorted_rows, v = rows[..., order], value[order]

    def reached(r: float) -> Array:
        taken = np.minimum(sorted_rows, r)
        room = np.minimum(r, 1.0) + taken  # from ŷ − taken up to ŷ + r
        used = np.cumsum(room, axis=-1)
        added = np.clip(taken.sum(axis=-1, keepdims=True) - (used - room), 0.0, room)
        return np.asarray(((sorted_rows - taken + added) @ v) @ weights)

    def least(targets: Array, accuracy: float) -> float:
        """Least radius that reaches every target, by bisection."""
        low, high = 0.0, 1.0
        span = max(float(np.ptp(value)), 1e-300)
        while high - low > 0.01 * accuracy / (span * value.size):
            middle = (low + high) / 2
            low, high = (low, middle) if bool((reached(middle) >= targets).all()) else (middle, high)
        return high

    return lambda targets, accuracy: least(targets, accuracy) <= radius


_SEARCH: dict[str, Any] = {"l1": _summed(_l1, 1), "l2": _summed(_l2, 2), "linf": _linf}
