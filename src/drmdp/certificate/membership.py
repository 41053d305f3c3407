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

**ℓ1 and ℓ∞** are linear programs (`membership_linear`).

**ℓ2.** Minimise ½ Σ_i w_i ‖y_i − ŷ_i‖² over the tuples of mean ȳ_λ, for order ∞ only those in the ball. A multiplier
h of the mean is answered by y_i = Proj(ŷ_i + β_i h), projected on the simplex row by row, with β_i = 1 or what respects
θ. The dual is concave in h, with gradient ȳ_λ − Σ_i w_i y_i and, P_i x being x on the support of y_i minus its average
there, with

    curvature  Σ_i w_i β_i (P_i − P_i h hᵀP_i / hᵀP_i h),     the second term only where β_i < 1.

Regularised Newton steps with a line search maximise it, first for λ = 1, where all y_i are 0 at the zeros of ȳ. If that
is too far away, both orders come down on the largest λ from above: order 2 by Newton steps on the distance D(λ) = θ,
convex with D' = h·(ȳ − m)/D; order ∞ since by weak duality every h shows that λ h·(ȳ − m) is at most
Σ_i w_i [h·(y_i − ŷ_i) + (θ² − ‖y_i − ŷ_i‖²)/2]. On the boundary h may have to grow without end. Other orders p solve the program with weights w_i/β_i, and
then take d_i^{2−p} for β_i, of both logarithms a mean with weight 1/(p − 1) on the new one where p > 2, and go farther while that helps; λ = 1, pulled back.

That takes the longer the nearer p is to 1, where some d_i are 0. There, with m = 2/(2 − p) and −ε log β added,

    dᵖ/p = min_β d²/(2 β) + β^{m−1}/(2 m − 2) − ε log β,        attained where β^m − 2 ε β = d²,

so that β_i is a smooth function of h, and Σ_i w_i β_i² P_i h hᵀP_i/(m β_i^{m−1}/2 − ε − β_i hᵀP_i h), the denominator at least ε, joins the curvature. Newton's
method follows the answers while ε falls to 0, to where the line through the last two leads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.certificate import dense as certificate
from drmdp.certificate.dense import Block
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load, part_of

ENOUGH = 1e-10
"""Part of the way to ȳ that is not worth a further step."""
LEAST, SHARPER, ROOTS = 1e-10, 8.0, 12
"""Smallest ε, relative to the first, how it falls, and Newton steps for a β."""
GENTLE = 1.1
"""Orders up to this one follow ε."""
LONGER = 1.5
"""Growth of steps of order p."""
MAX_ENTRIES, MAX_CURVATURE = 200_000, 2_000
"""Probabilities of a state, and rows of a curvature matrix, beyond which only fractions and shifts are tried."""
ROUNDS, STEPS, TRIALS, REPEATS = 12, 80, 40, 100
"""Limits on shares λ, Newton steps for each, points tried on a line, and programs for an order p."""
DUST, PRECISE, FARTHEST, ROUNDED = 1e-10, 1e-13, 1e7, 1e-15
"""ℓ2: probabilities left to fractions, error of the mean left to fractions, largest h that rounding allows, and what rounding takes of a step."""


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
            mean = _mean(data.nominal, data.weights)
            goal = _distributions(given, data.allowed, mean)
            y = _tuple(ball, data, goal)
        found = _mean(certificate.feasible(ball, data, y), data.weights)
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


def _mean(y: Array, weights: Array) -> Array:
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
        return _mean(self.nominal, self.weights)

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
        used = ((_mean(nominal[k], weights) + goal[k])[own] > 0).any(axis=0)
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
    mean = _mean(y, weights)
    fraction = (np.maximum(mean - target, 0.0) / np.where(mean > 0, mean, 1.0))[..., None, :]
    gain = np.maximum(target - mean, 0.0)[..., None, :]
    total = gain.sum(axis=-1, keepdims=True)
    lost = (y * fraction).sum(axis=-1, keepdims=True)
    return np.where(total > 0, y * (1 - fraction) + lost * (gain / np.where(total > 0, total, 1.0)), y)


