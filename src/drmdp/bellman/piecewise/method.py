"""A proximal-point method for the balls whose policy is a vector of unknowns: (ℓ1, ∞) and (ℓ∞, 1).

With concave piecewise linear gains g_ia of amounts m that nature spends, costs c_a and a budget, the update is the linear program

    F = max { γ :  c_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   m ≥ 0 in the budget },

where either every kernel has a budget of its own for all actions, Σ_a m_ia ≤ B (`budget_each`), or all kernels have one, Σ_i w_i r_i ≤ B, and
m_ia = r_i for every action (`budget_joint`; here called joint). Its dual, the minimum over policies x of f(x) = max_m Σ_a x_a (c_a + Σ_i w_i
g_ia(m_ia)), is piecewise linear. With ½ε_i (m_ia − m⁰_ia)² taken off, f becomes

    Θ(x) = max { Σ_a x_a c_a + Σ_i w_i [Σ_a x_a g_ia(m_ia) − ½ε_i ‖m_i − m⁰_i‖²] :  m in the budget },

convex and C¹, with gradient q_a = c_a + Σ_i w_i g_ia(m_ia) and a piecewise constant Hessian: where the actions F of kernel i are inside
a segment, h their slopes,

    each:   Σ_i (w_i/ε_i) [diag(h²) − hhᵀ/|F|]_F          (no hhᵀ if its budget is slack)
    joint:  Σ_i (w_i/ε_i) hhᵀ − ddᵀ/Σ_i (w_i/ε_i),   d = Σ_i (w_i/ε_i) h   over the kernels inside a segment  (no ddᵀ if slack).

Newton's method, with a quadratic program on the simplex and a line search on the derivative alone, minimises Θ; then m⁰ ← m, and ε is
reduced. This ends after finitely many rounds, usually one from the amounts of the last sweep. ε_i is measured by the multiplier of the
budget, to which all marginal gains are equal in the end; so no scale enters. At any time

    U = f(x), exactly,     L = min_a q_a   (m is in the budget),

and the best of both are kept. Where rounds stall, `drmdp.bellman.piecewise.finish` closes the gap.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman.piecewise import budget_per_kernel as budget_each
from drmdp.bellman.piecewise import budget_shared as budget_joint
from drmdp.bellman.piecewise.budget_per_kernel import gain_at, make_tables
from drmdp.bellman.qp import simplex_qp
from drmdp.core.compiled import INLINE, LEAN, wall

ROUNDS = 40
STEPS = 25
SEARCHES = 15
STALLED = 6  # rounds that do not halve the gap
ANSWERS = 100  # of nature, and as many again for 5 actions
STIFF = 3.0  # the first ε, relative to the multiplier


class Work(NamedTuple):
    """The problem and work space for up to A actions and N kernels; amounts have A rows, or one if joint."""

    head: Array  # (A,) c
    x: Array  # (A,)
    best_x: Array  # (A,)
    q: Array  # (A,)
    vectors: Array  # (8, A)
    H: Array  # (A, A)
    factor: Array  # (A, A)
    index: Any  # (2, A)
    segment: Any  # (A, N)
    end: Any  # (A,)
    free: Any  # (N,)
    amounts: Array  # (A or 1, N), m
    centre: Array  # the same, m⁰
    best: Array  # the same
    mu: Array  # (N,), or its first number if joint
    exact: Array  # (N,)
    best_mu: Array  # (N,)
    eps: Array  # (N,)


def make_work(A: int, N: int, joint: bool) -> Work:
    """Work space."""
    rows = 1 if joint else A
    return Work(
        np.empty(A), np.empty(A), np.empty(A), np.empty(A), np.empty((8, A)), np.empty((A, A)), np.empty((A, A)),
        np.empty((2, A), dtype=np.int64), np.ones((A, N), dtype=np.int64), np.zeros(A, dtype=np.int64),
        np.zeros(N, dtype=np.bool_), np.empty((rows, N)), np.empty((rows, N)), np.empty((rows, N)),
        np.empty(N), np.empty(N), np.empty(N), np.empty(N),
    )  # fmt: skip


@njit(**LEAN)
def copy_rows(source, target, n):  # type: ignore[no-untyped-def]
    """Copy the first n rows."""
    for a in range(n):
        for i in range(source.shape[1]):
            target[a, i] = source[a, i]


@njit(**LEAN)
def respond(n, N, tables, w, B, x, work, q, joint):  # type: ignore[no-untyped-def]
    """Nature's answer to x: amounts, multipliers, the gradient q and the Hessian of Θ."""
    H = work.H
    for a in range(n):
        q[a] = work.head[a]
        for b in range(n):
            H[a, b] = 0.0
    if joint is None:
        _respond_each(n, N, tables, w, B, x, work, q)
    else:
        _respond_joint(n, N, tables, w, B, x, work, q)
    for a in range(n):
        for b in range(a):
            H[b, a] = H[a, b]


