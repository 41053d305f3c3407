"""Finitely many stages: the best plan against the worst case, and the worst case of a plan.

`stages` checks what the stages are made of, `induction` goes from the last one to the first and says what is proved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from drmdp._typing import Array, ArrayLike
from drmdp.bellman.build import DEFAULT_BACKEND
from drmdp.core import clock
from drmdp.core.compact import KernelTuple
from drmdp.core.progress import counted, showing
from drmdp.core.signs import pessimistic, sides
from drmdp.core.tolerance import RTOL, Tolerance, scale_of
from drmdp.core.validation import limits
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.solution import Status
from drmdp.solution.plan import HorizonSolution
from drmdp.solution.rows import plan_notes
from drmdp.solvers.horizon.induction import Natures, Plan
from drmdp.solvers.horizon.stages import (
    Stages,
    costs_of_stages,
    is_plan,
    is_sequence,
    length_of,
    outcome,
    policies_of,
    stages_of,
)
from drmdp.solvers.horizon.stages import stage_names as names_of

__all__ = ["finite_horizon", "has_stages", "plan_of", "second_outcome", "worst_case"]


def finite_horizon(
    model: Any,
    ball: Any,
    stages: int | None = None,
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
    half_cycle: bool = False,
    stage_names: Sequence[str] | None = None,
) -> HorizonSolution:
    """Find the policies with the least worst-case cost (greatest reward) over finitely many stages.

    Parameters
    ----------
    model : Model, or a sequence of T models
        What is known: at every stage, or of each stage, the first one first. Several models have the same states, actions and discount. One of several stages,
        as `drmdp.estimate` makes them of a log with `stage=`, stands for all of them.
    ball : set, or a sequence of T sets
        What is feared, likewise.
    stages : int
        T, how many decisions; may be left out if there are several models or sets.
    final : (S,), optional
        Values (costs or rewards, as in the model) after the last stage; 0 by default and in terminal states.
    costs : (T, S, A), (T, S, A, S) or (S, A), optional
        Costs, or rewards, of each stage, or of all alike; those of the models by default.
    discount : float in [0, 1], optional
        Instead of that of the models.
    callback : callable, optional
        Called with t after each stage, from T − 1 to 0.
    tol, rtol : float
        Decide the status, nothing else: there is one sweep a stage, as accurate as can be. It is "solved" when the gap is at most tol, or
        rtol · max(max|value|, max|c|), else "precision_limit".
    backend, max_seconds, threads, progress, nature : optional
        As for `drmdp.solve`. Stages that were not reached in time get bounds that hold for any policy.
    half_cycle : bool
        Whether half of each stage is spent in the state after it, under the same action: a stage then costs (c(s, a) + c(t, a))/2, and half of it where t is
        terminal. It is for costs that are paid all the while, not for those that fall due with the decision.
    stage_names : T names, optional
        What stages are called in tables, pictures and on the page; by default as the models say, or by their numbers.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=10, discount=1.0)
    >>> plan.policy.shape, plan.value.shape, plan.gap < 1e-6
    ((10, 8, 2), (11, 8), True)
    """
    own = stages_of(model, ball, stages, final, costs, discount, nature, half_cycle)
    ends: Any = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds, "threads": threads, "progress": progress}
    return _run(own, None, costs, backend, callback, half_cycle, stage_names, **ends)


def has_stages(model: Any, policy: Any) -> bool:
    """Whether the worst case of a policy for this model, or these models, is one over finitely many stages."""
    return is_sequence(model) or is_plan(policy)


def second_outcome(model: Model, costs: ArrayLike, rewards: ArrayLike) -> Model:
    """The model with another outcome, costs in its own sense, or rewards."""
    return outcome(model, costs if rewards is None else rewards, model.maximise if rewards is None else True)


def worst_case(model: Any, ball: Any, policy: Any, backend: str, ends: dict[str, Any], **asked: Any) -> HorizonSolution:
    """Worst-case value of a plan; see `drmdp.evaluate`. What is not given is that of a `HorizonSolution`."""
    stages, given, costs, half_cycle, names = plan_of(model, ball, policy, **asked)
    return _run(stages, given, costs, backend, None, half_cycle, names, **ends)


def plan_of(
    model: Any, ball: Any, policy: Any, final: ArrayLike = None, costs: ArrayLike = None, discount: float | None = None,
    nature: str = "adversarial", rewards: ArrayLike = None, half_cycle: bool | None = None,
) -> tuple[Stages, Array, ArrayLike, bool, Sequence[str] | None]:  # fmt: skip
    """The stages of a plan that is given, its policies, and its costs, half cycles and names."""
    maximise, names = None, None
    if costs is not None or rewards is not None:
        maximise = rewards is not None or (model[0] if is_sequence(model) else model).maximise
        costs = costs if rewards is None else rewards
    if isinstance(policy, HorizonSolution):
        final = policy.final if final is None and maximise is None else final
        costs = policy.costs if costs is None and not is_sequence(model) else costs
        discount = policy.discount if discount is None else discount
        half_cycle = policy.half_cycle if half_cycle is None else half_cycle
        names = policy.stage_names
    halves, T = bool(half_cycle), length_of(model, policy)
    stages = stages_of(model, ball, T, final, costs, discount, nature, halves, maximise)
    return stages, policies_of(stages.models, policy), costs, halves, names


def with_models(plan: HorizonSolution, models: Any, ball: Any) -> HorizonSolution:
    """A plan that was loaded, and the models and sets that it is of."""
    if models is None or ball is None:
        raise InputError("models and ball go together: give both")
    T, settings = plan.n_stages, plan.settings
    first = models if isinstance(models, Model) else models[0]
    other = plan.maximise if plan.costs is not None and plan.maximise != first.maximise else None
    own: Any = {"half_cycle": plan.half_cycle, "maximise": other}
    stages = stages_of(models, ball, T, plan.final, plan.costs, plan.discount, settings["nature"], **own)
    for name, own, given in (
        ("models", plan.fingerprints, [model.fingerprint for model in _once(stages.given)]),
        ("ball", settings["balls"], [repr(one) for one in _once(stages.balls)]),
    ):
        if [*own] * (T // len(own)) != given * (T // len(given)):
            raise InputError(f"{name}: the plan was made with others")
    found = copy.copy(plan)
    known = {"swept": -plan.value[1:] if plan.maximise else plan.value[1:], "reached": T - int(plan.kernel_passes)}
    kept = None if plan.optimal else plan.policy
    vars(found).update(natures=SimpleNamespace(stages=stages, policy=kept, **known))  # no sweep is known
    return found


def _run(
    stages: Stages, given: Any, costs: ArrayLike, backend: str, callback: Callable[[int], Any] | None, half_cycle: bool,
    names: Sequence[str] | None, tol: float | None, rtol: float, max_seconds: float | None, threads: int | None, progress: bool | None,
) -> HorizonSolution:  # fmt: skip
    tolerance, deadline = Tolerance.of(tol, rtol), clock.deadline(max_seconds)
    limits(None, max_seconds, callback)
    begin = clock.now()
    plan, T, status = Plan(stages, given), len(stages), None
    t = T
    with showing(progress), counted("stages", T) as step:
        try:
            for t in plan.fill(backend, threads, deadline):
                step()
                if callback is not None:
                    callback(t)
        except KeyboardInterrupt:
            status = Status.interrupted
    if status is None and t > 0:
        status = Status.time_limit
    plan.fill_up(t)
    lower, upper = sides(stages.first, plan.lower, plan.upper)
    value = pessimistic(stages.first, lower, upper)
    scale = max(scale_of(model, value) for model, _ in stages.distinct)
    if status is None:
        near = float((upper - lower).max()) <= tolerance.goal(scale)
        status = Status.solved if near else Status.precision_limit
    first = stages.first
    balls = [repr(ball) for ball in _once(stages.balls)]
    prints = [model.fingerprint for model in _once(stages.given)]
    natures = Natures(stages, given, plan.swept, backend, threads, t)
    found = HorizonSolution(
        value=value,
        policy=plan.policy,
        lower=lower,
        upper=upper,
        kernel_passes=float(T - t),
        status=status,
        scale=scale,
        states=first.states,
        actions=tuple(first.actions),
        initial=first.initial,
        discount=first.discount,
        maximise=first.maximise,
        optimal=given is None,
        certain=all(ball.certain for ball in stages.balls),
        settings={
            "balls": balls, "nature": stages.balls[0].nature, "backend": backend, "tol": tolerance.tol, "rtol": tolerance.rtol,
            "max_seconds": max_seconds, **_named(stages, names), **({"half_cycle": True} if half_cycle else {}),
        },
        fingerprints=tuple(prints),
        notes=(),
        seconds=clock.now() - begin,
        costs=None if costs is None else costs_of_stages(costs, T, first),
        kernels=KernelTuple(T, natures),
    )  # fmt: skip
    vars(found).update(natures=natures)
    vars(found).update(notes=plan_notes(found))
    return found


def _named(stages: Stages, given: Sequence[str] | None) -> dict[str, list[str]]:
    names = names_of(stages.given) if given is None else [str(name) for name in given]
    if names is not None and len(names) != len(stages):
        raise InputError(f"stage_names: expected one for each of {len(stages):,} stages, got {len(names):,}")
    return {} if names is None else {"stage_names": names}


def _once(given: Sequence[Any]) -> Sequence[Any]:
    """One where all stages have the same, else all."""
    return given[:1] if all(one is given[0] for one in given) else given
