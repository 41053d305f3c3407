"""What is optimised, and what a sweep proves of it.

A sweep at v gives L − v ≤ F_y(v) − v and F^x(v) − v ≤ U − v, proved by `drmdp.certificate`. A
criterion turns such steps into bounds on what is asked for, and owns whatever else would say
1/(1−λ) of a discounted cost:

* `discounted`: Σ λ^t c_t. One sweep bounds both sides: V^x ≤ U + λ/(1−λ) max(U − v), v* ≥ L +
λ/(1−λ) min(L − v).
* `total`: what it costs until a terminal state, discount 1, of policies that arrive. A sweep at U
with F^x(U) < U bounds from above, one at L with
  F_y(L) ≥ L from below. `Solution.time` bounds the expected steps.
* `average`: cost a step in the long run. min (F_y(h) − h) and max (F^x(h) − h) bound it from every
start; `Solution.bias` is the h of the upper bound.
"""

from __future__ import annotations

import math
from typing import Any

from drmdp.core.tolerance import Tolerance
from drmdp.criteria.average import Average
from drmdp.criteria.base import Criterion, Sides
from drmdp.criteria.discounted import Discounted
from drmdp.criteria.total import Total
from drmdp.errors import InputError, shown
from drmdp.model import Model, changed

TINY = 1e-318

CRITERIA: dict[str, Any] = {kind.name: kind for kind in (Discounted, Total, Average)}
"""Criteria by name, each made of a model."""
__all__ = ["CRITERIA", "Criterion", "Sides", "criterion_of", "named", "near", "posed"]


def criterion_of(model: Model, name: str | None = None) -> Criterion:
    """The criterion of a model, by name, or the one that its discount says."""
    criterion: Criterion = CRITERIA[named(model, name)](model)
    return criterion


def named(model: Model, name: str | None) -> str:
    """The name of a criterion that was asked for."""
    name = ("discounted" if model.discount < 1 else "total") if name is None else name
    if not isinstance(name, str) or name not in CRITERIA:
        known = ", ".join(map(repr, CRITERIA))
        raise InputError(f"criterion: expected one of {known}, got {shown(name)}")
    return name


def posed(model: Model, name: str | None) -> Model:
    """The model as a criterion sees it, after refusing what it does not go with."""
    name = named(model, name)
    if name == "average":
        if model.terminal.any():
            cure = "solve the total cost, with discount=1, or leave out its terminal states"
            raise InputError(f"criterion: the average cost of a process that ends is 0; {cure}")
        if model.discount == 1 and model.discounts is None:
            return model
        return changed(model, discount=1.0, discounts=None)
    if model.discounts is not None and model.discount == 1:
        cure = "give all a discount below 1, such as 1 - 1e-9, or all 1"
        mixed = "1 for some pairs and less for others, which is not solved"
        raise InputError(f"discount: {mixed}: {cure}")
    needed = {"discounted": "a discount below 1", "total": "the discount 1"}[name]
    if (name == "total") != (model.discount == 1):
        given = f"and that of the model is {model.discount:g}"
        cure = "drmdp convert --discount gives a file another"
        raise InputError(f"criterion: {name!r} needs {needed}, {given}; {cure}")
    if name == "total" and not model.terminal.any():
        cure = "say where the process ends (`terminal`), or solve with criterion='average'"
        raise InputError(f"discount: 1 needs terminal states; {cure}")
    return model


def near(criterion: Criterion, share: float) -> Tolerance:
    """A share of what values can be at most; of what they are, where that is not known."""
    most = max(map(abs, criterion.range))
    return Tolerance(max(share * most, TINY)) if math.isfinite(most) else Tolerance(None, share)
