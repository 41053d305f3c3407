"""Intervals: their proof is `native/judge/rows/intervals.hpp`; here is what a kernel of any origin needs to be inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate.native import NativeProof
from drmdp.errors import InputError
from drmdp.layout.layout import lay_out
from drmdp.model import Model
from drmdp.sets.intervals import Intervals


def inside(model: Model, ball: Intervals, kernel: Any) -> Any:
    """A kernel (S, A, S), or sparse (S·A, S), whose rows are surely allowed: that given, moved as little as clipping and filling need.

    A row is cut off at its bounds. Where it then sums to less than 1, each entry gets the same part of what its upper bound leaves; where it
    sums to more, it gives the same part of what it has above its lower bound.
    """
    layout, S, A = lay_out(model, ball), model.n_states, model.n_actions
    is_sparse = sparse.issparse(kernel)
    if isinstance(kernel, tuple) or np.ndim(kernel) == 4 or tuple(kernel.shape) not in ((S, A, S), (S * A, S)):
        raise InputError(f"kernel: expected shape {(S, A, S)}, got {np.shape(kernel)}")
    pairs = np.repeat(np.arange(S * A), np.diff(layout.indptr))
    if is_sparse:
        given = np.asarray(kernel.tocsr()[pairs, layout.indices]).ravel()
    else:
        given = np.asarray(kernel).reshape(S * A, S)[pairs, layout.indices]
    z = fill_rows(np.nan_to_num(given, nan=0.0, posinf=1.0, neginf=0.0), pairs, layout)
    matrix = sparse.csr_array((z, layout.indices, layout.indptr), shape=(S * A, S))
    return matrix if is_sparse else matrix.toarray().reshape(S, A, S)


def fill_rows(given: Array, pairs: Any, layout: Any) -> Array:
    """Rows, entry by entry, brought between the bounds in force and to the sum 1."""
    size = layout.available.size
    r = np.repeat(layout.radius, layout.available.shape[1])[pairs]
    lower, upper = np.maximum(layout.mean - r, 0.0), np.minimum(layout.data + r, 1.0)
    z = np.clip(given, lower, upper)
    gap = 1 - np.bincount(pairs, z, minlength=size)
    reach = np.where(gap[pairs] > 0, upper - z, z - lower)
    total = np.bincount(pairs, reach, minlength=size)
    part = np.where(total > 0, gap / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(np.clip(z + part[pairs] * reach, lower, upper))


PROOF = NativeProof("intervals", inside=inside)
