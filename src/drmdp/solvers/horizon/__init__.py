"""Finite horizons: the best plan against the worst case, and the worst case of a plan.

`stages` checks models, sets and costs of the stages, `induction` goes from the last one to the
first with proved bounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from drmdp._typing import Array, ArrayLike
from drmdp.core.compact import KernelTuple
from drmdp.core.signs import pessimistic, sides
from drmdp.core.tolerance import RTOL, Tolerance, scale_of
from drmdp.core.validation import limits
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.operators.build import DEFAULT_BACKEND
from drmdp.solution import Status
from drmdp.solution.plan import HorizonSolution
from drmdp.solution.rows import plan_notes
from drmdp.solvers.horizon.induction import Natures, StageBounds
from drmdp.solvers.horizon.stages import Stages, is_sequence, length_of, policies_of, stages_of
from drmdp.ui import clock
from drmdp.ui.progress import counted, showing

__all__ = ["finite_horizon", "plan_of", "with_models", "worst_case"]
FIRST = "states", "initial", "discount", "maximise"
"""What a plan tells of its first model."""


def finite_horizon(
    model: Any,
    ambiguity: Any,
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
        What is known: at every stage, or of each stage, the first one first. Several models have
        the same states, actions and discount. One of several stages, as `drmdp.estimate` makes them
        of a log with `stage=`, stands for all of them.
    ambiguity : set, or a sequence of T sets
        What is feared, likewise.
    stages : int
        T, how many decisions; may be left out if there are several models or sets.
    final : (S,), optional
        Values (costs or rewards, as in the model) after the last stage; 0 by default and in
        terminal states.
    costs : (T, S, A), (T, S, A, S) or (S, A), optional
        Costs, or rewards, of each stage, or of all alike; those of the models by default.
    discount : float in [0, 1], optional
        Instead of that of the models.
    callback : callable, optional
        Called with t after each stage, from T − 1 to 0.
    tol, rtol : float
        Decide the status, nothing else: there is one sweep a stage, as accurate as can be. It is
        "solved" when the gap is at most tol, or
        rtol · max(max|value|, max|c|), else "precision_limit".
    backend, max_seconds, threads, progress, nature : optional
        As for `drmdp.solve`. Stages that were not reached in time get bounds that hold for any
        policy.
    half_cycle : bool
        Whether half of each stage is spent in the state after it, under the same action: a stage
        then costs (c(s, a) + c(t, a))/2, and half of it where t is terminal. It is for costs that
        are paid all the while, not for those that fall due with the decision.
    stage_names : T names, optional
        What stages are called in tables, pictures and on the page; by default as the models say, or
        by their numbers.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=10, discount=1.0)
    >>> plan.policy.shape, plan.value.shape, plan.gap < 1e-6
    ((10, 8, 2), (11, 8), True)
    """
    changes: Any = {"costs": costs, "discount": discount, "half_cycle": half_cycle}
    problem = stages_of(model, ambiguity, stages, final, nature, stage_names, **changes)
    ends: Any = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds}
    ends |= {"threads": threads, "progress": progress}
    return _run(problem, None, backend, callback, ends)


def worst_case(
    model: Any, ambiguity: Any, policy: Any, backend: str, ends: dict[str, Any], **asked: Any
) -> HorizonSolution:
    """Worst-case value of a plan; see `drmdp.evaluate`. Defaults are those of a
    `HorizonSolution`.
    """
    return _run(*plan_of(model, ambiguity, policy, **asked), backend, None, ends)


