"""The proof of ℓ1 balls; see `drmdp.certificate.compressed`.

U, at any cut c ≥ 0: Σ_i w_i [½ c θ + Σ_a Σ_t ŷ max(x_a u, −c)], c being the slope x_a|u| at which the budget is used up. L: the value of rows from
which the masses handed over are taken, from the lowest u on, and brought to the top, where u is 0. For order 1 the mean row stands for all kernels.

**Rounding.** x_a u as computed is what other stakes, off by ε/2, would give. U is off by n ε [½ c θ + Σ ŷ |max(x_a u, −c)|], n being the depth of its sums
and of those behind ŷ; for order 1 the mean's own error is in n. Of an entry with ŷ as computed the part take/ŷ is moved: no entry becomes
negative, and the masses moved, as well as their gains, are off by (n + K) ε, relatively, which the budget makes room for.
"""

from __future__ import annotations

import numpy as np

from drmdp.certificate.duals import l1 as dual_rows
from drmdp.certificate.sums import BLOCK, EPS, depth, finish, mean_worth, normalise, weigh_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.layout.sorting import rank

__all__ = ["dual_rows", "states"]


@njit(**LEAN)
def _mass(layout, s, a, e, i, scale, every):
    """Probability of entry e in kernel i, or in the mean.

    reads   layout.data or layout.mean, s, a, e (place in the layout), i, scale (A, N), every (else the mean)
    returns ŷ, divided by the sum of its row, or the mean's probability as it is
    """
    if not every:
        return layout.mean[e]
    A, N = scale.shape
    lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
    return layout.data[N * lo + i * (hi - lo) + e - lo] * scale[a, i]


@njit(**INLINE)
def _cut(layout, s, theta, i, n, every, work):
    """Slope at which the budget of kernel i, or of the mean, is used up.

    reads   layout, s, theta, i, n (entries of played actions), every, work.scale, work.reals[0] (their slopes x_a u), work.places (ranked)
    returns c ≥ 0; 0 if it exceeds their mass
    """
    slope, entry, action, ascending = work.reals[0], work.places[0], work.places[1], work.places[2]
    left = 0.5 * theta
    for m in range(n):
        k = ascending[m]
        left -= _mass(layout, s, action[k], entry[k], i, work.scale, every)
        if left <= 0.0:
            return -slope[k]
    return 0.0


@njit(**INLINE)
def bound_of(layout, s, theta, i, n, cut, terms, every, work):
    """Upper bound on what the played rows of kernel i, or of the mean, are worth; their entries are summed in blocks.

    reads   layout, s, theta, i, n (entries of played actions), cut, terms (depth of the sums), every, work.scale, work.reals[0], work.places
    returns ½ c θ + Σ ŷ max(x u, −c), its margin included
    """
    slope, entry, action = work.reals[0], work.places[0], work.places[1]
    total = 0.0
    for lo in range(0, n, BLOCK):
        part = 0.0
        for k in range(lo, min(lo + BLOCK, n)):
            part += _mass(layout, s, action[k], entry[k], i, work.scale, every) * max(slope[k], -cut)
        total += part
    paid = 0.5 * cut * theta
    return paid + total + terms * EPS * (paid - total)


@njit(**LEAN)
def is_bent(x, mass):
    """Whether an action is played or its rows are to be bent.

    reads   x (its probability), mass (N,) moved in its rows
    returns a bool
    """
    for i in range(mass.size):
        if mass[i] > 0.0:
            return True
    return x > 0.0


@njit(**LEAN)
def _gain(layout, s, a, i, left, terms, every, work):
    """What is surely gained by moving the mass `left` of an action's row to the top.

    reads   layout, s, a, i, left, terms (depth of the sums), every, work.u, work.scale, work.places[2] (the action's entries, ascending)
    returns the gain, its margin taken off; 0 if `left` is no mass
    """
    A = work.cost.size
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    gain = 0.0
    if not left > 0.0:
        return gain
    for m in range(hi - lo):
        e = lo + work.places[2, m]
        take = min(left, _mass(layout, s, a, e, i, work.scale, every))
        gain -= take * work.u[e - first]
        left -= take
        if left <= 0.0:
            break
    return (1.0 - terms * EPS) * gain


@njit(**INLINE)
def _share(theta, mass, terms):
    """Share of the masses that surely is within the budget θ/2; what is no mass does not count.

    reads   theta, mass (A,), terms (depth of the sums)
    returns the share, at most 1
    """
    budget = 0.5 * theta * (1.0 - (terms + mass.size) * EPS)
    moved = 0.0
    for a in range(mass.size):
        if mass[a] > 0.0:
            moved += mass[a]
    return budget / moved if moved > budget else 1.0


@njit(**KERNEL)
def states(start, stop, layout, view, claim, bounds, work):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal.

    reads   layout, view, claim
    fills   bounds, work
    """
    A, N = layout.available.shape[1], layout.weights.size
    slope, entry, action = work.reals[0], work.places[0], work.places[1]
    memory, every, share, w = claim.memory, claim.every, bounds.share, layout.weights
    rows = N if every else 1
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        first, theta, x = layout.indptr[s * A], layout.radius[s], claim.policy[s]
        n, most = 0, 0  # entries of played actions, with their slopes; of the longest row
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            most = max(most, hi - lo)
            if every and is_bent(x[a], memory.by_row[s, a]) and layout.available[s, a]:
                weigh_rows(layout, s, a, work)
            if x[a] > 0.0:
                for e in range(lo, hi):
                    slope[n], entry[n], action[n] = x[a] * work.u[e - first], e, a
                    n += 1
        rank(slope[:n], work.places[2], work.places[3])
        terms = depth(n) + depth(most) + 16 + (0 if every else 4 * (most + N + 4))
        above = 0.0
        for i in range(rows):
            cut = _cut(layout, s, theta, i, n, every, work)
            bound = bound_of(layout, s, theta, i, n, cut, terms, every, work)
            above += (w[i] if every else 1.0) * (min(bound, 0.0) + (N + 4) * EPS)
            share[s, i] = _share(theta, memory.by_row[s, :, i] if every else memory.by_action[s], terms + most)
        for i in range(rows, N):
            share[s, i] = share[s, 0]
        for a in range(A):
            if layout.available[s, a]:
                lo, hi = layout.indptr[s * A + a] - first, layout.indptr[s * A + a + 1] - first
                rank(work.u[lo:hi], work.places[2], work.places[3])
                work.worth[a] = mean_worth(layout, s, a, work)
                if not every:
                    left = share[s, 0] * memory.by_action[s, a]
                    work.worth[a] += _gain(layout, s, a, 0, left, terms + most, every, work)
                elif is_bent(x[a], memory.by_row[s, a]):
                    work.worth[a] = worth_of(layout, s, a, memory.by_row[s, a], share[s], terms + most, work)
        finish(s, base, unit, min(above, 0.0), layout, view, claim, bounds, work)


@njit(**INLINE)
def worth_of(layout, s, a, mass, share, terms, work):
    """Lower bound on an action's value under the rows that nature bends, without cost.

    reads   layout, s, a, mass (N,), share (N,), terms (depth of the sums), work.u, work.scale, work.own, work.places[2] (entries, ascending)
    returns Σ_i w_i (ŷ·u + gain), its margin taken off
    """
    worth = -(share.size + 8) * EPS
    for i in range(share.size):
        gain = _gain(layout, s, a, i, share[i] * mass[i], terms, True, work)
        worth += layout.weights[i] * ((1.0 + terms * EPS) * work.own[a, i] + gain)
    return worth
