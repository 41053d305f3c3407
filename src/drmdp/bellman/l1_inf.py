"""(ℓ1, ∞): the exact update by a proximal-point method on the masses that nature moves.

Normalised as in `drmdp.bellman.layout`. With m_ia the mass moved in row (i, a), g_ia its gain (`rows_l1`) and B = θ/2,

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   Σ_a m_ia ≤ B for every i,   m ≥ 0 },

a linear program. Its dual, min over policies x of f(x) = Σ_a x_a (cost_a + V⁰_a) + Σ_i w_i φ_i(x), φ_i the knapsack of kernel i, is
piecewise linear. With ½ε_i (m_ia − m⁰_ia)² taken off for every row it becomes

    Θ(x) = Σ_a x_a (cost_a + V⁰_a) + Σ_i w_i max { Σ_a [x_a g_ia(m_a) − ½ε_i (m_a − m⁰_ia)²] : m ≥ 0, Σ_a m_a ≤ B },

convex and C¹, with gradient q_a = cost_a + V⁰_a + Σ_i w_i g_ia(m_ia) and the piecewise constant Hessian Σ_i (w_i/ε_i) [diag(h²) − hhᵀ/|F|] over
the actions F inside a segment (h its slope there; no hhᵀ where the budget is slack). Newton's method with a quadratic program on the
simplex minimises it, the line search follows the derivative alone; then m⁰ ← m and ε is reduced. This ends after finitely many rounds, usually
one from the masses of the last sweep. ε_i is measured by the multiplier μ_i, to which all x_a h_a of kernel i are equal in the end; so nothing
depends on the scale of the slopes. At any time

    U = f(x), exactly,    L = min_a q_a   (m is feasible),

and the best of both are kept. Actions with cost_a + V⁰_a ≥ U are never touched. If the rounds stall, `drmdp.bellman.game` ends it.

Masses and gains are divided by min(B, 1) and costs counted from the smallest cost_a + V⁰_a, so that small radii keep their digits.

With a policy x fixed, a knapsack for every kernel, all in the same order: that of x_a Δ.

Memory: by_row holds m, by_kernel μ (per unit of mass), and out.policy x of the last sweep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman import game as play
from drmdp.bellman.layout import largest_state, prologue, row_scales
from drmdp.bellman.qp import simplex_qp
from drmdp.bellman.rows_l1 import Tables, by_gain, gain_at, knapsack, share_budget, tabulate

ROUNDS = 40
STEPS = 25
STALLED = 6  # rounds that do not halve the gap
POINTS = 2000
ANSWERS = 100
SEARCHES = 15
STIFF = 3.0  # the first ε, relative to μ


class Work(NamedTuple):
    """Work space for up to A candidate actions."""

    action: Any  # (A,) of each candidate
    head: Array  # (A,) (cost + V⁰ − the smallest)/size
    vectors: Array  # (12, A)
    H: Array  # (A, A)
    factor: Array  # (A, A)
    index: Any  # (2, A)
    segment: Any  # (A, N)
    end: Any  # (A,)
    masses: Array  # (3, A, N): m, m⁰, best
    kernels: Array  # (4, N): μ, exact μ, best, ε


@njit(cache=True, nogil=True, error_model="numpy")
def respond(n, N, tables, head, w, B, x, work, q):  # type: ignore[no-untyped-def]
    """Nature's answer to x: m, μ, the gradient q and the Hessian of Θ."""
    H, m, centre, mu, eps = work.H, work.masses[0], work.masses[1], work.kernels[0], work.kernels[3]
    gain, slope = work.vectors[0], work.vectors[1]
    for a in range(n):
        q[a] = head[a]
        for b in range(n):
            H[a, b] = 0.0
    for i in range(N):
        mu[i], count, _ = share_budget(tables, n, i, B, x, mu[i], eps[i], centre, m, work.segment, gain, slope)
        for a in range(n):
            q[a] += w[i] * gain[a]
        if count > 0:
            own = w[i] / eps[i]
            shared = own / count if mu[i] > 0.0 else 0.0
            for a in range(n):
                if slope[a] > 0.0:
                    H[a, a] += own * slope[a] * slope[a]
                    for b in range(a + 1):
                        H[a, b] -= shared * slope[a] * slope[b]
    for a in range(n):
        for b in range(a):
            H[b, a] = H[a, b]


