"""`drmdp.project`: the proximal map on the set of a state, with checked arguments.

    argmin { ½ Σ_{i,a,t} (y_ia(t) − z_ia(t))² :
             y_ia ∈ Δ(allowed next states),  Σ_i w_i d(y_i, ŷ_i)^p ≤ θ^p }

with d(y_i, ŷ_i) ≤ θ for each i with w_i > 0 if p = ∞. Kernels of weight 0 are projected on the
simplex alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core import storage
from drmdp.core import validation as checks
from drmdp.errors import InputError, shown
from drmdp.layout.layout import Layout
from drmdp.prox.registry import Push, cold_memory, family_of, project_on_simplex
from drmdp.sets import PAIRS, AmbiguitySet, Wasserstein
from drmdp.sets.registry import entry_of

LARGEST = 1e100
"""No point may be farther away: squares must not overflow."""


def project(
    point: ArrayLike, kernels: ArrayLike, ambiguity: AmbiguitySet, weights: ArrayLike = None
) -> Array:
    """Euclidean projection of an N-tuple of kernels onto the ball of one state: the proximal map of
    the first-order method.

    Parameters
    ----------
    point : (N, A, S) array
        What to project.
    kernels : (N, A, S) array
        The observed rows of the state, the centre of the ball; they also define its support.
    ambiguity : Wasserstein
        With a scalar radius. The paper's ball is in Δ(S): `support="all"`, which is not the
        default; "observed" moves no mass to next states that no kernel has.
    weights : (N,) array, optional
        Weights of the kernels; equal by default. The Euclidean norm that is minimised has none.

    Returns
    -------
    (N, A, S) array
        In the ball up to rounding, at its smallest distance from the point to a relative accuracy
        of about 1e-12 and the rounding of the point.

    Examples
    --------
    >>> import drmdp
    >>> ball = drmdp.Wasserstein(0.2, metric="l1", order=1)
    >>> drmdp.project([[[0.5, 0.9, 0.0]]], [[[0.5, 0.5, 0.0]]], ball).round(3)
    array([[[0.4, 0.6, 0. ]]])
    """
    if not isinstance(ambiguity, Wasserstein):
        raise InputError(f"ambiguity: expected a Wasserstein, got {shown(ambiguity)}")
    if shape := np.shape(ambiguity.radius):
        raise InputError(f"ambiguity: a projection needs one radius, got {shape} of them")
    if not entry_of(ambiguity).projection:
        known = ", ".join(f"({metric}, {order})" for metric, order in PAIRS)
        raise InputError(f"ambiguity: {ambiguity.short} has no projection; these have one: {known}")
    y_hat = _rows(kernels)
    z = _point(point, y_hat.shape)
    z -= z.max(axis=2, keepdims=True)  # changes nothing, and leaves more digits
    N, A, S = y_hat.shape
    w = checks.distribution("weights", weights, range(N), "kernel")
    used = w > 0
    observed: Any = (y_hat[used] > 0).any(axis=0)
    more: Any = {"observed": False, "state": observed.any(axis=0), "all": True}[ambiguity.support]
    allowed: BoolArray = observed | more
    layout, family = _layout(y_hat[used], w[used], allowed, ambiguity.radius), family_of(ambiguity)
    y, push = _flat(z[used], allowed), Push(np.zeros((1, A)), np.zeros(S))
    family.project(0, 1, (layout, push, y, cold_memory(family, layout)))
    out = np.zeros(y_hat.shape)
    inside = np.zeros((A, int(used.sum()), S))
    inside[np.broadcast_to(allowed[:, None], inside.shape)] = y
    out[used] = inside.transpose(1, 0, 2)
    for a in np.arange(0 if used.all() else A):
        rows = project_on_simplex(z[~used, a][:, allowed[a]])
        out[np.ix_(~used, [a], allowed[a])] = rows[:, None]
    return out


def _flat(rows: Array, allowed: BoolArray) -> Array:
    """Allowed entries of (N, A, S) rows, in the order of a layout's data."""
    by_pair = rows.transpose(1, 0, 2)
    return np.ascontiguousarray(by_pair[np.broadcast_to(allowed[:, None], by_pair.shape)])


def _layout(y_hat: Array, weights: Array, allowed: BoolArray, radius: float) -> Layout:
    A = allowed.shape[0]
    indptr, states = storage.offsets(allowed.sum(axis=1)), np.nonzero(allowed)[1].astype(np.int32)
    rows = indptr, states, _flat(y_hat, allowed), np.zeros(indptr[-1]), weights
    pairs = np.ones((1, A), dtype=bool), np.zeros((1, A)), np.zeros(0), np.array([radius])
    return Layout(*rows, *pairs, discount=0.0, unlisted=False, common=False)


def _rows(kernels: ArrayLike) -> Array:
    """Kernels of one state, every row a distribution."""
    array, tol = checks.numbers_with_slack("kernels", kernels)
    if array.ndim != 3 or 0 in array.shape:
        raise InputError(f"kernels: expected shape (N, A, S) with no size 0, got {array.shape}")
    _refuse(array, ~np.isfinite(array), "kernels: probabilities must be finite")
    _refuse(array, array < 0, "kernels: probabilities must not be negative")
    with np.errstate(over="ignore"):
        sums = array.sum(axis=2)
    off = np.abs(sums - 1)
    if off.max() > tol:
        i, a = np.argwhere(off > tol)[0].tolist()
        raise InputError(f"kernels: kernel {i}, action {a} sums to {float(sums[i, a])!r}, not 1")
    divisor = np.where(off > storage.rounding(array.shape[2]), sums, 1.0)
    return np.asarray(array / divisor[:, :, None])


def _point(point: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = checks.numbers("point", point)
    if array.shape != shape:
        raise InputError(f"point: expected the shape of the kernels, {shape}, got {array.shape}")
    _refuse(array, ~np.isfinite(array), "point must be finite")
    _refuse(array, np.abs(array) > LARGEST, f"point must be at most {LARGEST:g} in size")
    return array


def _refuse(array: Array, bad: BoolArray, rule: str) -> None:
    """Refuse an array that breaks a rule, with the first entry that does."""
    if bad.any():
        i, a, t = np.argwhere(bad)[0].tolist()
        number = float(array[i, a, t])
        raise InputError(f"{rule}: kernel {i}, action {a}, next state {t} has {number!r}")
