"""(ℓ1, ∞): the exact update by a proximal-point method on the masses that nature moves.

Normalised as in `drmdp.bellman.layout`. With m_ia the mass moved in row (i, a), its gain g_ia (`rows_l1`) and B = θ/2,

    F̄ = max { γ :  cost_a + V⁰_a + Σ_i w_i g_ia(m_ia) ≥ γ for every a,   Σ_a m_ia ≤ B for every i,   m ≥ 0 },
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman.layout import largest_state, prologue, row_scales
from drmdp.bellman.rows_l1 import best_mass, by_gain, surplus, tabulate

OUTER = 60
STEPS = 25


@njit(cache=True, nogil=True, error_model="numpy")
def simplex_qp(H, g, x, n, extra, delta, z, work, L, index, inside):  # type: ignore[no-untyped-def]
    total = n + extra
    rho = 0.0
    for a in range(n):
        rho += H[a, a]
    rho = rho / n + delta
    top = 0.0
    for a in range(total):
        z[a] = x[a]
        inside[a] = x[a] > 0.0
        work[0, a] = g[a]
        top = max(top, abs(g[a]))
    for it in range(6 * total + 20):
        k = 0
        for a in range(total):
            if inside[a]:
                index[k] = a
                k += 1
        for r in range(k):
            a = index[r]
            for c in range(r + 1):
                b = index[c]
                t = H[a, b] + (rho if a < n and b < n else 0.0)
                if r == c:
                    t += delta
                for j in range(c):
                    t -= L[r, j] * L[c, j]
                if r == c:
                    L[r, r] = math.sqrt(t) if t > 1e-300 else 1e150
                else:
                    L[r, c] = t / L[c, c]
            work[1, r] = -work[0, a]
            work[2, r] = 1.0 if a < n else 0.0
        for r in range(k):
            for j in range(r):
                work[1, r] -= L[r, j] * work[1, j]
                work[2, r] -= L[r, j] * work[2, j]
            work[1, r] /= L[r, r]
            work[2, r] /= L[r, r]
        for r in range(k - 1, -1, -1):
            for j in range(r + 1, k):
                work[1, r] -= L[j, r] * work[1, j]
                work[2, r] -= L[j, r] * work[2, j]
            work[1, r] /= L[r, r]
            work[2, r] /= L[r, r]
        s1 = 0.0
        s2 = 0.0
        for r in range(k):
            if index[r] < n:
                s1 += work[1, r]
                s2 += work[2, r]
        nu = -s1 / s2
        if not math.isfinite(nu):
            return False
        alpha = 1.0
        block = -1
        for r in range(k):
            p = work[1, r] + nu * work[2, r]
            work[1, r] = p
            if p < 0.0 and -p * alpha > z[index[r]]:
                alpha = z[index[r]] / -p
                block = r
        for r in range(k):
            p = alpha * work[1, r]
            b = index[r]
            z[b] = max(z[b] + p, 0.0)
            work[0, b] += delta * p
            for a in range(total):
                work[0, a] += H[a, b] * p
        if block >= 0:
            z[index[block]] = 0.0
            inside[index[block]] = False
            continue
        low = -1e-13 * (1.0 + top)
        add = -1
        for a in range(total):
            if not inside[a]:
                s = work[0, a] - (nu if a < n else 0.0)
                if s < low:
                    low = s
                    add = a
        if add < 0:
            break
        inside[add] = True
    s = 0.0
    for a in range(n):
        s += z[a]
    if not (s > 0.5 and s < 2.0):
        return False
    for a in range(n):
        z[a] /= s
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def respond(n, N, table, start, stride, length, head, w, B, x, eps, centre, mu, m, ptr, q, H, free, stat):  # type: ignore[no-untyped-def]
    """Nature's regularised answer to x; fills m, μ, q and the Hessian; returns Θ_ε(x)."""
    for a in range(n):
        q[a] = head[a]
        for b in range(n):
            H[a, b] = 0.0
    inverse = 1.0 / eps
    penalty = 0.0
    for i in range(N):
        level = mu[i]
        lo = 0.0
        hi = np.inf
        count = 0
        for trial in range(100):
            stat[1] += 1
            total = 0.0
            count = 0
            for a in range(n):
                ma, ga, h, ptr[a, i] = best_mass(
                    table, start[a] + i * stride[a], length[a, i], x[a], level, inverse, centre[a, i], ptr[a, i]
                )
                m[a, i] = ma
                free[0, a] = ga
                free[1, a] = h
                total += ma
                if h > 0.0:
                    count += 1
            over = total - B
            if abs(over) <= 1e-14 * (1.0 + B) + 4e-16 * level * inverse * count or (level <= 0.0 and over <= 0.0):
                break
            if over > 0.0:
                lo = level
            else:
                hi = level
            if hi - lo <= 1e-16 * (1e-3 + hi):
                break
            if count > 0:
                new = level + over * eps / count
            else:
                new = _leave(n, i, table, start, stride, length, x, eps, centre, m, ptr, over) + over * eps
            if new <= 0.0 and lo <= 0.0:
                new = 0.0
            if not (new >= lo and new <= hi) or new == level or trial > 20:
                new = 0.5 * (lo + hi) if hi < np.inf else 2.0 * lo + 1e-3
            level = new
        mu[i] = level
        for a in range(n):
            q[a] += w[i] * free[0, a]
            penalty += w[i] * (m[a, i] - centre[a, i]) ** 2
        if count > 0:
            c0 = w[i] * inverse
            c1 = c0 / count if level > 0.0 else 0.0
            for a in range(n):
                if free[1, a] > 0.0:
                    H[a, a] += c0 * free[1, a] * free[1, a]
                    for b in range(a + 1):
                        H[a, b] -= c1 * free[1, a] * free[1, b]
    value = -0.5 * eps * penalty
    for a in range(n):
        value += x[a] * q[a]
        for b in range(a):
            H[b, a] = H[a, b]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _leave(n, i, table, start, stride, length, x, eps, centre, m, ptr, over):  # type: ignore[no-untyped-def]
    """The μ nearest in the direction of balance at which a row of kernel i leaves its kink; all rows are at one."""
    best = np.inf if over > 0.0 else 0.0
    for a in range(n):
        at = start[a] + i * stride[a]
        p = ptr[a, i]
        if length[a, i] == 0:
            continue
        if m[a, i] < table[at + p, 0]:
            p -= 1  # the kink is the end of segment p
        if over > 0.0:
            if p > 0:
                best = min(best, x[a] * table[at + p, 2] + eps * (centre[a, i] - table[at + p, 0]))
        elif p < length[a, i]:
            best = max(best, x[a] * table[at + p + 1, 2] + eps * (centre[a, i] - table[at + p, 0]))
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def upper_bound(n, N, table, start, stride, length, head, w, B, x, mu):  # type: ignore[no-untyped-def]
    """Θ_0(x, μ) ≥ worst case of x."""
    total = 0.0
    for a in range(n):
        total += x[a] * head[a]
    for i in range(N):
        part = mu[i] * B
        for a in range(n):
            if x[a] > 0.0:
                part += surplus(table, start[a] + i * stride[a], length[a, i], x[a], mu[i])
        total += w[i] * part
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def mean_start(n, table, start, length, head, B, x, m):  # type: ignore[no-untyped-def]
    """Solve for the mean kernel alone; its value is an upper bound. Fills x and m (n,)."""
    gamma = 0.0
    for trial in range(200):
        spent = 0.0
        rate = 0.0
        for a in range(n):
            need = gamma - head[a]
            x[a] = 0.0
            m[a] = 0.0
            if need <= 0.0 or length[a, 0] == 0:
                continue
            p = 1
            while p < length[a, 0] and table[start[a] + p, 1] < need:
                p += 1
            line = start[a] + p
            m[a] = min(table[line - 1, 0] + (need - table[line - 1, 1]) / table[line, 2], table[line, 0])
            x[a] = 1.0 / table[line, 2]
            spent += m[a]
            rate += x[a]
        if rate <= 0.0 or spent <= B * (1.0 + 1e-12):
            break
        new = gamma - (spent - B) / rate
        if not new < gamma:
            break
        gamma = new
    for a in range(n):
        x[a] /= rate
    return min(gamma, 0.0), 1.0 / rate


