"""What a policy is worth, and where it goes.

Three values of a policy x differ and none bounds the others in general:

* *worst case*: against the worst N-tuple of the ball, mean kernel Σ_i w_i y_i, certified;
* *mean kernel*: under Σ_i w_i ŷ_i, the centre of the ball: never worse than the worst case;
* *per kernel*: under each ŷ_i alone. A single ŷ_i may be worse than the worst case when the radius is small, for nature plays means.
  The average of these values is not the value under the mean kernel, because values are not linear in the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.api import evaluate
from drmdp.core.signs import outward
from drmdp.core.tolerance import RTOL
from drmdp.errors import InputError
from drmdp.model import Model, check_model
from drmdp.policies import fixed_kernel as fixed
from drmdp.sets import Wasserstein, check_problem
from drmdp.solution import HorizonSolution
from drmdp.solvers.evaluation import Evaluation
from drmdp.solvers.horizon import has_stages, plan_of, second_outcome

STEPS = 2000
"""Of a chain followed from the start."""


@dataclass(frozen=True, eq=False)
class Values:
    """Values of a policy, (S,) each unless said; of a plan (T + 1, S), from each stage on.

    Under the mean kernel a policy is never worse than in the worst case; under a single kernel it may be, for nature plays means of them.

    Attributes
    ----------
    worst : Evaluation, or HorizonSolution
        In the worst case over the set.
    mean : (S,)
        Under the mean kernel.
    by_kernel : (N, S)
        Under each observed kernel, of a plan (N, T + 1, S): the same one at all stages.
    """

    worst: Evaluation | HorizonSolution
    mean: Array
    by_kernel: Array


def values(
    model: Any,
    ball: Any,
    policy: ArrayLike,
    tol: float | None = None,
    rtol: float = RTOL,
    *,
    costs: ArrayLike = None,
    rewards: ArrayLike = None,
) -> Values:
    """Worst-case, mean-kernel and per-kernel values of a policy, also that of a `Solution`, or of a plan.

    Parameters
    ----------
    model : Model, or a sequence of models
        What is known, as for `drmdp.evaluate`.
    ball : set, or a sequence of sets
        What is feared.
    policy : as for `drmdp.evaluate`
        What is played.
    tol, rtol : float
        Certified gap of the worst case, absolute or relative, as for `drmdp.solve`.
    costs, rewards : optional
        Another outcome of the same policy, as for `drmdp.evaluate`.
    """
    if not has_stages(model, policy):
        check_problem(model, ball)
    worst = evaluate(model, ball, policy, tol, rtol, costs=costs, rewards=rewards)
    means, each = (by_kernel(model, policy, kernels, costs, rewards) for kernels in ([None], None))
    return Values(worst, means[0], each)


def by_kernel(
    model: Any, policy: ArrayLike, kernels: list[Any] | None = None, costs: ArrayLike = None, rewards: ArrayLike = None
) -> Array:
    """Value of a policy under kernels of a model, by their numbers, None for the mean kernel; under each by default. (M, S), of a plan (M, T + 1, S)."""
    if has_stages(model, policy):
        stages, x, *_ = plan_of(model, Wasserstein(0.0), policy, costs=costs, rewards=rewards)
        names = [tuple(own.kernel_names) for own in stages.given]
        other = next((t for t, own in enumerate(names) if own != names[0]), None)
        if other is not None and kernels is None:
            raise InputError(f"stage {other}: it has other kernels than stage 0")
        wanted = kernels or list(range(stages.first.n_kernels))
        return np.stack([outward(stages.first, fixed.plan_values(stages.models, x, i, stages.final)) for i in wanted])
    seen = model if costs is None and rewards is None else second_outcome(model, costs, rewards)
    return under(seen, policy, kernels or list(range(model.n_kernels)))


def under(model: Model, policy: ArrayLike, kernels: ArrayLike) -> Array:
    """Value of a policy under each of M kernels, (M, S), from exact linear systems.

    `kernels` is an (M, S, A, S) array, a `Model` with the same states and actions, or a list of kernels: None for the mean kernel, the
    number or name of an observed one, an (S, A, S) array, a sparse (S·A, S) matrix, the kernel of a solution.

    Parameters
    ----------
    model : Model
        What is known.
    policy : as for `drmdp.evaluate`
        What is played.
    kernels : M kernels
        What the policy may meet.
    """
    check_model(model)
    return fixed.values(model, model.policy(policy), fixed.matrices_of(model, kernels))


def visits(model: Model, policy: ArrayLike, kernel: Any = None) -> Array:
    """Share of the discounted time that a policy spends in each state under a kernel, (S,); the mean kernel by default.

    The shares d ∝ Σ_t λ^t p_t of the distributions p_t after t steps from the start sum to 1 and are 0 in terminal states. Where pairs have discounts of their
    own, p_t loses what they take. The sum ends where λ^t
    is below 1e-6, or after `STEPS` steps.

    Parameters
    ----------
    model : Model
        What is known.
    policy : as for `drmdp.evaluate`
        What is played.
    kernel : as for `drmdp.simulate`, optional
        What the policy meets; the mean kernel by default.
    """
    check_model(model)
    x = model.policy(policy)
    x = x if model.discounts is None else x * (model.discounts / model.discount)
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
    """Numbers of the n states, ascending, that a policy spends most time in under the mean kernel; all if there are no more.

    Parameters
    ----------
    model : Model
        What is known.
    policy : as for `drmdp.evaluate`
        What is played.
    n : int
        How many states at most.
    """
    if model.n_states <= n:
        return np.flatnonzero(~model.terminal)
    shares = np.where(model.terminal, -1.0, visits(model, policy))
    return np.sort(np.argsort(-shares, kind="stable")[: min(n, int((~model.terminal).sum()))])
