"""The proof of ℓ2 balls.

**ℓ2.** With d = t u − τ, a row is *active* where ŷ + d > 0. For any τ, t = κ x_a, and sums over active or idle entries,

    Φ = τ Σ_idle ŷ + t Σ_active ŷ u + ½ Σ_active d² − ½ Σ_idle ŷ²,        U = Σ_i w_i [½ θ² + Σ_a Φ_ia]/κ_i.

The kernel is y = (ŷ + d)/M where active, else 0, with M = 1 + m, m = Σ_active d − Σ_idle ŷ, as ŷ sums to 1. So

    (y − ŷ)·u = [Σ_active d u − m Σ_active ŷ u]/M − Σ_idle ŷ u,      ‖y − ŷ‖ ≤ √(Σ_active d² + Σ_idle ŷ²) + |m|.

No digits are lost in any of these sums, however many entries are active and however small the radius is: all terms are of the size of the move.

**Rounding.** d as computed defines y: no error. In Φ it is off by ε/2 (t|u| + 2|d|), which moves ½Σd² by ε (t Σ|d| + Σd²). An entry counts as active if
ŷ (1 − (n + 8) ε) + d > 0 as computed, hence surely; what is lost of Φ where it should have been is of the order ε². With n = depth(K) + 16 for
the sums, for ŷ, which is data divided by its sum, and for the tables of unlisted states, and with spread = Σ_active |d| + Σ_idle ŷ,

    Φ is off by n ε [|τ| (1 + Σ_idle ŷ) + t (2|ŷ·u| + Σ|d|) + 2 Σd² + Σ_idle ŷ²],    m by n ε spread,    (y − ŷ)·u by 4 n ε spread for |m| ≤ 0.1.

The brackets are at least |Φ|. A bound below 0, others do not count, has ½ θ² ≤ Σ_a |Φ_a|: with n + A for n, the brackets pay for ½ θ² and for adding up.
No margin relative to the bound does: it may be small against what is added up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.certificate.dense import Block
from drmdp.certificate.sums import BLOCK, EPS, depth, finish, mean_worth, normalise, prefix, weigh_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.sets import AmbiguitySet

COUNT, MASS, MOVED, GAIN, SQUARES, IDLE, IDLE_U, IDLE_SQUARES, LEVEL = range(9)
"""Sums over the active entries: number, d, |d|, d u, d²; over the idle ones: ŷ, ŷ u, ŷ²; and the threshold."""
SETTLED = 1e-14  # a mass this close to 1 needs no better threshold
TRIALS = 4
LEAST, MOST = 1e-150, 1e150  # multipliers in between are usable: their squares are numbers
FAINT = (
    1e-13  # probabilities that are doubles cannot be moved by less as precisely as L would have it: nature leaves them
)
PLAIN, FLAT = 1e9, 1e-13  # beyond that multiplier, stakes this near to the top are the top's


class Row(NamedTuple):
    """One row of a state: K probabilities from data[at] on, times scale, and their stakes from u[first] on."""

    data: Array
    at: int
    K: int
    u: Array
    first: int
    scale: float


@njit(**LEAN)
def sum_row(row, t, tau, low, view, unlisted, flat, sums):
    """Fill the sums of a row at t and the threshold τ + low.

    reads   row, t, tau, low, view, unlisted, flat (stakes of the row above −flat are 0, and count so for unlisted states)
    fills   sums (9,) but sums[LEVEL]
    """
    data, at, K, u, first, scale = row
    for k in range(LEVEL):
        sums[k] = 0.0
    sure = 1.0 - (depth(K) + 24) * EPS
    for lo in range(0, K, BLOCK):
        count, mass, moved, gain, squares, idle, idle_u, idle_squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(lo, min(lo + BLOCK, K)):
            p = data[at + j] * scale
            z = u[first + j]
            d = (t * z - tau) - low
            if not p * sure + d > 0.0:
                idle += p
                idle_u += p * z
                idle_squares += p * p
            elif not (unlisted and d > 0.0):  # else it is in the prefix
                count += 1.0
                mass += d
                moved += abs(d)
                gain += d * z
                squares += d * d
        sums[COUNT] += count
        sums[MASS] += mass
        sums[MOVED] += moved
        sums[GAIN] += gain
        sums[SQUARES] += squares
        sums[IDLE] += idle
        sums[IDLE_U] += idle_u
        sums[IDLE_SQUARES] += idle_squares
    k = prefix(view, t, tau, low) if unlisted else 0
    if k > 0:
        _add_prefix(k, t, tau, low, view, flat, sums)


@njit(**LEAN)
def _add_prefix(k, t, tau, low, view, flat, sums):
    """Add the k highest states to the sums of a row; those above −flat, which are as high as the highest, are all among them.

    With P₁ = −Σ u and P₂ = Σ u² over the states above −flat and e = −τ − low, which each of them has for d, raising them to 0 adds t P₁ to Σ d,
    e P₁ − t P₂ to Σ d u and t (2 e P₁ − t P₂) to Σ d². If states below are active, t flat < e, and none of these exceeds the sum it is added to.

    reads   k ≥ 1, t, tau, low, view, flat
    fills   sums
    """
    top = prefix(view, 1.0, -flat, 0.0) if flat > 0.0 else 0
    edge = -tau - low
    if k <= top:
        sums[COUNT] += top
        sums[MASS] += top * edge
        sums[MOVED] += top * edge
        sums[SQUARES] += top * edge * edge
        return
    last = view.down[k - 1]
    d = (t * last - tau) - low
    mass = t * view.rise[k] + k * d
    gain = t * view.rise2[k] + d * view.rise[k] + last * mass
    squares = t * t * view.rise2[k] + 2.0 * t * d * view.rise[k] + k * d * d
    if top > 1:
        end, rise = view.down[top - 1], view.rise[top]
        first = -(rise + top * end)
        second = view.rise2[top] + 2.0 * end * rise + top * end * end
        mass += t * first
        gain += edge * first - t * second
        squares += t * (2.0 * edge * first - t * second)
    sums[COUNT] += k
    sums[MASS] += mass
    sums[MOVED] += mass
    sums[GAIN] += gain
    sums[SQUARES] += squares


@njit(**INLINE)
def _settle(row, t, tau, view, unlisted, flat, sums):
    """Fill the sums of a row at t after Newton steps for the threshold, which may have been kept in float32.

    A threshold is a sum of two numbers: of very many active entries, the last digit of one alone would move the mass too much.

    reads   row, t, tau (where to begin), view, unlisted, flat
    fills   sums (9,); sums[LEVEL] is the threshold as rounded
    """
    low = 0.0
    for trial in range(TRIALS):
        sum_row(row, t, tau, low, view, unlisted, flat, sums)
        off = sums[MASS] - sums[IDLE]
        if trial == TRIALS - 1 or not sums[COUNT] > 0.5 or not (abs(off) > SETTLED and abs(off) < 0.1):
            break
        step = low + off / sums[COUNT]
        new = tau + step
        low = step - (new - tau)
        tau = new
    sums[LEVEL] = tau


@njit(**INLINE)
def dual_of(sums, t, nominal, n):
    """Upper bound on Φ of a row.

    reads   sums (9,), t, nominal (ŷ·u), n (depth of the sums)
    returns Φ, its margin included
    """
    tau = sums[LEVEL]
    value = tau * sums[IDLE] + t * (nominal - sums[IDLE_U]) + 0.5 * sums[SQUARES] - 0.5 * sums[IDLE_SQUARES]
    size = abs(tau) * (1.0 + sums[IDLE]) + t * (2.0 * abs(nominal) + sums[MOVED])
    return value + n * EPS * (size + 2.0 * sums[SQUARES] + sums[IDLE_SQUARES])


@njit(**INLINE)
def move_of(sums, nominal, n):
    """How a row moves, and how far.

    reads   sums (9,), nominal (ŷ·u), n (depth of the sums)
    returns (y − ŷ)·u, its margin, and a bound on ‖y − ŷ‖; zeros if the row is unusable and nature leaves it as it is
    """
    off = sums[MASS] - sums[IDLE]
    spread = sums[MOVED] + sums[IDLE]
    far = math.sqrt(sums[SQUARES] + sums[IDLE_SQUARES]) + abs(off)
    far = (1.0 + n * EPS) * far + n * EPS * spread
    if not (abs(off) <= 0.1 and far < 4.0):
        return 0.0, 0.0, 0.0
    gain = (sums[GAIN] - off * (nominal - sums[IDLE_U])) / (1.0 + off) - sums[IDLE_U]
    return gain, 4.0 * n * EPS * spread, far


@njit(**INLINE)
def is_usable(t):
    """Whether a multiplier and its square are positive numbers.

    reads   t
    returns a bool
    """
    return t > LEAST and t < MOST


@njit(**INLINE)
def raise_to_top(u, first, K, bend, kappa):
    """Raise stakes that are the top's up to rounding to it, where a multiplier is so large that it would tell them apart.

    U is then of larger stakes, and holds. L is too large by no more than was raised. Unlisted states are raised in `sum_row`.

    reads   first, K, bend, kappa (N,)
    fills   u
    returns the largest rise
    """
    most = 1.0
    for i in range(kappa.size):
        most = max(most, kappa[i])
    if not bend * most > PLAIN:
        return 0.0
    for j in range(first, first + K):
        u[j] = 0.0 if u[j] > -FLAT else u[j]
    return FLAT


@njit(**LEAN)
def _visit(layout, view, s, a, x, bend, claim, work):
    """Add an action's Φ_ia to the duals and its squared distances to what is spent, and find its gains.

    x is its probability, and κ_i x the t of Φ. The t of nature's rows is κ_i bend for order ∞ and bend itself for order 2.

    reads   layout, view, s, a, x, bend, claim.memory, claim.every, work.u, work.kernels[1] (κ)
    fills   work.scale[a], work.own[a], work.gain[a], work.kernels[0] (duals; inf if t is unusable), work.kernels[2] (spent), work.sums
    returns the margin of Σ_i w_i (ŷ·u + gain)
    """
    A, N = work.scale.shape
    tau, every = claim.memory.by_row[s, a], claim.every
    u, scale, own, sums, w = work.u, work.scale, work.own, work.sums, layout.weights
    dual, kappa, spent = work.kernels[0], work.kernels[1], work.kernels[2]
    lo, K = layout.indptr[s * A + a], layout.indptr[s * A + a + 1] - layout.indptr[s * A + a]
    first, n = lo - layout.indptr[s * A], depth(K) + 16
    flat = raise_to_top(u, first, K, bend, kappa if every else w)
    margin = flat
    weigh_rows(layout, s, a, work)
    for i in range(N):
        row, settled = Row(layout.data, N * lo + i * K, K, u, first, scale[a, i]), -1.0
        work.gain[a, i] = 0.0
        margin += w[i] * n * EPS * abs(own[a, i])
        t = kappa[i] * x
        if is_usable(t):
            _settle(row, t, tau[i], view, layout.unlisted, flat, sums)
            settled = t
            dual[i] += dual_of(sums, t, own[a, i], n + A)
        elif x > 0.0:
            dual[i] = np.inf
        t = kappa[i] * bend if every else bend
        if is_usable(t):
            if not abs(t - settled) <= 4.0 * EPS * t:  # or the sums are those above
                _settle(row, t, tau[i], view, layout.unlisted, flat, sums)
            work.gain[a, i], more, far = move_of(sums, own[a, i], n)
            margin += w[i] * more
            spent[i] += far * far
    return margin


@njit(**KERNEL)
def states(start, stop, layout, view, claim, bounds, work):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal.

    reads   layout, view, claim
    fills   bounds, work
    """
    A, N = layout.available.shape[1], layout.weights.size
    memory, every, share = claim.memory, claim.every, bounds.share
    worth, margin, w = work.worth, work.actions[0], layout.weights
    dual, kappa, spent = work.kernels[0], work.kernels[1], work.kernels[2]
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        theta, x, bend = layout.radius[s], claim.policy[s], memory.by_action[s]
        common = 0.0
        for a in range(A):
            common += bend[a]
        for i in range(N):
            kappa[i] = 0.0 if theta == 0.0 else memory.by_kernel[s, i] if every else common
            dual[i] = 0.5 * theta * theta
            spent[i] = 0.0
        for a in range(A):
            if layout.available[s, a] and (bend[a] > 0.0 or x[a] > 0.0):
                t = bend[a] if theta > 0.0 else 0.0
                margin[a] = _visit(layout, view, s, a, x[a], t, claim, work)
        _share(theta, spent, every, w, A, share[s])
        for a in range(A):
            if not layout.available[s, a]:
                continue
            if not (bend[a] > 0.0 or x[a] > 0.0):
                worth[a] = mean_worth(layout, s, a, work)
                continue
            worth[a] = -margin[a] - (N + 8) * EPS
            for i in range(N):
                worth[a] += w[i] * (work.own[a, i] + share[s, i] * work.gain[a, i])
        above = nominal_of(x, w, work) if theta == 0.0 else _above(dual, kappa, every, w)
        finish(s, base, unit, above, layout, view, claim, bounds, work)


