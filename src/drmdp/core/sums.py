"""Sums of the stored rows of a pair, and sums without rounding."""

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
def mean_of(weights, numbers, parts):
    """Σ w·x, the products rounded and their sum once, as `math.fsum` does (Shewchuk 1997).

    reads   weights (n,), numbers (n,)
    fills   parts (n,): numbers that do not overlap and have the same sum
    returns it
    """
    count = 0
    for k in range(numbers.size):
        x, kept = weights[k] * numbers[k], 0
        for j in range(count):
            total, lost = two_sum(x, parts[j])
            if lost != 0.0:
                parts[kept] = lost
                kept += 1
            x = total
        count = kept
        if x != 0.0:
            parts[count] = x
            count += 1
    total, lost = 0.0, 0.0
    while count > 0 and lost == 0.0:
        count -= 1
        total, lost = two_sum(total, parts[count])
    if count > 0 and lost * parts[count - 1] > 0.0:  # what is left decides a tie
        more = total + 2.0 * lost
        if more - total == 2.0 * lost:
            total = more
    return total


@njit(**INLINE)
def two_sum(a, b):
    """a + b as rounded, and what that lost.

    reads   a, b
    returns both
    """
    total = a + b
    own = total - a
    return total, (a - (total - own)) + (b - own)
