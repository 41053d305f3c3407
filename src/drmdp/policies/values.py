"""What a policy is worth, where it goes, and which transitions nature's kernel changes most.

Three values of a policy x differ and none bounds the others in general:

* *worst case*: against the worst N-tuple of the set, mean kernel Σ_i w_i y_i, certified;
* *mean kernel*: under Σ_i w_i ŷ_i, the centre of the set: never worse than the worst case;
* *per kernel*: under each ŷ_i alone. A single ŷ_i may be worse than the worst case when the radius
is small, for nature plays means.
  The average of these values is not the value under the mean kernel, because values are not linear
  in the kernel.

**The value of each action** of a solution is

    Q(s, a) = Σ_t y(t|s, a) (c(s, a, t) + λ v(t))

with nature's kernel y = `solution.kernel` and v = `solution.value`: the cost of an action now, and
of the returned policy from then on, if nature keeps to her side of the saddle point. The policy
draws among actions of the same Q, up to the gap. Of a long-run average v is the bias, and Q is the
cost of a step beyond the average, and the bias after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.api import evaluate
from drmdp.core.compact import MeanKernel
from drmdp.core.signs import outward
from drmdp.core.tolerance import RTOL
from drmdp.core.validation import integer
from drmdp.criteria import posed
from drmdp.errors import InputError
from drmdp.model import Model, check_model
from drmdp.policies import fixed_kernel as fixed
from drmdp.sets import Wasserstein, check_problem
from drmdp.solution import HorizonSolution, Solution
from drmdp.solution.rows import frame
from drmdp.solvers.evaluation import Evaluation
from drmdp.solvers.horizon import plan_of
from drmdp.solvers.horizon.stages import has_stages, second_outcome

STEPS = 2000
"""Of a chain followed from the start."""
NOTHING = 1e-12
"""A smaller difference of probabilities is rounding."""


@dataclass(frozen=True, eq=False)
class Values:
    """Values of a policy, (S,) each unless said; of a plan (T + 1, S), from each stage on.

    Under the mean kernel a policy is never worse than in the worst case; under a single kernel it
    may be, for nature plays means of them.

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
    ambiguity: Any,
    policy: ArrayLike,
    tol: float | None = None,
    rtol: float = RTOL,
    *,
    costs: ArrayLike = None,
    rewards: ArrayLike = None,
) -> Values:
    """Worst-case, mean-kernel and per-kernel values of a policy, also that of a `Solution`, or of a
    plan.

    Parameters
    ----------
    model : Model, or a sequence of models
        What is known, as for `drmdp.evaluate`.
    ambiguity : set, or a sequence of sets
        What is feared.
    policy : as for `drmdp.evaluate`
        What is played.
    tol, rtol : float
        Certified gap of the worst case, absolute or relative, as for `drmdp.solve`.
    costs, rewards : optional
        Another outcome of the same policy, as for `drmdp.evaluate`.
    """
    if not has_stages(model, policy):
        check_problem(model, ambiguity)
    worst = evaluate(model, ambiguity, policy, tol, rtol, costs=costs, rewards=rewards)
    means, each = (by_kernel(model, policy, kernels, costs, rewards) for kernels in ([None], None))
    return Values(worst, means[0], each)


def by_kernel(
    model: Any,
    policy: ArrayLike,
    kernels: list[Any] | None = None,
    costs: ArrayLike = None,
    rewards: ArrayLike = None,
) -> Array:
    """Value of a policy under kernels of a model, by their numbers, None for the mean kernel; under
    each by default. (M, S), of a plan (M, T + 1, S).
    """
    if has_stages(model, policy):
        stages, x = plan_of(model, Wasserstein(0.0), policy, costs=costs, rewards=rewards)
        names = [tuple(stage.kernel_names) for stage in stages.given]
        other = [t for t, kernel_names in enumerate(names) if kernel_names != names[0]]
        if other and kernels is None:
            raise InputError(f"stage {other[0]}: it has other kernels than stage 0")
        return plan_under(stages, x, kernels or range(stages.first.n_kernels))
    other_costs = costs is not None or rewards is not None
    judged = second_outcome(model, costs, rewards) if other_costs else model
    return under(judged, policy, kernels or list(range(model.n_kernels)))


def plan_under(stages: Any, policy: Array, kernels: Any) -> Array:
    """Values of a plan (T, S, A) from each stage on if all stages follow one of M kernels,
    (M, T + 1, S).
    """
    each = (fixed.stages_under(stages.models, i) for i in kernels)
    plans, first = policy[None], stages.first
    values = [fixed.plan_values(first, rows, plans, stages.final)[0] for rows in each]
    return outward(first, np.stack(values))


def under(model: Model, policy: ArrayLike, kernels: ArrayLike) -> Array:
    """Value of a policy under each of M kernels, (M, S), from exact linear systems.

    `kernels` is an (M, S, A, S) array, a `Model` with the same states and actions, or a list of
    kernels: None for the mean kernel, the number or name of an observed one, an (S, A, S) array, a
    sparse (S·A, S) matrix, the kernel of a solution.

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
    """Share of the discounted time that a policy spends in each state under a kernel, (S,); the
    mean kernel by default.

    The shares d ∝ Σ_t λ^t p_t of the distributions p_t after t steps from the start sum to 1 and
    are 0 in terminal states. Where pairs have discounts of their own, p_t loses what they take. The
    sum ends where λ^t is below 1e-6, or after `STEPS` steps.

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
    total, share = now.copy(), model.discount
    for _ in range(STEPS):
        if share < 1e-6:
            break
        now = np.where(model.terminal, 0.0, chain @ now)
        total += share * now
        share *= model.discount
    return total / (total.sum() or 1.0)