@njit(cache=True, nogil=True, error_model="numpy")
def worst_case(n, N, tables, head, w, B, x, work):  # type: ignore[no-untyped-def]
    """U = f(x), from the guesses μ; fills the exact μ."""
    total = 0.0
    for a in range(n):
        total += x[a] * head[a]
    for i in range(N):
        value, work.kernels[1, i], _, _ = knapsack(tables, n, i, B, x, work.kernels[0, i], work.end)
        total += w[i] * value
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def newton(n, N, tables, head, w, B, goal, work):  # type: ignore[no-untyped-def]
    """Minimise Θ over the simplex from x until x·q − min q ≤ goal; returns the steps and the answers of nature."""
    x, q, trial, trial_q, g, z = (
        work.vectors[2], work.vectors[3], work.vectors[4], work.vectors[5], work.vectors[6], work.vectors[7]
    )  # fmt: skip
    H = work.H
    respond(n, N, tables, head, w, B, x, work, q)
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
        if residual <= goal:
            break
        for a in range(n):
            H[a, a] += 1e-5 * min(1.0, residual) * max(H[a, a], 1e-3 * trace / n) + 1e-13
        if not simplex_qp(H, g, x, n, 0, z, work.vectors[8], work.vectors[9], work.factor, work.index):
            break
        slope = 0.0
        noise = 0.0
        for a in range(n):
            slope += g[a] * (z[a] - x[a])
            noise += 1e-15 * (abs(head[a]) + 1.0) * abs(z[a] - x[a])
        if not slope < 0.0:
            break
        steps += 1
        left, left_slope, right, right_slope = 0.0, slope, 1.0, 0.0
        share = 1.0
        side = 0
        for search in range(SEARCHES):
            for a in range(n):
                trial[a] = x[a] + share * (z[a] - x[a])
            respond(n, N, tables, head, w, B, trial, work, trial_q)
            answers += 1
            here = 0.0
            for a in range(n):
                here += (trial_q[a] - least) * (z[a] - x[a])
            if (search == 0 and here <= 0.0) or abs(here) <= max(-0.2 * slope, noise):
                break
            if here > 0.0:
                right, right_slope = share, here
                left_slope *= 0.5 if side > 0 else 1.0  # Illinois: no end may stay for long
                side = 1
            else:
                left, left_slope = share, here
                right_slope *= 0.5 if side < 0 else 1.0
                side = -1
            share = left - left_slope / (right_slope - left_slope) * (right - left)
        for a in range(n):
            x[a] = trial[a]
            q[a] = trial_q[a]
    return steps, answers


@njit(cache=True, nogil=True, error_model="numpy")
def proximal(n, N, tables, head, w, B, cap, tol, work):  # type: ignore[no-untyped-def]
    """Rounds of the proximal-point method from x, m⁰ and μ; keeps the best x, m, μ; returns U, L and nature's answers."""
    x, q, best_x = work.vectors[2], work.vectors[3], work.vectors[10]
    mu, exact, best_mu, eps = work.kernels[0], work.kernels[1], work.kernels[2], work.kernels[3]
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
                    most = max(most, x[a] * tables.lines[tables.start[a] + i * tables.stride[a] + 1, 2])
            eps[i] = stiff * max(mu[i], 0.01 * most, 1e-10)
        steps, more = newton(n, N, tables, head, w, B, goal, work)
        answers += more
        least = cap
        for a in range(n):
            least = min(least, q[a])
        if least > low:
            low = least
            work.masses[2, :n] = work.masses[0, :n]
        upper = worst_case(n, N, tables, head, w, B, x, work)
        if upper < high:
            high = upper
            best_x[:n] = x[:n]
            best_mu[:] = exact
        if high - low <= tol:
            break
        stalled = stalled + 1 if high - low > 0.5 * gap else 0
        if stalled >= STALLED or answers > ANSWERS + 20 * n:
            break
        gap = min(gap, high - low)
        work.masses[1, :n] = work.masses[0, :n]
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


