"""Finitely many stages.

With final values v_T and stage costs c_t, v_t = F_t(v_{t+1}) for t = T − 1, …, 0, where F_t is the robust Bellman operator of the same
model and ball with the costs c_t: nature moves anew at every stage and state. The policy of stage t attains F_t at v_{t+1}.

**Bounds.** F_t is monotone and F_t(v + δ) ≤ F_t(v) + λ δ for constants δ ≥ 0. A sweep at v gives L ≤ F_t(v) and F^x(v) ≤ U, so with
e = max(upper_{t+1} − v, 0) and d = max(v − lower_{t+1}, 0) over the states, U + λ e bounds the worst-case value of the policies of the stages
t, …, T − 1 from above and L − λ d the optimum from below. One sweep a stage; the gap grows by the operator's error each. A discount of 1 is allowed:
nothing is summed up to infinity.

Terminal states of the model have value 0 at every stage, the last one included. So have states that cost nothing, whatever is done, and are left for such
states only, if their final values are 0: no margin is needed there.

**Cut short** by Ctrl-C or the clock before stage t was done, the stages before it get the policy of the last one that was, and bounds that hold for any:
max(upper_{t+1}) and min(lower_{t+1}) discounted, plus the largest and the smallest cost of the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.api import DEFAULT_BACKEND, build
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.operator import Operator, Update
from drmdp.core import clock, levels
from drmdp.core import validation as checks
from drmdp.core.files import require
from drmdp.core.progress import counted, showing
from drmdp.core.signs import pessimistic, sides, value_of
from drmdp.core.tolerance import RTOL, Tolerance, scale_of
from drmdp.core.validation import limits, number, numbers, whole
from drmdp.errors import InputError, shown
from drmdp.model import Model, changed
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Status
from drmdp.solvers.problem import Problem, any_policy

STAGES = 1_000_000
"""More are a slip: at a thousand sweeps a second they take a quarter of an hour."""
ROUNDS = 100
"""Looks for states that are never left."""


@dataclass(frozen=True, eq=False)
class HorizonSolution:
    """Policies and certified values of T stages; signs are the user's."""

    value: Array  # (T + 1, S) certified worst-case value of the policies from stage t on
    policy: Array  # (T, S, A)
    lower: Array  # (T + 1, S) bounds on the optimum
    upper: Array  # (T + 1, S)
    kernel_passes: float
    status: Status
    scale: float  # max(max|value|, max|c|)

    @property
    def gap(self) -> float:
        """Largest upper − lower over stages and states."""
        return float((self.upper - self.lower).max())


