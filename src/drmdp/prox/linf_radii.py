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

from drmdp.core.compiled import FAST, KERNEL, LEAN, njit
from drmdp.prox.displacement import ROUNDING, Family, Group, Job, open_state, restart, row_of
from drmdp.prox.linf import solve_row, write

TRIALS = 200
STEPS = 200
DOUBT = 60  # trials after which nothing is reused
LEAST = 1e-13  # the least r_i, relative to θ: at 0 there is no Λ
R, PULL, SLOPE, LOW, ABOVE, HIGH, BELOW, RATE = range(8)
"""By kernel: r_i, Λ_i and −Λ_i' there; a smaller r and its Λ, a larger r and its Λ; −dr_i/dμ."""


@njit(fastmath=FAST, **LEAN)
def _reach(row, alpha, shift):
    """The largest |e| of a row without bounds but 0.

    reads   row, alpha, shift
    returns largest |e|
    """
    d, p, scale = row.d, row.p, row.scale
    highest = 0.0
    for j in range(d.size):
        centre = scale * p[j]
        e = (d[j] - alpha) - shift
        e = e if e > -centre else -centre
        e = e if e > 0.0 else -e
        highest = e if e > highest else highest
    return highest


@njit(**LEAN)
def free_radius(group, i):
    """Find the r_i from which the ball does not matter to kernel i.

    reads   i
    fills   group.threshold, group.work.rate, group.work.shift
    returns r_i
    """
    threshold, work = group.threshold, group.work
    A = work.rate.shape[0]
    highest = 0.0
    for a in range(A):
        row, k = row_of(group, a, i), group.s * A + a
        if row.d.size > 0:
            alpha, work.shift[a, i] = solve_row(row, np.inf, threshold[k, i] + work.shift[a, i])[:2]
            threshold[k, i] = alpha
            highest = max(highest, _reach(row, alpha, work.shift[a, i]))
        work.rate[a, i] = 0.0
    return highest


@njit(**LEAN)
def evaluate(group, i, r):
    """Fill Λ_i(r) and its slope.

    reads   i, r
    fills   group.threshold, group.work.rate, group.work.shift, group.work.kernel
    """
    threshold, work, kernel = group.threshold, group.work, group.work.kernel
    A = work.rate.shape[0]
    change = r - kernel[R, i]
    kernel[R, i], kernel[PULL, i], kernel[SLOPE, i] = r, 0.0, 0.0
    for a in range(A):
        row, k = row_of(group, a, i), group.s * A + a
        if row.d.size > 0:
            guess = threshold[k, i] + work.shift[a, i] + change * work.rate[a, i]
            threshold[k, i], work.shift[a, i], pull, slope, work.rate[a, i] = solve_row(row, r, guess)
            kernel[PULL, i] += pull
            kernel[SLOPE, i] += slope


@njit(**LEAN)
def jump(group, i, r, up):
    """Find where Λ_i jumps next above or below r, as far as the rows at r can tell.

    reads   group, i, r, up
    returns r of the jump
    """
    A = group.work.rate.shape[0]
    best = np.inf if up else 0.0
    for a in range(A):
        row, alpha = row_of(group, a, i), group.threshold[group.s * A + a, i]
        inside, odd = 0, 0.0
        lost, last = 0.0, 0.0
        for j in range(row.d.size):
            centre = row.scale * row.p[j]
            e = row.d[j] - alpha
            if e > r:
                odd += 1.0
            elif e < -min(centre, r):
                if centre > r:
                    odd -= 1.0
                    best = min(best, centre) if up else best
                else:
                    lost += centre
                    best = best if up else max(best, centre)
            else:
                inside += 1
                last = centre
        if inside == 1:  # where it meets a bound: r, −r or −ŷ
            for bound in (lost / (odd + 1.0), lost / (odd - 1.0), (lost + last) / odd):
                if up and bound > r:
                    best = min(best, bound)
                elif not up and bound < r:
                    best = max(best, bound)
    return best


@njit(**LEAN)
def settle(group, i, goal, least, tol):
    """Find r_i with Λ_i(r_i) = goal, up to tol.

    reads   i, goal, least, tol
    fills   group.threshold, group.work
    returns −dr_i/dΛ
    """
    kernel = group.work.kernel
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
            new = min(free_radius(group, i), high)
            kernel[HIGH, i] = new
            high = new
            new -= near
        else:
            new = r + (pull - goal) / slope
            if turn > 0:
                stop = jump(group, i, r, up)
                new = min(new, stop + near) if up else max(new, stop - near)
        new = max(new, least)
        if not (new > low and new < high) and not (new == least and low == least):
            new = 0.5 * (low + high) if high < np.inf else 2.0 * r
        elif turn % 4 == 3 and high < np.inf:
            new = 0.5 * (low + high)
        evaluate(group, i, new)
    return 0.0


@njit(**LEAN)
def unbound(group):
    """Fill r_i with the largest moves that the point asks for.

    fills   group.threshold, group.work
    returns Σ_i w_i r_i
    """
    kernel = group.work.kernel
    total = 0.0
    for i in range(group.w.size):
        kernel[R, i] = free_radius(group, i)
        kernel[PULL, i], kernel[SLOPE, i] = 0.0, 0.0
        total += group.w[i] * kernel[R, i]
    return total


@njit(**LEAN)
def forget(kernel, least):
    """Drop the nearest points on both sides.

    reads   least
    fills   kernel (8, N)
    """
    for i in range(kernel.shape[1]):
        kernel[LOW, i], kernel[ABOVE, i], kernel[HIGH, i], kernel[BELOW, i] = least, np.inf, np.inf, 0.0


