"""`drmdp.project`: the proximal map on one state's ball, checked and by itself.

    argmin { ½ Σ_{i,a,t} (y_ia(t) − z_ia(t))² :  y_ia ∈ Δ(allowed next states),  Σ_i w_i d(y_i, ŷ_i)^p ≤ θ^p }

with d(y_i, ŷ_i) ≤ θ for each i with w_i > 0 if p = ∞. Kernels of weight 0 are projected on the simplex alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core import storage
from drmdp.core import validation as checks
from drmdp.errors import InputError, shown
from drmdp.layout.layout import Layout
from drmdp.prox.registry import Push, family_of, project_on_simplex, project_states, remember
from drmdp.sets import AmbiguitySet, Wasserstein

LARGEST = 1e100
"""No point may be farther away: squares must not overflow."""


def project(point: ArrayLike, kernels: ArrayLike, ball: AmbiguitySet, weights: ArrayLike = None) -> Array:
    """Euclidean projection of an N-tuple of kernels onto the ball of one state: the proximal map of the first-order method.

    Parameters
    ----------
    point : (N, A, S) array
        What to project.
    kernels : (N, A, S) array
        The observed rows of the state, the centre of the ball; they also define its support.
    ball : Wasserstein
        With a scalar radius.
    weights : (N,) array, optional
        Weights of the kernels; equal by default. The Euclidean norm that is minimised has none.

    Returns
    -------
    (N, A, S) array
        In the ball up to rounding, at its smallest distance from the point to a relative accuracy of about 1e-12 and the rounding of
        the point.

    Examples
    --------
    >>> import drmdp
    >>> ball = drmdp.Wasserstein(0.2, metric="l1", order=1)
    >>> drmdp.project([[[0.5, 0.9, 0.0]]], [[[0.5, 0.5, 0.0]]], ball).round(3)
    array([[[0.4, 0.6, 0. ]]])
    """
    if not isinstance(ball, Wasserstein):
        raise InputError(f"ball: expected a Wasserstein, got {shown(ball)}")
    if np.ndim(ball.radius):
        raise InputError(f"ball: a projection needs one radius, got {np.shape(ball.radius)} of them")
    y_hat = _rows(kernels)
    z = _point(point, y_hat.shape)
    z -= z.max(axis=2, keepdims=True)  # changes nothing, and leaves more digits
    N, A, S = y_hat.shape
    w = checks.distribution("weights", weights, range(N), "kernel")
    used = w > 0
    seen: Any = (y_hat[used] > 0).any(axis=0)
    more: Any = {"observed": False, "state": seen.any(axis=0), "all": True}[ball.support]
    allowed: BoolArray = seen | more
    layout = _layout(y_hat[used], w[used], allowed, ball.radius)
    y = _flat(z[used], allowed)
    family = family_of(ball)
    project_states(family, 0, 1, layout, Push(np.zeros((1, A)), np.zeros(S)), y, remember(family, layout))
    out = np.zeros(y_hat.shape)
    inside = np.zeros((A, int(used.sum()), S))
    inside[np.broadcast_to(allowed[:, None], inside.shape)] = y
    out[used] = inside.transpose(1, 0, 2)
    for a in np.arange(A)[: A if not used.all() else 0]:
        out[np.ix_(~used, [a], allowed[a])] = project_on_simplex(z[~used, a][:, allowed[a]])[:, None]
    return out


def _flat(rows: Array, allowed: BoolArray) -> Array:
    """Allowed entries of (N, A, S) rows, in the order of a layout's data."""
    by_pair = rows.transpose(1, 0, 2)
    return np.ascontiguousarray(by_pair[np.broadcast_to(allowed[:, None], by_pair.shape)])


def _layout(y_hat: Array, weights: Array, allowed: BoolArray, radius: float) -> Layout:
    A = allowed.shape[0]
    indptr = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    available = np.ones((1, A), dtype=bool)
    arrays = (
        indptr, np.nonzero(allowed)[1].astype(np.int32), _flat(y_hat, allowed), np.zeros(indptr[-1]), weights, available,
        np.zeros((1, A)), np.zeros(0), np.array([radius]),
    )  # fmt: skip
    return Layout(*arrays, discount=0.0, unlisted=False, common=False)


def _rows(kernels: ArrayLike) -> Array:
    """Kernels of one state, every row a distribution."""
    array, tol = checks.numbers_with_slack("kernels", kernels)
    if array.ndim != 3 or 0 in array.shape:
        raise InputError(f"kernels: expected shape (N, A, S) with no size 0, got {array.shape}")
    for bad, rule in ((~np.isfinite(array), "must be finite"), (array < 0, "must not be negative")):
        if bad.any():
            raise InputError(f"kernels: probabilities {rule}: {_entry(array, bad)}")
    with np.errstate(over="ignore"):
        sums = array.sum(axis=2)
    off = np.abs(sums - 1)
    if off.max() > tol:
        i, a = np.argwhere(off > tol)[0].tolist()
        raise InputError(f"kernels: kernel {i}, action {a} sums to {float(sums[i, a])!r}, not 1")
    return np.asarray(array / np.where(off > storage.rounding(array.shape[2]), sums, 1.0)[:, :, None])


def _point(point: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = checks.numbers("point", point)
    if array.shape != shape:
        raise InputError(f"point: expected the shape of the kernels, {shape}, got {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise InputError(f"point must be finite: {_entry(array, bad)}")
    bad = np.abs(array) > LARGEST
    if bad.any():
        raise InputError(f"point must be at most {LARGEST:g} in size: {_entry(array, bad)}")
    return array


def _entry(array: Array, bad: BoolArray) -> str:
    i, a, t = np.argwhere(bad)[0].tolist()
    return f"kernel {i}, action {a}, next state {t} has {float(array[i, a, t])!r}"
