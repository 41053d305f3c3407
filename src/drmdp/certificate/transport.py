"""The proof of transport; see `drmdp.certificate.compressed`. Costs and lists are those of `drmdp.layout.grounded`: D ≤ 1, D(j, j) = 0.

Order 1 is proved on the mean kernel, as if it were the only one; order ∞ kernel by kernel. For each kernel i, at any price τ > 0 and with t_a = τ x_a,

    Σ_a x_a y_ia·u_a  ≤  (B + Σ_a h_ia(t_a))/τ,        h_ia(t) = Σ_j ŷ_ia(j) max_k [t u_k − D(j, k)],

for every y_i that costs at most B: any plan gives Σ π (t u_k − D) ≤ h. Without a budget τ is so small that every D > 0 exceeds what it could gain, and the same
bound says what the moves bring that cost nothing.

L: every source j goes to its best targets at t₁ and t₂ in the shares 1 − f and f, found here among all of its list. What this plan costs bounds W_D
from above; W_D is convex and 0 at the data, so that the share s = min(1, B/cost) of the way costs at most B.

**Rounding.** With k the best target of j, D(j, k) ≤ t (u_k − u_j) ≤ t, so that t u_k − D(j, k) is off by at most 2 ε t, and so is h, beside
(depth(K) + 16) ε t for the sum of numbers of size ≤ t. A plan's cost is a sum of numbers ≥ 0, right up to (depth(K) + 16) ε, relatively, and its value
one of numbers of size ≤ 1. D itself is off by 2 ε, relatively, so by 2 ε t where it is used. The mean kernel is off by 4 (K + N + 4) ε, relatively, in all
of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp.certificate import transport_dense
from drmdp.certificate.sums import BLOCK, EPS, depth, finish, normalise, row_sum
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.grounded import plain

STILL = 1e-150  # a price at which only moves that cost nothing are made


@njit(**LEAN)
def _target(lists, j, t, u):
    """The best target of source j at t; at ∞ the nearest of the highest stake.

    reads   lists, j, t, u: stakes of the targets
    returns its place in the lists
    """
    best, at = -np.inf, lists.ptr[j]
    for k in range(lists.ptr[j], lists.ptr[j + 1]):
        x, here = u[lists.target[k]], u[lists.target[at]]
        score = x if t == np.inf else t * x - lists.cost[k]
        if score > best or (score == best and x > here):
            best, at = score, k
    return at


@njit(**LEAN)
def _gain(t, y, scale, u, source, lists, off):
    """Bound on h(t) of a row.

    reads   t, y (K,), scale, u: stakes of the targets, source (K,), lists, off (of ŷ)
    returns the bound
    """
    total = 0.0
    for lo in range(0, y.size, BLOCK):
        part = 0.0
        for j in range(lo, min(lo + BLOCK, y.size)):
            if y[j] > 0.0:
                best = -np.inf
                for k in range(lists.ptr[source[j]], lists.ptr[source[j] + 1]):
                    best = max(best, t * u[lists.target[k]] - lists.cost[k])
                part += y[j] * best
        total += part
    return scale * total + (depth(y.size) + 24 + off) * EPS * t


@njit(**LEAN)
def _plan(mixture, y, scale, u, source, lists, off):
    """Follow what is claimed of a row: where each source goes.

    reads   mixture (3,): t₁, t₂, f; y (K,), scale, u: stakes of the targets, source (K,), lists, off (of ŷ)
    returns what it is surely worth, and a bound on its cost
    """
    f = mixture[2] if mixture[2] >= 0.0 and mixture[2] <= 1.0 else 0.0
    value, cost = 0.0, 0.0
    for lo in range(0, y.size, BLOCK):
        worth, spent = 0.0, 0.0
        for j in range(lo, min(lo + BLOCK, y.size)):
            if not y[j] > 0.0:
                continue
            for side in range(2):
                at = lists.ptr[source[j]]
                if mixture[side] > 0.0:
                    at = _target(lists, source[j], mixture[side], u)
                mass = y[j] * (f if side == 1 else 1.0 - f)
                worth += mass * u[lists.target[at]]
                spent += mass * lists.cost[at]
        value += worth
        cost += spent
    n = 2 * depth(y.size) + 24 + off
    return scale * value - n * EPS, scale * cost * (1.0 + n * EPS)


@njit(**INLINE)
def _row_at(layout, s, a, i, scale):
    """Where row (i, a) of state s is.

    reads   layout, s, a, i
    fills   scale (A, N)
    returns its first number, the first entry of the pair and their number
    """
    A, N = scale.shape
    lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
    at = N * lo + i * (hi - lo)
    total = row_sum(layout.data, at, hi - lo)
    scale[a, i] = 1.0 / total if total > 0.0 else 0.0
    return at, lo, hi - lo


@njit(**KERNEL)
def _states(start, stop, layout, view, claim, bounds, work, moves):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal.

    reads   layout, view, claim, moves: lists, the list of each entry, and the kernels behind the mean (0: rows are kernels)
    fills   bounds, work
    """
    A, N = work.scale.shape
    lists, sources, n_mean = moves
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        x, first, above = claim.policy[s], layout.indptr[s * A], 0.0
        budget = layout.radius[s]
        for a in range(A):
            work.worth[a] = -(N + 8) * EPS
        for i in range(N):
            tau, total, spent, size = _price(claim.memory, s, i, x), budget, 0.0, budget
            if not budget > 0.0:
                tau = STILL
            for a in range(A):
                work.actions[0, a], work.actions[1, a] = 0.0, 0.0
                if not layout.available[s, a]:
                    continue
                at, lo, K = _row_at(layout, s, a, i, work.scale)
                y, source = layout.data[at : at + K], sources[lo : lo + K]
                u = view.u if layout.common else work.u[lo - first : lo - first + K]
                off = 4.0 * (K + n_mean + 4) if n_mean > 0 else 0.0
                claimed = claim.memory.by_row[s, a]
                mixture = claimed[3 * i : 3 * i + 3] if claimed.size > 3 else claimed
                work.actions[1, a], cost = _plan(mixture, y, work.scale[a, i], u, source, lists, off)
                spent += cost
                work.actions[0, a] = _still(y, work.scale[a, i], work.u[lo - first : lo - first + K], off)
                if x[a] > 0.0 and tau > 0.0:
                    h = _gain(tau * x[a], y, work.scale[a, i], u, source, lists, off)
                    total += h
                    size += abs(h)
            allowed = budget * (1.0 - (A + 16) * EPS)
            share = 1.0 if spent <= allowed else (allowed / spent if spent < np.inf else 0.0)
            for a in range(A):
                moved = (1.0 - share) * work.actions[0, a] + share * work.actions[1, a]
                work.worth[a] += layout.weights[i] * (moved - 8.0 * EPS)
            best = (total + (A + 16) * EPS * size) / tau if tau > 0.0 else 0.0
            above += layout.weights[i] * (min(best, 0.0) if best == best else 0.0)
            for n in range(i, bounds.share.shape[1] if n_mean > 0 else i + 1):
                bounds.share[s, n] = share
        finish(s, base, unit, min(above + (N + 8) * EPS, 0.0), layout, view, claim, bounds, work)


