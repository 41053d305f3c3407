"""Concave gains, and nature's best use of one budget for all kernels: the inner problem of order 1.

Tables are those of `drmdp.bellman.piecewise.budget_per_kernel`; here the actions of kernel i share one amount r_i, and the mean Σ_i w_i r_i ≤ B is limited.
With prices x and G_i(r) = Σ_a x_a g_ia(r), `share` solves

    max Σ_i w_i [G_i(r_i) − ½ε_i (r_i − r⁰_i)²],   r ≥ 0,  Σ_i w_i r_i ≤ B,

by Newton's method on its multiplier μ, and `knapsack` the same with ε = 0, exactly: it takes all segments of slope above μ, and of those
of slope μ what is left of the budget. segment[a, i] = p means C_{p−1} ≤ r_i < C_p in the row of action a; p = L + 1 is beyond its end.
"""

from __future__ import annotations

import numpy as np

from drmdp.bellman.piecewise.budget_per_kernel import TRIALS
from drmdp.core.compiled import KERNEL, LEAN, njit

LONG = 1_000_000  # more segments than any walk can meet


@njit(**LEAN)
def settle(priced, i, r, segment):
    """Find the segments of an amount.

    reads   priced, i, r
    fills   segment[:, i], a guess before
    """
    tables, n = priced.tables, priced.n
    for a in range(n):
        at = tables.start[a] + i * tables.stride[a]
        last = tables.length[a, i]
        p = min(max(segment[a, i], 1), last + 1)
        while p <= last and tables.lines[at + p, 0] <= r:
            p += 1
        while p > 1 and tables.lines[at + p - 1, 0] > r:
            p -= 1
        segment[a, i] = p


@njit(**LEAN)
def right_of(priced, i, segment):
    """G_i to the right.

    reads   priced, i, segment (A, N)
    returns its slope, and how far that reaches
    """
    tables, n, _, x = priced
    slope = 0.0
    end = np.inf
    for a in range(n):
        p = segment[a, i]
        if x[a] > 0.0 and p <= tables.length[a, i]:
            line = tables.start[a] + i * tables.stride[a] + p
            slope += x[a] * tables.lines[line, 2]
            end = min(end, tables.lines[line, 0])
    return slope, end


@njit(**LEAN)
def left_of(priced, i, r, segment):
    """G_i to the left of r > 0.

    reads   priced, i, r, segment (A, N)
    returns its slope, and how far that reaches
    """
    tables, n, _, x = priced
    slope = 0.0
    begin = 0.0
    for a in range(n):
        if x[a] > 0.0:
            p = segment[a, i]
            at = tables.start[a] + i * tables.stride[a]
            if p > 1 and tables.lines[at + p - 1, 0] >= r:
                p -= 1
            if p <= tables.length[a, i]:
                slope += x[a] * tables.lines[at + p, 2]
            begin = max(begin, tables.lines[at + p - 1, 0])
    return slope, begin


@njit(**LEAN)
def best_radius(priced, i, mu, eps, centre, r, segment):
    """Maximise G_i(r) − μ r − ½ε (r − r⁰)² from r on.

    reads   priced, i, mu, eps, centre (r⁰), r (a guess)
    fills   segment[:, i]
    returns r, whether it is inside a segment, and at a kink the range of μ
    """
    settle(priced, i, r, segment)
    for _ in range(LONG):
        slope, end = right_of(priced, i, segment)
        pull = mu + eps * (r - centre)
        if slope > pull:
            new = centre + (slope - mu) / eps
            if new < end:
                r = max(new, r)
                settle(priced, i, r, segment)  # rows that are not played
                return r, True, mu, mu
            r = end
            settle(priced, i, r, segment)
            continue
        if r <= 0.0:
            return 0.0, False, np.inf, slope - eps * (r - centre)
        left, begin = left_of(priced, i, r, segment)
        if left >= pull:
            return r, False, left - eps * (r - centre), slope - eps * (r - centre)
        new = centre + (left - mu) / eps
        if new > begin:
            r = min(new, r)
            settle(priced, i, r, segment)
            return r, True, mu, mu
        r = begin
        settle(priced, i, r, segment)
    return r, False, mu, mu