def most_visited(model: Model, policy: ArrayLike, n: int) -> IntArray:
    """Numbers of the n states, ascending, that a policy spends most time in under the mean kernel;
    all if there are no more.

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


# ---------------------------------------------------------------------- what nature changes


@dataclass(frozen=True)
class Bent:
    """A transition and its probabilities, in the mean kernel and in nature's.

    Attributes
    ----------
    state, action, next_state : names
        The transition.
    nominal : float
        Its probability in the mean kernel.
    worst : float
        Its probability in nature's.
    """

    state: Any
    action: Any
    next_state: Any
    nominal: float
    worst: float

    @property
    def change(self) -> float:
        """How much more probable nature made it."""
        return self.worst - self.nominal


def bent(
    model: Model, kernel: Any, n: int = 10, policy: ArrayLike = None, states: Any = None
) -> tuple[Bent, ...]:
    """The n transitions whose probability differs most between nature's kernel and the mean kernel,
    largest first.

    With `policy`, only of actions it plays; the kernel of a solution bends the others as well, to
    make them unattractive. With `states`, numbers of states, only from these.

    Parameters
    ----------
    model : Model
        What is known.
    kernel : (S, A, S)
        Nature's kernel, such as `solution.kernel`.
    n : int
        How many transitions.
    policy : as for `drmdp.evaluate`, optional
        Restricts them to actions that it plays.
    states : numbers of states, optional
        Restricts them to those that begin there.
    """
    check_model(model)
    count = integer("n", n, 1)
    S, A = model.n_states, model.n_actions
    played = model.available if policy is None else model.policy(policy) > 0
    if not isinstance(kernel, MeanKernel):
        kernel = fixed.matrix_of(model, kernel)
    elif kernel.shape != (S, A, S):
        raise InputError(f"kernel: expected shape {(S, A, S)}, got {kernel.shape}")
    mean = model.mean_matrix()[0]
    largest: list[tuple[float, int, int, int, float, float]] = []
    chosen = np.flatnonzero(played.any(axis=1))
    if states is not None:
        chosen = np.intersect1d(chosen, states)
    for s in chosen.tolist():
        rows, nominal = _rows(kernel, s, A), mean[s * A : (s + 1) * A].toarray()
        off = np.where(played[s][:, None], np.abs(rows - nominal), 0.0)
        for k in np.argpartition(-off, min(count, off.size) - 1, axis=None)[:count].tolist():
            a, t = divmod(k, S)
            if off[a, t] > NOTHING:
                masses = float(nominal[a, t]), float(rows[a, t])
                largest.append((-float(off[a, t]), s, a, t, *masses))
        largest = sorted(largest)[:count]
    states, actions = model.states, model.actions
    return tuple(Bent(states[s], actions[a], states[t], *masses) for _, s, a, t, *masses in largest)


def _rows(kernel: Any, s: int, n_actions: int) -> Array:
    if isinstance(kernel, MeanKernel):
        return kernel.rows(s)
    rows = kernel[s * n_actions : (s + 1) * n_actions]
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


# ---------------------------------------------------------------------- solutions


def known_model(solution: Solution, model: Model | None) -> Model | None:
    """The model of a solution, as given or as remembered, as its criterion sees it; None if
    neither.
    """
    remembered = model is None and solution.problem is not None
    known = solution.problem[0] if remembered else model
    if known is None:
        return None
    known = known if solution.criterion == "reach" else posed(known, solution.criterion)
    if not remembered and solution.fingerprint != known.fingerprint:
        raise InputError("the solution is of another model")
    return known


def q_values(solution: Solution) -> Array:
    """Q, (S, A), in the user's sign; NaN where an action is not available."""
    model = known_model(solution, None)
    if model is None:
        why = "a loaded solution does not hold its model, whose costs they need"
        raise InputError(f"q_values: {why}; solve with start=solution")
    v, gain, rate = solution.value, np.zeros(1), model.factor
    if solution.bias is not None:  # of an average: the bias after a step, less its average
        v, gain, rate = solution.bias, solution.value[:, None], 1.0
        gain = gain if model.sojourn is None else gain * model.sojourn
    q = pair_values(model, solution.kernel, outward(model, v), rate)
    return np.where(model.available, outward(model, q) + 0.0 - gain, np.nan)  # never −0.0


def pair_values(model: Model, kernel: Any, v: Array, rate: Any) -> Array:
    """Costs of each pair under a kernel, now and v (S,) afterwards at a `rate`, (S, A)."""
    costs = model.costs
    if model.next_costs:
        costs = fixed.expected_costs(model, fixed.matrix_of(model, kernel))
    return np.asarray(costs + rate * (kernel @ v))


def to_frame(solution: Solution, model: Model | None) -> object:
    """The table of a solution; see `drmdp.Solution.to_frame`."""
    values: dict[str, Any] = {name: getattr(solution, name) for name in ("value", "lower", "upper")}
    model, rows, policy = known_model(solution, model), None, np.asarray(solution.policy)
    values["nominal_value"] = None
    if model is not None:
        rows, matrices = model.pair_counts, fixed.matrices_of(model, [None])
        values["nominal_value"] = fixed.values(model, solution.policy, matrices)[0]
    return frame(solution.states, solution.actions, policy, values, rows)
