"""The proof of intervals; see `drmdp.certificate.compressed`. Nothing that is handed over is needed.

ℓ ≤ z ≤ h are the bounds in force of a row (`drmdp.layout.bounded`). U: for any threshold η weak duality gives

    max { z·u : ℓ ≤ z ≤ h, Σ z = 1 }  ≤  η + Σ_{u>η} h (u − η) + Σ_{u<η} ℓ (u − η),

with equality at the stake of the last state that is filled. L: the value of the row that has its lower bounds and fills the rest from the top, built here.

**Rounding.** The bounds in force and the sum of a row are off by (K + 8) ε, relatively, K being its entries. So U is off by (K + 16) ε times the sum of the
sizes of its terms. The row built is that near to one which is exactly allowed, its value takes K + 8 further roundings, and it has no part above 1: L is
off by 4 (K + 16) ε.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate.sums import EPS, finish, normalise
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.errors import InputError
from drmdp.layout.layout import lay_out
from drmdp.layout.sorting import rank
from drmdp.model import Model
from drmdp.sets.intervals import Intervals


@njit(**INLINE)
def _row(lower, upper, u, r, order):
    """Bound the value of a row from both sides.

    reads   lower (K,), upper (K,), u (K,), r
    fills   order (4, K)
    returns L and U, their margins included
    """
    K = u.size
    rank(u, order[2], order[3])
    left, worth, eta = 1.0, 0.0, -1.0
    for j in range(K):
        lo = max(lower[j] - r, 0.0)
        left -= lo
        worth += lo * u[j]
    for n in range(K - 1, -1, -1):
        j = order[2, n]
        eta = u[j]
        if not left > 0.0:
            break
        take = min(left, min(upper[j] + r, 1.0) - max(lower[j] - r, 0.0))
        worth += take * u[j]
        left -= take
        if not left > 0.0:
            break
    above, size = eta, -eta
    for j in range(K):
        z = min(upper[j] + r, 1.0) if u[j] > eta else max(lower[j] - r, 0.0)
        above += z * (u[j] - eta)
        size += z * abs(u[j] - eta)
    return worth - 4.0 * (K + 16) * EPS, above + (K + 16) * EPS * (size + 1.0)


@njit(**KERNEL)
def states(start, stop, layout, view, claim, bounds, work):
    """Prove L and U for the states start … stop − 1 that are not terminal.

    reads   layout, view, claim
    fills   bounds, work
    """
    A = layout.available.shape[1]
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        first, above = layout.indptr[s * A], 0.0
        for a in range(A):
            if layout.available[s, a]:
                lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
                low, high = _row(
                    layout.mean[lo:hi],
                    layout.data[lo:hi],
                    work.u[lo - first : hi - first],
                    layout.radius[s],
                    work.places,
                )
                work.worth[a] = low
                above += claim.policy[s, a] * min(high, 0.0)
        finish(s, base, unit, above, layout, view, claim, bounds, work)


# ---------------------------------------------------------------------- kernels of any origin


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
