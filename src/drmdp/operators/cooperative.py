"""The exact operator of a cooperative nature, which helps the agent.

    F(v)_s = min_a min_z c_a + V_a(z),        F^x(v)_s = min_z Σ_a x_a (c_a + V_a(z)).

She minimises what the adversary maximises, so both are minus the adversary's answers to −c at −v;
in an update she spends her budget on the action that is played, so that a pair is a state with one
action, and every family of the package answers it as it is (`drmdp.certificate`). F is
concave: Newton's method needs no safeguard. Policies are deterministic, and "s" is the same as
"sa".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import CooperativeProver, pairs_of, turned
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.core.cached import cached_property
from drmdp.core.compact import DENSE
from drmdp.layout.layout import lay_out
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.operators.nature_rows import SweepNature
from drmdp.operators.operator import Update
from drmdp.sets import AmbiguitySet


class PairwiseNature(SweepNature):
    """Nature's answer to an update: a row for each pair as if its action were played."""

    def chain(self, policy: Array) -> Any:
        """Transitions of the pair (policy, nature), (S, S)."""
        A = policy.shape[1]
        rows = self._rows(np.ascontiguousarray(policy).reshape(-1, 1), by_pair=False)
        at = rows.entry_ptr[::A].copy(), rows.prefix_ptr[::A].copy()
        rows = rows._replace(entry_ptr=at[0], prefix_ptr=at[1])
        return rows.dense() if rows.n_columns <= DENSE else rows

    @property
    def weights(self) -> Array | None:
        """Her mixtures of the N kernels, (S, A, N), if she plays mixtures."""
        mixtures = super().weights
        return None if mixtures is None else mixtures.reshape(*self.model.available.shape, -1)


class CooperativeOperator:
    """Bellman operator of a (model, set) with a nature that helps."""

    def __init__(self, model: Model, ambiguity: AmbiguitySet, threads: int | None = None) -> None:
        self.model, self.ambiguity, self.chunk = model, ambiguity, model.n_states
        self.threads, self.accuracy = workers.count(threads), 0.0
        layout = turned(lay_out(model, ambiguity))
        of_pairs = pairs_of(layout)
        # layout and operator of the adversary, by "the policy is fixed"
        self._adversaries = {
            True: (layout, ExactOperator(model, ambiguity, threads, layout)),
            False: (of_pairs, ExactOperator(model, ambiguity.each, threads, of_pairs)),
        }

    @cached_property
    def prover(self) -> CooperativeProver:
        """The prover of its sweeps."""
        return CooperativeProver(self.model, self.ambiguity, self.threads)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy and over nature, for the states start … stop − 1."""
        (_, A), available = self.model.available.shape, self.model.available[start:stop]
        ones = np.where(self.model.available, 1.0, 0.0).reshape(-1, 1)
        low, high, nature = self._sweep(False, value, ones, start * A, stop * A)
        low, high = np.where(available, low.reshape(-1, A), np.inf), high.reshape(-1, A)
        best = np.where(available, high, np.inf).argmin(axis=1)
        policy = np.eye(A)[best] * available.any(axis=1, keepdims=True)
        high = np.take_along_axis(high, best[:, None], axis=1)[:, 0]
        least = low.min(axis=1, initial=np.inf)
        return self._update(value, slice(start, stop), least, high, policy, nature)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature minimise."""
        states = slice(start, stop)
        low, high, nature = self._sweep(True, value, policy, start, stop)
        return self._update(value, states, low, high, policy[states], nature)

    def _sweep(self, fixed: bool, value: Array, policy: Array, start: int, stop: int) -> Any:
        """L and U of the states, or pairs, start … stop − 1, and nature's answer."""
        layout, adversary = self._adversaries[fixed]
        adversary.accuracy = self.accuracy
        u = 0.0 - (value - levels.level(value, self.model))
        out, point = adversary.run(fixed, layout, u, policy, start, stop)
        kind, memory = SweepNature if fixed else PairwiseNature, adversary.warm_start.memory
        nature = kind(self.model, adversary.ambiguity, layout, point, memory, None, self.threads)
        return -out.upper[start:stop], -out.lower[start:stop], nature

    def _update(
        self, value: Array, states: slice, low: Array, high: Array, policy: Array, nature: Any
    ) -> Update:
        model, shift = self.model, levels.level(value, self.model)
        ends, u = model.terminal[states], (value - shift)[states]
        low, high, new = levels.both_steps(u, shift, model, low, high, states)
        return Update(new, low, high, np.where(ends[:, None], 0.0, policy), nature, nature.memory)
