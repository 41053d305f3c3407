"""Proximal map of the (ℓ∞, 1) ball: the radii r_i that share the budget, Σ_i w_i r_i = θ.

For a multiplier μ, r_i(μ) solves Λ_i(r_i) = μ w_i, with Λ_i of `drmdp.prox.linf`; it is continuous and falls with μ, at the
rate w_i/Λ_i' or, where r_i sits in a jump of Λ_i, not at all. So Newton's method with a bracket finds μ.

Λ_i does not depend on μ. What was found for one μ, the last r_i with its line and the nearest points on both sides,
serves the next: a kernel in a jump that holds the new μ w_i too costs nothing, others mostly one evaluation. The r_i
need be no better than μ is. A step that would pass a jump of Λ_i stops right behind it.

Jumps are where ŷ is, whatever the point: a kernel that sat in one will mostly sit there again, and its line, which is that of one side,
says nothing about μ. So the first μ from a guess is the best for the lines of the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drmdp.layout.layout import FAST, row_scales
from drmdp.prox.displacement import ROUNDING, Family, displace, make_work, reset
from drmdp.prox.linf import solve_row, write

TRIALS = 200
STEPS = 200
DOUBT = 60  # trials after which nothing is reused
LEAST = 1e-13  # the least r_i, relative to θ: at 0 there is no Λ
R, PULL, SLOPE, LOW, ABOVE, HIGH, BELOW, RATE = range(8)
"""By kernel: r_i, Λ_i and −Λ_i' there; a smaller r and its Λ, a larger r and its Λ; −dr_i/dμ."""


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _reach(d, p, scale, alpha, shift):  # type: ignore[no-untyped-def]
    """The largest |e| of a row without bounds but 0."""
    most = 0.0
    for j in range(d.size):
        own = scale * p[j]
        e = (d[j] - alpha) - shift
        e = e if e > -own else -own
        e = e if e > 0.0 else -e
        most = e if e > most else most
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def free_radius(layout, s, y, i, threshold, work):  # type: ignore[no-untyped-def]
    """The r_i from which the ball does not matter to kernel i."""
    N, A = layout.weights.size, layout.available.shape[1]
    most = 0.0
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        if hi > lo:
            e = N * lo + i * (hi - lo)
            row, p, scale = y[e : e + hi - lo], layout.data[e : e + hi - lo], work.scale[a, i]
            alpha, work.shift[a, i] = solve_row(row, p, scale, np.inf, threshold[s * A + a, i] + work.shift[a, i])[:2]
            threshold[s * A + a, i] = alpha
            most = max(most, _reach(row, p, scale, alpha, work.shift[a, i]))
        work.rate[a, i] = 0.0
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(layout, s, y, i, r, threshold, work):  # type: ignore[no-untyped-def]
    """Put Λ_i(r) and its slope into work."""
    N, A = layout.weights.size, layout.available.shape[1]
    kernel = work.kernel
    change = r - kernel[R, i]
    kernel[R, i], kernel[PULL, i], kernel[SLOPE, i] = r, 0.0, 0.0
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        if hi > lo:
            e = N * lo + i * (hi - lo)
            guess = threshold[s * A + a, i] + work.shift[a, i] + change * work.rate[a, i]
            threshold[s * A + a, i], work.shift[a, i], pull, slope, work.rate[a, i] = solve_row(
                y[e : e + hi - lo], layout.data[e : e + hi - lo], work.scale[a, i], r, guess
            )
            kernel[PULL, i] += pull
            kernel[SLOPE, i] += slope


