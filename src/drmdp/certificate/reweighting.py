"""Re-weighting: its proof is `native/judge/mixture.hpp`; here is what a kernel or mixtures of any origin need to be inside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import _native
from drmdp._typing import Array
from drmdp.certificate.native import NativeProof
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets.reweighting import Reweighting


def inside(model: Model, ball: Reweighting, kernel: Any) -> Any:
    """Mean kernel (S, A, S), or sparse (S·A, S), of mixtures that are surely allowed.

    `kernel` holds mixtures, (S, N), with "sa" (S, A, N). Or it is a kernel (S, A, S), or sparse; then the mixtures nearest to it are taken. A mixture
    outside of the ball is moved towards the weights until it is inside.
    """
    (S, A), N, each = model.available.shape, model.n_kernels, ball.rectangular == "sa"
    shape = (S, A, N) if each else (S, N)
    used = model.weights > 0
    w = model.weights[used] / math.fsum(model.weights[used])
    if not sparse.issparse(kernel) and np.shape(kernel) == shape:
        q = np.array(kernel, dtype=np.float64)[..., used]
    elif not isinstance(kernel, tuple) and np.shape(kernel) in ((S, A, S), (S * A, S)):
        q = _nearest(model, kernel, each)
    else:
        raise InputError(
            f"kernel: expected mixtures of shape {shape}, or a kernel of shape {(S, A, S)}, got {np.shape(kernel)}"
        )
    rows = np.ascontiguousarray(q.reshape(-1, w.size))
    _native.pull(f"mix_{ball.kind}", np.ascontiguousarray(ball.radii(model)).ravel(), w, rows)
    full = np.zeros((S, A, N))
    full[:, :, used] = rows.reshape(S, A if each else 1, w.size)
    return _mixed(model, full)


def _mixed(model: Model, q: Array) -> Any:
    """Σ_i q_i ŷ_i, q being (S, A, N)."""
    if model.is_sparse:
        pairs = q.reshape(-1, q.shape[2])
        return sum(sparse.diags_array(pairs[:, i]) @ kernel for i, kernel in enumerate(model.kernels))
    return np.einsum("sai,isat->sat", q, model.kernels)


def _nearest(model: Model, kernel: Any, each: bool) -> Array:
    """Mixtures whose kernels are nearest to a kernel, in the sense of least squares: (S, N'), or (S, A, N')."""
    from scipy.optimize import nnls  # takes a third of a second

    (S, A), used = model.available.shape, model.weights > 0
    N = int(used.sum())
    q = np.tile(model.weights[used], (S, A, 1))
    for s in range(S):
        own = np.flatnonzero(model.available[s])
        rows = model.blocks.dense(s, s + 1)[0][own][:, used]  # (A', N, S)
        given = (
            kernel[s * A + own].toarray() if sparse.issparse(kernel) else np.asarray(kernel).reshape(S, A, S)[s, own]
        )
        given = np.where(np.isfinite(given), given, 0.0)
        parts = [([k], [a]) for k, a in enumerate(own.tolist())] if each else [(list(range(own.size)), own.tolist())]
        for places, actions in parts:
            if places:
                left = np.concatenate([*rows[places].transpose(0, 2, 1), np.full((1, N), 10.0)])
                q[s, actions] = nnls(left, np.concatenate([*given[places], [10.0]]))[0]
    return q if each else np.asarray(q[np.arange(S), model.available.argmax(axis=1)])


KL_PROOF, BURG_PROOF, CHI2_PROOF, TV_PROOF, CVAR_PROOF, ANY_PROOF = (
    NativeProof(f"mix_{kind}", inside=inside) for kind in ("kl", "burg", "chi2", "tv", "cvar", "any")
)
