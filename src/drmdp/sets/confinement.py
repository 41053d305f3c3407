"""Whether nature can keep rows inside a set C of states: y(C) = 1 for every row that is asked
about, of each of the N kernels whose mean she plays.

What lies outside of C has to move into it. The least that this costs is a formula for each set
(`least_radius`), m being the mass ŷ has outside of C and n the number of next states of C that it
may move to:

    ℓ1  2m      ℓ2  √(Σ_{t∉C} ŷ² + m²/n)      ℓ∞  max(max_{t∉C} ŷ, m/n)      tv  m
    kl  −log ŷ(C)      χ²  m/ŷ(C)      burg  ∞ unless m = 0
    transport  Σ_{j∉C} ŷ(j) min_{k∈C} D(j, k)

added up, or stacked, over actions that share a budget and over the kernels as the set does. Answers
guide who looks for a bound; no bound rests on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.storage import kernel_entries, row_entries

SLACK = 1e-12
"""Radii that miss what is needed by this part of it are taken for rounded ones."""


class Leaving(NamedTuple):
    """Rows of some pairs, the arrays of a layout, and which of their entries are outside of what
    they are to stay in.
    """

    starts: IntArray  # (P,) where each pair begins among the n entries
    groups: IntArray  # (G,) where those begin, among the P, that share a budget
    rows: Array  # (N, n) ŷ
    mean: Array  # (n,)
    weights: Array  # (N,)
    radius: Array  # (G,)
    states: IntArray  # (n,) next states
    outside: BoolArray  # (n,)
    room: IntArray  # (P,) next states inside that may have mass
    # (P,) label of what they stay in, and (S,) of all states, where nature may use states that are
    # not listed
    others: Any

    def total(self, entries: Any) -> Any:
        """Sums over each row, of truths whether there is one, (…, n) → (…, P)."""
        return np.add.reduceat(entries, self.starts, axis=-1)

    def gathered(self, each: Any) -> Any:
        """Sums over those that share a budget, (…, P) → (…, G)."""
        return np.add.reduceat(each, self.groups, axis=-1)

    def spilt(self, rows: Array) -> tuple[Array, Array]:
        """Mass outside and inside, (…, P) each."""
        inside = self.total(np.where(self.outside, 0.0, rows))
        return self.total(np.where(self.outside, rows, 0.0)), inside


def leaving(layout: Any, label: IntArray, pairs: IntArray, together: bool) -> Leaving:
    """Rows of available pairs, ascending, that are to stay in the states of their label.

    `together`: those of one state share its budget, else each has all of it.
    """
    entries, lengths = row_entries(layout.indptr, pairs)
    starts = np.cumsum(lengths) - lengths
    rows = kernel_entries(layout, entries, np.repeat(pairs, lengths))
    rows = rows.astype(np.float64, copy=False)
    if layout.data.dtype != np.float64:
        rows = rows / np.repeat(np.add.reduceat(rows, starts, axis=1), lengths, axis=1)
    owners = pairs // layout.available.shape[1]
    states, row_label, others = layout.indices[entries], label[owners], None
    outside = label[states] != np.repeat(row_label, lengths)
    room = np.add.reduceat(~outside, starts, dtype=np.int64)
    if layout.unlisted:
        room, others = np.bincount(label[label >= 0])[row_label], (row_label, label)
    groups = np.flatnonzero(np.diff(owners, prepend=-1)) if together else np.arange(pairs.size)
    radius = layout.radius[owners] if layout.radius.ndim == 1 else layout.radius.ravel()[pairs]
    mean, weights = layout.mean[entries], layout.weights
    radii = radius[groups]
    return Leaving(starts, groups, rows, mean, weights, radii, states, outside, room, others)


def keeps(
    ambiguity: Any, layout: Any, label: IntArray, pairs: IntArray, together: bool = False
) -> BoolArray:
    """Whether nature can keep the rows of available pairs, ascending, inside the states that have
    the label of theirs.

    One answer for each pair, or, for pairs that are played `together` and share the budget of their
    state, for each of these states in that order.
    """
    if not pairs.size:
        return np.zeros(0, dtype=bool)
    alone = ambiguity.rectangular == "sa"
    inside: BoolArray = ambiguity.keeps(leaving(layout, label, pairs, together and not alone))
    if together and alone:
        first = np.flatnonzero(np.diff(pairs // layout.available.shape[1], prepend=-1))
        return np.asarray(np.logical_and.reduceat(inside, first))
    return inside