@njit(cache=True, nogil=True, error_model="numpy")
def solve_state(y, ptr_, N, u, w, mean, cost, nominal, theta, tol, scale, mu, mass, policy, pool, stat):  # type: ignore[no-untyped-def]
    A = cost.size
    first = 0
    lowest = 0
    given = 0.0
    for a in range(A):
        if cost[a] < cost[first]:
            first = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
        if cost[a] + nominal[a] < 0.0 and policy[a] > 0.0 and policy[a] <= 1.0:
            given += policy[a]
    bottom = cost[lowest] + nominal[lowest]
    if theta <= 0.0 or bottom >= -tol:
        for a in range(A):
            policy[a] = 0.0
            for i in range(N):
                mass[a, i] = 0.0
        for i in range(N):
            mu[i] = 0.0
        policy[lowest if theta <= 0.0 else first] = 1.0
        return bottom if theta <= 0.0 else 0.0, bottom, 0
    B = 0.5 * theta
    warm = given > 0.5
    K = 0
    for a in range(A):
        K = max(K, ptr_[a + 1] - ptr_[a])
    entry = np.empty(K, dtype=np.int64)
    delta = np.empty(K)
    act = np.empty(A, dtype=np.int64)
    start = np.empty(A, dtype=np.int64)
    stride = np.empty(A, dtype=np.int64)
    length = np.empty((A, N), dtype=np.int64)
    head = np.empty(A)
    x = np.empty(A)
    n = 0
    used = 0
    high = 0.0
    centre = np.empty((A, N))
    one = np.ones(1)
    if warm:
        for i in range(N):
            if not (mu[i] >= 0.0 and mu[i] < 1e100):
                mu[i] = 0.0
        for a in range(A):
            if cost[a] + nominal[a] < 0.0 and policy[a] > 0.0 and policy[a] <= 1.0:
                act[n] = a
                head[n] = cost[a] + nominal[a]
                x[n] = policy[a] / given
                k = by_gain(u, ptr_[a], ptr_[a + 1], entry, delta)
                start[n] = used
                stride[n] = k + 1
                tabulate(y, ptr_[a], ptr_[a + 1], N, scale[a], entry, delta, k, pool, used, length[n])
                used += N * (k + 1)
                n += 1
        ub = upper_bound(n, N, pool, start, stride, length, head, w, B, x, mu)
        if ub < high:
            high = ub
    else:
        for a in range(A):
            if cost[a] + nominal[a] < 0.0:
                act[n] = a
                head[n] = cost[a] + nominal[a]
                k = by_gain(u, ptr_[a], ptr_[a + 1], entry, delta)
                start[n] = used
                tabulate(mean, ptr_[a], ptr_[a + 1], 1, one, entry, delta, k, pool, used, length[n])
                used += k + 1
                n += 1
        high, level = mean_start(n, pool, start, length, head, B, x, centre[:, 0])
        for i in range(N):
            mu[i] = level
        start_x = np.zeros(A)
        for a in range(n):
            start_x[act[a]] = x[a]
            for i in range(N):
                mass[act[a], i] = centre[a, 0]
        n = 0
        used = 0
    n0 = n
    for a in range(A):
        if cost[a] + nominal[a] < high and not (warm and policy[a] > 0.0 and policy[a] <= 1.0):
            act[n] = a
            head[n] = cost[a] + nominal[a]
            x[n] = 0.0 if warm else start_x[a]
            k = by_gain(u, ptr_[a], ptr_[a + 1], entry, delta)
            start[n] = used
            stride[n] = k + 1
            tabulate(y, ptr_[a], ptr_[a + 1], N, scale[a], entry, delta, k, pool, used, length[n])
            used += N * (k + 1)
            n += 1
    for a in range(n):
        for i in range(N):
            c = mass[act[a], i]
            if not (c >= 0.0 and c <= 1.0):
                c = 0.0
            centre[a, i] = c
    q = np.empty(n)
    q2 = np.empty(n)
    g = np.empty(n)
    z = np.empty(n)
    xn = np.empty(n)
    best_x = np.zeros(n)
    H = np.empty((n, n))
    L = np.empty((n, n))
    free = np.empty((2, n))
    work = np.empty((3, n))
    index = np.empty(n, dtype=np.int64)
    inside = np.empty(n, dtype=np.bool_)
    seg = np.ones((n, N), dtype=np.int64)
    m = np.empty((n, N))
    best_m = np.zeros((n, N))
    best_mu = np.zeros(N)
    high = 0.0
    low = bottom
    unit = 1.0 / min(B, 1.0)
    eps = 3.0 * unit
    steps = 0
    for outer in range(OUTER):
        stat[3] += 1
        stat[0] += 1
        value = respond(n, N, pool, start, stride, length, head, w, B, x, eps, centre, mu, m, seg, q, H, free, stat)
        before = steps
        for step in range(STEPS):
            least = np.inf
            trace = 0.0
            for a in range(n):
                least = min(least, q[a])
                trace += H[a, a]
            res = 0.0
            for a in range(n):
                g[a] = q[a] - least
                res += x[a] * g[a]
            if res <= 0.1 * tol:
                break
            steps += 1
            damp = 1e-5 * min(1.0, res) * max(1.0, trace / n) + 1e-13
            stat[2] += 1
            if not simplex_qp(H, g, x, n, 0, damp, z, work, L, index, inside):
                stat[4] += 1
                break
            slope = 0.0
            for a in range(n):
                slope += g[a] * (z[a] - x[a])
            if slope >= 0.0:
                break
            alpha = 1.0
            for search in range(25):
                for a in range(n):
                    xn[a] = x[a] + alpha * (z[a] - x[a])
                stat[0] += 1
                new = respond(n, N, pool, start, stride, length, head, w, B, xn, eps, centre, mu, m, seg, q2, H, free, stat)
                if new <= value + 1e-4 * alpha * slope + 1e-15 * (1 + abs(value)):
                    break
                s2 = 0.0
                for a in range(n):
                    s2 += q2[a] * (z[a] - x[a])
                if s2 > 0.0:
                    alpha *= max(0.05, min(0.7, -slope / (s2 - slope)))
                else:
                    alpha *= 0.3
            for a in range(n):
                x[a] = xn[a]
                q[a] = q2[a]
            value = new
        least = 0.0
        for a in range(n):
            least = min(least, q[a])
        if least > low or outer == 0:
            low = max(low, least)
            for a in range(n):
                for i in range(N):
                    best_m[a, i] = m[a, i]
        ub = upper_bound(n, N, pool, start, stride, length, head, w, B, x, mu)
        if ub < high:
            high = ub
            for a in range(n):
                best_x[a] = x[a]
            for i in range(N):
                best_mu[i] = mu[i]
        if high - low <= tol:
            break
        for a in range(n):
            for i in range(N):
                centre[a, i] = m[a, i]
        taken = steps - before
        if taken <= 4:
            eps *= 0.2
        elif taken <= 9:
            eps *= 0.5
        elif taken > 15:
            eps = min(3.0 * eps, 10 * unit)
        eps = max(eps, 1e-3 * unit)
    for a in range(A):
        policy[a] = 0.0
        for i in range(N):
            mass[a, i] = 0.0
    if high < 0.0:
        for a in range(n):
            policy[act[a]] = best_x[a]
    else:
        policy[first] = 1.0
    for a in range(n):
        for i in range(N):
            mass[act[a], i] = best_m[a, i]
    for i in range(N):
        mu[i] = best_mu[i]
    return high, low, steps


