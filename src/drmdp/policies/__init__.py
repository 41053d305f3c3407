"""Understand a policy: its values, its rounding, its alternatives, and what nature did to it.

Three values of a policy x differ and none bounds the others in general:

* *worst case*: against the worst N-tuple of the ball, mean kernel Σ_i w_i y_i, certified;
* *mean kernel*: under Σ_i w_i ŷ_i, the centre of the ball: never worse than the worst case;
* *per kernel*: under each ŷ_i alone. A single ŷ_i may be worse than the worst case when the radius is small, for nature plays means.
  The average of these values is not the value under the mean kernel, because values are not linear in the kernel.

**One action.** Q(s,a) is the worst-case cost of playing a in s once and the robust policy afterwards: F^a(v)(s) with v its worst-case value. As
nature then spends the whole budget of s on a alone, min_a Q(s,a) may exceed v(s): mixing protects.

**Deterministic policies.** v = min_a F^a(v) is a contraction whose fixed point is the least worst-case value of any deterministic policy, attained
in all states at once. Policy iteration on it (evaluate against nature, take the best action, repeat until nothing improves) starts from the
rounded policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, BoolArray, IntArray
from drmdp.api import DEFAULT_BACKEND, Evaluation, _sides, build, evaluate
from drmdp.core import levels
from drmdp.core.compact import MeanKernel
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import number
from drmdp.errors import InputError
from drmdp.instances._build import whole
from drmdp.model import Model, check_model
from drmdp.policies import fixed_kernel as fixed
from drmdp.radius.path import most_probable
from drmdp.sets import Wasserstein, check_problem
from drmdp.solution import Solution, Status, check_solution
from drmdp.solvers.problem import Problem

NOTHING = 1e-12
"""A smaller difference of probabilities is rounding."""
ROUNDS = 100
"""Of improvement of a deterministic policy."""
STEPS = 2000
"""Of a chain followed from the start."""


@dataclass(frozen=True, eq=False)
class Values:
    """Values of a policy, (S,) each unless said; see the module for how they differ."""

    worst: Evaluation
    mean: Array
    by_kernel: Array  # (N, S)


def values(model: Model, ball: Wasserstein, policy: ArrayLike, tol: float | None = None, rtol: float = RTOL) -> Values:
    """Worst-case, mean-kernel and per-kernel values of a policy, also that of a `Solution`."""
    check_problem(model, ball)
    x = model.policy(policy)
    worst = evaluate(model, ball, x, tol, rtol)
    return Values(worst, under(model, x, [None])[0], under(model, x, list(range(model.n_kernels))))


def under(model: Model, policy: ArrayLike, kernels: ArrayLike) -> Array:
    """Value of a policy under each of M kernels, (M, S), from exact linear systems.

    `kernels` is an (M, S, A, S) array, a `Model` with the same states and actions, or a list of kernels: None for the mean kernel, the
    number or name of an observed one, an (S, A, S) array, a sparse (S·A, S) matrix, the kernel of a solution.
    """
    check_model(model)
    return fixed.values(model, model.policy(policy), fixed.matrices_of(model, kernels))


def visits(model: Model, policy: ArrayLike, kernel: Any = None) -> Array:
    """Share of the discounted time that a policy spends in each state under a kernel, (S,); the mean kernel by default.

    The shares d ∝ Σ_t λ^t p_t of the distributions p_t after t steps from the start sum to 1 and are 0 in terminal states. The sum ends where λ^t
    is below 1e-6, or after `STEPS` steps.
    """
    check_model(model)
    x = model.policy(policy)
    chain = fixed.chain(x, fixed.matrix_of(model, kernel)).T
    now = np.where(model.terminal, 0.0, model.initial)
    total = now.copy()
    share = model.discount
    for _ in range(STEPS):
        if share < 1e-6:
            break
        now = np.where(model.terminal, 0.0, chain @ now)
        total += share * now
        share *= model.discount
    return total / (total.sum() or 1.0)


def most_visited(model: Model, policy: ArrayLike, n: int) -> IntArray:
    """Numbers of the n states, ascending, that a policy spends most time in under the mean kernel; all if there are no more."""
    if model.n_states <= n:
        return np.flatnonzero(~model.terminal)
    shares = np.where(model.terminal, -1.0, visits(model, policy))
    return np.sort(np.argsort(-shares, kind="stable")[: min(n, int((~model.terminal).sum()))])


# ---------------------------------------------------------------------- actions


@dataclass(frozen=True, eq=False)
class ActionLosses:
    """What each action costs once, before the robust policy goes on."""

    value: Array  # (S, A) worst-case value of playing the action once, user's sign; NaN where unavailable
    loss: Array  # (S, A) how much worse than the optimum, at most; inf where unavailable
    near: BoolArray  # (S, A) loss within the limit


def near_optimal(model: Model, ball: Wasserstein, solution: Solution, loss: float) -> ActionLosses:
    """Actions that cost at most `loss` more than the optimum, if played once and the solution's policy afterwards.

    The losses are certified upper bounds: from the upper bound of each action to the lower bound of the optimum.
    """
    check_problem(model, ball)
    limit = number("loss", loss)
    if not limit >= 0:
        raise InputError(f"loss must not be negative, got {limit!r}")
    _own(model, solution)
    q = _each_action(model, ball, _inside(model, solution.value))
    optimum = _sides(model, solution.lower, solution.upper)[0]
    over = np.where(model.available, np.maximum(q - optimum[:, None], 0.0), np.inf)
    own = np.where(model.available, -q if model.maximise else q, np.nan)
    return ActionLosses(own, over, over <= limit)


def _own(model: Model, solution: Solution) -> None:
    check_solution(solution)
    if solution.fingerprint != model.fingerprint:
        raise InputError("the solution is of another model")


def _inside(model: Model, value: Array) -> Array:
    return np.where(model.terminal, 0.0, -value if model.maximise else value)


def _each_action(model: Model, ball: Wasserstein, value: Array) -> Array:
    """Upper bounds of F^a(v), (S, A); one evaluation sweep an action, inf where unavailable."""
    problem = Problem(build(model, ball, DEFAULT_BACKEND))
    S, A = model.n_states, model.n_actions
    q = np.full((S, A), np.inf)
    spare = model.available.argmax(axis=1)
    for a in range(A):
        x = np.zeros((S, A))
        x[np.arange(S), np.where(model.available[:, a], a, spare)] = 1
        x[model.terminal] = 0
        q[:, a] = levels.beyond(value, problem.proved(value, x).upper_step, +1)
    return np.where(model.available, q, np.inf)


# ---------------------------------------------------------------------- deterministic policies


@dataclass(frozen=True, eq=False)
class Rounded:
    """The best deterministic policy and what it costs against the best one of all."""

    policy: Array  # (S, A), zeros and ones
    value: Array  # (S,) certified worst-case value, user's sign
    loss: Array  # (S,) at most so much worse than the optimum, certified
    changed: BoolArray  # (S,) where it is not the most probable action of the solution
    rounds: int


def deterministic(
    model: Model, ball: Wasserstein, solution: Solution, tol: float | None = None, rtol: float = RTOL
) -> Rounded:
    """Best deterministic policy, from rounding the solution, with its certified loss.

    An action is exchanged only for one that is better by more than (1 − discount) times the tolerance in one step.
    """
    check_problem(model, ball)
    tolerance = Tolerance.of(tol, rtol)
    _own(model, solution)
    S, A = model.n_states, model.n_actions
    rounded = most_probable(solution.policy)
    chosen, start = rounded.copy(), np.arange(S)
    for rounds in range(1, ROUNDS + 1):
        x = _pure(chosen, A)
        found = evaluate(model, ball, x, tol, rtol)
        if found.status is Status.interrupted:
            raise KeyboardInterrupt
        upper = _inside(model, found.value)
        q = np.where(model.terminal[:, None], 0.0, _each_action(model, ball, upper))
        better = q.min(axis=1) < q[start, np.maximum(chosen, 0)] - (1 - model.discount) * tolerance.goal(found.scale)
        if not better.any():
            break
        chosen = np.where(better, q.argmin(axis=1), chosen)
    optimum = _sides(model, solution.lower, solution.upper)[0]
    return Rounded(x, found.value, np.maximum(upper - optimum, 0.0), chosen != rounded, rounds)


def _pure(actions: Any, n_actions: int) -> Array:
    return np.where(actions[:, None] == np.arange(n_actions), 1.0, 0.0)


# ---------------------------------------------------------------------- nature


@dataclass(frozen=True)
class Bent:
    """A transition and what nature made of it."""

    state: Any  # names
    action: Any
    next_state: Any
    nominal: float  # probability in the mean kernel
    worst: float  # and in nature's

    @property
    def change(self) -> float:
        """How much more probable nature made it."""
        return self.worst - self.nominal


def bent(model: Model, kernel: Any, n: int = 10, policy: ArrayLike = None, states: Any = None) -> tuple[Bent, ...]:
    """The n transitions whose probability differs most between nature's kernel and the mean kernel, largest first.

    With `policy`, only of actions it plays; the kernel of a solution bends the others as well, to make them unattractive. With `states`,
    numbers of states, only from these.
    """
    check_model(model)
    count = whole("n", n, 1)
    S, A = model.n_states, model.n_actions
    played = model.available if policy is None else model.policy(policy) > 0
    if not isinstance(kernel, MeanKernel):
        kernel = fixed.matrix_of(model, kernel)
    elif kernel.shape != (S, A, S):
        raise InputError(f"kernel: expected shape {(S, A, S)}, got {kernel.shape}")
    mean = model.blocks.matrix(model.mean)
    found: list[tuple[float, int, int, int, float, float]] = []
    chosen = np.flatnonzero(played.any(axis=1))
    if states is not None:
        chosen = np.intersect1d(chosen, states)
    for s in chosen.tolist():
        rows, nominal = _rows(kernel, s, A), mean[s * A : (s + 1) * A].toarray()
        off = np.where(played[s][:, None], np.abs(rows - nominal), 0.0)
        for k in np.argpartition(-off, min(count, off.size) - 1, axis=None)[:count].tolist():
            a, t = divmod(k, S)
            if off[a, t] > NOTHING:
                found.append((-float(off[a, t]), s, a, t, float(nominal[a, t]), float(rows[a, t])))
        found = sorted(found)[:count]
    return tuple(
        Bent(model.states[s], model.actions[a], model.states[t], nominal, worst) for _, s, a, t, nominal, worst in found
    )


def _rows(kernel: Any, s: int, n_actions: int) -> Array:
    if isinstance(kernel, MeanKernel):
        return kernel.rows(s)
    own = kernel[s * n_actions : (s + 1) * n_actions]
    return own.toarray() if sparse.issparse(own) else np.asarray(own)
