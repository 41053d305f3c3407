"""Bounds from below, re-derived from kernels and raw data in plain NumPy.

Nothing here solves anything and nothing here is believed: whoever solves hands over a tuple of kernels y; this module turns it into a bound that holds
*whatever its quality*. Write z_a(t) = c(s,a,t) + λ v(t) and let B be the ball. Any y ∈ B gives F_y(v) = min_a Σ_i w_i y_ia·z_a ≤ F(v); a y that is not in B
is pulled towards ŷ until it is.

What such steps prove of all states is said in `drmdp.criteria`.

**Rounding.** Each sum of n terms carries the margin (n + 32) ε Σ|terms|, ε = 2⁻⁵², twice the classical bound; rows of the
data count as divided by their sum, which is 1 up to 2(n + 2) ε. All work is done on v minus its midrange and on z minus
a base in each state, so that a large common level of values or costs costs no digits. The bounds are therefore true of the
real numbers the floats stand for, not nearly true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.levels import EPS, both_steps, level
from drmdp.layout.memory import Memory
from drmdp.model import Model
from drmdp.model.lifted import landed, seen_by, width
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of

TINY = 1e-280  # more than underflow takes from any sum
BLOCK_ENTRIES = 2_000_000
"""How many probabilities are expanded at a time."""


class Witness(NamedTuple):
    """What a conic operator hands over for the states of a range: nature's kernels, and what the evaluation of its policy left."""

    kernels: Array  # (n, A, N, S), over events where nature moves those; N counts the kernels of positive weight
    memory: Memory

    @staticmethod
    def join(parts: Sequence[Witness]) -> Witness:
        """Put the witnesses of consecutive ranges together."""
        kernels, memories = zip(*parts, strict=True)
        return Witness(np.concatenate(kernels), Memory(*map(np.concatenate, zip(*memories, strict=True))))


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


# ---------------------------------------------------------------------- one state: from below


def lower(data: Block, kernels: Array, policy: Array | None = None) -> tuple[Array, Array]:
    """L ≤ F_y(v) for a tuple y already made feasible, and F_y(v) up to rounding, (n,): the best action's stake, or the given policy's."""
    _, A, N, S = data.nominal.shape
    mean = np.einsum("i,naij->naj", data.weights, kernels)
    gain = mean * data.stakes
    size = np.abs(gain).sum(axis=2) + np.abs(data.stakes).max(axis=2)
    stake = data.base[:, None] + gain.sum(axis=2)
    least = stake - (2 * S + N + 32) * EPS * size - data.noise
    if policy is None:
        there = data.available | ~data.available.any(axis=1, keepdims=True)
        low, best = (np.where(there, side, np.inf).min(axis=1) for side in (least, stake))
        return low, best
    played = np.where(data.available, policy, 0.0)
    rounding = (A + 32) * EPS * (played * np.abs(least)).sum(axis=1)
    return np.asarray((played * least).sum(axis=1) - rounding), np.asarray((played * stake).sum(axis=1))


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


def attained(
    model: Model, ball: AmbiguitySet, value: Array, kernels: Array, start: int, stop: int, policy: Array | None
) -> tuple[Array, Array, Array]:
    """L − v, F_y(v) and the mean kernel (n, A, S) of tuples (n, A, N, S) once they are feasible; `policy` (n, A) if it is given."""
    n, shift = stop - start, level(value, model)
    u, seen = value - shift, seen_by(ball.moves, model)
    low, new, mean = np.zeros(n), np.zeros(n), np.zeros((n, model.n_actions, model.n_next))
    for lo, hi in ranges(seen, start, stop):
        own = slice(lo - start, hi - start)
        data = block(seen, ball, u, lo, hi)
        y = feasible(ball, data, kernels[own])
        low[own], new[own] = lower(data, y, None if policy is None else policy[own])
        mean[own] = landed(seen, np.einsum("i,naij->naj", data.weights, y), lo)
    (low, _, _), (_, _, new) = (
        both_steps(u[start:stop], shift, model, side, side, slice(start, stop)) for side in (low, new)
    )
    return low, new, mean


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
