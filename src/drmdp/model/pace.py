"""Costs less a rate per unit of time: c(s, a) − gτ(s, a), or c(s, a, t) − gτ(s, a)."""

from __future__ import annotations

import numpy as np

from drmdp.model import Model, changed


def at_rate(model: Model, rate: float) -> Model:
    """The model whose steps cost c − rate · τ."""
    if rate == 0 or model.sojourn is None:
        return model
    off = rate * model.sojourn
    if model._costs.ndim == 1:
        off = np.repeat(off.ravel(), model.blocks.lengths)
    return changed(model, _costs=model._costs - (off[:, :, None] if model._costs.ndim == 3 else off))
