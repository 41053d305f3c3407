"""Proximal maps of the ℓ∞ balls: each kernel moves by at most θ (order ∞), or by r_i with Σ_i w_i r_i ≤ θ (order 1).

Within the radius r the projection of a row z = ŷ + d is e = y − ŷ = clip(d − α, −min(r, ŷ), r), with α such that
Σ e = 0. For order ∞, r = θ and that is all. For order 1 let U be the entries at r, L those at −r with ŷ > r, and I those
inside their bounds. The squared distance of kernel i, halved, is convex in r_i and falls at the rate

    Λ_i(r_i) = Σ_a [Σ_U (d − α − r) + Σ_L (α − d − r)],
    dΛ/dr = −Σ_a [n_U + n_L + (n_U − n_L)²/n_I],      dα/dr = (n_U − n_L)/n_I      while these sets stay.

The r_i of the projection have Λ_i(r_i) = μ w_i and Σ_i w_i r_i = θ; see `drmdp.prox.linf_radii`. Λ_i jumps down at each ŷ of an
entry at its lower bound, and where a row has no entry inside its bounds. Where Λ_i = 0 the kernel moves freely.
"""

from __future__ import annotations

import numpy as np

from drmdp.core.compiled import FAST, KERNEL, LEAN, njit
from drmdp.prox.displacement import LARGE, ROUNDING, Family, Group, Job, largest, open_state, restore, row_of, smallest

PASSES = 200


@njit(fastmath=FAST, **LEAN)
def row_sums(d, p, scale, r, alpha):
    """Sums over a row.

    reads   d (K,), p (K,), scale, r, alpha
    returns Σ e, n_I, n_U, n_L, the row's part of Λ
    """
    total = 0.0
    inside = 0.0
    upper = 0.0
    lower = 0.0
    pull = 0.0
    for j in range(d.size):
        centre = scale * p[j]
        e = d[j] - alpha
        least = centre if centre < r else r
        over = e - r
        under = -least - e
        on_top = over > 0.0
        below = under > 0.0
        upper += 1.0 if on_top else 0.0
        lower += 1.0 if below & (centre > r) else 0.0
        inside += 0.0 if on_top | below else 1.0
        pull += over if on_top else 0.0
        pull += under if below & (centre > r) else 0.0
        e = r if on_top else e
        total += -least if below else e
    return total, inside, upper, lower, pull


@njit(**LEAN)
def next_break(row, r, alpha, up):
    """Find the next α, above or below, at which an entry leaves its bound on the way to the other; all are at bounds.

    reads   row, r, alpha, up
    returns α
    """
    d, p, scale = row.d, row.p, row.scale
    best = np.inf if up else -np.inf
    for j in range(d.size):
        least = min(scale * p[j], r)
        if up and d[j] - r > alpha:
            best = min(best, d[j] - r)
        if not up and d[j] + least < alpha:
            best = max(best, d[j] + least)
    return best


@njit(**LEAN)
def solve_row(row, r, alpha):
    """Find α from a guess.

    reads   row, r, alpha
    fills   row.spare
    returns α, what it lacks, Λ, −dΛ/dr, dα/dr
    """
    d = row.d
    low, high = -np.inf, np.inf
    for turn in range(PASSES):
        if abs(alpha) < LARGE:
            excess, inside, upper, lower, pull = row_sums(d, row.p, row.scale, r, alpha)
        else:
            for j in range(d.size):
                row.spare[j] = d[j] - alpha
            excess, inside, upper, lower, pull = row_sums(row.spare, row.p, row.scale, r, 0.0)
        if abs(excess) <= ROUNDING * (d.size * min(1.0, r) + inside * abs(alpha)):
            break
        if excess > 0.0:
            low = alpha
        else:
            high = alpha
        new = alpha + excess / inside if inside > 0.0 else next_break(row, r, alpha, excess > 0.0) + excess
        if not (new > low and new < high) or turn % 8 == 7:
            low, high = max(low, smallest(d)), min(high, largest(d))
            new = 0.5 * (low + high)
            if new == alpha or turn == PASSES - 1:
                break
        alpha = new
    odd = upper - lower
    if inside == 0.0:
        return alpha, 0.0, pull, upper + lower if odd == 0.0 else np.inf, 0.0
    change = excess / inside
    return alpha, change, pull - change * odd, upper + lower + odd * odd / inside, odd / inside


@njit(**LEAN)
def _move(row, r, alpha, shift):
    """Turn d into e.

    reads   r, alpha, shift
    fills   row.d
    """
    d, p, scale = row.d, row.p, row.scale
    for j in range(d.size):
        centre = scale * p[j]
        least = centre if centre < r else r
        e = (d[j] - alpha) - shift
        e = e if e < r else r
        d[j] = e if e > -least else -least


@njit(**LEAN)
def write(group, i, r):
    """Write the rows of kernel i within the radius r.

    reads   i, r
    fills   group.y, group.threshold
    """
    A = group.work.shift.shape[0]
    for a in range(A):
        if group.work.still[a]:
            continue
        row, k = row_of(group, a, i), group.s * A + a
        _move(row, r, group.threshold[k, i], group.work.shift[a, i])
        restore(row, 1.0)
        group.threshold[k, i] += group.work.shift[a, i]


@njit(**KERNEL)
def boxes(start, stop, layout, push, y, memory, how, work):
    """Order ∞: project in place the states start … stop − 1; nothing is tried.

    reads   start, stop, layout, push, how
    fills   y (N·nnz,), memory, work
    """
    N, A = layout.weights.size, layout.available.shape[1]
    job = Job(layout, push, y, memory, how, work)
    for s in range(start, stop):
        theta = open_state(s, job, how.inside)
        group = Group(layout, s, y, memory.threshold, work, layout.weights, 0, N)
        for i in range(N if theta > 0.0 else 0):
            for a in range(A):
                if not work.still[a]:
                    k = s * A + a
                    memory.threshold[k, i], work.shift[a, i] = solve_row(
                        row_of(group, a, i), theta, memory.threshold[k, i]
                    )[:2]
            write(group, i, theta)


EACH = Family(boxes, each=True)
"""A budget for each kernel."""