@njit(**INLINE)
def _price(memory, s, i, x):
    """The price τ that is claimed for kernel i: Σ t_a over the played actions, for order ∞ times its own number.

    reads   memory, s, i, x (A,)
    returns τ, or 0 if it is none
    """
    total = 0.0
    for a in range(x.size):
        if x[a] > 0.0 and memory.by_action[s, a] > 0.0:
            total += memory.by_action[s, a]
    if memory.by_kernel.shape[1] > 0:
        total *= max(memory.by_kernel[s, i], 0.0)
    return total if total > 0.0 and total < 1e200 else 0.0


@njit(**INLINE)
def _still(y, scale, u, off):
    """What a row of the data is surely worth.

    reads   y (K,), scale, u (K,), off (of ŷ)
    returns it
    """
    total = 0.0
    for j in range(y.size):
        total += y[j] * u[j]
    return scale * total - (y.size + 16 + off) * EPS


@dataclass(frozen=True)
class Proof:
    """The proof of transport around the mean kernel, or around each."""

    mean: bool
    dual_rows = staticmethod(transport_dense.dual_rows)
    feasible = staticmethod(transport_dense.feasible)
    attain = staticmethod(transport_dense.attain)

    def states(self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any, work: Any) -> None:
        """Prove L, U and the share of nature's move for the states start … stop − 1."""
        radius = layout.radius / layout.unit
        radius.setflags(write=False)
        data, n_mean = plain(layout)._replace(radius=radius), 0
        if self.mean:
            n_mean = layout.weights.size
            data = data._replace(data=layout.mean, weights=np.ones(1))
            work = work._replace(scale=work.scale[:, :1].copy())
        _states(start, stop, data, view, claim, bounds, work, (layout.lists, layout.source, n_mean))


MEAN, EACH = Proof(mean=True), Proof(mean=False)
