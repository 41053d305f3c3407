"""Primal-dual steps on the saddle problem of a Bellman update, all states, v fixed.

For each state, with z_a(t) = c(s,a,t) + λ v(t) and tuples y = (y_i) in the ball,

    F(v)_s = min_{x∈Δ(A)} max_y  Σ_a x_a q_a(y),        q_a(y) = c_a + Σ_i w_i y_ia·z_a,

and one step of the method of Chambolle and Pock is

    x⁺ = argmin_x τ q(y)·x + D(x, x°),        y⁺ = Proj( y_ia + σ w_i (2x⁺ − x°)_a z_a ),

with D half the squared distance or the relative entropy. Mirror Prox takes this step with x° for
2x⁺ − x°, and then the same step again from (x°, y) with q and x of the point it led to, which is
the one that is averaged. Mirror Descent takes the first of the two alone, with steps over √T in an
epoch of T steps: longer ones would leave its averages at a distance.

**Steps.** x ↦ Σ_a x_a Σ_i w_i y_ia·z_a has norm L = ‖w‖₂ max_a ‖z_a‖₂, and τ = r/(√A ‖z‖₂), σ =
1/(τ L²); for equal weights and costs (S, A) these are the paper's τ = 1/(√A λ‖v‖₂), σ = N√A/(λ‖v‖₂)
times and over the ratio r. The paper balances them for Θ_X = 1 and Θ_Y = NA; a ball is smaller, Θ_Y
= min(NA, 2Nθ²) for ℓ2, with θ²/2 for θ² in ℓ1 (rows of y − ŷ sum to 0) and min(Kθ², 2θ) in ℓ∞ (of
the K entries of a row none moves by more than θ, and all that gain, or lose, by at most 1
together): without a ratio this is what counts where the ball binds. Where it does not, what each
player could still gain is known,

    regret of x: x·q − min_a q_a,        of y: Σ_a x_a (max_t z_a(t) − Σ_i w_i y_ia·z_a),

and the one with more to gain gets the longer step, by factors of BALANCE, until the ball binds
again. Rows sum to 1, so a constant in z_a changes no step: with `centre` the norm is that of z_a
minus its mean, and steps are longer. Where L = 0 nature is indifferent: x goes to the least cost
(the entropy stays) and y stays.

**Entropy.** For x it is one line. For y it is offered for
(ℓ∞, ∞), where rows have nothing in common and it is cheap (`native/prox/entropy.hpp`): 2.0 ms a map
where the Euclidean takes 5.7, for S = A = N = 30 and all rows moving. Then L = ‖w‖₂ max_a ‖z_a‖_∞,
and Θ_Y stays NA for any ball: steps multiply, so that nature begins at the data mixed with a little
of everything, and the divergence is about log(1/little) however small θ is. A trial for (ℓ1, 1), y
= max(u e^−m, min(ŷ, u e^m)) row by row with m by secants, took 8 to 12 ms where the Euclidean map
took 9 to 15, and with the best of up to ten step ratios 1.6 to 2.7 times the preset's steps on
garnet at θ = .3, 1 and 3, two seeds: not offered. For ℓ2 each entry would be a Lambert W.

**Memory.** The iterate y is the only array with all N kernels (Mirror Prox: two). Where the answer
is the last step, a claim holds a copy. Averages are kept of Σ_i w_i y_i, of x and of Σ_i w_i d(y_i,
ŷ_i)^p, or of each d(y_i, ŷ_i) for order ∞. Both are convex, so the average of the distances bounds
the distance of the averaged tuple: the mean kernel is nature's without a look at the tuple it
belongs to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.core import threads as workers
from drmdp.core.storage import over_rows
from drmdp.criteria import newton_systems
from drmdp.layout.event_layout import work
from drmdp.layout.layout import Layout
from drmdp.prox.registry import Push, cold_memory, family_of, project_on_simplex
from drmdp.solvers.mean_start import MeanRows, compact

MIX = 0.05
"""Entropy: share of the uniform row at the beginning, if θ allows it; a probability of 0 would stay
0.
"""
ACCURACY = 1e-4
"""Distances of projections, relative to the radius, up to which the last step towards it is made
unchecked; its error is of second order, and what is too long is cut, so this is optimality, not
feasibility."""
NEAREST = 1e-3
"""A ball counts as at least so large beside the simplex."""
BALANCE, SHORTEST, LONGEST = 16.0, 0.03, 100.0
"""How fast, and between which shares, nature's step changes where the ball does not bind."""
FORECAST = 10
"""Products behind a forecast."""
LEAST = 1e-200
"""Entropy: no probability falls below; from 0 it could never come back."""
REACHED = 1e-6
"""A distance is the radius up to this relative difference."""