def _shift(state: State) -> tuple[float, Array]:
    y = _project(state.nominal + state.way[:, None], state.used)
    return 1.0, attain(y, state.weights, state.goal)


def _project(points: Array, used: BoolArray) -> Array:
    """Nearest distributions, on the used columns (A, K), to points (A, N, K)."""
    points = np.where(used[:, None], points, -np.inf)
    points = np.maximum(points - points.max(axis=2, keepdims=True), -2.0)  # 1 below the largest is 0 already
    ordered = np.sort(points, axis=2)[..., ::-1]
    level = (np.cumsum(ordered, axis=2) - 1) / np.arange(1, points.shape[2] + 1)
    last = (ordered > level).sum(axis=2, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(level, last, axis=2), 0.0)


# ---------------------------------------------------------------------- ℓ2


def least_squares(state: State) -> tuple[float, Array]:
    """Largest share of the way to the goal, and a tuple that takes it."""
    goal = np.where(state.goal < DUST * min(state.radius, 1.0), 0.0, state.goal)  # dust makes tiny faces, tiny steps
    clean = replace(state, goal=goal / goal.sum(axis=1, keepdims=True))
    parts, best, share = clean.parts(), (0.0, 0.0, state.nominal), 1.0
    if parts[0].goal.size > MAX_CURVATURE:
        return best[1:]
    if state.apart(_project(state.nominal, goal > 0)) < state.radius:  # else ȳ is too far away, for its zeros alone
        answers = [_Dual(part, part.goal > 0).maximise(part.way, share) for part in parts]
        y = attain(np.concatenate([answer.y for answer in answers]), state.weights, state.goal)
        best = (state.radius / max(state.apart(y), state.radius), share, y)
        if best[0] > 1 - 100 * ENOUGH:
            return best[1:]
    starts = [part.way for part in parts]
    for _ in range(ROUNDS):
        answers = [_Dual(part, part.used).maximise(h, share) for part, h in zip(parts, starts, strict=True)]
        share, starts = answers[0].share, [answer.h for answer in answers]
        y = attain(np.concatenate([answer.y for answer in answers]), state.weights, state.target(share))
        apart, push = state.apart(y), float((np.concatenate(starts) * clean.way).sum())
        best = max(best, (share * state.radius / max(apart, state.radius), share, y), key=lambda entry: entry[0])
        if state.ball.by_kernel or apart <= (1 + ENOUGH) * state.radius or push <= 0:
            break
        share -= (apart - state.radius) * apart / push
        if not share > best[0]:
            break
    return best[1:]


def powers(state: State) -> tuple[float, Array]:
    """A tuple whose mean is the goal and whose distance of order p is least."""
    p, beta, h = state.ball.order, np.ones(state.weights.size), state.way
    best, kept = (math.inf, 0.0, state.nominal), (beta, beta, h)
    if state.goal.size > MAX_CURVATURE:
        return best[1:]
    if p <= GENTLE:
        return _along(state)
    usual = min(1.0, 1 / (p - 1))
    part = usual
    for _ in range(REPEATS):
        found = _Dual(state, state.goal > 0, beta).maximise(h, 1.0)
        y = attain(found.y, state.weights, state.goal)
        apart = state.apart(y)
        if apart < best[0] * (1 - ENOUGH):
            each = np.maximum(state.ball.norm.of(y - state.nominal, axis=(0, 2)) / apart, DUST)
            best, kept, part = (apart, 1.0, y), (beta, each, found.h), LONGER * part
        elif part > usual:  # longer steps were too long
            part = usual
        else:
            break
        last, each, h = kept
        beta = last ** (1 - part) * each ** (part * (2 - p))
        beta, h = beta / beta.max(), h * beta.max()
    return best[1:]


