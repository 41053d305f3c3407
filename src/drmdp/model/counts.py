"""Counts of observed transitions, on which kernels rest; no part of the decision problem.

Counts are stored as kernels are (`drmdp.core.storage`): one table for all kernels together, or one
for each. They may be weighted, and unavailable pairs may have some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import ArrayLike
from drmdp.core import validation as checks
from drmdp.core.distributions import Labels
from drmdp.core.storage import Kernels, compressed, entry_keys, from_arrays, from_parts
from drmdp.errors import InputError, first_place, unexpected


def counts_of(
    given: ArrayLike, n: int, n_next: int, labels: Labels, is_sparse: bool
) -> Kernels | None:
    """Check counts of the transitions of n states to `n_next`, of all kernels together or of each;
    None if none were given.
    """
    if given is None:
        return None
    N, A = len(labels.kernels), len(labels.actions)
    counts = given if isinstance(given, Kernels) else _compressed(given, (n, A, n_next))
    K = counts.n_kernels
    if K not in (1, N) or (counts.indptr.size - 1, counts.n_states) != (n * A, n_next):
        raise InputError(f"counts: expected those of {N} kernels, or of all together, got {K}")
    if at := first_place(~((counts.data >= 0) & (counts.data < np.inf))):
        pair, i, t = counts.entry(*at)
        place = labels.row(pair, i) if K > 1 else labels.pair(pair)
        entry = f"{place}, next state {labels.states[t]!r} has {float(counts.data[at])!r}"
        raise InputError(f"counts: {entry}, expected a finite number ≥ 0")
    return replace(counts, is_sparse=is_sparse)


def _compressed(given: Any, shape: tuple[int, int, int]) -> Kernels:
    n, A, S = shape
    listed = [given] if sparse.issparse(given) else given
    if isinstance(listed, Sequence) and len(listed) and any(map(sparse.issparse, listed)):
        for i, matrix in enumerate(listed):
            if not sparse.issparse(matrix) or matrix.shape != (n * A, S):
                expected = f"a sparse matrix {(n * A, S)}"
                raise unexpected(f"counts: table {i}", expected, np.shape(matrix))
            checks.check_sparse(f"counts: table {i}", matrix)
        source: Any = list(listed)
    else:
        source = checks.numbers("counts", given)
        if source.shape[-3:] != shape or source.ndim not in (3, 4) or 0 in source.shape:
            several = "(N, S, A, S) with one such table for each kernel"
            raise unexpected("counts", f"shape (S, A, S) = {shape}, or {several}", source.shape)
        source = source if source.ndim == 4 else source[None]
    return compressed(source, np.ones((n, A), dtype=bool), 0.0)


def of_arrays(S: int, A: int, indptr: Any, indices: Any, data: Any) -> Kernels:
    """Take over stored arrays after checking that they fit together; `counts_of` checks the numbers
    in them.
    """
    K = max(1, data.size // max(1, indices.size))
    try:
        return from_arrays((K, S, A), indptr, indices, data, False)
    except InputError as error:
        raise InputError(f"counts_{error}") from None


def tables_of(counts: Kernels) -> Any:
    """Counts as users have them: (S, A, S), (N, S, A, S), a sparse (S·A, S) matrix or a list of
    N.
    """
    K, n = counts.n_kernels, (counts.indptr.size - 1) // counts.n_actions
    if counts.is_sparse:
        tables: Any = [counts.matrix(counts.entries(i)) for i in range(K)]
    else:
        tables = np.ascontiguousarray(counts.dense(0, n).transpose(2, 0, 1, 3))
        tables.setflags(write=False)
    return tables[0] if K == 1 else tables


def joined(models: Sequence[Any]) -> Kernels | None:
    """Counts of several models, by kernel where each has them so, else all added up; None unless
    all have some.
    """
    tables, parts = [model._counts for model in models], []
    if any(table is None for table in tables):
        return None
    for table in tables:
        keys = entry_keys(table.indptr, table.indices, table.n_states)
        parts += [(keys, table.entries(i)) for i in range(table.n_kernels)]
    first = models[0]
    sizes = first.n_states, first.n_states, first.n_actions
    counts = from_parts(parts, *sizes, is_sparse=first.is_sparse)
    if all(table.n_kernels == model.n_kernels for table, model in zip(tables, models, strict=True)):
        return counts
    return replace(counts, n_kernels=1, data=counts.mean(np.ones(len(parts))))
