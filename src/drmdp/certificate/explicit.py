"""Explicit kernels that are surely nature's: rows over the listed next states, killed transitions
exactly 0, and upper bounds on values after them.

`brought_inside` pulls a tuple of kernels into the set where it is not (`dense.feasible`), a block
of states at a time, on the listed next states alone. Rows that were computed for a radius a little
smaller stay as they are, zeros included. After a row y, which counts as divided by its sum, values
p ≥ 0 are at most

    min { Σ_t y(t) p(t) + (4n + 64) ε P,   P },        P = max {p(t): y(t) > 0},

n being the number of its entries: a sum with its margin, or rule E (`plateau`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, IntArray
from drmdp.certificate import dense
from drmdp.certificate.dense import TINY
from drmdp.certificate.plateau import tops
from drmdp.core.levels import EPS
from drmdp.core.storage import kernel_entries
from drmdp.sets import AmbiguitySet


def brought_inside(ambiguity: AmbiguitySet, layout: Any, kernels: Array) -> Array:
    """Mean rows (nnz,), in the order of the layout, of a tuple (N, nnz) that surely is in the set;
    around the mean kernel the tuple is one row.
    """
    (S, A), lengths = layout.available.shape, np.diff(layout.indptr)
    N, widest = layout.weights.size, int(lengths.max(initial=1))
    out, size = np.empty(layout.indices.size), max(1, dense.BLOCK_ENTRIES // (A * N * widest))
    for lo in range(0, S, size):
        pairs = np.arange(lo * A, min(lo + size, S) * A)
        entries = slice(layout.indptr[pairs[0]], layout.indptr[pairs[-1] + 1])
        out[entries] = _block(ambiguity, layout, kernels, pairs)
    return out


def _block(ambiguity: AmbiguitySet, layout: Any, kernels: Array, pairs: IntArray) -> Array:
    A, N = layout.available.shape[1], layout.weights.size
    first, lengths = layout.indptr[pairs], layout.indptr[pairs + 1] - layout.indptr[pairs]
    K = max(int(lengths.max(initial=0)), 1)
    listed = np.arange(K) < lengths[:, None]  # (P, K)
    at = np.where(listed, first[:, None] + np.arange(K), 0)
    rows = kernel_entries(layout, at, pairs[:, None])  # (N, P, K)
    data = np.where(listed[:, None], rows.transpose(1, 0, 2), 0.0)
    if layout.data.dtype != np.float64:
        data = data / np.maximum(data.sum(axis=2, keepdims=True), np.finfo(float).tiny)
    nominal, weights = ambiguity.centred(data.reshape(-1, A, N, K), layout.weights)
    claimed = np.where(listed[:, None], kernels[:, at].transpose(1, 0, 2), 0.0)
    n, states = nominal.shape[0], pairs[::A] // A
    zeros = np.zeros((n, A, K))
    allowed, available = listed.reshape(n, A, K), layout.available[states]
    of_pairs = nominal, zeros, allowed, available, zeros[:, :, 0]
    block = dense.RawStates(*of_pairs, zeros[:, 0, 0], layout.radius[states], weights)
    y = dense.feasible(ambiguity, block, claimed.reshape(nominal.shape))
    mean = np.einsum("i,naik->nak", weights, y)
    return np.asarray(mean.reshape(listed.shape)[listed])


def after(matrix: Any, value: Array) -> tuple[Array, Array]:
    """Upper bounds on p ≥ 0, (S,), after each row of a sparse matrix, (R,): by its mean, and by
    rule E.
    """
    terms = 4 * np.diff(matrix.indptr) + 64
    top = np.maximum(tops(matrix.indptr, matrix.indices, value), 0.0)
    return np.asarray(matrix @ value) + terms * EPS * top + TINY, top


def matrix_of(layout: Any, rows: Array) -> Any:
    """Rows in the order of the layout as a sparse matrix (S·A, S) without zeros."""
    shape = (layout.available.size, layout.available.shape[0])
    matrix = sparse.csr_array((rows, layout.indices, layout.indptr), shape=shape, copy=True)
    matrix.eliminate_zeros()
    return matrix
