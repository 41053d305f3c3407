"""Single actions: what each one costs, and the best policy without randomisation.

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

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.api import evaluate
from drmdp.bellman.build import DEFAULT_BACKEND, build
from drmdp.core import levels
from drmdp.core.signs import inward, outward, sides
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import number
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Solution, Status, check_solution
from drmdp.solvers.problem import Problem

ROUNDS = 100
"""Of improvement of a deterministic policy."""
TIE = 1e-6
"""Probabilities that differ by less are equal."""


def most_probable(policy: Array) -> IntArray:
    """Most probable action of each state, (S,), the first of equals; −1 where there is none."""
    best = (policy >= policy.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return np.where(policy.max(axis=1) > 0, best, -1)


@dataclass(frozen=True, eq=False)
class ActionLosses:
    """What each action costs once, before the robust policy goes on.

    Attributes
    ----------
    value : (S, A)
        Worst-case value of playing the action once; NaN where it is unavailable.
    loss : (S, A)
        How much worse than the optimum that is, at most; inf where it is unavailable.
    near : (S, A)
        Whether the loss is within the limit.
    """

    value: Array
    loss: Array
    near: BoolArray


def near_optimal(model: Model, ball: AmbiguitySet, solution: Solution, loss: float) -> ActionLosses:
    """Actions that cost at most `loss` more than the optimum, if played once and the solution's policy afterwards.

    The losses are certified upper bounds: from the upper bound of each action to the lower bound of the optimum.

    Parameters
    ----------
    model : Model
        What is known.
    ball : set
        What is feared.
    solution : Solution
        That of this model and set.
    loss : float
        How much worse an action may be, in the unit of the costs.
    """
    check_problem(model, ball)
    limit = number("loss", loss)
    if not limit >= 0:
        raise InputError(f"loss must not be negative, got {limit!r}")
    _own(model, solution)
    q = _each_action(model, ball, inward(model, solution.value))
    optimum = sides(model, solution.lower, solution.upper)[0]
    over = np.where(model.available, np.maximum(q - optimum[:, None], 0.0), np.inf)
    own = np.where(model.available, outward(model, q), np.nan)
    return ActionLosses(own, over, over <= limit)


def _own(model: Model, solution: Solution) -> None:
    check_solution(solution)
    if solution.criterion in ("average", "reach"):
        raise InputError(
            f"actions are compared for discounted and total costs, and this solution's criterion is {solution.criterion!r}"
        )
    if solution.fingerprint != model.fingerprint:
        raise InputError("the solution is of another model")


def _each_action(model: Model, ball: AmbiguitySet, value: Array) -> Array:
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
    """The best deterministic policy and what it costs against the best one of all.

    Attributes
    ----------
    policy : (S, A)
        Zeros and ones.
    value : (S,)
        Certified worst-case value.
    loss : (S,)
        How much worse than the optimum that is, at most; certified.
    changed : (S,)
        Where it is not the most probable action of the solution.
    rounds : int
        Improvements until no action was exchanged.
    """

    policy: Array
    value: Array
    loss: Array
    changed: BoolArray
    rounds: int


def deterministic(
    model: Model, ball: AmbiguitySet, solution: Solution, tol: float | None = None, rtol: float = RTOL
) -> Rounded:
    """Best deterministic policy, from rounding the solution, with its certified loss.

    An action is exchanged only for one that is better by more than (1 − discount) times the tolerance in one step.

    Parameters
    ----------
    model : Model
        What is known.
    ball : set
        What is feared.
    solution : Solution
        That of this model and set.
    tol, rtol : float
        Certified gap of the values, absolute or relative, as for `drmdp.solve`.
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
        upper = inward(model, found.value)
        q = np.where(model.terminal[:, None], 0.0, _each_action(model, ball, upper))
        better = q.min(axis=1) < q[start, np.maximum(chosen, 0)] - (1 - model.discount) * tolerance.goal(found.scale)
        if not better.any():
            break
        chosen = np.where(better, q.argmin(axis=1), chosen)
    optimum = sides(model, solution.lower, solution.upper)[0]
    return Rounded(x, found.value, np.maximum(upper - optimum, 0.0), chosen != rounded, rounds)


def _pure(actions: Any, n_actions: int) -> Array:
    return np.where(actions[:, None] == np.arange(n_actions), 1.0, 0.0)
