"""The Bellman operator of the mean law of a model of events: an ordinary MDP, of which no kernel is made.

    F(v)_s = min_a Σ_e p̄(e) [c(s,a,e) + λ v(f(s,a,e))],        p̄ = Σ_i w_i p_i of the pair's class.

It finds where robust methods begin. The chain of its policy is the next states of the actions that are played, (S, E), and p̄; its steps are its own, one-sided
up to rounding, and prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import _native
from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.model.events import EventModel

SOME = 4096
"""States that are asked for at a time."""


@dataclass(frozen=True)
class Chain:
    """Transitions under the mean law, from all states or a range of them."""

    there: Any  # (S, E) next states
    classes: Any  # (S,) of laws, or none
    mean: Array  # (C, E)
    ends: Any  # states that end
    threads: int

    def __matmul__(self, z: Array) -> Array:
        """Product with a vector (S,)."""
        n = len(self.there)
        out = np.empty(n)
        step = -(-n // (workers.PIECES * self.threads))
        work = np.minimum(np.arange(0, n + step, step), n)

        def over(lo: int, hi: int) -> None:
            for first, last in zip(work[lo:hi].tolist(), work[lo + 1 : hi + 1].tolist(), strict=True):
                classes = self.classes[first:last] if self.classes.size else self.classes
                _native.mean_law_product(self.there[first:last], classes, self.mean, z, out[first:last])

        workers.run(over, work * self.mean.shape[1], 0, work.size - 1, self.threads)
        out[self.ends] = 0.0
        return out

    def matrix(self) -> Any:
        """The same, sparse (S, S)."""
        n, E = np.shape(self.there)
        data = np.array(self.mean[self.classes if self.classes.size else np.zeros(n, dtype=int)])
        data[self.ends] = 0.0
        at = np.arange(0, (n + 1) * E, E)
        return sparse.csr_array((data.ravel(), np.ravel(self.there), at), shape=(n, n))


class MeanLawOperator:
    """Bellman operator of the mean law."""

    ball = None
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
            own = slice(lo, hi)
            prices = np.ascontiguousarray(model._prices[own])
            asked = model.asked(lo, hi)
            _native.mean_law_update(asked, self._mean, model.discount, prices, u, policy[own], stake[own])

        workers.run_some(over, S, SOME, model.n_events * model.n_actions, self.threads)
        low, high, new = levels.both_steps(u[model.own], shift, model, stake, stake)
        nature: Any = self
        return Update(new, low, high, policy, nature, nature)

    def chain(self, policy: Array) -> Chain:
        """Transitions of a deterministic policy; of its actions alone it is asked where they lead."""
        model = self.model
        best: Any = np.argmax(policy, axis=1)
        there = np.zeros((model.n_states, model.n_events), np.int32)

        def over(lo: int, hi: int) -> None:
            own = slice(lo, hi)
            played = policy[own] > 0.0
            rows = model.rule.rows(lo, hi, played)[0]
            there[own] = rows[np.arange(len(rows)), best[own]] * played.any(axis=1, keepdims=True)

        workers.run_some(over, model.n_states, SOME, model.n_events, self.threads)
        classes = np.zeros(0, np.uint16)
        if model.classes.size:
            classes = np.take_along_axis(model.classes, best[:, None], axis=1)[:, 0]
        return self.of(there, classes)

    def of(self, there: Any, classes: Any) -> Chain:
        """The chain of next states."""
        return Chain(there, classes, self._mean, np.flatnonzero(self.model.terminal), self.threads)

    def pulled(self, share: Array) -> MeanLawOperator:
        """What is fixed is not moved."""
        return self

    def kernel(self) -> Any:
        """There is none."""
        raise NotImplementedError

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """No policy is given here."""
        raise NotImplementedError
