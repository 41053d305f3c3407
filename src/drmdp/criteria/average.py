"""Long-run average cost a step, of a process that never ends.

Whatever h is, a stationary policy x and a stationary kernel y of the set,

    min_s (F_y(h) − h)(s) ≤ what any policy costs a step against y,        what x costs a step against anything ≤ max_s (F^x(h) − h)(s),

from every start. *Proof.* E[c_k + h(s_{k+1})] ≤ h(s_k) + max(F^x(h) − h): costs of n steps are at most h(s) − E h(s_n) + n max(F^x(h) − h). ∎  Nothing is
assumed of the model; the two meet where F(h) = h + g has a solution, so that the optimum is the same number for all states. Where it differs between states, the
bounds are the smallest and the largest.

**Newton's method** on F(h) = h + g: with a state that is visited again and again, times w until it is reached, (I − P̃) w = 1, P̃ the chain of the pair without
its column, and (I − P̃) u = r = F(h) − h, the gain is u/w in that state and h + u − g w the next point. Where the chain has several closed classes there is no
such state; then h goes half a step to F(h), as if the process paused with probability 1/2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.core.surveys import Survey
from drmdp.criteria import linear
from drmdp.model import Model

LONGEST, ROUNDS, LOOKS = 1e13, 30, 64


class Average:
    """The criterion of long-run cost a step."""

    name = "average"
    joint = False
    share = 1.0
    width = guess = 0.0
    hopeless = False

    def __init__(self, model: Model) -> None:
        self._model = model
        self.range = model.cost_range

    def bounds(self, value: Array, update: Update) -> tuple[Array, Array]:
        """The same numbers for all states."""
        return np.full(value.size, float(update.lower_step.min())), np.full(value.size, float(update.upper_step.max()))

    def widen(self, update: Update) -> None:
        """A wide proof is a wide gap."""

    def direction(self, value: Array, residual: Array, update: Update, goal: float, checkpoint: Callable[[], None]) -> Array:
        """To the h of the pair, with 0 in the state that it returns to."""
        checkpoint()
        chain, one = update.chain, np.ones(value.size)
        again = _visited(chain, value.size)
        found = linear.arriving(chain, [residual, one], again)
        if found is None or not 0 < found[1].min() <= found[1].max() <= LONGEST:
            return (residual - float(residual.mean())) / 2 - float(value.mean())
        times = found[1]
        gain = found[0][again] / times[again]
        step: Array = found[0] - gain * times
        return step - float(value[again])

    def one_step_does(self, seen: Survey, goal: float) -> bool:
        """Never: h is what it is."""
        return False

    def start(self, problem: Any) -> Array | None:
        """The h of the mean kernel."""
        nominal = problem if problem.operator.ball is None else problem.of_mean_kernel()
        value: Array = np.zeros(self._model.n_states)
        best = np.inf, value
        for _ in range(ROUNDS):
            problem.checkpoint()
            update = nominal.sweep(value)
            residual = (update.lower_step + update.upper_step) / 2
            width = float(np.ptp(residual))
            if not width < best[0]:
                break
            best = width, value
            value = value + self.direction(value, residual, update, 0.0, problem.checkpoint)
        return best[1]


def _visited(chain: Any, n: int) -> int:
    """A state that the chain is in often after a while."""
    mass = np.full(n, 1 / n)
    back = chain.T if isinstance(chain, np.ndarray) else linear.matrix_of(chain).T.tocsr()
    for _ in range(LOOKS):
        mass = (mass + back @ mass) / 2
    return int(np.argmax(mass))
