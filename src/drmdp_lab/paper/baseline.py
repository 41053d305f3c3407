r"""A baseline: the Bellman update of Yu, Dai, Xu, Gao and Ho (NeurIPS 2023), written from its
published description.

"Fast Bellman Updates for Wasserstein Distributionally Robust MDPs" decides by bisection whether a
value γ can be enforced by nature. Nature needs, for each action, at least the budget

    B_a(γ) = min { Σ_i w_i d(y_i, ŷ_ia)^p : c_a + λ Σ_i w_i y_i·v ≥ γ },

and γ can be enforced iff the budgets fit, Σ_a B_a(γ) ≤ θ^p. B_a is the maximum over α ≥ 0 of the
concave dual

    α (γ − c_a)/λ + Σ_i w_i min_{y ∈ Δ} { d(y, ŷ_ia)^p − α y·v },

found by trisection; the inner minima are projections that need one sort a row (ℓ2) or none (ℓ1).
For the ℓ∞ ball of order ∞ kernels
and actions decouple: an action needs the least radius r with c_a + λ Σ_i w_i max{y·v : y ∈ Δ, |y − ŷ_ia| ≤ r} ≥ γ,
found by bisection, and γ can be enforced iff no action needs more than θ.

Compiled by Numba. The authors' code stops at an inverted rule and leaves out a lower bound for ℓ∞;
neither is repeated here. This is a yardstick, not a part of the engine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import Wasserstein

PAIRS = (("l1", 1), ("l2", 2), ("linf", np.inf))
STEEPEST = 1e4
"""Largest multiplier searched, over the span of v: beyond it all mass is at the top."""


def bellman(
    model: Model, ambiguity: Wasserstein, value: Array, s: int, accuracy: float = 1e-6
) -> float:
    """F(v) in one state, costs minimised, to within `accuracy`; all actions available, dense
    kernels, one radius.
    """
    if (ambiguity.metric, ambiguity.order) not in PAIRS:
        raise InputError(f"the baseline knows {PAIRS}, not {(ambiguity.metric, ambiguity.order)}")
    rows = np.ascontiguousarray(model.blocks.dense(s, s + 1)[0])  # (A, N, S)
    order = np.argsort(-value, kind="stable")  # the top first
    kind = {"l1": 1, "l2": 2, "linf": 0}[ambiguity.metric]
    settings = float(ambiguity.radii(model)[s]), model.discount, accuracy, kind
    return float(
        _value(
            np.ascontiguousarray(rows[..., order]),
            model.weights,
            value[order],
            model.costs[s],
            *settings,
        )
    )


@njit(cache=True, nogil=True)
def _value(rows, weights, v, costs, radius, discount, accuracy, kind):
    """Bisection on γ between what nature reaches without moving and with everything at the top."""
    A = rows.shape[0]
    nominal = np.zeros(A)
    for a in range(A):
        for i in range(weights.size):
            nominal[a] += weights[i] * np.dot(rows[a, i], v)
    low, high = (costs + discount * nominal).min(), costs.min() + discount * v[0]
    span = v[0] - v[-1]
    if discount == 0 or span == 0:
        return low
    while high - low > accuracy:
        gamma = (low + high) / 2
        need = 0.0
        for a in range(A):
            target = (gamma - costs[a]) / discount
            if target > nominal[a]:
                if kind == 0:
                    need = max(
                        need,
                        _least_radius(
                            rows[a], weights, v, target, 0.01 * accuracy / (span * v.size)
                        ),
                    )
                else:
                    need += _budget(rows[a], weights, v, target, 1e-3 * accuracy, kind)
                if need > radius ** max(kind, 1):
                    break
        if need <= radius ** max(kind, 1):
            low = gamma
        else:
            high = gamma
    return (low + high) / 2


@njit(cache=True, nogil=True)
def _budget(rows, weights, v, target, width, kind):
    """B_a from below: the largest dual value met in a trisection on α."""
    span = v[0] - v[-1]
    low, high, best = 0.0, STEEPEST / span, 0.0
    while (high - low) * span > width:
        third = (high - low) / 3
        left = _dual(rows, weights, v, target, low + third, kind)
        right = _dual(rows, weights, v, target, high - third, kind)
        best = max(best, left, right)
        if left < right:
            low += third
        else:
            high -= third
    return best


@njit(cache=True, nogil=True)
def _dual(rows, weights, v, target, alpha, kind):
    total = alpha * target
    for i in range(weights.size):
        inner = _inner_l1(rows[i], v, alpha) if kind == 1 else _inner_l2(rows[i], v, alpha)
        total += weights[i] * inner
    return total


@njit(cache=True, nogil=True)
def _inner_l1(row, v, alpha):
    """min_y ‖y − ŷ‖₁ − α y·v: mass moves to the top where that pays, α (v_top − v_j) > 2."""
    total = 0.0
    for j in range(row.size):
        total -= row[j] * (alpha * v[j] + max(alpha * (v[0] - v[j]) - 2, 0.0))
    return total


@njit(cache=True, nogil=True)
def _inner_l2(row, v, alpha):
    """min_y ‖y − ŷ‖₂² − α y·v, at the projection of ŷ + α v/2 on the simplex, by sorting."""
    point = row + alpha / 2 * v
    ordered = np.sort(point)[::-1]
    total, threshold = -1.0, 0.0
    for k in range(ordered.size):
        total += ordered[k]
        if ordered[k] * (k + 1) <= total:
            break
        threshold = total / (k + 1)
    found = 0.0
    for j in range(row.size):
        y = max(point[j] - threshold, 0.0)
        found += (y - row[j]) ** 2 - alpha * y * v[j]
    return found


@njit(cache=True, nogil=True)
def _least_radius(rows, weights, v, target, width):
    """Least radius at which an action reaches the target, by bisection; 2 if none does."""
    low, high = 0.0, 1.0
    if _reached(rows, weights, v, high) < target:
        return 2.0
    while high - low > width:
        middle = (low + high) / 2
        if _reached(rows, weights, v, middle) >= target:
            high = middle
        else:
            low = middle
    return high


@njit(cache=True, nogil=True)
def _reached(rows, weights, v, radius):
    """Σ_i w_i max{y·v : y ∈ Δ, |y − ŷ_i| ≤ r}: take what may be taken everywhere, give it back from the top."""
    total = 0.0
    for i in range(weights.size):
        free, kept = 0.0, 0.0
        for j in range(v.size):
            taken = min(rows[i, j], radius)
            free += taken
            kept += (rows[i, j] - taken) * v[j]
        for j in range(v.size):
            given = min(free, radius + min(rows[i, j], radius))
            kept += given * v[j]
            free -= given
        total += weights[i] * kept
    return total
