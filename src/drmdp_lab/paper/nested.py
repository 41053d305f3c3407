r"""The (ℓ∞, 1) proximal map by three nested bisections, as appendix C of the paper describes it,
with every evaluation counted.

    min { ½ Σ_i ‖y_i − z_i‖² :  y_ia ∈ Δ,  (1/N) Σ_i max_a ‖y_ia − ŷ_ia‖_∞ ≤ θ }

A multiplier γ prices the radii r_i of the kernels, Σ_i r_i = Nθ. A radius is the best for its price
where Λ_i(r_i) = γ: what another bit of radius is worth, the sum of the multipliers of the bounds,
falls with r. The rows within r are y = clip(z − α, max(ŷ − r, 0), ŷ + r), with the α for which they
sum to 1. Each of γ, r and α is found by bisection to the accuracy ε, so that a row is evaluated
about log(1/ε)³ times. `drmdp.project` computes the same map by Newton's method: compare
`multipliers`.
"""

from __future__ import annotations

import math

import numpy as np

from drmdp._typing import Array
from drmdp.layout.layout import lay_out_all
from drmdp.model import Model
from drmdp.prox.registry import Push, cold_memory, family_of
from drmdp.sets import Wasserstein


def halvings(width: float, accuracy: float) -> int:
    """Bisections from a width to the accuracy."""
    return max(1, math.ceil(math.log2(width / accuracy)))


class Nested:
    """One map: `project` returns the tuple, `evaluations` counts how often each row was
    evaluated.
    """

    def __init__(self, point: Array, centre: Array, radius: float, accuracy: float) -> None:
        self._z, self._hat, self._radius, self._accuracy = point, centre, radius, accuracy
        self.evaluations = 0

    def project(self) -> Array:
        """The nearest tuple (N, A, S) in the ball."""
        budget = len(self._z) * self._radius
        r = self._radii(0.0)
        if r.sum() > budget:
            low, high = 0.0, float(np.abs(self._z - self._hat).sum(axis=(1, 2)).max()) * 2
            for _ in range(halvings(high, self._accuracy)):
                price = (low + high) / 2
                r = self._radii(price)
                low, high = (price, high) if r.sum() > budget else (low, price)
            r = self._radii(high)
        return self._rows(r)[0]

    def _radii(self, price: float) -> Array:
        """r_i at which another bit of radius is worth the price, (N,)."""
        low, high = np.zeros(len(self._z)), np.ones(len(self._z))
        for _ in range(halvings(1.0, self._accuracy)):
            r = (low + high) / 2
            dear = self._rows(r)[1] > price
            low, high = np.where(dear, r, low), np.where(dear, high, r)
        return high

    def _rows(self, r: Array) -> tuple[Array, Array]:
        """Rows within the radii, and what another bit of each radius is worth, (N,)."""
        z, box = self._z, r[:, None, None]
        floor, top = np.maximum(self._hat - box, 0.0), self._hat + box
        low, high = (z - top).min(axis=2), (z - floor).max(axis=2)
        for _ in range(halvings(float((high - low).max()), self._accuracy)):
            alpha = (low + high) / 2
            much = np.clip(z - alpha[..., None], floor, top).sum(axis=2) > 1
            low, high = np.where(much, alpha, low), np.where(much, high, alpha)
            self.evaluations += 1
        free = z - high[..., None]
        worth = np.maximum(free - top, 0.0) + np.where(
            self._hat > box, np.maximum(floor - free, 0.0), 0.0
        )
        return np.clip(free, floor, top), np.asarray(worth.sum(axis=(1, 2)))


def first_push(model: Model) -> tuple[Array, Array]:
    """Step sizes (S, A) and v of a step of Algorithm 1 from the data: uniform policy, v after a
    sweep of the mean kernel.
    """
    mean = np.asarray(model.mean_kernel)
    v = (model.costs + model.discount * mean @ model.costs.min(axis=1)).min(axis=1)
    sigma = model.n_kernels * math.sqrt(model.n_actions) / (model.discount * np.linalg.norm(v))
    return np.full((model.n_states, model.n_actions), sigma / model.n_actions), v


def evaluations(model: Model, ambiguity: Wasserstein, accuracy: float) -> int:
    """How often nested bisections evaluate a row, in the first state; the accuracy is relative to
    the radius.
    """
    step, v = first_push(model)
    centre = model.kernels[:, 0]
    point = centre + step[0][:, None] * model.discount * v / model.n_kernels
    nested = Nested(point, centre, float(ambiguity.radius), accuracy * float(ambiguity.radius))
    nested.project()
    return nested.evaluations


def multipliers(model: Model, ambiguity: Wasserstein, accuracy: float) -> float:
    """How many γ the package tries without a guess, to the same accuracy; mean over the states in
    which the ball binds.
    """
    layout = lay_out_all(model, ambiguity)
    family = family_of(ambiguity)
    memory = cold_memory(family, layout)
    step, v = first_push(model)
    arrays = layout, Push(step, v), np.array(layout.data), memory
    family.project(0, model.n_states, arrays, accuracy)
    tried = memory.trials[:, 0]
    return float(tried[tried > 0].mean()) if (tried > 0).any() else 0.0
