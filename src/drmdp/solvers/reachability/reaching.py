"""The probability of reaching a target, certified from both sides.

**Near side**, where bounds are strict: the lower bound on the probability. Newton's method on v =
G(v) = clip(λ F(v) ± ε), a step of which costs ε and is discounted by λ = 1 − ε, so that nobody goes
round in circles and every system is regular; from a discounted value, where nobody does either. ε
is such that it adds up to a fraction of the goal over the expected time until the end. Between two
of Newton's steps there are plain ones, v ← G(v), which cost little where rows are short: what is
played spreads by them, and two players who go on answering each other are stopped by more of them.
Where that does not settle, nature alone is answered for one policy after the other (Hoffman–Karp).

**Far side**: `drmdp.solvers.reachability.far_side`, from a point above, at which those who do not
want the target reached are in a hurry. Against the agent who wants to arrive nature has to say what
she does (`drmdp.solvers.reachability.nature_table`); with him, or against one who does not want to,
she is free; where both do not want to, or a policy is given, nobody is.

Bounds that are too far apart are found again with a smaller ε.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.certificate.dense import Bounds
from drmdp.core.compact import DENSE
from drmdp.core.levels import ended
from drmdp.criteria.end_components import backward_graph
from drmdp.operators.operator import Update
from drmdp.solvers.problem import MethodState, Problem, Verdict
from drmdp.solvers.reachability import far_side
from drmdp.solvers.reachability.nature_table import FAINT, Proved, table

EARLY, START = 1 - 1e-6, 0.1
"""Discount of a start, and what a residual may be there: less than it costs to go round in
circles.
"""
MOST, POLICIES, TRIES = 40, 20, 4
"""Newton points of one ε, policies of Hoffman and Karp, and values of ε."""
FREE, ACCEPT, PLAIN, LONGEST = 6, 0.7, 6, 400
"""Newton points that are kept whatever they show, what the next ones must come down to, plain steps
between them in large models, or where they do not, and how many there may be."""
TINY, LOOSEST = 1e-13, 0.1
"""The least ε, if proofs allow it; a goal that is larger is this."""
Found = Generator[MethodState, None, MethodState | None]
"""Sweeps, and the one that was looked for."""


def steps_to(matrix: Any, goal: BoolArray) -> Array:
    """From where a chain, or rows (n·S, S) of n options each, reach some states, (S,): in how many
    steps, infinitely many from where they do not.
    """
    from scipy.sparse.csgraph import dijkstra  # takes a tenth of a second

    S, steps = goal.size, sparse.coo_array(matrix)
    kept = steps.data > FAINT
    graph = backward_graph(steps.row[kept] // (steps.shape[0] // S), steps.col[kept], goal)
    return np.asarray(dijkstra(graph, unweighted=True, indices=S)[:S] - 1)


class ReachProblem(Problem):
    """A problem some of whose bounds are proved as they are found."""

    def prove(self, value: Array, update: Update, fixed: bool) -> Update:
        """A sweep with bounds that the certificate proved."""
        return update if isinstance(update.claim, Proved) else super().prove(value, update, fixed)


class Reaching:
    """The method of `drmdp.reach`: near side, far side, and again with a smaller ε."""

    backend, stop = "exact", "certified"
    max_iters: ClassVar[int] = 1000

    def __init__(self) -> None:
        self._points: Iterator[MethodState] = iter(())

    def init(self, problem: Problem, value: Array | None) -> MethodState:
        """Begin."""
        self._points = Course(problem).points()
        return next(self._points)

    def step(self, problem: Problem, state: MethodState) -> MethodState:
        """The next sweep; where there is none, what is left is beyond precision."""
        found = next(self._points, None)
        if found is None:
            v = state.value
            problem.verdict = Verdict(Bounds(v, v), v, v, exhausted=2.0)
        return found or state


class Course:
    """The sweeps of one problem, one after the other."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.model = problem, problem.model
        self.maximise, self.live = self.model.maximise, ~self.model.terminal
        ambiguity: Any = problem.operator.ambiguity
        self.helps = ambiguity.nature == "cooperative"
        self.side = 1.0 if self.maximise else -1.0  # of ε
        self.policy: Any = problem.policy  # the last that made progress
        self.box = problem.criterion.range
        self.floor = TINY  # the least ε that proofs tell from 0
        self.goal = np.asarray(self.model.ends != 0)  # where the process ends at a value
        mean = self.model.mean_matrix()[0]
        self.distance = steps_to(mean, self.goal)
        self.escape = steps_to(mean, ~self.live & ~self.goal)  # to the other ends

    def points(self) -> Iterator[MethodState]:
        """All of them."""
        v, w = self._start()
        goal, last, eps = min(self.problem.goal, LOOSEST), np.inf, np.inf
        for k in range(TRIES):
            eps = max(min(goal / (8 * w), eps / 2), self.floor)
            self.problem.criterion.share = 1 / (16 * w)
            near = yield from self._near(v, eps)
            if near is None:
                if k == 0:
                    yield MethodState(v, None).swept(self.problem)
                return
            v, w = near.value, self._time(near)
            longer = eps * w > goal / 2 and eps > self.floor  # than it seemed
            if (longer or eps < self.floor) and k < TRIES - 1:
                continue
            far = yield from self._far(near, eps)
            if eps >= self.floor:
                yield near  # which of the bounds from this side is the best is known now
            gap = float(np.abs(np.abs(far) - np.abs(v)).max())
            if gap <= goal or gap > 0.9 * last or eps <= self.floor:
                return
            last, eps = gap, eps * min(goal / gap, 1.0)

    def _time(self, state: MethodState) -> float:
        """The longest expected time of a pair where there is something to expect."""
        assert state.update is not None
        one = np.ones(state.value.size)
        found = self._solve(state.update.chain, self.live & (state.value != 0), 1 - 1e-9, one)
        return max(1.0, float(np.abs(found).max()))

    def _start(self) -> tuple[Array, float]:
        """A discounted value, and the longest expected time of its pair where there is something to
        expect.
        """
        farthest = self.distance[np.isfinite(self.distance)].max(initial=1.0)
        nearer = max(0.99, 1e-4 ** (1 / farthest))  # steps are seen from afar, too
        first = ended(self.model, -self.side * nearer**self.distance)
        state, _ = self._newton(first, 0.0, EARLY, START * (1 - EARLY), self.problem.policy)
        assert state.update is not None
        self.policy = state.update.policy
        # a pair at a discount makes progress, which without one a tie need not; what is not 0 where
        # it does not arrive is inaccuracy
        arrives = np.isfinite(steps_to(far_side.entries(state.update.chain), self.goal))
        v = np.where(arrives, ended(self.model, state.value), 0.0)
        return v, self._time(MethodState(v, state.update))

    def _solve(self, chain: Any, active: Any, rate: float, right: Array) -> Array:
        """(I − λP)⁻¹ r on some states, 0 elsewhere; what is not a number says that it failed."""
        found, own = np.zeros(right.size), np.flatnonzero(active)
        if own.size:
            found[own] = far_side.solved(rate * far_side.entries(chain)[own][:, own], right[own])[0]
        return found

    def _near(self, v: Array, eps: float) -> Found:
        """A strict bound for ε, by Newton's method or, where that does not settle, policy by
        policy, as long as one is better by more than the goal.
        """
        given, rate, last = self.problem.policy, 1 - min(eps, 1e-3), None
        state, fits = self._newton(v, eps, rate, 4 * eps, given)
        if fits or given is not None or self.helps:
            if fits:
                yield from self._provable(state)
            return state if fits else None
        for _ in range(POLICIES):
            found, fits = self._newton(v, eps, rate, 4 * eps, self.policy)
            if not fits:
                break
            v, update = found.value, self.problem.sweep(found.value)
            last = better = MethodState(v, update)
            yield from self._provable(better)
            if self.maximise:  # of the policy only the worst case is known, not what others can do
                assert found.update is not None
                last = MethodState(v, replace(found.update, lower_step=update.lower_step))
            gain = found.residual - better.residual
            if not gain.max() > 0.1 * eps:
                break
            self.policy = np.where((gain > 0.1 * eps)[:, None], update.policy, self.policy)
        if last is not None:
            yield last
        return last

    def _provable(self, near: MethodState) -> Iterator[MethodState]:
        """A sweep that bounds from the near side, if its proof does; else the floor rises."""
        problem, update = self.problem, near.update
        assert update is not None
        sure = problem.prove(near.value, update, problem.policy is not None)
        if problem.criterion.bounds(near.value, sure)[self.maximise] is not None:
            yield near
            return
        step = sure.upper_step if self.maximise else sure.lower_step
        width = np.abs(step - near.residual)[self.live & (near.value != 0)]
        self.floor = max(self.floor, 4 * float(width.max(initial=0.0)))

    def _newton(
        self, v: Array, eps: float, rate: float, near: float, policy: Array | None, box: Any = None
    ) -> tuple[MethodState, bool]:
        """Newton's method on v = G(v), of a policy if there is one, in a box; below 0, ε is what a
        step is worth.

        Returns the first point whose step is short and, if ε is above 0, whose sweep is strict, and
        True; or the last, and False.
        """
        problem, model, best, tight = self.problem, self.model, np.inf, None
        box = self.box if box is None else box
        rest = box[self.maximise]
        alone, plain = self.helps or policy is not None, PLAIN if v.size > DENSE else 0
        for k in range(MOST):
            for still in range(plain, -1, -1):
                v = ended(model, np.clip(v, *box))
                update = problem.sweep(v) if policy is None else problem.evaluate(v, policy)
                update = update if policy is None else replace(update, policy=policy)
                state = MethodState(v, update)
                goes = rate * (v + state.residual) + self.side * eps
                wanted = ended(model, np.clip(goes, *box))
                off = float(np.abs(wanted - v).max())
                strict = (-self.side * state.residual >= eps / 2) | (v == 0) | ~self.live
                if (eps <= 0 or strict.all()) and off <= near:
                    return state, True
                if still:
                    v = wanted
            tight = state if eps > 0 and strict.all() else tight
            if k >= FREE and off > ACCEPT * best and not alone:
                plain = max(2 * plain, PLAIN)
            if plain > LONGEST:
                break
            best = min(best, off)
            active = self.live & ((v != rest) | (wanted != rest))
            if box is not self.box:  # whose ends are no solutions, but where it is given up
                active &= (goes > box[0]) & (goes < box[1])
                v = np.where(active, v, wanted)
            d = self._solve(update.chain, active, rate, np.where(active, goes - v, 0.0))
            if not np.abs(d).max(initial=0.0) <= 4:
                break
            v = v + d
        return (state, False) if tight is None or not alone else (tight, True)

    def _above(self, near: MethodState, eps: float) -> tuple[MethodState, BoolArray]:
        """A point above the near side where a step is worth ε to those who want the target reached,
        and where that is less than a share of the goal.

        Where probabilities are too small to be seen, or tie, the others hurry there to where the
        target cannot be reached from; on the near side they need not.
        """
        floor = np.abs(near.value)
        most = np.where(self.live, np.minimum(floor + self.problem.goal / 4, 1.0), floor)
        p = np.where(np.isfinite(self.escape), np.minimum(floor + eps * self.escape, most), floor)
        box = (-most, -floor) if self.maximise else (floor, most)
        state, _ = self._newton(-self.side * p, -eps, 1.0, eps / 2, self.problem.policy, box)
        return state, np.asarray((np.abs(state.value) < most) | (floor > 0))

    def _far(self, near: MethodState, eps: float) -> Generator[MethodState, None, Array]:
        """An upper bound on the probability."""
        above, seen = self._above(near, eps)
        problem, update, given = self.problem, above.update, self.problem.policy
        assert update is not None
        x, shown = update.policy if given is None else given, update.nature
        free, unknown = self.maximise and given is None, np.where(self.live, self.side, near.value)
        players: far_side.Agent | far_side.Free
        if self.maximise == self.helps:  # nature wants the target reached
            players = far_side.Free(problem, None if free else x)
        else:
            answer = table(problem, above.value, self.model.available if free else x > 0)
            if answer is None:
                return unknown
            matrix, played, shown = answer.matrix, self.model.available, answer.shown
            if not free:  # one chain
                S, A = x.shape
                mix = (x.ravel(), np.arange(S * A), np.arange(0, S * A + 1, A))
                matrix = sparse.csr_array(sparse.csr_array(mix, shape=(S, S * A)) @ matrix)
                played = self.live[:, None]
            players = far_side.Agent(matrix, played)
        start = np.abs(np.where(seen, above.value, near.value))
        look = problem.checkpoint
        found = far_side.bound(players, self.live, start, look, near=problem.goal / 4)
        if not found.holds:
            return unknown
        value, step = -found.p if self.maximise else found.p, np.zeros(found.p.size)
        yield MethodState(value, Update(value, step, step, x, update.nature, Proved(shown)))
        return value