@njit(cache=True, nogil=True, error_model="numpy")
def finish(n, N, tables, head, w, B, cap, tol, high, low, work):  # type: ignore[no-untyped-def]
    """Close the gap by the simplex method from the best masses; returns U, L and nature's answers."""
    m, best_m, q, x = work.masses[0], work.masses[2], work.vectors[3], work.vectors[2]
    game = play.empty(n)
    points = np.empty((n + 1, n, N))
    _gains(n, N, tables, head, w, best_m, q)
    points[0] = best_m[:n]
    play.begin(game, n, q)
    answers = 0
    for _ in range(POINTS):
        gamma = play.balance(game, n)
        if not gamma > -np.inf:
            break
        total = 0.0
        for a in range(n):
            x[a] = max(game.price[a], 0.0)
            total += x[a]
        for a in range(n):
            x[a] /= total
        upper = worst_case(n, N, tables, head, w, B, x, work)
        answers += 1
        if upper < high:
            high = upper
            work.vectors[10, :n] = x[:n]
            work.kernels[2] = work.kernels[1]
        if high - gamma <= tol:
            break
        _vertex(n, N, tables, B, x, work, m)
        _gains(n, N, tables, head, w, m, q)
        slot = play.admit(game, n, q)
        if slot < 0:
            break
        points[slot] = m[:n]
    m[:n] = 0.0
    for k in range(n + 1):
        if game.kind[k] >= n:
            m[:n] += max(game.level[k], 0.0) * points[game.kind[k] - n]
    for i in range(N):
        total = 0.0
        for a in range(n):
            total += m[a, i]
        if total > B:
            for a in range(n):
                m[a, i] *= B / total
    _gains(n, N, tables, head, w, m, q)
    least = cap
    for a in range(n):
        least = min(least, q[a])
    if least > low:
        low = least
        best_m[:n] = m[:n]
    return high, low, answers


@njit(cache=True, nogil=True, error_model="numpy")
def _vertex(n, N, tables, B, x, work, m):  # type: ignore[no-untyped-def]
    """An exact answer to x; what the budget leaves goes to actions that are not played."""
    for i in range(N):
        _, _, left, taker = knapsack(tables, n, i, B, x, work.kernels[1, i], work.end)
        for a in range(n):
            m[a, i] = tables.lines[tables.start[a] + i * tables.stride[a] + work.end[a], 0]
        if taker >= 0:
            m[taker, i] += left
            continue
        for a in range(n):
            last = tables.lines[tables.start[a] + i * tables.stride[a] + tables.length[a, i], 0]
            more = min(left, last - m[a, i])
            m[a, i] += more
            left -= more


@njit(cache=True, nogil=True, error_model="numpy")
def _gains(n, N, tables, head, w, m, q):  # type: ignore[no-untyped-def]
    """Value of each action at m."""
    for a in range(n):
        q[a] = head[a]
        for i in range(N):
            at = tables.start[a] + i * tables.stride[a]
            q[a] += w[i] * gain_at(tables.lines, at, tables.length[a, i], m[a, i])


@njit(cache=True, nogil=True, error_model="numpy")
def start_from_mean(n, tables, head, B, cap, x, m):  # type: ignore[no-untyped-def]
    """Solve for the mean kernel alone, fills x and m (n,); returns its value, which bounds F̄ from above, and μ.

    γ is found from above by Newton's method on the convex Σ_a m_a(γ) = B, where m_a(γ) lifts action a to γ.
    """
    gamma = cap
    for _ in range(200):
        spent = 0.0
        rate = 0.0
        for a in range(n):
            need = gamma - head[a]
            x[a] = 0.0
            m[a] = 0.0
            if need <= 0.0 or tables.length[a, 0] == 0:
                continue
            line = tables.start[a] + 1
            last = tables.start[a] + tables.length[a, 0]
            while line < last and tables.lines[line, 1] < need:
                line += 1
            m[a] = min(
                tables.lines[line - 1, 0] + (need - tables.lines[line - 1, 1]) / tables.lines[line, 2],
                tables.lines[line, 0],
            )
            x[a] = 1.0 / tables.lines[line, 2]
            spent += m[a]
            rate += x[a]
        new = gamma - (spent - B) / rate
        if not (spent > B and new < gamma):
            break
        gamma = new
    for a in range(n):
        x[a] /= rate
    return gamma, 1.0 / rate


