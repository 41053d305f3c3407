"""The only iteration loop of the package.

It owns the counter, the clock, the limits, the history, the check of every sweep, interruption, divergence, the best result
so far and the status. After every sweep at v the operator's own steps bound the value of that sweep's policy from above and the
optimum from below. Policy, kernel and bounds returned belong to one sweep, the one with the smallest gap, and its bounds are
re-derived from the raw data before they are returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp import certificate
from drmdp._typing import Array
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Update
from drmdp.model import Model
from drmdp.solution import Record, Status
from drmdp.solvers.linear import dot
from drmdp.solvers.problem import Method, NotFinite, Problem, State
from drmdp.solvers.stopping import RULES

Callback = Callable[[Record], Any]

STALLED = 5
"""So many checks without halving a gap, or a residual, that is mostly the operator's own inaccuracy end the run."""
OPERATOR = 0.1
"""Share of the tolerance that the operator's own error may take."""
RUNAWAY = 100
"""An iterate this many times larger than any value can be has diverged."""


class _OutOfTime(Exception):  # noqa: N818  (not an error)
    pass


@dataclass(frozen=True)
class Outcome:
    """What a run found; costs are minimised, signs are internal."""

    policy: Array  # (S, A)
    lower: Array  # (S,)
    upper: Array  # (S,)
    status: Status
    history: tuple[Record, ...]
    seconds: float
    nature: Any  # the sweep that these belong to

    @property
    def kernel(self) -> Any:
        """Nature's mean kernel, (S, A, S), made when it is asked for."""
        return self.nature.kernel

    @property
    def kernels(self) -> Any:
        """The N kernels with this mean where a method keeps them, else None."""
        return self.nature.kernels


class _Best:
    """The sweep with the smallest gap so far; before the first one, what is true of any policy."""

    def __init__(self, problem: Problem) -> None:
        model = problem.model
        low, high = value_range(model)
        self._problem = problem
        self._range = np.where(model.terminal, 0.0, low), np.where(model.terminal, 0.0, high)
        self.lower, self.upper = self._range
        self.policy = np.zeros((model.n_states, model.n_actions))
        self.policy[np.arange(model.n_states), model.available.argmax(axis=1)] = 1
        self.policy[model.terminal] = 0
        self._sweep: tuple[Array, Update] | None = None
        self._proved = True

    def take(self, value: Array, update: Update) -> None:
        """Keep a sweep if it is the best."""
        lower, upper = self._bounds(value, update)
        if self._sweep is None or (upper - lower).max() <= self.gap:
            self.lower, self.upper, self.policy, self._sweep, self._proved = (
                lower, upper, update.policy, (value, update), False,
            )  # fmt: skip

    def prove(self) -> None:
        """Re-derive the bounds from the raw data."""
        if self._sweep is not None and not self._proved:
            value, update = self._sweep
            if update.bounds is None:
                update = self._problem.operator.certify(value, update, self._problem.policy is not None)
            self.lower, self.upper = self._bounds(value, update)
            self._sweep, self._proved = (value, update), True

    def _bounds(self, value: Array, update: Update) -> tuple[Array, Array]:
        model = self._problem.model
        found = update.bounds or certificate.bounds(
            value, update.lower_step, update.upper_step, model.discount, model.terminal
        )
        return np.maximum(found.lower, self._range[0]), np.minimum(found.upper, self._range[1])

    @property
    def kernel(self) -> Any:
        """Nature's mean kernel of that sweep."""
        if self._sweep is None:
            return NominalOperator(self._problem.model, self._problem.model.mean_kernel).kernel
        return self._sweep[1].kernel

    @property
    def kernels(self) -> Any:
        """The N kernels of that sweep, if nature remembers them."""
        return None if self._sweep is None else getattr(self._sweep[1].nature, "kernels", None)

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
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
    best = _Best(problem)
    history: list[Record] = []
    ceiling = RUNAWAY * (max(map(abs, value_range(model))) + (0.0 if start is None else float(np.abs(start).max())))
    watch = _Precision()
    problem.operator.accuracy = OPERATOR * (1 - model.discount) * tol

    outer = problem.checkpoint

    def checkpoint() -> None:
        outer()
        if time.perf_counter() > deadline:
            raise _OutOfTime

    def check(state: State, iteration: int) -> Status | None:
        """Certify the sweep of a state, record it, and say whether to end."""
        if not np.abs(state.value).max() <= ceiling:
            return Status.diverged
        update = state.update
        if update is None:
            return None
        best.take(state.value, update)
        record = _record(model, best, iteration, time.perf_counter() - begin, state, problem.kernel_passes)
        history.append(record)
        answer = None if callback is None else callback(record)
        if rule(record, tol, model.discount):
            best.prove()
            if best.gap <= tol:
                return Status.solved
            if method.stop != "certified":
                return Status.stopped
            watch.unproved += 1
        off = float((update.upper_step - update.lower_step).max())  # the operator's own inaccuracy, in the residual
        certified = method.stop == "certified"
        if watch.stalled(*((best.gap, off / (1 - model.discount)) if certified else (record.residual, off))):
            best.prove()
            return Status.solved if best.gap <= tol else Status.precision_limit
        return Status.stopped if answer is True or answer is np.True_ else None

    problem.checkpoint = checkpoint
    iteration, status = 0, None
    try:
        checkpoint()
        state = method.init(problem, start)
        while (status := check(state, iteration)) is None:
            if iteration >= limit:
                if state.update is None:  # the last point has not been certified
                    status = check(state.swept(problem), iteration)
                status = status or Status.iteration_limit
                break
            checkpoint()
            state = method.step(problem, state)
            iteration += 1
    except KeyboardInterrupt:
        status = Status.interrupted
    except _OutOfTime:
        status = Status.time_limit
    except NotFinite:
        status = Status.diverged
    finally:
        problem.checkpoint = outer
    try:
        best.prove()
    except KeyboardInterrupt:  # too late to lose anything: prove it all the same
        status = Status.interrupted
        best.prove()
    seconds = time.perf_counter() - begin
    if not history or history[-1].iteration < iteration:
        history.append(_record(model, best, iteration, seconds, None, problem.kernel_passes))
    return Outcome(best.policy, best.lower, best.upper, status, tuple(history), seconds, best)


def heed(found: Outcome) -> None:
    """Pass an interruption on where the outcome of a run is only a means."""
    if found.status is Status.interrupted:
        raise KeyboardInterrupt


def _record(model: Model, best: _Best, iteration: int, seconds: float, state: State | None, passes: float) -> Record:
    low, high = dot(model.initial, best.lower), dot(model.initial, best.upper)
    if model.maximise:
        low, high = -high, -low
    residual = np.nan if state is None else float(np.abs(state.residual).max())
    return Record(iteration, seconds, residual, low, high, best.gap, passes)


class _Precision:
    """Notices when what should shrink is the operator's own inaccuracy and no longer does."""

    def __init__(self) -> None:
        self._mark, self._idle = np.inf, 0
        self.unproved = 0  # gaps within the tolerance that the re-derived bounds did not confirm

    def stalled(self, size: float, floor: float) -> bool:
        if size < self._mark / 2:
            self._mark, self._idle = size, 0
            return False
        self._idle = self._idle + 1 if floor >= size / 4 else 0
        return max(self._idle, self.unproved) >= STALLED
