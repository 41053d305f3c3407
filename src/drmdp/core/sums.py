"""Sums of the stored rows of a pair, and sums that do not gather rounding.

With ε = 2⁻⁵², `add` keeps a sum of n numbers ≥ 0 in two: `total`, which is their sum as rounded, and `rest`. What the pair leaves out grows by ε²/2 of the
sum with each number, so that total is off by at most ½ (1 + n ε) ε, relatively, in any order. Sums of doubles do not underflow.
"""

from __future__ import annotations

from drmdp.core.compiled import INLINE, KERNEL, njit


@njit(**KERNEL)
def add_rows(indptr, data, weights, total):
    """Add Σ_i w_i ŷ_i; rows stored in float32 are divided by their sums.

    reads   indptr (pairs + 1,), data (N·nnz,), weights (N,)
    fills   total (nnz,)
    """
    n = weights.size
    for k in range(indptr.size - 1):
        lo, hi = indptr[k], indptr[k + 1]
        length = hi - lo
        for i in range(n):
            if weights[i] > 0.0:
                at = n * lo + i * length
                scale = 1.0
                if data.itemsize != 8:
                    scale = 0.0
                    for j in range(length):
                        scale += data[at + j]
                for j in range(length):
                    total[lo + j] += weights[i] * (data[at + j] / scale)


@njit(**KERNEL)
def suffix_sums(p, tail, rest):
    """Sums from each place on.

    reads   p (C, E, N) ≥ 0
    fills   tail (C, E, N), rest (N,)
    """
    C, E, N = p.shape
    for c in range(C):
        for i in range(N):
            tail[c, E - 1, i], rest[i] = p[c, E - 1, i], 0.0
        for k in range(E - 2, -1, -1):
            for i in range(N):
                tail[c, k, i], rest[i] = add(tail[c, k + 1, i], rest[i], p[c, k, i])


@njit(**INLINE)
def add(total, rest, x):
    """Add x to a sum that is kept in two numbers.

    reads   total, rest, x
    returns both anew: the sum as rounded, and what that leaves out
    """
    high = total + x
    own = high - total
    low = ((total - (high - own)) + (x - own)) + rest
    new = high + low
    return new, low - (new - high)
