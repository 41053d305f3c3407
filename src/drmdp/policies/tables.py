"""Solutions as tables, and what each action is worth.

Q(s, a) = Σ_t y(t|s, a) (c(s, a, t) + λ v(t)) with nature's kernel y = `solution.kernel` and v = `solution.value`: what an action costs now, and the returned
policy from then on, if nature keeps to her side of the saddle point. The policy draws among actions of the same Q, up to the gap. Of a
long-run average v is the bias, and Q is what a step costs beyond the average, and the bias after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.core.signs import outward
from drmdp.criteria import posed
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.policies import fixed_kernel as fixed
from drmdp.solution import Solution
from drmdp.solution.tables import frame


def known_model(solution: Solution, model: Model | None) -> Model | None:
    """The model of a solution, as given or as remembered, as its criterion sees it; None if neither."""
    found = solution.problem[0] if model is None and solution.problem is not None else model
    if found is None:
        return None
    seen = found if solution.criterion == "reach" else posed(found, solution.criterion)
    if model is not None and solution.fingerprint != seen.fingerprint:
        raise InputError("the solution is of another model")
    return seen


def q_values(solution: Solution) -> Array:
    """Q, (S, A), in the user's sign; NaN where an action is not available."""
    model = known_model(solution, None)
    if model is None:
        raise InputError(
            "q_values: a loaded solution does not hold its model, whose costs they need; solve with start=solution"
        )
    v, gain, rate = solution.value, np.zeros(1), model.factor
    if solution.bias is not None:  # of an average: what is left to come, less the average of this step
        v, gain = solution.bias, solution.value[:, None]
        gain = gain if model.sojourn is None else gain * model.sojourn
        rate = 1.0
    q = outward(model, pair_values(model, solution.kernel, outward(model, v), rate)) + 0.0 - gain  # never −0.0
    return np.where(model.available, q, np.nan)


def pair_values(model: Model, kernel: Any, v: Array, rate: Any) -> Array:
    """What each pair costs under a kernel, now and with costs v (S,) afterwards, each worth `rate`, (S, A)."""
    if model.next_costs:
        costs = fixed.expected_costs(model, fixed.matrix_of(model, kernel))
    else:
        costs = np.asarray(model.costs)
    return np.asarray(costs + rate * (kernel @ v))


def to_frame(solution: Solution, model: Model | None) -> object:
    """The table of a solution; see `drmdp.Solution.to_frame`."""
    found = known_model(solution, model)
    nominal = None if found is None else fixed.values(found, solution.policy, fixed.matrices_of(found, [None]))[0]
    values = {name: getattr(solution, name) for name in ("value", "lower", "upper")}
    rows = None if found is None else found.pair_counts
    return frame(
        solution.states, solution.actions, np.asarray(solution.policy), values | {"nominal_value": nominal}, rows
    )
