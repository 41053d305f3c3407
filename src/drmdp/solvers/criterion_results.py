"""Results of a criterion beside bounds: expected steps, relative values, and remarks; and the
refusals before a run.
"""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core.signs import outward
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.total import Stranded, Total, towards_the_end
from drmdp.criteria.traps import safe_radius, trapped
from drmdp.errors import InputError
from drmdp.io.files import check_path
from drmdp.layout.layout import lay_out
from drmdp.model import Model, changed
from drmdp.model.events import EventModel
from drmdp.operators.build import build
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.base import check_set
from drmdp.solution import Status
from drmdp.solvers.free_waiting import from_below
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem
from drmdp.solvers.stopping import CERTIFYING
from drmdp.ui.text import first_names

LISTED = 5
ROUGH = 1e-2
"""Accuracy of expected steps, relative."""
SEARCHED = 10_000
"""States up to which a radius is searched for."""
COOPERATIVE = (
    "nature: a model that is not read whole is solved against an adversarial nature only, "
    "as workers keep what sweeps leave by state and a nature that helps leaves it by pair; "
    "read the model to solve it with one"
)


def check_method(criterion: str, name: str, method: Any, each: bool = False) -> None:
    """Refuse methods and rules that are for discounted costs."""
    wrong, needs = "", "a discount below 1"
    if criterion == "discounted":
        if name == "first-order" and each:
            needs = "one discount for all pairs"
            wrong, cure = f"method: {name!r}", "method='auto' with one for each"
    elif not isinstance(method, PolicyIteration):
        wrong, cure = f"method: {name!r}", f"method='auto' solves for criterion {criterion!r}"
    elif method.stop not in CERTIFYING:
        wrong, cure = f"stop: {method.stop!r}", "stop='certified' goes with all criteria"
    if wrong:
        raise InputError(f"{wrong} goes with {needs}; {cure}")


def check_unread(
    path: Any, ambiguity: AmbiguitySet, nature: str, start: Any, criterion: str | None
) -> None:
    """Refuse options that a model that is not read into memory cannot be solved with."""
    check_set(ambiguity)
    if isinstance(path, EventModel):
        check_problem(path, ambiguity)
    else:
        check_path(path)
    if ambiguity.facing(nature).nature != "adversarial":
        raise InputError(COOPERATIVE)
    unread = "a model that is not read whole"
    if start is not None:
        raise InputError(f"start: {unread} begins from its mean kernel")
    if criterion not in (None, "discounted"):
        only = f"{unread} is solved for discounted costs only, got {criterion!r}"
        raise InputError(f"criterion: {only}; read the model to solve it")


def check_ends(model: Model, ambiguity: AmbiguitySet) -> None:
    """Refuse a total cost of states from which no observed transition leads to a terminal state, if
    no kernel of the set does.
    """
    if model.discount < 1 or not model.terminal.any() or isinstance(model, EventModel):
        return
    matrix, leads = model.mean_matrix()[0], "transition that was seen leads"
    if ambiguity.nature != "adversarial":  # who helps goes wherever the set allows
        if (layout := lay_out(model, ambiguity.fitted(model))).unlisted:
            return
        parts = np.ones(layout.indices.size), layout.indices, layout.indptr
        matrix, leads = sparse.csr_array(parts, shape=matrix.shape), "kernel of the set leads"
    try:
        towards_the_end(model, matrix)
    except Stranded as lost:
        names = _named(model, lost.args[0])
        no_end = f"discount: 1, but no {leads} from {names} to a terminal state"
        cure = "name where else it ends (`terminal`), or solve with discount below 1"
        raise InputError(f"{no_end}; {cure}") from None


def steps_of(problem: Problem, policy: Array, first: Array | None) -> Array | None:
    """Upper bounds on the expected steps, or time, until a policy ends, whatever an adversarial
    nature does, (S,); None if they are not bounded.
    """
    model, ambiguity = problem.model, problem.operator.ambiguity
    if ambiguity is None:
        return None
    plain = model.sojourn is None
    times = 1.0 * model.available if plain else model.sojourn
    events = isinstance(model, EventModel) and ambiguity.moves == "events"  # others take kernels
    costs: Any = {"priced": False, "_prices": times} if events else {"_costs": times}
    counted = changed(model, **costs, ends=None, maximise=False)
    operator = build(counted, ambiguity.opposed(), "exact", problem.operator.threads)
    steps = Problem(operator, policy, criterion=Total(counted))
    inner: Any = {"tolerance": Tolerance(None, ROUGH), "inner": True, "title": "counting steps"}
    upper = run(PolicyIteration(), steps, start=first if plain else None, **inner).upper
    return upper if np.isfinite(upper).all() else None