def finite_horizon(
    model: Model,
    ball: AmbiguitySet,
    stages: int,
    final: ArrayLike = None,
    costs: ArrayLike = None,
    discount: float | None = None,
    backend: str = DEFAULT_BACKEND,
    callback: Callable[[int], Any] | None = None,
    threads: int | None = None,
    tol: float | None = None,
    rtol: float = RTOL,
    max_seconds: float | None = None,
    progress: bool | None = None,
    nature: str = "adversarial",
) -> HorizonSolution:
    """Find the policies with the least worst-case cost (greatest reward) over finitely many stages.

    Parameters
    ----------
    stages : int
        T, how many decisions.
    final : (S,), optional
        Values (costs or rewards, as in the model) after the last stage; 0 by default and in terminal states.
    costs : (T, S, A) or (T, S, A, S), optional
        Costs, or rewards, of each stage; those of the model by default.
    discount : float in [0, 1], optional
        Instead of the model's.
    callback : callable, optional
        Called with t after each stage, from T − 1 to 0.
    tol, rtol : float
        Decide the status, nothing else: there is one sweep a stage, as accurate as can be. It is "solved" when the gap is at most tol, or
        rtol · max(max|value|, max|c|), else "precision_limit".
    max_seconds, threads, progress, nature : optional
        As for `drmdp.solve`; the module says what is returned for stages that were not reached.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=10, discount=1.0)
    >>> plan.policy.shape, plan.value.shape, plan.gap < 1e-6
    ((10, 8, 2), (11, 8), True)
    """
    check_problem(model, ball)
    ball = ball.facing(nature)
    T, S, A = whole("stages", stages, 1, STAGES), model.n_states, model.n_actions
    require(8 * T * S * (A + 2), f"{T:,} stages × {S:,} states × {A:,} actions")
    tolerance, deadline = Tolerance.of(tol, rtol), clock.deadline(max_seconds)
    limits(None, max_seconds, callback)
    v = _final(model, final)
    staged = _discounted(model, discount)
    prices = None if costs is None else _stage_costs(model, costs, T)
    idle = v == 0
    for own in [staged] if prices is None else [_priced(staged, stage) for stage in prices]:
        idle &= _free(own, ball.fitted(own))
    idle = _closed(model, idle) | model.terminal
    plan = _Plan(staged, idle, np.empty((T + 1, S)), np.empty((T + 1, S)), np.empty((T, S, A)))
    plan.lower[T] = plan.upper[T] = v
    with showing(progress), counted("stages", T) as step:
        status, t = None, T
        try:
            for t in _stages(plan, ball, prices, v, backend, threads, deadline):
                step()
                if callback is not None:
                    callback(t)
        except KeyboardInterrupt:
            status = Status.interrupted
    if status is None and t > 0:
        status = Status.time_limit
    plan.fill_up(t, prices)
    lower, upper = sides(model, plan.lower, plan.upper)
    value = pessimistic(model, lower, upper)
    costs_of = [staged] if prices is None else [_priced(staged, own) for own in prices]
    scale = max(scale_of(own, value) for own in costs_of)
    if status is None:
        near = float((upper - lower).max()) <= tolerance.goal(scale)
        status = Status.solved if near else Status.precision_limit
    return HorizonSolution(value, plan.policy, lower, upper, float(T - t), status, scale)


@dataclass
class _Plan:
    """Bounds and policies of the stages, filled from the last one on; signs are internal."""

    model: Model
    idle: BoolArray  # (S,) states of value 0 at every stage
    lower: Array  # (T + 1, S)
    upper: Array
    policy: Array  # (T, S, A)

    def set(self, t: int, v: Array, update: Update) -> Array:
        """Take the sweep of stage t at v; returns where to go on."""
        model, lower, upper = self.model, self.lower, self.upper
        above, below = (max(0.0, float(gap.max())) for gap in (upper[t + 1] - v, v - lower[t + 1]))
        upper[t] = _shifted(levels.beyond(v, update.upper_step, +1), model.discount * above)
        lower[t] = _shifted(levels.beyond(v, update.lower_step, -1), -model.discount * below)
        upper[t, self.idle] = lower[t, self.idle] = 0.0
        self.policy[t] = update.policy
        return np.clip(update.value, lower[t], upper[t])

    def fill_up(self, t: int, prices: list[Array] | None) -> None:
        """Give the stages before t what is true of any policy: one pair of numbers a stage, 0 in idle states."""
        if t == 0:
            return
        model, ends = self.model, self.idle.any()
        low, high = np.empty(t), np.empty(t)
        least, most = float(self.lower[t].min()), float(self.upper[t].max())
        cheap, dear = model.cost_range
        for k in reversed(range(t)):
            if prices is not None:
                cheap, dear = _priced(model, prices[k]).cost_range
            low[k] = least = _outside(cheap, model.discount * least, -1)
            high[k] = most = _outside(dear, model.discount * most, +1)
            if ends:
                least, most = min(least, 0.0), max(most, 0.0)
        self.lower[:t] = np.where(self.idle, 0.0, low[:, None])
        self.upper[:t] = np.where(self.idle, 0.0, high[:, None])
        self.policy[:t] = self.policy[t] if t < len(self.policy) else any_policy(model)


