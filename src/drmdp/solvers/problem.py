"""Problems and methods: the two small interfaces between the methods and the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from drmdp import _native
from drmdp._typing import Array, BoolArray
from drmdp.certificate import FixedKernel, Prover, RobustProver
from drmdp.certificate.dense import Bounds
from drmdp.core import levels
from drmdp.core.levels import ended
from drmdp.core.vectors import ResidualStats, are_finite, by_state, survey
from drmdp.criteria import Criterion, criterion_of
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.operators.nominal import MeanLawOperator, NominalOperator
from drmdp.operators.operator import Operator, Update
from drmdp.solvers.mean_start import MeanRows

SLACK = 1e-12
"""Sums of probabilities that differ from 1 by less are rounding."""
NOISY = 4
"""Multiples of its noise up to which a residual, or a gap, is mostly noise."""


class NotFinite(InputError):  # noqa: N818
    """A point or a step with NaN or inf; the loop ends the run, a single sweep raises it."""

    def __init__(self, ambiguity: Any) -> None:
        super().__init__(
            f"{getattr(ambiguity, 'short', 'this set')}: values, or a step of the operator, "
            "leave the range of double precision; costs, probabilities or radii are too extreme: "
            "give costs in another unit, or a larger radius"
        )


@dataclass(frozen=True)
class Verdict:
    """Bounds from the values of a policy and a kernel that a method claimed."""

    bounds: Bounds
    worst: Array  # value of the policy, (S,)
    best: Array  # value against the kernel
    exhausted: float  # part of the gap that cannot be made smaller


@dataclass
class Problem:
    """A fixed-point problem v = F(v), or v = F^x(v) of a policy, and the count of the work done on
    it.
    """

    operator: Operator
    policy: Array | None = None  # evaluated instead of optimising
    checkpoint: Callable[[], None] = lambda: None  # raises when time is up
    begun: Callable[[Array], None] = lambda start: None  # called with a start that took work
    kernel_passes: float = 0.0
    goal: float = 0.0  # the gap to reach, absolute, as far as the loop knows it
    latest: Array | None = None  # the newest point, which is swept if the run is cut short
    verdict: Verdict | None = None  # on the last pair that a method claimed
    # that of the model's discount by default
    criterion: Criterion = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.model: Model = self.operator.model
        if self.criterion is None:
            self.criterion = criterion_of(self.model)

    @property
    def one_sided(self) -> bool:
        """Whether only one player moves: then F is convex or concave and Newton's method needs no
        safeguard.
        """
        ambiguity = self.operator.ambiguity
        return self.policy is not None or ambiguity is None or ambiguity.nature == "cooperative"

    def sweep(self, value: Array) -> Update:
        """F at `value`, all states."""
        return self.evaluate(value, self.policy)

    def evaluate(self, value: Array, policy: Array | None) -> Update:
        """F^x at `value` of a policy, or F, all states."""
        self.latest = value
        S, step = self.model.n_states, self.operator.chunk
        ranges = ((start, min(start + step, S)) for start in range(0, S, step))
        parts = [self._call(value, policy, *states) for states in ranges]
        self.kernel_passes += 1
        return Update.join(parts)

    def update(self, value: Array, start: int, stop: int) -> Update:
        """F at `value` on a range of states."""
        update = self._call(value, self.policy, start, stop)
        self.kernel_passes += (stop - start) / self.model.n_states
        return update

    def proved(self, value: Array, policy: Array | None = None) -> Update:
        """F at `value`, or F^x of a policy, all states, with bounds that the certificate proved."""
        policy = self.policy if policy is None else policy
        update = self.evaluate(value, policy)
        if policy is not None:
            update = replace(update, policy=policy)
        return self.prove(value, update, policy is not None)

    def prove(self, value: Array, update: Update, fixed: bool) -> Update:
        """A sweep at `value` with bounds that the certificate proved; made again where it has no
        claim.
        """
        if update.claim is None:
            update = self.sweep(value)
        policy = playable(self.model, update.policy if self.policy is None else self.policy)
        return update.proved(policy, self._prover.prove(value, policy, update.claim, fixed))

    @property
    def _prover(self) -> Prover:
        operator: Any = self.operator
        prover: Prover | None = getattr(operator, "prover", None)
        return prover or RobustProver(operator.model, operator.ambiguity, operator.threads)

    def of_mean_kernel(self) -> Problem:
        """The problem in which nature plays the mean kernel."""
        model, threads = self.model, self.operator.threads
        if isinstance(model, EventModel) and self.policy is None:
            return Problem(MeanLawOperator(model, threads))
        return of_mean_kernel(model, self.policy, threads)

    def mean_rows(self) -> MeanRows:
        """The mean kernel as rows; for models of moderate size."""
        model = self.model
        if "mean" not in model.cache:
            kernel, costs = model.mean_matrix()
            fixed = FixedKernel(model, kernel, prices=costs)
            matrix, prices, data = fixed.matrix, fixed.costs, fixed.matrix.data
            if model.ends is not None:  # paid on the way there
                prices = prices + model.factor * (matrix @ model.ends).reshape(prices.shape)
            if model.discounts is not None:
                share = (model.discounts / model.discount).ravel()
                data = data * np.repeat(share, np.diff(matrix.indptr))
            model.cache["mean"] = MeanRows.of(
                matrix.indptr, matrix.indices, data, prices, model.available, model.discount
            )
        rows: MeanRows = model.cache["mean"]
        return rows

    def _call(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        self.checkpoint()
        if not are_finite(value):
            raise NotFinite(self.operator.ambiguity)
        if policy is None:
            update = self.operator.update(value, start, stop)
        else:
            update = self.operator.evaluate(value, policy, start, stop)
        if not are_finite(update.lower_step, update.upper_step):
            raise NotFinite(self.operator.ambiguity)
        return update


def of_mean_kernel(model: Model, policy: Array | None = None, threads: int = 1) -> Problem:
    """The problem in which nature plays the mean kernel of a model."""
    matrix, costs = model.mean_matrix()
    return Problem(NominalOperator(model, matrix, threads, costs), policy)


def any_policy(model: Model) -> Array:
    """The policy (S, A) of the first available actions."""
    policy: Array = by_state(_first_available, model.available)
    return policy


def _first_available(available: BoolArray) -> Array:
    policy = np.zeros(available.shape)
    states = np.flatnonzero(available.any(axis=1))
    policy[states, np.argmax(available, axis=1)[states]] = 1.0
    return policy


def playable(model: Model, policy: Array) -> Array:
    """A policy (S, A), where its rows are no distributions divided by their sums, or replaced by
    the first action.
    """
    rows: Array = by_state(_playable, policy, model.available, model.terminal)
    return rows


def _playable(policy: Array, available: BoolArray, terminal: BoolArray) -> Array:
    if _native.are_distributions(policy, available, terminal, SLACK):
        return policy
    x = np.where(available & (policy > 0) & (policy < 2), policy, 0.0)
    total = x.sum(axis=1, keepdims=True)
    off = np.abs(total - 1)
    scaled = np.where(off > SLACK, x / np.where(total > 0, total, 1.0), x)
    return np.where(off <= 0.5, scaled, _first_available(available))


@dataclass
class MethodState:
    """The state of a method: a point and, if it was swept there, F at that point."""

    value: Array
    update: Update | None
    # a sweep and its statistics
    _cache: ClassVar[tuple[Update | None, ResidualStats] | None] = None

    def swept(self, problem: Problem) -> MethodState:
        """The same after a sweep."""
        return MethodState(self.value, problem.sweep(self.value))

    @property
    def residual(self) -> Array:
        """That of the sweep."""
        assert self.update is not None
        return self.update.residual

    @property
    def stats(self) -> ResidualStats:
        """Statistics of the residual, computed once for each sweep."""
        update, cache = self.update, self._cache
        if cache is None or cache[0] is not update:
            assert update is not None
            stats = survey(self.value, update.lower_step, update.upper_step)
            cache = vars(self)["_cache"] = update, stats
        return cache[1]

    @property
    def noise(self) -> float:
        """Noise of a residual: the inaccuracy of the operator, and the rounding of v in its last
        digit.
        """
        return self.stats.off + levels.EPS * self.stats.most


@dataclass(frozen=True)
class MethodSettings:
    """What all methods can be told; see `drmdp.solvers.stopping` for the rules."""

    backend: str = "exact"
    stop: str = "certified"
    max_iters: ClassVar[int] = 100_000


class Method(Protocol):
    """A method: settings, a start and a step, each costing about one sweep; the loop does the
    rest.
    """

    max_iters: ClassVar[int]

    @property
    def backend(self) -> str:
        """Name of the operator."""

    @property
    def stop(self) -> str:
        """Name of the stopping rule."""

    def init(self, problem: Problem, value: Array | None) -> Any:
        """Start from `value`, or from a choice of the method; return a `MethodState`."""

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the next `MethodState`."""


def swept(problem: Problem, value: Array | None) -> MethodState:
    """Start at `value`, or at 0 as the paper does."""
    start = ended(problem.model, np.zeros_like(problem.model.initial)) if value is None else value
    return MethodState(start, problem.sweep(start))
