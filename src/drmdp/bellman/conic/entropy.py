"""The programs of one state with exponential cones, for Clarabel: KL and Burg.

To the variables of `drmdp.bellman.conic.cone` comes a bound r on what each entry with ŷ > 0 costs; the ball is the budget Σ_i w_i Σ r ≤ θ, y ≥ 0 where ŷ = 0,
and a cone {(p, q, h) : q e^{p/q} ≤ h} for each r:

    KL      r ≥ y log(y/ŷ)   as   (−r, y, ŷ),        Burg    r ≥ ŷ log(ŷ/y)   as   (−r, ŷ, y).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.bellman.conic.cone import ConeProgram, Constraints, clarabel


class Kl(ConeProgram):
    """Σ_i w_i Σ y log(y/ŷ) ≤ θ."""

    power, own_support = 0.5, True
    place = 1  # of y in (−r, ·, ·); ŷ has the other one

    def _columns(self) -> int:
        return int(self._entries.a.size + np.count_nonzero(self._entries.nominal))

    def _bound(self, rows: Constraints, own: Any) -> None:
        entries = self._entries
        seen, new = np.flatnonzero(entries.nominal > 0), np.flatnonzero(entries.nominal == 0)
        R, each = seen.size, 3 * np.arange(seen.size)
        cost = own.size + np.arange(R)
        budget = np.zeros(R, dtype=int), cost, entries.weights[entries.i[seen]]
        rows.add([budget], entries.radius, clarabel.NonnegativeConeT(1))
        if new.size:
            rows.add([(np.arange(new.size), new, -1.0)], 0.0, clarabel.NonnegativeConeT(new.size))
        rhs, cones = np.outer(entries.nominal[seen], [0.0, 1.0, 1.0]).ravel(), [clarabel.ExponentialConeT()] * R
        rows.add([(each, cost, 1.0), (each + self.place, seen, -entries.scale)], rhs, *cones)


class Burg(Kl):
    """Σ_i w_i Σ ŷ log(ŷ/y) ≤ θ."""

    own_support, place = False, 2
