"""Small dense systems of linear equations, by elimination with pivoting."""

from __future__ import annotations

from drmdp.core.compiled import LEAN, njit

SINGULAR = 1e-200


@njit(**LEAN)
def eliminate(work, n, out):
    """Solve n equations.

    reads   n
    fills   work (n, n + 1): the matrix and the right-hand side; out (n,)
    returns whether the matrix is regular
    """
    for c in range(n):
        best = c
        for r in range(c + 1, n):
            if abs(work[r, c]) > abs(work[best, c]):
                best = r
        if not abs(work[best, c]) > SINGULAR:
            return False
        for k in range(c, n + 1):
            work[c, k], work[best, k] = work[best, k], work[c, k]
        for r in range(c + 1, n):
            f = work[r, c] / work[c, c]
            if f != 0.0:
                for k in range(c, n + 1):
                    work[r, k] -= f * work[c, k]
    for r in range(n - 1, -1, -1):
        total = work[r, n]
        for k in range(r + 1, n):
            total -= work[r, k] * out[k]
        out[r] = total / work[r, r]
    return True