def _stages(
    plan: _Plan, ball: AmbiguitySet, prices: list[Array] | None, v: Array, backend: str, threads: int | None,
    deadline: float,
) -> Iterator[int]:  # fmt: skip
    """Fill a plan stage by stage, from the last one on, until time is up; yields each stage."""
    operator: Operator | None = None
    for t in reversed(range(len(plan.policy))):
        if clock.now() > deadline:
            return
        if operator is None or prices is not None:
            here = plan.model if prices is None else _priced(plan.model, prices[t])
            operator = _next(build(here, ball, backend, threads), operator)
        v = plan.set(t, v, Problem(operator).proved(v))
        yield t


def _outside(cost: float, later: float, side: int) -> float:
    """Cost + later, rounded away from the truth (side ±1)."""
    total = cost + later
    return total + side * 4 * levels.EPS * (abs(cost) + abs(later))


def _free(model: Model, ball: AmbiguitySet) -> BoolArray:
    """States where every allowed transition costs 0 and nature has no other, (S,)."""
    if ball.support != "observed":
        return model.terminal
    if not model.next_costs:
        return np.asarray((model.costs == 0).all(axis=1))
    pairs = np.repeat(np.arange(model.available.size), model.blocks.lengths)
    paid = np.bincount(pairs[model.listed_costs() != 0], minlength=model.available.size) > 0
    return np.asarray(~paid.reshape(model.available.shape).any(axis=1))


def _closed(model: Model, states: BoolArray) -> BoolArray:
    """Those of some states that no stored transition leaves; none if that takes more than `ROUNDS` looks."""
    pairs = np.repeat(np.arange(model.available.size), model.blocks.lengths)
    for _ in range(ROUNDS):
        leaves = (
            np.bincount(pairs[~(states | model.terminal)[model.blocks.indices]], minlength=model.available.size) > 0
        )
        left = states & ~leaves.reshape(model.available.shape).any(axis=1)
        if (left == states).all():
            return states
        states = left
    return np.zeros_like(states)


def _shifted(bound: Array, by: float) -> Array:
    """Bound + by, rounded in the direction of `by`."""
    return bound if by == 0 else np.nextafter(bound + by * (1 + 4 * levels.EPS), np.sign(by) * np.inf)


def _next(new: Operator, old: Operator | None) -> Operator:
    if isinstance(new, ExactOperator) and isinstance(old, ExactOperator):
        new.adopt(old)
    return new


def _final(model: Model, final: ArrayLike) -> Array:
    if final is None:
        return np.zeros(model.n_states)
    given = numbers("final", final)
    v = value_of(model, given, "final")
    wrong = model.terminal & (given != 0)
    if wrong.any():
        s = int(np.argmax(wrong))
        raise InputError(f"final: state {model.states[s]!r} is terminal, its value is 0, got {float(given[s])!r}")
    return v


def _discounted(model: Model, discount: float | None) -> Model:
    """The model with another discount, 1 included."""
    if discount is None:
        return model
    value = number("discount", discount, "a number in [0, 1]")
    if not 0 <= value <= 1:
        raise InputError(f"discount: expected a number in [0, 1], got {shown(discount)}")
    return changed(model, discount=value)


def _stage_costs(model: Model, costs: ArrayLike, T: int) -> list[Array]:
    given = numbers("costs", costs)
    S, A = model.n_states, model.n_actions
    if given.shape not in ((T, S, A), (T, S, A, S)):
        raise InputError(f"costs: expected shape {(T, S, A)} or {(T, S, A, S)}, got {given.shape}")
    kind = "rewards" if model.maximise else "costs"
    return [
        checks.costs_of(f"{kind} of stage {t}", own, model.blocks, model.available, model.discount, model.labels)
        for t, own in enumerate(given)
    ]


def _priced(model: Model, costs: Array) -> Model:
    return changed(model, _costs=0.0 - costs if model.maximise else costs)
