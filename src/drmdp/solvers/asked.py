"""What is returned of a criterion beside bounds: expected steps, values relative to each other, and what there is to say."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.build import build
from drmdp.core.files import check_path
from drmdp.core.signs import outward
from drmdp.core.text import some
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.total import Stranded, Total, towards_the_end
from drmdp.criteria.traps import safe_radius, trapped
from drmdp.errors import InputError
from drmdp.layout.layout import lay_out
from drmdp.model import Model, changed
from drmdp.model.events import EventModel
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.base import check_set
from drmdp.solution import Status
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem
from drmdp.solvers.waiting import from_below

LISTED = 5
ROUGH = 1e-2
"""Accuracy of expected steps, relative."""
SEARCHED = 10_000
"""States up to which a radius is searched for."""


def check_method(criterion: str, name: str, method: Any, each: bool = False) -> None:
    """Refuse methods and rules that are for discounted costs."""
    if criterion == "discounted":
        if name == "first-order" and each:
            raise InputError(
                "method: 'first-order' goes with one discount for all pairs; method='auto' with one for each"
            )
        return
    if not isinstance(method, PolicyIteration):
        raise InputError(
            f"method: {name!r} goes with a discount below 1; method='auto' solves for criterion {criterion!r}"
        )
    if method.stop not in ("certified", "duality-gap"):
        raise InputError(f"stop: {method.stop!r} goes with a discount below 1; stop='certified' goes with all criteria")


def check_unread(path: Any, ball: AmbiguitySet, nature: str, start: Any, criterion: str | None) -> None:
    """Refuse what a model that is not read whole cannot be solved with."""
    check_set(ball)
    if isinstance(path, EventModel):
        check_problem(path, ball)
    else:
        check_path(path)
    if ball.facing(nature).nature != "adversarial":
        raise InputError(
            "nature: a model that is not read whole is solved against an adversarial nature only, as workers keep what sweeps leave by state and a nature that "
            "helps leaves it by pair; read the model to solve it with one"
        )
    if start is not None:
        raise InputError("start: a model that is not read whole begins from its mean kernel")
    if criterion not in (None, "discounted"):
        raise InputError(
            f"criterion: a model that is not read whole is solved for discounted costs only, got {criterion!r}; read the model to solve it"
        )


def check_ends(model: Model, ball: AmbiguitySet) -> None:
    """Refuse a total cost of states from which nothing that was seen leads to an end, if nature does not lead there."""
    if model.discount < 1 or not model.terminal.any() or isinstance(model, EventModel):
        return
    matrix, leads = model.mean_matrix()[0], "transition that was seen leads"
    if ball.nature != "adversarial":  # who helps goes wherever the set allows
        if (layout := lay_out(model, ball.fitted(model))).unlisted:
            return
        parts = np.ones(layout.indices.size), layout.indices, layout.indptr
        matrix, leads = sparse.csr_array(parts, shape=matrix.shape), "kernel of the set leads"
    try:
        towards_the_end(model, matrix)
    except Stranded as lost:
        names = some([repr(model.states[s]) for s in lost.args[0][: LISTED + 1]], LISTED)
        cure = "name where else it ends, terminal=…, or solve with discount below 1"
        raise InputError(f"discount: 1, but no {leads} from {names} to a terminal state; {cure}") from None


def steps_of(problem: Problem, policy: Array, first: Array | None) -> Array | None:
    """Upper bounds on the expected steps, or time, until a policy ends, whatever an adversarial nature does, (S,); None if they are not bounded."""
    model, ball = problem.model, problem.operator.ball
    if ball is None:
        return None
    one, plain = 1.0 * model.available if model.sojourn is None else model.sojourn, {"ends": None, "maximise": False}
    events = isinstance(model, EventModel) and ball.moves == "events"  # others take kernels
    counted = changed(model, **({"priced": False, "_prices": one} if events else {"_costs": one}), **plain)
    operator = build(counted, ball.opposed(), "exact", problem.operator.threads)
    own = Problem(operator, policy, criterion=Total(counted))
    first = first if model.sojourn is None else None
    found = run(
        PolicyIteration(), own, start=first, tolerance=Tolerance(None, ROUGH), inner=True, title="counting steps"
    )
    return found.upper if np.isfinite(found.upper).all() else None


def arriving(problem: Problem, found: Outcome, tolerance: Tolerance) -> Outcome:
    """What a run found, if its policy is known to arrive: without negative costs its sweep shows that. Where waiting is free, the lower bound needs more."""
    criterion = problem.criterion
    if not isinstance(criterion, Total) or found.best.sweeps[1] is None:
        return found
    if criterion.free and found.status is Status.precision_limit:
        found = from_below(problem, found, tolerance.goal(found.best.scale))
    if problem.model.cost_range[0] >= 0:
        return found
    if steps_of(problem, found.policy, criterion.steps) is not None:
        return found
    unknown = np.where(problem.model.terminal, found.upper, np.inf)
    status = Status.unbounded if found.status is Status.solved else found.status
    return replaced(found, upper=unknown, status=status)


def time_of(problem: Problem, found: Outcome) -> Array | None:
    """Expected steps of the policy that a run found for a total."""
    criterion = problem.criterion
    return steps_of(problem, found.policy, criterion.steps) if isinstance(criterion, Total) else None


def bias_of(model: Model, problem: Problem, found: Outcome) -> Array | None:
    """What starting in a state costs more than in others, where an average was bounded from above."""
    side = found.best.sweeps[1]
    return outward(model, side.value) if problem.criterion.name == "average" and side is not None else None


def remarks(model: Model, problem: Problem, found: Outcome) -> list[str]:
    """What there is to say of a criterion's result."""
    name, ball = problem.criterion.name, problem.operator.ball
    said = []
    if name == "average":
        if model.discount < 1:
            said.append(f"the discount {model.discount:g} is not used: a long-run average has none")
        if found.status is not Status.solved:
            said.append("the long-run average may differ between states: the bounds hold from every start")
    if isinstance(problem.criterion, Total) and len(problem.criterion.waits):
        names = some([repr(model.states[s]) for s in problem.criterion.waits[: LISTED + 1]], LISTED)
        said.append(f"waiting in {names} costs nothing; the value is that of arriving")
    if name == "total" and found.status is Status.precision_limit and np.isfinite(found.upper - found.lower).all():
        s = int(np.argmax(found.upper - found.lower))
        lower, upper = sorted(outward(model, np.array([found.lower[s], found.upper[s]])).tolist())
        steps = problem.criterion.steps  # type: ignore[attr-defined]
        long = "" if steps is None else f"; from there it takes some {steps[s]:.2g} steps to end"
        said.append(f"bounds are widest in {model.states[s]!r}, {lower:.6g} to {upper:.6g}{long}")
    if name == "total" and found.status is Status.unbounded and ball is not None:
        said += _unbounded(model, ball)
    return said


def _unbounded(model: Model, ball: object) -> list[str]:
    own = ball.fitted(model)  # type: ignore[attr-defined]
    states: list[int] = np.flatnonzero(trapped(model, own)).tolist() if own.nature == "adversarial" else []
    if not states and model.cost_range[0] >= 0:
        return ["no policy was found that is sure to end within 1e13 steps on average"]
    if not states:
        return ["costs may fall for ever: no bound from below was found, and some costs are negative"]
    names = some([repr(model.states[s]) for s in states], LISTED)
    said = f"nature can keep the process from ending when it is in {names}: no policy is sure to end there"
    radius = safe_radius(model, own) if model.n_states <= SEARCHED else None
    return [said if radius is None else f"{said}; up to radius {radius:.6g} she cannot"]
