"""How probable a policy that is given is to arrive: the bounds of `drmdp.solvers.reaching` with one player less.

Where nature wants the target reached she is free, and the policy is not. Where she does not, she says what she does; then nobody is free, and the bound from
above is that of one chain, Σ_a x(s, a) y(s, a, ·).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.build import build
from drmdp.bellman.operator import Update
from drmdp.core.levels import beyond
from drmdp.core.tolerance import Tolerance
from drmdp.criteria.reach import Reach
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.solvers import far_side
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.nature_table import Proved, table
from drmdp.solvers.problem import Problem, State
from drmdp.solvers.reaching import Course, Found, Reaching, ReachProblem, levelled


def arrivals(
    model: Model, ball: AmbiguitySet, policy: Array, tolerance: Tolerance, deadline: float, threads: int | None
) -> Outcome:
    """Bounds on the probability that a policy (S, A) reaches the target of a model of reaching."""
    problem = ReachProblem(build(model, ball, "exact", threads), policy, criterion=Reach(model))
    title = "evaluating the policy"
    return run(Arriving(), problem, start=None, tolerance=tolerance, deadline=deadline, title=title)


class Arriving(Reaching):
    """The method of reaching, for a policy that is given."""

    def init(self, problem: Problem, value: Array | None) -> State:
        """Begin."""
        self._points: Iterator[State] = GivenCourse(problem).points()
        return next(self._points)


class HelpfulNature(far_side.Nature):
    """A policy (S, A) is fixed, and nature wants what it wants: values are −p."""

    def after(self, p: Array) -> tuple[Array, Array]:
        """By a proved sweep of the policy."""
        self._update = self.problem.proved(-p, self.policy)
        return -beyond(-p, self._update.lower_step, -1)[self.options.owner], self.top(p)


class GivenCourse(Course):
    """The sweeps of one problem whose policy is given."""

    def _near(self, v: Array, eps: float, newton: bool) -> Found:
        found = yield from self._newton(v, eps, self.problem.policy)
        if found is not None:
            yield found
        return found

    def _far(self, near: State, margin: float) -> Generator[State, None, Array]:
        """An upper bound on the probability."""
        problem, update = self.problem, near.update
        assert update is not None
        assert problem.policy is not None
        x, shown = problem.policy, update.nature
        players: Any
        if self.maximise == self.helps:  # nature wants the target reached
            players = (HelpfulNature if self.helps else far_side.Nature)(problem, x)
        else:
            answer = table(problem, levelled(near.value, self.width), x > 0)
            if answer is None:
                return np.where(self.live, self.side, near.value)
            S, A = x.shape
            mixed = sparse.csr_array((x.ravel(), np.arange(S * A), np.arange(0, S * A + 1, A)), shape=(S, S * A))
            players, shown = far_side.Agent(sparse.csr_array(mixed @ answer.matrix), self.live[:, None]), answer.shown
        found = far_side.bound(players, self.live, np.abs(near.value), margin, problem.checkpoint)
        if not found.holds:
            return np.where(self.live, self.side, near.value)
        value, step = -found.p if self.maximise else found.p, np.zeros(found.p.size)
        yield State(value, Update(value, step, step, x, update.nature, Proved(shown)))
        return value
