"""The verb `reach`: how probable it is to arrive."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import ArrayLike, BoolArray
from drmdp.bellman.build import build
from drmdp.core import clock
from drmdp.core.progress import showing
from drmdp.core.signs import pessimistic, sides
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import limits, state_flags, whole
from drmdp.core.vectors import dot
from drmdp.criteria.reach import Reach, model_of
from drmdp.errors import InputError, shown
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import HorizonSolution, Solution
from drmdp.solution.rows import notes_of
from drmdp.solvers.horizon import finite_horizon
from drmdp.solvers.loop import run
from drmdp.solvers.reaching import Reaching, ReachProblem
from drmdp.solvers.registry import settings_of


def reach(
    model: Model,
    ball: AmbiguitySet,
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
    """Find the policy with the greatest worst-case probability of reaching a target, and prove it; value, lower and upper are probabilities.

    Costs and the discount of the model are not used. Who never arrives has not reached the target. Nothing is assumed of the model: states that are left
    again and again, at no cost, make no bound false.

    Parameters
    ----------
    model : Model
        What is known.
    ball : set
        What is feared.
    target : (S,) bool array, state or collection of states
        What is to be reached; the process ends there.
    avoid : (S,) bool array, state or collection of states, optional
        What must not be reached before; the process ends there, too, and in terminal states of the model.
    minimise : bool
        Whether the target is to be kept away from: the least probability, against a nature that wants it reached.
    within : int, optional
        In at most so many steps. The result is then a plan, a `HorizonSolution`, whose values of stage 0 are the probabilities.
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
    check_problem(model, ball)
    tolerance = Tolerance.of(tol, rtol)
    limits(None, max_seconds)
    m = asked(model, ball, target, avoid, minimise)
    ball = ball.facing(nature)
    if within is not None:
        whole("within", within, 1)
        ends: Any = {"max_seconds": max_seconds, "threads": threads, "progress": progress, "nature": nature}
        plan = finite_horizon(m, ball, stages=within, tol=tol, rtol=rtol, **ends)
        plan.settings["criterion"] = "reach"
        return plan
    method, begin, deadline = Reaching(), clock.now(), clock.deadline(max_seconds)
    with showing(progress):
        problem = ReachProblem(build(m, ball, "exact", threads), criterion=Reach(m))
        setup = clock.now() - begin
        found = run(method, problem, start=None, tolerance=tolerance, deadline=deadline)
    lower, upper = sides(m, found.lower, found.upper)
    value = pessimistic(m, lower, upper)
    settings = {
        "method": "reach",
        **settings_of(method),
        **vars(tolerance),
        "max_iters": None,
        "max_seconds": max_seconds,
    }
    later: Any = {
        "kernel": found.best.make_kernel, "duality_gap": lambda: dot(m.initial, upper - lower), "fingerprint": lambda: m.fingerprint,
        "settings": lambda: settings | {"ball": repr(ball), "nature": ball.nature},
        "notes": lambda: notes_of(m, ball, found.policy, value), "time": lambda: None,
    }  # fmt: skip
    told = {name: getattr(found, name) for name in ("policy", "status", "history", "seconds")}
    told |= {name: getattr(found.best.nature, name, None) for name in ("kernels", "weights")}
    told |= {"setup_seconds": setup, "scale": found.best.scale, "states": m.states, "actions": tuple(m.actions)}
    told |= {"problem": (m, ball), "sweep": found.best.sweep, "sweeps": found.best.sweeps, "criterion": "reach"}
    return Solution._of(later, value=value, lower=lower, upper=upper, **told)


def asked(model: Model, ball: AmbiguitySet, target: ArrayLike, avoid: ArrayLike, minimise: bool) -> Model:
    """The model of the question, or what is wrong with it."""
    if ball.moves == "events":
        raise InputError("reach: nature moves laws of events here, and this needs kernels: take moves='states'")
    if not isinstance(minimise, bool | np.bool_):
        raise InputError(f"minimise: expected True or False, got {shown(minimise)}")
    goal: BoolArray = state_flags("target", target, model.states)
    if not goal.any():
        raise InputError("target: no state is given: name at least one that is to be reached")
    bad: BoolArray = state_flags("avoid", avoid, model.states)
    both = np.flatnonzero(goal & bad)
    if both.size:
        named = ", ".join(repr(model.states[s]) for s in both[:5].tolist()) + (", …" if both.size > 5 else "")
        raise InputError(f"target, avoid: {named} cannot be both")
    return model_of(model.stored() if isinstance(model, EventModel) else model, goal, bad, bool(minimise))