@njit(**INLINE)
def _share(theta, spent, every, w, A, share):
    """Share of the move of each kernel that is surely in the ball.

    reads   theta, spent (N,) of squared distances, every (else their mean counts), w (N,), A (how many actions)
    fills   share (N,), at most 1 each
    """
    N = w.size
    most = theta * (1.0 - (A + N + 16) * EPS) if theta >= FAINT else 0.0
    total = 0.0
    for i in range(N):
        total += w[i] * spent[i]
    for i in range(N):
        far = math.sqrt(spent[i] if every else total)
        share[i] = most / far if far > most else 1.0


@njit(**INLINE)
def _above(dual, kappa, every, w):
    """Upper bound on Σ_a x_a Σ_i w_i y_ia·u from the duals.

    reads   dual (N,) = ½ θ² + Σ_a Φ_ia, kappa (N,), every (each kernel is bounded on its own), w (N,)
    returns the bound, at most 0: an unconstrained nature gains nothing above the top, where u is 0
    """
    upper, size = 0.0, 0.0
    for i in range(w.size):
        bound = dual[i] / kappa[i] if kappa[i] > 0.0 else np.inf
        if every and not bound < 0.0:
            bound = 0.0
        upper += w[i] * bound
        size += w[i] * abs(bound)
    upper += (w.size + 8) * EPS * size
    return upper if upper < 0.0 else 0.0


