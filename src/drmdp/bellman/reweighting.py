"""Nature re-weights the N kernels: the update is `native/solve/mixture.hpp`; here is what she plays.

Memory: by_action[0] holds τ of the last answer, by_kernel holds q; where τ is 0 nature was not asked, and q is w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.native import NativeFamily
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory


def mixtures(layout: Layout, memory: Memory, share: Any) -> Array:
    """The mixtures that nature plays, (S, N), or (S, A, N); what is no mixture is w."""
    (S, A), N = layout.available.shape, layout.weights.size
    each = memory.by_kernel.shape[1] > N or layout.radius.ndim == 2
    q = memory.by_kernel.reshape((S, A, N) if each else (S, N))
    asked = memory.by_action[..., None] if each else memory.by_action[:, :1]
    q = np.where(np.isfinite(q) & (q > 0) & (asked > 0), q, 0.0)
    total = q.sum(axis=-1, keepdims=True)
    w = layout.weights / layout.weights.sum()
    q = np.where(total > 0, q / np.where(total > 0, total, 1.0), w)
    if share is None:
        return q
    part = share.reshape(S, A, -1)[:, :, :1] if each else share[:, :1]
    return np.asarray(w + part * (q - w))


KL, BURG, CHI2, TV, CVAR, ANY = (
    NativeFamily(f"mix_{kind}", single_kernels=False, tops=0, weights=mixtures)
    for kind in ("kl", "burg", "chi2", "tv", "cvar", "any")
)
