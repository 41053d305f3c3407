"""Transport as linear programs of one state, for HiGHS.

Beside the columns of `drmdp.bellman.conic.linear` there is one for each move of mass, π ≥ 0 from entry j to entry k ≠ j of the same row, in units of ρ. What
goes up receives no more than arrives, what goes down gives no less than leaves; both have the same sum in a row, so that both hold with equality.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.conic.linear import LinearProgram


class Transport(LinearProgram):
    """Σ π D ≤ θ, with weights over all kernels or for each."""

    each = False

    def _bound(self, reach: float) -> None:
        entries, ground, pairs = self._entries, self._ball.ground, []  # type: ignore[attr-defined]
        for row in range(int(entries.row.max()) + 1):
            own = np.flatnonzero(entries.row == row)
            costs = ground.between(entries.t[own], entries.t[own])
            j, k = np.nonzero(np.isfinite(costs) & (entries.nominal[own] > 0)[:, None] & ~np.eye(own.size, dtype=bool))
            pairs.append((own[j], own[k], costs[j, k]))
        leaves, arrives, price = (np.concatenate(part) for part in zip(*pairs, strict=True))
        moves, kernel = self._more(price.size), entries.i[leaves]
        up, down = np.arange(entries.a.size), np.arange(self._down.size)
        if self.each:
            self._add(entries.weights.size, [(kernel, moves, price)], reach)
        else:
            self._add(1, [(np.zeros_like(kernel), moves, price * entries.weights[kernel])], reach)
        self._add(up.size, [(up, up, 1.0), (arrives, moves, -1.0)])
        self._add(down.size, [(down, up.size + down, -1.0), (np.searchsorted(self._down, leaves), moves, 1.0)])


class Each(Transport):
    """For each kernel."""

    each = True


MEAN, EACH = Transport, Each