@njit(**INLINE)
def _respond_each(n, N, tables, w, B, x, work, q):  # type: ignore[no-untyped-def]
    gain, slope, H = work.vectors[0], work.vectors[1], work.H
    for i in range(N):
        work.mu[i], count = budget_each.share(
            tables, n, i, B, x, work.mu[i], work.eps[i], work.centre, work.amounts, work.segment, gain, slope
        )
        for a in range(n):
            q[a] += w[i] * gain[a]
        if count > 0:
            own = w[i] / work.eps[i]
            shared = own / count if work.mu[i] > 0.0 else 0.0
            for a in range(n):
                if slope[a] > 0.0:
                    H[a, a] += own * slope[a] * slope[a]
                    for b in range(a + 1):
                        H[a, b] -= shared * slope[a] * slope[b]


@njit(**INLINE)
def _respond_joint(n, N, tables, w, B, x, work, q):  # type: ignore[no-untyped-def]
    r, total, slope, H = work.amounts[0], work.vectors[0], work.vectors[1], work.H
    work.mu[0], rate, spent = budget_joint.share(
        tables, n, N, B, w, x, work.mu[0], work.eps, work.centre[0], r, work.segment, work.free
    )
    for a in range(n):
        total[a] = 0.0
    part = B / spent if spent > B else 1.0  # rounding must not gain anything
    for i in range(N):
        own = w[i] / work.eps[i]
        for a in range(n):
            line = tables.start[a] + i * tables.stride[a] + work.segment[a, i] - 1
            slope[a] = tables.lines[line + 1, 2] if work.segment[a, i] <= tables.length[a, i] else 0.0
            q[a] += w[i] * part * (tables.lines[line, 1] + (r[i] - tables.lines[line, 0]) * slope[a])
        if work.free[i]:
            for a in range(n):
                total[a] += own * slope[a]
                for b in range(a + 1):
                    H[a, b] += own * slope[a] * slope[b]
    if part < 1.0:
        for i in range(N):
            r[i] *= part
    if rate > 0.0 and work.mu[0] > 0.0:
        for a in range(n):
            for b in range(a + 1):
                H[a, b] -= total[a] * total[b] / rate


@njit(**LEAN)
def worst_case(n, N, tables, w, B, x, work, joint):  # type: ignore[no-untyped-def]
    """U = f(x), from guesses of the multipliers; fills the exact ones, and amounts that attain U."""
    total = 0.0
    for a in range(n):
        total += x[a] * work.head[a]
    if joint is None:
        for i in range(N):
            value, work.exact[i] = budget_each.knapsack(
                tables, n, i, B, x, work.mu[i], work.segment, work.end, work.amounts
            )
            total += w[i] * value
        return total
    r = work.amounts[0]
    mu, left = budget_joint.knapsack(tables, n, N, B, w, x, work.mu[0], r, work.segment)
    for i in range(N):
        for a in range(n):
            line = tables.start[a] + i * tables.stride[a] + work.segment[a, i]
            total += w[i] * x[a] * tables.lines[line - 1, 1]
            if work.segment[a, i] <= tables.length[a, i]:
                total += w[i] * x[a] * (r[i] - tables.lines[line - 1, 0]) * tables.lines[line, 2]
    work.exact[0] = mu
    budget_joint.spend(tables, n, N, left, w, x, mu, work.centre[0], r, work.segment, work.eps)
    return total + mu * left


@njit(**LEAN)
def gains(n, N, tables, w, amounts, work, q, joint):  # type: ignore[no-untyped-def]
    """Value of each action at given amounts; returns the least."""
    least = np.inf
    for a in range(n):
        q[a] = work.head[a]
        row = a if joint is None else 0
        for i in range(N):
            q[a] += w[i] * gain_at(tables, a, i, amounts[row, i], work.segment[a, i])
        least = min(least, q[a])
    return least


