"""The Bellman operator of the mean law of a model of events: an ordinary MDP, of which no kernel is made.

    F(v)_s = min_a Σ_e p̄(e) [c(s,a,e) + λ v(f(s,a,e))],        p̄ = Σ_i w_i p_i of the pair's class.

It finds where robust methods begin. The chain of its policy is the next states of the actions that are played, (S, E), and p̄; its steps are its own, one-sided
up to rounding, and prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.core.compiled import FAST, KERNEL, njit
from drmdp.model.events import EventModel

SOME = 4096
"""States that are asked for at a time."""


@dataclass(frozen=True)
class Chain:
    """Transitions (S, S) under the mean law."""

    there: Any  # (S, E) next states
    classes: Any  # (S,) of laws, or none
    mean: Array  # (C, E)
    ends: Any  # states that end
    threads: int

    def __matmul__(self, z: Array) -> Array:
        """Product with a vector (S,)."""
        out = np.empty(z.size)
        step = -(-z.size // (workers.PIECES * self.threads))
        work = np.minimum(np.arange(0, z.size + step, step), z.size)

        def over(lo: int, hi: int) -> None:
            for first, last in zip(work[lo:hi].tolist(), work[lo + 1 : hi + 1].tolist(), strict=True):
                classes = self.classes[first:last] if self.classes.size else self.classes
                _product(self.there[first:last], classes, self.mean, z, out[first:last])

        workers.run(over, work * self.mean.shape[1], 0, work.size - 1, self.threads)
        out[self.ends] = 0.0
        return out


@dataclass(frozen=True)
class Played:
    """Nature with the mean law, against the policy that was chosen."""

    own: Chain

    def chain(self, policy: Array) -> Chain:
        """Transitions of the pair."""
        return self.own

    def pulled(self, share: Array) -> Played:
        """What is fixed is not moved."""
        return self

    def kernel(self) -> Any:
        """There is none."""
        raise NotImplementedError


class MeanLawOperator:
    """Bellman operator of the mean law."""

    ball = None
    accuracy = 0.0

    def __init__(self, model: EventModel, threads: int = 1) -> None:
        self.model, self.chunk, self.threads = model, model.n_states, threads
        self._mean = np.einsum("i,cie->ce", model.weights, model.laws)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Take the best action in every state."""
        model, shift = self.model, levels.level(value)
        u, S, E = value - shift, model.n_states, model.n_events
        best, stake, there = np.zeros(S, np.int32), np.zeros(S), np.zeros((S, E), np.int32)

        def over(lo: int, hi: int) -> None:
            for first in range(SOME * lo, min(SOME * hi, S), SOME):
                own = slice(first, min(first + SOME, S))
                prices = np.ascontiguousarray(model._prices[own])
                asked = model.asked(own.start, own.stop)
                _update(asked, self._mean, model.discount, prices, u, (best[own], stake[own], there[own]))

        n = -(-S // SOME)
        workers.run(over, np.arange(n + 1) * (SOME * E * model.n_actions), 0, n, self.threads)
        policy = np.zeros((S, model.n_actions))
        np.put_along_axis(policy, best[:, None], ~model.terminal[:, None], axis=1)
        classes = np.zeros(0, np.uint16)
        if model.classes.size:
            classes = np.take_along_axis(model.classes, best[:, None], axis=1)[:, 0]
        low, high = (levels.steps(u, shift, model.discount, model.terminal, stake, side) for side in (-1, +1))
        new = np.where(model.terminal, 0.0, stake + model.discount * shift)
        nature = Played(Chain(there, classes, self._mean, np.flatnonzero(model.terminal), self.threads))
        return Update(new, low, high, policy, nature, nature)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """No policy is given here."""
        raise NotImplementedError


@njit(fastmath=FAST, **KERNEL)
def _update(asked, mean, discount, prices, u, out):
    """The best action of some states.

    reads   asked, mean (C, E), discount, prices (n, A), u (S,)
    fills   out: best (n,), its value (n,), its next states (n, E); as they are where a state ends
    """
    best, stake, there = out
    n, A, E = asked.next.shape
    for s in range(n):
        least = np.inf
        for a in range(A):
            if asked.available[s, a]:
                c = np.int64(asked.classes[s, a]) if asked.classes.size > 0 else np.int64(0)
                total = prices[s, a]
                for e in range(E):
                    x = discount * u[asked.next[s, a, e]]
                    if asked.costs.size > 0:
                        x += asked.costs[s, a, e]
                    total += mean[c, e] * x
                if total < least:
                    least = total
                    best[s], stake[s] = a, total
        if least < np.inf:
            for e in range(E):
                there[s, e] = asked.next[s, best[s], e]


@njit(fastmath=FAST, **KERNEL)
def _product(there, classes, mean, z, out):
    """Expected values after some states.

    reads   there (n, E), classes (n,) or (0,), mean (C, E), z (S,)
    fills   out (n,)
    """
    for s in range(out.size):
        c = np.int64(classes[s]) if classes.size > 0 else np.int64(0)
        total = 0.0
        for e in range(mean.shape[1]):
            total += mean[c, e] * z[there[s, e]]
        out[s] = total
