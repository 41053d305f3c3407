"""ℓ1 rows of a ball of finite order: mass moved to the top, entry by entry; see `drmdp.bellman.orders`.

Moving the mass m of kernel i costs d_i = 2 m. Entries of all played actions are served by falling slope σ = −x_a u, an order that all kernels share. The
price of a unit of mass is 2 λ = 2 μ (2 m/θ)^{p−1}, which grows with m while σ falls: a binary search finds the entry where they cross. There m is inside
an entry and 2 λ = σ, or at its beginning and 2 λ is the price.
"""

from __future__ import annotations

from drmdp.bellman.orders.ball import price_of
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.sorting import rank


@njit(**LEAN)
def prepare(ball, x):
    """Bring the entries of the played actions in order and sum over them.

    reads   ball: rows; x (A,)
    fills   ball.moves
    """
    rows, moves = ball.rows, ball.moves
    w, count = rows.w, 0
    for a in range(x.size):
        if x[a] > 0.0:
            for e in range(rows.ptr[a], rows.ptr[a + 1]):
                if rows.u[e] < 0.0:
                    moves.slope[count], moves.action[count], moves.spare[count] = x[a] * rows.u[e], a, e
                    count += 1
    moves.count[0] = count
    for k in range(count):
        moves.entry[k] = moves.spare[k]
    rank(moves.slope[:count], moves.order, moves.spare)
    for i in range(w.size):
        mass, gain = 0.0, 0.0
        moves.mass[i, 0], moves.gain[i, 0] = 0.0, 0.0
        for k in range(count):
            j = moves.order[k]
            m = probability(rows, moves.action[j], moves.entry[j], i)
            mass += m
            gain -= m * moves.slope[j]
            moves.mass[i, k + 1], moves.gain[i, k + 1] = mass, gain


@njit(**INLINE)
def probability(rows, a, e, i):
    """ŷ of entry e of action a in kernel i.

    reads   rows, a, e, i
    returns it
    """
    lo, N = rows.ptr[a], rows.w.size
    return rows.y[N * lo + i * (rows.ptr[a + 1] - lo) + e - lo] * rows.scale[a, i]


@njit(**LEAN)
def respond(ball, mu):
    """Nature's answer at a price.

    reads   ball (prepared), mu
    fills   ball.kernels: r, price, free, place
    returns Σ_i w_i φ_i(r_i)
    """
    moves, kernels, w = ball.moves, ball.kernels, ball.rows.w
    p, theta, n, total = ball.p, ball.theta, moves.count[0], 0.0
    for i in range(w.size):
        mass = moves.mass[i]
        lo, hi = 0, n  # the first entry whose slope is at most the price of its end
        while lo < hi:
            mid = (lo + hi) // 2
            if -moves.slope[moves.order[mid]] <= 2.0 * price_of(mu, 2.0 * mass[mid + 1] / theta, p):
                hi = mid
            else:
                lo = mid + 1
        m, gain = mass[lo], moves.gain[i, lo]
        price = price_of(mu, 2.0 * m / theta, p)
        kernels.free[i] = -1
        if lo < n and p > 1.0:
            slope = -moves.slope[moves.order[lo]]
            if slope > 2.0 * price:
                inside = 0.5 * theta * (0.5 * slope / mu) ** (1.0 / (p - 1.0))
                inside = min(max(inside, m), mass[lo + 1])
                gain += slope * (inside - m)
                m, price, kernels.free[i] = inside, 0.5 * slope, moves.order[lo]
        kernels.r[i], kernels.price[i], kernels.place[i] = 2.0 * m, price, lo
        total += w[i] * gain
    return total


@njit(**LEAN)
def write(ball, amounts, gain):
    """Write down the answer.

    reads   ball: moves, kernels
    fills   amounts (A, N): moved masses; gain (A,): above the nominal values
    """
    rows, moves, kernels = ball.rows, ball.moves, ball.kernels
    for a in range(gain.size):
        gain[a] = 0.0
        for i in range(rows.w.size):
            amounts[a, i] = 0.0
    for i in range(rows.w.size):
        lo = kernels.place[i]
        for k in range(lo + 1 if kernels.free[i] >= 0 else lo):
            j = moves.order[k]
            a, e = moves.action[j], moves.entry[j]
            m = probability(rows, a, e, i) if k < lo else 0.5 * kernels.r[i] - moves.mass[i, lo]
            amounts[a, i] += m
            gain[a] -= rows.w[i] * m * rows.u[e]


@njit(**LEAN)
def gains(ball, amounts, gain):
    """What moved masses gain.

    reads   ball.rows, amounts (A, N)
    fills   gain (A,): above the nominal values; ball.moves
    """
    rows, moves = ball.rows, ball.moves
    for a in range(gain.size):
        gain[a] = 0.0
        if not ball.live[a]:
            continue
        lo, hi = rows.ptr[a], rows.ptr[a + 1]
        rank(rows.u[lo:hi], moves.order, moves.spare)
        for i in range(rows.w.size):
            left = amounts[a, i]
            for k in range(hi - lo):
                if not left > 0.0:
                    break
                e = lo + moves.order[k]
                take = min(left, probability(rows, a, e, i))
                gain[a] -= rows.w[i] * take * rows.u[e]
                left -= take
