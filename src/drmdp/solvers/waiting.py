"""Bounds from below on a total cost where waiting may cost nothing.

Against an explicit kernel y of the set, F_y(L) ≥ L is enough, pair by pair, with no margin where a pair costs nothing and cannot lead to less than L: rule E.
States that free pairs connect under y share one number, which is what leaving costs (`drmdp.solvers.far_side`, with p = −L).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.bellman.operator import Update
from drmdp.certificate import plateau
from drmdp.certificate.dense import TINY
from drmdp.certificate.fixed_kernel import FixedKernel
from drmdp.core.levels import EPS
from drmdp.criteria.components import Options, end_components
from drmdp.model import changed
from drmdp.solution import Status
from drmdp.solvers import far_side
from drmdp.solvers.best import Side
from drmdp.solvers.loop import Outcome
from drmdp.solvers.nature_table import Proved, table
from drmdp.solvers.problem import Problem


class Payer(far_side.Agent):
    """An agent who pays, against a kernel, sparse (S·A, S)."""

    def __init__(self, problem: Problem, matrix: Any) -> None:
        model = problem.model
        super().__init__(matrix, model.available)
        self.costs = FixedKernel(model, matrix).costs[model.available]
        if model.next_costs:  # sums, with their rounding; those of zeros are exact
            sizes = FixedKernel(changed(model, _costs=np.abs(model._costs)), matrix).costs[model.available]
            self.costs = self.costs - (4 * np.diff(self._rows.indptr) + 64) * EPS * sizes
        plain, free = self.options, self.costs == 0

        def keeps(label: IntArray, some: IntArray) -> BoolArray:
            return np.asarray(plain.stays(label, some) & free[some])

        self.options = Options(plain.owner, plain.indptr, plain.indices, keeps)

    def after(self, p: Array) -> tuple[Array, Array]:
        """What an explicit row leads to, less what it costs."""
        rows, costs = self._rows, self.costs
        top, size = (plateau.tops(rows.indptr, rows.indices, own) for own in (p, np.abs(p)))
        margin = (4 * np.diff(rows.indptr) + 64) * EPS * (size + np.abs(costs)) + TINY
        return rows @ p - costs + margin, np.where(costs == 0, top, top - costs + margin)


def from_below(problem: Problem, found: Outcome, goal: float) -> Outcome:
    """A run that has an upper bound, with the lower one that an explicit kernel proves, if that is nearer."""
    side = found.best.sweeps[1]
    model, ball = problem.model, problem.operator.ball
    if side is None or ball is None or ball.nature != "adversarial" or problem.policy is not None:
        return found
    answer = table(problem, side.value, model.available)
    if answer is None:
        return found
    most = float(np.abs(side.value).max())
    margin = max(0.125 * goal * problem.criterion.share, 8 * EPS * most)
    live, box = ~np.asarray(model.terminal), (-4 * most - 1, 4 * most + 1)
    players = Payer(problem, answer.matrix)
    problem.criterion.waits = np.flatnonzero(end_components(players.options, live)[0] >= 0)  # type: ignore[attr-defined]
    p = far_side.bound(players, live, 0.0 - side.value, problem.checkpoint, box, margin=margin)
    lower = 0.0 - p.p
    if not p.holds or not (found.upper - lower).max() <= (found.upper - found.lower).max():
        return found
    step = np.zeros(lower.size)
    sweep = Side(
        lower, Update(lower, step, step, side.update.policy, side.update.nature, Proved(answer.shown)), proved=True
    )
    found.best.keep_below(lower, sweep)
    status = Status.solved if (found.upper - lower).max() <= goal else found.status
    return replace(found, lower=lower, status=status)