def arriving(problem: Problem, outcome: Outcome, tolerance: Tolerance) -> Outcome:
    """The outcome of a run with bounds that hold: unknown from above if the policy is not sure to
    arrive, which sweeps show only without negative costs; and better from below where waiting is
    free.
    """
    criterion = problem.criterion
    if not isinstance(criterion, Total) or outcome.best.sweeps[1] is None:
        return outcome
    if criterion.free and outcome.status is Status.precision_limit:
        outcome = from_below(problem, outcome, tolerance.goal(outcome.best.scale))
    if problem.model.cost_range[0] >= 0:
        return outcome
    if steps_of(problem, outcome.policy, criterion.steps) is not None:
        return outcome
    unknown = np.where(problem.model.terminal, outcome.upper, np.inf)
    status = Status.unbounded if outcome.status is Status.solved else outcome.status
    return replaced(outcome, upper=unknown, status=status)


def time_of(problem: Problem, outcome: Outcome) -> Array | None:
    """Expected steps of the policy of a run for a total."""
    criterion, policy = problem.criterion, outcome.policy
    return steps_of(problem, policy, criterion.steps) if isinstance(criterion, Total) else None


def bias_of(model: Model, problem: Problem, outcome: Outcome) -> Array | None:
    """Relative values of starts, where an average was bounded from above."""
    side, average = outcome.best.sweeps[1], problem.criterion.name == "average"
    return outward(model, side.value) if average and side is not None else None


def remarks(model: Model, problem: Problem, outcome: Outcome) -> list[str]:
    """Remarks on the result of a criterion."""
    criterion, ambiguity, said = problem.criterion, problem.operator.ambiguity, []
    status, width = outcome.status, outcome.upper - outcome.lower
    if criterion.name == "average" and model.discount < 1:
        said.append(f"the discount {model.discount:g} is not used: a long-run average has none")
    if criterion.name == "average" and status is not Status.solved:
        differs = "the long-run average may differ between states"
        said.append(f"{differs}: the bounds hold from every start")
    if not isinstance(criterion, Total):
        return said
    if len(criterion.waits):
        names = _named(model, criterion.waits)
        said.append(f"waiting in {names} costs nothing; the value is that of arriving")
    if status is Status.precision_limit and np.isfinite(width).all():
        s, steps = int(np.argmax(width)), criterion.steps
        bounds = np.array([outcome.lower[s], outcome.upper[s]])
        lower, upper = sorted(outward(model, bounds).tolist())
        long = "" if steps is None else f"; from there it takes some {steps[s]:.2g} steps to end"
        said.append(f"bounds are widest in {model.states[s]!r}, {lower:.6g} to {upper:.6g}{long}")
    if status is Status.unbounded and ambiguity is not None:
        said.append(_unbounded(model, ambiguity.fitted(model)))
    return said


def _named(model: Model, states: Any) -> str:
    return first_names([repr(model.states[s]) for s in states[: LISTED + 1]], LISTED)


def _unbounded(model: Model, ambiguity: AmbiguitySet) -> str:
    """Why no total was found."""
    adversary = ambiguity.nature == "adversarial"
    states = np.flatnonzero(trapped(model, ambiguity)) if adversary else ()
    if len(states):
        trap = "nature can keep the process from ending when it is in"
        remark = f"{trap} {_named(model, states)}: no policy is sure to end there"
        radius = safe_radius(model, ambiguity) if model.n_states <= SEARCHED else None
        return remark if radius is None else f"{remark}; up to radius {radius:.6g} she cannot"
    if model.cost_range[0] >= 0:
        return "no policy was found that is sure to end within 1e13 steps on average"
    return "costs may fall for ever: no bound from below was found, and some costs are negative"
