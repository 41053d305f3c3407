"""Bounds from below, re-derived from kernels and raw data in plain NumPy.

Nothing is solved here and no claim is trusted: operators hand over a tuple of kernels y; this
module turns it into a bound that holds *whatever its quality*. Write z_a(t) = c(s,a,t) + λ v(t) and
let B be the set. Any y ∈ B gives F_y(v) = min_a Σ_i w_i y_ia·z_a ≤ F(v); a y that is not in B is
pulled towards ŷ until it is.

`drmdp.criteria` says what such steps prove of all states.

**Rounding.** Each sum of n terms carries the margin (n + 32) ε Σ|terms|, ε = 2⁻⁵², twice the
classical bound; rows of the data count as divided by their sum, which is 1 up to 2(n + 2) ε. All
work is done on v minus its midrange and on z minus a base in each state, so that a large common
level of values or costs costs no digits. The bounds are therefore true of the real numbers the
floats stand for, not nearly true.

**Transport.** A kernel is compared with the data by a transport plan of HiGHS. The plan is not
trusted: its shares P(k | j), divided by their sums, move the data to y(k) = Σ_j ŷ(j) P(k | j),
which is as near to the kernel as the plan is right, and costs exactly Σ_j ŷ(j) P(k | j) D(j, k).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.core.levels import EPS, both_steps, level
from drmdp.layout.memory import SweepMemory
from drmdp.model import Model
from drmdp.model.events.lifted_model import landed, seen_by, width
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, part_of
from drmdp.sets.transport import SETTINGS, Ground, plan

TINY = 1e-280  # more than underflow takes from any sum
BLOCK_ENTRIES = 2_000_000
"""Probabilities that are expanded at a time."""


MOST = 200_000
"""Entries of the plans of a state beyond which no tuple of a filled mean is searched for."""


class KernelWitness(NamedTuple):
    """The claim of a conic operator for a range of states: nature's kernels, and the memory after
    an evaluation of its policy.
    """

    # (n, A, N, S), over events where nature moves those; N counts the kernels of positive weight
    kernels: Array
    memory: SweepMemory

    @staticmethod
    def join(parts: Sequence[KernelWitness]) -> KernelWitness:
        """Put the witnesses of consecutive ranges together."""
        kernels, memories = zip(*parts, strict=True)
        memory = SweepMemory(*map(np.concatenate, zip(*memories, strict=True)))
        return KernelWitness(np.concatenate(kernels), memory)


class RawStates(NamedTuple):
    """The raw data of n states, kernels of weight 0 left out."""

    nominal: Array  # ŷ, (n, A, N, S)
    stakes: Array  # z minus base, (n, A, S); 0 where not allowed
    allowed: BoolArray  # (n, A, S)
    available: BoolArray  # (n, A)
    noise: Array  # rounding of the stakes themselves, (n, A)
    base: Array  # an unconstrained nature's value, (n,); rows and policies sum to 1
    radius: Array  # (n,); (n, A) with a budget for each action
    weights: Array  # (N,)

    def by_pair(self) -> RawStates:
        """Every pair as a state with one action."""
        n, A = self.available.shape
        parts = [part.reshape(n * A, 1, *part.shape[2:]) for part in self[:5]]
        numbers = np.repeat(self.base, A), self.radius.ravel(), self.weights
        return RawStates._make([*parts, *numbers])


def ranges(model: Model, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut the states start … stop − 1 into ranges whose dense expansion stays small."""
    per_state = model.n_actions * model.n_kernels * width(model)
    size = max(1, BLOCK_ENTRIES // per_state)
    for first in range(start, stop, size):
        yield first, min(first + size, stop)


def block(model: Model, ambiguity: AmbiguitySet, value: Array, start: int, stop: int) -> RawStates:
    """Expand the data of a range of states at `value` (already without its level)."""
    allowed = ambiguity.allowed(model, start, stop)
    z, used = model.stakes(value, start, stop), model.weights > 0
    tops = np.where(allowed, z, -np.inf).max(axis=2)
    base = np.where(model.available[start:stop], tops, np.inf).min(axis=1)
    base = np.where(np.isfinite(base), base, 0.0)
    stakes = np.where(allowed, z - base[:, None, None], 0.0)
    rows = model.blocks.dense(start, stop)
    rows = rows if used.all() else rows[:, :, used]
    nominal, weights = ambiguity.centred(rows, model.weights[used])
    largest = np.abs(stakes).max(axis=2) + 2 * np.abs(base)[:, None]
    noise = 4 * EPS * (largest + 2 * model.discount * np.abs(value).max()) + TINY
    pairs = nominal, stakes, allowed, model.available[start:stop], noise
    return RawStates(*pairs, base, ambiguity.radii(model)[start:stop], weights)


# ---------------------------------------------------------------------- one state: from below


def lower(data: RawStates, kernels: Array, policy: Array | None = None) -> tuple[Array, Array]:
    """L ≤ F_y(v) for a feasible tuple y, and F_y(v) up to rounding, (n,): the stake of the best
    action, or of the policy.
    """
    _, A, N, S = data.nominal.shape
    mean = np.einsum("i,naij->naj", data.weights, kernels)
    gain = mean * data.stakes
    size = np.abs(gain).sum(axis=2) + np.abs(data.stakes).max(axis=2)
    stake = data.base[:, None] + gain.sum(axis=2)
    least = stake - (2 * S + N + 32) * EPS * size - data.noise
    if policy is None:
        eligible = data.available | ~data.available.any(axis=1, keepdims=True)
        low, best = (np.where(eligible, side, np.inf).min(axis=1) for side in (least, stake))
        return low, best
    played = np.where(data.available, policy, 0.0)
    rounding = (A + 32) * EPS * (played * np.abs(least)).sum(axis=1)
    low, attained = (np.asarray((played * side).sum(axis=1)) for side in (least, stake))
    return low - rounding, attained


def feasible(ambiguity: AmbiguitySet, data: RawStates, kernels: Array) -> Array:
    """Nearest tuple that is surely in the set on the segment from ŷ to a tuple (n, A, N, S) of any
    quality; the proof of a set may have a `feasible` that is asked instead.
    """
    n, A, N, S = data.nominal.shape
    if ambiguity.by_pair:
        pairs = kernels.reshape(n * A, 1, N, S)
        return feasible(ambiguity.each, data.by_pair(), pairs).reshape(kernels.shape)
    routine = getattr(part_of(entry_of(ambiguity).certificate, ambiguity), "feasible", None)
    if routine is not None:
        return np.asarray(routine(ambiguity, data, kernels))
    y = distributions(kernels, data.allowed[:, :, None] & np.isfinite(kernels), data.nominal)
    apart = ambiguity.apart(y, data.nominal, data.weights)  # (n, N) or (n, 1)
    slack = A * (2 * S + 8) * EPS
    room = np.maximum(data.radius[:, None] * (1 - slack) - slack, 0.0)
    share = share_within(room, apart)[:, None, :, None]
    return np.asarray(share * y + (1.0 - share) * data.nominal)


def distributions(rows: Array, allowed: BoolArray, fallback: Array) -> Array:
    """Rows without what is not allowed or negative, divided by their sums; empty ones are those of
    the fallback.
    """
    rows = np.where(allowed & (rows > 0), rows, 0.0)
    top = rows.max(axis=-1, keepdims=True)  # divided out first: a sum of large numbers may overflow
    rows = rows / np.where(top > 0, top, 1.0)
    total = np.where(top > 0, rows.sum(axis=-1, keepdims=True), 1.0)
    return np.where(top > 0, rows / total, fallback)


def share_within(room: Any, apart: Array) -> Array:
    """The share of the way to what is `apart` that has room."""
    return np.where(apart > room, room / np.where(apart > room, apart, 1.0), 1.0)


def attained(
    model: Model, ambiguity: AmbiguitySet, value: Array, kernels: Array, start: int, policy: Any
) -> tuple[Array, Array, Array]:
    """L − v, F_y(v) and the mean kernel (n, A, S) of tuples (n, A, N, S) from state `start` on,
    made feasible; of the best actions, or of a policy (n, A).
    """
    n, shift = len(kernels), level(value, model)
    stop, states = start + n, slice(start, start + n)
    u, lifted = value - shift, seen_by(ambiguity.moves, model)
    low, new, mean = np.zeros(n), np.zeros(n), np.zeros((n, model.n_actions, model.n_next))
    for lo, hi in ranges(lifted, start, stop):
        part = slice(lo - start, hi - start)
        data = block(lifted, ambiguity, u, lo, hi)
        y = feasible(ambiguity, data, kernels[part])
        low[part], new[part] = lower(data, y, None if policy is None else policy[part])
        mean[part] = landed(lifted, np.einsum("i,naij->naj", data.weights, y), lo)
    low = both_steps(u[states], shift, model, low, low, states)[0]
    new = both_steps(u[states], shift, model, new, new, states)[2]
    return low, new, mean


# ---------------------------------------------------------------------- all states


@dataclass(frozen=True, eq=False)
class Bounds:
    """lower ≤ the value in question ≤ upper, (S,) each."""

    lower: Array
    upper: Array

    @property
    def gap(self) -> float:
        """Largest width over the states."""
        return float((self.upper - self.lower).max())


# ---------------------------------------------------------------------- transport


def transport_feasible(ambiguity: Any, data: RawStates, kernels: Array) -> Array:
    """A tuple (n, A, N, S) that surely is in the set, near `kernels` or on the segment from the
    data to it.
    """
    n, A, N, S = data.nominal.shape
    y, spent = data.nominal.copy(), np.zeros((n, N))
    y[~data.available] = 0.0
    for s, a, i in np.ndindex(n, A, N):
        if not data.available[s, a]:
            continue
        goal = kernels[s, a, i]
        row = np.where(data.allowed[s, a] & np.isfinite(goal), np.maximum(goal, 0.0), 0.0)
        if row.max() > 0:
            row = row / row.max()
            y[s, a, i], cost = moved(ambiguity.ground, data.nominal[s, a, i], row / row.sum())
            spent[s, i] += cost
    if not ambiguity.by_kernel:
        spent = (spent @ data.weights)[:, None]
    room = data.radius[:, None] * (1 - A * (2 * S + 8) * EPS)
    share = share_within(room, spent)[:, None, :, None]
    return np.asarray(data.nominal + share * (y - data.nominal))


def moved(ground: Ground, nominal: Array, goal: Array) -> tuple[Array, float]:
    """A row of the data moved by a plan to the goal, and an upper bound on its cost; not moved
    where there is no plan.
    """
    cost, shares = plan(ground, nominal, goal)
    if not np.isfinite(cost) or np.array_equal(nominal, goal):
        return nominal, 0.0
    costs = ground.between(np.arange(goal.size), np.arange(goal.size))
    mass = nominal[:, None] * shares
    total = float(np.where(mass > 0, mass * np.where(np.isfinite(costs), costs, 0.0), 0.0).sum())
    return mass.sum(axis=0), total * (1 + (goal.size**2 + 16) * EPS)


def transport_attain(ambiguity: Any, data: RawStates, goal: Array) -> Array:
    """A tuple (n, A, N, S) of the mean `goal` (n, A, S), or near it: by one plan of the mean, or by
    plans of least greatest cost.
    """
    y = data.nominal.copy()
    mean = np.einsum("i,naij->naj", data.weights, data.nominal)
    for s in range(data.nominal.shape[0]):
        actions = np.flatnonzero(data.available[s])
        if ambiguity.by_kernel and data.weights.size > 1:
            rows, means = data.nominal[s, actions], goal[s, actions]
            y[s, actions] = _together(ambiguity.ground, rows, data.weights, means)
            continue
        for a in actions:
            cost, shares = plan(ambiguity.ground, mean[s, a], goal[s, a])
            y[s, a] = data.nominal[s, a] @ shares if np.isfinite(cost) else data.nominal[s, a]
    return y


def _together(ground: Ground, rows: Array, w: Array, goal: Array) -> Array:
    """Rows (A, N, S) moved to a mean (A, S), the largest cost of a kernel being least; the data
    where no plan is found.
    """
    A, N, S = rows.shape
    costs = ground.between(np.arange(S), np.arange(S))
    may_move = (rows > 0)[..., None] & np.isfinite(costs) & (goal > 0)[:, None, None, :]
    a, i, j, k = np.nonzero(may_move)
    E = a.size
    if E > MOST or E == 0:
        return rows
    column, filled, reached = np.arange(E), rows.ravel() > 0, goal.ravel() > 0
    source = np.ravel_multi_index((a, i, j), rows.shape)
    leave = sparse.csr_array((np.ones(E), (source, column)), shape=(rows.size, E + 1))
    arrive = sparse.csr_array((w[i], (a * S + k, column)), shape=(A * S, E + 1))
    equal = sparse.vstack([leave[filled], arrive[reached]])
    kernel, columns = np.append(i, np.arange(N)), np.append(column, np.full(N, E))
    price = np.append(costs[j, k] / ground.scale, -np.ones(N))
    spent = sparse.csr_array((price, (kernel, columns)))
    right = np.concatenate([rows.ravel()[filled], goal.ravel()[reached]])
    from scipy.optimize import linprog  # slow to import, and rarely needed

    largest = np.append(np.zeros(E), 1.0)
    x = linprog(largest, spent, np.zeros(N), equal, right, options=SETTINGS).x
    if x is None:
        return rows
    y, mass = np.zeros(rows.shape), np.maximum(x[:E], 0.0)
    np.add.at(y, (a, i, k), mass)
    return np.asarray(y / np.maximum(y.sum(axis=2, keepdims=True), 1e-300))
