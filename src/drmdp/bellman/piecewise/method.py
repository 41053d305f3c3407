"""A proximal-point method for the balls whose policy is a vector of unknowns: (ℓ1, ∞) and (ℓ∞, 1).

With concave piecewise linear gains g_ia of amounts m that nature spends, costs c_a and a budget, the update is the linear program

    F = max { γ :  c_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   m ≥ 0 in the budget },

where either every kernel has a budget of its own for all actions, Σ_a m_ia ≤ B (`budget_per_kernel`), or all kernels have one, Σ_i w_i r_i ≤ B, and
m_ia = r_i for every action (`budget_shared`; here called joint). Its dual, the minimum over policies x of f(x) = max_m Σ_a x_a (c_a + Σ_i w_i
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

and the best of both are kept. Where rounds stall, `drmdp.bellman.piecewise.columns` closes the gap.

In all functions `work` is the `Solver` of `drmdp.bellman.piecewise.work`, and `joint` is None or True, which Numba decides when it compiles.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.piecewise import budget_per_kernel as budget_each
from drmdp.bellman.piecewise import budget_shared as budget_joint
from drmdp.bellman.piecewise.budget_per_kernel import Priced, gain_at
from drmdp.bellman.qp import simplex_qp
from drmdp.core.compiled import INLINE, LEAN, njit

ROUNDS = 40
STEPS = 25
SEARCHES = 15
STALLED = 6  # rounds that do not halve the gap
ANSWERS = 100  # of nature, and as many again for 5 actions
STIFF = 3.0  # the first ε, relative to the multiplier


@njit(**LEAN)
def copy_rows(source, target, n):
    """Copy the first n rows.

    reads   source, n
    fills   target
    """
    for a in range(n):
        for i in range(source.shape[1]):
            target[a, i] = source[a, i]


@njit(**LEAN)
def respond(priced, w, work, q, joint):
    """Nature's answer to the prices, with the gradient and the Hessian of Θ.

    reads   priced, w (N,), joint
    fills   q (n,): the gradient; work: amounts, mu, H
    """
    n, H = priced.n, work.H
    for a in range(n):
        q[a] = work.head[a]
        for b in range(n):
            H[a, b] = 0.0
    if joint is None:
        _respond_each(priced, w, work, q)
    else:
        _respond_joint(priced, w, work, q)
    for a in range(n):
        for b in range(a):
            H[b, a] = H[a, b]


@njit(**INLINE)
def _respond_each(priced, w, work, q):
    """Her answer with a budget for each kernel; half of H.

    reads   priced, w (N,)
    fills   q (n,), work
    """
    n = priced.n
    gain, slope, H = work.vectors[0], work.vectors[1], work.H
    for i in range(w.size):
        work.mu[i], count = budget_each.share(
            priced, i, work.mu[i], work.eps[i], work.centre, work.amounts, work.segment, gain, slope
        )
        for a in range(n):
            q[a] += w[i] * gain[a]
        if count > 0:
            rate = w[i] / work.eps[i]
            shared = rate / count if work.mu[i] > 0.0 else 0.0
            for a in range(n):
                if slope[a] > 0.0:
                    H[a, a] += rate * slope[a] * slope[a]
                    for b in range(a + 1):
                        H[a, b] -= shared * slope[a] * slope[b]


@njit(**INLINE)
def _respond_joint(priced, w, work, q):
    """Her answer with one budget for all kernels; half of H.

    reads   priced, w (N,)
    fills   q (n,), work
    """
    tables, n, B, _ = priced
    r, total, slope, H = work.amounts[0], work.vectors[0], work.vectors[1], work.H
    work.mu[0], rate, spent = budget_joint.share(
        priced, w, work.mu[0], work.eps, work.centre[0], r, work.segment, work.free
    )
    for a in range(n):
        total[a] = 0.0
    part = B / spent if spent > B else 1.0  # rounding must not gain anything
    for i in range(w.size):
        stiff = w[i] / work.eps[i]
        for a in range(n):
            line = tables.start[a] + i * tables.stride[a] + work.segment[a, i] - 1
            slope[a] = tables.lines[line + 1, 2] if work.segment[a, i] <= tables.length[a, i] else 0.0
            q[a] += w[i] * part * (tables.lines[line, 1] + (r[i] - tables.lines[line, 0]) * slope[a])
        if work.free[i]:
            for a in range(n):
                total[a] += stiff * slope[a]
                for b in range(a + 1):
                    H[a, b] += stiff * slope[a] * slope[b]
    if part < 1.0:
        for i in range(w.size):
            r[i] *= part
    if rate > 0.0 and work.mu[0] > 0.0:
        for a in range(n):
            for b in range(a + 1):
                H[a, b] -= total[a] * total[b] / rate


@njit(**LEAN)
def worst_case(priced, w, work, joint):
    """The worst case of the prices, from guesses of the multipliers.

    reads   priced, w (N,), joint
    fills   work: exact, the multipliers, and amounts that attain U
    returns U = f(x)
    """
    tables, n, _, x = priced
    total = 0.0
    for a in range(n):
        total += x[a] * work.head[a]
    if joint is None:
        for i in range(w.size):
            value, work.exact[i] = budget_each.knapsack(priced, i, work.mu[i], work.segment, work.end, work.amounts)
            total += w[i] * value
        return total
    r = work.amounts[0]
    mu, left = budget_joint.knapsack(priced, w, work.mu[0], r, work.segment)
    for i in range(w.size):
        for a in range(n):
            line = tables.start[a] + i * tables.stride[a] + work.segment[a, i]
            total += w[i] * x[a] * tables.lines[line - 1, 1]
            if work.segment[a, i] <= tables.length[a, i]:
                total += w[i] * x[a] * (r[i] - tables.lines[line - 1, 0]) * tables.lines[line, 2]
    work.exact[0] = mu
    budget_joint.spend(priced, left, w, mu, work.centre[0], r, work.segment, work.eps)
    return total + mu * left


@njit(**LEAN)
def gains(priced, w, amounts, work, q, joint):
    """The value of each action at some amounts.

    reads   priced (its tables), w (N,), amounts, work: head, segment; joint
    fills   q (n,)
    returns the least
    """
    least = np.inf
    for a in range(priced.n):
        q[a] = work.head[a]
        row = a if joint is None else 0
        for i in range(w.size):
            q[a] += w[i] * gain_at(priced.tables, a, i, amounts[row, i], work.segment[a, i])
        least = min(least, q[a])
    return least


@njit(**LEAN)
def newton(priced, w, goal, enough, work, joint):
    """Minimise Θ over the simplex from x until x·q − min q ≤ goal or min q ≥ enough.

    reads   priced (its prices are work.x), w (N,), goal, enough, joint
    fills   work: x, q, and nature's answer
    returns the steps, which are STEPS if that fails, and nature's answers
    """
    tables, n, B, x = priced
    q, trial, trial_q, g, z = work.q, work.vectors[2], work.vectors[3], work.vectors[4], work.vectors[5]
    H = work.H
    respond(priced, w, work, q, joint)
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
        if not simplex_qp(H, g, x, n, 0, z, work.program):
            return STEPS, answers
        slope = 0.0
        noise = 0.0
        for a in range(n):
            slope += g[a] * (z[a] - x[a])
            noise += 1e-15 * (abs(work.head[a]) + 1.0) * abs(z[a] - x[a])
        if not slope < 0.0:
            break
        steps += 1
        searches = _line_search(Priced(tables, n, B, trial), w, least, slope, noise, work, joint)
        answers += min(searches, SEARCHES)
        for a in range(n):
            x[a] = trial[a]
            q[a] = trial_q[a]
        if searches >= SEARCHES:
            return STEPS, answers
    return steps, answers


@njit(**INLINE)
def _line_search(trial, w, least, slope, noise, work, joint):
    """Search along z − x for a point where the derivative of Θ vanishes.

    reads   w (N,), least (min q at x), slope (there), noise (of a slope), work: x and z; joint
    fills   trial (its prices), work: nature's answer there
    returns nature's answers, SEARCHES if the last one was not good or was the last one allowed
    """
    x, z, q, H = work.x, work.vectors[5], work.vectors[3], work.H
    n = trial.n
    left, left_slope, right, right_slope, part = 0.0, slope, 1.0, 0.0, 1.0
    for search in range(SEARCHES):
        for a in range(n):
            trial.x[a] = x[a] + part * (z[a] - x[a])
        respond(trial, w, work, q, joint)
        here = 0.0
        curvature = 0.0
        for a in range(n):
            here += (q[a] - least) * (z[a] - x[a])
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
    return search + 1


def rounds(n, tables, w, B, cap, tol, method, joint):
    """The proximal-point method from x, m⁰ and μ.

    reads   n, tables, w (N,), B, cap (a bound on F from above), tol, joint
    fills   method: the best x, m and μ of its solver
    returns U, which is below cap only if best_x attains it, L and the answers of nature
    """
    work = method.solver
    x, q = work.x, work.q
    priced = Priced(tables, n, B, x)
    rows = n if joint is None else 1
    high = cap
    low = -np.inf
    stiff = STIFF
    goal = 0.3 * tol
    answers = 0
    stalled = 0
    gap = np.inf
    for _ in range(ROUNDS):
        for i in range(w.size):
            most = 0.0
            for a in range(n):
                if tables.length[a, i] > 0:
                    steepest = x[a] * tables.lines[tables.start[a] + i * tables.stride[a] + 1, 2]
                    most = max(most, steepest) if joint is None else most + steepest
            work.eps[i] = stiff * max(work.mu[i if joint is None else 0], 0.01 * most, 1e-10)
        steps = 0
        if n > 1:
            steps, count = newton(priced, w, goal, high - tol, work, joint)
            answers += count
            least = cap
            for a in range(n):
                least = min(least, q[a])
            if least > low:
                low = least
                copy_rows(work.amounts, work.best, rows)
            copy_rows(work.amounts, work.centre, rows)
        high = keep_upper(worst_case(priced, w, work, joint), high, n, w.size, work, joint)
        if n == 1:
            answers = 1
            low = min(cap, gains(priced, w, work.amounts, work, q, joint))
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
def keep_upper(upper, high, n, N, work, joint):
    """Keep x and μ if its U is below `high`.

    reads   upper (its U), high, n, N, joint
    fills   work: best_x, best_mu
    returns the lower of both
    """
    if upper < high:
        for a in range(n):
            work.best_x[a] = work.x[a]
        for i in range(N):
            work.best_mu[i] = work.exact[i if joint is None else 0]
    return min(upper, high)
