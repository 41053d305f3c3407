"""Kernels that surely are nature's: bring what somebody claims into the ball's set of mean kernels.

Nature plays ȳ = Σ_i w_i y_i with a tuple y in the ball. A tuple can be checked; a mean kernel cannot, before a tuple of
that mean is found. `inside` looks for one, state by state, and where there is none goes back towards the data mean m,
to the last ȳ_λ = m + λ(ȳ − m), λ ≤ 1, that it attains. How well it searches decides only how large λ gets: each tuple
is brought to the mean ȳ_λ exactly, its distance is measured, and `dense.feasible` has the last word.

**Fractions.** From every y_i take the fraction f_t = (Σ_i w_i y_i(t) − ȳ(t))⁺ / Σ_i w_i y_i(t) of its mass at t, and
spread what kernel i loses in proportion to (ȳ − Σ_i w_i y_i)⁺. The mean becomes ȳ, whatever y was. From ŷ this moves
Σ_i w_i ‖y_i − ŷ_i‖₁ = ‖ȳ − m‖₁ in each row, and no tuple moves less: for (ℓ1, 1) nothing else is needed. A tuple whose
mean is nearly ȳ hardly moves.

**Shifts.** y_i = ŷ_i + ȳ − m, where not negative, is best for every pair: by Jensen's inequality no tuple of that mean
is nearer than d(ȳ, m).

**ℓ1 and ℓ∞** are linear programs (`membership_linear`), **ℓ2** is a least-squares problem (`membership_squares`), **divergences** around the kernels
tilt all rows alike (`membership_tilted`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.certificate import dense as certificate
from drmdp.certificate.dense import Block
from drmdp.core.cached import cached_property
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load, part_of

ENOUGH = 1e-10
"""Part of the way to ȳ that is not worth a further step."""
MAX_ENTRIES = 200_000
"""Probabilities of a state beyond which only fractions and shifts are tried."""
PRECISE = 1e-13
"""Error of the mean left to fractions."""


def inside(model: Model, ball: AmbiguitySet, kernel: Any) -> Any:
    """Mean kernel (S, A, S) that nature can play: `kernel` itself if it is one, up to rounding.

    `kernel` is a mean kernel (S, A, S) or an N-tuple (N, S, A, S); or sparse, and then so is what is returned: a matrix (S·A, S) or a tuple of N
    of them. Its rows are first clipped to the allowed next
    states and divided by their sums, empty ones replaced by the data. Unavailable rows are not read and come back 0. A set whose proof has an
    `inside` of its own is asked instead.
    """
    own = getattr(part_of(entry_of(ball).certificate, ball), "inside", None)
    if own is not None:
        return own(model, ball, kernel)
    of_tuple = isinstance(kernel, tuple) or np.ndim(kernel) == 4
    is_sparse = isinstance(kernel, tuple) or sparse.issparse(kernel)
    if not is_sparse:
        _check(model, kernel)
    S, used = model.n_states, model.weights > 0
    out = []
    for start, stop in certificate.ranges(model, 0, S):
        data = certificate.block(model, ball, np.zeros(S), start, stop)
        given = _block(kernel, used, start, stop, model.n_actions)
        if of_tuple:
            y = _distributions(ball.centred(given, model.weights[used])[0], data.allowed[:, :, None], data.nominal)
        else:
            mean = mean_of(data.nominal, data.weights)
            goal = _distributions(given, data.allowed, mean)
            y = _tuple(ball, data, goal)
        found = mean_of(certificate.feasible(ball, data, y), data.weights)
        out.append(sparse.csr_array(found.reshape(-1, S)) if is_sparse else found)
    return sparse.vstack(out, format="csr") if is_sparse else np.concatenate(out)


def _block(kernel: Any, used: BoolArray, start: int, stop: int, A: int) -> Array:
    """Rows of the states start … stop − 1, dense: (n, A, S), or (n, A, N, S) of a tuple without its kernels of weight 0."""
    if isinstance(kernel, tuple):
        own = [_block(one, used, start, stop, A) for one, is_used in zip(kernel, used, strict=True) if is_used]
        return np.stack(own, axis=2)
    if sparse.issparse(kernel):
        return np.asarray(kernel[start * A : stop * A].toarray().reshape(stop - start, A, -1))
    return np.asarray(kernel[used, start:stop].transpose(1, 2, 0, 3) if kernel.ndim == 4 else kernel[start:stop])


def _check(model: Model, kernel: Array) -> None:
    N, S, A = model.n_kernels, model.n_states, model.n_actions
    if kernel.shape not in ((N, S, A, S), (S, A, S)):
        expected = f"{(S, A, S)} for a mean kernel or {(N, S, A, S)} for an N-tuple"
        raise InputError(f"kernel: expected shape {expected}, got {kernel.shape}")
    bad = ~np.isfinite(kernel) & model.available[:, :, None]
    if bad.any():
        where = tuple(np.argwhere(bad)[0])
        s, a, t = where[-3:]
        place = f"state {model.states[s]!r}, action {model.actions[a]!r}, next state {model.states[t]!r}"
        place = f"kernel {model.kernel_names[where[0]]!r}, {place}" if kernel.ndim == 4 else place
        raise InputError(f"kernel: probabilities must be finite: {place} has {float(kernel[where])!r}")


def _distributions(rows: Array, allowed: BoolArray, fallback: Array) -> Array:
    rows = np.where(allowed & (rows > 0), rows, 0.0)
    top = rows.max(axis=-1, keepdims=True)  # divided out first: a sum of large numbers may overflow
    rows = rows / np.where(top > 0, top, 1.0)
    return np.where(top > 0, rows / np.where(top > 0, rows.sum(axis=-1, keepdims=True), 1.0), fallback)


def mean_of(y: Array, weights: Array) -> Array:
    """Mean (…, S) of tuples (…, N, S)."""
    return np.asarray(np.einsum("i,...ij->...j", weights, y))


# ---------------------------------------------------------------------- all pairs


@dataclass(frozen=True)
class State:
    """The data of one state, available actions only, and where its mean shall go."""

    ball: Any
    nominal: Array  # ŷ, (A, N, K)
    weights: Array
    goal: Array  # ȳ, (A, K)
    radius: float

    @cached_property
    def mean(self) -> Array:
        """m, (A, K)."""
        return mean_of(self.nominal, self.weights)

    @cached_property
    def way(self) -> Array:
        """ȳ − m, (A, K)."""
        return self.goal - self.mean

    @cached_property
    def used(self) -> BoolArray:
        """Next states that ȳ_λ may have, (A, K)."""
        return (self.mean > 0) | (self.goal > 0)

    def target(self, share: float) -> Array:
        """ȳ_λ, (A, K); exactly ȳ for λ = 1."""
        return (1 - share) * self.mean + share * self.goal

    def apart(self, y: Array) -> float:
        """Distance of a tuple from ŷ."""
        return float(self.ball.apart(y, self.nominal, self.weights).max())

    def parts(self) -> list[State]:
        """One for each action where the search separates over them, else the state itself."""
        if self.ball.pair not in (("linf", math.inf), ("l2", 2)):
            return [self]
        pairs = zip(self.nominal, self.goal, strict=True)
        return [State(self.ball, y[None], self.weights, goal[None], self.radius) for y, goal in pairs]


def _tuple(ball: AmbiguitySet, data: Block, goal: Array) -> Array:
    """Tuple (n, A, N, S) in the ball, up to rounding, whose mean goes from m towards the goal (n, A, S)."""
    if ball.by_pair:
        n, A, N, S = data.nominal.shape
        return _tuple(ball.each, data.by_pair(), goal.reshape(n * A, 1, S)).reshape(n, A, N, S)
    nominal, weights = data.nominal, data.weights
    own_way = getattr(part_of(entry_of(ball).certificate, ball), "attain", None)
    if own_way is not None:
        return np.asarray(own_way(ball, data, goal))
    y = attain(nominal, weights, goal)
    apart = ball.apart(y, nominal, weights).max(axis=-1)
    share = np.where(apart > data.radius, data.radius / np.where(apart > 0, apart, 1.0), 1.0)
    y = nominal + share[:, None, None, None] * (y - nominal)
    nearest = entry_of(ball).nearest
    if not nearest:
        return y
    for k in np.flatnonzero((share < 1 - ENOUGH) & (data.radius > 0)):
        own = data.available[k]
        used = ((mean_of(nominal[k], weights) + goal[k])[own] > 0).any(axis=0)
        corner = np.ix_(own, np.arange(weights.size), used)
        state = State(ball, nominal[k][corner], weights, goal[k][np.ix_(own, used)], float(data.radius[k]))
        for search in (_shift, load(nearest)):
            way, found = search(state)
            pull = state.radius / max(state.apart(found), state.radius)
            if way * pull > share[k]:
                share[k] = way * pull
                y[k][corner] = state.nominal + pull * (found - state.nominal)
            if share[k] >= 1 - ENOUGH or state.nominal.size > MAX_ENTRIES:
                break
    return y


def attain(y: Array, weights: Array, target: Array) -> Array:
    """Bring tuples (…, N, S) to the mean `target` (…, S) by fractions."""
    mean = mean_of(y, weights)
    fraction = (np.maximum(mean - target, 0.0) / np.where(mean > 0, mean, 1.0))[..., None, :]
    gain = np.maximum(target - mean, 0.0)[..., None, :]
    total = gain.sum(axis=-1, keepdims=True)
    lost = (y * fraction).sum(axis=-1, keepdims=True)
    return np.where(total > 0, y * (1 - fraction) + lost * (gain / np.where(total > 0, total, 1.0)), y)


def _shift(state: State) -> tuple[float, Array]:
    y = project(state.nominal + state.way[:, None], state.used)
    return 1.0, attain(y, state.weights, state.goal)


def project(points: Array, used: BoolArray) -> Array:
    """Nearest distributions, on the used columns (A, K), to points (A, N, K)."""
    points = np.where(used[:, None], points, -np.inf)
    points = np.maximum(points - points.max(axis=2, keepdims=True), -2.0)  # 1 below the largest is 0 already
    ordered = np.sort(points, axis=2)[..., ::-1]
    level = (np.cumsum(ordered, axis=2) - 1) / np.arange(1, points.shape[2] + 1)
    last = (ordered > level).sum(axis=2, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(level, last, axis=2), 0.0)
