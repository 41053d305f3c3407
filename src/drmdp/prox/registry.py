"""The proximal maps of sets, by their entries; the mathematics is in `native/prox`.

A state's iterate holds the rows y_ia of its pairs in the layout of
`drmdp.layout.layout.Layout.data`. A map turns them in place into the rows of the projection.
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
"""Default relative accuracy of distances."""


class ProxFamily(NamedTuple):
    """A map: the norm of its set, or "entropy" for that of ℓ∞ with the relative entropy as the
    distance, and the owners of its multipliers.
    """

    norm: str
    each: bool  # one multiplier a kernel, else one a state

    def width(self, n_kernels: int) -> int:
        """Numbers in the memory of a state: multipliers; for ℓ∞ and a shared budget also radii."""
        if self.each:
            return n_kernels
        return 1 + n_kernels if self.norm == "linf" else 1

    def project(
        self, lo: int, hi: int, arrays: ProxArrays, accuracy: float = ACCURACY, inside: bool = False
    ) -> None:
        """Project the states lo … hi − 1 of an iterate y, (N·nnz,) like the layout's data, pushed,
        in place.

        The pushed point is formed on the fly, so that the iterate is the only array of its size.
        Every next state that nature may use must be listed. With `inside` the iterate is in the
        ball already, so that rows without a step cost little.
        """
        _native.project(self.norm, self.each, lo, hi, *arrays, accuracy, inside)


L1_SHARED, L2_SHARED, LINF_SHARED = (ProxFamily(norm, False) for norm in ("l1", "l2", "linf"))
"""A budget that all kernels share."""
L1_EACH, L2_EACH, LINF_EACH = (ProxFamily(norm, True) for norm in ("l1", "l2", "linf"))
ENTROPY_EACH = ProxFamily("entropy", True)
"""A budget for each kernel."""


class Push(NamedTuple):
    """The point to be projected: row (s, a, i) of it is y_ia + w_i·step[s, a]·(c + λ v), with c the
    costs of next states.
    """

    step: Array  # (S, A)
    value: Array  # (S,), v


class ProxMemory(NamedTuple):
    """The warm start of the next map, a guess; zeros to begin with."""

    multiplier: Array  # (S, M)
    threshold: Array  # (S·A, N), of each row
    trials: Any  # (S, M) int64, multipliers tried; 0 where the ball does not bind


ProxArrays = tuple[Layout, Push, Array, ProxMemory]
"""Data, what is pushed, the iterate and the memory of a map."""


def family_of(ambiguity: AmbiguitySet, entropy: bool = False) -> ProxFamily:
    """The map of a set, with the relative entropy for the distance if asked for; refuses sets that
    have none.
    """
    method = "the first-order method"
    if ambiguity.nature != "adversarial":
        raise InputError(f"method: {method} is for an adversarial nature; take another method")
    entry = entry_of(ambiguity)
    if not entry.projection:
        need = f"no projection, which {method} needs"
        raise InputError(f"{ambiguity.short} has {need}; take another method")
    if entropy and not entry.entropy:
        where = "entropy-nature and entropy-both go with (linf, inf) only"
        rest = "every other variant goes with this ball"
        raise InputError(f"{ambiguity.short} has no entropic projection: {where}; {rest}")
    family: ProxFamily = load(entry.entropy if entropy else entry.projection)
    return family


def project_on_simplex(rows: Array) -> Array:
    """The nearest distributions (z − τ)⁺ to rows (n, K): τ is the largest of the levels at which
    the k largest numbers of z add up to 1.
    """
    z = rows - rows.max(axis=1, keepdims=True)  # a level changes nothing but costs digits
    down = -np.sort(-z, axis=1)
    levels = (np.cumsum(down, axis=1) - 1) / np.arange(1, z.shape[1] + 1)
    return np.asarray(np.maximum(z - levels.max(axis=1, keepdims=True), 0.0))


def cold_memory(family: ProxFamily, layout: Layout) -> ProxMemory:
    """Empty memory for a layout."""
    (S, A), N = layout.available.shape, layout.weights.size
    shape = S, family.width(N)
    return ProxMemory(np.zeros(shape), np.zeros((S * A, N)), np.zeros(shape, dtype=np.int64))
