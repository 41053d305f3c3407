"""Sums of the stored rows of a pair, and sums that do not gather rounding.

With ε = 2⁻⁵², `add` keeps a sum of n numbers ≥ 0 in two: `total`, which is their sum as rounded, and `lost`. What the pair leaves out grows by ε²/2 of the
sum with each number, so that total is off by at most ½ (1 + n ε) ε, relatively, in any order. Sums of doubles do not underflow.

Means do: a weight times a probability may be anything below 1e-308. So a mean is at least `LEAST` where a kernel of positive weight has a probability, is 0
where none has, and is off by LEAST at most beside what it is off relatively.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit

LEAST = 1e-300
"""The least probability of a mean: what is divided by it does not overflow."""


def added(total: Any, lost: Any, x: Any) -> Any:
    """Add x to a sum that is kept in two numbers, or in two arrays.

    reads   total, lost, x
    returns both anew: the sum as rounded, and what that leaves out
    """
    high = total + x
    own = high - total
    low = ((total - (high - own)) + (x - own)) + lost
    new = high + low
    return new, low - (new - high)


add = njit(**INLINE)(added)


def raised(mean: Array, weights: Array, rows: Array) -> Array:
    """The mean (…, K) of rows (…, N, K), at least `LEAST` where a kernel of positive weight has a probability."""
    seen = ((rows > 0) & (weights > 0)[:, None]).any(axis=-2)
    return np.where(seen, np.maximum(mean, LEAST), mean)


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
        keep_seen(weights, data, n * lo, length, total, lo)


@njit(**LEAN)
def keep_seen(weights, data, base, K, mean, at):
    """Raise means to `LEAST` where a kernel of positive weight has a probability.

    reads   weights (N,), data: rows of K from base on
    fills   mean from at on
    """
    for j in range(K):
        if mean[at + j] < LEAST:
            for i in range(weights.size):
                if weights[i] > 0.0 and data[base + i * K + j] > 0.0:
                    mean[at + j] = LEAST


@njit(**KERNEL)
def suffix_sums(p, tail, lost):
    """Sums from each place on.

    reads   p (C, E, N) ≥ 0
    fills   tail (C, E, N), lost (N,)
    """
    C, E, N = p.shape
    for c in range(C):
        for i in range(N):
            tail[c, E - 1, i], lost[i] = p[c, E - 1, i], 0.0
        for k in range(E - 2, -1, -1):
            for i in range(N):
                tail[c, k, i], lost[i] = add(tail[c, k + 1, i], lost[i], p[c, k, i])
