"""A kernel that is surely nature's, written out: rows over what the layout lists, killed transitions exactly 0, and what values are after them, from above.

`brought_inside` pulls a tuple of kernels into the set where it is not (`dense.feasible`), some states at a time, on the listed next states alone. Rows that
were found for a radius a little smaller stay as they are, zeros included. After a row y, which counts as divided by its sum, values p ≥ 0 are at most

    min { Σ_t y(t) p(t) + (4n + 64) ε P,   P },        P = max {p(t): y(t) > 0},

n being the number of its entries: a sum with its margin, or rule E (`drmdp.certificate.plateau`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, IntArray
from drmdp.certificate import dense, plateau
from drmdp.certificate.dense import TINY
from drmdp.core.levels import EPS
from drmdp.sets import AmbiguitySet


def brought_inside(ball: AmbiguitySet, layout: Any, kernels: Array) -> Array:
    """Mean rows (nnz,), in the order of the layout, of a tuple (N, nnz) that surely is in the set; around the mean kernel the tuple is one row."""
    (S, A), lengths = layout.available.shape, np.diff(layout.indptr)
    N, widest = layout.weights.size, int(lengths.max(initial=1))
    out, size = np.empty(layout.indices.size), max(1, dense.BLOCK_ENTRIES // (A * N * widest))
    for lo in range(0, S, size):
        pairs = np.arange(lo * A, min(lo + size, S) * A)
        out[layout.indptr[pairs[0]] : layout.indptr[pairs[-1] + 1]] = _block(ball, layout, kernels, pairs)
    return out


def _block(ball: AmbiguitySet, layout: Any, kernels: Array, pairs: IntArray) -> Array:
    A, N = layout.available.shape[1], layout.weights.size
    first, lengths = layout.indptr[pairs], layout.indptr[pairs + 1] - layout.indptr[pairs]
    K = max(int(lengths.max(initial=0)), 1)
    there = np.arange(K) < lengths[:, None]  # (P, K)
    at = np.where(there, first[:, None] + np.arange(K), 0)
    start = N * first[:, None] + np.arange(N) * lengths[:, None]  # (P, N)
    shape = (-1, A, N, K)
    data = np.where(there[:, None], layout.data[np.where(there[:, None], start[:, :, None] + np.arange(K), 0)], 0.0)
    if layout.data.dtype != np.float64:
        data = data / np.maximum(data.sum(axis=2, keepdims=True), np.finfo(float).tiny)
    nominal, weights = ball.centred(data.reshape(shape), layout.weights)
    given = np.where(there[:, None], kernels[:, at].transpose(1, 0, 2), 0.0).reshape(nominal.shape)
    n, states = nominal.shape[0], pairs[::A] // A
    zeros = np.zeros((n, A, K))
    block = dense.Block(
        0, n, nominal, zeros, zeros[:, 0, 0], there.reshape(n, A, K), layout.available[states], layout.radius[states], weights,
        zeros[:, :, 0], N,
    )  # fmt: skip
    mean = np.einsum("i,naik->nak", weights, dense.feasible(ball, block, given))
    return np.asarray(mean.reshape(there.shape)[there])


def after(matrix: Any, value: Array) -> tuple[Array, Array]:
    """What p ≥ 0, (S,), is at most after each row of a sparse matrix, (R,): by its mean, and by rule E."""
    terms = 4 * np.diff(matrix.indptr) + 64
    top = np.maximum(plateau.tops(matrix.indptr, matrix.indices, value), 0.0)
    return np.asarray(matrix @ value) + terms * EPS * top + TINY, top


def matrix_of(layout: Any, rows: Array) -> Any:
    """Rows in the order of the layout as a sparse matrix (S·A, S) without zeros."""
    shape = (layout.available.size, layout.available.shape[0])
    found = sparse.csr_array((rows, layout.indices, layout.indptr), shape=shape, copy=True)
    found.eliminate_zeros()
    return found
