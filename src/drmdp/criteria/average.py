"""Long-run average cost a step, or per unit of time, of a process that never ends.

Whatever h is, a stationary policy x and a stationary kernel y of the set,

    min_s (F_y(h) − h)(s) ≤ what any policy costs a step against y,
    what x costs a step against anything ≤ max_s (F^x(h) − h)(s),

from every start. *Proof.* E[c_k + h(s_{k+1})] ≤ h(s_k) + max(F^x(h) − h): costs of n steps are at
most h(s) − E h(s_n) + n max(F^x(h) − h). ∎ Nothing is assumed of the model; the two meet where F(h)
= h + g has a solution, so that the optimum is the same number for all states. Where it differs, the
bounds are the smallest and the largest.

**Newton's method** on F(h) = h + g: with a state that is visited again and again, times w until it
is reached, (I − P̃) w = 1, P̃ the chain of the pair without its column, and (I − P̃) u = r = F(h) −
h, the gain is u/w in that state and h + u − g w the next point. Where the chain has several closed
classes there is no such state; then what comes later counts less, I − 0.999 P in place of I − P.

**Steps that last** τ(s, a) on average. Bounded is the limit of E[costs of n steps]/E[time of n
steps], the cost per unit of time. For any rate g let d be the largest step of the operator whose
costs are c − gτ: costs of n steps less g times their time are at most h(s) − E h(s_n) + nd, and n
is between time/max τ and time/min τ. So the cost per unit of time is at most g + d/min τ if d > 0,
g + d/max τ otherwise; likewise from below. At the right g steps are 0 and both meet:
`drmdp.solvers.sojourn` looks for it. c − gτ is rounded; by how much is added.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core.levels import EPS
from drmdp.criteria import newton_systems
from drmdp.criteria.base import Criterion
from drmdp.model import Model
from drmdp.operators.operator import Update
from drmdp.solution import Status

NEAR = 2.0
"""How much wider bounds per unit of time may be than steps, before the rate is changed."""
LONGEST, ROUNDS, TRIES, SELDOM, SOON, PATIENCE = 1e13, 30, 4, 1e-3, 0.999, 12
"""Steps that are as good as infinitely many; rounds of the start; states that are tried, how rarely
they may be visited, a discount, and how often it helps.
"""


class Average(Criterion):
    """The criterion of long-run cost a step, or per unit of time: that of a model whose costs are c
    − `rate` · τ.
    """

    name = "average"
    share = 1.0

    def __init__(self, model: Model, rate: float = 0.0, again: int = 0) -> None:
        self._model, self.rate = model, rate
        low, high = min(model.cost_range[0], 0.0), max(model.cost_range[1], 0.0)
        self.range = low, high
        self._lasts = 1.0, 1.0
        self._off = 0.0  # rounding of costs
        if model.sojourn is not None:
            lasts = model.sojourn[model.available]
            self._lasts = least, self.unit = float(lasts.min()), float(lasts.max())
            self.share = least
            self._off = 2 * EPS * (abs(rate) * self.unit + max(map(abs, self.range)))
            self.range = self._per_time(low, -1), self._per_time(high, +1)
        self.again = again  # a state that is visited again and again
        self._apart = 0  # pairs in a row that have none

    def bounds(self, value: Array, update: Update) -> tuple[Array, Array]:
        """The same numbers for all states, and none beyond what a step costs."""
        steps = float(update.lower_step.min()), float(update.upper_step.max())
        found = [self._per_time(step, side) for step, side in zip(steps, (-1, +1), strict=True)]
        if self.uneven and found[1] - found[0] > NEAR * (steps[1] - steps[0]) / self._lasts[0]:
            self.over = Status.precision_limit  # it is the rate that is wrong
        lower, upper = max(found[0], self.range[0]), min(found[1], self.range[1])
        return np.full(value.size, lower), np.full(value.size, upper)

    def _per_time(self, step: float, side: int) -> float:
        """What a step of the operator bounds."""
        if self._model.sojourn is None:
            return step
        step += side * self._off
        beyond = step / self._lasts[side * step < 0]
        return self.rate + beyond + side * 4 * EPS * (abs(self.rate) + abs(beyond))

    @property
    def uneven(self) -> bool:
        """Whether steps last differently."""
        return self._lasts[0] < self._lasts[1]

    def better(self, side: Any, within: tuple[float, float]) -> float:
        """The rate of the pair of a sweep, or the middle of where it is known to be."""
        update, again = side.update, returned(side.update.chain)
        lasts = (update.policy * self._model.sojourn).sum(axis=1)
        self.again = self.again if again is None else again
        found = newton_systems.arriving(update.chain, [update.residual, lasts], self.again)
        if found is not None:
            rate = self.rate + float(found[0][self.again] / found[1][self.again])
            if within[0] <= rate <= within[1]:
                return rate
        return (within[0] + within[1]) / 2

    def direction(self, problem: Any, value: Array, update: Update) -> Array:
        """To the h of the pair, with 0 in the state that it returns to."""
        problem.checkpoint()
        residual, chain, one, again = update.residual, update.chain, np.ones(value.size), self.again
        for _ in range(TRIES):
            found = newton_systems.arriving(chain, [residual, one], again)
            if found is None:
                if (other := returned(chain)) in (None, again):
                    break
                again = self.again = other
                continue
            way, times, visits = *found[:2], np.abs(found[2])
            self.again, rare = int(np.argmax(visits)), not visits[again] >= SELDOM * visits.max()
            if not rare and 0 < times.min() <= times.max() <= LONGEST:
                self._apart = 0
                step: Array = way - way[again] / times[again] * times
                return step - float(value[again])
            if not rare:
                break
            again = self.again
        self._apart += 1
        if self._apart > PATIENCE:  # gains differ
            self.over = Status.precision_limit
        part = newton_systems.solve(
            chain, SOON, residual - float(residual.mean()), problem.checkpoint
        )
        return part - float((value + part).mean())

    def start(self, problem: Any) -> Array | None:
        """The h of the mean kernel."""
        nominal = problem if problem.operator.ambiguity is None else problem.of_mean_kernel()
        value: Array = np.zeros(self._model.n_states)
        best, before = (np.inf, value), None
        for _ in range(ROUNDS):
            problem.checkpoint()
            update = nominal.sweep(value)
            best = min(best, (float(np.ptp(update.residual)), value), key=itemgetter(0))
            if before is not None and np.array_equal(update.policy, before):
                break
            before = update.policy
            value = value + self.direction(problem, value, update)
        self._apart, self.over = 0, None
        return best[1]


def returned(chain: Any) -> int | None:
    """A state of the only closed class of a chain; None if there are several."""
    from scipy.sparse.csgraph import connected_components  # takes a tenth of a second

    graph = sparse.coo_array(
        chain if isinstance(chain, np.ndarray) else newton_systems.matrix_of(chain)
    )
    count, label = connected_components(graph, connection="strong")
    leaves = (label[graph.row] != label[graph.col]) & (graph.data > 0)
    closed = np.setdiff1d(np.arange(count), label[graph.row[leaves]])
    return int(np.argmax(label == closed[0])) if closed.size == 1 else None
