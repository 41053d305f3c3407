"""How probable a policy that is given is to arrive."""

from __future__ import annotations

from drmdp._typing import Array
from drmdp.bellman.build import build
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.reach import Reach
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.reaching import Reaching, ReachProblem


def arrivals(
    model: Model, ball: AmbiguitySet, policy: Array, tolerance: Tolerance, deadline: float, threads: int | None
) -> Outcome:
    """Bounds on the probability that a policy (S, A) reaches the target of a model of reaching."""
    problem = ReachProblem(build(model, ball, "exact", threads), policy, criterion=Reach(model))
    title = "evaluating the policy"
    return run(Reaching(), problem, start=None, tolerance=tolerance, deadline=deadline, title=title)
