"""What a method works on, and what it is: two small interfaces between the methods and the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from drmdp import _native
from drmdp._typing import Array, BoolArray
from drmdp.bellman.mean_law import MeanLawOperator
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Operator, Update
from drmdp.certificate import Prover, RobustProver
from drmdp.certificate.dense import Bounds
from drmdp.certificate.fixed_kernel import FixedKernel
from drmdp.core import levels
from drmdp.core.levels import ended
from drmdp.core.surveys import Survey, are_finite, is_finite, survey
from drmdp.core.vectors import by_state
from drmdp.criteria import Criterion, criterion_of
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.solvers.mean_start import Rows

SLACK = 1e-12
"""Sums of probabilities that differ from 1 by less are rounding."""
NOISY = 4
"""A residual, or a gap, of no more than so many times its noise says little."""


class NotFinite(InputError):  # noqa: N818
    """A point or a step is not a number any more; the loop ends the run, and who makes a single sweep is told."""

    def __init__(self, ball: Any) -> None:
        super().__init__(
            f"{getattr(ball, 'short', 'this set')}: values, or a step of the operator, leave the range of double precision; "
            "costs, probabilities or radii are too extreme: give costs in another unit, or a larger radius"
        )


@dataclass(frozen=True)
class Verdict:
    """What was found of a policy and a kernel that a method claimed."""

    bounds: Bounds
    worst: Array  # value of the policy, (S,)
    best: Array  # value against the kernel
    exhausted: float  # of the gap, what could not be made smaller


@dataclass
class Problem:
    """A fixed-point problem v = F(v), or v = F^x(v) when a policy is given, and the count of the work done on it."""

    operator: Operator
    policy: Array | None = None  # evaluate this one instead of optimising
    checkpoint: Callable[[], None] = lambda: None  # raises when time is up
    begun: Callable[[Array], None] = lambda start: None  # told a start that took work to find
    kernel_passes: float = 0.0
    goal: float = 0.0  # the gap to reach, absolute, as far as the loop knows it
    latest: Array | None = None  # the newest point, which is swept if the run is cut short
    verdict: Verdict | None = None  # what the loop found of the last pair that a method claimed
    criterion: Criterion = None  # type: ignore[assignment]  # that of the model's discount by default

    def __post_init__(self) -> None:
        self.model: Model = self.operator.model
        if self.criterion is None:
            self.criterion = criterion_of(self.model)

    @property
    def one_sided(self) -> bool:
        """Whether only one player moves: then F is convex or concave and Newton's method needs no safeguard."""
        ball = self.operator.ball
        return self.policy is not None or ball is None or ball.nature == "cooperative"

    def sweep(self, value: Array) -> Update:
        """F at `value`, all states."""
        return self._map(value, self.policy)

    def evaluate(self, value: Array, policy: Array) -> Update:
        """F^x at `value`, all states."""
        return self._map(value, policy)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """F at `value` on a range of states."""
        update = self._call(value, self.policy, start, stop)
        self.kernel_passes += (stop - start) / self.model.n_states
        return update

    def proved(self, value: Array, policy: Array | None = None) -> Update:
        """F at `value`, or F^x of a policy, all states, with bounds that the certificate proved."""
        policy = self.policy if policy is None else policy
        update = self._map(value, policy)
        return self.prove(value, update if policy is None else replace(update, policy=policy), policy is not None)

    def prove(self, value: Array, update: Update, fixed: bool) -> Update:
        """A sweep at `value` with bounds that the certificate proved; one that explains itself by nothing is made again."""
        if update.claim is None:
            update = self.sweep(value)
        played = (
            update.policy if self.policy is None else self.policy
        )  # whatever was played, this is what is asked about
        policy = playable(self.model, played)
        return update.proved(policy, self._prover.prove(value, policy, update.claim, fixed))

    @property
    def _prover(self) -> Prover:
        operator = self.operator
        if operator.ball is None:
            found: Prover = operator.fixed  # type: ignore[attr-defined]
            return found
        own: Prover | None = getattr(operator, "prover", None)
        return RobustProver(operator.model, operator.ball, operator.threads) if own is None else own

    def of_mean_kernel(self) -> Problem:
        """The problem in which nature plays the mean kernel."""
        model, threads = self.model, self.operator.threads
        if isinstance(model, EventModel) and self.policy is None:
            return Problem(MeanLawOperator(model, threads))
        return of_mean_kernel(model, self.policy, threads)

    def mean_rows(self) -> Rows:
        """The mean kernel, here; for models of moderate size."""
        model = self.model
        if "mean" not in model.kept:
            kernel, costs = model.mean_matrix()
            fixed = FixedKernel(model, kernel, prices=costs)
            matrix = fixed.matrix
            prices = fixed.costs
            if model.ends is not None:  # paid on the way there
                prices = prices + model.factor * (matrix @ model.ends).reshape(prices.shape)
            data = matrix.data
            if model.discounts is not None:
                data = data * np.repeat((model.discounts / model.discount).ravel(), np.diff(matrix.indptr))
            model.kept["mean"] = Rows.of(matrix.indptr, matrix.indices, data, prices, model.available, model.discount)
        found: Rows = model.kept["mean"]
        return found

    def _map(self, value: Array, policy: Array | None) -> Update:
        self.latest = value
        parts = []
        for start in range(0, self.model.n_states, self.operator.chunk):
            stop = min(start + self.operator.chunk, self.model.n_states)
            parts.append(self._call(value, policy, start, stop))
        self.kernel_passes += 1
        return Update.join(parts)

    def _call(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        self.checkpoint()
        if not is_finite(value):
            raise NotFinite(self.operator.ball)
        if policy is None:
            update = self.operator.update(value, start, stop)
        else:
            update = self.operator.evaluate(value, policy, start, stop)
        if not are_finite(update.lower_step, update.upper_step):
            raise NotFinite(self.operator.ball)
        return update


def of_mean_kernel(model: Model, policy: Array | None = None, threads: int = 1) -> Problem:
    """The problem in which nature plays the mean kernel of a model."""
    matrix, costs = model.mean_matrix()
    return Problem(NominalOperator(model, matrix, threads, costs), policy)


def any_policy(model: Model) -> Array:
    """The policy (S, A) of the first available actions."""
    found: Array = by_state(_first_available, model.available)
    return found


def _first_available(available: BoolArray) -> Array:
    found = np.zeros(available.shape)
    own = np.flatnonzero(available.any(axis=1))
    found[own, np.argmax(available, axis=1)[own]] = 1.0
    return found


def playable(model: Model, policy: Array) -> Array:
    """A policy (S, A) as it is, or, where its rows are no distributions, the nearest thing: divided by their sums, or any action."""
    found: Array = by_state(_playable, policy, model.available, model.terminal)
    return found


def _playable(policy: Array, available: BoolArray, terminal: BoolArray) -> Array:
    if _native.are_distributions(policy, available, terminal, SLACK):
        return policy
    x = np.where(available & (policy > 0) & (policy < 2), policy, 0.0)
    total = x.sum(axis=1, keepdims=True)
    off = np.abs(total - 1) > SLACK
    near = np.abs(total - 1) <= 0.5
    return np.where(near, np.where(off, x / np.where(total > 0, total, 1.0), x), _first_available(available))


@dataclass
class State:
    """Where a method stands: a point and, if it was swept there, F at that point."""

    value: Array
    update: Update | None
    _known: ClassVar[tuple[Update | None, Survey] | None] = None  # a sweep, and what a look at it told

    def swept(self, problem: Problem) -> State:
        """The same, ready to be certified."""
        return State(self.value, problem.sweep(self.value))

    @property
    def residual(self) -> Array:
        """F(v) − v as the middle of its bounds; accurate where F(v) and v nearly agree."""
        assert self.update is not None
        return (self.update.lower_step + self.update.upper_step) / 2

    @property
    def seen(self) -> Survey:
        """What a look at the sweep tells; looked once at each."""
        update, known = self.update, self._known
        if known is None or known[0] is not update:
            assert update is not None
            known = vars(self)["_known"] = update, survey(self.value, update.lower_step, update.upper_step)
        return known[1]

    @property
    def noise(self) -> float:
        """What a residual cannot tell from 0: the operator's own inaccuracy, and the rounding of v in its last digit."""
        seen = self.seen
        return seen.off + levels.EPS * seen.most


class Method(Protocol):
    """A method: settings, a start and a step, each costing about one sweep; everything else is the loop's."""

    max_iters: ClassVar[int]

    @property
    def backend(self) -> str:
        """Name of the operator."""

    @property
    def stop(self) -> str:
        """Name of the stopping rule."""

    def init(self, problem: Problem, value: Array | None) -> Any:
        """Start from `value`, or from the method's own choice; return a `State`."""

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the next `State`."""


def swept(problem: Problem, value: Array | None) -> State:
    """Start at `value`, or at 0 as the paper does."""
    start = ended(problem.model, np.zeros_like(problem.model.initial)) if value is None else value
    return State(start, problem.sweep(start))
