"""The only iteration loop of the package.

It owns the counter, the clock, the limits, the history, the check of every sweep, interruption, divergence, the best result
so far and the status. After every sweep at v the certificate bounds the value of that sweep's policy from above and the
optimum from below. The policy and the upper bound returned belong to one sweep, the one with the smallest gap; lower
bounds of all sweeps hold at once and are intersected.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp import certificate
from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.model import Model
from drmdp.solution import Record, Status
from drmdp.solvers.problem import Method, Problem, State
from drmdp.solvers.stopping import RULES

Callback = Callable[[Record], Any]

STALLED = 5
"""So many checks without halving a gap that is mostly the operator's own inaccuracy end in `precision_limit`."""
RUNAWAY = 100
"""An iterate this many times larger than any value can be has diverged."""


class _OutOfTime(Exception):
    pass


@dataclass(frozen=True)
class Outcome:
    """What a run found; costs are minimised, signs are internal."""

    policy: Array  # (S, A)
    kernel: Array  # (S, A, S)
    lower: Array  # (S,)
    upper: Array  # (S,)
    status: Status
    history: tuple[Record, ...]
    seconds: float


class _Best:
    """The best certified result so far; before the first sweep, what is true of any policy."""

    def __init__(self, model: Model) -> None:
        low, high = value_range(model)
        self.lower = np.where(model.terminal, 0.0, low)
        self.upper = self._most = np.where(model.terminal, 0.0, high)
        self.policy = np.zeros((model.n_states, model.n_actions))
        self.policy[np.arange(model.n_states), model.available.argmax(axis=1)] = 1
        self.policy[model.terminal] = 0
        self.kernel: Array | None = None

    def take(self, bounds: certificate.Bounds, update: Update) -> None:
        self.lower = np.maximum(self.lower, bounds.lower)
        upper = np.minimum(bounds.upper, self._most)
        if (upper - self.lower).max() <= self.gap or self.kernel is None:
            self.upper, self.policy, self.kernel = upper, update.policy, update.kernel

    @property
    def gap(self) -> float:
        return float((self.upper - self.lower).max())


def value_range(model: Model) -> tuple[float, float]:
    """Numbers between which the value of every policy under every kernel lies."""
    known = model.cost_range
    scale = 1 / (1 - model.discount) * (1 + 1e-12)
    return min(known[0], 0.0) * scale, max(known[1], 0.0) * scale


def run(
    method: Method,
    problem: Problem,
    *,
    start: Array | None,
    tol: float,
    max_iters: int | None = None,
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> Outcome:
    """Drive `method` on `problem` until its stopping rule holds or a limit is reached."""
    model, rule = problem.model, RULES[method.stop]
    limit = method.max_iters if max_iters is None else max_iters
    begin = time.perf_counter()
    deadline = np.inf if max_seconds is None else begin + max_seconds
    best = _Best(model)
    history: list[Record] = []
    ceiling = RUNAWAY * (max(map(abs, value_range(model))) + (0.0 if start is None else float(np.abs(start).max())))
    watch = _Precision(tol)

    def checkpoint() -> None:
        if time.perf_counter() > deadline:
            raise _OutOfTime

    def check(state: State, iteration: int) -> Status | None:
        """Certify the sweep of a state, record it, and say whether to end."""
        if not np.isfinite(state.value).all() or np.abs(state.value).max() > ceiling:
            return Status.diverged
        update = state.update
        if update is None:
            return None
        bounds = certificate.bounds(state.value, update.lower_step, update.upper_step, model.discount, model.terminal)
        best.take(bounds, update)
        record = _record(model, best, iteration, time.perf_counter() - begin, state, problem.kernel_passes)
        history.append(record)
        if rule(record, tol, model.discount):
            return Status.solved if record.gap <= tol else Status.stopped
        if watch.stalled(record.gap, update, model.discount):
            return Status.precision_limit
        return Status.stopped if callback is not None and callback(record) is True else None

    problem.checkpoint = checkpoint
    iteration, status = 0, None
    try:
        checkpoint()
        state = method.init(problem, start)
        while (status := check(state, iteration)) is None:
            if iteration >= limit:
                status = Status.iteration_limit
                break
            checkpoint()
            state = method.step(problem, state)
            iteration += 1
    except KeyboardInterrupt:
        status = Status.interrupted
    except _OutOfTime:
        status = Status.time_limit
    seconds = time.perf_counter() - begin
    if not history or history[-1].iteration < iteration:
        history.append(_record(model, best, iteration, seconds, None, problem.kernel_passes))
    kernel = best.kernel if best.kernel is not None else np.asarray(model.mean_kernel)
    return Outcome(best.policy, kernel, best.lower, best.upper, status, tuple(history), seconds)


def _record(model: Model, best: _Best, iteration: int, seconds: float, state: State | None, passes: float) -> Record:
    low, high = float(model.initial @ best.lower), float(model.initial @ best.upper)
    if model.maximise:
        low, high = -high, -low
    residual = np.nan if state is None else float(np.abs(state.residual).max())
    return Record(iteration, seconds, residual, low, high, best.gap, passes)


class _Precision:
    """Notices when the gap is the operator's own inaccuracy and no longer shrinks."""

    def __init__(self, tol: float) -> None:
        self._tol, self._mark, self._idle = tol, np.inf, 0

    def stalled(self, gap: float, update: Update, discount: float) -> bool:
        if gap < self._mark / 2:
            self._mark, self._idle = gap, 0
            return False
        floor = float((update.upper_step - update.lower_step).max()) / (1 - discount)
        self._idle = self._idle + 1 if floor >= gap / 4 else 0
        return gap > self._tol and self._idle >= STALLED
