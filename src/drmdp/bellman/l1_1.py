"""(ℓ1, 1): the exact update on the mean kernel, whatever N is.

Normalised as in `drmdp.layout.layout`, Δ = −u. Nature moves mass to the top, from the lowest u first, and pays 2 for
a unit of it. Only the mean row ȳ_a = Σ_i w_i ŷ_ia counts: to take the same share of every ŷ_ia(t) costs as much as to
take it of the mean, and no choice costs less. So with the segments of a row in descending order of their slope Δ, each
as long as its ȳ, and m_a the mass moved in action a,

    F̄ = max γ   such that   cost_a + V⁰_a + g_a(m_a) ≥ γ for every a,   Σ_a m_a ≤ B = θ/2,

g_a being concave and piecewise linear. H(γ) = Σ_a m_a(γ) is convex and piecewise linear, and Newton's method for H = B
from the right is monotone and finite. It starts where some action alone takes the whole budget, or at 0, the value of
an unconstrained nature. Fewer actions mean a smaller H, so the root for the first few of them is to the right of the
root for all; actions with cost_a + V⁰_a ≥ γ never take part.

A step moves back along the segments, by differences of gains only: with m_a = (mass of the segments before) + e_a, γ
falls by δ while e_a falls by δ/Δ_a. To compute e_a = (γ − …)/Δ_a afresh would lose all digits on plateaus, where Δ_a
is rounding.

Let d_a be the slope where Newton stops, x_a ∝ 1/d_a and μ = 1/Σ_a (1/d_a), so that x_a d_a = μ. The bounds are sums in
no order, and hold for any d and any m with Σ m ≤ B:

    U = Σ_a x_a (cost_a + V⁰_a + Σ_t ȳ_a (Δ − d_a)⁺) + μ B  ≥  F^x,        L = min_a cost_a + V⁰_a + g_a(m_a)  ≤  F̄.

With a policy x fixed, a knapsack: segments of all actions by descending x_a Δ until the budget is spent.

Memory: by_action holds m.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.rows.linf import ascending_states, by_ascending, sort_ahead
from drmdp.core.compiled import INLINE, KERNEL, LEAN
from drmdp.layout.layout import FAST, Layout, Order, prologue, scratch


class Work(NamedTuple):
    """Scratch memory."""

    where: Any  # (S,), holds −1
    key: Array  # entries
    entry: Any  # entries
    stack: Any  # entries + 2
    live: Any  # (A,)
    pieces: Array  # (A, 4)


def workspace(S: int, A: int, K: int) -> Work:
    """Scratch memory for A actions and K entries in all."""
    whole = np.int64
    return Work(
        np.full(S, -1), np.empty(K), np.empty(K, dtype=whole), np.empty(K + 2, dtype=whole), np.empty(A, dtype=whole),
        np.empty((A, 4)),
    )  # fmt: skip


@njit(fastmath=FAST, **LEAN)
def beyond(y, u, d):  # type: ignore[no-untyped-def]
    """Σ ȳ (Δ − d)⁺, and the mass with Δ > d and with Δ = d."""
    gain = 0.0
    above = 0.0
    at = 0.0
    for j in range(y.size):
        steeper = -u[j] - d
        m = y[j] if steeper > 0.0 else 0.0
        gain += m * steeper
        above += m
        at += y[j] if steeper == 0.0 else 0.0
    return gain, above, at


@njit(**INLINE)
def advance(y, u, indices, order, ascending, where, budget, target, key, entry, stack, piece):  # type: ignore[no-untyped-def]
    """Walk the segments of an action until the mass is the budget or the gain exactly the target; return the gain.

    Fills piece with: number of the segment, mass before it, slope d, mass e taken of it. There is a segment to take.
    """
    K = y.size
    done = K if by_ascending(indices, order, ascending, where, entry) else 0
    if done == 0:
        for j in range(K):
            key[j] = u[j]
            entry[j] = j
        stack[0], stack[1] = 1, K
    mass = 0.0
    gain = 0.0
    reached = False
    for k in range(K):
        if k == done:
            done = sort_ahead(key, entry, stack, done)
        e = entry[k]
        d = -u[e]
        if not d > 0.0:
            break
        length = y[e]
        taken = max(min(length, budget - mass), 0.0)
        if gain + taken * d > target:
            taken = max((target - gain) / d, 0.0)
            reached = True
        if length > 0.0:
            piece[0], piece[1], piece[2], piece[3] = k, mass, d, taken
        if taken < length:
            return target if reached else gain + taken * d
        mass += length
        gain += length * d
    return gain


@njit(**INLINE)
def retreat(y, u, entry, fall, piece):  # type: ignore[no-untyped-def]
    """Give up the gain `fall`; return how many segments were left for it, or −1 if it is more than was gained."""
    e = piece[3] - fall / piece[2]
    if e >= 0.0:
        piece[3] = e
        return 0
    k = int(piece[0])
    mass = piece[1]
    d = piece[2]
    crossed = 0
    while e < 0.0:
        if k == 0:
            piece[0], piece[1], piece[2], piece[3] = 0.0, 0.0, d, 0.0
            return -1
        k -= 1
        crossed += 1
        length = y[entry[k]]
        e *= d
        d = -u[entry[k]]
        e = length + e / d
        mass -= length
    piece[0], piece[1], piece[2], piece[3] = k, max(mass, 0.0), d, e
    return crossed


@njit(**LEAN)
def newton(y, u, ptr, entry, budget, live, n, pieces):  # type: ignore[no-untyped-def]
    """Newton's method for Σ m = budget over the actions live[:n], all at one level.

    Returns by how much the level falls, how many actions stay live, and the steps.
    """
    total = 0.0
    steps = 0
    crossed = True
    while crossed:
        excess = -budget
        slope = 0.0
        for j in range(n):
            excess += pieces[live[j], 1] + pieces[live[j], 3]
            slope += 1.0 / pieces[live[j], 2]
        if not excess > 0.0:
            break
        fall = excess / slope
        total += fall
        steps += 1
        n, crossed = lower_all(y, u, ptr, entry, fall, live, n, pieces)
        if n == 0:  # rounding: the budget is nothing beside what was taken, and the last action stays with none
            return total, 1, steps
    return total, n, steps


@njit(**LEAN)
def lower_all(y, u, ptr, entry, fall, live, n, pieces):  # type: ignore[no-untyped-def]
    """Let all live actions give up a gain, and drop those that never had it.

    Returns how many stay, and whether any left its segment.
    """
    kept = 0
    crossed = False
    for j in range(n):
        a = live[j]
        lo, hi = ptr[a], ptr[a + 1]
        moved = retreat(y[lo:hi], u[lo:hi], entry[lo:hi], fall, pieces[a])
        crossed = crossed or moved != 0
        live[kept] = a
        kept += 1 if moved >= 0 else 0
    return kept, crossed


@njit(**INLINE)
def certify(y, u, ptr, budget, cost, nominal, live, n, pieces, moved, x):  # type: ignore[no-untyped-def]
    """U of the policy x ∝ 1/d, which it fills in, and L of the masses, which it makes feasible and fills in."""
    A = cost.size
    slope = 0.0
    for j in range(n):
        slope += 1.0 / pieces[live[j], 2]
    upper = budget / slope
    spent = 0.0
    for j in range(n):
        a = live[j]
        lo, hi = ptr[a], ptr[a + 1]
        d = pieces[a, 2]
        gain, above, at = beyond(y[lo:hi], u[lo:hi], d)
        x[a] = 1.0 / (d * slope)
        upper += x[a] * (cost[a] + nominal[a] + gain)
        moved[a] = above + min(max(pieces[a, 1] + pieces[a, 3] - above, 0.0), at)
        pieces[a, 0] = gain + d * moved[a]  # from here on, what is gained
        spent += moved[a]
    share = budget / spent if spent > budget else 1.0
    lower = np.inf
    for a in range(A):
        lower = min(lower, cost[a] + nominal[a] + (share * pieces[a, 0] if x[a] > 0.0 else 0.0))
        moved[a] *= share
    return upper, lower


@njit(**INLINE)
def solve_state(y, indices, order, ascending, theta, room, work, moved, x):  # type: ignore[no-untyped-def]
    """Solve one normalised state; fill the moved masses and the policy; return U, L, steps.

    y holds the mean rows, indices their states; unavailable actions have cost inf.
    """
    ptr, u, cost, nominal = room.ptr, room.u, room.cost, room.nominal
    entry, live, pieces = work.entry, work.live, work.pieces
    A = cost.size
    budget = 0.5 * theta
    lowest = 0
    for a in range(A):
        x[a] = 0.0
        moved[a] = 0.0
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
    start = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or start >= 0.0:
        x[lowest if theta <= 0.0 else np.argmin(cost)] = 1.0
        return start, start, 0
    level = 0.0
    n = np.int64(0)  # a literal would compile everything that takes it twice
    steps = 0
    settled = 1  # live actions at the last Newton iteration
    for j in range(A):
        a = lowest if j == 0 else (j - 1 if j <= lowest else j)
        low = cost[a] + nominal[a]
        if not low < level:
            continue
        lo, hi = ptr[a], ptr[a + 1]
        target = level - low
        gain = advance(
            y[lo:hi], u[lo:hi], indices[lo:hi], order, ascending, work.where, budget, target, work.key[lo:hi], entry[lo:hi],
            work.stack, pieces[a],
        )  # fmt: skip
        if gain < target:
            n, _ = lower_all(y, u, ptr, entry, target - gain, live, n, pieces)
            level -= target - gain
        live[n] = a
        n += 1
        if n >= 2 * settled:
            fall, n, more = newton(y, u, ptr, entry, budget, live, n, pieces)
            level -= fall
            steps += more
            settled = n
    _, n, more = newton(y, u, ptr, entry, budget, live, n, pieces)
    upper, lower = certify(y, u, ptr, budget, cost, nominal, live, n, pieces, moved, x)
    if not upper < 0.0:
        upper = 0.0
        for a in range(A):
            x[a] = 0.0
        x[np.argmin(cost)] = 1.0
    return upper, lower, steps + more


@njit(**INLINE)
def evaluate_state(y, x, theta, room, work, moved):  # type: ignore[no-untyped-def]
    """Worst case of the policy x at one normalised state; fill the moved masses; return U, L."""
    ptr, u, cost, nominal, key, entry, stack = (
        room.ptr,
        room.u,
        room.cost,
        room.nominal,
        work.key,
        work.entry,
        work.stack,
    )
    A = cost.size
    budget = 0.5 * theta
    n = 0
    lower = 0.0
    free = 0.0  # worst case if nature is unconstrained
    for a in range(A):
        moved[a] = 0.0
        if x[a] > 0.0:
            lower += x[a] * (cost[a] + nominal[a])
            free += x[a] * cost[a]
            for j in range(ptr[a], ptr[a + 1]):
                if u[j] < 0.0 and y[j] > 0.0:
                    key[n] = x[a] * u[j]
                    entry[n] = a + A * j
                    n += 1
    if theta <= 0.0:
        return lower, lower
    upper = lower
    stack[0], stack[1] = 1, n
    done = 0
    left = budget
    threshold = 0.0
    for k in range(n):
        if k == done:
            done = sort_ahead(key, entry, stack, done)
        taken = min(y[entry[k] // A], left)
        lower -= taken * key[k]
        moved[entry[k] % A] += taken
        left -= taken
        if left <= 0.0:
            threshold = -key[k]
            break
    upper += threshold * budget
    for a in range(A):
        if x[a] > 0.0:
            lo, hi = ptr[a], ptr[a + 1]
            upper += x[a] * beyond(y[lo:hi], u[lo:hi], threshold / x[a])[0]
    return min(upper, free), min(lower, free)


@njit(**INLINE)
def rows_of(layout, s, room):  # type: ignore[no-untyped-def]
    """Mean rows of a state, and the states of their entries; fills where each action's begin."""
    A = room.cost.size
    first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
    for a in range(A + 1):
        room.ptr[a] = layout.indptr[s * A + a] - first
    return layout.mean[first:last], layout.indices[first:last]


