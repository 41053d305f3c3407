"""Kernels that surely are nature's: bring what somebody claims into the ball's set of mean kernels.

Nature plays ȳ = Σ_i w_i y_i with a tuple y in the ball. A tuple can be checked; a mean kernel cannot, before a tuple of
that mean is found. `inside` looks for one, state by state, and where there is none goes back towards the data mean m, to
the last ȳ_λ = m + λ(ȳ − m), λ ≤ 1, that it attains. How well it searches decides only how large λ gets: each tuple is
brought to the mean ȳ_λ exactly, its distance is measured, and `certificate.feasible` has the last word.

**Fractions.** From every y_i take the fraction f_t = (Σ_i w_i y_i(t) − ȳ(t))⁺ / Σ_i w_i y_i(t) of its mass at t, and
spread what kernel i loses in proportion to (ȳ − Σ_i w_i y_i)⁺. The mean becomes ȳ, whatever y was. From ŷ this moves
Σ_i w_i ‖y_i − ŷ_i‖₁ = ‖ȳ − m‖₁ in each row, and no tuple moves less: for (ℓ1, 1) nothing else is needed. An inexact
solution is moved by no more than its error.

**Shifts.** y_i = ŷ_i + ȳ − m, where not negative, is best for every pair: by Jensen's inequality no tuple of that mean
is nearer than d(ȳ, m).

**ℓ1 and ℓ∞.** HiGHS maximises λ over the displacements y − ŷ of mean λ(ȳ − m), bounded by θ for (ℓ∞, ∞), which separates
over the actions, and by r_i with Σ_i w_i r_i ≤ θ for (ℓ∞, 1). For (ℓ1, ∞), if one kernel brings mass to t and another
takes mass from there, the first may as well bring it where the second does; so mass leaves only the t with ȳ(t) < m(t),
arrives only where ȳ(t) > m(t), and what leaves kernel i is at most θ/2.

**ℓ2.** Minimise ½ Σ_i w_i ‖y_i − ŷ_i‖² over the tuples of mean ȳ_λ, for order ∞ only those in the ball. A multiplier h of
the mean is answered by y_i = Proj(ŷ_i + β_i h), projected on the simplex row by row, with β_i = 1 or what respects θ. The
dual is concave in h, with gradient ȳ_λ − Σ_i w_i y_i and, P_i x being x on the support of y_i minus its average there,

    curvature  Σ_i w_i β_i (P_i − P_i h hᵀP_i / hᵀP_i h),     the second term only where β_i < 1.

Regularised Newton steps with a line search on the slope maximise it; for order ∞ and ȳ on the boundary h may have to grow
without end, which loses about 1e-10. If the tuple is too far away λ is lowered: for order 2 by a Newton step on the
distance D(λ) = θ, which is convex with D' = h·(ȳ − m)/D; for order ∞ to where h no longer separates ȳ_λ from the set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from drmdp import certificate
from drmdp._typing import Array, BoolArray
from drmdp.ambiguity import Wasserstein
from drmdp.certificate import EPS, Block
from drmdp.errors import InputError
from drmdp.model import Model

ENOUGH = 1e-10
"""Part of the way to ȳ that is not worth a further step."""
MAX_ENTRIES, MAX_CURVATURE = 200_000, 2_000
"""Probabilities of a state, and rows of a curvature matrix, beyond which only fractions and shifts are tried."""
ROUNDS, STEPS, TRIALS = 12, 80, 40
"""Limits on shares λ, Newton steps for each, and points tried on a line."""
PRECISE = 1e-13
"""Error of the mean that ends the Newton steps; the last of it is removed by fractions."""
FARTHEST = 1e7
"""Largest multiplier h: beyond it, rounding takes more than a step brings."""
SETTINGS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "time_limit": 60.0}


def inside(model: Model, ball: Wasserstein, kernel: Array) -> Array:
    """Mean kernel (S, A, S) that nature can play: `kernel` itself if it is one, up to rounding.

    `kernel` is a mean kernel (S, A, S) or an N-tuple (N, S, A, S). Its rows are first clipped to the allowed next states
    and divided by their sums, empty ones replaced by the data; rows of unavailable pairs are not read and come back 0.
    """
    _check(model, kernel)
    S, used = model.n_states, model.weights > 0
    out = np.zeros((S, model.n_actions, S))
    for start, stop in certificate.ranges(model, 0, S):
        data = certificate.block(model, ball, np.zeros(S), start, stop)
        if kernel.ndim == 4:
            given = kernel[used, start:stop].transpose(1, 2, 0, 3)
            y = _distributions(given, data.allowed[:, :, None], data.nominal)
        else:
            mean = _mean(data.nominal, data.weights)
            y = _tuple(ball, data, _distributions(kernel[start:stop], data.allowed, mean))
        out[start:stop] = _mean(certificate.feasible(ball, data, y), data.weights)
    return out


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
        place = f"kernel {where[0]}, {place}" if kernel.ndim == 4 else place
        raise InputError(f"kernel: probabilities must be finite: {place} has {float(kernel[where])!r}")


def _distributions(rows: Array, allowed: BoolArray, fallback: Array) -> Array:
    rows = np.where(allowed & (rows > 0), rows, 0.0)
    top = rows.max(axis=-1, keepdims=True)  # divided out first: a sum of large numbers may overflow
    rows = rows / np.where(top > 0, top, 1.0)
    return np.where(top > 0, rows / np.where(top > 0, rows.sum(axis=-1, keepdims=True), 1.0), fallback)


# ---------------------------------------------------------------------- all pairs


@dataclass(frozen=True)
class _State:
    """The data of one state, available actions only, and where its mean shall go."""

    ball: Wasserstein
    nominal: Array  # ŷ, (A, N, K)
    weights: Array
    goal: Array  # ȳ, (A, K)
    radius: float

    @property
    def mean(self) -> Array:
        """m, (A, K)."""
        return _mean(self.nominal, self.weights)

    def target(self, share: float) -> Array:
        """ȳ_λ; exactly ȳ for λ = 1, so that its zeros remain."""
        return (1 - share) * self.mean + share * self.goal

    def apart(self, y: Array) -> float:
        """Distance of a tuple from ŷ."""
        return float(_apart(self.ball, self.weights, (y - self.nominal)[None])[0])


def _tuple(ball: Wasserstein, data: Block, goal: Array) -> Array:
    """Tuple (n, A, N, S) in the ball, up to rounding, whose mean goes from m towards the goal (n, A, S)."""
    nominal, weights = data.nominal, data.weights
    y = _attain(nominal, weights, goal)
    apart = _apart(ball, weights, y - nominal)
    share = np.where(apart > data.radius, data.radius / np.where(apart > 0, apart, 1.0), 1.0)
    y = nominal + share[:, None, None, None] * (y - nominal)
    if ball.pair == ("l1", 1):
        return y
    for k in np.flatnonzero((share < 1 - ENOUGH) & (data.radius > 0)):
        own = data.available[k]
        used = ((_mean(nominal[k], weights) + goal[k])[own] > 0).any(axis=0)
        corner = np.ix_(own, np.arange(weights.size), used)
        state = _State(ball, nominal[k][corner], weights, goal[k][np.ix_(own, used)], float(data.radius[k]))
        for search in (_shift, _linear if ball.metric != "l2" else _least_squares):
            way, found = search(state)
            pull = min(1.0, state.radius / max(state.apart(found), state.radius))
            if way * pull > share[k]:
                share[k] = way * pull
                y[k][corner] = state.nominal + pull * (found - state.nominal)
            if share[k] >= 1 - ENOUGH or state.nominal.size > MAX_ENTRIES:
                break
    return y


def _mean(y: Array, weights: Array) -> Array:
    return np.asarray(np.einsum("i,...ij->...j", weights, y))


def _apart(ball: Wasserstein, weights: Array, difference: Array) -> Array:
    each = certificate.distances(ball, difference)
    return np.asarray(each.max(axis=1) if ball.order == math.inf else (each**ball.order @ weights) ** (1 / ball.order))


def _attain(y: Array, weights: Array, target: Array) -> Array:
    """Bring tuples (…, N, S) to the mean `target` (…, S) by fractions."""
    mean = _mean(y, weights)
    fraction = (np.maximum(mean - target, 0.0) / np.where(mean > 0, mean, 1.0))[..., None, :]
    gain = np.maximum(target - mean, 0.0)[..., None, :]
    total = gain.sum(axis=-1, keepdims=True)
    lost = (y * fraction).sum(axis=-1, keepdims=True)
    return np.where(total > 0, y * (1 - fraction) + lost * (gain / np.where(total > 0, total, 1.0)), y)


def _shift(state: _State) -> tuple[float, Array]:
    y = _project(state.nominal + (state.goal - state.mean)[:, None], state.goal > 0)
    return 1.0, _attain(y, state.weights, state.goal)


def _project(points: Array, live: BoolArray) -> Array:
    """Nearest distributions on the live columns (A, K) of points (A, N, K)."""
    points = np.where(live[:, None], points, -np.inf)
    points = np.maximum(points - points.max(axis=2, keepdims=True), -2.0)  # 1 below the largest is 0 already
    ordered = np.sort(points, axis=2)[..., ::-1]
    level = (np.cumsum(ordered, axis=2) - 1) / np.arange(1, points.shape[2] + 1)
    last = (ordered > level).sum(axis=2, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(level, last, axis=2), 0.0)


# ---------------------------------------------------------------------- ℓ1 and ℓ∞


def _linear(state: _State) -> tuple[float, Array]:
    """Largest share of the way to the goal, and a tuple that takes it."""
    ball, nominal, weights, goal, mean = state.ball, state.nominal, state.weights, state.goal, state.mean
    if ball.pair == ("linf", math.inf) and goal.shape[0] > 1:
        rows = [slice(a, a + 1) for a in range(goal.shape[0])]
        each = [_linear(_State(ball, nominal[a], weights, goal[a], state.radius)) for a in rows]
        share = min(own for own, _ in each)
        return share, np.concatenate(
            [nominal[a] + (share / own if own > 0 else 0.0) * (y - nominal[a]) for a, (own, y) in zip(rows, each, strict=True)]
        )
    length, unit = float(np.abs(goal - mean).max()), min(state.radius, 1.0)  # λ and y − ŷ are brought to the scale 1
    if length == 0:
        return 1.0, nominal
    used = np.broadcast_to(((mean > 0) | (goal > 0))[:, None], nominal.shape)
    x = _program(ball, nominal / unit, used, weights, (goal - mean) / length, state.radius / unit, length / unit)
    share = min(float(x[-1]) * unit / length, 1.0)
    y = nominal.copy()
    y[used] = np.maximum(y[used] + unit * x[: -1 - weights.size], 0.0)
    return share, _attain(y / y.sum(axis=2, keepdims=True), weights, state.target(share))


def _program(
    ball: Wasserstein, nominal: Array, used: BoolArray, weights: Array, way: Array, radius: float, most: float
) -> Array:
    """Maximise u ≤ most subject to Σ_i w_i (y_i − ŷ_i) = u·way: y − ŷ on the used entries, r_i for each i, u."""
    A, N, K = nominal.shape
    a, i, t = np.nonzero(used)
    E, y, sign = a.size, nominal[a, i, t], np.sign(way[a, t])

    def sums(values: Array, row: Any, n: int) -> Any:
        return sparse.csr_array((values, (row, np.arange(E))), shape=(n, E))

    rows, columns = sums(np.ones(E), a * N + i, A * N), sums(weights[i], a * K + t, A * K)
    equal = sparse.block_array([[rows, sparse.csr_array((A * N, N)), None], [columns, None, -way.reshape(-1, 1)]])
    lower, upper, wide, below, limit = -y, np.full(E, np.inf), np.inf, None, None
    if ball.metric == "l1":
        lower, upper, wide = np.where(sign < 0, -y, 0.0), np.where(sign > 0, np.inf, 0.0), radius / 2
        below = sparse.block_array([[sums(np.minimum(sign, 0.0), i, N), -sparse.eye_array(N), np.zeros((N, 1))]])
        limit = np.zeros(N)
    elif ball.order == math.inf:
        lower, upper = np.maximum(-y, -radius), np.full(E, radius)
    else:
        up, own, taken = sparse.eye_array(E, format="csr"), sums(np.ones(E), i, N).T.tocsr(), y > 0
        down = [-up[taken], -own[taken], None]
        below = sparse.block_array([[up, -own, None], down, [None, weights[None], np.zeros((1, 1))]])
        limit = np.append(np.zeros(below.shape[0] - 1), radius)
    low, high = np.append(lower, np.zeros(N + 1)), np.concatenate([upper, np.full(N, wide), [most]])
    cost, zero = np.append(np.zeros(E + N), -1.0), np.zeros(equal.shape[0])
    found = linprog(cost, below, limit, equal.tocsr(), zero, np.stack([low, high], axis=1), options=SETTINGS)
    return np.zeros(E + N + 1) if found.x is None else np.asarray(found.x)


# ---------------------------------------------------------------------- ℓ2


def _least_squares(state: _State) -> tuple[float, Array]:
    """Largest share of the way to the goal, and a tuple that takes it; order 2 separates over the actions."""
    nominal, weights, mean, radius = state.nominal, state.weights, state.mean, state.radius
    joint = state.ball.order == math.inf
    rows = [slice(None)] if joint else [slice(a, a + 1) for a in range(mean.shape[0])]
    best, share, found = (0.0, 0.0, nominal), 1.0, state.goal - mean
    for _ in range(ROUNDS if mean[rows[0]].size <= MAX_CURVATURE else 0):
        target = state.target(share)
        duals = [_Dual(nominal[a], weights, target[a], radius if joint else math.inf) for a in rows]
        answers = [dual.maximise(found[a]) for dual, a in zip(duals, rows, strict=True)]
        h, y = (np.concatenate([answer[k] for answer in answers]) for k in (0, 1))
        attained = _attain(y, weights, target)
        apart = state.apart(attained)
        best = max(best, (share * min(1.0, radius / apart), share, attained), key=lambda entry: entry[0])
        push, pushed = (h * (state.goal - mean)).sum(), (h * (_mean(y, weights) - mean)).sum()
        if apart <= (1 + ENOUGH) * radius or push <= 0:
            break
        lower = float(pushed / push if joint else share - (apart - radius) * apart / push)
        if not best[0] < lower < share:
            break
        share, found = lower, h
    return best[1:]


class _Answer(NamedTuple):
    """What a multiplier h is answered by; gradient and curvature of the dual there."""

    h: Array  # (A, K)
    y: Array  # (A, N, K)
    gradient: Array  # (A·K,)
    curvature: Array  # (A·K, A·K)
    scale: float  # Σ_i w_i β_i


@dataclass(frozen=True)
class _Dual:
    """Dual of the least-squares program, a function of h (A, K)."""

    nominal: Array  # (A, N, K)
    weights: Array
    target: Array  # ȳ_λ, (A, K)
    cap: float  # θ for order ∞, else ∞

    def maximise(self, h: Array) -> _Answer:
        """Take Newton steps from h; return the answer that is nearest to ŷ once it is brought to the target."""
        length = float(np.abs(self.target - _mean(self.nominal, self.weights)).max())
        now = best = self.answer(h)
        nearest = math.inf
        for _ in range(STEPS):
            far = ((_attain(now.y, self.weights, self.target) - self.nominal) ** 2).sum(axis=(0, 2))
            apart = math.sqrt(far @ self.weights if self.cap == math.inf else far.max())
            if apart < nearest:
                best, nearest = now, apart
            error, size = np.abs(now.gradient).max(), np.abs(now.h).max()
            if error <= PRECISE or size > FARTHEST or apart <= (1 + ENOUGH) * self.cap < math.inf:
                break
            soft = now.scale * (1e-4 * min(error / length, 1.0) + 1e-13)
            now = self.search(now, np.linalg.solve(now.curvature + soft * np.eye(h.size), now.gradient))
        return best

    def search(self, now: _Answer, step: Any) -> _Answer:
        """Find an answer on the line of a step where at most half of the slope is left."""
        first, length, low, high = float(now.gradient @ step), 1.0, 0.0, math.inf
        for _ in range(TRIALS):
            new = self.answer(now.h + length * step.reshape(now.h.shape))
            slope, bend = float(new.gradient @ step), float(step @ new.curvature @ step)
            low, high = (length, high) if slope > 0 else (low, length)
            if abs(slope) <= first / 2 or length * np.abs(step).max() > FARTHEST:
                break
            length += slope / bend if bend > 0 else math.inf
            if not low < length < high:
                length = (low + high) / 2 if high < math.inf else 4 * low
        return new

    def answer(self, h: Array) -> _Answer:
        """Answer h, as in the module; the squared distance is a parabola in β_i on each face, which finds β_i."""
        A, N, K = self.nominal.shape
        beta, low, high, square = np.ones(N), np.zeros(N), np.ones(N), self.cap * self.cap
        capped = np.ones(N, dtype=bool)
        for trial in range(TRIALS):
            y = _project(self.nominal + beta[:, None] * h[:, None], self.target > 0)
            face = y > 0
            ph = np.where(face, h[:, None], 0.0)
            ph -= np.where(face, ph.sum(axis=2, keepdims=True) / face.sum(axis=2, keepdims=True), 0.0)
            hph = np.einsum("aik,ak->i", ph, h)
            over = ((y - self.nominal) ** 2).sum(axis=(0, 2)) - square
            capped &= (over > 0) | (trial > 0)
            low, high = np.where(over < 0, beta, low), np.where(over > 0, beta, high)
            off = capped & (np.abs(over) > 4 * EPS * square)
            if not off.any():
                break
            guess = beta - over / np.where(hph > 0, 2 * beta * hph, 1.0)
            guess = np.where((hph > 0) & (guess > low) & (guess < high), guess, (low + high) / 2)
            beta = np.where(off, guess, beta)
        strength = self.weights * beta
        curvature = np.zeros((A, K, A, K))
        for a in range(A):
            share = (strength / face[a].sum(axis=1))[:, None] * face[a]
            curvature[a, :, a] = np.diag(strength @ face[a]) - share.T @ face[a]
        flat = ph.transpose(1, 0, 2).reshape(N, A * K)
        bent = np.where(capped & (hph > 0), strength / np.where(hph > 0, hph, 1.0), 0.0)
        dense = curvature.reshape(A * K, A * K) - (flat * bent[:, None]).T @ flat
        return _Answer(h, y, (self.target - _mean(y, self.weights)).ravel(), dense, float(strength.sum()))
