"""Single actions: what each one costs, and the best policy without randomisation.

**One action.** Q(s,a) is the worst-case cost of playing a in s once and the robust policy
afterwards: F^a(v)(s) with v its worst-case value. As nature then spends the whole budget of s on a
alone, min_a Q(s,a) may exceed v(s): mixing protects.

**Deterministic policies.** v = min_a F^a(v) is a contraction whose fixed point is the least
worst-case value of any deterministic policy, attained in all states at once. Of finitely many
stages it is v_t = min_a F^a_t(v_{t+1}). Policy iteration on it (evaluate against nature, take the
best action, repeat until nothing improves) starts from the rounded policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.api import evaluate
from drmdp.core import levels
from drmdp.core.signs import inward, outward, sides
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import number
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.operators.build import DEFAULT_BACKEND, build
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import HorizonSolution, Solution, Status, check_solution
from drmdp.solvers.horizon import with_models
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
    """Costs of playing each action once before the robust policy goes on.

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


def near_optimal(
    model: Model, ambiguity: AmbiguitySet, solution: Solution, loss: float
) -> ActionLosses:
    """Actions that cost at most `loss` more than the optimum, if played once and the solution's
    policy afterwards.

    The losses are certified upper bounds: from the upper bound of each action to the lower bound of
    the optimum.

    Parameters
    ----------
    model : Model
        What is known.
    ambiguity : set
        What is feared.
    solution : Solution
        That of this model and set.
    loss : float
        How much worse an action may be, in the unit of the costs.
    """
    check_problem(model, ambiguity)
    limit = number("loss", loss)
    if not limit >= 0:
        raise InputError(f"loss must not be negative, got {limit!r}")
    _check(model, solution)
    q = _each_action(model, ambiguity, inward(model, solution.value))
    optimum = sides(model, solution.lower, solution.upper)[0]
    over = np.where(model.available, np.maximum(q - optimum[:, None], 0.0), np.inf)
    value = np.where(model.available, outward(model, q), np.nan)
    return ActionLosses(value, over, over <= limit)


def _check(model: Model, solution: Solution) -> None:
    check_solution(solution)
    if solution.criterion in ("average", "reach"):
        criterion = f"this solution's criterion is {solution.criterion!r}"
        raise InputError(f"actions are compared for discounted and total costs, and {criterion}")
    if solution.fingerprint != model.fingerprint:
        raise InputError("the solution is of another model")


def _each_action(model: Model, ambiguity: AmbiguitySet, value: Array) -> Array:
    """Upper bounds of F^a(v), (S, A); one evaluation sweep an action, inf where unavailable."""
    problem = Problem(build(model, ambiguity, DEFAULT_BACKEND))
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
    """The best deterministic policy and its loss against the best policy of all; of a plan
    (T, S, A), (T + 1, S) and (T, S).

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
    model: Any,
    ambiguity: Any,
    solution: Solution | HorizonSolution,
    tol: float | None = None,
    rtol: float = RTOL,
) -> Rounded:
    """Best deterministic policy, from rounding the solution, with its certified loss; or the best
    deterministic plan.

    An action is exchanged only for one that is better by more than (1 − discount) times the
    tolerance in one step, at a stage of T by a T-th of it.

    Parameters
    ----------
    model : Model, or a sequence of models
        What is known.
    ambiguity : set, or a sequence of sets
        What is feared.
    solution : Solution or HorizonSolution
        That of this model and set.
    tol, rtol : float
        Certified gap of the values, absolute or relative, as for `drmdp.solve`.
    """
    tolerance = Tolerance.of(tol, rtol)
    if isinstance(solution, HorizonSolution):
        return _plan(with_models(solution, model, ambiguity), tolerance)
    check_problem(model, ambiguity)
    _check(model, solution)
    rounded = most_probable(solution.policy)
    chosen = rounded
    for rounds in range(1, ROUNDS + 1):
        x = _pure(chosen, model.n_actions)
        judged = _judged(model, ambiguity, x, tol, rtol)
        upper = inward(model, judged.value)
        q = np.where(model.terminal[:, None], 0.0, _each_action(model, ambiguity, upper))
        improved = _improved(q, chosen, (1 - model.discount) * tolerance.goal(judged.scale))
        if np.array_equal(improved, chosen):
            break
        chosen = improved
    optimum = sides(model, solution.lower, solution.upper)[0]
    return Rounded(x, judged.value, np.maximum(upper - optimum, 0.0), chosen != rounded, rounds)


def _played(q: Array, actions: IntArray) -> Array:
    return np.asarray(q[np.arange(len(q)), np.maximum(actions, 0)])


def _improved(q: Array, actions: IntArray, slack: float) -> IntArray:
    """The actions of least q where these are worse by more than a slack."""
    better = q.min(axis=1) < _played(q, actions) - slack
    return np.where(better, q.argmin(axis=1), actions)


def _plan(plan: HorizonSolution, tolerance: Tolerance) -> Rounded:
    """From the last stage to the first, the action of the least F^a(v); of equals that which the
    plan plays most.
    """
    stages, first = plan.natures.stages, plan.natures.stages.first
    value, slack = stages.final, tolerance.goal(plan.scale) / plan.n_stages
    rounded = np.stack([most_probable(policy) for policy in plan.policy])
    chosen = rounded.copy()
    for t in reversed(range(plan.n_stages)):
        q = _each_action(stages.models[t], stages.sets[t], value)
        q[first.terminal] = 0.0
        chosen[t] = _improved(q, chosen[t], slack)
        value = levels.ended(first, _played(q, chosen[t]))
    x = np.stack([_pure(actions, first.n_actions) for actions in chosen])
    ends: Any = {"nature": plan.settings["nature"], "final": plan.final, "discount": plan.discount}
    judged = _judged(list(stages.models), list(stages.sets), x, *vars(tolerance).values(), **ends)
    loss = inward(first, judged.value) - sides(first, plan.lower, plan.upper)[0]
    return Rounded(x, judged.value, np.maximum(loss, 0.0), chosen != rounded, 1)


def _judged(*arguments: Any, **ends: Any) -> Any:
    judged = evaluate(*arguments, **ends)
    if judged.status is Status.interrupted:
        raise KeyboardInterrupt
    return judged


def _pure(actions: Any, n_actions: int) -> Array:
    return np.where(actions[:, None] == np.arange(n_actions), 1.0, 0.0)