@njit(cache=True, nogil=True, error_model="numpy")
def jump(layout, s, y, i, r, up, threshold, work):  # type: ignore[no-untyped-def]
    """Where Λ_i jumps next above or below r, as far as the rows at r can tell."""
    N, A = layout.weights.size, layout.available.shape[1]
    best = np.inf if up else 0.0
    for a in range(A):
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        alpha, scale = threshold[s * A + a, i], work.scale[a, i]
        inside, odd = 0, 0.0
        lost, last = 0.0, 0.0
        for j in range(N * lo + i * (hi - lo), N * lo + (i + 1) * (hi - lo)):
            own = scale * layout.data[j]
            e = y[j] - alpha
            if e > r:
                odd += 1.0
            elif e < -min(own, r):
                if own > r:
                    odd -= 1.0
                    best = min(best, own) if up else best
                else:
                    lost += own
                    best = best if up else max(best, own)
            else:
                inside += 1
                last = own
        if inside == 1:  # where it meets a bound: r, −r or −ŷ
            for bound in (lost / (odd + 1.0), lost / (odd - 1.0), (lost + last) / odd):
                if up and bound > r:
                    best = min(best, bound)
                elif not up and bound < r:
                    best = max(best, bound)
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def settle(layout, s, y, i, goal, least, tol, threshold, work):  # type: ignore[no-untyped-def]
    """Find r_i with Λ_i(r_i) = goal, up to tol; returns −dr_i/dΛ."""
    kernel = work.kernel
    if goal > kernel[ABOVE, i]:
        kernel[LOW, i], kernel[ABOVE, i] = least, np.inf
    if goal < kernel[BELOW, i]:
        kernel[HIGH, i], kernel[BELOW, i] = np.inf, 0.0
    near = 0.1 * tol
    for turn in range(STEPS):
        r, pull, slope, low, high = kernel[R, i], kernel[PULL, i], kernel[SLOPE, i], kernel[LOW, i], kernel[HIGH, i]
        if pull > goal and r >= low:
            low = r
            kernel[LOW, i], kernel[ABOVE, i] = r, pull
        elif pull <= goal and r <= high:
            high = r
            kernel[HIGH, i], kernel[BELOW, i] = r, pull
        if abs(pull - goal) <= slope * tol + 4.0 * ROUNDING * goal and slope > 0.0 and slope < np.inf:
            return 1.0 / slope
        if high - low <= tol:
            return 0.0
        up = pull > goal
        if slope == 0.0 and not up:
            new = min(free_radius(layout, s, y, i, threshold, work), high)
            kernel[HIGH, i] = new
            high = new
            new -= near
        else:
            new = r + (pull - goal) / slope
            if turn > 0:
                stop = jump(layout, s, y, i, r, up, threshold, work)
                new = min(new, stop + near) if up else max(new, stop - near)
        new = max(new, least)
        if not (new > low and new < high) and not (new == least and low == least):
            new = 0.5 * (low + high) if high < np.inf else 2.0 * r
        elif turn % 4 == 3 and high < np.inf:
            new = 0.5 * (low + high)
        evaluate(layout, s, y, i, new, threshold, work)
    return 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def unbound(layout, s, y, threshold, work):  # type: ignore[no-untyped-def]
    """Fill r_i with the largest moves that the point asks for; returns Σ_i w_i r_i."""
    total = 0.0
    for i in range(layout.weights.size):
        work.kernel[R, i] = free_radius(layout, s, y, i, threshold, work)
        work.kernel[PULL, i], work.kernel[SLOPE, i] = 0.0, 0.0
        total += layout.weights[i] * work.kernel[R, i]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def forget(kernel, least):  # type: ignore[no-untyped-def]
    """Drop the nearest points on both sides."""
    kernel[LOW], kernel[ABOVE], kernel[HIGH], kernel[BELOW] = least, np.inf, np.inf, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def fit(w, kernel, moving):  # type: ignore[no-untyped-def]
    """The best μ for the lines of the moving kernels, those with a positive number; 0 if there is none."""
    mu, fall = 0.0, 0.0
    for i in range(w.size):
        if moving[i] > 0.0 and kernel[SLOPE, i] > 0.0:
            mu += w[i] * kernel[PULL, i] / kernel[SLOPE, i]
            fall += w[i] * w[i] / kernel[SLOPE, i]
    return mu / fall if fall > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def search(layout, s, y, theta, accuracy, memory, work):  # type: ignore[no-untyped-def]
    """Fill the r_i; returns μ, the trials and whether Σ_i w_i r_i = θ was found."""
    w, kernel, guess = layout.weights, work.kernel, memory.multiplier[s]
    N, least = w.size, LEAST * theta
    warm = guess[0] > 0.0
    work.rate[:] = 0.0
    work.shift[:] = 0.0
    kernel[R] = guess[1 : N + 1]
    total = theta if warm else unbound(layout, s, y, memory.threshold, work)
    if total <= theta * (1.0 + accuracy) and not warm:
        return 0.0, 0, True
    forget(kernel, least)
    for i in range(N):
        r = max(kernel[R, i] * theta / total, least)
        kernel[R, i] = r
        evaluate(layout, s, y, i, r, memory.threshold, work)
    mu = fit(w, kernel, guess[N + 1 :]) if warm else 0.0
    mu = mu if mu > 0.0 else fit(w, kernel, w)
    mu = guess[0] if warm and not mu > 0.0 else mu
    low, high = 0.0, np.inf
    rest = theta
    trial = 1
    while trial < TRIALS:
        total, fall = 0.0, 0.0
        tol = max(0.01 * abs(rest), 0.1 * accuracy * theta)
        if trial > DOUBT:  # rounding may have spoilt what is known
            low, high = (0.0, np.inf) if trial == DOUBT + 1 else (low, high)
            forget(kernel, least)
        for i in range(N):
            kernel[RATE, i] = w[i] * settle(layout, s, y, i, mu * w[i], least, tol, memory.threshold, work)
            fall += w[i] * kernel[RATE, i]
            total += w[i] * kernel[R, i]
        rest = total - theta
        if abs(rest) <= accuracy * theta and tol <= accuracy * theta:
            break
        if abs(rest) <= 3.0 * tol and tol > accuracy * theta:  # the same μ again, more precisely
            continue
        if rest > 0.0:
            low = mu
        else:
            high = mu
        if high - low <= ROUNDING * high and high < np.inf:
            break
        new = mu + rest / fall if fall > 0.0 else np.inf
        if not (new > low and new < high):
            if warm and low == 0.0 and rest < 0.0:  # does the ball bind at all?
                warm = False
                if unbound(layout, s, y, memory.threshold, work) <= theta * (1.0 + accuracy):
                    return 0.0, 0, True
                forget(kernel, least)  # which may not hold the r_i any more
            new = 2.0 * mu if high == np.inf else 0.5 * (low + high)
        mu = new
        trial += 1
    found = abs(rest) <= 1e-4 * theta
    if fall > 0.0 and found:  # what the rounding of μ left
        for i in range(N):
            new = max(kernel[R, i] - kernel[RATE, i] * rest / fall, 0.0)
            work.shift[:, i] += work.rate[:, i] * (new - kernel[R, i])
            kernel[R, i] = new
    return mu, trial, found


