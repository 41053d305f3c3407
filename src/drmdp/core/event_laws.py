"""Laws of events: what is given, checked, and in the order in which rows are made of it (`drmdp.core.merging`).

A law stands for itself divided by its sum. One whose sum, rounded once, misses 1 by more than `OFF` is divided by it here. It then misses 1 by ε = 2⁻⁵² at
most, however many events there are, and would not be divided again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.storage import row_sum_tol
from drmdp.errors import InputError

OFF = 4 * float(np.finfo(float).eps)
"""How far from 1 a law may sum: less than a row of a single entry may (`drmdp.core.storage.rounding`), so that rows made of laws pass as well."""


class Laws(NamedTuple):
    """Laws by class, the live events of each class first."""

    p: Array  # (C, E, N)
    tail: Array  # (C, E, N), sums from each live event on
    live: Any  # (C, E) events
    n_live: Any  # (C,)
    weights: Array  # (N,) of the mean rows


def laws_of(laws: Array, weights: Array, used: Any, every: Any = False) -> Laws:
    """Laws (C, N, E) of the kernels that are used, (N,) flags; live is what one of them has, and what is to be besides: every event, or (C, E) flags."""
    own = laws[:, used]
    alive = (own > 0).any(axis=1) | every
    order = np.argsort(~alive, axis=1, kind="stable")
    p = np.ascontiguousarray(np.take_along_axis(own, order[:, None, :], axis=2).transpose(0, 2, 1))
    tail = np.empty(p.shape)
    _native.fill_suffix_sums(p, p.shape[0], p.shape[1], tail)
    return Laws(p, tail, order.astype(np.int64), alive.sum(axis=1).astype(np.int64), np.array(weights[used]))


def checked_laws(given: ArrayLike, n_events: int, n_classes: int | None = None) -> Array:
    """Laws as (C, N, E), each a distribution; the first that is none is named."""
    laws, _ = checks.numbers_with_slack("laws", given)
    tol = row_sum_tol(np.asarray(given).dtype) if isinstance(given, np.ndarray) else 1e-9
    laws = laws[None] if laws.ndim == 2 else laws
    if laws.ndim != 3 or laws.shape[2] != n_events or 0 in laws.shape or (n_classes or len(laws)) != len(laws):
        raise InputError(f"laws: expected shape (N, {n_events}) or (classes, N, {n_events}), got {np.shape(given)}")
    sums = laws.sum(axis=2)
    for bad, rule in ((~np.isfinite(laws), "must be finite"), (laws < 0, "must not be negative")):
        if bad.any():
            c, i, e = (int(k) for k in np.argwhere(bad)[0])
            where = f"class {c}, " if len(laws) > 1 else ""
            raise InputError(f"laws {rule}: {where}law {i}, event {e} has {float(laws[c, i, e])!r}")
    if (np.abs(sums - 1) > tol).any():
        c, i = (int(k) for k in np.argwhere(np.abs(sums - 1) > tol)[0])
        where = f"class {c}, " if len(laws) > 1 else ""
        raise InputError(f"laws must sum to 1: {where}law {i} sums to {float(sums[c, i])!r}")
    sums = np.array([[math.fsum(law.tolist()) for law in own] for own in laws])
    return np.where(np.abs(sums - 1)[:, :, None] > OFF, laws / sums[:, :, None], laws)
