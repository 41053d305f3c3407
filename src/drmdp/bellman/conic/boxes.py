"""Intervals by linear programs: max z·y, lower ≤ y ≤ upper, Σ y = 1, for every pair, by HiGHS; the best action is played."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from drmdp._typing import Array
from drmdp.bellman.conic.direct import DirectOperator, Game


class Boxes(DirectOperator):
    """A program for each pair; the certificate needs no claim."""

    def solve(self, game: Game, kept: Array) -> tuple[Array, Array]:
        """Policy and nature's rows."""
        layout, A = self.layout, self.model.n_actions
        rows = np.zeros(game.z.shape)
        for k, a in enumerate(game.own.tolist()):
            lo, hi = layout.indptr[game.s * A + a], layout.indptr[game.s * A + a + 1]
            columns, r = layout.indices[lo:hi], layout.radius[game.s]
            lower, upper = np.maximum(layout.mean[lo:hi] - r, 0.0), np.minimum(layout.data[lo:hi] + r, 1.0)
            z = game.z[k, columns]
            found = linprog(
                z / (z.min() or -1.0), A_eq=np.ones((1, z.size)), b_eq=[1.0], bounds=np.stack([lower, upper], axis=1),
                method="highs",
            )  # fmt: skip
            rows[k, columns] = lower / lower.sum() if found.x is None else found.x
        if game.policy is not None:
            return game.policy, rows
        return np.eye(game.own.size)[np.argmin((rows * game.z).sum(axis=1) + game.top)], rows
