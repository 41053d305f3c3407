"""How often each transition was seen: what kernels rest on, and no part of the decision problem.

Counts are stored as kernels are (`drmdp.core.storage`): one table for all kernels together, or one for each. They may be weighted, and unavailable
pairs may have some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.distributions import Labels
from drmdp.core.storage import Kernels, compressed, from_arrays, from_parts
from drmdp.errors import InputError

FEW = 5
"""Pairs seen fewer times than this are thin."""


def counts_of(given: ArrayLike, n: int, n_next: int, labels: Labels, is_sparse: bool) -> Kernels | None:
    """Check counts of the transitions of n states to `n_next`, of all kernels together or of each; None if none were given."""
    if given is None:
        return None
    N, A = len(labels.kernels), len(labels.actions)
    found = given if isinstance(given, Kernels) else _compressed(given, (n, A, n_next))
    K = found.n_kernels
    if K not in (1, N) or (found.indptr.size - 1, found.n_states) != (n * A, n_next):
        raise InputError(f"counts: expected those of {N} kernels, or of all together, got {K}")
    bad = ~((found.data >= 0) & (found.data < np.inf))
    if bad.any():
        at = int(np.argmax(bad))
        pair = int(np.searchsorted(K * found.indptr, at, side="right")) - 1
        i, k = divmod(at - K * int(found.indptr[pair]), int(found.lengths[pair]))
        place = labels.row(pair, i) if K > 1 else labels.pair(pair)
        there = labels.states[int(found.indices[int(found.indptr[pair]) + k])]
        raise InputError(
            f"counts: {place}, next state {there!r} has {float(found.data[at])!r}, expected a finite number ≥ 0"
        )
    return replace(found, is_sparse=is_sparse)


def _compressed(given: Any, shape: tuple[int, int, int]) -> Kernels:
    n, A, S = shape
    listed = [given] if sparse.issparse(given) else given
    if isinstance(listed, Sequence) and len(listed) and any(map(sparse.issparse, listed)):
        for i, matrix in enumerate(listed):
            if not sparse.issparse(matrix) or matrix.shape != (n * A, S):
                raise InputError(f"counts: table {i}: expected a sparse matrix {(n * A, S)}, got {np.shape(matrix)}")
            checks.check_sparse(f"counts: table {i}", matrix)
        source: Any = list(listed)
    else:
        source = checks.numbers("counts", given)
        if source.shape[-3:] != shape or source.ndim not in (3, 4) or 0 in source.shape:
            raise InputError(
                f"counts: expected shape (S, A, S) = {shape}, or (N, S, A, S) with one such table for each kernel, got {source.shape}"
            )
        source = source if source.ndim == 4 else source[None]
    return compressed(source, np.ones((n, A), dtype=bool), 0.0)


def of_arrays(S: int, A: int, indptr: Any, indices: Any, data: Any) -> Kernels:
    """Take over stored arrays after checking that they fit together; what they hold is checked by `counts_of`."""
    K = max(1, data.size // max(1, indices.size))
    try:
        return from_arrays((K, S, A), indptr, indices, data, False)
    except InputError as error:
        raise InputError(f"counts_{error}") from None


def pair_totals(counts: Kernels) -> Array:
    """Transitions of each pair, all kernels together, (pairs,)."""
    found = counts.sums().reshape(-1, counts.n_kernels).sum(axis=1)
    found.setflags(write=False)
    return np.asarray(found)


def shown(counts: Kernels) -> Any:
    """Counts as users give them: (S, A, S), (N, S, A, S), a sparse (S·A, S) matrix or a list of N."""
    K, n = counts.n_kernels, (counts.indptr.size - 1) // counts.n_actions
    if counts.is_sparse:
        tables: Any = [counts.matrix(counts.entries(i)) for i in range(K)]
    else:
        tables = np.ascontiguousarray(counts.dense(0, n).transpose(2, 0, 1, 3))
        tables.setflags(write=False)
    return tables[0] if K == 1 else tables


def joined(models: Sequence[Any]) -> Kernels | None:
    """Counts of several models, by kernel where each has them so, else all added up; None unless all have some."""
    tables, parts = [model._counts for model in models], []
    if any(table is None for table in tables):
        return None
    for table in tables:
        pair = np.repeat(np.arange(table.indptr.size - 1), table.lengths)
        keys = pair * table.n_states + table.indices
        parts += [(keys, table.entries(i)) for i in range(table.n_kernels)]
    first = models[0]
    sizes = first.n_states, first.n_states, first.n_actions
    found = from_parts(parts, *sizes, is_sparse=first.is_sparse)
    if all(table.n_kernels == model.n_kernels for table, model in zip(tables, models, strict=True)):
        return found
    return replace(found, n_kernels=1, data=found.mean(np.ones(len(parts))))
