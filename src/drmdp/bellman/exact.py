"""The exact operators: nearly linear robust Bellman updates for all six balls.

Each family of sets is a routine over ranges of states (`drmdp.bellman.native`); this module gives it the data (`layout`), the memory of the last sweep
and threads, and turns what it finds into an `Update`. The bounds U and L are the routine's own, one-sided up to rounding; the memory is the claim from
which `drmdp.certificate` proves bounds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.native import NativeFamily
from drmdp.bellman.nature_rows import respond
from drmdp.bellman.operator import Update
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.core.compact import DENSE, KernelTuple, MeanKernel, Rows
from drmdp.layout import events
from drmdp.layout.layout import Layout, at_radius, fill_up
from drmdp.layout.memory import Memory, Out, empty_memory, of_states
from drmdp.layout.point import Point, point_at
from drmdp.layout.top import Looks
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import Kept, entry_of, part_of

FINEST, COARSEST = 1e-13, 1e-3
"""Errors asked of a state's update, relative to the range of its stakes."""

NOTHING = np.zeros(1)
MANY = 10  # sweeps after which nearly full rows are filled up


class Left(NamedTuple):
    """What the last sweep left behind, for the next one to begin with."""

    memory: Memory
    policy: Array  # (S, A)
    sweeps: int  # so far


def family_of(ball: Any) -> NativeFamily:
    """The family of a set."""
    entry = entry_of(ball)
    found: NativeFamily = part_of(entry.response, ball)
    return replace(found, by_pair=True) if entry.keeps.by_pair else found


@dataclass(eq=False)
class Remembered:
    """What nature plays after a sweep: the memory of the kernels and the point it belongs to."""

    model: Model
    ball: Any  # whose family answers
    layout: Layout
    point: Point
    memory: Memory
    share: Array | None  # (S, N) of the move that counts; None: all of it
    threads: int

    @property
    def family(self) -> NativeFamily:
        """That of the set."""
        return family_of(self.ball)

    def pulled(self, share: Array) -> Remembered:
        """The same with the share (S, N) of her move that is surely allowed."""
        return type(self)(self.model, self.ball, self.layout, self.point, self.memory, share, self.threads)

    def chain(self, policy: Array) -> Any:
        """Transitions of the pair (policy, nature), (S, S)."""
        rows = self.rows(policy)
        return rows.dense() if self.point.value.size <= DENSE else rows

    def rows(self, policy: Array) -> Rows:
        """The same in compact form."""
        return self._rows(policy, by_pair=False)

    def kernel(self) -> Any:
        """Mean kernel, (S, A, S)."""
        kernel = MeanKernel(self.model.n_states, self.model.n_actions, self.pairs)
        return kernel if self.model.is_sparse else np.asarray(kernel)

    def pairs(self) -> Rows:
        """Its rows, one for each pair, in compact form; long after the run files may have changed that it reads."""
        self.model.check_unchanged()
        return self._rows(np.ones(self.layout.available.shape), by_pair=True)

    @property
    def kernels(self) -> KernelTuple | None:
        """The N kernels whose mean that is, if there are any; those of weight 0 stay as they are."""
        if not self.family.single_kernels:
            return None
        return KernelTuple(self.model.n_kernels, self._single)

    @property
    def weights(self) -> Array | None:
        """Her mixtures of the N kernels, (S, N) or (S, A, N), if that is what she plays; those of weight 0 have none."""
        if self.family.weights is None:
            return None
        own = self.family.weights(self.layout, self.memory, self.share)
        full = np.zeros((*own.shape[:-1], self.model.n_kernels))
        full[..., self.model.weights > 0] = own
        return full

    def _single(self, i: int) -> Any:
        """Kernel i."""
        model = self.model
        if not model.weights[i] > 0.0:
            own = model.kernels[i]
            return own if isinstance(own, np.ndarray) else own.toarray().reshape(model.n_states, model.n_actions, -1)
        place = int(np.count_nonzero(model.weights[:i]))
        alone = self.layout._replace(weights=np.eye(self.layout.weights.size)[place])
        return replace(self, layout=alone).kernel()

    def _rows(self, weights: Array, by_pair: bool) -> Rows:
        share = self.share
        if share is None:
            share = np.empty((self.layout.available.shape[0], 1))
            share.fill(1.0)
        return respond(self.family, self.layout, self.point, self.memory, weights, share, by_pair, self.threads)


def nothing_left(layout: Any, keeps: Kept) -> Left:
    """Before the first sweep."""
    S, A = layout.available.shape
    return Left(empty_memory(S, A, layout.weights.size, keeps), np.zeros((S, A)), 0)