@njit(**KERNEL)
def _update(start, stop, layout, order, value, top, span, tol, memory, out, room, work, ascending):  # type: ignore[no-untyped-def]
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if base < np.inf:  # not terminal
            mean, indices = rows_of(layout, s, room)
            upper, lower, out.passes[s] = solve_state(
                mean, indices, order, ascending, layout.radius[s], room, work, memory.by_action[s], out.policy[s]
            )
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(**KERNEL)
def _evaluate(start, stop, layout, order, value, top, span, tol, memory, out, room, work):  # type: ignore[no-untyped-def]
    for s in range(start, stop):
        base, unit = prologue(layout, order, value, top, span, s, room.u, room.cost, room.nominal)
        if base < np.inf:
            mean, _ = rows_of(layout, s, room)
            upper, lower = evaluate_state(mean, out.policy[s], layout.radius[s], room, work, memory.by_action[s])
            out.upper[s], out.lower[s], out.passes[s] = base + unit * upper, base + unit * lower, 1


def update(start: int, stop: int, layout: Layout, order: Order, value: Array, *given: Any) -> None:
    """Update the states start … stop − 1 that are not terminal."""
    room, ascending = scratch(layout, start, stop), ascending_states(layout, value, start, stop)
    work = workspace(value.size, room.cost.size, room.u.size)
    _update(start, stop, layout, order, value, *given, room, work, ascending)


def evaluate(start: int, stop: int, layout: Layout, order: Order, value: Array, *given: Any) -> None:
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    room = scratch(layout, start, stop)
    work = workspace(value.size, room.cost.size, room.u.size)
    _evaluate(start, stop, layout, order, value, *given, room, work)


NATURE = nature_rows.L1_MEAN
"""How her rows follow from the memory."""