@njit(cache=True, nogil=True, error_model="numpy")
def project_states(start, stop, layout, y, step, value, accuracy, memory, each, inside):  # type: ignore[no-untyped-def]
    """Project in place the rows y + w_i·step[s, a]·(c + λ v) of the states start … stop − 1.

    The multipliers of a state are μ, the r_i and −dr_i/dμ, found when the r_i are right up to the accuracy relative to θ.
    """
    w = layout.weights
    work = make_work(layout)
    for s in range(start, stop):
        theta = layout.radius[s]
        row_scales(layout, s, work.scale)
        if theta == 0.0:
            reset(layout, s, y, work)
            continue
        displace(layout, s, y, step, value, memory, work, False)
        warm = memory.multiplier[s, 0] > 0.0
        mu, memory.trials[s, 0], found = search(layout, s, y, theta, accuracy, memory, work)
        if warm and not found:  # misled by where the rows were
            memory.multiplier[s] = 0.0
            memory.threshold[s * layout.available.shape[1] : (s + 1) * layout.available.shape[1]] = 0.0
            mu, more, _ = search(layout, s, y, theta, accuracy, memory, work)
            memory.trials[s, 0] += more
        total = 0.0
        for i in range(w.size):
            total += w[i] * work.kernel[R, i]
        memory.multiplier[s, 0] = mu
        for i in range(w.size):
            r = work.kernel[R, i] * (theta / total if total > theta else 1.0)
            memory.multiplier[s, 1 + i], memory.multiplier[s, 1 + w.size + i] = r, work.kernel[RATE, i]
            write(layout, s, y, i, r, memory.threshold, work)


SHARED = Family(project_states, each=True, more=(1, 1))
"""One budget for the radii of all kernels."""
