"""Lower bounds on a total cost where waiting may cost nothing.

Against an explicit kernel y of the set, F_y(L) ≥ L is enough, pair by pair, with no margin where a
pair costs nothing and cannot lead to less than L: rule E. States that free pairs connect under y
share a value, the cost of leaving (`drmdp.solvers.reachability.far_side`, with p = −L).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.certificate import FixedKernel, plateau
from drmdp.certificate.dense import TINY
from drmdp.core.levels import EPS
from drmdp.criteria.end_components import StateOptions, end_components
from drmdp.model import changed
from drmdp.operators.operator import Update
from drmdp.solution import Status
from drmdp.solvers.incumbent import Side
from drmdp.solvers.loop import Outcome
from drmdp.solvers.problem import Problem
from drmdp.solvers.reachability import far_side
from drmdp.solvers.reachability.nature_table import Proved, table


class Payer(far_side.Agent):
    """An agent who pays, against a kernel, sparse (S·A, S)."""

    def __init__(self, problem: Problem, matrix: Any) -> None:
        model = problem.model
        super().__init__(matrix, model.available)
        self.costs = FixedKernel(model, matrix).costs[model.available]
        if model.next_costs:  # sums, with their rounding; those of zeros are exact
            absolute = changed(model, _costs=np.abs(model._costs))
            sizes = FixedKernel(absolute, matrix).costs[model.available]
            self.costs = self.costs - (4 * np.diff(self._rows.indptr) + 64) * EPS * sizes
        plain, free = self.options, self.costs == 0

        def keeps(label: IntArray, chosen: IntArray) -> BoolArray:
            return np.asarray(plain.stays(label, chosen) & free[chosen])

        self.options = StateOptions(plain.owner, plain.indptr, plain.indices, keeps)

    def after(self, p: Array) -> tuple[Array, Array]:
        """Upper bounds after an explicit row, less its cost."""
        rows, costs = self._rows, self.costs
        top, size = (plateau.tops(rows.indptr, rows.indices, values) for values in (p, np.abs(p)))
        margin = (4 * np.diff(rows.indptr) + 64) * EPS * (size + np.abs(costs)) + TINY
        return rows @ p - costs + margin, np.where(costs == 0, top, top - costs + margin)


def from_below(problem: Problem, outcome: Outcome, goal: float) -> Outcome:
    """The outcome of a run with the lower bound that an explicit kernel proves, if it is higher."""
    side = outcome.best.sweeps[1]
    model, ambiguity = problem.model, problem.operator.ambiguity
    if side is None or ambiguity is None or problem.policy is not None:
        return outcome
    if ambiguity.nature != "adversarial":
        return outcome
    answer = table(problem, side.value, model.available)
    if answer is None:
        return outcome
    most = float(np.abs(side.value).max())
    margin = max(0.125 * goal * problem.criterion.share, 8 * EPS * most)
    live, box = ~np.asarray(model.terminal), (-4 * most - 1, 4 * most + 1)
    players = Payer(problem, answer.matrix)
    criterion: Any = problem.criterion
    criterion.waits = np.flatnonzero(end_components(players.options, live)[0] >= 0)
    p = far_side.bound(players, live, 0.0 - side.value, problem.checkpoint, box, margin=margin)
    lower = 0.0 - p.p
    if not p.holds or not (outcome.upper - lower).max() <= (outcome.upper - outcome.lower).max():
        return outcome
    step, last = np.zeros(lower.size), side.update
    update = Update(lower, step, step, last.policy, last.nature, Proved(answer.shown))
    outcome.best.keep_below(lower, Side(lower, update, proved=True))
    status = Status.solved if (outcome.upper - lower).max() <= goal else outcome.status
    return replace(outcome, lower=lower, status=status)
