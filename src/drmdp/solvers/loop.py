"""The only iteration loop of the package.

It owns the counter, the clock, the limits, the history, the check of every sweep, interruption, divergence, the best result
so far and the status. After every sweep at v the operator's own steps bound the value of that sweep's policy from above and the
optimum from below, as the criterion says (`drmdp.criteria`). Policy, kernel and bounds returned belong to one sweep, the one with the smallest gap, or
to one for each side, and bounds are re-derived from the raw data before they are returned.

**Tolerance.** The goal is `Tolerance.goal` at the scale of the best sweep; it moves with that scale. What the operator is asked for,
`OPERATOR` times the share of it that the criterion gives a residual, follows it.

**Precision.** A gap cannot become smaller than its floor, (error of the operator + rounding of v)/(1−λ). The run ends when a gap of at most
`NOISY` floors has not halved in `STALLED` checks, or after `HOPELESS` checks of such a gap if the goal is below the floor.

**Cut short**, by Ctrl-C or the clock, before its first sweep was done, a run sweeps its newest point once: that policy is better than any.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.core import clock
from drmdp.core.levels import ended
from drmdp.core.progress import stage
from drmdp.core.tolerance import Tolerance
from drmdp.solution import Record, Status
from drmdp.solvers.best import Best
from drmdp.solvers.problem import NOISY, Method, NotFinite, Problem, State
from drmdp.solvers.stopping import RULES

Callback = Callable[[Record], Any]

STALLED, HOPELESS = 5, 2
"""Checks in a row: of a noisy gap, or residual, that does not halve; and of one whose floor is above the goal."""
OPERATOR = 0.1
"""Share of the tolerance that the operator's own error may take."""
RUNAWAY = 100
"""An iterate this many times larger than any value can be has diverged."""


class _OutOfTime(Exception):  # noqa: N818  (not an error)
    """The time of a run is up; its argument is the run."""


@dataclass(frozen=True)
class Outcome:
    """What a run found; costs are minimised, signs are internal."""

    policy: Array  # (S, A)
    lower: Array  # (S,)
    upper: Array  # (S,)
    status: Status
    history: tuple[Record, ...]
    seconds: float
    best: Best  # the sweep that these belong to

    @property
    def middle(self) -> Array:
        """Midway between the bounds, (S,): where another run may begin."""
        return (self.lower + self.upper) / 2


def run(
    method: Method,
    problem: Problem,
    *,
    start: Array | None,
    tolerance: Tolerance,
    max_iters: int | None = None,
    deadline: float = math.inf,
    callback: Callback | None = None,
    inner: bool = False,
    proof: bool = True,
    title: str = "iterating",
    keeper: Keeper | None = None,
    snapshot: Snapshot | None = None,
) -> Outcome:
    """Drive `method` on `problem` until its stopping rule holds or a limit is reached.

    `deadline` is a time of `drmdp.core.clock`. An `inner` run is a means for something else: Ctrl-C passes through it. Without `proof` its bounds are
    the operator's own, which do for a place to begin. `title` is what the run is called while it takes long.
    `keeper` is given a snapshot after every iteration, and a run goes on from such a `snapshot`.
    """
    limit = method.max_iters if max_iters is None else max_iters
    with stage(title) as shown:
        own = _Run(method, problem, tolerance, deadline, callback, proof)
        shown.detail, shown.share = own.describe, own.share
        own.keeper = keeper
        return own.go(start, limit, inner, snapshot)


@dataclass(frozen=True)
class Snapshot:
    """Everything that a run needs to go on as if nothing had happened, after an iteration or before the first sweep."""

    iteration: int
    history: tuple[Record, ...]
    watch: Watch
    passes: float
    seconds: float
    latest: Any  # the newest point
    state: Any  # of the method; None before its first sweep
    best: Any  # what `Best` holds
    left: Any  # what the operator's last sweep left


class Keeper(Protocol):
    """Keeps snapshots where they survive this process."""

    def save(self, snapshot: Snapshot) -> None:
        """Keep one."""


def _nothing(start: Array) -> None:
    """Nobody is told."""


