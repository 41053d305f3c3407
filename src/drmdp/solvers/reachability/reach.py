"""The verb `reach`: how probable it is to arrive."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core.signs import pessimistic, sides
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import integer, limits, policy_of, state_flags
from drmdp.core.vectors import dot
from drmdp.criteria.reach import Reach, model_of
from drmdp.errors import InputError, shown
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.operators.build import build
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import HorizonSolution, Solution
from drmdp.solution.rows import notes_of
from drmdp.solvers.horizon import finite_horizon, worst_case
from drmdp.solvers.horizon.stages import is_plan, length_of
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.reachability.reaching import Reaching, ReachProblem
from drmdp.solvers.registry import settings_of
from drmdp.ui import clock
from drmdp.ui.progress import showing
from drmdp.ui.text import FAINT, count, first_names

LISTED = 5
"""States that an answer names."""


def reach(
    model: Model,
    ambiguity: AmbiguitySet,
    target: ArrayLike,
    avoid: ArrayLike = None,
    minimise: bool = False,
    within: int | None = None,
    nature: str = "adversarial",
    tol: float | None = None,
    rtol: float = RTOL,
    max_seconds: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Solution | HorizonSolution:
    """Find the policy with the greatest worst-case probability of reaching a target, and prove it;
    value, lower and upper are probabilities.

    Costs and the discount of the model are not used. Who never arrives has not reached the target.
    Nothing is assumed of the model: states that are left again and again, at no cost, make no bound
    false.

    Parameters
    ----------
    model : Model
        What is known.
    ambiguity : set
        What is feared.
    target : (S,) bool array, state or collection of states
        What is to be reached; the process ends there.
    avoid : (S,) bool array, state or collection of states, optional
        What must not be reached before; the process ends there, too, and in terminal states of the
        model.
    minimise : bool
        Whether the target is to be kept away from: the least probability, against a nature that
        wants it reached.
    within : int, optional
        In at most so many steps. The result is then a plan, a `HorizonSolution`, whose values of
        stage 0 are the probabilities.
    nature : "adversarial" or "cooperative"
        Whether nature is against the agent, or helps.
    tol, rtol, max_seconds, threads, progress : optional
        As for `drmdp.solve`; the largest probability is 1, so that tol and rtol mean the same.

    Examples
    --------
    >>> import drmdp
    >>> swap = [[[0, 1, 0, 0], [0, 0, 0.3, 0.7]], [[1, 0, 0, 0], [0, 0, 0.6, 0.4]], [[0, 0, 1, 0]] * 2, [[0, 0, 0, 1]] * 2]
    >>> model = drmdp.Model(swap, costs=[[0, 0]] * 4, discount=1.0, states=["left", "right", "goal", "crash"])
    >>> found = drmdp.reach(model, drmdp.Wasserstein(0.1, "l1"), target="goal", avoid="crash")
    >>> print(f"{found.lower[0]:.5f} {found.upper[0]:.5f}")
    0.55000 0.55000
    >>> plan = drmdp.reach(model, drmdp.Wasserstein(0.1, "l1"), "goal", "crash", within=2)
    >>> print(f"in at most two steps: {plan.value[0, 0]:.5f}")
    in at most two steps: 0.55000
    """
    check_problem(model, ambiguity)
    tolerance = Tolerance.of(tol, rtol)
    limits(None, max_seconds)
    m = asked(model, ambiguity, target, avoid, minimise)
    ambiguity = ambiguity.facing(nature)
    if within is not None:
        integer("within", within, 1)
        ends: Any = {"max_seconds": max_seconds, "threads": threads, "progress": progress}
        ends |= {"tol": tol, "rtol": rtol, "nature": nature}
        return _answered(finite_horizon(m, ambiguity, stages=within, **ends), m, avoid, ambiguity)
    begin, stop = clock.now(), {"tolerance": tolerance, "deadline": clock.deadline(max_seconds)}
    with showing(progress):
        found = arrivals(m, ambiguity, None, threads, **stop)
        setup = clock.now() - begin - found.seconds
    lower, upper = sides(m, found.lower, found.upper)
    value, best = pessimistic(m, lower, upper), found.best
    settings = {"method": "reach", **settings_of(Reaching()), **vars(tolerance)}
    settings |= {"max_iters": None, "max_seconds": max_seconds}
    later: Any = {"kernel": best.make_kernel, "time": lambda: None}
    later |= {"duality_gap": lambda: dot(m.initial, upper - lower)}
    later |= {"fingerprint": lambda: m.fingerprint}
    later |= {"notes": lambda: notes_of(m, ambiguity, found.policy, value)}
    faced = {"nature": ambiguity.nature, "answer": answer(m, avoid, ambiguity, value)}
    later |= {"settings": lambda: settings | {"ambiguity": repr(ambiguity)} | faced}
    fields = {name: getattr(found, name) for name in ("policy", "status", "history", "seconds")}
    fields |= {name: getattr(best, name) for name in ("scale", "sweep", "sweeps")}
    fields |= {name: getattr(best.nature, name, None) for name in ("kernels", "weights")}
    fields |= {"states": m.states, "actions": tuple(m.actions), "setup_seconds": setup}
    fields |= {"problem": (m, ambiguity), "criterion": "reach"}
    return Solution._of(later, value=value, lower=lower, upper=upper, **fields)


def reached_within(
    model: Model,
    ambiguity: AmbiguitySet,
    policy: Any,
    question: tuple[ArrayLike, ArrayLike, bool],
    within: int | None,
    nature: str,
    backend: str,
    ends: dict[str, Any],
) -> HorizonSolution:
    """Bounds on the probability that a plan reaches a target, or that a policy does in so many
    steps; `question` is target, avoid and minimise.
    """
    check_problem(model, ambiguity)
    m, faced = asked(model, ambiguity, *question), ambiguity.facing(nature)
    if is_plan(policy):
        T = length_of(m, policy)
        if within not in (None, T):
            raise InputError(f"within: the plan has {T:,} stages, got {shown(within)}")
        plan = policy_of(policy, m)  # its own ends may be those of another question
    else:
        plan = [m.policy(policy)] * integer("within", within, 1)
    return _answered(worst_case(m, faced, plan, backend, ends), m, question[1], faced)


def _answered(
    plan: HorizonSolution, model: Model, avoid: ArrayLike, ambiguity: AmbiguitySet
) -> HorizonSolution:
    """A plan for a model of reaching that says what its values are."""
    said = answer(model, avoid, ambiguity, plan.value[0], plan.n_stages)
    plan.settings.update(criterion="reach", answer=said)
    return plan


def arrivals(
    model: Model, ambiguity: AmbiguitySet, policy: Array | None, threads: int | None, **ends: Any
) -> Outcome:
    """Bounds on the probability that the target of a model of reaching is reached, by a policy (S,
    A) if one is given; `ends` are those of `drmdp.solvers.loop.run`.
    """
    operator = build(model, ambiguity, "exact", threads)
    problem = ReachProblem(operator, policy, criterion=Reach(model))
    return run(Reaching(), problem, start=None, **ends)


def asked(
    model: Model, ambiguity: AmbiguitySet, target: ArrayLike, avoid: ArrayLike, minimise: bool
) -> Model:
    """The model of the question, or what is wrong with it."""
    if ambiguity.moves == "events":
        moves = "nature moves laws of events here, and this needs kernels"
        raise InputError(f"reach: {moves}: take moves='states'")
    if not isinstance(minimise, bool | np.bool_):
        raise InputError(f"minimise: expected True or False, got {shown(minimise)}")
    goal: BoolArray = state_flags("target", target, model.states)
    if not goal.any():
        raise InputError("target: no state is given: name at least one that is to be reached")
    bad: BoolArray = state_flags("avoid", avoid, model.states)
    both = [repr(model.states[s]) for s in np.flatnonzero(goal & bad)[:6].tolist()]
    if both:
        raise InputError(f"target, avoid: {first_names(both, 5)} cannot be both")
    stored = model.stored() if isinstance(model, EventModel) else model
    return model_of(stored, goal, bad, bool(minimise))


def answer(
    m: Model, avoid: ArrayLike, ambiguity: AmbiguitySet, value: Array, within: int | None = None
) -> str:
    """What the probabilities (S,) of a model of reaching say, in words: of what, by when, and on
    which side they bound it.
    """
    assert m.ends is not None
    goal, bad = _any_of(m, m.ends != 0), state_flags("avoid", avoid, m.states)
    probability = dot(m.initial, value)
    if m.maximise:
        does, side = f"reaches {goal}", f"at least {_six(probability, ROUND_FLOOR)}"
    else:
        does = f"reaches {goal}, which is to be avoided,"
        probability = max(probability, FAINT) if probability > 0 else 0.0
        side = f"at most {_six(probability, ROUND_CEILING)}"
    does += f" before {_any_of(m, bad)}" if bad.any() else ""
    does += "" if within is None else f" within {count(within, 'step')}"
    helps = ambiguity.nature == "cooperative"
    case = "if nature helps" if helps else "whatever nature does"
    case = "under the mean kernel" if ambiguity.certain else case
    return f"from the start, the policy {does} with probability {side}, {case}"


def _six(probability: float, rounding: str) -> str:
    """Six digits that are a bound, too, but for what is the rounding of one."""
    text = repr(round(probability, 12))
    return f"{float(Context(prec=6, rounding=rounding).create_decimal(text)):.6g}"


def _any_of(model: Model, flags: BoolArray) -> str:
    """The first of some states, in words."""
    found = np.flatnonzero(flags)
    names = [model.states[s] for s in found[:LISTED].tolist()]
    words = [name if isinstance(name, str) else f"state {name!r}" for name in names]
    words += [f"{found.size - LISTED:,} more"] if found.size > LISTED else []
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