def _along(state: State) -> tuple[float, Array]:
    """The same for an order next to 1, by ε that fall to 0."""
    size, h = state.radius ** (state.ball.order / (2 - state.ball.order)), 0.5 * state.way / state.radius
    best, blur, last = (math.inf, state.nominal), size, state.nominal
    while blur > LEAST * size and best[0] > (1 + ENOUGH) * state.radius:
        found = _Dual(state, state.goal > 0, blur=blur).maximise(h, 1.0)
        for y in (found.y, np.maximum(found.y + (found.y - last) / (SHARPER - 1), 0.0)):
            y = attain(y / y.sum(axis=2, keepdims=True), state.weights, state.goal)
            best = min(best, (state.apart(y), y), key=lambda entry: entry[0])
        blur, h, last = blur / SHARPER, found.h, found.y
    return 1.0, best[1]


def _root(power: float, square: Array, eps: float, rest: Array, most: Any) -> Array:
    """Where β^power = square β² + 2 ε β + rest, or `most` if not before: Newton's method in log β, which is monotone from the left."""
    if power == 2:
        left = np.maximum(1 - square, 1e-300)
        return np.asarray(np.minimum((eps + np.sqrt(eps * eps + left * rest)) / left, most))
    roots = np.minimum(square, 1.0) ** (1 / (power - 2)), rest ** (1 / power), (2 * eps) ** (1 / (power - 1))
    beta = np.maximum(np.maximum(*roots[:2]), roots[2])
    for _ in range(ROOTS):
        first, second = square * beta**2, 2 * eps * beta
        total = first + second + rest
        step = np.log(total / beta**power) / (power - (2 * first + second) / total)
        beta = np.minimum(beta * np.exp(np.minimum(step, 100.0)), most)
    return np.asarray(beta)


class _Answer(NamedTuple):
    """What a multiplier h is answered by, and the derivatives of the dual there."""

    share: float
    h: Array  # (A, K)
    y: Array  # (A, N, K)
    gradient: Array  # (A·K,)
    curvature: Array  # (A·K, A·K)
    scale: float  # of the curvature


