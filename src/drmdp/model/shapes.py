"""Shapes of kernels, and cures for those of other libraries.

Documented are (N, S, A, S), (S, A, S), and N sparse matrices (S·A, S). Other libraries put actions
first: (A, S, S), or A matrices (S, S). Where a shape can be read in two ways and no other argument
decides, it is refused: another model would be solved as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import ArrayLike
from drmdp.core import storage
from drmdp.core.storage import Kernels
from drmdp.core.validation import check_sparse, numbers_with_slack
from drmdp.errors import InputError, unexpected

MDPTOOLBOX = "drmdp.formats.from_mdptoolbox(kernels, rewards, discount)"


def kernel_shape(kernels: ArrayLike, others: dict[str, Any]) -> tuple[Any, int, int, int, float]:
    """Kernels as a 4-d array, a list of sparse matrices or blocks; N, S, A; row sum tolerance.

    `others` are the other arguments of a model: they may tell how many actions or kernels there
    are.
    """
    if isinstance(kernels, Kernels):
        return kernels, kernels.n_kernels, kernels.n_states, kernels.n_actions, storage.ROW_SUM_TOL
    if sparse.issparse(kernels):
        kernels = [kernels]
    objects = isinstance(kernels, np.ndarray) and kernels.dtype == object and kernels.ndim
    if (objects or isinstance(kernels, Sequence)) and any(map(sparse.issparse, kernels)):
        return _sparse_shape(list(kernels), others)
    array, tol = numbers_with_slack("kernels", kernels)
    cube = array.ndim == 3 and len(set(array.shape)) == 1
    if cube and not np.array_equal(array, np.swapaxes(array, 0, 1), equal_nan=True):
        readings = "(S, A, S) or, as in pymdptoolbox, (A, S, S)"
        cure = f"give kernels[None] for the first, or {MDPTOOLBOX} for the second"
        raise InputError(f"kernels: {array.shape} may be {readings}: {cure}")
    if array.ndim not in (3, 4) or array.shape[-3] != array.shape[-1] or 0 in array.shape:
        expected = "expected shape (N, S, A, S) or (S, A, S) with no size 0"
        raise InputError(f"kernels: {expected}, got {array.shape}{_cure(array.shape)}")
    array = array if array.ndim == 4 else array[None]
    N, S, A, _ = array.shape
    return array, N, S, A, tol


def _cure(shape: tuple[int, ...]) -> str:
    """A guess what a shape was meant for, and the cure."""
    if 0 in shape:
        return ""
    if len(shape) == 4 and shape[2] == shape[3]:
        return ": if it is (N, A, S, S), give np.moveaxis(kernels, 1, 2)"
    if len(shape) == 3 and shape[1] == shape[2]:
        cure = f"give np.moveaxis(kernels, 0, 1) or use {MDPTOOLBOX}"
        second = "if it is (N, S, S), N kernels with one action, kernels[:, :, None]"
        return f": if it is (A, S, S), as in pymdptoolbox, {cure}; {second}"
    if len(shape) == 3 and shape[1] % shape[2] == 0:
        N, S = shape[0], shape[2]
        return f": if it is (N, S·A, S), give kernels.reshape({N}, {S}, {shape[1] // S}, {S})"
    if len(shape) == 2 and shape[0] % shape[1] == 0:
        S = shape[1]
        return f": if it is (S·A, S), give kernels.reshape({S}, {shape[0] // S}, {S})"
    return ""


def _sparse_shape(matrices: list[Any], others: dict[str, Any]) -> tuple[Any, int, int, int, float]:
    shape = np.shape(matrices[0])
    for i, matrix in enumerate(matrices):
        if not sparse.issparse(matrix):
            kind, cure = f"of type {type(matrix).__name__}", "give all as sparse matrices or none"
            raise InputError(f"kernels: some are sparse, but kernel {i} is {kind}: {cure}")
        name = f"kernels: kernel {i}"
        if matrix.ndim != 2 or 0 in matrix.shape or matrix.shape[0] % matrix.shape[1]:
            raise unexpected(name, "a sparse matrix of shape (S·A, S)", matrix.shape)
        if matrix.shape != shape:
            raise InputError(f"{name} has shape {matrix.shape}, but kernel 0 has {shape}")
        check_sparse(name, matrix)
    if len(matrices) > 1 and shape[0] == shape[1] > 1:
        _check_square(len(matrices), shape[0], others)
    tol = max(storage.row_sum_tol(matrix.dtype) for matrix in matrices)
    return matrices, len(matrices), shape[1], shape[0] // shape[1], tol


def _check_square(n: int, S: int, others: dict[str, Any]) -> None:
    """Refuse n matrices (S, S) unless other arguments show that there is one action, or that there
    are n kernels.
    """
    sizes = {_n_actions(others[name]) for name in ("costs", "rewards", "available")}
    names = others["actions"]
    sizes.add(len(names) if isinstance(names, Sequence | np.ndarray) else None)
    by_kernel = others["kernel_names"] is not None or others["weights"] is not None
    if n not in sizes and (1 in sizes or by_kernel):
        return
    first = f"one kernel with {n} actions, as in pymdptoolbox"
    cure = f"use {MDPTOOLBOX} for the first, or give actions=['the only one'] for the second"
    readings = f"{first}, or {n} kernels with one action"
    raise InputError(f"kernels: {n} sparse matrices {(S, S)} may be {readings}: {cure}")


def _n_actions(given: Any) -> int | None:
    """Number of actions of an array (S, A) or (S, A, S), or of a sparse matrix of costs; None if
    unknown.
    """
    if sparse.issparse(given):
        return given.shape[0] // given.shape[1] if given.ndim == 2 and given.shape[1] else None
    try:
        shape = np.shape(given)
    except ValueError:  # lists of different lengths, refused elsewhere
        return None
    return int(shape[1]) if len(shape) in (2, 3) else None