STAT = np.zeros(8)


@njit(cache=True, nogil=True, error_model="numpy")
def _update(start, stop, layout, order, value, top, span, tol, memory, out, stat):  # type: ignore[no-untyped-def]
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, nominal = np.empty(largest_state(layout, start, stop)), np.empty(A), np.empty(A)
    scale = np.ones((A, N))
    pool = np.empty((1, 3))
    for s in range(start, stop):
        base, unit = prologue(layout, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        row_scales(layout, s, scale)
        first = layout.indptr[s * A]
        ptr = layout.indptr[s * A : (s + 1) * A + 1] - first
        y = layout.data[N * first : N * layout.indptr[(s + 1) * A]]
        mean = layout.mean[first : layout.indptr[(s + 1) * A]]
        need = 0
        for a in range(A):
            if cost[a] + nominal[a] < 0.0:
                need += (N + 1) * (ptr[a + 1] - ptr[a] + 1)
        if need > pool.shape[0]:
            pool = np.empty((need, 3))
        upper, lower, out.passes[s] = solve_state(
            y, ptr, N, u, layout.weights, mean, cost, nominal, layout.radius[s], tol, scale,
            memory.by_kernel[s], memory.by_row[s], out.policy[s], pool, stat
        )  # fmt: skip
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower


def update(*args):
    _update(*args, STAT)