def plan_of(
    model: Any,
    ambiguity: Any,
    policy: Any,
    final: ArrayLike = None,
    costs: ArrayLike = None,
    discount: float | None = None,
    nature: str = "adversarial",
    rewards: ArrayLike = None,
    half_cycle: bool | None = None,
) -> tuple[Stages, Array]:
    """The stages of a plan, and its policies."""
    maximise, names = None, None
    if costs is not None or rewards is not None:
        maximise = rewards is not None or (model[0] if is_sequence(model) else model).maximise
        costs = costs if rewards is None else rewards
    if isinstance(policy, HorizonSolution) and policy.noun != "probability":
        final = policy.final if final is None and maximise is None else final
        costs = policy.costs if costs is None and not is_sequence(model) else costs
        discount = policy.discount if discount is None else discount
        half_cycle = policy.half_cycle if half_cycle is None else half_cycle
        names = policy.stage_names
    changes: Any = {"costs": costs, "discount": discount, "half_cycle": bool(half_cycle)}
    T, changes["maximise"] = length_of(model, policy), maximise
    stages = stages_of(model, ambiguity, T, final, nature, names, **changes)
    return stages, policies_of(stages.models, policy)


def with_models(plan: HorizonSolution, models: Any, ambiguity: Any) -> HorizonSolution:
    """A loaded plan with the models and sets that it was made with."""
    if models is None or ambiguity is None:
        raise InputError("models and ball go together: give both")
    T, settings = plan.n_stages, plan.settings
    first = models if isinstance(models, Model) else models[0]
    other = plan.maximise if plan.costs is not None and plan.maximise != first.maximise else None
    changes: Any = {name: getattr(plan, name) for name in ("costs", "discount", "half_cycle")}
    changes["maximise"] = other
    stages = stages_of(models, ambiguity, T, plan.final, settings["nature"], **changes)
    prints = [model.fingerprint for model in _once(stages.given)]
    sets = [repr(each) for each in _once(stages.sets)]
    pairs = ("models", plan.fingerprints, prints), ("ambiguity", settings["sets"], sets)
    for name, saved, now in pairs:
        if [*saved] * (T // len(saved)) != now * (T // len(now)):
            raise InputError(f"{name}: the plan was made with others")
    swept = -plan.value[1:] if plan.maximise else plan.value[1:]
    policy, reached = None if plan.optimal else plan.policy, T - int(plan.kernel_passes)
    copied = copy.copy(plan)  # its sweeps are unknown
    vars(copied).update(
        natures=SimpleNamespace(stages=stages, policy=policy, swept=swept, reached=reached)
    )
    return copied


def _run(
    stages: Stages, fixed: Any, backend: str, callback: Any, ends: dict[str, Any]
) -> HorizonSolution:
    tolerance, threads = Tolerance.of(ends["tol"], ends["rtol"]), ends["threads"]
    max_seconds = ends["max_seconds"]
    limits(None, max_seconds, callback)
    begin, deadline, T = clock.now(), clock.deadline(max_seconds), len(stages)
    plan, t, status = StageBounds(stages, fixed), T, None
    with showing(ends["progress"]), counted("stages", T) as step:
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
    settings: Any = {"sets": [repr(ambiguity) for ambiguity in _once(stages.sets)]}
    settings |= {"nature": stages.sets[0].nature, "backend": backend, **vars(tolerance)}
    settings |= {"max_seconds": max_seconds}
    settings |= {} if stages.names is None else {"stage_names": stages.names}
    settings |= {"half_cycle": True} if stages.half_cycle else {}
    natures = Natures(stages, fixed, plan.swept, backend, threads, t)
    fields: Any = {name: getattr(first, name) for name in FIRST}
    fields |= {"value": value, "policy": plan.policy, "lower": lower, "upper": upper}
    fields |= {"actions": tuple(first.actions), "optimal": fixed is None, "notes": ()}
    solution = HorizonSolution(
        **fields,
        kernel_passes=float(T - t),
        status=status,
        scale=scale,
        certain=all(ambiguity.certain for ambiguity in stages.sets),
        settings=settings,
        fingerprints=tuple(model.fingerprint for model in _once(stages.given)),
        seconds=clock.now() - begin,
        costs=stages.costs,
        kernels=KernelTuple(T, natures),
    )
    vars(solution).update(natures=natures)
    vars(solution).update(notes=plan_notes(solution))
    return solution


def _once(items: Sequence[Any]) -> Sequence[Any]:
    """The first item where all stages have the same, else all."""
    return items[:1] if all(item is items[0] for item in items) else items
