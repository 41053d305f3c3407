"""What must be known of a whole model to compute on a range of its states.

Numbers that are a minimum, a maximum or a sum over the states: each range tells its own, and `together` joins them. Results then do not depend
on how the states were divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from drmdp.model import Model


class Facts(NamedTuple):
    """Extremes and sums over the available pairs of a model, or of a range of its states."""

    least_cost: float  # of the known ones; inf if there is none
    most_cost: float  # −inf if there is none
    shortest: int  # fewest next states listed for a pair
    shortest_seen: int  # of those that kernels of positive weight reach
    longest: int
    pairs: int
    closed: int  # pairs that are not available
    entries: int  # next states listed, over all pairs
    missing: bool  # some transition that no kernel has lacks a cost

    @property
    def cost_range(self) -> tuple[float, float]:
        """Smallest and largest known cost; zeros if there is none."""
        return (self.least_cost, self.most_cost) if self.least_cost <= self.most_cost else (0.0, 0.0)


def facts_of(model: Model) -> Facts:
    """The facts of the states that a model has."""
    costs, blocks, open_pairs = model._costs, model._blocks, model.available.ravel()
    known = costs if costs.ndim == 1 else costs[model.available]
    known = known[~np.isnan(known)]
    lengths = blocks.lengths[open_pairs]
    S = model.n_next
    shortest = shortest_seen = int(lengths.min(initial=S))
    if not (model.weights > 0).all():
        pair = np.repeat(np.arange(open_pairs.size), blocks.lengths)
        seen = np.bincount(pair[blocks.seen(model.weights)], minlength=open_pairs.size)
        shortest_seen = int(seen[open_pairs].min(initial=S))
    missing = (costs.ndim == 1 and shortest < S) or (costs.ndim == 3 and bool(np.isnan(costs).any()))
    return Facts(
        float(known.min(initial=np.inf)), float(known.max(initial=-np.inf)), shortest, shortest_seen,
        int(lengths.max(initial=0)), lengths.size, open_pairs.size - lengths.size, int(blocks.indices.size), missing,
    )  # fmt: skip


def together(parts: Sequence[Facts]) -> Facts:
    """The facts of several ranges as one."""
    folds: tuple[Any, ...] = (min, max, min, min, max, sum, sum, sum, any)
    columns: list[Any] = [list(column) for column in zip(*parts, strict=True)]
    return Facts(*(fold(column) for fold, column in zip(folds, columns, strict=True)))
