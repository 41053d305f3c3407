"""Nature's rows of ℓ2 balls of finite order: y(t) = Proj(ŷ + t u), a multiplier for each row; the other metrics have those of `drmdp.bellman.nature_rows`."""

from __future__ import annotations

from drmdp.bellman.nature_rows import Answer, begin, piece_at
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.layout.sorting import count_above

TRIALS = 100


@njit(**INLINE)
def _sums(piece, i, t, tau, order, unlisted):
    """Active entries of a row, those of ŷ + t u > τ.

    reads   piece, i, t, tau, order, unlisted
    returns how many, and the sum of ŷ + t u over them
    """
    K = piece.u.size
    k = count_above(order, t, tau) if unlisted else 0
    count, total = float(k), t * order.sum1[k] if unlisted else 0.0
    for j in range(K):
        p, z = piece.y[i * K + j] * piece.scale[i], t * piece.u[j]
        if p + z > tau:
            total += p
            if not (unlisted and z > tau):
                count += 1.0
                total += z
    return count, total


@njit(**INLINE)
def _threshold(piece, i, t, order, unlisted):
    """τ with Σ (ŷ + t u − τ)⁺ = 1, by Newton's method: monotone from below, where its first step leads from anywhere.

    reads   piece, i, t, order, unlisted
    returns it
    """
    K = piece.u.size
    tau = -1.0 if unlisted else -1e300
    for j in range(K):
        tau = max(tau, piece.y[i * K + j] * piece.scale[i] + t * piece.u[j] - 1.0)
    if unlisted and t * order.level > tau:
        count, total = _sums(piece, i, t, t * order.level, order, unlisted)
        tau = max(tau, (total - 1.0) / count) if count > 0.0 else tau
    for _ in range(TRIALS):
        count, total = _sums(piece, i, t, tau, order, unlisted)
        new = (total - 1.0) / count
        if not new > tau:
            break
        tau = new
    return tau


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work):
    """Rows of the states start … stop − 1.

    reads   layout, point, memory.by_row, question: weights, share
    fills   question.target, work
    """
    order, unlisted, w = point.order, layout.unlisted, layout.weights
    for s in range(start, stop):
        if not begin(layout, point, s, work.state):
            continue
        for a in range(question.weights.shape[1]):
            x = question.weights[s, a]
            if not x > 0.0:
                continue
            piece, share = piece_at(layout, s, a, work.state, question.target), question.share[s]
            K = piece.u.size
            for i in range(w.size):
                t, c = memory.by_row[s, a, i], x * w[i]
                moved = c * share[min(i, share.size - 1)] if t > 0.0 else 0.0
                for j in range(K):
                    piece.mass[j] += (c - moved) * piece.y[i * K + j] * piece.scale[i]
                if not moved > 0.0:
                    continue
                tau = _threshold(piece, i, t, order, unlisted)
                if unlisted:
                    piece.length[i] = count_above(order, t, tau)
                    piece.slope[i], piece.level[i] = moved * t, -moved * tau
                for j in range(K):
                    z = piece.y[i * K + j] * piece.scale[i] + t * piece.u[j] - tau
                    piece.mass[j] += moved * z if z > 0.0 else 0.0
                    if unlisted and t * piece.u[j] > tau:  # counted in the prefix
                        piece.mass[j] -= moved * (t * piece.u[j] - tau)


L2_NATURE = Answer(_respond, single=0, prefixes=True)
"""How her rows follow from multipliers."""
