"""Claims become bounds here, and nowhere else.

Operators and methods hand over a *claim*: the few numbers that explain a sweep
(`drmdp.layout.memory.SweepMemory`), kernels of a conic program with such numbers for its policy
(`dense.KernelWitness`), or a policy with a kernel (`PairClaim`). A claim may be wrong. A `Prover`
reads the data itself and turns a claim into bounds that hold whatever its quality; a poor claim
gives wide bounds. Only the loop of `drmdp.solvers`, and the verbs that make a single sweep, ask it.
A `PairClaim` is bounded by two runs of that loop (`drmdp.solvers.pair_bounds`), whose sweeps are
proved here.

* `compressed` proves sweeps over compressed data, by routines of `drmdp._native` (`native`);
* `dense` proves what kernels of a conic program attain, in plain NumPy;
* `membership` brings kernels of any origin into the set, with the searches `membership_linear`
and `membership_squares`.

This package imports neither operators nor methods.

**One kernel that stays.**

    F_y(v)_s = min_a c̄(s,a) + λ Σ_t y(t|s,a) v(t),        c̄(s,a) = Σ_t y(t|s,a) c(s,a,t).

Sums of n terms carry a margin of (4n + 2A + 64) ε times the largest they may have; F_y of a policy
adds its actions' margins. A model may be a part of one: v is that of all states.

**A cooperative nature**, which helps, has the bounds of the negated problem, negated. With z ↦ −z
and v ↦ −v the least value that a set allows is minus the greatest, so every proof for an
adversarial nature is one for a cooperative one (`turned`). In an update nature spends her budget on
the action that is played. So every pair (s, a) is a state with one action (`pairs_of`), its bounds
are those of the set, and

    L = min_a L_a,        U = Σ_a x_a U_a.

With a fixed policy the actions share her budget, as in the set: then states are not split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate import compressed, dense
from drmdp.core import levels
from drmdp.core.compact import rows_of
from drmdp.errors import InputError, shown
from drmdp.layout.event_layout import layout_of
from drmdp.layout.layout import Layout, by_pair, lay_out
from drmdp.layout.memory import SweepMemory, shapes_of
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of


@dataclass(frozen=True)
class PairClaim:
    """The claim that a policy is good and that a kernel shows it; judged by the values of both."""

    policy: Array  # (S, A)
    kernel: Any  # mean kernel, (S, A, S), or sparse (S·A, S)
    kernels: Any = None  # the N kernels of that mean, (N, S, A, S), or N sparse matrices (S·A, S)
    precision: float = 0.0  # error that its values may have, in the unit of the costs


@dataclass(frozen=True)
class SweepProof:
    """Proved bounds of a sweep at v, L − v ≤ F(v) − v ≤ U − v, (S,) each, and the part of nature's
    claim that they hold for.
    """

    lower_step: Array
    upper_step: Array
    share: Array | None = None  # (S, N) of nature's move that is surely allowed
    kernel: Any = None  # or her mean kernel that is


class Prover(Protocol):
    """Proves claims about sweeps of one problem."""

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> SweepProof:
        """Bound F at `value` from a policy (S, A) and a claim; `fixed`: F^x of that policy
        instead.
        """


@dataclass(frozen=True)
class RobustProver:
    """Proves sweeps against a set."""

    model: Model
    ambiguity: AmbiguitySet
    threads: int

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> SweepProof:
        """Bound F, or F^x, at `value`; a claim of another shape than the set's is refused."""
        model, shape = self.model, (self.model.n_states, self.model.n_actions)
        if np.shape(policy) != shape:
            raise InputError(f"policy: expected shape {shape}, got {np.shape(policy)}")
        if isinstance(claim, dense.KernelWitness):
            above = self.prove(value, policy, claim.memory, fixed=True).upper_step
            x = policy if fixed else None
            low, _, kernel = dense.attained(model, self.ambiguity, value, claim.kernels, 0, x)
            return SweepProof(low, above, kernel=kernel)
        layout = layout_of(model, self.ambiguity)
        memory = checked(claim, self.ambiguity, layout)
        u, shift = levels.around(value, model)
        x = np.ascontiguousarray(policy, dtype=np.float64)
        bounds = compressed.derive(self.ambiguity, layout, u, x, memory, fixed, self.threads)
        low, high, _ = levels.both_steps(u[model.place], shift, model, bounds.low, bounds.high)
        return SweepProof(low, high, bounds.share)


def checked(claim: Any, ambiguity: AmbiguitySet, layout: Any) -> SweepMemory:
    """The claim, if it has the shapes that sweeps of the set leave."""
    (S, A), N = layout.available.shape, layout.weights.size
    if not isinstance(claim, SweepMemory):
        raise InputError(f"claim: expected a Memory, a Witness or a Pair, got {shown(claim)}")
    shapes = shapes_of(S, A, N, entry_of(ambiguity).keeps)
    for name, part, shape in zip(SweepMemory._fields, claim, shapes, strict=True):
        if getattr(part, "shape", None) != shape or getattr(part, "dtype", None) != np.float64:
            expected = f"expected numbers of shape {shape}, got {shown(part)}"
            raise InputError(f"claim: {name}: {expected}")
    return SweepMemory(*(np.ascontiguousarray(part) for part in claim))


