"""Rows of ℓ∞ balls and bounds on them, for `linf_radii` and `orders`; where every row bends by the full radius, the proof is `native/judge/linf.hpp`.

L: the value of rows bent by the radii handed over. U: with a threshold τ_a for each row, whatever it is,

    h_a(r) = ŷ·u + r Σ_{u>τ_a} (u − τ_a) + Σ_{u<τ_a} (τ_a − u) min(r, ŷ)      bounds the row's value at r,

with equality at the pivot's u.

**Rounding.** A walk takes min(r, ŷ) from every entry and hands it out from the top, r to each and to the last what is left. What arrives is what was
taken up to (n + steps) ε/2, relatively; so after division by that no entry has changed by more than r (1 + (n + steps) ε), which the radius makes
room for, and the gain is off by 2 (n + steps) ε times the mass. Comparisons u > τ are exact, and the terms of h have one sign but ŷ·u.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.certificate.sums import BLOCK, EPS, add, depth, normalise, prefix, weigh_rows
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.sorting import rank


class Spot(NamedTuple):
    """Kernel i of state s, and a policy x (A,) there."""

    layout: Any
    view: Any
    s: int
    i: int
    x: Array


@njit(**INLINE)
def _places(view, unlisted, listed, u, key, place, down):
    """Place of each listed state among all by descending u, and the listed states in that order.

    reads   view.place, unlisted (else the listed states are all), listed (K,), u (K,)
    fills   key, place (K,), down (K,)
    """
    for j in range(u.size):
        key[j] = view.place[listed[j]] if unlisted else -u[j]
    rank(key[: u.size], down, place)
    for n in range(u.size):
        place[down[n]] = key[down[n]] if unlisted else n


@njit(**LEAN)
def _sum_of(view, k):
    """Σ u over the first k states in descending order.

    reads   view.rise, view.down, k
    returns the sum
    """
    return view.rise[k] + k * view.down[k - 1] if k > 0 else 0.0


@njit(**LEAN)
def _supply(y, u, scale, r):
    """Mass that a row gives up when it is bent by r, and what that mass was worth.

    reads   y (K,), u (K,), scale, r
    returns Σ min(r, ŷ) and Σ min(r, ŷ) u
    """
    mass, worth = 0.0, 0.0
    for lo in range(0, u.size, BLOCK):
        part, part_u = 0.0, 0.0
        for j in range(lo, min(lo + BLOCK, u.size)):
            take = min(r, y[j] * scale)
            part += take
            part_u += take * u[j]
        mass += part
        worth += part_u
    return mass, worth


@njit(**LEAN)
def walk(y, u, scale, r, down, place, view, unlisted):
    """Bend a row to the best one within r of ŷ.

    reads   y (K,), u (K,), scale, r, down (K,), place (K,), view, unlisted
    returns its gain, the gain's margin, and the pivot's u
    """
    K = u.size
    n_states = view.down.size if unlisted else K
    mass, taken = _supply(y, u, scale, r)
    supply, total, pivot = mass, 0.0, 0.0
    n, k, steps = 0, 0, 0
    while k < n_states and supply > 0.0:
        steps += 1
        if n < K and place[down[n]] == k:
            j = down[n]
            pivot = u[j]
            got = min(min(r, y[j] * scale) + r, supply)
            total += got * pivot
            supply -= got
            n += 1
            k += 1
            continue
        run = (place[down[n]] if n < K else n_states) - k
        full = min(run, int(supply / r))
        total += r * (_sum_of(view, k + full) - _sum_of(view, k))
        k += full
        supply -= full * r
        if full > 0:
            pivot = view.down[k - 1]
        if full < run and supply > 0.0:
            pivot = view.down[k]
            total += supply * pivot
            supply = 0.0
    return total - taken, 2.0 * (depth(K) + steps + 16) * EPS * mass, pivot


@njit(**INLINE)
def above_of(view, tau):
    """Σ (u − τ)⁺ over all states.

    reads   view.down, view.rise, tau
    returns the sum
    """
    k = prefix(view, 1.0, tau, 0.0)
    return view.rise[k] + k * (view.down[k - 1] - tau) if k > 0 else 0.0


@njit(**INLINE)
def pieces_of(spot, tau, work):
    """Σ_a x_a h_ia as its value at r = 0, the slope of what never ends, and pieces of slope drops[m] that end at ends[m].

    reads   spot, tau (A,), work.u, work.scale, work.own
    fills   work.reals[0] (ends), work.reals[1] (drops)
    returns the first two and the number of pieces
    """
    layout, view, s, i, x = spot
    A, N = work.scale.shape
    ends, drops, first = work.reals[0], work.reals[1], layout.indptr[s * A]
    value, rise = 0.0, 0.0
    n = 0
    for a in range(A):
        if not x[a] > 0.0:
            continue
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        K = hi - lo
        value += x[a] * work.own[a, i]
        above, lost = above_of(view, tau[a]) if layout.unlisted else 0.0, 0.0
        for j in range(K):
            p = layout.data[N * lo + i * K + j] * work.scale[a, i]
            d = work.u[lo - first + j] - tau[a]
            if d > 0.0:
                if not layout.unlisted:
                    above, lost = add(above, lost, d)
            elif p > 0.0:
                ends[n] = p
                drops[n] = -x[a] * d
                n += 1
        rise += x[a] * (above + lost)
    return value, rise, n


@njit(**INLINE)
def share_of(theta, radius, w, terms, joint, share):
    """Share of each radius that is surely in the ball.

    reads   theta, radius (N,), w (N,), terms (entries of the state), joint (the mean of the radii is bounded, else each of them)
    fills   share (N,), at most 1; 0 where it is no radius
    """
    mean, least = 0.0, 1.0
    for i in range(w.size):
        if radius[i] > 0.0:
            mean += w[i] * radius[i]
            least = min(least, radius[i])
    least *= theta / mean if joint and mean > theta else 1.0
    steps = min(1.0 * terms, 4.0 / min(least, theta) + 8.0)
    most = theta * (1.0 - (depth(terms) + steps + w.size + 32.0) * EPS)
    for i in range(w.size):
        far = mean if joint else radius[i]
        share[i] = (most / far if far > most else 1.0) if radius[i] > 0.0 else 0.0


@njit(**INLINE)
def worth_of(layout, view, s, a, radius, share, work):
    """Lower bound on an action's value under its rows bent by their share of the radii, without cost.

    reads   layout, view, s, a, radius (N,), share (N,), work.u, work.scale, work.own
    fills   work.gain[a] (pivots), work.places[0], work.places[1] (of the action's entries, as in `_places`), work.reals[2]
    returns the bound
    """
    A, N = work.scale.shape
    lo, hi, first, w = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A], layout.weights
    K, own = hi - lo, slice(lo - first, hi - first)
    u, down, place = work.u[own], work.places[0, own], work.places[1, own]
    _places(view, layout.unlisted, layout.indices[lo:hi], u, work.reals[2], place, down)
    worth = -(N + 8) * EPS
    for i in range(N):
        row = layout.data[N * lo + i * K : N * lo + (i + 1) * K]
        r = share[i] * radius[i] if share[i] > 0.0 else 0.0
        gain, margin, work.gain[a, i] = walk(row, u, work.scale[a, i], r, down, place, view, layout.unlisted)
        worth += w[i] * ((1.0 + (depth(K) + 16) * EPS) * work.own[a, i] + gain - margin)
    return worth


@njit(**INLINE)
def lower_state(layout, view, s, claim, joint, bounds, work):
    """Prove the worth of each action of state s under nature's rows, bent by what is surely allowed of the radii claimed.

    reads   layout, view, s, claim, joint: whether the radii share a budget
    fills   bounds.share of the state; work.worth, work.gain: the pivots, and the scales
    returns base, unit, and the count behind the margins of U; base is inf for a terminal state
    """
    A = layout.available.shape[1]
    base, unit = normalise(layout, view, s, work)
    entries = layout.indptr[(s + 1) * A] - layout.indptr[s * A]
    if base < np.inf:
        radius, share = claim.memory.by_kernel[s], bounds.share[s]
        share_of(layout.radius[s], radius, layout.weights, entries, joint, share)
        for a in range(A):
            if layout.available[s, a]:
                weigh_rows(layout, s, a, work)
                work.worth[a] = worth_of(layout, view, s, a, radius, share, work)
    return base, unit, 2 * depth(entries) + A + 16
