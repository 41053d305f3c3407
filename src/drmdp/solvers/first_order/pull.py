"""The answer of the first-order method, made feasible.

The mean kernel, and with it the N kernels if they are known, are pulled towards the data by the same share in each state: by what their distance,
rounding included, exceeds the radius.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core.levels import EPS
from drmdp.layout.layout import Layout
from drmdp.model import Model


def shares(layout: Layout, far: Array, n_steps: int) -> Array:
    """Share of the way from the data that is surely in the ball, (S,); `far` (S,) is a distance, averaged over so many steps."""
    S, A = layout.available.shape
    slack = A * (2 * S + 64 + n_steps) * EPS
    radius = np.maximum(layout.radius - slack, 0.0)
    return np.where(far > radius, radius / np.where(far > radius, far, 1.0), 1.0)


def mean_kernel(model: Model, layout: Layout, mean: Array, share: Array) -> Any:
    """The mean kernel of rows (nnz,), pulled: (S, A, S), or a sparse (S·A, S) matrix."""
    pair = np.repeat(np.arange(layout.indptr.size - 1), np.diff(layout.indptr))
    rows = layout.mean + share[pair // model.n_actions] * (np.maximum(mean, 0.0) - layout.mean)
    return _kernel(model, layout, rows / np.bincount(pair, weights=rows, minlength=layout.indptr.size - 1)[pair])


def kernels(model: Model, layout: Layout, y: Array, share: Array) -> Any:
    """The N kernels of rows (N·nnz,), pulled: (N, S, A, S), or N sparse matrices; those of weight 0 stay."""
    used = model.weights > 0
    every: list[Any] = [None] * model.n_kernels if used.all() else list(model.kernels)
    lengths, N = np.diff(layout.indptr), layout.weights.size
    pair = np.repeat(np.arange(lengths.size), lengths)

    def scaled(rows: Array) -> Array:
        return np.asarray(rows / np.bincount(pair, weights=rows, minlength=lengths.size)[pair])

    for i, k in enumerate(np.flatnonzero(used)):
        at = np.arange(pair.size) + ((N - 1) * layout.indptr[:-1] + i * lengths)[pair]  # of the entries of kernel i
        centre = scaled(layout.data[at].astype(np.float64))
        own = centre + share[pair // model.n_actions] * (np.maximum(scaled(y[at]), 0.0) - centre)
        every[k] = _kernel(model, layout, scaled(own))
    return tuple(every) if model.is_sparse else np.stack(every)


def _kernel(model: Model, layout: Layout, rows: Array) -> Any:
    S, A = layout.available.shape
    if model.is_sparse:
        return sparse.csr_array((rows, layout.indices, layout.indptr), shape=(S * A, S))
    if rows.size == S * A * S:
        return rows.reshape(S, A, S)
    return sparse.csr_array((rows, layout.indices, layout.indptr), shape=(S * A, S)).toarray().reshape(S, A, S)
