"""The exact operators: nearly linear robust Bellman updates for all six balls.

Each family of sets is a routine over ranges of states (`drmdp.operators.native`); this module gives
it the data (`layout`), the memory of the last sweep and threads, and wraps its result in an
`Update`. The bounds U and L are those of the routine, one-sided up to rounding; the memory is the
claim from which `drmdp.certificate` proves bounds.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.layout import event_layout
from drmdp.layout.layout import Layout, at_radius, fill_up
from drmdp.layout.memory import SweepMemory, SweepOutput, empty_memory, empty_output, of_states
from drmdp.layout.partial_sort import SortedOnDemand
from drmdp.layout.point import SweepPoint, point_at
from drmdp.model import Model
from drmdp.operators.native import family_of
from drmdp.operators.nature_rows import SweepNature
from drmdp.operators.operator import Update
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of

FINEST, COARSEST = 1e-13, 1e-3
"""Errors asked of a state's update, relative to the range of its stakes."""

MANY = 10  # sweeps after which nearly full rows are filled up


class WarmStart(NamedTuple):
    """Memory and policy of the last sweep, with which the next one begins."""

    memory: SweepMemory
    policy: Array  # (S, A)
    sweeps: int  # so far


class ExactOperator:
    """Exact Bellman operator of a (model, ambiguity)."""

    def __init__(
        self, model: Model, ambiguity: AmbiguitySet, threads: int | None = None, layout: Any = None
    ) -> None:
        self.model, self.ambiguity, self.chunk = model, ambiguity, model.n_states
        self.threads, self.accuracy = workers.count(threads), 0.0
        self._layout = event_layout.layout_of(model, ambiguity) if layout is None else layout
        self.family = family_of(ambiguity)
        self.passes = 0.0  # over the candidate rows, mean over the states of the last sweep
        self._filled: Layout | None = None  # the layout for many sweeps
        self._work = event_layout.work(self._layout)
        self._moving = float(np.ptp(model.cost_range)) if model.next_costs else 0.0
        (S, A), N = self._layout.available.shape, self._layout.weights.size
        memory = empty_memory(S, A, N, entry_of(ambiguity).keeps)
        self.warm_start = WarmStart(memory, np.zeros((S, A)), 0)

    def at(self, ambiguity: AmbiguitySet) -> ExactOperator:
        """The operator of a set that differs in its radius only: shares the data, begins where the
        last sweep ended.
        """
        other = copy.copy(self)
        other.ambiguity, other._layout = ambiguity, at_radius(self._layout, self.model, ambiguity)
        other._filled = None
        return other

    @property
    def layout(self) -> Any:
        """The data as the next sweep reads it."""
        return self._laid_out(self.warm_start.sweeps + 1)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""
        return self._sweep(False, value, self.warm_start.policy, start, stop)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature maximise."""
        return self._sweep(True, value, policy, start, stop)

    def _sweep(self, fixed: bool, value: Array, policy: Array, start: int, stop: int) -> Update:
        model, layout, states = self.model, self.layout, slice(start, stop)
        u, shift = levels.around(value, model)
        out, point = self.run(fixed, layout, u, policy, start, stop)
        self.passes = float(out.passes[states].sum()) / max(stop - start, 1)
        played = out.policy[states]
        if model.terminal.any():
            played = np.where(model.terminal[states][:, None], 0.0, played)
        u, lower, upper = u[model.place][states], out.lower[states], out.upper[states]
        low, high, new = levels.both_steps(u, shift, model, lower, upper, states)
        memory = self.warm_start.memory
        nature = SweepNature(model, self.ambiguity, layout, point, memory, None, self.threads)
        return Update(new, low, high, played, nature, memory)

    def run(
        self, fixed: bool, layout: Any, u: Array, policy: Array, start: int, stop: int
    ) -> tuple[SweepOutput, SweepPoint]:
        """Run the routine over ranges of states, from the warm start."""
        orders = SortedOnDemand(partial(point_at, layout, u))
        before, family = self.warm_start, self.family
        memory, out = SweepMemory(*map(np.copy, before.memory)), empty_output(policy)
        widest = self.model.discount * orders.last.span + self._moving  # range of any stakes
        tol = min(max(self.accuracy / widest, FINEST), COARSEST) if widest > 0 else FINEST
        stored = family.prepared(layout) if isinstance(layout, Layout) else None

        def sweep(lo: int, hi: int, point: SweepPoint) -> None:
            for first, last, part, states in event_layout.pieces(layout, lo, hi):
                data = family.prepared(part) if stored is None else stored
                arrays = point, of_states(memory, states), of_states(out, states), tol
                family.sweep(fixed, first, last, data, arrays)

        def undo(lo: int, hi: int) -> None:
            for now, old in zip((*memory, out.policy), (*before.memory, policy), strict=True):
                now[lo:hi] = old[lo:hi]

        over_states = partial(orders.run, work=sweep, undo=undo)
        workers.run(over_states, self._work, start, stop, self.threads)
        self.warm_start = WarmStart(memory, out.policy, before.sweeps + 1)
        return out, orders.last

    def nature(self, value: Array, memory: SweepMemory, sweeps: int) -> SweepNature:
        """Nature's answer to a sweep at `value`, the last of `sweeps`, that left this memory."""
        layout = self._laid_out(sweeps)
        point = point_at(layout, value - levels.level(value, self.model), full=False)
        return SweepNature(self.model, self.ambiguity, layout, point, memory, None, self.threads)

    def _laid_out(self, sweeps: int) -> Layout:
        """The data for the last of so many sweeps."""
        layout: Layout = self._layout
        if sweeps >= MANY:
            layout = self._filled = self._filled or fill_up(self.model, self.ambiguity, layout)
        return layout
