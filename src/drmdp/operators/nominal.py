"""The Bellman operator of one fixed kernel: nature does not move.

    F_y(v)_s = min_a c̄(s,a) + λ Σ_t y(t|s,a) v(t),        c̄(s,a) = Σ_t y(t|s,a) c(s,a,t),

an ordinary MDP. It starts the robust methods (y the mean kernel) and gives the lower half of a
certificate (y nature's kernel): its solution is what the best policy against y costs.

**The mean law** of a model of events makes an ordinary MDP, of which no kernel is made.

    F(v)_s = min_a Σ_e p̄(e) [c(s,a,e) + λ v(f(s,a,e))],    p̄ = Σ_i w_i p_i of the pair's class.

It gives robust methods their start. The chain of its policy is the next states of the actions that
are played, (S, E), and p̄; its steps are one-sided up to rounding and prove nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp import _native
from drmdp._typing import Array
from drmdp.certificate import FixedKernel
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.operators.operator import FixedNature, Update

BATCH = 4096
"""States of a model of events that are asked for at a time."""


class NominalOperator:
    """Bellman operator of a fixed kernel: (S, A, S), or sparse (S·A, S)."""

    ambiguity = None
    accuracy = 0.0  # it is exact

    def __init__(
        self, model: Model, kernel: Any, threads: int = 1, costs: Array | None = None
    ) -> None:
        self.model, self.chunk, self.threads = model, model.n_states, threads
        self.fixed = self.prover = FixedKernel(model, kernel, threads, costs)
        self.nature = FixedNature(self.fixed.matrix, (model.n_states, model.n_actions), threads)

    @property
    def kernel(self) -> Any:
        """The kernel, (S, A, S)."""
        return self.nature.kernel()

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Take the best action in every state."""
        stake = self.fixed.stakes(value)
        best = np.where(self.model.available, stake, np.inf).argmin(axis=1)
        policy = np.zeros_like(stake)
        policy[np.arange(best.size), best] = 1
        policy[self.model.terminal] = 0
        return self._result(value, policy, stake, fixed=False)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Follow `policy`, (S, A)."""
        return self._result(value, policy, self.fixed.stakes(value), fixed=True)

    def _result(self, value: Array, policy: Array, stake: Array, fixed: bool) -> Update:
        low, high = self.fixed.bound(value, policy, stake, fixed)
        later = self.model.discount * levels.level(value, self.model)
        new = levels.ended(self.model, (policy * stake).sum(axis=1) + later)
        return Update(new, low, high, policy, self.nature, self.nature)


# ---------------------------------------------------------------------- the mean law


class MeanLawChain(NamedTuple):
    """Transitions under the mean law, from all states or a range of them."""

    next_states: Any  # (S, E)
    classes: Any  # (S,) of laws, or none
    mean: Array  # (C, E)
    ends: Any  # terminal states
    threads: int

    def __matmul__(self, z: Array) -> Array:
        """Product with a vector (S,)."""
        n = len(self.next_states)
        out, length = np.empty(n), -(-n // (workers.PIECES * self.threads))

        def over(lo: int, hi: int) -> None:
            classes = self.classes[lo:hi] if self.classes.size else self.classes
            _native.mean_law_product(self.next_states[lo:hi], classes, self.mean, z, out[lo:hi])

        workers.run_blocks(over, n, length, self.mean.shape[1], self.threads)
        out[self.ends] = 0.0
        return out

    def matrix(self) -> Any:
        """The same, sparse (S, S)."""
        n, E = np.shape(self.next_states)
        data = np.array(self.mean[self.classes if self.classes.size else np.zeros(n, dtype=int)])
        data[self.ends] = 0.0
        at = np.arange(0, (n + 1) * E, E)
        return sparse.csr_array((data.ravel(), np.ravel(self.next_states), at), shape=(n, n))


class MeanLawOperator:
    """Bellman operator of the mean law."""

    ambiguity = None
    accuracy = 0.0

    def __init__(self, model: EventModel, threads: int = 1) -> None:
        self.model, self.chunk, self.threads = model, model.n_states, threads
        self._mean = np.einsum("i,cie->ce", model.weights, model.laws)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Take the best action in every state."""
        model, shift = self.model, levels.level(value, self.model)
        u, S = value - shift, model.n_states
        policy, stake = np.zeros((S, model.n_actions)), np.zeros(S)

        def over(lo: int, hi: int) -> None:
            states = slice(lo, hi)
            prices = np.ascontiguousarray(model._prices[states])
            asked = model.asked(lo, hi)
            out = policy[states], stake[states]
            _native.mean_law_update(asked, self._mean, model.discount, prices, u, *out)

        workers.run_blocks(over, S, BATCH, model.n_events * model.n_actions, self.threads)
        low, high, new = levels.both_steps(u[model.place], shift, model, stake, stake)
        return Update(new, low, high, policy, self, self)

    def chain(self, policy: Array) -> MeanLawChain:
        """Transitions of a deterministic policy; the rule is asked about its actions only."""
        model = self.model
        best: Any = np.argmax(policy, axis=1)
        next_states = np.zeros((model.n_states, model.n_events), np.int32)

        def over(lo: int, hi: int) -> None:
            states = slice(lo, hi)
            played = policy[states] > 0.0
            rows = model.rule.rows(lo, hi, played)[0][np.arange(hi - lo), best[states]]
            next_states[states] = rows * played.any(axis=1, keepdims=True)

        workers.run_blocks(over, model.n_states, BATCH, model.n_events, self.threads)
        classes = np.zeros(0, np.uint16)
        if model.classes.size:
            classes = np.take_along_axis(model.classes, best[:, None], axis=1)[:, 0]
        ends = np.flatnonzero(self.model.terminal)
        return MeanLawChain(next_states, classes, self._mean, ends, self.threads)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Refused: no method evaluates a policy here."""
        raise NotImplementedError
