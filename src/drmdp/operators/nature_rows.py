"""Nature's answer: rows of her mean kernel and the chain of a pair (policy, nature), without ever
listing all states.

A sweep leaves a few numbers per state (`SweepMemory`); from them a row of nature's mean kernel Σ_i
w_i y_ia is (`drmdp.core.compact`)

* listed entries, a number for each, and single ones: where ℓ1 sends the moved mass (a state of the
highest stake), the pivots of ℓ∞;
* prefix terms (k, α, β) for unlisted states; listed ones are corrected in their own entries.

y is ŷ + share·(y − ŷ), share ≤ 1 being what feasibility allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core import threads as workers
from drmdp.core.compact import DENSE, CompactRows, KernelTuple, MeanKernel
from drmdp.layout import event_layout
from drmdp.layout.layout import Layout
from drmdp.layout.memory import SweepMemory, of_states
from drmdp.layout.point import SweepPoint, point_at
from drmdp.model import Model
from drmdp.operators.native import NativeFamily, family_of


@dataclass(eq=False)
class SweepNature:
    """Nature's answer to a sweep: the memory of the routines and the point it belongs to."""

    model: Model
    ambiguity: Any  # whose family answers
    layout: Layout
    point: SweepPoint
    memory: SweepMemory
    share: Array | None  # (S, N) of the move that counts; None: all of it
    threads: int

    @property
    def family(self) -> NativeFamily:
        """That of the set."""
        return family_of(self.ambiguity)

    def pulled(self, share: Array) -> SweepNature:
        """The same with the share (S, N) of her move that is surely allowed."""
        return replace(self, share=share)

    def chain(self, policy: Array) -> Any:
        """Transitions of the pair (policy, nature), (S, S)."""
        rows = self.rows(policy)
        return rows.dense() if self.point.value.size <= DENSE else rows

    def rows(self, policy: Array) -> CompactRows:
        """The same in compact form."""
        return self._rows(policy, by_pair=False)

    def kernel(self) -> Any:
        """Mean kernel, (S, A, S)."""
        kernel = MeanKernel(self.model.n_states, self.model.n_actions, self.pairs)
        return kernel if self.model.is_sparse else np.asarray(kernel)

    def pairs(self) -> CompactRows:
        """Rows of the mean kernel in compact form; refused where files that it reads have changed
        since the run.
        """
        self.model.check_unchanged()
        return self._rows(np.ones(self.layout.available.shape), by_pair=True)

    @property
    def kernels(self) -> KernelTuple | None:
        """The N kernels whose mean that is, if there are any; those of weight 0 stay as they
        are.
        """
        if not self.family.single_kernels:
            return None
        return KernelTuple(self.model.n_kernels, self._single)

    @property
    def weights(self) -> Array | None:
        """Her mixtures of the N kernels, (S, N) or (S, A, N), if she plays mixtures; 0 for kernels
        of weight 0.
        """
        if (answer := self.family.weights) is None:
            return None
        mixtures = answer(self.layout, self.memory, self.share)
        full = np.zeros((*mixtures.shape[:-1], self.model.n_kernels))
        full[..., self.model.weights > 0] = mixtures
        return full

    def _single(self, i: int) -> Any:
        """Kernel i."""
        model = self.model
        if not model.weights[i] > 0.0:
            kernel = model.kernels[i]
            if isinstance(kernel, np.ndarray):
                return kernel
            return kernel.toarray().reshape(model.n_states, model.n_actions, -1)
        place = int(np.count_nonzero(model.weights[:i]))
        alone = self.layout._replace(weights=np.eye(self.layout.weights.size)[place])
        return replace(self, layout=alone).kernel()

    def _rows(self, weights: Array, by_pair: bool) -> CompactRows:
        """Nature's mean kernel, a row per pair (S·A) or, summed with `weights` (S, A) over the
        actions, per state; pairs of weight 0 get an empty row.
        """
        family, layout, point = self.family, self.layout, self.point
        S, A = layout.available.shape
        prefixes = layout.weights.size * family.prefixes if layout.unlisted else 0
        if weights[~layout.available].any():
            weights = np.where(layout.available, weights, 0.0)
        used = weights > 0
        share = np.ones((S, 1)) if self.share is None else self.share
        step = 1 if by_pair else A
        # pieces of events find their pairs themselves
        fine = step if isinstance(layout, event_layout.EventLayout) else 1

        def begins(states: slice, step: int) -> tuple[Any, Any]:
            """Where entries and prefix terms of every `step` pairs begin, and where they end."""
            there = used[states].ravel()
            most = event_layout.lengths(layout, states) + family.singles(layout, states)
            return _begins(np.where(there, most, 0), step), _begins(there * prefixes, step)

        entry_at, prefix_at = begins(event_layout.EVERYTHING, fine)
        real: Any = np.float64
        if not by_pair:  # a Newton direction needs no more
            large = np.float32 if point.value.size > DENSE else real
            real = layout.data.dtype if hasattr(layout, "data") else large
        entries, terms = int(entry_at[-1]), int(prefix_at[-1])
        listed = np.zeros(entries, dtype=np.int32), np.zeros(entries, dtype=real)
        depth, (slope, height) = np.zeros(terms, dtype=np.int32), np.zeros((2, terms), dtype=real)

        def request(states: slice) -> tuple[Any, ...]:
            """Weights and shares of a piece, and what its rows are written to."""
            entry, prefix = entry_at, prefix_at
            if states.start is not None:
                first = states.start * A // fine
                entry, prefix = begins(states, 1)
                entry, prefix = entry + entry_at[first], prefix + prefix_at[first]
            rows = entry, *listed, prefix, depth, slope, height
            return weights[states], share[states], rows

        def over(lo: int, hi: int) -> None:
            for first, last, part, states in event_layout.pieces(layout, lo, hi):
                arrays = point, of_states(self.memory, states), request(states)
                family.respond(first, last, part, arrays)

        workers.run(over, entry_at[:: A // fine], 0, S, self.threads)
        order, deepest = point.order, int(depth.max()) if terms else 0
        if order.beyond[0]:  # she may use more than the top
            return replace(self, point=point_at(layout, point.value))._rows(weights, by_pair)
        every = step // fine
        entry_at, prefix_at = (np.ascontiguousarray(at[::every]) for at in (entry_at, prefix_at))
        unlisted = prefix_at, depth, slope, height, order.states[:deepest].copy()
        rows = *listed, *unlisted, order.u[:deepest].copy()
        return CompactRows._make([point.value.size, entry_at, *rows, self.threads])


def _begins(each: Any, step: int) -> Any:
    """Sums of all before every `step` numbers, and of all; those that are 0 take no memory."""
    at = np.zeros(each.size // step + 1, dtype=np.int64)
    if each.any():
        np.cumsum(each.reshape(-1, step).sum(axis=1), out=at[1:])
    return at
