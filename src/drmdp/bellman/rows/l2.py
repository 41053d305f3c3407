"""The ℓ2 row: the projection path y(t) = Proj_Δ(ŷ + t u) = (ŷ + t u − τ)⁺.

One pass at (t, τ), with sums over the active entries {ŷ + t u > τ} (c their number; s_y, s_u, s_uu, s_yu; s_i = Σ ŷ² over the others):

    mass     M = s_y + t s_u − c τ                                     (1 when τ is right)
    Newton   τ⁺ = (s_y + t s_u − 1)/c,   and while the active set stays, τ(t) = (s_y + t s_u − 1)/c for every t
    value    V = y·u = s_yu + t s_uu − τ⁺ s_u,    distance  E = ‖y − ŷ‖² = t² s_uu − 2 t τ⁺ s_u + c τ⁺² + s_i
    slopes   D = dV/dt = s_uu − s_u²/c,           dE/dt = 2 t D
    dual     Φ(τ) = τ + t s_yu − τ s_y + ½ (t² s_uu − 2 t τ s_u + c τ²) − ½ s_i  ≥  max_{y∈Δ} t u·y − ½ ‖y − ŷ‖²   for every τ.

Unlisted states have ŷ = 0 and are active iff u > τ/t: a prefix of the sorted u, counted by a search and summed by prefix sums; listed
entries of that prefix are in those sums already.

**Passes that read nothing.** From (t₀, τ₀) to (t, τ) no ŷ + t u − τ changes by more than max(|τ − τ₀|, |t − t₀ + τ − τ₀|), as −1 ≤ u ≤ 0. A pass also
finds the smallest |ŷ + t u − τ|; while that is more, the sums stay what they are and the row is not read again.

**Whole vectors.** A row is read up to a multiple of `WIDE` entries, into the next one; the stakes there are set to `NEVER`, which no t makes active. The
entries left over would otherwise cost as much as a third of a row of 30.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import FAST, INLINE, LEAN, njit
from drmdp.layout.point import Order, row_scales
from drmdp.layout.sorting import count_above

WIDE = 8  # entries; compiled loops take so many at a time
NEVER = -1e300  # below every stake: never active
PROBE = 1e-13  # t below which rounding hides which entries are active
C, SY, SU, VALUE, SPENT, SLOPE, DUAL, SUU, SYU, SI, T0, TAU0, MARGIN = range(13)
FIELDS = 13
"""What is kept of each row, (FIELDS, N) an action."""


class State(NamedTuple):
    """One normalised state."""

    y: Array  # N rows per action
    ptr: Any  # (A + 1,) where each action's entries begin
    u: Array  # entries, and 2·WIDE more
    w: Array  # (N,)
    cost: Array  # (A,), inf where unavailable
    nominal: Array  # (A,)
    theta: float
    order: Order
    unlisted: bool
    scale: Array  # (A, N)


@njit(**INLINE)
def state_of(layout, order, s, scratch):
    """Gather state s after it was normalised.

    reads   layout, order, s, scratch
    fills   scratch: scale, ptr
    returns a State
    """
    A, N = scratch.scale.shape
    row_scales(layout, s, scratch.scale)
    first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
    for a in range(A + 1):
        scratch.ptr[a] = layout.indptr[s * A + a] - first
    theta = min(layout.radius[s], 2.0 * math.sqrt(A))  # no distance exceeds √(2A)
    return State(
        layout.data[N * first : N * last], scratch.ptr, scratch.u, layout.weights, scratch.cost, scratch.nominal, theta,
        order, layout.unlisted, scratch.scale,
    )  # fmt: skip


@njit(**INLINE)
def forget(rows):
    """Nothing is known of the rows of an action: the next pass reads them.

    fills   rows
    """
    for i in range(rows.shape[1]):
        rows[MARGIN, i] = -1.0


@njit(fastmath=FAST, **LEAN)
def visit_rows(state, first, last, share, kappa, close, tau, rows, off):
    """Pass over the rows of the actions first … last − 1 that have a share, at t_i = share·κ_i, and move τ by a Newton step.

    One call for all of them: to hand over a state takes as long as to read two rows. `first` is no literal, or this is compiled twice.
    A row is repeated while its mass is further than `close` from 1. What `rows` holds is of the same y and u, or forgotten.

    reads   state, first, last, share (A,), kappa (N,), close
    fills   tau (A, N), NaN where nothing is known; rows (A, FIELDS, N); off (A,): how far from 1 the masses were
    """
    for a in range(first, last):
        if share[a] > 0.0:
            off[a] = _action(state, a, share[a], kappa, close, tau[a], rows[a])


@njit(**INLINE)
def _action(state, a, share, kappa, close, tau, rows):
    """Pass over the N rows of an action.

    Below PROBE a row is taken at PROBE, V and E are those of its first piece, and t V + t² n/8 ≥ Φ, n the number of next states, takes the
    place of Φ.

    reads   state, a, share, kappa (N,), close
    fills   tau (N,), rows (FIELDS, N)
    returns how far from 1 the masses were
    """
    lo, hi, scale = state.ptr[a], state.ptr[a + 1], state.scale[a]
    slack = 0.0
    whole = _pad(state.u, lo, hi)
    entries = lo, hi - lo, whole
    for i in range(kappa.size):
        t = max(kappa[i] * share, PROBE)
        th = tau[i]
        new = not math.isfinite(th)
        if i > 0 and not math.isfinite(th):  # the row before knows better than nothing
            th = tau[i - 1] * t / max(kappa[i - 1] * share, PROBE)
        c, sy, su, suu, syu, si = rows[C, i], rows[SY, i], rows[SU, i], rows[SUU, i], rows[SYU, i], rows[SI, i]
        mass = sy + t * su - c * th
        change = max(abs(th - rows[TAU0, i]), abs(t - rows[T0, i] + th - rows[TAU0, i]))
        if new or not (change < rows[MARGIN, i] and abs(mass - 1.0) <= close):
            th, mass, c, sy, su, suu, syu, si = _read_row(state, entries, i, scale[i], t, th, close, rows)
        slack = max(slack, abs(mass - 1.0))
        dual = th + t * syu - th * sy + 0.5 * (t * t * suu - 2.0 * t * th * su + c * th * th) - 0.5 * si
        th = (sy + t * su - 1.0) / c
        value = syu + t * suu - th * su
        distance = max(t * t * suu - 2.0 * t * th * su + c * th * th + si, 0.0)
        if kappa[i] * share < PROBE:
            t = kappa[i] * share
            dual = t * value + 0.125 * t * t * max(hi - lo, state.order.rank.size)
            value -= (PROBE - t) * rows[SLOPE, i]
            distance = t * t * rows[SLOPE, i]
        tau[i] = th
        rows[VALUE, i], rows[SPENT, i], rows[DUAL, i] = value, distance, dual
    _unpad(state.u, lo, hi, whole)
    return slack


@njit(**INLINE)
def _pad(u, lo, hi):
    """Let no entry behind those of an action be active; their stakes are set aside at the end of u.

    reads   lo, hi
    fills   u
    returns the length of a row in whole vectors
    """
    whole = (hi - lo + WIDE - 1) // WIDE * WIDE
    for j in range(hi, lo + whole):
        u[j - hi + u.size - WIDE] = u[j]
        u[j] = NEVER
    return whole


@njit(**INLINE)
def _unpad(u, lo, hi, whole):
    """Undo `_pad`.

    reads   lo, hi, whole
    fills   u
    """
    for j in range(hi, lo + whole):
        u[j] = u[j - hi + u.size - WIDE]


@njit(**INLINE)
def _read_row(state, entries, i, factor, t, th, close, rows):
    """Read row i of an action at (t, τ), again after Newton steps while its mass is further than `close` from 1.

    A τ that leads below the top, where nothing may be in order, is believed only after a look at the end of the top.

    reads   state, entries (where they begin, how many, and in whole vectors), i, factor (its scale), t, th, close
    fills   rows[:, i]: the sums, where they were taken, and how far they hold
    returns τ, the mass, and the sums c, s_y, s_u, s_uu, s_yu, s_i
    """
    y, u, order, unlisted = state.y, state.u, state.order, state.unlisted
    lo, K, whole = entries
    at = state.w.size * lo + i * K
    y0, u0 = np.uint64(at), np.uint64(lo)  # unsigned indices vectorise
    read = np.uint64(whole if at + whole <= y.size else K)
    margin = 0.0
    repeats = 0
    guess = th
    early = unlisted and not th >= t * order.level
    th = t * order.level if early else th
    while True:
        c = 0.0
        sy = 0.0
        su = 0.0
        suu = 0.0
        syu = 0.0
        si = 0.0
        cut = th if unlisted else np.inf
        nearest = np.int64(0x7FF0000000000000)  # the bits of inf: positive numbers compare as their bits do
        for j in range(read):
            p = y[y0 + j] * factor
            z = u[u0 + j]
            tz = t * z
            h = p + tz - th
            active = h > 0.0
            listed = active and tz <= cut
            mp = p if active else 0.0
            mz = z if listed else 0.0
            lost = 0.0 if active or z == NEVER else p
            c += 1.0 if listed else 0.0
            sy += mp
            su += mz
            suu += mz * z
            syu += mp * z
            si += lost * lost
            bits = np.float64(abs(h)).view(np.int64)
            nearest = bits if bits < nearest else nearest
        margin = np.int64(nearest).view(np.float64)
        if unlisted:
            k = count_above(order, t, th)
            margin = min(margin, _prefix_margin(order.u, t, th, k))
            c += k
            su += order.sum1[k]
            suu += order.sum2[k]
        mass = sy + t * su - c * th
        if early and mass < 1.0 and math.isfinite(guess):
            early, th = False, guess
            continue
        early = False
        if abs(mass - 1.0) <= close or repeats >= 60:
            break
        if c < 0.5 or not math.isfinite(th):
            th = _safe_threshold(y, at, u, lo, K, factor, t, order, unlisted)
        else:
            th = (sy + t * su - 1.0) / c
        repeats += 1
    rows[C, i], rows[SY, i], rows[SU, i], rows[SUU, i], rows[SYU, i], rows[SI, i] = c, sy, su, suu, syu, si
    rows[T0, i], rows[TAU0, i], rows[MARGIN, i] = t, th, margin
    rows[SLOPE, i] = max(suu - su * su / c, 0.0)
    return th, mass, c, sy, su, suu, syu, si


@njit(**INLINE)
def _prefix_margin(u, t, tau, k):
    """How far the unlisted states are from a change.

    reads   u (S,) descending, t, tau, k (the length of the prefix)
    returns the smallest |t u − τ|
    """
    above = t * u[k - 1] - tau if k > 0 else np.inf
    below = tau - t * u[k] if k < u.size else np.inf
    return min(above, below)


@njit(**INLINE)
def _safe_threshold(y, at, u, first, K, factor, t, order, unlisted):
    """A τ from which Newton's method is monotone.

    reads   y from at on, u from first on, K, factor, t, order, unlisted
    returns max(ŷ + t u) − 1
    """
    highest = t * order.u[0] if unlisted else -1e300
    for j in range(K):
        highest = max(highest, y[at + j] * factor + t * u[first + j])
    return highest - 1.0
