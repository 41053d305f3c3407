"""Families: nature's answer for a set, or several that differ in numbers only, by routines of
`drmdp._native` (`native/`).

A family says what its rows are around, `sweep`s over ranges of states, and writes her rows after a
sweep (`respond`, `nature_rows`). A sweep leaves a `drmdp.layout.memory.SweepMemory`: the claim that
`drmdp.certificate` proves, and where the next sweep begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.layout import event_layout
from drmdp.layout.layout import Layout
from drmdp.layout.memory import SweepMemory, SweepOutput
from drmdp.layout.point import SweepPoint
from drmdp.layout.routine import ORDER, NativeRoutine
from drmdp.sets.registry import entry_of, part_of

SweepArrays = tuple[SweepPoint, SweepMemory, SweepOutput, float]
"""Point, memory, results and tolerance of a sweep."""
RowArrays = tuple[SweepPoint, SweepMemory, Any]
"""Point and memory of a sweep; weights and shares of pairs, and what rows are written to."""
EACH, TARGETS = -1, -2
"""Entries of a row: one for each kernel, or two targets that are not listed for each entry."""


@dataclass(frozen=True)
class NativeFamily(NativeRoutine):
    """A routine that sweeps, and what its rows hold."""

    tops: int = 1  # entries of a row beside the listed ones; EACH: one for each kernel; or TARGETS
    prefixes: int = 0  # prefix terms of a row, so many for each kernel
    # where she mixes the kernels: makes the mixtures, (S, N) or (S, A, N), of layout, memory, share
    weights: Any = None
    by_pair: bool = False  # a budget for each action
    faintest: float = 1e-40
    """Radii below count as this one: its effect is below the precision of doubles, and routines
    divide by radii. Bounds are proved at those of the set.
    """

    def sweep(
        self, fixed: bool, start: int, stop: int, layout: Layout, arrays: SweepArrays
    ) -> None:
        """Minimise over the policy, or keep the one in out.policy (`fixed`), and let nature
        maximise; the layout is `prepared`.
        """
        more = self.arguments(layout)
        _native.sweep(self.routine, fixed, self.by_pair, start, stop, layout, *arrays, more)

    def prepared(self, layout: Any) -> Any:
        """The data as sweeps read them."""
        faint = (layout.radius > 0.0) & (layout.radius < self.faintest)
        if faint.any():
            layout = layout._replace(radius=np.where(faint, self.faintest, layout.radius))
        return self.around(layout)

    def singles(self, layout: Any, own: slice) -> Any:
        """Entries of her rows of some states beside the listed ones; or how many for each pair."""
        rows = layout.weights.size
        if self.tops != TARGETS:
            return rows if self.tops == EACH else self.tops
        rows = 1 if self.mean and (layout.weights > 0).all() else rows
        return 2 * rows * event_layout.lengths(layout, own) * layout.unlisted

    def respond(self, start: int, stop: int, layout: Layout, arrays: RowArrays) -> None:
        """Write her rows."""
        # else a single kernel is asked for, which moves as the mean does
        if self.mean and (layout.weights > 0).all():
            layout = self.around(layout)
        more = self.arguments(layout)
        _native.respond(self.routine, self.by_pair, start, stop, layout, *arrays, more)


def mixtures(layout: Layout, memory: SweepMemory, share: Any) -> Array:
    """Nature's mixtures, (S, N) or (S, A, N); w where the memory holds no mixture."""
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
    # small q are kept: without them some costs have no end
    return np.asarray(part * q + (1.0 - part) * w)


KL, BURG, CHI2 = map(NativeFamily, ("kl", "burg", "chi2"))
L1, TV = NativeFamily("l1", mean=True), NativeFamily("tv", mean=True)
L2 = NativeFamily("l2", tops=0, prefixes=2, faintest=1e-14)  # rounding hides smaller moves
L1_ORDERS = NativeFamily("l1_orders", extra=ORDER)
L1_INF = replace(L1_ORDERS, faintest=1e-14)
L2_ORDERS = NativeFamily("l2_orders", tops=0, prefixes=1, extra=ORDER)
LINF = NativeFamily("linf", tops=EACH, prefixes=1, extra=ORDER)
INTERVALS = NativeFamily("intervals", single_kernels=False, tops=0)
TRANSPORT = NativeFamily("transport", mean=True, tops=TARGETS)
TRANSPORT_INF = NativeFamily("transport_each", tops=TARGETS)
MIXTURES = NativeFamily("mix", single_kernels=False, tops=0, weights=mixtures)
OUTSIDE = NativeFamily("outside")


def family_of(ambiguity: Any) -> NativeFamily:
    """The family of a set."""
    entry = entry_of(ambiguity)
    family: NativeFamily = part_of(entry.response, ambiguity)
    return replace(family, by_pair=True) if entry.keeps.by_pair else family