@njit(**LEAN)
def newton(n, N, tables, w, B, goal, enough, work, joint):  # type: ignore[no-untyped-def]
    """Minimise Θ over the simplex from x until x·q − min q ≤ goal or min q ≥ enough; returns the steps, which are
    STEPS if that fails, and nature's answers.
    """
    x, q, trial, trial_q, g, z = work.x, work.q, work.vectors[2], work.vectors[3], work.vectors[4], work.vectors[5]
    H = work.H
    respond(n, N, tables, w, B, x, work, q, joint)
    answers = 1
    steps = 0
    while steps < STEPS:
        least = np.inf
        trace = 0.0
        for a in range(n):
            least = min(least, q[a])
            trace += H[a, a]
        residual = 0.0
        for a in range(n):
            g[a] = q[a] - least
            residual += x[a] * g[a]
        if residual <= goal or least >= enough:
            break
        for a in range(n):
            H[a, a] += 1e-5 * min(1.0, residual) * max(H[a, a], 1e-3 * trace / n) + 1e-13
        if not simplex_qp(H, g, x, n, 0, z, work.vectors[6], work.vectors[7], work.factor, work.index):
            return STEPS, answers
        slope = 0.0
        noise = 0.0
        for a in range(n):
            slope += g[a] * (z[a] - x[a])
            noise += 1e-15 * (abs(work.head[a]) + 1.0) * abs(z[a] - x[a])
        if not slope < 0.0:
            break
        steps += 1
        left, left_slope, right, right_slope, part = 0.0, slope, 1.0, 0.0, 1.0
        for search in range(SEARCHES):
            for a in range(n):
                trial[a] = x[a] + part * (z[a] - x[a])
            respond(n, N, tables, w, B, trial, work, trial_q, joint)
            answers += 1
            here = 0.0
            curvature = 0.0
            for a in range(n):
                here += (trial_q[a] - least) * (z[a] - x[a])
                for b in range(n):
                    curvature += H[a, b] * (z[a] - x[a]) * (z[b] - x[b])
            if (search == 0 and here <= 0.0) or abs(here) <= max(-0.2 * slope, noise):
                break
            if here > 0.0:
                right, right_slope = part, here
            else:
                left, left_slope = part, here
            secant = -left_slope / (right_slope - left_slope)
            part -= here / curvature
            if not (part > left and part < right) or (secant > 0.1 and secant < 0.9):
                part = left + max(0.1, min(secant, 0.9)) * (right - left)
        for a in range(n):
            x[a] = trial[a]
            q[a] = trial_q[a]
        if search == SEARCHES - 1:
            return STEPS, answers
    return steps, answers


def rounds(n, N, tables, w, B, cap, tol, work, joint):  # type: ignore[no-untyped-def]
    """The proximal-point method from x, m⁰ and μ; keeps the best x, m, μ; returns U, L and the answers of nature.

    `cap` bounds F from above; U is smaller only if best_x attains it.
    """
    x, q = work.x, work.q
    rows = n if joint is None else 1
    high = cap
    low = -np.inf
    stiff = STIFF
    goal = 0.3 * tol
    answers = 0
    stalled = 0
    gap = np.inf
    for _ in range(ROUNDS):
        for i in range(N):
            most = 0.0
            for a in range(n):
                if tables.length[a, i] > 0:
                    steepest = x[a] * tables.lines[tables.start[a] + i * tables.stride[a] + 1, 2]
                    most = max(most, steepest) if joint is None else most + steepest
            work.eps[i] = stiff * max(work.mu[i if joint is None else 0], 0.01 * most, 1e-10)
        steps = 0
        if n > 1:
            steps, more = newton(n, N, tables, w, B, goal, high - tol, work, joint)
            answers += more
            least = cap
            for a in range(n):
                least = min(least, q[a])
            if least > low:
                low = least
                copy_rows(work.amounts, work.best, rows)
            copy_rows(work.amounts, work.centre, rows)
        high = keep_upper(worst_case(n, N, tables, w, B, x, work, joint), high, n, N, work, joint)
        if n == 1:
            answers = 1
            low = min(cap, gains(n, N, tables, w, work.amounts, work, q, joint))
            copy_rows(work.amounts, work.best, rows)
            break
        copy_rows(work.centre, work.amounts, rows)
        if high - low <= tol:
            break
        stalled = stalled + 1 if high - low > 0.5 * gap else 0
        if stalled >= STALLED or answers > ANSWERS + 20 * n:
            break
        gap = min(gap, high - low)
        if steps == 0:
            goal *= 0.1
        if steps <= 4:
            stiff *= 0.2
        elif steps <= 9:
            stiff *= 0.5
        elif steps > 15:
            stiff = min(3.0 * stiff, 10.0)
        stiff = max(stiff, 1e-5)
    return high, low, answers


@njit(**INLINE)
def keep_upper(upper, high, n, N, work, joint):  # type: ignore[no-untyped-def]
    """Keep x and μ if its U is below `high`; returns the lower of both."""
    if upper < high:
        for a in range(n):
            work.best_x[a] = work.x[a]
        for i in range(N):
            work.best_mu[i] = work.exact[i if joint is None else 0]
    return min(upper, high)


@cache
def compiled(method: Any, joint: bool) -> Any:
    """`rounds`, or what takes and returns the same, for one kind of budget."""
    return wall(
        method, (0.0, 0.0, 0), 0, 0, make_tables(1, 1, 1), np.empty(1), 0.0, 0.0, 0.0, make_work(1, 1, joint), True if joint else None
    )  # fmt: skip
