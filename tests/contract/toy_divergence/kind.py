"""Hellinger: Σ (√y − √ŷ)², at most 2."""

import numpy as np

from drmdp.sets.divergence import DivergenceKind

HELLINGER = DivergenceKind(
    "Hellinger's distance squared",
    lambda y, nominal, ratio: (np.sqrt(y) - np.sqrt(nominal)) ** 2,
    lambda y, allowed, w: float(
        (2 - 2 * np.sqrt(np.where(allowed, y, np.inf).min(axis=2)) @ w).sum()
    ),
    lambda lost, kept: 2 - 2 * np.sqrt(kept),
)