class WeightedAverage:
    """Running weighted averages of arrays."""

    def __init__(self, *like: Array) -> None:
        self.weight = 0.0
        self.parts = tuple(np.zeros_like(array) for array in like)

    def add(self, weight: float, *points: Array) -> None:
        """Add a point with a weight."""
        self.weight += weight
        for mean, point in zip(self.parts, points, strict=True):
            mean += weight / self.weight * (point - mean)


class PlayerTuple:
    """Policy x and nature's tuple y in all states, with their stakes at v."""

    def __init__(self, layout: Layout, ambiguity: Any, method: Any, threads: int) -> None:
        S, A = layout.available.shape
        self._layout, self._ambiguity = layout, ambiguity
        self._threads, self._work = threads, work(layout)
        self._steps, self._centre = method.steps, method.centre
        self._entropy = method.setup in ("entropy", "entropy-both")  # for the policy
        self._nature = method.setup in ("entropy-nature", "entropy-both")  # for her kernels
        self._family = family_of(ambiguity, self._nature)
        self._memory = cold_memory(self._family, layout)
        self._y = first_rows(layout, MIX if self._nature else 0.0)
        self._by_ball = method.step_ratio == "ball"
        # no divergence is as small as the ball
        ratio = 1.0 if self._nature and self._by_ball else method.step_ratio
        self._reach = self._usual_reach = _reach(layout, ambiguity, ratio)
        self._tau, self._sigma, self._value = np.zeros(S), np.zeros(S), np.zeros(S)
        self._z = np.zeros(layout.indices.size)  # stakes c + λ v
        self._policy = layout.available / np.maximum(layout.available.sum(axis=1, keepdims=True), 1)
        self.policy = self._policy.copy()  # to be averaged, like the rest
        self._least = -math.inf
        self.mean = np.array(layout.mean)  # of y, (nnz,)
        self.stakes = np.zeros((S, A))  # q
        self._top = np.zeros((S, A))  # max_t z_a(t)
        self.apart = np.zeros((S, layout.weights.size if ambiguity.by_kernel else 1))
        if self._nature:
            self._map(self._update_means)
        self._half = self._y.copy() if self._steps == "mirror-prox" else self._y

    @property
    def kernels(self) -> Array:
        """The tuple to be averaged, (N·nnz,) like the layout's data."""
        return self._half

    @property
    def trials(self) -> Any:
        """Multipliers that the last projections tried, 0 where the ball did not bind."""
        return self._memory.trials

    def lean(self, share: float, policy: Array) -> None:
        """Begin with a mixture of the uniform policy and a share of `policy`.

        The first x was not reached by a step, so its extrapolation 2x⁺ − x° is clipped at 0 once.
        Actions dropped in this step then have no step in nature's rows; most rows are skipped.
        """
        self._policy += share * (policy - self._policy)
        self.policy[:] = self._policy
        self._least = 0.0

    def face(self, value: Array, n_steps: int) -> None:
        """Set v for n steps, their sizes and the stakes."""
        if self._by_ball:
            self._balance()
        self._value = value
        self._z = self._layout.discount * value[self._layout.indices]
        if self._layout.next_costs.size:
            self._z += self._layout.next_costs
        self._map(self._update_means if self._steps == "mirror-prox" else self._weigh)
        norm, mirror = self._measure(), self._steps == "mirror-descent"
        with np.errstate(divide="ignore"):
            inverse = 1 / norm / (math.sqrt(n_steps) if mirror else 1.0)
        self._tau = inverse / self._reach
        sigma = self._reach / (self._layout.weights**2).sum() * inverse
        self._sigma = np.where(norm > 0, sigma, 0.0)

    def forecast(self) -> Array:
        """Approximate distance of the pair from a solution: the regrets of both, summed along the
        chain, (S,).

        Nature's is unknown where the ball binds, and counts as 0.
        """
        policy, nature, far = self._regrets()
        layout = self._layout
        known = np.where(far < (1 - REACHED) * layout.radius, nature, 0.0)
        parts = layout.indptr, layout.indices, self.mean, layout.costs, layout.available
        chain = compact(MeanRows(*parts, layout.discount), self.policy)
        *_, (total, _) = newton_systems.relaxing(
            chain, layout.discount, policy + known, FORECAST + 1
        )
        return np.where(layout.available.any(axis=1), total, 0.0)

    def _regrets(self) -> tuple[Array, Array, Array]:
        """Regrets of the policy and of nature without a ball, and her distance; (S,) each."""
        layout, x, q = self._layout, self.policy, self.stakes
        least = np.where(layout.available, q, np.inf).min(axis=1)
        policy = (x * q).sum(axis=1) - np.where(layout.available.any(axis=1), least, 0.0)
        nature = (x * (layout.costs + self._top - q)).sum(axis=1)
        return policy, nature, self.apart.max(axis=1) ** (1 / power(self._ambiguity))

    def _balance(self) -> None:
        """Change the steps where nature has moved, but not as far as the ball allows; v is still
        that of the last step.
        """
        policy, nature, far = self._regrets()
        between = (far > 0) & (far < (1 - REACHED) * self._layout.radius)
        factor = np.where(nature > policy, BALANCE, 1 / BALANCE)
        usual = self._usual_reach
        balanced = np.clip(factor * self._reach, SHORTEST * usual, LONGEST * usual)
        self._reach = np.where(between, balanced, usual)

    def step(self) -> None:
        """One step of both."""
        self._map(self._mirror_prox if self._steps == "mirror-prox" else self._once)
        self._least = -math.inf

    def _map(self, over: Any) -> None:
        workers.run(over, self._work, 0, self._value.size, self._threads)

    def _once(self, lo: int, hi: int) -> None:
        """Step of Chambolle and Pock, or of Mirror Descent."""
        before = self.policy[lo:hi].copy()
        self._act(lo, hi, self.policy)
        ahead = before if self._steps == "mirror-descent" else 2 * self.policy[lo:hi] - before
        self._push(lo, hi, self._y, np.maximum(ahead, self._least))
        self._update_means(lo, hi)

    def _mirror_prox(self, lo: int, hi: int) -> None:
        layout, A = self._layout, self._layout.available.shape[1]
        entries = slice(*(layout.weights.size * layout.indptr[[lo * A, hi * A]]))
        self._update_means(lo, hi)
        self.policy[lo:hi] = self._policy[lo:hi]
        self._half[entries] = self._y[entries]
        self._act(lo, hi, self.policy)
        self._push(lo, hi, self._half, self._policy[lo:hi])
        self._update_means(lo, hi, self._half)
        self._act(lo, hi, self._policy)
        self._push(lo, hi, self._y, self.policy[lo:hi])

    def _act(self, lo: int, hi: int, policy: Array) -> None:
        available, tau = self._layout.available[lo:hi], self._tau[lo:hi]
        policy[lo:hi] = act(policy[lo:hi], available, self.stakes[lo:hi], tau, self._entropy)

    def _push(self, lo: int, hi: int, y: Array, policy: Array) -> None:
        step = np.zeros_like(self.stakes)
        step[lo:hi] = self._sigma[lo:hi, None] * policy
        arrays = self._layout, Push(step, self._value), y, self._memory
        self._family.project(lo, hi, arrays, ACCURACY, inside=True)

    def _update_means(self, lo: int, hi: int, y: Array | None = None) -> None:
        norm, order = self._ambiguity.metric, float(self._ambiguity.order)
        y = self._y if y is None else y
        _native.first_order_look(lo, hi, self._layout, y, norm, order, self.mean, self.apart)
        self._weigh(lo, hi)

    def _weigh(self, lo: int, hi: int) -> None:
        layout, A = self._layout, self._layout.available.shape[1]
        entries = slice(*layout.indptr[[lo * A, hi * A]])
        later = self._over_rows(np.add, self.mean[entries] * self._z[entries], lo, hi)
        self.stakes[lo:hi] = layout.costs[lo:hi] + later

    def _over_rows(self, combine: np.ufunc, entries: Array, lo: int, hi: int) -> Array:
        """Sums or the like over the rows of some states, (hi − lo, A); 0 of a row without
        entries.
        """
        A = self._layout.available.shape[1]
        starts = self._layout.indptr[lo * A : hi * A + 1]
        return over_rows(combine, entries, starts - starts[0]).reshape(-1, A)

    def _measure(self) -> Array:
        """The largest norm of the stakes of a state, ℓ2 or, with the entropy, ℓ∞, (S,); sets the
        largest stakes.
        """
        S, lengths, z = self._value.size, np.diff(self._layout.indptr), self._z
        high = self._over_rows(np.maximum, z, 0, S)
        low = self._over_rows(np.minimum, z, 0, S)
        self._top = np.where(self._layout.available, high, 0.0)
        middle = np.zeros_like(high)
        if self._centre:
            mean = self._over_rows(np.add, z, 0, S) / np.maximum(lengths, 1).reshape(S, -1)
            middle = 0.5 * (high + low) if self._nature else mean
        if self._nature:
            size = np.maximum(high - middle, middle - low)
        else:
            squares = (z - np.repeat(middle.ravel(), lengths)) ** 2
            size = np.sqrt(self._over_rows(np.add, squares, 0, S))
        return np.asarray(np.where(self._layout.available, size, 0.0).max(axis=1))