@njit(**INLINE)
def nominal_of(x, w, work):
    """Upper bound on Σ_a x_a Σ_i w_i ŷ_ia·u, for states where nature has no room.

    reads   x (A,), w (N,), work.own, work.actions[0] (margins)
    returns the bound, at most 0
    """
    upper = 0.0
    for a in range(x.size):
        if x[a] > 0.0:
            upper += x[a] * (work.actions[0, a] + (w.size + x.size + 8) * EPS)
            for i in range(w.size):
                upper += x[a] * w[i] * work.own[a, i]
    return min(upper, 0.0)


# ---------------------------------------------------------------------- dense data


def dual_rows(ball: AmbiguitySet, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """R_i of each kernel and Σ|terms|, (n, N) each: the formula of `drmdp.certificate.dense` for ℓ2."""
    played = np.broadcast_to(data.available[:, :, None], tau.shape)
    m = mu[:, None, :, None]
    d = xz - tau[..., None]
    moved = d / (2 * m)  # d² may underflow
    gain = np.where(data.nominal + moved > 0, d * (data.nominal + moved / 2), -m * data.nominal * data.nominal)
    gain = np.where(data.allowed[:, :, None, :], gain, 0.0)
    budget = mu * (data.radius * data.radius)[:, None]
    value = np.where(played, tau, 0.0).sum(axis=1) + gain.sum(axis=(1, 3)) + budget
    size = np.where(played, np.abs(tau), 0.0).sum(axis=1) + 2 * np.abs(gain).sum(axis=(1, 3)) + budget
    return value, size
