"""Two-sided bounds, re-derived from witnesses and raw data in plain NumPy.

Nothing here solves anything and nothing here is believed: whoever solves hands over a policy x, multipliers μ, row
thresholds τ and a tuple of kernels y; this module turns them into bounds that hold *whatever their quality*.

**One state.** Write z_a(t) = c(s,a,t) + λ v(t) and let B be the ball. For every x, μ ≥ 0 and τ, weak duality gives

    F^x(v) = max_{y∈B} Σ_a x_a Σ_i w_i y_ia·z_a  ≤  Σ_i w_i [ R_i(x, μ_i, τ_i) + μ_i θ^q ],

with q = 1 for ℓ1 and ℓ∞, q = 2 for ℓ2, one μ for finite orders and one per kernel for order ∞, and with d = x_a z_a − τ_ia

    ℓ1:   R_i = Σ_a Σ_t ŷ(t) max(x_a z_a(t), x_a max z_a − 2 μ_i)
    ℓ2:   R_i = Σ_a τ + Σ_t { d ŷ + d²/(4 μ_i)  if  ŷ + d/(2 μ_i) > 0,  else  −μ_i ŷ² }
    ℓ∞:   R_i = max_{0≤r≤1} Σ_a τ + Σ_t [ d⁺ (ŷ + r) − d⁻ (ŷ − r)⁺ ] − μ_i r     (order ∞: r = θ and μ_i = 0).

R_i is `dual_rows` of the set's proof (`drmdp.certificate.duals`).

In the other direction any y ∈ B gives F_y(v) = min_a Σ_i w_i y_ia·z_a ≤ F(v); a y that is not in B is pulled towards ŷ
until it is.

What such steps prove of all states is said in `drmdp.criteria`.

**Rounding.** Each sum of n terms carries the margin (n + 32) ε Σ|terms|, ε = 2⁻⁵², twice the classical bound; rows of the
data count as divided by their sum, which is 1 up to 2(n + 2) ε. All work is done on v minus its midrange and on z minus
a base in each state, so that a large common level of values or costs costs no digits. The bounds are therefore true of the
real numbers the floats stand for, not nearly true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.certificate.pairs import mixed
from drmdp.core.levels import EPS, both_steps, level
from drmdp.model import Model
from drmdp.model.lifted import landed, seen_by, width
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of

TINY = 1e-280  # more than underflow takes from any sum
BLOCK_ENTRIES = 2_000_000
"""How many probabilities are expanded at a time."""


@dataclass(frozen=True)
class Witness:
    """What an operator hands over for the states of a range; in units of the costs, for z minus its base (see `Block`).

    N counts the kernels of positive weight.
    """

    policy: Array  # (n, A)
    multipliers: (
        Array  # (n,) for finite orders, (n, N) for order inf; (n, A) and (n, A, N) with a budget for each action
    )
    thresholds: Array  # (n, A, N)
    kernels: Array  # (n, A, N, S), over events where nature moves those

    @staticmethod
    def join(parts: Sequence[Witness]) -> Witness:
        """Put the witnesses of consecutive ranges together."""
        names = ("policy", "multipliers", "thresholds", "kernels")
        return Witness(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Block:
    """The raw data of the states start … stop − 1, kernels of weight 0 left out."""

    start: int
    stop: int
    nominal: Array  # ŷ, (n, A, N, S)
    stakes: Array  # z minus base, (n, A, S); 0 where not allowed
    base: (
        Array  # an unconstrained nature's value of each state, (n,): rows and policies sum to 1, so it can stand aside
    )
    allowed: BoolArray  # (n, A, S)
    available: BoolArray  # (n, A)
    radius: Array  # (n,); (n, A) with a budget for each action
    weights: Array  # (N,)
    noise: Array  # rounding of the stakes themselves, (n, A)
    n_kernels: int  # behind the rows: they may be means

    def by_pair(self) -> Block:
        """Every pair as a state with one action."""
        n, A, N, S = self.nominal.shape
        return Block(
            self.start, self.stop, self.nominal.reshape(n * A, 1, N, S), self.stakes.reshape(n * A, 1, S), np.repeat(self.base, A),
            self.allowed.reshape(n * A, 1, S), self.available.reshape(n * A, 1), self.radius.ravel(), self.weights,
            self.noise.reshape(n * A, 1), self.n_kernels,
        )  # fmt: skip


def ranges(model: Model, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut the states start … stop − 1 into ranges whose dense expansion stays small."""
    per_state = model.n_actions * model.n_kernels * width(model)
    size = max(1, BLOCK_ENTRIES // per_state)
    for first in range(start, stop, size):
        yield first, min(first + size, stop)


def block(model: Model, ball: AmbiguitySet, value: Array, start: int, stop: int) -> Block:
    """Expand the data of a range of states at `value` (already without its level)."""
    allowed = ball.allowed(model, start, stop)
    used = model.weights > 0
    z = model.stakes(value, start, stop)
    tops = np.where(allowed, z, -np.inf).max(axis=2)
    base = np.where(model.available[start:stop], tops, np.inf).min(axis=1)
    base = np.where(np.isfinite(base), base, 0.0)
    stakes = np.where(allowed, z - base[:, None, None], 0.0)
    nominal = model.blocks.dense(start, stop)
    nominal, weights = ball.centred(nominal if used.all() else nominal[:, :, used], model.weights[used])
    return Block(
        start,
        stop,
        nominal,
        stakes,
        base,
        allowed,
        model.available[start:stop],
        ball.radii(model)[start:stop],
        weights,
        4 * EPS * (np.abs(stakes).max(axis=2) + 2 * np.abs(base)[:, None] + 2 * model.discount * np.abs(value).max())
        + TINY,
        int(used.sum()),
    )


# ---------------------------------------------------------------------- one state: from above


def upper(ball: AmbiguitySet, data: Block, policy: Array, multipliers: Array, thresholds: Array) -> Array:
    """U ≥ F^x(v) for the states of a block, (n,); see the module for the formula."""
    n, A, N, S = data.nominal.shape
    if ball.by_pair:
        each = upper(
            ball.each,
            data.by_pair(),
            np.ones((n * A, 1)),
            *(part.reshape(n * A, *part.shape[2:]) for part in (multipliers, thresholds[:, :, None])),
        )
        return mixed(np.where(data.available, policy, 0.0), each.reshape(n, A), +1)
    x = np.where(data.available, policy, 0.0)
    xz = x[:, :, None, None] * data.stakes[:, :, None, :]  # (n, A, 1, S)
    low = np.where(data.allowed[:, :, None, :], xz, -np.inf)
    top = np.where(data.available, low.max(axis=3)[:, :, 0], 0.0)  # (n, A): what an unconstrained nature gets
    mu = np.maximum(np.nan_to_num(np.broadcast_to(_columns(multipliers), (n, N)), nan=0.0, posinf=0.0), 0.0)
    tau = np.nan_to_num(np.broadcast_to(thresholds, (n, A, N)), nan=0.0, posinf=0.0, neginf=0.0)
    dual_rows = part_of(entry_of(ball).certificate, ball).dual_rows
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        value, size = dual_rows(ball, data, xz, top, mu, tau)  # (n, N) each: bound and Σ|terms|
    if not ball.by_kernel:  # one multiplier: only the mean over the kernels is a bound
        value, size = (value @ data.weights)[:, None], (size @ data.weights)[:, None]
    free = np.broadcast_to(top.sum(axis=1, keepdims=True), value.shape)
    better = np.isfinite(value) & np.isfinite(size) & (value < free)
    value = np.where(better, value, free)
    size = np.where(better, size, np.abs(top).sum(axis=1, keepdims=True))
    weights = data.weights if ball.by_kernel else np.ones(1)
    still = (data.radius == 0) & (not ball.free)
    nominal = (data.nominal * xz).sum(axis=(1, 3)) @ data.weights
    value = np.where(still, nominal, value @ weights)
    size = np.where(still, np.abs(data.nominal * xz).sum(axis=(1, 3)) @ data.weights, size @ weights)
    size = size + np.abs(x[:, :, None] * data.stakes).max(axis=2).sum(axis=1)
    noise = (x * data.noise).sum(axis=1) + A * EPS * np.abs(data.base)
    return np.asarray(data.base + value + (A * S + N + 32) * EPS * size + noise)


def _columns(multipliers: Array) -> Array:
    return multipliers[:, None] if multipliers.ndim == 1 else multipliers


# ---------------------------------------------------------------------- one state: from below


def lower(data: Block, kernels: Array, policy: Array | None = None) -> Array:
    """L ≤ F_y(v) for a tuple y already made feasible, (n,): the best action's stake, or the given policy's."""
    _, A, N, S = data.nominal.shape
    mean = np.einsum("i,naij->naj", data.weights, kernels)
    gain = mean * data.stakes
    size = np.abs(gain).sum(axis=2) + np.abs(data.stakes).max(axis=2)
    stake = data.base[:, None] + gain.sum(axis=2) - (2 * S + N + 32) * EPS * size - data.noise
    if policy is None:
        ended = ~data.available.any(axis=1)
        return np.where(ended, 0.0, np.where(data.available, stake, np.inf).min(axis=1))
    played = np.where(data.available, policy, 0.0)
    return np.asarray((played * stake).sum(axis=1) - (A + 32) * EPS * (played * np.abs(stake)).sum(axis=1))


def feasible(ball: AmbiguitySet, data: Block, kernels: Array) -> Array:
    """Nearest that is surely in the ball on the segment from ŷ to a tuple (n, A, N, S) of any quality; a proof may have its own way."""
    n, A, N, S = data.nominal.shape
    if ball.by_pair:
        return feasible(ball.each, data.by_pair(), kernels.reshape(n * A, 1, N, S)).reshape(kernels.shape)
    own = getattr(part_of(entry_of(ball).certificate, ball), "feasible", None)
    if own is not None:
        return np.asarray(own(ball, data, kernels))
    y = np.where(data.allowed[:, :, None, :] & np.isfinite(kernels), np.maximum(kernels, 0.0), 0.0)
    top = y.max(axis=3, keepdims=True)  # divided out first: a sum of large numbers may overflow
    y = y / np.where(top > 0, top, 1.0)
    y = np.where(top > 0, y / np.where(top > 0, y.sum(axis=3, keepdims=True), 1.0), data.nominal)
    apart = ball.apart(y, data.nominal, data.weights)  # (n, N) or (n, 1)
    slack = A * (2 * S + 8) * EPS
    room = np.maximum(data.radius[:, None] * (1 - slack) - slack, 0.0)
    share = np.where(apart > room, room / np.where(apart > room, apart, 1.0), 1.0)
    return np.asarray(data.nominal + share[:, None, :, None] * (y - data.nominal))


def derive(
    model: Model, ball: AmbiguitySet, value: Array, witness: Witness, start: int, stop: int, fixed: bool = False
) -> tuple[Array, Array, Array, Array]:
    """F(v) between its bounds, L − v, U − v and the feasible mean kernel (n, A, S); `fixed`: the policy is given."""
    n, shift = stop - start, level(value, model)
    u, model = value - shift, seen_by(ball.moves, model)
    low, high = np.zeros(n), np.zeros(n)
    mean = np.zeros((n, model.n_actions, model.n_next))
    for lo, hi in ranges(model, start, stop):
        own = slice(lo - start, hi - start)
        data = block(model, ball, u, lo, hi)
        kernels = feasible(ball, data, witness.kernels[own])
        policy = witness.policy[own]
        low[own] = lower(data, kernels, policy if fixed else None)
        high[own] = upper(ball, data, policy, witness.multipliers[own], witness.thresholds[own])
        mean[own] = landed(model, np.einsum("i,naij->naj", data.weights, kernels), lo)
    low, high, new = both_steps(u[start:stop], shift, model, low, high, slice(start, stop))
    return new, low, high, mean


# ---------------------------------------------------------------------- all states


@dataclass(eq=False)
class Bounds:
    """lower ≤ the value in question ≤ upper, (S,) each."""

    lower: Array
    upper: Array

    @property
    def gap(self) -> float:
        """Largest width over the states."""
        return float((self.upper - self.lower).max())