@njit(cache=True, nogil=True, error_model="numpy")
def solve_state(y, ptr, N, u, w, mean, cost, nominal, theta, tol, scale, mu, mass, policy, tables, work, entry, delta):  # type: ignore[no-untyped-def]
    """Solve one normalised state, from the memory in policy, mass and μ if that is sound; fill them; return U, L, passes."""
    A = cost.size
    first = 0  # attains the cap
    lowest = 0
    given = 0.0
    for a in range(A):
        if cost[a] < cost[first]:
            first = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
        if _known(policy[a]) and cost[a] + nominal[a] < 0.0:
            given += policy[a]
    bottom = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or bottom >= -tol:
        policy[:] = 0.0
        mass[:] = 0.0
        mu[:] = 0.0
        policy[lowest if theta <= 0.0 else first] = 1.0
        return bottom if theta <= 0.0 else 0.0, bottom, 0
    size = min(0.5 * theta, 1.0)
    B = 0.5 * theta / size
    cap = -bottom / size
    tol = tol / size
    head, x = work.head, work.vectors[2]
    high = cap
    n = 0
    line = 0
    warm = given > 0.5
    if warm:
        for a in range(A):
            if _known(policy[a]) and cost[a] + nominal[a] < 0.0:
                k = by_gain(u[ptr[a] : ptr[a + 1]], entry, delta)
                line = tabulate(
                    y[N * ptr[a] :], ptr[a + 1] - ptr[a], N, scale[a], size, entry, delta, k, tables, n, line
                )
                head[n] = (cost[a] + nominal[a] - bottom) / size
                x[n] = policy[a] / given
                work.action[n] = a
                n += 1
        for i in range(N):
            work.kernels[0, i] = mu[i] if mu[i] >= 0.0 and mu[i] <= 1.0 else 0.1
        high = min(high, worst_case(n, N, tables, head, w, B, x, work))
        work.kernels[0] = work.kernels[1]
    else:
        one = np.ones(1)
        for a in range(A):
            if cost[a] + nominal[a] < 0.0:
                k = by_gain(u[ptr[a] : ptr[a + 1]], entry, delta)
                line = tabulate(mean[ptr[a] :], ptr[a + 1] - ptr[a], 1, one, size, entry, delta, k, tables, n, line)
                head[n] = (cost[a] + nominal[a] - bottom) / size
                work.action[n] = a
                n += 1
        lifted = work.vectors[4]
        high, level = start_from_mean(n, tables, head, B, cap, x, lifted)
        work.kernels[0] = level
        policy[:] = 0.0
        mass[:] = 0.0
        for k in range(n):
            policy[work.action[k]] = x[k]
            mass[work.action[k]] = size * lifted[k]
        n = 0
        line = 0
    for a in range(A):
        if (cost[a] + nominal[a] - bottom) / size < high and not (warm and _known(policy[a])):
            k = by_gain(u[ptr[a] : ptr[a + 1]], entry, delta)
            line = tabulate(
                y[N * ptr[a] :], ptr[a + 1] - ptr[a], N, scale[a], size, entry, delta, k, tables, n, line
            )
            head[n] = (cost[a] + nominal[a] - bottom) / size
            x[n] = 0.0 if warm else policy[a]
            work.action[n] = a
            n += 1
    for k in range(n):
        for i in range(N):
            m = mass[work.action[k], i]
            work.masses[1, k, i] = m / size if m >= 0.0 and m <= 1.0 else 0.0
    work.segment[:] = 1
    work.masses[2, :n] = 0.0
    high, low, passes = proximal(n, N, tables, head, w, B, cap, tol, work)
    if high - low > tol:
        high, low, more = finish(n, N, tables, head, w, B, cap, tol, high, low, work)
        passes += 100000 * more
    policy[:] = 0.0
    mass[:] = 0.0
    mu[:] = 0.0
    if high < cap:
        mu[:] = work.kernels[2]
        for k in range(n):
            policy[work.action[k]] = work.vectors[10, k]
    else:
        policy[first] = 1.0
    for k in range(n):
        for i in range(N):
            mass[work.action[k], i] = size * work.masses[2, k, i]
    return bottom + size * high, bottom + size * max(low, 0.0), passes


