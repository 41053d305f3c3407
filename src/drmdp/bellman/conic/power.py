"""The conic programs of one state of a ball of any finite order, for Clarabel.

To the variables of `drmdp.bellman.conic.cone` come for ℓ1 the size of each displacement, the distance d_i of each kernel in units of ρ, and for p > 1 a share
s_i of the budget. With R = θ/ρ the ball is

    ℓ1: |δ| ≤ size, Σ size ≤ d_i;    ℓ2: ‖δ_i‖ ≤ d_i;    ℓ∞: |δ| ≤ d_i;        p = 1: Σ w_i d_i ≤ R;    else  d_i ≤ s_i^{1/p} R^{1−1/p}, Σ w_i s_i ≤ R,

the last but one a power cone for each kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.bellman.conic.cone import ConeProgram, Constraints, clarabel


class PowerProgram(ConeProgram):
    """Update and evaluation of one state with a ball of finite order."""

    def _columns(self) -> int:
        return 2 * int(self._entries.a.size + self._entries.weights.size)

    def _bound(self, rows: Constraints, own: Any) -> None:
        self._signs(rows, own)
        entries, p, metric = self._entries, float(self._ball.order), self._ball.metric  # type: ignore[attr-defined]
        E, N, w, reach = own.size, entries.weights.size, entries.weights, entries.radius / entries.scale
        size, far, part = E + own, 2 * E + np.arange(N), 2 * E + N + np.arange(N)
        if metric == "l2":
            for i in range(N):
                mine = own[entries.i == i]
                parts = [(np.array([0]), far[i : i + 1], -1.0), (1 + np.arange(mine.size), mine, -1.0)]
                rows.add(parts, 0.0, clarabel.SecondOrderConeT(mine.size + 1))
        else:
            above = far[entries.i] if metric == "linf" else size
            for sign in (1.0, -1.0):
                rows.add([(own, own, sign), (own, above, -1.0)], 0.0, clarabel.NonnegativeConeT(E))
            if metric == "l1":
                total = [(entries.i, size, 1.0), (np.arange(N), far, -1.0)]
                rows.add(total, 0.0, clarabel.NonnegativeConeT(N))
        spent = far if p == 1 else part
        rows.add([(np.zeros(N, dtype=int), spent, w)], reach, clarabel.NonnegativeConeT(1))
        for i in range(N if p > 1 else 0):
            ends = [(np.array([0]), part[i : i + 1], -1.0), (np.array([2]), far[i : i + 1], -1.0)]
            rows.add(ends, np.array([0.0, reach, 0.0]), clarabel.PowerConeT(1 / p))
