"""Rivals of a policy or a plan: current practice, if it was given, and the optimum of the mean
kernel.

A rival is judged as the policy is: its value under the mean kernel, and its worst case over the
same set, proved. Here a page computes, which reads results otherwise: the nominal optimum is solved
and its worst case evaluated, because a first screen without them says nothing of what robustness
costs and saves. At radius 0 it is what the page is about. Of a model with 10 000 states and 20
actions that takes as long as the solution itself, and an eighth of the page. Models with more than
`LARGE` probabilities are compared with what was given only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drmdp import policies
from drmdp._typing import Array
from drmdp.api import evaluate, solve
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.radius.path import CUT_SHORT
from drmdp.sets import AmbiguitySet, Wasserstein
from drmdp.solution import HorizonSolution, Solution
from drmdp.solvers.horizon import finite_horizon

LARGE = 10_000_000
SWEEPS = 10
"""About so many a solution takes: a plan of more stages counts as a larger model."""
PRACTICE = "Current practice"


@dataclass(frozen=True)
class Rival:
    """A policy with its name and values, mean over the start distribution."""

    name: str
    policy: Array
    mean: float
    worst: float


def rivals(
    solution: Solution, model: Model | None, ambiguity: AmbiguitySet | None, baseline: Any = None
) -> list[Rival]:
    """Current practice and the nominal optimum; nothing where model or set are not known, no
    optimum of large models and of runs that were cut short.
    """
    judged: list[Rival] = []
    if model is None or ambiguity is None:
        _known(baseline, "solution", "model: give model=… and ambiguity=…")
        return judged
    if solution.criterion == "reach":
        if baseline is not None:
            why = "a page about reaching a target compares no policies"
            raise InputError(f"baseline: {why}; leave it out")
        return judged
    near: Any = {"rtol": solution.asked.rtol, "criterion": solution.criterion, "progress": False}
    if baseline is not None:
        judged.append(_judged(PRACTICE, model, ambiguity, model.policy(baseline), **near))
    doubted = not ambiguity.certain and solution.status not in CUT_SHORT
    if doubted and model.n_probabilities <= LARGE:
        nominal = solve(model, Wasserstein(0.0), **near)
        judged.append(_judged(_nominal("policy"), model, ambiguity, nominal.policy, **near))
    return judged


def plan_rivals(plan: HorizonSolution, baseline: Any = None) -> list[Rival]:
    """The same for a plan."""
    judged: list[Rival] = []
    if plan.natures is None:
        _known(baseline, "plan", "models: give models=… and ambiguity=…")
        return judged
    models = list(plan.natures.stages.models)
    if baseline is not None:
        judged.append(_judged_plan(PRACTICE, plan, baseline))
    size = plan.n_stages * models[0].n_probabilities
    doubted = not all(ambiguity.certain for ambiguity in plan.natures.stages.sets)
    if doubted and plan.status not in CUT_SHORT and size <= SWEEPS * LARGE:
        nominal = finite_horizon(models, Wasserstein(0.0), final=plan.final, progress=False)
        judged.append(_judged_plan(_nominal("plan"), plan, nominal.policy))
    return judged


def again(solution: Any, model: Model, ambiguity: AmbiguitySet) -> float:
    """The certified value over another set, mean over the start: of the best policy or plan, or of
    the plan that was given.
    """
    if isinstance(solution, HorizonSolution):
        if not solution.optimal:
            return _first(_evaluated(solution, solution.policy, ambiguity))
        models = list(solution.natures.stages.models)
        return _first(finite_horizon(models, ambiguity, final=solution.final, progress=False))
    options: Any = {"rtol": solution.asked.rtol, "criterion": solution.criterion}
    value = solve(model, ambiguity, start=solution, progress=False, **options).value
    return float(model.initial @ value)


def mean_of(plan: HorizonSolution, policy: Any) -> float | None:
    """Value of a policy under the mean kernels of a plan's stages, mean over the start; None if
    they are not known.
    """
    return None if plan.natures is None else _first(_evaluated(plan, policy, Wasserstein(0.0)))


def _judged(
    name: str, model: Model, ambiguity: AmbiguitySet, policy: Array, rtol: float, **options: Any
) -> Rival:
    mean = policies.under(model, policy, [None])[0]
    options |= {"rtol": max(rtol, 1e-6), "nature": ambiguity.nature}
    worst = evaluate(model, ambiguity, policy, **options).value
    return Rival(name, policy, float(model.initial @ mean), float(model.initial @ worst))


def _judged_plan(name: str, plan: HorizonSolution, policy: Any) -> Rival:
    worst = _evaluated(plan, policy, list(plan.natures.stages.sets))
    mean = _evaluated(plan, policy, Wasserstein(0.0))
    return Rival(name, worst.policy, _first(mean), _first(worst))


def _evaluated(plan: HorizonSolution, policy: Any, sets: Any) -> Any:
    models = list(plan.natures.stages.models)
    return evaluate(models, sets, policy, progress=False, final=plan.final, discount=plan.discount)


def _first(plan: HorizonSolution) -> float:
    return float(plan.initial @ plan.value[0])


def _nominal(what: str) -> str:
    return f"The {what} that is best if nothing is doubted"


def _known(baseline: Any, what: str, cure: str) -> None:
    if baseline is not None:
        raise InputError(f"baseline: a loaded {what} does not hold its {cure}")
