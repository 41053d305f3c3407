"""Transport as linear programs of one state, for HiGHS.

Beside the columns of `drmdp.bellman.conic.linear` there is one for each move of mass, π ≥ 0 from entry j to entry k ≠ j of the same row, in units of ρ. What
goes up receives no more than arrives, what goes down gives no less than leaves; both have the same sum in a row, so that both hold with equality.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.bellman.conic.linear import LinearProgram
from drmdp.bellman.conic.operator import Entries
from drmdp.sets import AmbiguitySet


class Transport(LinearProgram):
    """Σ π D ≤ θ, with weights over all kernels or for each."""

    each = False

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        ground = ball.ground  # type: ignore[attr-defined]
        self._unit = ground.scale
        super().__init__(entries, ball)
        pairs = []
        for row in range(int(entries.row.max()) + 1):
            own = np.flatnonzero(entries.row == row)
            costs = ground.between(entries.t[own], entries.t[own])
            j, k = np.nonzero(np.isfinite(costs) & (entries.nominal[own] > 0)[:, None] & ~np.eye(own.size, dtype=bool))
            pairs.append((own[j], own[k], costs[j, k] / self._unit))
        self._leaves, self._arrives, self._costs = (np.concatenate(part) for part in zip(*pairs, strict=True))
        self._moves = self._n_columns + np.arange(self._costs.size)
        self._n_columns += self._costs.size

    def _n_ball_rows(self) -> int:
        return int(self._entries.weights.size) if self.each else 1

    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        E, D = self._entries.a.size, self._down.size
        own = self._entries.i[self._leaves]
        rows = self._ball_rows[own if self.each else np.zeros(own.size, dtype=int)]
        price = self._costs * (1.0 if self.each else self._entries.weights[own])
        up = int(self._ball_rows[-1]) + 1
        down = up + E
        place = np.searchsorted(self._down, self._leaves)
        return [
            (rows, self._moves, self._unit * price),
            (up + np.arange(E), np.arange(E), np.ones(E)),
            (up + self._arrives, self._moves, -np.ones(self._moves.size)),
            (down + np.arange(D), E + np.arange(D), -np.ones(D)),
            (down + place, self._moves, np.ones(self._moves.size)),
        ]


class Each(Transport):
    """For each kernel."""

    each = True


MEAN, EACH = Transport, Each