@dataclass(frozen=True)
class _Dual:
    """Dual of the least-squares program of a state (order ∞) or of one action (order 2): a function of h (A, K)."""

    state: State
    columns: BoolArray  # next states that y_i may have, (A, K)
    beta: Array | float = 1.0  # at most, (N,)
    blur: float = 0.0  # ε, where β is sought

    @property
    def cap(self) -> float:
        """Largest distance of a kernel."""
        return self.state.radius if self.state.ball.by_kernel else math.inf

    def maximise(self, h: Array, share: float) -> _Answer:
        """Take Newton steps from h; order ∞ lowers the share meanwhile and returns the answer that leads farthest."""
        now = best = self.answer(h, share)
        most, stale, trust, way = -2.0, 0, math.inf, float(np.abs(self.state.way).max())
        for _ in range(STEPS if way > 0 else 0):
            bound = self.bound(now)
            now = self.answer(now.h, bound) if bound < now.share else now
            error, size, gone = float(np.abs(now.gradient).max()), float(np.abs(now.h).max()), self.gone(now)
            stale = 0 if gone > most + 10 * ENOUGH * abs(most) else stale + 1
            if gone > most:
                best, most = now, gone
            if not (
                error > max(PRECISE, ROUNDED * now.scale)
                and size < FARTHEST
                and gone < (1 - ENOUGH) * now.share
                and stale < STEPS / 2
            ):
                break
            soft, step = now.scale * (1e-6 * min(error / (now.share * way), 1.0) + 1e-13), np.full(h.size, np.inf)
            while np.abs(step).max() > min(trust, size):
                step = np.linalg.solve(now.curvature + soft * np.eye(h.size), now.gradient)
                soft *= 10
            last, now = now.h, self.search(now, step)
            moved = float(np.abs(now.h - last).max())
            trust = max(10 * moved, trust if 2 * moved > np.abs(step).max() else 0.0)
            if moved == 0:
                break
        return best

    def bound(self, now: _Answer) -> float:
        """Share that no tuple in the ball exceeds, by weak duality."""
        state, y = self.state, now.y
        push, pushed = float((now.h * state.way).sum()), float((now.h * (_mean(y, state.weights) - state.mean)).sum())
        spare = (self.cap**2 - float(((y - state.nominal) ** 2).sum(axis=(0, 2)) @ state.weights)) / 2
        return (pushed + spare) / push if push > 0 and (self.columns == state.used).all() else math.inf

    def gone(self, now: _Answer) -> float:
        """Share that is left once the answer has its mean and is in the ball; order 2: minus the error of the mean."""
        if self.cap == math.inf:
            return -float(np.abs(now.gradient).max())
        apart = self.state.apart(attain(now.y, self.state.weights, self.state.target(now.share)))
        return now.share * self.cap / max(apart, self.cap)

    def search(self, now: _Answer, step: Any) -> _Answer:
        """Find an answer on the line of a step, up to 16 times its length, where at most half of the slope is left."""
        first, length, low, high = float(now.gradient @ step), 1.0, 0.0, math.inf
        for _ in range(TRIALS):
            new = self.answer(now.h + length * step.reshape(now.h.shape), now.share)
            slope, bend = float(new.gradient @ step), float(step @ new.curvature @ step)
            low, high = (length, high) if slope > 0 else (low, length)
            if -first / 10 <= slope <= first / 2 or low == 16:
                break
            length = min(length + slope / bend, 16.0) if bend > 0 else 16.0
            if not low < length < high:
                length = (low + min(high, 16.0)) / 2
        return new

    def answer(self, h: Array, share: float) -> _Answer:
        """Answer h; on each face the squared distance of a kernel is a parabola in β_i, which leads to β_i."""
        nominal, weights, eps = self.state.nominal, self.state.weights, self.blur
        square: Any = self.cap**2
        A, N, K = nominal.shape
        power = 2 / (2 - self.state.ball.order) if eps else 0.0
        most = max((4 * A) ** (1 / power), (4 * eps) ** (1 / (power - 1))) if eps else self.beta
        beta, low, high = most * np.ones(N), np.zeros(N), (most if eps else 1.0) * np.ones(N)
        capped = np.ones(N, dtype=bool)
        for trial in range(TRIALS):
            y = _project(nominal + beta[:, None] * h[:, None], self.columns)
            face = y > 0
            ph = np.where(face, h[:, None], 0.0)
            ph -= np.where(face, ph.sum(axis=2, keepdims=True) / face.sum(axis=2, keepdims=True), 0.0)
            hph = np.einsum("aik,ak->i", ph, h)
            moved = ((y - nominal) ** 2).sum(axis=(0, 2))
            over = moved - square
            if eps:
                square = beta**power
                over = square - 2 * eps * beta - moved
            capped &= (over > 0) | (trial > 0)
            low, high = np.where(over < 0, beta, low), np.where(over > 0, beta, high)
            off = capped & (np.abs(over) > 10 * PRECISE * square + (ROUNDED * beta if eps else 0.0))
            if not off.any():
                break
            if eps:
                guess = _root(power, np.maximum(hph, 0.0), eps, np.maximum(moved - hph * beta**2, 0.0), most)
            else:
                guess = beta - over / np.where(hph > 0, 2 * beta * hph, np.nan)
            middle = np.where(low > 0, np.sqrt(low * high), high / 16)
            guess = np.where((guess > low) & (guess < high), guess, middle)
            beta = np.where(off, guess, beta)
        strength = weights * beta
        curvature = np.zeros((A, K, A, K))
        for a in range(A):
            part = (strength / face[a].sum(axis=1))[:, None] * face[a]
            curvature[a, :, a] = np.diag(strength @ face[a]) - part.T @ face[a]
        flat = ph.transpose(1, 0, 2).reshape(N, A * K)
        bent = np.where(capped & (hph > 0), strength / np.where(hph > 0, hph, 1.0), 0.0)
        if eps:
            bent = -strength * beta / np.maximum(0.5 * power * square / beta - eps - beta * hph, eps)
        dense = curvature.reshape(A * K, A * K) - (flat * bent[:, None]).T @ flat
        gradient = (self.state.target(share) - _mean(y, weights)).ravel()
        scale = strength.sum() + (dense.trace() / h.size if eps else 0.0)
        return _Answer(share, h, y, gradient, dense, float(scale))
