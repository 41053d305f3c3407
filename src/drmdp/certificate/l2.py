"""ℓ2 in the certificate."""

from __future__ import annotations

import numpy as np

from drmdp._typing import Array
from drmdp.certificate.dense import Block
from drmdp.sets import AmbiguitySet


def dual_rows(ball: AmbiguitySet, data: Block, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
    """R_i of each kernel and Σ|terms|, (n, N) each: the formula of `drmdp.certificate.dense` for ℓ2."""
    played = np.broadcast_to(data.available[:, :, None], tau.shape)
    m = mu[:, None, :, None]
    d = xz - tau[..., None]
    moved = d / (2 * m)  # d² may underflow
    gain = np.where(data.nominal + moved > 0, d * (data.nominal + moved / 2), -m * data.nominal * data.nominal)
    gain = np.where(data.allowed[:, :, None, :], gain, 0.0)
    budget = mu * (data.radius * data.radius)[:, None]
    value = np.where(played, tau, 0.0).sum(axis=1) + gain.sum(axis=(1, 3)) + budget
    size = np.where(played, np.abs(tau), 0.0).sum(axis=1) + 2 * np.abs(gain).sum(axis=(1, 3)) + budget
    return value, size