def expected_costs(model: Model, matrix: Any) -> Array:
    """c̄ under a kernel (S·A, S), an array or a sparse matrix, (S, A); costs inside."""
    S, A = model.n_states, model.n_actions
    if not model.next_costs:
        return np.where(model.available, model.costs, 0.0)
    if sparse.issparse(matrix):
        prices = model.costs if sparse.issparse(model.costs) else model.costs.reshape(S * A, -1)
        return np.asarray(matrix.multiply(prices).sum(axis=1)).reshape(S, A)
    y, z = matrix.reshape(S, A, -1), model.stakes(np.zeros(S), 0, S)
    return np.asarray((y * np.where(y > 0, z, 0.0)).sum(axis=2))


class FixedKernel:
    """A model with one kernel: (S, A, S), or sparse (S·A, S); `prices` (S, A) are c̄, if they are
    known already.
    """

    def __init__(
        self, model: Model, kernel: Any, threads: int = 1, prices: Array | None = None
    ) -> None:
        S, A = model.n_states, model.n_actions
        self.model = model
        matrix: Any
        if is_sparse := sparse.issparse(kernel):
            matrix = sparse.csr_array(kernel)
            longest = int(np.diff(matrix.indptr).max(initial=0))
        else:
            matrix, longest = np.ascontiguousarray(kernel).reshape(S * A, S), S
        self.matrix = matrix
        self._rows: Any = rows_of(matrix, threads) if is_sparse else matrix
        self._terms = max(longest, model.facts.longest)
        costs = expected_costs(model, matrix) if prices is None else prices
        self.costs = np.where(model.available, costs, 0.0)

    def stakes(self, value: Array) -> Array:
        """c̄ + λ y·v at v without its level, (S, A)."""
        means = np.asarray(self._rows @ (value - levels.level(value, self.model)))
        return np.asarray(self.costs + self.model.factor * means.reshape(self.costs.shape))

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> SweepProof:
        """Bound F_y, or that of the policy, at `value`; no claim is needed."""
        return SweepProof(*self.bound(value, policy, self.stakes(value), fixed))

    def bound(self, value: Array, policy: Array, stake: Array, fixed: bool) -> tuple[Array, Array]:
        """L − v and U − v, (S,) each, from the stakes."""
        model, shift = self.model, levels.level(value, self.model)
        u = value - shift
        most = np.abs(self.costs) + 2 * model.discount * np.abs(u).max()
        if model.next_costs:  # c̄ is a sum of the same terms
            most = most + max(map(abs, model.cost_range))
        margin = (4 * self._terms + 2 * model.n_actions + 64) * levels.EPS * most
        mean = (policy * stake).sum(axis=1)
        off = (policy * margin).sum(axis=1)
        least = mean - off
        if not fixed:  # whichever action is the best
            least = np.where(model.available, stake - margin, np.inf).min(axis=1, initial=np.inf)
        return levels.both_steps(u[model.place], shift, model, least, mean + off)[:2]


def turned(layout: Layout) -> Layout:
    """The same data with negated costs."""
    return layout._replace(costs=0.0 - layout.costs, next_costs=0.0 - layout.next_costs)


def pairs_of(layout: Layout) -> Layout:
    """The same data with a state for each pair, which has one action."""
    radius = layout.radius[:, None] if layout.radius.ndim == 1 else layout.radius
    return by_pair(layout._replace(radius=radius))


class CooperativeProver(RobustProver):
    """Proves sweeps with a cooperative nature."""

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> SweepProof:
        """Bound F, or F^x, at `value`; a claim of another shape than the set's is refused."""
        model, (S, A) = self.model, self.model.available.shape
        shift = levels.level(value, model)
        u = value - shift
        x = np.ascontiguousarray(policy, dtype=np.float64)
        bounds = self._derive(u, x, claim, fixed)
        low, high = -bounds.high, -bounds.low
        if not fixed:
            low, high = low.reshape(S, A), high.reshape(S, A)
            low = np.where(model.available, low, np.inf).min(axis=1, initial=np.inf)
            parts = np.where(x > 0, x * np.where(x > 0, high, 0.0), 0.0)
            high = parts.sum(axis=1) + (A + 4) * levels.EPS * np.abs(parts).sum(axis=1)
            high = high + 2 * np.abs(x.sum(axis=1) - 1) * np.abs(high)
        low, high, _ = levels.both_steps(u, shift, model, low, high)
        return SweepProof(low, high, bounds.share)

    def each(self, value: Array, claim: Any) -> Array:
        """Lower bound on the stake of every pair, value included, (S, A), from the claim of an
        update.
        """
        shift = levels.level(value, self.model)
        high = self._derive(value - shift, None, claim, fixed=False).high
        margin = 8 * levels.EPS * np.abs(value).max()
        return np.asarray(shift - high.reshape(self.model.available.shape) - margin)

    def _derive(self, u: Array, policy: Any, claim: Any, fixed: bool) -> compressed.ProvedBounds:
        model, ambiguity = self.model, self.ambiguity
        layout: Any = turned(lay_out(model, ambiguity))
        if not fixed:
            layout, ambiguity = pairs_of(layout), ambiguity.each
            policy = np.ascontiguousarray(np.where(model.available, 1.0, 0.0).reshape(-1, 1))
        memory = checked(claim, ambiguity, layout)
        return compressed.derive(ambiguity, layout, 0.0 - u, policy, memory, fixed, self.threads)
