"""(ℓ1, 1): the exact update on the mean kernel, whatever N is.

Normalised as in `drmdp.layout.point`, Δ = −u. Nature moves mass to the top, from the lowest u first, and pays 2 for
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

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import close_trivial, has_actions, open_state, play_alone
from drmdp.core.compiled import FAST, INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, normalise, scratch
from drmdp.layout.sorting import SortSpace, by_ascending, sort_ahead, sort_space


class Work(NamedTuple):
    """Work space."""

    state: Scratch
    sort: SortSpace  # of all entries of a state
    live: Any  # (A,) actions that take part
    pieces: Array  # (A, 4): segment, mass before it, slope d, mass e taken of it


def workspace(layout: Layout, point: Point, start: int, stop: int) -> Work:
    """Work space for the states start … stop − 1."""
    state = scratch(layout, start, stop)
    A = state.cost.size
    sort = sort_space(layout, point, start, stop, state.u.size)
    return Work(state, sort, np.empty(A, dtype=np.int64), np.empty((A, 4)))


@njit(fastmath=FAST, **LEAN)
def beyond(y, u, d):
    """What lies beyond a slope.

    reads   y, u, d
    returns Σ ȳ (Δ − d)⁺, and the mass with Δ > d and with Δ = d
    """
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
def advance(mean, indices, order, a, budget, target, work):
    """Walk the segments of an action until the mass is the budget or the gain exactly the target. There is a segment to take.

    reads   mean and indices (those of the state), order, a, budget, target
    fills   work.sort.entry: the order of the segments walked; work.pieces[a]
    returns the gain
    """
    lo, hi = work.state.ptr[a], work.state.ptr[a + 1]
    y, u, piece = mean[lo:hi], work.state.u[lo:hi], work.pieces[a]
    key, entry, stack = work.sort.key[lo:hi], work.sort.entry[lo:hi], work.sort.stack
    K = y.size
    done = K if by_ascending(indices[lo:hi], order, work.sort.ascending, work.sort.where, entry) else 0
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
def retreat(y, u, entry, fall, piece):
    """Give up a gain along the segments.

    reads   y, u, entry (the order of the segments), fall (the gain)
    fills   piece
    returns how many segments were left for it, or −1 if it is more than was gained
    """
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
def newton(y, u, ptr, entry, budget, live, n, pieces):
    """Newton's method for Σ m = budget over the actions live[:n], all at one level.

    reads   y, u, ptr, entry, budget, n
    fills   live, pieces
    returns by how much the level falls, how many actions stay live, and the steps
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
def lower_all(y, u, ptr, entry, fall, live, n, pieces):
    """Let all live actions give up a gain, and drop those that never had it.

    reads   y, u, ptr, entry, fall (the gain), n
    fills   live, pieces
    returns how many stay, and whether any left its segment
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
def bounds(mean, budget, n, work, moved, x):
    """U of the policy x ∝ 1/d and L of the masses where Newton's method stopped, made feasible.

    reads   mean (that of the state), budget, n, work: state, live, pieces
    fills   moved (A,), x (A,)
    returns U and L
    """
    y, live, pieces = mean, work.live, work.pieces
    u, ptr, cost, nominal = work.state.u, work.state.ptr, work.state.cost, work.state.nominal
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
def solve_state(mean, indices, order, theta, work, moved, x):
    """Solve one normalised state; unavailable actions have cost inf.

    reads   mean and indices (the rows of the state), order, theta, work.state
    fills   moved (A,): masses; x (A,): policy; work
    returns U, L, steps
    """
    u, ptr, cost, nominal = work.state.u, work.state.ptr, work.state.cost, work.state.nominal
    entry, live, pieces = work.sort.entry, work.live, work.pieces
    A = cost.size
    budget = 0.5 * theta
    cheapest, lowest, bottom, trivial = open_state(work.state, theta, 0.0)
    for a in range(A):
        x[a] = 0.0
        moved[a] = 0.0
    if trivial:
        upper, lower = close_trivial(theta, cheapest, lowest, bottom, x)
        return upper, lower, 0
    level = 0.0
    n = np.int64(0)  # a literal would compile everything that takes it twice
    steps = 0
    settled = 1  # live actions at the last Newton iteration
    for j in range(A):
        a = lowest if j == 0 else (j - 1 if j <= lowest else j)
        low = cost[a] + nominal[a]
        if not low < level:
            continue
        target = level - low
        gain = advance(mean, indices, order, a, budget, target, work)
        if gain < target:
            n, _ = lower_all(mean, u, ptr, entry, target - gain, live, n, pieces)
            level -= target - gain
        live[n] = a
        n += 1
        if n >= 2 * settled:
            fall, n, count = newton(mean, u, ptr, entry, budget, live, n, pieces)
            level -= fall
            steps += count
            settled = n
    _, n, count = newton(mean, u, ptr, entry, budget, live, n, pieces)
    upper, lower = bounds(mean, budget, n, work, moved, x)
    if not upper < 0.0:
        upper = 0.0
        play_alone(x, cheapest)
    return upper, lower, steps + count


@njit(**INLINE)
def evaluate_state(mean, x, theta, work, moved):
    """Worst case of a policy at one normalised state.

    reads   mean (the rows of the state), x, theta, work.state
    fills   moved (A,): masses; work.sort
    returns U and L
    """
    y, u, ptr, cost, nominal = mean, work.state.u, work.state.ptr, work.state.cost, work.state.nominal
    key, entry, stack = work.sort.key, work.sort.entry, work.sort.stack
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
def rows_of(layout, s, state):
    """The mean rows of a state.

    reads   layout, s
    fills   state.ptr: where each action's entries begin
    returns the rows, and the next states of their entries
    """
    A = state.cost.size
    first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
    for a in range(A + 1):
        state.ptr[a] = layout.indptr[s * A + a] - first
    return layout.mean[first:last], layout.indices[first:last]


@njit(**KERNEL)
def update(start, stop, layout, point, memory, out, tol, work):
    """Update the states start … stop − 1 that are not terminal; see `drmdp.bellman.family`.

    reads   layout, point
    fills   memory.by_action, out, work
    """
    for s in range(start, stop):
        if has_actions(layout, s):
            base, unit = normalise(layout, point, s, work.state)
            mean, indices = rows_of(layout, s, work.state)
            upper, lower, out.passes[s] = solve_state(
                mean, indices, point.order, layout.radius[s], work, memory.by_action[s], out.policy[s]
            )
            out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(**KERNEL)
def evaluate(start, stop, layout, point, memory, out, tol, work):
    """Worst case of the policy in out.policy at the states start … stop − 1; see `drmdp.bellman.family`.

    reads   layout, point
    fills   memory.by_action, out, work
    """
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:
            mean, _ = rows_of(layout, s, work.state)
            upper, lower = evaluate_state(mean, out.policy[s], layout.radius[s], work, memory.by_action[s])
            out.upper[s], out.lower[s], out.passes[s] = base + unit * upper, base + unit * lower, 1


NATURE = nature_rows.L1_MEAN
"""How her rows follow from the memory."""


@dataclass(frozen=True)
class TotalVariation:
    """Half the ℓ1 distance, around the kernels or around their mean, which is the same set of mean kernels; see above."""

    mean: bool
    workspace = staticmethod(workspace)
    update = staticmethod(update)
    evaluate = staticmethod(evaluate)

    @property
    def NATURE(self) -> nature_rows.Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return NATURE._replace(single_kernels=not self.mean)

    def prepared(self, layout: Layout) -> Layout:
        """The radius as an ℓ1 distance."""
        radius = 2.0 * layout.radius
        radius.setflags(write=False)
        return layout._replace(radius=radius)


TV, TV_MEAN = TotalVariation(mean=False), TotalVariation(mean=True)
