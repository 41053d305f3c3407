"""The proximal map of a set, found through its entry; the mathematics is in `native/prox`.

A state's iterate holds the rows y_ia of its pairs in the layout of `drmdp.layout.layout.Layout.data`. A map turns them in place into the rows
of the projection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.layout.layout import Layout
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load

ACCURACY = 1e-12
"""Relative accuracy of distances unless said otherwise."""


class Family(NamedTuple):
    """A map: the norm of its ball, or "entropy" for that of ℓ∞ with the relative entropy as the distance, and whose the multipliers are."""

    norm: str
    each: bool  # one multiplier a kernel, else one a state

    def width(self, n_kernels: int) -> int:
        """Numbers that are remembered of a state: multipliers; for ℓ∞ and one budget also the radii."""
        if self.each:
            return n_kernels
        return 1 + n_kernels if self.norm == "linf" else 1


L1_SHARED, L2_SHARED, LINF_SHARED = (Family(norm, False) for norm in ("l1", "l2", "linf"))
"""One budget for all kernels."""
L1_EACH, L2_EACH, LINF_EACH, ENTROPY_EACH = (Family(norm, True) for norm in ("l1", "l2", "linf", "entropy"))
"""A budget for each kernel."""


class Push(NamedTuple):
    """The point to be projected: row (s, a, i) of it is y_ia + w_i·step[s, a]·(c + λ v), with c the costs of next states."""

    step: Array  # (S, A)
    value: Array  # (S,), v


class Memory(NamedTuple):
    """What a map leaves behind for the next one, and reads as a guess; zeros to begin with."""

    multiplier: Array  # (S, M)
    threshold: Array  # (S·A, N), of each row
    trials: Any  # (S, M) int64, multipliers tried; 0 where the ball does not bind


def family_of(ball: AmbiguitySet, entropy: bool = False) -> Family:
    """The map of a set, with the relative entropy for the distance if asked for; refuses sets that have none."""
    if ball.nature != "adversarial":
        raise InputError("method: the first-order method is for an adversarial nature; take another method")
    entry = entry_of(ball)
    where = entry.entropy if entropy else entry.projection
    if not where:
        kind = "entropic projection" if entropy else "projection"
        raise InputError(f"{ball.short} has no {kind}, which the first-order method needs; take another method")
    found: Family = load(where)
    return found


def project_on_simplex(rows: Array) -> Array:
    """The nearest distributions (z − τ)⁺ to rows (n, K): τ is the largest of the levels at which the k largest numbers of z add up to 1."""
    z = rows - rows.max(axis=1, keepdims=True)  # the level changes nothing, and large ones lose digits
    down = -np.sort(-z, axis=1)
    levels = (np.cumsum(down, axis=1) - 1) / np.arange(1, z.shape[1] + 1)
    return np.asarray(np.maximum(z - levels.max(axis=1, keepdims=True), 0.0))


def remember(family: Family, layout: Layout) -> Memory:
    """Empty memory for a layout."""
    (S, A), N = layout.available.shape, layout.weights.size
    width = family.width(N)
    return Memory(np.zeros((S, width)), np.zeros((S * A, N)), np.zeros((S, width), dtype=np.int64))


def project_states(
    family: Family, start: int, stop: int, layout: Layout, push: Push, y: Array, memory: Memory,
    accuracy: float = ACCURACY, inside: bool = False,
) -> None:  # fmt: skip
    """Project the states start … stop − 1 of an iterate y, (N·nnz,) like the layout's data, pushed, in place.

    The pushed point is formed on the fly, so that the iterate is the only array of its size. Every next state that nature may use must be
    listed. With `inside` the iterate is in the ball already, so that rows without a step cost little.
    """
    _native.project(family.norm, family.each, start, stop, layout, push, y, memory, accuracy, inside)