@njit(**LEAN)
def fit(w, kernel, moving):
    """The best μ for the lines of the moving kernels, those with a positive number.

    reads   w (N,), kernel (8, N), moving (N,)
    returns μ; 0 if there is none
    """
    mu, fall = 0.0, 0.0
    for i in range(w.size):
        if moving[i] > 0.0 and kernel[SLOPE, i] > 0.0:
            mu += w[i] * kernel[PULL, i] / kernel[SLOPE, i]
            fall += w[i] * w[i] / kernel[SLOPE, i]
    return mu / fall if fall > 0.0 else 0.0


@njit(**LEAN)
def first_price(group, least, theta, total, guess):
    """Evaluate every kernel at its r_i, shrunk from a total to θ, and find a μ for their lines.

    reads   least, theta, total, guess (2N + 1,)
    fills   group.threshold, group.work
    returns μ
    """
    w, kernel = group.w, group.work.kernel
    warm = guess[0] > 0.0
    forget(kernel, least)
    for i in range(w.size):
        r = max(kernel[R, i] * theta / total, least)
        kernel[R, i] = r
        evaluate(group, i, r)
    mu = fit(w, kernel, guess[w.size + 1 :]) if warm else 0.0
    mu = mu if mu > 0.0 else fit(w, kernel, w)
    return guess[0] if warm and not mu > 0.0 else mu


@njit(**LEAN)
def spend(group, excess, fall):
    """Change the r_i along their lines by what the rounding of μ left of the budget.

    reads   excess, fall
    fills   group.work.shift, group.work.kernel
    """
    work, kernel = group.work, group.work.kernel
    for i in range(group.w.size):
        new = max(kernel[R, i] - kernel[RATE, i] * excess / fall, 0.0)
        for a in range(work.rate.shape[0]):
            work.shift[a, i] += work.rate[a, i] * (new - kernel[R, i])
        kernel[R, i] = new


@njit(**LEAN)
def search(group, theta, accuracy, guess):
    """Fill the r_i, from a guess of μ, the r_i and −dr_i/dμ.

    reads   theta, accuracy, guess (2N + 1,)
    fills   group.threshold, group.work
    returns μ, trials, whether Σ_i w_i r_i = θ was found
    """
    w, work, kernel = group.w, group.work, group.work.kernel
    N, least = w.size, LEAST * theta
    warm = guess[0] > 0.0
    restart(work, 0, N)
    for i in range(N):
        kernel[R, i] = guess[1 + i]
    total = theta if warm else unbound(group)
    if total <= theta * (1.0 + accuracy) and not warm:
        return 0.0, 0, True
    mu = first_price(group, least, theta, total, guess)
    low, high = 0.0, np.inf
    excess = theta
    trial = 1
    while trial < TRIALS:
        total, fall = 0.0, 0.0
        tol = max(0.01 * abs(excess), 0.1 * accuracy * theta)
        if trial > DOUBT:  # rounding may have spoilt what is known
            low, high = (0.0, np.inf) if trial == DOUBT + 1 else (low, high)
            forget(kernel, least)
        for i in range(N):
            kernel[RATE, i] = w[i] * settle(group, i, mu * w[i], least, tol)
            fall += w[i] * kernel[RATE, i]
            total += w[i] * kernel[R, i]
        excess = total - theta
        if abs(excess) <= accuracy * theta and tol <= accuracy * theta:
            break
        if abs(excess) <= 3.0 * tol and tol > accuracy * theta:  # the same μ again, more precisely
            continue
        if excess > 0.0:
            low = mu
        else:
            high = mu
        if high - low <= ROUNDING * high and high < np.inf:
            break
        new = mu + excess / fall if fall > 0.0 else np.inf
        if not (new > low and new < high):
            if warm and low == 0.0 and excess < 0.0:  # does the ball bind at all?
                warm = False
                if unbound(group) <= theta * (1.0 + accuracy):
                    return 0.0, 0, True
                forget(kernel, least)  # which may not hold the r_i any more
            new = 2.0 * mu if high == np.inf else 0.5 * (low + high)
        mu = new
        trial += 1
    near = abs(excess) <= 1e-4 * theta
    if fall > 0.0 and near:
        spend(group, excess, fall)
    return mu, trial, near


@njit(**KERNEL)
def project_states(start, stop, layout, push, y, memory, how, work):
    """Project in place the states start … stop − 1.

    The multipliers of a state are μ, the r_i and −dr_i/dμ, found when the r_i are right up to the accuracy relative to θ.

    reads   start, stop, layout, push, how
    fills   y (N·nnz,), memory, work
    """
    w, kernel = layout.weights, work.kernel
    N, A = w.size, layout.available.shape[1]
    job = Job(layout, push, y, memory, how, work)
    for s in range(start, stop):
        theta = open_state(s, job, False)
        if theta == 0.0:
            continue
        group = Group(layout, s, y, memory.threshold, work, w, 0, N)
        multiplier = memory.multiplier[s]
        warm = multiplier[0] > 0.0
        mu, tried, near = search(group, theta, how.accuracy, multiplier)
        if warm and not near:  # misled by where the rows were
            for g in range(multiplier.size):
                multiplier[g] = 0.0
            for k in range(s * A, (s + 1) * A):
                for i in range(N):
                    memory.threshold[k, i] = 0.0
            mu, again, _ = search(group, theta, how.accuracy, multiplier)
            tried += again
        memory.trials[s, 0] = tried
        total = 0.0
        for i in range(N):
            total += w[i] * kernel[R, i]
        multiplier[0] = mu
        for i in range(N):
            r = kernel[R, i] * (theta / total if total > theta else 1.0)
            multiplier[1 + i], multiplier[1 + N + i] = r, kernel[RATE, i]
            write(group, i, r)


SHARED = Family(project_states, each=True, extra=(1, 1))
"""One budget for the radii of all kernels."""
