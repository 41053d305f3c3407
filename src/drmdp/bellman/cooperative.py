"""The exact operator of a nature that helps the agent.

    F(v)_s = min_a min_z c_a + V_a(z),        F^x(v)_s = min_z Σ_a x_a (c_a + V_a(z)).

She minimises what the adversary maximises, so both are minus the adversary's answers to −c at −v; in an update she puts all she has on the action that is
played,
so that a pair is a state with one action, and every family of the package answers it as it is (`drmdp.certificate.cooperative`). F is concave: Newton's
method needs no safeguard. Policies are deterministic, and "s" is the same as "sa".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.exact import COARSEST, FINEST, Remembered, family_of
from drmdp.bellman.operator import Update
from drmdp.certificate.cooperative import CooperativeProver, pairs_of, single, turned
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.core.cached import cached_property
from drmdp.core.compact import DENSE
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import Memory, Out, empty_memory
from drmdp.layout.point import Point, point_at
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of


class ByPair(Remembered):
    """What a nature that helps plays in an update: a row for each pair as if its action were played."""

    def chain(self, policy: Array) -> Any:
        """Transitions of the pair (policy, nature), (S, S)."""
        A = policy.shape[1]
        rows = self._rows(np.ascontiguousarray(policy).reshape(-1, 1), by_pair=False)
        rows = replace(rows, entry_ptr=rows.entry_ptr[::A].copy(), prefix_ptr=rows.prefix_ptr[::A].copy())
        return rows.dense() if rows.n_columns <= DENSE else rows

    @property
    def weights(self) -> Array | None:
        """Her mixtures of the N kernels, (S, A, N), if that is what she plays."""
        found = super().weights
        return None if found is None else found.reshape(*self.model.available.shape, -1)


class CooperativeOperator:
    """Bellman operator of a (model, set) with a nature that helps."""

    def __init__(self, model: Model, ball: AmbiguitySet, threads: int | None = None) -> None:
        self.model, self.ball = model, ball
        self.chunk = model.n_states
        self.threads = workers.count(threads)
        self.accuracy = 0.0
        self._family, self._given = family_of(single(ball)), family_of(ball)
        self._whole = turned(lay_out(model, ball))
        self._pairs = pairs_of(self._whole)
        (S, A), N = model.available.shape, self._whole.weights.size
        self._memory = {
            True: empty_memory(S, A, N, entry_of(ball).keeps),
            False: empty_memory(S * A, 1, N, entry_of(single(ball)).keeps),
        }
        self._moving = float(np.ptp(model.cost_range)) if model.next_costs else 0.0

    @cached_property
    def prover(self) -> CooperativeProver:
        """Who proves its sweeps."""
        return CooperativeProver(self.model, self.ball, self.threads)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy and over nature, for the states start … stop − 1."""
        model, A = self.model, self.model.n_actions
        ones = np.where(model.available, 1.0, 0.0).reshape(-1, 1)
        low, high, point, memory = self._sweep(False, value, ones, start * A, stop * A)
        own, u = slice(start, stop), value - levels.level(value, self.model)
        low, high = (side.reshape(model.available.shape)[own] for side in (low, high))
        there = model.available[own]
        best = np.where(there, high, np.inf).argmin(axis=1)
        policy = np.eye(A)[best] * there.any(axis=1, keepdims=True)
        least = np.where(there, low, np.inf).min(axis=1, initial=np.inf)
        nature = ByPair(model, single(self.ball), self._pairs, point, memory, None, self.threads)
        return self._update(value, u, own, least, np.take_along_axis(high, best[:, None], axis=1)[:, 0], policy, nature)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature minimise."""
        low, high, point, memory = self._sweep(True, value, policy, start, stop)
        own, u = slice(start, stop), value - levels.level(value, self.model)
        nature = Remembered(self.model, self.ball, self._whole, point, memory, None, self.threads)
        return self._update(value, u, own, low[own], high[own], policy[own], nature)

    def _sweep(
        self, fixed: bool, value: Array, policy: Array, start: int, stop: int
    ) -> tuple[Array, Array, Point, Memory]:
        """L and U of the states, or pairs, start … stop − 1, and what they were found with."""
        layout = self._whole if fixed else self._pairs
        point = point_at(layout, 0.0 - (value - levels.level(value, self.model)))
        memory = Memory(*(array.copy() for array in self._memory[fixed]))
        n = layout.available.shape[0]
        out = Out(np.zeros(n), np.zeros(n), np.array(policy, dtype=np.float64), np.zeros(n))
        widest = self.model.discount * point.span + self._moving
        tol = min(max(self.accuracy / widest, FINEST), COARSEST) if widest > 0 else FINEST
        family = self._given if fixed else self._family
        data = family.prepared(layout)

        def over(lo: int, hi: int) -> None:
            family.sweep(fixed, lo, hi, data, point, memory, out, tol)

        work = np.ascontiguousarray(layout.indptr[:: layout.available.shape[1]]) * layout.weights.size
        workers.run(over, work, start, stop, self.threads)
        self._memory[fixed] = memory
        return -out.upper, -out.lower, point, memory

    def _update(
        self, value: Array, u: Array, own: slice, low: Array, high: Array, policy: Array, nature: Any
    ) -> Update:
        model, shift = self.model, levels.level(value, self.model)
        ends, here = model.terminal[own], u[own]
        low, high = (np.where(ends, 0.0, side) for side in (low, high))
        low, high, new = levels.both_steps(here, shift, model, low, high, own)
        return Update(new, low, high, np.where(ends[:, None], 0.0, policy), nature, nature.memory)
