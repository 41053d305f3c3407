"""The exact operators: nearly linear robust Bellman updates for all six balls.

Each family of balls is one file with two compiled kernels over ranges of states, `update` and `evaluate`; this module gives them the data
(`layout`), the memory of the last sweep, and threads, and turns what they find into an `Update`. The bounds U and L are the kernels'
own, one-sided up to rounding; `certify` re-derives them from the data.
"""

from __future__ import annotations

import copy
import importlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp import certificate, certificate_rows
from drmdp import threads as workers
from drmdp._typing import Array
from drmdp.ambiguity import Pair, Wasserstein
from drmdp.bellman.layout import Layout, Memory, Order, Out, at_radius, lay_out, order_of
from drmdp.bellman.operator import Update
from drmdp.bellman.response import respond
from drmdp.model import Model
from drmdp.rows import DENSE, MeanKernel, Rows

FAMILIES: dict[Pair, str] = {
    ("l1", 1): "l1_1",
    ("l2", 2): "l2_2",
    ("linf", 1): "linf_1",
    ("l1", np.inf): "l1_inf",
    ("l2", np.inf): "l2_inf",
    ("linf", np.inf): "linf_inf",
}
"""The file of each (metric, order): a new one is one file and one line here."""

FINEST, COARSEST = 1e-11, 1e-3
"""Errors asked of a state's update, relative to the range of its stakes."""


@dataclass(frozen=True)
class Remembered:
    """What nature plays after a sweep: the memory of the kernels and the point it belongs to."""

    metric: str
    sparse: bool
    layout: Layout
    order: Order
    value: Array  # without its level
    memory: Memory
    share: Array  # (S, N) of the move that counts
    threads: int

    def chain(self, policy: Array) -> Any:
        """Transitions of the pair (policy, nature), (S, S)."""
        rows = self._rows(policy, by_pair=False)
        return rows.dense() if rows.n_columns <= DENSE else rows

    def kernel(self) -> Any:
        """Mean kernel, (S, A, S)."""
        S, A = self.layout.available.shape
        kernel = MeanKernel(S, A, lambda: self._rows(np.ones((S, A)), by_pair=True))
        return kernel if self.sparse else np.asarray(kernel)

    def _rows(self, weights: Array, by_pair: bool) -> Rows:
        return respond(
            self.metric, self.layout, self.order, self.value, self.memory, weights, by_pair, self.share, self.threads
        )


class ExactOperator:
    """Exact Bellman operator of a (model, ball)."""

    def __init__(self, model: Model, ball: Wasserstein, threads: int | None = None) -> None:
        self.model, self.ball = model, ball
        self.chunk = model.n_states
        self.threads = workers.count(threads)
        self._layout = lay_out(model, ball)
        self._family: Any = importlib.import_module(f"drmdp.bellman.{FAMILIES[ball.pair]}")
        self._work = np.ascontiguousarray(self._layout.indptr[:: model.n_actions]) * self._layout.weights.size
        S, A, N = model.n_states, model.n_actions, self._layout.weights.size
        rows = (S, 0, 0) if ball.metric == "linf" or ball.pair == ("l1", 1) else (S, A, N)
        kept = self._layout.data.dtype if ball.metric == "l2" else np.float64  # thresholds can be made exact again
        self._memory = Memory(np.zeros((S, A)), np.ones((S, N)), np.zeros(rows, dtype=kept))
        self._policy = np.zeros((S, A))
        self._moving = float(np.ptp(model.cost_range)) if model.next_costs else 0.0
        self.accuracy = 0.0
        self.passes = 0.0  # over the candidate rows, mean over the states of the last sweep

    def at(self, ball: Wasserstein) -> ExactOperator:
        """The operator of a ball that differs in its radius only: shares the data, begins where the last sweep ended."""
        other = copy.copy(self)
        other.ball, other._layout = ball, at_radius(self._layout, self.model, ball)
        return other

    def adopt(self, other: ExactOperator) -> None:
        """Begin where the last sweep of `other`, with the same kernels, ended."""
        self._memory, self._policy = other._memory, other._policy

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""
        return self._sweep(self._family.update, value, self._policy, start, stop)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature maximise."""
        return self._sweep(self._family.evaluate, value, policy, start, stop)

    def certify(self, value: Array, update: Update, fixed: bool) -> Update:
        """Re-derive the steps from the witnesses of a sweep over all states, and make nature's kernel surely feasible."""
        nature, model = update.nature, self.model
        assert isinstance(nature, Remembered)
        low, high, share = certificate_rows.derive(
            self.ball, self._layout, nature.order, nature.value, update.policy, nature.memory, fixed, self.threads
        )
        shift, ends = certificate.level(value), model.terminal
        low = certificate.steps(nature.value, shift, model.discount, ends, low, -1)
        high = certificate.steps(nature.value, shift, model.discount, ends, high, +1)
        return Update(update.value, low, high, update.policy, replace(nature, share=share))

    def _sweep(self, kernel: Any, value: Array, policy: Array, start: int, stop: int) -> Update:
        model, shift = self.model, certificate.level(value)
        u = value - shift
        order = order_of(self._layout, u)
        memory = Memory(*(array.copy() for array in self._memory))
        S = model.n_states
        out = Out(np.zeros(S), np.zeros(S), policy.copy(), np.zeros(S))
        top, span = float(u.max()), float(np.ptp(u))
        most = model.discount * span + self._moving  # range of any stakes
        tol = min(max(self.accuracy / most, FINEST), COARSEST) if most > 0 else FINEST

        def over(lo: int, hi: int) -> None:
            kernel(lo, hi, self._layout, order, u, top, span, tol, memory, out)

        workers.run(over, self._work, start, stop, self.threads)
        self._memory, self._policy = memory, out.policy
        self.passes = float(out.passes[start:stop].mean())
        own = slice(start, stop)
        ends, here = model.terminal[own], u[own]
        policy = np.where(ends[:, None], 0.0, out.policy[own])
        low = certificate.steps(here, shift, model.discount, ends, out.lower[own], -1)
        high = certificate.steps(here, shift, model.discount, ends, out.upper[own], +1)
        new = np.where(ends, 0.0, (out.lower[own] + out.upper[own]) / 2 + model.discount * shift)
        nature = Remembered(
            self.ball.metric, model.is_sparse, self._layout, order, u, memory,
            np.ones((S, self._layout.weights.size)), self.threads,
        )  # fmt: skip
        return Update(new, low, high, policy, nature)
