"""The only iteration loop of the package.

It owns the counter, the clock, the limits, the history, the check of every sweep, interruption,
divergence, the incumbent and the status. After every sweep at v the steps of the operator bound the
value of that sweep's policy from above and the optimum from below, as the criterion says
(`drmdp.criteria`). Policy, kernel and bounds returned belong to a single sweep, the one with the
smallest gap, or to one for each side, and bounds are re-derived from the raw data before they are
returned.

**Tolerance.** The goal is `Tolerance.goal` at the scale of the best sweep; it moves with that
scale. The accuracy of the operator, `OPERATOR` times the share of it that the criterion gives a
residual, follows it.

**Precision.** A gap cannot become smaller than its floor, (error of the operator + rounding of
v)/(1−λ). The run ends when a gap of at most `NOISY` floors has not halved in `STALLED` checks, or
after `HOPELESS` checks of such a gap if the goal is below the floor.

**Cut short**, by Ctrl-C or the clock, before its first sweep was done, a run sweeps its newest
point once: that policy is better than an arbitrary one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.tolerance import Tolerance
from drmdp.solution import Record, Status
from drmdp.solvers.incumbent import Incumbent
from drmdp.solvers.problem import NOISY, Method, MethodState, NotFinite, Problem, swept
from drmdp.solvers.stopping import CERTIFYING, RULES
from drmdp.ui import clock
from drmdp.ui.progress import stage

Callback = Callable[[Record], Any]

STALLED, HOPELESS = 5, 2
"""Checks in a row: of a noisy gap, or residual, that does not halve; and of one whose floor is
above the goal.
"""
OPERATOR = 0.1
"""Share of the tolerance for the error of the operator."""
RUNAWAY = 100
"""An iterate this many times larger than any value can be has diverged."""


class _OutOfTime(Exception):  # noqa: N818  (not an error)
    """The time of a run is up; its argument is the run."""


@dataclass(frozen=True)
class Outcome:
    """The result of a run; costs are minimised, signs are internal."""

    policy: Array  # (S, A)
    lower: Array  # (S,)
    upper: Array  # (S,)
    status: Status
    history: tuple[Record, ...]
    seconds: float
    best: Incumbent  # the sweep that these belong to

    @property
    def middle(self) -> Array:
        """Midway between the bounds, (S,): a start for another run."""
        return (self.lower + self.upper) / 2


def run(
    method: Method,
    problem: Problem,
    *,
    start: Array | None,
    tolerance: Tolerance,
    max_iters: int | None = None,
    inner: bool = False,
    title: str = "iterating",
    snapshot: Snapshot | None = None,
    **settings: Any,
) -> Outcome:
    """Drive `method` on `problem` until its stopping rule holds or a limit is reached.

    An `inner` run is part of another one: Ctrl-C passes through it. `title` names the run while it
    takes long. A run goes on from a `snapshot`. `settings` are further fields of `MethodRun`.
    """
    limit = method.max_iters if max_iters is None else max_iters
    with stage(title) as shown:
        loop = MethodRun(method, problem, tolerance, **settings)
        shown.detail, shown.share = loop.describe, loop.share
        return loop.go(start, limit, inner, snapshot)


@dataclass(frozen=True)
class Snapshot:
    """The state of a run after an iteration, or before the first sweep, from which it goes on with
    the same bits.
    """

    iteration: int
    history: tuple[Record, ...]
    watch: Watch
    passes: float
    seconds: float
    latest: Any  # the newest point
    state: Any  # of the method; None before its first sweep
    best: Any  # `Incumbent.saved`
    warm_start: Any  # of the operator


@dataclass(eq=False)
class MethodRun:
    """The state and the decisions of a run."""

    method: Method
    problem: Problem
    tolerance: Tolerance
    deadline: float = math.inf  # a time of `drmdp.ui.clock`
    callback: Callback | None = None
    proof: bool = True  # without it bounds are those of the operator, good enough for a start
    keeper: Callable[[Snapshot], None] | None = None  # is given a snapshot after every iteration

    def __post_init__(self) -> None:
        self.begin = clock.now()
        self.best = Incumbent(self.problem)
        self.history: list[Record] = []
        self.iteration = 0
        self._watch = Watch()
        self._outer = self.problem.checkpoint
        self._criterion, self._rule = self.problem.criterion, RULES[self.method.stop]

    def go(
        self, start: Array | None, limit: int, inner: bool, snapshot: Snapshot | None
    ) -> Outcome:
        """Iterate, then prove the best sweep."""
        problem = self.problem
        problem.latest = start
        state = None
        if snapshot is not None:
            state = self._restored(snapshot)
            start = problem.latest if state is None else start
        self._aim()
        problem.checkpoint, problem.begun = self._checkpoint, self._begun
        try:
            status = self._iterate(start, limit, state)
        except KeyboardInterrupt:
            if inner:
                raise
            status = Status.interrupted
        except _OutOfTime as end:
            if end.args[0] is not self:
                raise
            status = Status.time_limit
        except NotFinite:
            status = Status.diverged
        finally:  # a problem with references to its run would keep all of it
            problem.checkpoint, problem.begun = self._outer, Problem.begun
        if status is Status.interrupted or status is Status.time_limit:
            status = self._last_sweep(status)
        try:
            self._prove()
        except KeyboardInterrupt:  # nothing is lost: prove it all the same
            status = Status.interrupted
            self._prove()
        if not self.history or self.history[-1].iteration < self.iteration:
            self._record(None)
        best, history, seconds = self.best, tuple(self.history), clock.now() - self.begin
        sides = best.bounds.lower, best.bounds.upper
        return Outcome(best.policy, *sides, status, history, seconds, best)

    def _iterate(self, start: Array | None, limit: int, state: MethodState | None) -> Status:
        self._checkpoint()
        ceiling = self._runaway(start)
        if state is None:
            state = self.method.init(self.problem, start)
            self._keep(state)
        while (status := self._check(state, ceiling)) is None:
            if self.iteration >= limit:
                if state.update is None:  # the last point has not been certified
                    status = self._check(state.swept(self.problem), ceiling)
                return status or Status.iteration_limit
            self._checkpoint()
            state = self.method.step(self.problem, state)
            self.problem.latest = state.value
            self.iteration += 1
            self._keep(state)
        return status

    def _runaway(self, start: Array | None) -> float:
        """A bound on the size of all points."""
        if not self._criterion.joint:
            return math.inf
        size = 0.0 if start is None else float(np.abs(start).max())
        return RUNAWAY * (max(map(abs, self._criterion.range)) + size)

    def _begun(self, start: Array) -> None:
        """Store a start that took work."""
        self.problem.latest = start
        self._keep(None)

    def _keep(self, state: MethodState | None) -> None:
        """Store a snapshot."""
        if self.keeper is not None:
            problem, seconds = self.problem, clock.now() - self.begin
            warm_start = getattr(problem.operator, "warm_start", None)
            counts = self.iteration, tuple(self.history), self._watch, problem.kernel_passes
            states = problem.latest, state, self.best.saved, warm_start
            self.keeper(Snapshot(*counts, seconds, *states))

    def _restored(self, snapshot: Snapshot) -> MethodState | None:
        """Restore a snapshot."""
        problem: Any = self.problem
        self.iteration, self.history = snapshot.iteration, list(snapshot.history)
        self._watch = snapshot.watch
        self.begin -= snapshot.seconds
        problem.kernel_passes, problem.latest = snapshot.passes, snapshot.latest
        problem.operator.warm_start = snapshot.warm_start
        self.best.restore(snapshot.best)
        state: MethodState | None = snapshot.state
        return state

    def _checkpoint(self) -> None:
        """Raise when time is up."""
        self._outer()
        if self.deadline < math.inf and clock.now() > self.deadline:
            raise _OutOfTime(self)

    def _aim(self) -> None:
        """Set the goal from the bounds so far."""
        problem = self.problem
        problem.goal = goal = self.tolerance.goal(self.best.least_scale)
        problem.operator.accuracy = OPERATOR * self._criterion.share * goal

    def _check(self, state: MethodState, ceiling: float) -> Status | None:
        """Certify the sweep of a state, record it, and decide whether to end."""
        update = state.update
        small = update is not None and state.stats.most <= ceiling  # a sweep may have no steps
        if not small and not np.abs(state.value).max() <= ceiling:
            return Status.diverged
        if update is None:
            return self._criterion.over
        self.best.take(state.value, update)
        self._aim()
        record = self._record(state)
        answer = None if self.callback is None else self.callback(record)
        if self._rule(record, self._goal, self.problem.model.discount):
            if self._proved():
                return Status.solved
            if self.method.stop not in CERTIFYING:
                return Status.stopped
            self._watch.unproved += 1
        if self._criterion.over is not None:
            return self._criterion.over
        if self._stalled(state, record):
            known = self._criterion.width
            if self._proved():
                return Status.solved
            if self._criterion.width <= known or self._watch.unproved >= STALLED - 1:
                return Status.precision_limit
            self._watch = Watch(unproved=self._watch.unproved + 1)  # wider points may be proved
        return Status.stopped if answer is True or answer is np.True_ else None

    @property
    def _goal(self) -> float:
        return self.tolerance.goal(self.best.scale)

    def _proved(self) -> bool:
        """Whether the re-derived bounds are near enough, by the rule of the run if that is one on
        bounds.
        """
        self._prove()
        if self.method.stop == "duality-gap":
            low, high = self.best.bounds.means
            return high - low <= self._goal
        return self.best.gap <= self._goal

    def _prove(self) -> None:
        if self.proof and not self.best.proved:
            with stage("proving"):
                self.best.prove()

    def _stalled(self, state: MethodState, record: Record) -> bool:
        if self.method.stop == "certified":
            verdict = self.problem.verdict
            noise = max(state.noise, self._criterion.width)
            floor = noise / self._criterion.share if verdict is None else verdict.exhausted
            return self._watch.stalled(self.best.gap, floor, self._goal)
        return self._watch.stalled(record.residual, state.noise, math.inf)

    def _last_sweep(self, status: Status) -> Status:
        """Sweep the newest point of a run that was cut short before its first sweep; another Ctrl-C
        skips it.
        """
        problem = self.problem
        if self.best.exists:
            return status
        try:
            state = swept(problem, problem.latest)
        except KeyboardInterrupt:
            return Status.interrupted
        except NotFinite:
            return status
        assert state.update is not None
        self.best.take(state.value, state.update)
        self._record(state)
        return status

    def _record(self, state: MethodState | None) -> Record:
        problem, best = self.problem, self.best
        low, high = best.bounds.means
        means = (-high, -low) if problem.model.maximise else (low, high)
        residual = math.nan if state is None else state.stats.size
        begun = self.iteration, clock.now() - self.begin
        record = Record(*begun, residual, *means, best.gap, problem.kernel_passes)
        self.history.append(record)
        return record

    # ------------------------------------------------------------------ progress

    def describe(self) -> str:
        """The progress of the run in words."""
        passes = f"iteration {self.iteration:,}, {self.problem.kernel_passes:,.0f} sweeps"
        return f"{passes}, gap {self.history[-1].gap:.1e}" if self.history else passes

    def share(self) -> float:
        """Share done of the orders of magnitude from the first gap to the goal."""
        if not self.history:
            return 0.0
        first, gap, goal = self.history[0].gap, self.history[-1].gap, self.problem.goal
        if gap <= goal:
            return 1.0
        return max(0.0, math.log(first / gap) / math.log(first / goal)) if 0 < goal < first else 0.0


@dataclass
class Watch:
    """Detects a gap, or residual, that is mostly noise and no longer shrinks."""

    mark: float = math.inf
    idle: int = 0
    hopeless: int = 0
    unproved: int = 0  # gaps within the tolerance that the re-derived bounds did not confirm

    def stalled(self, size: float, floor: float, goal: float) -> bool:
        """Whether a size cannot come down to the goal, or has not halved for long; `floor` is its
        noise.
        """
        noisy, halved = NOISY * floor >= size, size < self.mark / 2
        self.mark = size if halved else self.mark
        self.hopeless = self.hopeless + 1 if noisy and floor > goal else 0
        self.idle = self.idle + 1 if noisy and not halved else 0
        return self.hopeless >= HOPELESS or max(self.idle, self.unproved) >= STALLED
