"""The proof of a nature that helps: bounds of the negated problem, turned around.

With z ↦ −z and v ↦ −v the least value that a set allows is minus the greatest, so everything that is proved of an adversarial nature is proved of a
cooperative one (`turned`). In an update nature puts all she has on the action that is played. So every pair (s, a) is a state of its own with one action
(`pairs_of`), its bounds are those of the set, and

    L = min_a L_a,        U = Σ_a x_a U_a.

A policy that is given shares what she has among its actions, as in the set: then states stay whole.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import Proof, RobustProver, compressed
from drmdp.certificate.compressed import Found
from drmdp.core import levels
from drmdp.layout.layout import Layout, lay_out
from drmdp.layout.pairs import by_pair
from drmdp.model import Model
from drmdp.sets import AmbiguitySet


def turned(layout: Layout) -> Layout:
    """The same data with negated costs."""
    return layout._replace(costs=0.0 - layout.costs, next_costs=0.0 - layout.next_costs)


def pairs_of(layout: Layout) -> Layout:
    """The same data with a state for each pair, which has one action."""
    radius = layout.radius[:, None] if layout.radius.ndim == 1 else layout.radius
    return by_pair(layout._replace(radius=radius))


class Single(NamedTuple):
    """A set as one pair sees it: its key, with the whole budget for the one action."""

    key: Hashable
    by_kernel: bool
    order: Any = None
    by_pair: bool = False
    moves: str = "states"


def single(ball: AmbiguitySet) -> Any:
    """The set of a pair."""
    return Single(ball.key, ball.by_kernel, getattr(ball, "order", None))


@dataclass(frozen=True)
class CooperativeProver:
    """Proves sweeps with a nature that helps."""

    model: Model
    ball: AmbiguitySet
    threads: int

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> Proof:
        """Bound F, or F^x, at `value`; a claim of another shape than the set's is refused."""
        model, (S, A) = self.model, self.model.available.shape
        shift = levels.level(value, model)
        u = value - shift
        x = np.ascontiguousarray(policy, dtype=np.float64)
        found = self._derive(u, x, claim, fixed)
        low, high = -found.high, -found.low
        if not fixed:
            low, high = low.reshape(S, A), high.reshape(S, A)
            low = np.where(model.available, low, np.inf).min(axis=1, initial=np.inf)
            parts = np.where(x > 0, x * np.where(x > 0, high, 0.0), 0.0)
            high = parts.sum(axis=1) + (A + 4) * levels.EPS * np.abs(parts).sum(axis=1)
            high = high + 2 * np.abs(x.sum(axis=1) - 1) * np.abs(high)
        low, high = (np.where(model.terminal, 0.0, side) for side in (low, high))
        low, high, _ = levels.both_steps(u, shift, model, low, high)
        return Proof(low, high, found.share)

    def each(self, value: Array, claim: Any) -> Array:
        """What every pair costs at least, value included, (S, A), from the claim of an update."""
        shift = levels.level(value, self.model)
        found = self._derive(value - shift, None, claim, fixed=False)
        return np.asarray(shift - found.high.reshape(self.model.available.shape) - 8 * levels.EPS * np.abs(value).max())

    def _derive(self, u: Array, policy: Any, claim: Any, fixed: bool) -> Found:
        model = self.model
        layout = turned(lay_out(model, self.ball))
        layout, ball = (layout, self.ball) if fixed else (pairs_of(layout), single(self.ball))
        memory = RobustProver(model, ball, self.threads).checked(claim, layout)
        asked = policy if fixed else np.ascontiguousarray(np.where(model.available, 1.0, 0.0).reshape(-1, 1))
        return compressed.derive(ball, layout, 0.0 - u, asked, memory, fixed, self.threads)
