"""Proofs that are routines of `drmdp._native` (`native/judge`), and kernels of any origin brought
into the sets whose proofs need more than `drmdp.certificate.membership`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import _native
from drmdp._typing import Array
from drmdp.certificate.dense import transport_attain, transport_feasible
from drmdp.errors import InputError, unexpected
from drmdp.layout.layout import in_force, lay_out
from drmdp.layout.routine import ORDER, NativeRoutine
from drmdp.model import Model
from drmdp.sets.intervals import Intervals
from drmdp.sets.reweighting import Reweighting


@dataclass(frozen=True)
class NativeProof(NativeRoutine):
    """The proof of a routine, and functions that are asked instead of general ones."""

    inside: Any = None  # brings kernels of any origin into the set, as `membership.inside` does
    feasible: Any = None  # a tuple that surely is in the set, as `dense.feasible` does
    attain: Any = None  # a tuple of a given mean, as `membership.attain` does

    def states(
        self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any
    ) -> None:
        """Prove L, U and the share of nature's move for the states start … stop − 1."""
        n_mean, extra = layout.weights.size if self.mean else 0, self.arguments(layout)
        layout = self.around(layout)
        _native.prove(self.routine, start, stop, layout, view, claim, bounds, n_mean, extra)


# ---------------------------------------------------------------------- intervals


def intervals_inside(model: Model, ambiguity: Intervals, kernel: Any) -> Any:
    """A kernel (S, A, S), or sparse (S·A, S), whose rows are surely allowed: `kernel`, clipped and
    filled up.

    A row is cut off at its bounds. Where it then sums to less than 1, each entry gets the same part
    of what its upper bound leaves; where it sums to more, it gives the same part of what it has
    above its lower bound.
    """
    layout, S, A = lay_out(model, ambiguity), model.n_states, model.n_actions
    is_sparse = sparse.issparse(kernel)
    if isinstance(kernel, tuple) or tuple(kernel.shape) not in ((S, A, S), (S * A, S)):
        raise InputError(f"kernel: expected shape {(S, A, S)}, got {np.shape(kernel)}")
    pairs = np.repeat(np.arange(S * A), np.diff(layout.indptr))
    if is_sparse:
        entries = np.asarray(kernel.tocsr()[pairs, layout.indices]).ravel()
    else:
        entries = np.asarray(kernel).reshape(S * A, S)[pairs, layout.indices]
    z = fill_rows(np.nan_to_num(entries, nan=0.0, posinf=1.0, neginf=0.0), pairs, layout)
    matrix = sparse.csr_array((z, layout.indices, layout.indptr), shape=(S * A, S))
    return matrix if is_sparse else matrix.toarray().reshape(S, A, S)


def fill_rows(entries: Array, pairs: Any, layout: Any) -> Array:
    """Rows, entry by entry, brought between the bounds in force and to the sum 1."""
    size = layout.available.size
    r = np.repeat(layout.radius, layout.available.shape[1])[pairs]
    lower, upper = in_force(layout, slice(None), r)
    z = np.clip(entries, lower, upper)
    gap = 1 - np.bincount(pairs, z, minlength=size)
    reach = np.where(gap[pairs] > 0, upper - z, z - lower)
    total = np.bincount(pairs, reach, minlength=size)
    part = np.where(total > 0, gap / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(np.clip(z + part[pairs] * reach, lower, upper))


# ---------------------------------------------------------------------- re-weighting


def mixtures_inside(model: Model, ambiguity: Reweighting, kernel: Any) -> Any:
    """Mean kernel (S, A, S), or sparse (S·A, S), of mixtures that are surely allowed.

    `kernel` holds mixtures, (S, N), with "sa" (S, A, N). Or it is a kernel (S, A, S), or sparse;
    then the mixtures nearest to it are taken. A mixture outside of the set is moved towards the
    weights until it is inside.
    """
    (S, A), N, each = model.available.shape, model.n_kernels, ambiguity.rectangular == "sa"
    shape = (S, A, N) if each else (S, N)
    used = model.weights > 0
    w = model.weights[used] / math.fsum(model.weights[used])
    if not sparse.issparse(kernel) and np.shape(kernel) == shape:
        q = np.array(kernel, dtype=np.float64)[..., used]
    elif not isinstance(kernel, tuple) and np.shape(kernel) in ((S, A, S), (S * A, S)):
        q = _nearest(model, kernel, each)
    else:
        expected = f"mixtures of shape {shape}, or a kernel of shape {(S, A, S)}"
        raise unexpected("kernel", expected, np.shape(kernel))
    rows = np.ascontiguousarray(q.reshape(-1, w.size))
    radii = np.ascontiguousarray(ambiguity.radii(model)).ravel()
    _native.pull(f"mix_{ambiguity.kind}", radii, w, rows)
    full = np.zeros((S, A, N))
    full[:, :, used] = rows.reshape(S, A if each else 1, w.size)
    if not model.is_sparse:
        return np.einsum("sai,isat->sat", full, model.kernels)
    pairs = full.reshape(-1, N)
    return sum(sparse.diags_array(pairs[:, i]) @ kernel for i, kernel in enumerate(model.kernels))


def _nearest(model: Model, kernel: Any, each: bool) -> Array:
    """Mixtures whose kernels are nearest to a kernel in least squares: (S, N'), or (S, A, N')."""
    from scipy.optimize import nnls  # takes a third of a second

    (S, A), used = model.available.shape, model.weights > 0
    N = int(used.sum())
    q = np.tile(model.weights[used], (S, A, 1))
    table = kernel if sparse.issparse(kernel) else np.reshape(kernel, (S * A, S))
    for s in range(S):
        available = np.flatnonzero(model.available[s])
        centre = model.blocks.dense(s, s + 1)[0][:, used]  # (A, N, S)
        for actions in available[:, None] if each else [available][: available.size]:
            goal = table[s * A + actions]
            goal = goal.toarray() if sparse.issparse(goal) else goal
            goal = np.where(np.isfinite(goal), goal, 0.0)
            lhs = np.concatenate([*centre[actions].transpose(0, 2, 1), np.full((1, N), 10.0)])
            q[s, actions] = nnls(lhs, np.concatenate([*goal, [10.0]]))[0]
    return q if each else np.asarray(q[np.arange(S), model.available.argmax(axis=1)])


KL, BURG, CHI2, L2 = map(NativeProof, ("kl", "burg", "chi2", "l2"))
L1, TV = NativeProof("l1", mean=True), NativeProof("tv", mean=True)
L1_ORDERS, L2_ORDERS = (NativeProof(f"{norm}_orders", extra=ORDER) for norm in ("l1", "l2"))
L1_INF, LINF = L1_ORDERS, NativeProof("linf", extra=ORDER)
TRANSPORT, TRANSPORT_INF = (
    NativeProof(routine, mean, feasible=transport_feasible, attain=transport_attain)
    for routine, mean in (("transport", True), ("transport_each", False))
)
INTERVALS = NativeProof("intervals", inside=intervals_inside)
MIXTURES = NativeProof("mix", inside=mixtures_inside)
OUTSIDE = NativeProof("outside")
