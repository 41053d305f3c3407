"""Models with every feature, for solvers that take them range by range, and what two answers are
compared by.
"""

from __future__ import annotations

import hashlib

import numpy as np
from scipy import sparse

import drmdp

LARGE = 2100
"""More states than chains are dense for."""


def digest(solution):
    """SHA-256 of lower, upper and policy."""
    parts = (solution.lower, solution.upper, solution.policy)
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    ).hexdigest()


def _rows(rng, S, A, N, listed=5):
    """Kernels with the same few next states, an array of N matrices (S·A, S)."""
    columns = np.argsort(rng.random((S * A, 4 * listed)), axis=1)[:, :listed]
    columns = np.sort((columns * 7 + np.arange(S * A)[:, None]) % S, axis=1)
    for row in columns:
        row[:] = np.sort(row[0] + np.arange(listed)) % S if np.unique(row).size < listed else row
    start = np.arange(0, S * A * listed + 1, listed)
    return [
        sparse.csr_array(
            (
                rng.dirichlet(np.ones(listed), S * A).ravel(),
                np.sort(columns, axis=1).ravel(),
                start,
            ),
            (S * A, S),
        )
        for _ in range(N)
    ]


def model(*features, S=37, A=3, N=3, seed=0, discount=0.9):
    """A random model with some of FEATURES."""
    rng = np.random.default_rng(seed)
    kernels = _rows(rng, S, A, N)
    costs = rng.random((S, A))
    given = {"discount": discount}
    if "terminal" in features:
        given["terminal"] = rng.random(S) < 0.15
    if "unavailable" in features:
        available = rng.random((S, A)) < 0.7
        available[:, 0] |= ~available.any(axis=1)
        given["available"] = available
    if "zero weights" in features:
        given["weights"] = np.array([0.0, *rng.dirichlet(np.ones(N - 1))])
    if "next" in features:
        costs = costs[:, :, None] + rng.random((S, A, S))
    if "seen" in features:
        seen = abs(sum(kernels)).tocsr()
        costs = sparse.csr_array((rng.random(seen.nnz), seen.indices, seen.indptr), seen.shape)
    if "float32" in features:
        given["dtype"] = np.float32
    if "named" in features:
        given |= {
            "states": [f"place {s}" for s in range(S)],
            "actions": [f"go {a}" for a in range(A)],
        }
    if "initial" in features:
        given["initial"] = rng.dirichlet(np.ones(S))
    if "dense" in features:
        kernels = [kernel.toarray().reshape(S, A, S) for kernel in kernels]
    return drmdp.Model(kernels, **{"rewards" if "rewards" in features else "costs": costs}, **given)


FEATURES = {
    "plain": (),
    "terminal states": ("terminal", "initial"),
    "unavailable actions": ("unavailable",),
    "costs by next state": ("next",),
    "costs of seen next states": ("seen",),
    "rewards": ("rewards", "terminal"),
    "weights with zeros": ("zero weights",),
    "float32": ("float32",),
    "named states": ("named", "rewards", "float32"),
    "everything": (
        "terminal",
        "unavailable",
        "rewards",
        "zero weights",
        "next",
        "named",
        "initial",
    ),
    "everything listed": ("terminal", "unavailable", "zero weights", "seen", "float32", "initial"),
}
"""Features that are tried together, by what the test is called."""


def radius_for_each(S, seed=0):
    """A radius for each state, some of them 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(S) < 0.2, 0.0, 0.3 * rng.random(S))
