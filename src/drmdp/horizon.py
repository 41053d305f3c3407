"""Finitely many stages.

With final values v_T and stage costs c_t, v_t = F_t(v_{t+1}) for t = T − 1, …, 0, where F_t is the robust Bellman operator of the same
model and ball with the costs c_t: nature moves anew at every stage and state. The policy of stage t attains F_t at v_{t+1}.

**Bounds.** F_t is monotone and F_t(v + δ) ≤ F_t(v) + λ δ for constants δ ≥ 0. A sweep at v gives L ≤ F_t(v) and F^x(v) ≤ U, so with
e = max(upper_{t+1} − v, 0) and d = max(v − lower_{t+1}, 0) over the states, U + λ e bounds the worst-case value of the policies of the stages
t, …, T − 1 from above and L − λ d the optimum from below. One sweep a stage; the gap grows by the operator's error each. A discount of 1 is allowed:
nothing is summed up to infinity.

Terminal states of the model have value 0 at every stage, the last one included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp import certificate, checks
from drmdp._typing import Array, ArrayLike
from drmdp.ambiguity import Wasserstein, check_problem
from drmdp.api import DEFAULT_BACKEND, _sides, _value, build
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.operator import Operator
from drmdp.checks import number, numbers
from drmdp.errors import InputError, shown
from drmdp.files import require
from drmdp.instances._build import whole
from drmdp.model import Model, changed
from drmdp.solvers.problem import Problem

STAGES = 1_000_000
"""More are a slip: at a thousand sweeps a second they take a quarter of an hour."""


@dataclass(frozen=True, eq=False)
class HorizonSolution:
    """Policies and certified values of T stages; signs are the user's."""

    value: Array  # (T + 1, S) certified worst-case value of the policies from stage t on
    policy: Array  # (T, S, A)
    lower: Array  # (T + 1, S) bounds on the optimum
    upper: Array  # (T + 1, S)
    kernel_passes: float

    @property
    def gap(self) -> float:
        """Largest upper − lower over stages and states."""
        return float((self.upper - self.lower).max())


def finite_horizon(
    model: Model,
    ball: Wasserstein,
    stages: int,
    final: ArrayLike = None,
    costs: ArrayLike = None,
    discount: float | None = None,
    backend: str = DEFAULT_BACKEND,
    callback: Callable[[int], Any] | None = None,
    threads: int | None = None,
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

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=10, discount=1.0)
    >>> plan.policy.shape, plan.value.shape, plan.gap < 1e-6
    ((10, 8, 2), (11, 8), True)
    """
    check_problem(model, ball)
    T, S, A = whole("stages", stages, 1, STAGES), model.n_states, model.n_actions
    require(8 * T * S * (A + 2), f"{T:,} stages × {S:,} states × {A:,} actions")
    v = _final(model, final)
    staged = _discounted(model, discount)
    prices = None if costs is None else _stage_costs(model, costs, T)
    for own in [staged] if prices is None else [_priced(staged, stage) for stage in prices]:
        ball.fitted(own)
    lower, upper = np.empty((T + 1, S)), np.empty((T + 1, S))
    lower[T] = upper[T] = v
    policy = np.empty((T, S, A))
    operator: Operator | None = None
    for t in reversed(range(T)):
        if operator is None or prices is not None:
            here = staged if prices is None else _priced(staged, prices[t])
            operator = _next(build(here, ball, backend, threads), operator)
        update = Problem(operator).sweep(v)
        update = operator.certify(v, update, False)
        above, below = (max(0.0, float(gap.max())) for gap in (upper[t + 1] - v, v - lower[t + 1]))
        upper[t] = _shifted(certificate.beyond(v, update.upper_step, +1), staged.discount * above)
        lower[t] = _shifted(certificate.beyond(v, update.lower_step, -1), -staged.discount * below)
        upper[t, model.terminal] = lower[t, model.terminal] = 0.0
        policy[t] = update.policy
        v = np.clip(update.value, lower[t], upper[t])
        if callback is not None:
            callback(t)
    lower, upper = _sides(model, lower, upper)
    return HorizonSolution(lower if model.maximise else upper, policy, lower, upper, float(T))


def _shifted(bound: Array, by: float) -> Array:
    """Bound + by, rounded in the direction of `by`."""
    return bound if by == 0 else np.nextafter(bound + by * (1 + 4 * certificate.EPS), np.sign(by) * np.inf)


def _next(new: Operator, old: Operator | None) -> Operator:
    if isinstance(new, ExactOperator) and isinstance(old, ExactOperator):
        new.adopt(old)
    return new


def _final(model: Model, final: ArrayLike) -> Array:
    if final is None:
        return np.zeros(model.n_states)
    given = numbers("final", final)
    v = _value(model, given, "final")
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
    return [checks.costs_of(f"{kind} of stage {t}", own, model) for t, own in enumerate(given)]


def _priced(model: Model, costs: Array) -> Model:
    return changed(model, _costs=0.0 - costs if model.maximise else costs)
