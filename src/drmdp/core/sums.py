"""Sums of the stored rows of a pair."""

from __future__ import annotations

from drmdp.core.compiled import KERNEL, njit


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