class Ready:
    """What sweeps of a model and a kind of set have in common, kept as long as the model is."""

    def __init__(self, model: Model, layout: Any) -> None:
        self.work = events.work(layout)
        self.few = isinstance(layout, Layout) and bool(self.work[-1] < workers.SMALL)
        self.left: Left | None = None  # before the first sweep, if there are few numbers; nobody writes to it
        self.ends = bool(model.terminal.any())
        self.moving = float(np.ptp(model.cost_range)) if model.next_costs else 0.0
        self._last: tuple[Any, Any] = None, None

    def data(self, family: NativeFamily, layout: Layout) -> Any:
        """The layout as sweeps of the family read it."""
        last = self._last
        if last[0] is not layout:
            last = self._last = layout, family.prepared(layout)
        return last[1]


class ExactOperator:
    """Exact Bellman operator of a (model, ball)."""

    def __init__(self, model: Model, ball: AmbiguitySet, threads: int | None = None) -> None:
        self.model, self.ball = model, ball
        self.chunk = model.n_states
        self.threads = workers.count(threads)
        self._layout = events.spread_out(model, ball)
        entry = entry_of(ball)
        self.family = family_of(ball)
        self.accuracy = 0.0
        self._passes = NOTHING
        self._filled: Layout | None = None  # the layout for many sweeps
        key = "ready", ball.kin
        ready = model.kept.get(key)
        if ready is None:
            ready = model.kept[key] = Ready(model, self._layout)
        self.ready: Ready = ready
        self.left: Left = ready.left or nothing_left(self._layout, entry.keeps)
        if ready.few:
            ready.left = self.left

    def at(self, ball: AmbiguitySet) -> ExactOperator:
        """The operator of a ball that differs in its radius only: shares the data, begins where the last sweep ended."""
        other = copy.copy(self)
        other.ball, other._layout = ball, at_radius(self._layout, self.model, ball)
        other._filled = None
        return other

    @property
    def layout(self) -> Any:
        """The data as the next sweep reads it."""
        return self._laid_out(self.left.sweeps + 1)

    @property
    def passes(self) -> float:
        """Passes over the candidate rows, mean over the states of the last sweep."""
        return float(self._passes.mean())

    def adopt(self, other: ExactOperator) -> None:
        """Begin where the last sweep of `other`, with the same kernels, ended."""
        self.left = other.left._replace(sweeps=self.left.sweeps)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""
        return self._sweep(False, value, self.left.policy, start, stop)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature maximise."""
        return self._sweep(True, value, policy, start, stop)

    def _sweep(self, fixed: bool, value: Array, policy: Array, start: int, stop: int) -> Update:
        model = self.model
        u, shift = levels.around(value, model)
        layout = self.layout
        looks: Looks[Point] = Looks(partial(point_at, layout, u))
        out = self._mapped(fixed, layout, looks, policy, start, stop)
        own = slice(start, stop)
        self._passes = out.passes[own]
        ends, here = model.terminal[own], u[model.own][own]
        policy = np.where(ends[:, None], 0.0, out.policy[own]) if self.ready.ends else out.policy[own]
        low, high, new = levels.both_steps(here, shift, model, out.lower[own], out.upper[own], own)
        memory = self.left.memory
        nature = Remembered(model, self.ball, layout, looks.last, memory, None, self.threads)
        return Update(new, low, high, policy, nature, memory)

    def _mapped(self, fixed: bool, layout: Any, looks: Looks[Point], policy: Array, start: int, stop: int) -> Out:
        """Map the routine over ranges of states, from what the last sweep left."""
        by_action, by_kernel, by_row = self.left.memory
        memory = Memory(by_action.copy(), by_kernel.copy(), by_row.copy())
        S = self.model.n_states
        out = Out(np.zeros(S), np.zeros(S), policy.copy(), np.zeros(S))
        widest = self.model.discount * looks.last.span + self.ready.moving  # range of any stakes
        tol = min(max(self.accuracy / widest, FINEST), COARSEST) if widest > 0 else FINEST
        family = self.family

        def sweep(lo: int, hi: int, point: Point) -> None:
            for first, last, part, own in events.pieces(layout, lo, hi):
                data = self.ready.data(family, part) if part is layout else family.prepared(part)
                family.sweep(fixed, first, last, data, point, of_states(memory, own), of_states(out, own), tol)

        def undo(lo: int, hi: int) -> None:
            for now, before in zip((*memory, out.policy), (*self.left.memory, policy), strict=True):
                now[lo:hi] = before[lo:hi]

        def over_states(lo: int, hi: int) -> None:
            looks.run(lo, hi, sweep, undo)

        workers.run(over_states, self.ready.work, start, stop, self.threads)
        self.left = Left(memory, out.policy, self.left.sweeps + 1)
        return out

    def nature(self, value: Array, memory: Memory, sweeps: int) -> Remembered:
        """What nature plays after a sweep at `value`, the last of so many, that left this memory."""
        layout = self._laid_out(sweeps)
        point = point_at(layout, value - levels.level(value, self.model), whole=False)
        return Remembered(self.model, self.ball, layout, point, memory, None, self.threads)

    def _laid_out(self, sweeps: int) -> Layout:
        """The data for the last of so many sweeps."""
        layout: Layout = self._layout
        if sweeps >= MANY:
            layout = self._filled = self._filled or fill_up(self.model, self.ball, layout)
        return layout
