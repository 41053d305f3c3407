"""Kernels of ℓ2 sets with a given mean: least squares of one state; see
`drmdp.certificate.membership`.

Minimise ½ Σ_i w_i ‖y_i − ŷ_i‖² over the tuples of mean ȳ_λ, for order ∞ only those in the set. The
answer to a multiplier h of the mean is y_i = Proj(ŷ_i + β_i h), projected on the simplex row by
row, with β_i = 1 or what respects θ. The dual is concave in h, with gradient ȳ_λ − Σ_i w_i y_i and,
P_i x being x on the support of y_i minus its average there, with

    curvature  Σ_i w_i β_i (P_i − P_i h hᵀP_i / hᵀP_i h),     the second term only where β_i < 1.

Regularised Newton steps with a line search maximise it, first for λ = 1, where all y_i are 0 at the
zeros of ȳ. If that is too far away, both orders come down on the largest λ from above: order 2 by
Newton steps on the distance D(λ) = θ, convex with D' = h·(ȳ − m)/D; order ∞ since by weak duality
every h shows that λ h·(ȳ − m) is at most Σ_i w_i [h·(y_i − ŷ_i) + (θ² − ‖y_i − ŷ_i‖²)/2]. On the
boundary h may have to grow without end. Other orders p solve the program with weights w_i/β_i, and
then take d_i^{2−p} for β_i, of both logarithms a mean with weight 1/(p − 1) on the new one where p
> 2, and go farther while that helps; λ = 1, pulled back.

That takes the longer the nearer p is to 1, where some d_i are 0. There, with m = 2/(2 − p) and −ε
log β added,

    dᵖ/p = min_β d²/(2 β) + β^{m−1}/(2 m − 2) − ε log β,        attained where β^m − 2 ε β = d²,

so that β_i is a smooth function of h, and Σ_i w_i β_i² P_i h hᵀP_i/(m β_i^{m−1}/2 − ε − β_i hᵀP_i
h), the denominator at least ε, joins the curvature. Newton's method follows the answers while ε
falls to 0, to where the line through the last two leads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.certificate.membership import ENOUGH, PRECISE, StateData, attain, mean_of, project

MAX_CURVATURE = 2_000
"""Rows of a curvature matrix beyond which the search is limited to fractions and shifts."""
LEAST, SHARPER, ROOTS = 1e-10, 8.0, 12
"""Smallest ε, relative to the first, how it falls, and Newton steps for a β."""
GENTLE = 1.1
"""Orders up to this one follow ε."""
LONGER = 1.5
"""Growth of steps of order p."""
ROUNDS, STEPS, TRIALS, REPEATS = 12, 80, 40, 100
"""Limits on shares λ, Newton steps for each, points tried on a line, and programs for an order
p.
"""
DUST, FARTHEST, ROUNDED = 1e-10, 1e7, 1e-15
"""Probabilities left to fractions, largest h that rounding allows, and what rounding takes of a
step.
"""


def least_squares(state: StateData) -> tuple[float, Array]:
    """Largest share of the way to the goal, and a tuple that takes it."""
    # dust makes tiny faces, tiny steps
    goal = np.where(state.goal < DUST * min(state.radius, 1.0), 0.0, state.goal)
    clean = state.towards(goal / goal.sum(axis=1, keepdims=True))
    parts, best, share = clean.parts(), (0.0, 0.0, state.nominal), 1.0
    if parts[0].goal.size > MAX_CURVATURE:
        return best[1:]
    # else ȳ is too far away, for its zeros alone
    if state.apart(project(state.nominal, goal > 0)) < state.radius:
        answers = [_Dual(part, part.goal > 0).maximise(part.way, share) for part in parts]
        y = attain(np.concatenate([answer.y for answer in answers]), state.weights, state.goal)
        best = (state.radius / max(state.apart(y), state.radius), share, y)
        if best[0] > 1 - 100 * ENOUGH:
            return best[1:]
    starts = [part.way for part in parts]
    for _ in range(ROUNDS):
        pairs = zip(parts, starts, strict=True)
        answers = [_Dual(part, part.used).maximise(h, share) for part, h in pairs]
        share, starts = answers[0].share, [answer.h for answer in answers]
        rows = np.concatenate([answer.y for answer in answers])
        y = attain(rows, state.weights, state.target(share))
        apart, push = state.apart(y), float((np.concatenate(starts) * clean.way).sum())
        reached = share * state.radius / max(apart, state.radius)
        if reached > best[0]:
            best = reached, share, y
        if state.ambiguity.by_kernel or apart <= (1 + ENOUGH) * state.radius or push <= 0:
            break
        share -= (apart - state.radius) * apart / push
        if not share > best[0]:
            break
    return best[1:]


def powers(state: StateData) -> tuple[float, Array]:
    """A tuple whose mean is the goal and whose distance of order p is least."""
    p, beta, h = state.ambiguity.order, np.ones(state.weights.size), state.way
    best, last = (math.inf, 0.0, state.nominal), (beta, beta, h)
    if state.goal.size > MAX_CURVATURE:
        return best[1:]
    if p <= GENTLE:
        return _along(state)
    usual = min(1.0, 1 / (p - 1))
    part = usual
    for _ in range(REPEATS):
        answer = _Dual(state, state.goal > 0, beta).maximise(h, 1.0)
        y = attain(answer.y, state.weights, state.goal)
        apart = state.apart(y)
        if apart < best[0] * (1 - ENOUGH):
            distances = state.ambiguity.norm.of(y - state.nominal, axis=(0, 2)) / apart
            best, last = (apart, 1.0, y), (beta, np.maximum(distances, DUST), answer.h)
            part = LONGER * part
        elif part > usual:  # longer steps were too long
            part = usual
        else:
            break
        before, distances, h = last
        beta = before ** (1 - part) * distances ** (part * (2 - p))
        beta, h = beta / beta.max(), h * beta.max()
    return best[1:]


def _along(state: StateData) -> tuple[float, Array]:
    """The same for an order next to 1, by ε that fall to 0."""
    p, h = state.ambiguity.order, 0.5 * state.way / state.radius
    size = state.radius ** (p / (2 - p))
    best, blur, last = (math.inf, state.nominal), size, state.nominal
    while blur > LEAST * size and best[0] > (1 + ENOUGH) * state.radius:
        answer = _Dual(state, state.goal > 0, blur=blur).maximise(h, 1.0)
        for y in (answer.y, np.maximum(answer.y + (answer.y - last) / (SHARPER - 1), 0.0)):
            y = attain(y / y.sum(axis=2, keepdims=True), state.weights, state.goal)
            best = min(best, (state.apart(y), y), key=lambda entry: entry[0])
        blur, h, last = blur / SHARPER, answer.h, answer.y
    return 1.0, best[1]


def _root(power: float, square: Array, eps: float, rest: Array, most: Any) -> Array:
    """Where β^power = square β² + 2 ε β + rest, or `most` if not before: Newton's method in log β,
    which is monotone from the left.
    """
    if power == 2:
        gap = np.maximum(1 - square, 1e-300)
        return np.asarray(np.minimum((eps + np.sqrt(eps * eps + gap * rest)) / gap, most))
    beta = np.maximum(np.minimum(square, 1.0) ** (1 / (power - 2)), rest ** (1 / power))
    beta = np.maximum(beta, (2 * eps) ** (1 / (power - 1)))
    for _ in range(ROOTS):
        first, second = square * beta**2, 2 * eps * beta
        total = first + second + rest
        step = np.log(total / beta**power) / (power - (2 * first + second) / total)
        beta = np.minimum(beta * np.exp(np.minimum(step, 100.0)), most)
    return np.asarray(beta)


class _Answer(NamedTuple):
    """The answer to a multiplier h, and the derivatives of the dual there."""

    share: float
    h: Array  # (A, K)
    y: Array  # (A, N, K)
    gradient: Array  # (A·K,)
    curvature: Array  # (A·K, A·K)
    scale: float  # of the curvature


@dataclass(frozen=True)
class _Dual:
    """Dual of the least-squares program of a state (order ∞) or of one action (order 2): a function
    of h (A, K).
    """

    state: StateData
    columns: BoolArray  # next states that y_i may have, (A, K)
    beta: Array | float = 1.0  # at most, (N,)
    blur: float = 0.0  # ε, where β is a variable

    @property
    def cap(self) -> float:
        """Largest distance of a kernel."""
        return self.state.radius if self.state.ambiguity.by_kernel else math.inf

    def maximise(self, h: Array, share: float) -> _Answer:
        """Take Newton steps from h; order ∞ lowers the share meanwhile and returns the answer that
        leads farthest.
        """
        now = best = self.answer(h, share)
        most, stale, trust, way = -2.0, 0, math.inf, float(np.abs(self.state.way).max())
        for _ in range(STEPS if way > 0 else 0):
            bound = self.bound(now)
            now = self.answer(now.h, bound) if bound < now.share else now
            gone = self.gone(now)
            error, size = float(np.abs(now.gradient).max()), float(np.abs(now.h).max())
            stale = 0 if gone > most + 10 * ENOUGH * abs(most) else stale + 1
            if gone > most:
                best, most = now, gone
            if not error > max(PRECISE, ROUNDED * now.scale) or not size < FARTHEST:
                break
            if not gone < (1 - ENOUGH) * now.share or stale >= STEPS / 2:
                break
            soft = now.scale * (1e-6 * min(error / (now.share * way), 1.0) + 1e-13)
            step = np.full(h.size, np.inf)
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
        """Share that no tuple in the set exceeds, by weak duality."""
        state, y = self.state, now.y
        push = float((now.h * state.way).sum())
        if not push > 0 or not (self.columns == state.used).all():
            return math.inf
        pushed = float((now.h * (mean_of(y, state.weights) - state.mean)).sum())
        spent = float(((y - state.nominal) ** 2).sum(axis=(0, 2)) @ state.weights)
        return (pushed + (self.cap**2 - spent) / 2) / push

    def gone(self, now: _Answer) -> float:
        """Share of the way once the answer has its mean and is in the set; order 2: minus the error
        of the mean.
        """
        if self.cap == math.inf:
            return -float(np.abs(now.gradient).max())
        apart = self.state.apart(attain(now.y, self.state.weights, self.state.target(now.share)))
        return now.share * self.cap / max(apart, self.cap)

    def search(self, now: _Answer, step: Any) -> _Answer:
        """Find an answer on the line of a step, up to 16 times its length, where at most half of
        the slope is left.
        """
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
        """Answer h; on each face the squared distance of a kernel is a parabola in β_i, which leads
        to β_i.
        """
        nominal, weights, eps = self.state.nominal, self.state.weights, self.blur
        square: Any = self.cap**2
        A, N, K = nominal.shape
        power = 2 / (2 - self.state.ambiguity.order) if eps else 0.0
        most = max((4 * A) ** (1 / power), (4 * eps) ** (1 / (power - 1))) if eps else self.beta
        beta, low, high = most * np.ones(N), np.zeros(N), (most if eps else 1.0) * np.ones(N)
        capped = np.ones(N, dtype=bool)
        for trial in range(TRIALS):
            y = project(nominal + beta[:, None] * h[:, None], self.columns)
            face = y > 0
            ph = np.where(face, h[:, None], 0.0)
            average = ph.sum(axis=2, keepdims=True) / face.sum(axis=2, keepdims=True)
            ph -= np.where(face, average, 0.0)
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
                rest = np.maximum(moved - hph * beta**2, 0.0)
                guess = _root(power, np.maximum(hph, 0.0), eps, rest, most)
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
            slack = np.maximum(0.5 * power * square / beta - eps - beta * hph, eps)
            bent = -strength * beta / slack
        dense = curvature.reshape(A * K, A * K) - (flat * bent[:, None]).T @ flat
        gradient = (self.state.target(share) - mean_of(y, weights)).ravel()
        scale = strength.sum() + (dense.trace() / h.size if eps else 0.0)
        return _Answer(share, h, y, gradient, dense, float(scale))