def first_rows(layout: Layout, mix: float) -> Array:
    """The data, mixed with the uniform rows: a share `mix`, or the radius if that is less;
    (N·nnz,).
    """
    N, A = layout.weights.size, layout.available.shape[1]
    rows = layout.data.astype(np.float64)
    exact = layout.data.dtype == np.float64
    if exact and mix == 0:
        return np.asarray(rows)
    lengths = np.repeat(np.diff(layout.indptr), N)
    share = np.repeat(np.minimum(mix, layout.radius), A * N)
    row = np.repeat(np.arange(lengths.size), lengths)
    if not exact:
        rows /= np.bincount(row, weights=rows, minlength=lengths.size)[row]
    return np.asarray(rows + share[row] * (1 / lengths[row] - rows))


def act(x: Array, available: Any, stakes: Array, tau: Array, entropy: bool) -> Array:
    """The step of the policy in n states, (n, A): infinite sizes go to the least cost (the entropy
    stays).
    """
    q = np.where(available, stakes, np.inf)
    moves = available.any(axis=1) & (tau < np.inf)
    new = x.copy()
    if not entropy:
        still = available.any(axis=1) & ~moves
        new[still] = np.arange(x.shape[1]) == q[still].argmin(axis=1)[:, None]
        new[moves] = project_on_simplex(x[moves] - tau[moves, None] * q[moves])
        return new
    shares = x[moves]
    q = np.where(shares > 0, q[moves], np.inf)
    factor = -tau[moves, None] * (q - q.min(axis=1, keepdims=True))
    _native.elementary("exp", factor.ravel(), factor.ravel())
    grown = shares * factor
    grown = np.maximum(grown / grown.sum(axis=1, keepdims=True), LEAST)
    new[moves] = np.where(available[moves], grown, 0.0)
    return new


def power(ambiguity: Any) -> float:
    """The p of the averaged distances; for order ∞ they are those of each kernel."""
    return 1.0 if ambiguity.by_kernel else float(ambiguity.order)


def _reach(layout: Layout, ambiguity: Any, ratio: float | str) -> Array:
    """Range of nature relative to that of the policy, √(Θ_Y/NΘ_X), (S,)."""
    A = layout.available.shape[1]
    most = np.sqrt(np.maximum(layout.available.sum(axis=1), 1))
    if not isinstance(ratio, str):
        return np.asarray(most / ratio)
    theta = layout.radius
    entries = np.diff(layout.indptr).reshape(-1, A).max(axis=1)
    infinite = np.sqrt(np.minimum(entries * theta**2, 2 * theta))
    far = {1: math.sqrt(0.5) * theta, 2: theta, math.inf: infinite}[ambiguity.norm.power]
    return np.asarray(np.clip(math.sqrt(2) * far, NEAREST * most, most))