@njit(**LEAN)
def share(priced, w, mu, eps, centre, r, segment, free):
    """Share the budget among the kernels.

    reads   priced, w (N,), mu (a guess), eps (N,), centre (N,)
    fills   r (N,) and segment (A, N), guesses before; free (N,): whether r is inside a segment
    returns μ, Σ_free w/ε and Σ w r
    """
    B = priced.B
    lo = 0.0
    hi = np.inf
    rate = 0.0
    total = 0.0
    for trial in range(100):
        total = 0.0
        rate = 0.0
        up, up_rate, down, down_rate = np.inf, 1.0, 0.0, 1.0
        for i in range(w.size):
            r[i], inside, leave_down, leave_up = best_radius(priced, i, mu, eps[i], centre[i], r[i], segment)
            free[i] = inside
            total += w[i] * r[i]
            if inside:
                rate += w[i] / eps[i]
            else:
                if leave_down < up:
                    up, up_rate = leave_down, w[i] / eps[i]
                if leave_up > down:
                    down, down_rate = leave_up, w[i] / eps[i]
        over = total - B
        if abs(over) <= 1e-14 * B + 4e-16 * mu * rate or (mu <= 0.0 and over <= 0.0):
            break
        if over > 0.0:
            lo = mu
        else:
            hi = mu
        if hi < np.inf and hi - lo <= 2e-16 * hi:
            break
        if rate > 0.0:
            new = mu + over / rate
        else:
            new = up + over / up_rate if over > 0.0 else down + over / down_rate
        if new <= 0.0 and lo <= 0.0:
            new = 0.0
        if not (new >= lo and new <= hi) or new == mu or trial > TRIALS:
            new = 0.5 * (lo + hi) if hi < np.inf else 2.0 * lo + eps[0]
        mu = new
    return mu, rate, total


@njit(**LEAN)
def _take(priced, w, mu, r, segment):
    """Take the segments of slope above μ.

    reads   priced, w (N,), mu
    fills   r (N,) and segment (A, N), guesses before
    returns Σ w r, the least slope taken and the largest one not taken
    """
    total = 0.0
    least = np.inf
    most = 0.0
    for i in range(w.size):
        settle(priced, i, r[i], segment)
        while True:
            slope, end = right_of(priced, i, segment)
            if not slope > mu:
                break
            r[i] = end
            settle(priced, i, end, segment)
        while r[i] > 0.0:
            left, begin = left_of(priced, i, r[i], segment)
            if left > mu:
                least = min(least, left)
                break
            slope = left
            r[i] = begin
            settle(priced, i, begin, segment)
        most = max(most, slope)
        total += w[i] * r[i]
    return total, least, most


@njit(**KERNEL)
def knapsack(priced, w, mu, r, segment):
    """Find the least μ at which the segments of slope above it fit into the budget.

    reads   priced, w (N,), mu (a guess)
    fills   r (N,), those segments, and segment (A, N); guesses before
    returns μ and what is left of the budget
    """
    B = priced.B
    low, low_total = 0.0, np.inf  # too much is taken at low
    high, high_total = np.inf, 0.0  # not too much at high
    floor, ceiling = 0.0, np.inf  # the answer lies between these slopes
    stride = 0.1
    side = 0
    left = 0.0
    for trial in range(400):
        total, least, most = _take(priced, w, mu, r, segment)
        left = B - total
        if left < 0.0:
            low, low_total = mu, total
            floor = least
            high_total = 0.5 * (high_total + B) if side > 0 else high_total  # Illinois: no end may stay for long
            side = 1
        else:
            high, high_total = mu, total
            ceiling = most
            low_total = 0.5 * (low_total + B) if side < 0 else low_total
            side = -1
        if floor >= ceiling:
            break
        if trial > TRIALS and high < np.inf:
            mu = 0.5 * (floor + ceiling)
        elif low_total < np.inf and high < np.inf:
            mu = low + (low_total - B) / (low_total - high_total) * (high - low)
        else:
            mu += (stride * mu + 1e-9) * side
            stride *= 3.0
        mu = max(mu, floor)
        if not mu < ceiling:
            mu = floor
    if side > 0:  # the last trial took too much
        mu = ceiling
        total, _, _ = _take(priced, w, mu, r, segment)
        left = B - total
    return ceiling, max(left, 0.0)


@njit(**LEAN)
def _reach(priced, i, mu, r, segment):
    """How far the slope of G_i is μ from r on.

    reads   priced, i, mu, r, segment (A, N)
    returns the end; inf if μ is 0
    """
    here = r
    while True:
        slope, end = right_of(priced, i, segment)
        if slope < mu or end == np.inf:
            break
        r = end
        settle(priced, i, r, segment)
    settle(priced, i, here, segment)
    return r if mu > 0.0 else np.inf


@njit(**KERNEL)
def spend(priced, left, w, mu, centre, r, segment, reach):
    """Spend what `knapsack` has left where the slope is μ: in the direction of r⁰, then in order, or evenly if μ is 0.

    reads   priced, left, w (N,), mu, centre (N,)
    fills   r (N,), segment (A, N), reach (N,)
    """
    missing = 0.0
    for i in range(w.size):
        reach[i] = _reach(priced, i, mu, r[i], segment)
        missing += w[i] * max(min(centre[i], reach[i]) - r[i], 0.0)
    part = min(1.0, left / missing) if missing > 0.0 else 0.0
    left = max(left - part * missing, 0.0)
    for i in range(w.size):
        r[i] += part * max(min(centre[i], reach[i]) - r[i], 0.0)
        more = left if mu <= 0.0 else max(min(reach[i] - r[i], left / w[i]), 0.0)
        r[i] += more
        left -= w[i] * more if mu > 0.0 else 0.0
        settle(priced, i, r[i], segment)
