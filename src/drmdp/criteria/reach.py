"""The probability of reaching a target: nothing costs anything, the target is worth −1 (maximised)
or 1 (minimised), and other ends 0.

A vector v with v = ends on the terminal states and within the box of the values proves, by the
steps L − v and U − v of a sweep that is made there,

    upper_step ≤ 0 everywhere, and < 0 where v < 0      ⇒  no nature makes the policy of the sweep cost more than v,
    lower_step ≥ 0 everywhere, and > 0 where v > 0      ⇒  no policy costs less than v against the kernel of the sweep.

Where v is at the end of the box the step has the right sign by comparison: an average of values is
within the box. Nothing is assumed of who arrives: E C_n ≤ v(s) − E[v(s_n); not over] − ε (visits
where v < 0), and if these are finitely many, in the mean, the middle term vanishes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.levels import ended
from drmdp.core.storage import offsets
from drmdp.criteria.base import Criterion, Sides
from drmdp.model import Model, changed
from drmdp.operators.operator import Update


class Reach(Criterion):
    """The criterion of a model whose costs are 0 and whose terminal states are worth 0, or −1, or
    1.
    """

    name = "reach"
    share = 1e-3
    """A residual may be repeated as long as the process lasts, which is not known before; sweeps
    are cheap to make sharp.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.range = (-1.0, 0.0) if model.maximise else (0.0, 1.0)

    def bounds(self, value: Array, update: Update) -> Sides:
        """What a sweep at `value` bounds."""
        model, (low, high) = self._model, self.range
        v = np.asarray(value)
        fits = np.array_equal(v, ended(model, v)) and low <= v.min() and v.max() <= high
        ends = model.terminal
        down, up = np.asarray(update.lower_step), np.asarray(update.upper_step)
        from_below = ends | (v == low) | np.where(v > 0, down > 0, down >= 0)
        from_above = ends | (v == high) | np.where(v < 0, up < 0, up <= 0)
        lower, upper = (v if fits and fine.all() else None for fine in (from_below, from_above))
        return lower, upper


def model_of(model: Model, target: Any, avoid: Any, minimise: bool) -> Model:
    """The model of reaching states `target` (S,) bool before those of `avoid`: costs 0, both
    terminal.
    """
    ends = model.terminal | target | avoid
    available = model.available & ~ends[:, None]
    blocks, open_pairs = model.blocks, available.ravel()
    listed = np.repeat(open_pairs, blocks.lengths)
    if not listed.all():  # nobody reads the others
        data = blocks.data[np.repeat(open_pairs, blocks.n_kernels * blocks.lengths)]
        indptr = offsets(np.where(open_pairs, blocks.lengths, 0))
        blocks = replace(blocks, indptr=indptr, indices=blocks.indices[listed], data=data)
    worth = np.where(target, 1.0 if minimise else -1.0, 0.0)
    process = {"terminal": ends, "ends": worth, "available": available, "maximise": not minimise}
    timeless = {"discount": 1.0, "discounts": None, "sojourn": None}
    parts: Any = {"_costs": np.zeros(available.shape), "_blocks": blocks, "_counts": None}
    return changed(model, **process, **timeless, **parts)
