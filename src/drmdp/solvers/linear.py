"""The linear systems (I − λP) δ = r of Newton's method.

P is the chain of a pair. A plain matrix is solved directly; a sparse one, or one that only knows its product with a vector, by
GMRES, whose error Newton's next step corrects. It starts from the constant mean(r)/(1−λ), which is exact for a constant r as rows of P
sum to 1, unless terminal states, whose rows are 0, spoil it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from drmdp._typing import Array

KRYLOV_TOL = 1e-3
RESTART, CYCLES = 40, 25


def solve(chain: Any, discount: float, right: Array) -> Array:
    """δ with (I − λP) δ = r."""
    if isinstance(chain, np.ndarray):
        return np.asarray(np.linalg.solve(np.eye(right.size) - discount * chain, right), dtype=np.float64)
    first = np.full(right.size, right.mean() / (1 - discount))
    left = right - (first - discount * (chain @ first))
    if np.linalg.norm(left) > np.linalg.norm(right):
        first, left = np.zeros(right.size), right
    if np.abs(left).max() <= 1e-14 * np.abs(right).max():
        return first
    system = LinearOperator((right.size, right.size), matvec=lambda z: z - discount * (chain @ z))
    rest, _ = gmres(system, left, rtol=KRYLOV_TOL, atol=0.0, restart=RESTART, maxiter=CYCLES)
    return np.asarray(first + rest)
