"""Values of a policy if every step follows one single kernel of the model, beside its certified
value over a set.

Nature plays means of the N kernels. A set may therefore be too small to hold a single kernel, and
under it the policy may do worse than "in the worst case". Whoever reads that worst case as a limit
has to be told: here by how many kernels, and by which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.compact import DENSE
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.kernel_problems import Staged
from drmdp.sets import AmbiguitySet
from drmdp.solution import HorizonSolution
from drmdp.ui.text import amount

WORK = 5e9
"""Floating point operations, about a second: kernels of models that take more are not judged one by
one.
"""
SAME = 1e-9
"""Differences below this share of the values are rounding."""
DRAWN = ("draw ", "bootstrap ")
"""How `drmdp.estimate` names kernels that it drew."""


@dataclass(frozen=True, eq=False)
class Singles:
    """Values of a policy under each kernel of positive weight, mean over the start distribution, in
    the user's sign.

    Attributes
    ----------
    values : (K,)
        One for each of them.
    names : sequence
        What they are called.
    figure : float
        The certified value of the policy, which they are compared with.
    maximise : bool
        Whether values are rewards.
    """

    values: Array
    names: Sequence[Any]
    figure: float
    maximise: bool

    @property
    def worst(self) -> int:
        """Number of the kernel that is worst for the policy."""
        return int(self.values.argmin() if self.maximise else self.values.argmax())

    @property
    def best(self) -> int:
        """Number of the kernel that is best for it."""
        return int(self.values.argmax() if self.maximise else self.values.argmin())

    @property
    def beyond(self) -> int:
        """How many kernels are worse than the certified value."""
        loss = (self.figure - self.values) if self.maximise else (self.values - self.figure)
        return int((loss > SAME * max(abs(self.figure), float(np.abs(self.values).max()))).sum())

    def name(self, k: int) -> str:
        """Kernel k of these, by its name."""
        name, noun = self.names[k], noun_of(self.names)
        return str(name) if noun == "draw" else f"{noun} {name}"


def noun_of(names: Iterable[Any]) -> str:
    """The noun of kernels: "draw" if they were drawn, which nobody observed, else "kernel"."""
    drawn = all(isinstance(name, str) and name.startswith(DRAWN) for name in names)
    return "draw" if drawn else "kernel"


def singles(model: Model, policy: Array, figure: float) -> Singles | None:
    """A policy (S, A) under each kernel; None of a single kernel, or where it takes too long."""
    matrices = (fixed.matrix_of(model, i) for i in _used(model, 1))
    means = [fixed.values(model, policy, [matrix])[0] @ model.initial for matrix in matrices]
    return _singles(model, means, figure)


def _singles(model: Model, means: list[float], figure: float) -> Singles | None:
    """Values under each kernel of positive weight; none if none were judged."""
    names = [model.kernel_names[i] for i in np.flatnonzero(model.weights > 0).tolist()]
    return Singles(np.array(means), names, figure, model.maximise) if means else None


def _used(model: Model, n_stages: int) -> list[int]:
    """Numbers of the kernels of positive weight; none where there is one, or it takes too long."""
    (S, A), used = model.available.shape, np.flatnonzero(model.weights > 0).tolist()
    if len(used) < 2 or S > DENSE:
        return []
    if isinstance(model, EventModel):
        entries: float = S * A * model.n_events
    else:
        entries = model.blocks.data.size / model.n_kernels
    return [] if len(used) * n_stages * (S**3 / 3 + 10 * entries) > WORK else used


def plan_singles(plan: HorizonSolution) -> Singles | None:
    """A plan under each kernel at every stage; None where stages have other kernels, or it would
    take too long.
    """
    if plan.natures is None:
        return None
    models = list(plan.natures.stages.models)
    kernels = {(tuple(model.kernel_names), model.weights.tobytes()) for model in models}
    used = _used(models[0], plan.n_stages) if len(kernels) == 1 else []
    if not used:
        return None
    sign = -1.0 if plan.maximise else 1.0
    problem = Staged(models, sign * plan.final)
    means = [sign * float(problem.values(problem.kernel(i), plan.policy[None])[0]) for i in used]
    return _singles(models[0], means, float(plan.initial @ plan.value[0]))


def remarks(model: Model, ambiguity: AmbiguitySet, policy: Array, figure: float) -> tuple[str, ...]:
    """A remark on a certified value that single kernels are beyond it, if so."""
    alone = singles(model, policy, figure) if ambiguity.nature == "adversarial" else None
    return _beyond(alone, ambiguity.certain)


def plan_remarks(plan: HorizonSolution) -> tuple[str, ...]:
    """The same of a plan."""
    alone = plan_singles(plan) if plan.settings["nature"] == "adversarial" else None
    return _beyond(alone, plan.certain)


def _beyond(alone: Singles | None, certain: bool) -> tuple[str, ...]:
    if alone is None or not alone.beyond:
        return ()
    more, noun = "earn less" if alone.maximise else "cost more", noun_of(alone.names)
    beyond = f"{alone.beyond:,} of {alone.values.size:,} {noun}s alone {more}"
    worst = f"{alone.name(alone.worst)} alone {amount(float(alone.values[alone.worst]))}"
    figure = amount(alone.figure)
    if certain:
        mean = f"the value, {figure}, is that of the mean of the {noun}s and no bound"
        return (f"no doubt about the data was considered: {mean}; {beyond}, {worst}",)
    case = f"{beyond} than the worst case over the set, {figure}"
    return (f"{case}, for nature plays means of them: {worst}",)