@njit(cache=True, nogil=True)
def _known(x):  # type: ignore[no-untyped-def]
    """Whether a number of the last policy counts."""
    return x > 1e-12 and x <= 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _room(A, N, K):  # type: ignore[no-untyped-def]
    """Work space, and for one pair of K entries their order and slopes."""
    work = Work(
        np.empty(A, dtype=np.int64), np.empty(A), np.empty((12, A)), np.empty((A, A)), np.empty((A, A)),
        np.empty((2, A), dtype=np.int64), np.empty((A, N), dtype=np.int64), np.zeros(A, dtype=np.int64),
        np.empty((3, A, N)), np.empty((4, N)),
    )  # fmt: skip
    return work, np.empty(K, dtype=np.int64), np.empty(K)


@njit(cache=True, nogil=True, error_model="numpy")
def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal, scale = np.empty(most), np.empty(A), np.empty(A), np.ones((A, N))
    work, entry, delta = _room(A, N, most)
    tables = Tables(np.empty((1, 3)), np.empty(A, dtype=np.int64), np.empty(A, dtype=np.int64), np.empty((A, N), dtype=np.int64))
    for s in range(start, stop):
        base, unit = prologue(layout, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        row_scales(layout, s, scale)
        first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
        ptr = layout.indptr[s * A : (s + 1) * A + 1] - first
        lines = 0
        for a in range(A):
            if cost[a] + nominal[a] < 0.0:
                lines += N * (ptr[a + 1] - ptr[a] + 1)
        if lines > tables.lines.shape[0]:
            tables = Tables(np.empty((lines, 3)), tables.start, tables.stride, tables.length)
        upper, lower, out.passes[s] = solve_state(
            layout.data[N * first : N * last], ptr, N, u, layout.weights, layout.mean[first:last], cost, nominal,
            layout.radius[s], tol, scale, memory.by_kernel[s], memory.by_row[s], out.policy[s], tables, work, entry, delta,
        )  # fmt: skip
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate_state(y, ptr, N, u, w, cost, nominal, x, theta, scale, mu, mass, action, delta):  # type: ignore[no-untyped-def]
    """Worst case of the policy x at one normalised state; fill m and μ; return U, L."""
    A = cost.size
    n = 0
    base = 0.0
    mass[:] = 0.0
    mu[:] = 0.0
    for a in range(A):
        if x[a] > 0.0:
            base += x[a] * (cost[a] + nominal[a])
            for e in range(ptr[a], ptr[a + 1]):
                if u[e] < 0.0:
                    action[n] = e
                    delta[n] = x[a] * u[e]
                    n += 1
    if theta <= 0.0 or n == 0:
        return base, base
    steepest = np.argsort(delta[:n])
    owner = np.empty(n, dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    for k in range(n):
        e = action[steepest[k]]
        a = np.searchsorted(ptr, e, side="right") - 1
        owner[k] = a
        place[k] = N * ptr[a] + e - ptr[a]
    upper = base
    lower = base
    for i in range(N):
        left = 0.5 * theta
        gain = 0.0
        level = 0.0
        for k in range(n):
            a = owner[k]
            p = y[place[k] + i * (ptr[a + 1] - ptr[a])] * scale[a, i]
            d = -delta[steepest[k]]
            if p >= left:
                mass[a, i] += left
                gain += left * d
                left = 0.0
                level = d
                break
            mass[a, i] += p
            gain += p * d
            left -= p
        mu[i] = level
        upper += w[i] * gain
        lower += w[i] * gain
    return upper, lower


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Worst case of the policy in out.policy at the states start … stop − 1."""
    A, N = layout.available.shape[1], layout.weights.size
    most = largest_state(layout, start, stop)
    u, cost, nominal, scale = np.empty(most), np.empty(A), np.empty(A), np.ones((A, N))
    action, delta = np.empty(most, dtype=np.int64), np.empty(most)
    for s in range(start, stop):
        base, unit = prologue(layout, value, top, span, s, u, cost, nominal)
        if not base < np.inf:
            continue
        row_scales(layout, s, scale)
        first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
        ptr = layout.indptr[s * A : (s + 1) * A + 1] - first
        upper, lower = evaluate_state(
            layout.data[N * first : N * last], ptr, N, u, layout.weights, cost, nominal, out.policy[s], layout.radius[s],
            scale, memory.by_kernel[s], memory.by_row[s], action, delta,
        )  # fmt: skip
        out.upper[s], out.lower[s], out.passes[s] = base + unit * upper, base + unit * lower, 1