class _Run:
    """One run: where it stands, and what it decides."""

    def __init__(
        self, method: Method, problem: Problem, tolerance: Tolerance, deadline: float, callback: Callback | None, proof: bool
    ) -> None:  # fmt: skip
        self.method, self.problem, self.tolerance = method, problem, tolerance
        self.deadline, self.callback, self.proof = deadline, callback, proof
        self.begin = clock.now()
        self.best = Best(problem)
        self.history: list[Record] = []
        self.iteration = 0
        self._watch = Watch()
        self._outer = problem.checkpoint
        self._criterion, self._rule = problem.criterion, RULES[method.stop]
        self.keeper: Keeper | None = None

    def go(self, start: Array | None, limit: int, inner: bool, snapshot: Snapshot | None) -> Outcome:
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
        finally:  # a problem that holds its run would keep all of it
            problem.checkpoint, problem.begun = self._outer, _nothing
        if status is Status.interrupted or status is Status.time_limit:
            status = self._last_sweep(status)
        try:
            self._prove()
        except KeyboardInterrupt:  # too late to lose anything: prove it all the same
            status = Status.interrupted
            self._prove()
        if not self.history or self.history[-1].iteration < self.iteration:
            self._record(None)
        best = self.best
        seconds = clock.now() - self.begin
        return Outcome(best.policy, best.lower, best.upper, status, tuple(self.history), seconds, best)

    def _iterate(self, start: Array | None, limit: int, state: State | None) -> Status:
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
        """What no point is beyond."""
        if not self._criterion.joint:
            return math.inf
        own = 0.0 if start is None else float(np.abs(start).max())
        return RUNAWAY * (max(map(abs, self.best.range)) + own)

    def _begun(self, start: Array) -> None:
        """Have a start kept that took work to find."""
        self.problem.latest = start
        self._keep(None)

    def _keep(self, state: State | None) -> None:
        """Have where the run stands kept."""
        if self.keeper is not None:
            problem = self.problem
            left = getattr(problem.operator, "left", None)
            counts = self.iteration, tuple(self.history), self._watch, problem.kernel_passes, clock.now() - self.begin
            self.keeper.save(Snapshot(*counts, problem.latest, state, self.best.saved, left))

    def _restored(self, snapshot: Snapshot) -> State | None:
        """Stand where a snapshot was taken."""
        problem: Any = self.problem
        self.iteration, self.history, self._watch = snapshot.iteration, list(snapshot.history), snapshot.watch
        self.begin -= snapshot.seconds
        problem.kernel_passes, problem.latest, problem.operator.left = snapshot.passes, snapshot.latest, snapshot.left
        self.best.restore(snapshot.best)
        state: State | None = snapshot.state
        return state

    def _checkpoint(self) -> None:
        """Raise when time is up."""
        self._outer()
        if self.deadline < math.inf and clock.now() > self.deadline:
            raise _OutOfTime(self)

    def _aim(self) -> None:
        """Say how near is near enough, as far as is known now."""
        problem = self.problem
        problem.goal = goal = self.tolerance.goal(self.best.least_scale)
        problem.operator.accuracy = OPERATOR * self._criterion.share * goal

    def _check(self, state: State, ceiling: float) -> Status | None:
        """Certify the sweep of a state, record it, and say whether to end."""
        update = state.update
        looked = update is not None and state.seen.most <= ceiling  # a sweep without steps tells nothing
        if not looked and not np.abs(state.value).max() <= ceiling:
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
            if self.method.stop != "certified":
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
        """Whether the re-derived bounds are near enough."""
        self._prove()
        return self.best.gap <= self._goal

    def _prove(self) -> None:
        if self.proof and not self.best.proved:
            with stage("proving"):
                self.best.prove()

    def _stalled(self, state: State, record: Record) -> bool:
        if self.method.stop == "certified":
            verdict = self.problem.verdict
            noise = max(state.noise, self._criterion.width)
            floor = noise / self._criterion.share if verdict is None else verdict.exhausted
            return self._watch.stalled(self.best.gap, floor, self._goal)
        return self._watch.stalled(record.residual, state.noise, math.inf)

    def _last_sweep(self, status: Status) -> Status:
        """Sweep the newest point of a run that was cut short before its first sweep; another Ctrl-C skips it."""
        problem = self.problem
        if self.best.found:
            return status
        point = ended(problem.model, np.zeros_like(problem.model.initial)) if problem.latest is None else problem.latest
        try:
            state = State(point, problem.sweep(point))
        except KeyboardInterrupt:
            return Status.interrupted
        except NotFinite:
            return status
        assert state.update is not None
        self.best.take(point, state.update)
        self._record(state)
        return status

    def _record(self, state: State | None) -> Record:
        problem, best = self.problem, self.best
        low, high = best.means
        if problem.model.maximise:
            low, high = -high, -low
        residual = math.nan if state is None else state.seen.size
        seconds = clock.now() - self.begin
        record = Record(self.iteration, seconds, residual, low, high, best.gap, problem.kernel_passes)
        self.history.append(record)
        return record

    # ------------------------------------------------------------------ for whoever watches

    def describe(self) -> str:
        """Where the run stands, in words."""
        passes = f"iteration {self.iteration:,}, {self.problem.kernel_passes:,.0f} sweeps"
        return f"{passes}, gap {self.history[-1].gap:.1e}" if self.history else passes

    def share(self) -> float:
        """Share of the orders of magnitude from the first gap to the goal that is behind the run."""
        if not self.history:
            return 0.0
        first, gap, goal = self.history[0].gap, self.history[-1].gap, self.problem.goal
        if gap <= goal:
            return 1.0
        return max(0.0, math.log(first / gap) / math.log(first / goal)) if 0 < goal < first else 0.0


@dataclass
class Watch:
    """Notices when what should shrink is mostly noise and no longer does."""

    mark: float = math.inf
    idle: int = 0
    hopeless: int = 0
    unproved: int = 0  # gaps within the tolerance that the re-derived bounds did not confirm

    def stalled(self, size: float, floor: float, goal: float) -> bool:
        """Whether a size cannot come down to the goal, or has not for long; `floor` is the noise in it, below which it cannot come."""
        noisy, halved = NOISY * floor >= size, size < self.mark / 2
        self.mark = size if halved else self.mark
        self.hopeless = self.hopeless + 1 if noisy and floor > goal else 0
        self.idle = self.idle + 1 if noisy and not halved else 0
        return self.hopeless >= HOPELESS or max(self.idle, self.unproved) >= STALLED
