"""Intervals: the exact update; the lower bounds are paid first, and the rest of the mass goes to the best next states.

Normalised as in `drmdp.layout.point`; ℓ ≤ z ≤ h are the bounds in force of a pair (`drmdp.layout.bounded`). With the next states in descending order of u,

    V_a = max { z·u : ℓ ≤ z ≤ h, Σ z = 1 } = Σ ℓ u + Σ_k min(h_k − ℓ_k, what is left) u_k,        F̄ = min_a cost_a + V_a.

The last state that gets something is the pivot: states above it are full, states below it have their lower bound. So a pair whose pivot is the one
of the last sweep needs no order: with η = u of the pivot, M = Σ_{u>η} h + Σ_{u<η} ℓ and ℓ_=, h_= the sums at u = η, the pivot is right if
M + ℓ_= ≤ 1 ≤ M + h_=, and then V_a = Σ_{u>η} h u + Σ_{u<η} ℓ u + (1 − M) η. U = L up to rounding.

With a policy x fixed the worst case is Σ_a x_a (cost_a + V_a).

Memory: by_action holds the pivot, as a place among the entries of its pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp.bellman.family import longest_pair, play_alone
from drmdp.bellman.nature_rows import Answer, begin, piece_at
from drmdp.core.compiled import FAST, INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, normalise, scratch
from drmdp.layout.sorting import rank


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    order: Any  # (2, K) of the entries of a pair


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    K = longest_pair(layout, start, stop)
    return Work(scratch(layout, start, stop), np.empty((2, K), dtype=np.int64))


@njit(fastmath=FAST, **LEAN)
def _at_pivot(lower, upper, u, eta, r):
    """Sums over a pair whose pivot has the stake η.

    reads   lower (K,), upper (K,), u (K,), eta, r
    returns M, Σ_{u>η} h u + Σ_{u<η} ℓ u, and the sums of ℓ and h at u = η
    """
    mass, worth, least, most = 0.0, 0.0, 0.0, 0.0
    for j in range(u.size):
        lo, hi = max(lower[j] - r, 0.0), min(upper[j] + r, 1.0)
        z = hi if u[j] > eta else (lo if u[j] < eta else 0.0)
        mass += z
        worth += z * u[j]
        least += lo if u[j] == eta else 0.0
        most += hi if u[j] == eta else 0.0
    return mass, worth, least, most


@njit(**INLINE)
def _fill(lower, upper, u, r, order):
    """Fill a pair from the top.

    reads   lower (K,), upper (K,), u (K,), r
    fills   order (2, K)
    returns the value and the pivot
    """
    rank(u, order[0], order[1])
    left, worth = 1.0, 0.0
    for j in range(u.size):
        lo = max(lower[j] - r, 0.0)
        left -= lo
        worth += lo * u[j]
    pivot = order[0, u.size - 1]
    for n in range(u.size - 1, -1, -1):
        if not left > 0.0:
            break
        pivot = order[0, n]
        take = min(left, min(upper[pivot] + r, 1.0) - max(lower[pivot] - r, 0.0))
        worth += take * u[pivot]
        left -= take
    return worth, pivot


@njit(**LEAN)
def worst_row(layout, s, a, pivots, work):
    """Find the worst case of an action.

    reads   layout, s, a, work.state
    fills   pivots[a]: a guess before, work.order
    returns V_a
    """
    A = pivots.size
    lo, hi, first = layout.indptr[s * A + a], layout.indptr[s * A + a + 1], layout.indptr[s * A]
    lower, upper, u, r = layout.mean[lo:hi], layout.data[lo:hi], work.state.u[lo - first : hi - first], layout.radius[s]
    guess = pivots[a]
    if guess >= 0.0 and guess < u.size:
        eta = u[int(guess)]
        mass, worth, least, most = _at_pivot(lower, upper, u, eta, r)
        if mass + least <= 1.0 and mass + most >= 1.0:
            return worth + (1.0 - mass) * eta
    worth, pivots[a] = _fill(lower, upper, u, r, work.order)
    return worth


@njit(**KERNEL)
def update(start, stop, layout, point, memory, out, tol, work):
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    reads   layout, point
    fills   memory.by_action, out, work
    """
    cost = work.state.cost
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:
            continue
        best, played = np.inf, 0
        for a in range(cost.size):
            if layout.available[s, a] and cost[a] - 1.0 < best:
                value = cost[a] + worst_row(layout, s, a, memory.by_action[s], work)
                if value < best:
                    best, played = value, a
        play_alone(out.policy[s], played)
        out.upper[s] = base + unit * best
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


@njit(**KERNEL)
def evaluate(start, stop, layout, point, memory, out, tol, work):
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`.

    reads   layout, point
    fills   memory.by_action, out, work
    """
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if not base < np.inf:
            continue
        worst = 0.0
        for a in range(work.state.cost.size):
            if out.policy[s, a] > 0.0:
                value = work.state.cost[a] + worst_row(layout, s, a, memory.by_action[s], work)
                worst += out.policy[s, a] * value
        out.upper[s] = base + unit * worst
        out.lower[s] = out.upper[s]
        out.passes[s] = 1


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work):
    """Rows of the states start … stop − 1: lower bounds, and the rest from the top.

    reads   layout, point, memory, question: weights
    fills   question.target, work
    """
    A = layout.available.shape[1]
    for s in range(start, stop):
        if begin(layout, point, s, work.state):
            for a in range(A):
                x = question.weights[s, a]
                if x > 0.0:
                    piece = piece_at(layout, s, a, work.state, question.target)
                    _spell(layout, s, layout.indptr[s * A + a], x, piece, work.sort)


@njit(**INLINE)
def _spell(layout, s, at, x, piece, sort):
    """Write a row out.

    reads   layout, s, at (where its entries begin), x (weight of the pair), piece
    fills   piece.mass, sort
    """
    r, left = layout.radius[s], 1.0
    rank(piece.u, sort.entry, sort.place)
    for j in range(piece.u.size):
        lo = max(layout.mean[at + j] - r, 0.0)
        piece.mass[j] += x * lo
        left -= lo
    for n in range(piece.u.size - 1, -1, -1):
        if not left > 0.0:
            break
        j = sort.entry[n]
        take = min(left, min(layout.data[at + j] + r, 1.0) - max(layout.mean[at + j] - r, 0.0))
        piece.mass[j] += x * take
        left -= take


NATURE = Answer(_respond, single=0, prefixes=False, single_kernels=False)
"""How her rows follow from the bounds."""
