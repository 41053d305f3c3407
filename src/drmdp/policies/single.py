"""What a policy is worth if every step follows one single kernel of the model, beside its certified value over a set.

Nature plays means of the N kernels. A set may therefore be too small to hold a single kernel, and under it the policy may do worse than "in the worst
case". Whoever reads that worst case as a limit has to be told: here by how many kernels, and by which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.compact import DENSE
from drmdp.core.text import amount
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.policies import fixed_kernel as fixed
from drmdp.sets import AmbiguitySet
from drmdp.solution import HorizonSolution

WORK = 5e9
"""Floating point operations, about a second: kernels of models that take more are not judged one by one."""
SAME = 1e-9
"""Differences below this share of the values are rounding."""
DRAWN = ("draw ", "bootstrap ")
"""How `drmdp.estimate` names kernels that it drew."""


@dataclass(frozen=True, eq=False)
class Singles:
    """Values of a policy under each kernel of positive weight, mean over the start distribution, in the user's sign.

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
    """What kernels are called: draws, if they were drawn, which nobody observed."""
    return "draw" if all(isinstance(name, str) and name.startswith(DRAWN) for name in names) else "kernel"


def singles(model: Model, policy: Array, figure: float) -> Singles | None:
    """A policy (S, A) under each kernel; None where there is one only, or it would take too long."""
    used = np.flatnonzero(model.weights > 0).tolist()
    if len(used) < 2 or len(used) * _work(model) > WORK:
        return None
    found = [fixed.values(model, policy, [fixed.matrix_of(model, i)])[0] @ model.initial for i in used]
    return Singles(np.array(found), [model.kernel_names[i] for i in used], figure, model.maximise)


def _work(model: Model) -> float:
    """What one kernel takes."""
    S, A = model.available.shape
    if S > DENSE:
        return np.inf
    entries = S * A * model.n_events if isinstance(model, EventModel) else model.blocks.data.size / model.n_kernels
    return float(S**3 / 3 + 10 * entries)


def plan_singles(plan: HorizonSolution) -> Singles | None:
    """A plan under each kernel at every stage; None where stages have other kernels, or it would take too long."""
    if plan.natures is None:
        return None
    models = list(plan.natures.stages.models)
    used = np.flatnonzero(models[0].weights > 0).tolist()
    names = tuple(models[0].kernel_names)
    same = all(tuple(other.kernel_names) == names for other in models)
    if len(used) < 2 or not same or len(used) * plan.n_stages * _work(models[0]) > WORK:
        return None
    sign, final = (-1.0 if plan.maximise else 1.0), plan.natures.stages.final
    found = [sign * float(plan.initial @ fixed.plan_values(models, plan.policy, i, final)[0]) for i in used]
    figure = float(plan.initial @ plan.value[0])
    return Singles(np.array(found), [names[i] for i in used], figure, plan.maximise)


def remarks(model: Model, ball: AmbiguitySet, policy: Array, figure: float) -> tuple[str, ...]:
    """What there is to say of a certified value: that single kernels are beyond it, if so."""
    found = singles(model, policy, figure) if ball.nature == "adversarial" else None
    return _beyond(found, ball.certain)


def plan_remarks(plan: HorizonSolution) -> tuple[str, ...]:
    """The same of a plan."""
    found = plan_singles(plan) if plan.settings["nature"] == "adversarial" else None
    return _beyond(found, plan.certain)


def _beyond(found: Singles | None, certain: bool) -> tuple[str, ...]:
    if found is None or not found.beyond:
        return ()
    more = f"{'earn less' if found.maximise else 'cost more'}"
    noun = noun_of(found.names)
    beyond = f"{found.beyond:,} of {found.values.size:,} {noun}s alone {more}"
    worst = f"{found.name(found.worst)} alone {amount(float(found.values[found.worst]))}"
    if certain:
        first = f"no doubt about the data was considered: the value, {amount(found.figure)}, is that of the mean of the {noun}s and no bound"
        return (f"{first}; {beyond}, {worst}",)
    return (
        f"{beyond} than the worst case over the set, {amount(found.figure)}, for nature plays means of them: {worst}",
    )
