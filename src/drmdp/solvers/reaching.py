"""The probability of reaching a target, certified from both sides.

**Near side**, where bounds are strict: the lower bound on the probability. Newton's method on v = G(v) = clip(λ F(v) ± ε), a step of which costs ε and is
discounted by λ = 1 − ε, so that nobody goes round in circles and every system is regular; from a discounted value, where nobody does either. ε is such that
it adds up to a fraction of the goal over the expected time until the end. Between two of Newton's steps there are plain ones, v ← G(v), which cost little
where rows are short: what is played spreads by them, and two players who go on answering each other are stopped by more of them. Where that does not settle,
nature alone is answered for one policy after the other (Hoffman–Karp).

**Far side**: `drmdp.solvers.far_side`. Against the agent who wants to arrive nature has to say what she does (`drmdp.solvers.nature_table`); with him, or
against one who does not want to, she is free; where both do not want to, or a policy is given, nobody is.

Bounds that are too far apart are found again with a smaller ε.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.bellman.operator import Update
from drmdp.certificate.dense import Bounds
from drmdp.core.compact import DENSE
from drmdp.core.levels import EPS, ended
from drmdp.model import Model
from drmdp.solvers import far_side
from drmdp.solvers.nature_table import FAINT, Proved, table
from drmdp.solvers.problem import Problem, State, Verdict

EARLY, START = 1 - 1e-6, 0.1
"""Discount of a start, and what a residual may be there: less than it costs to go round in circles."""
MOST, POLICIES, TRIES = 40, 20, 4
"""Newton points of one ε, policies of Hoffman and Karp, and values of ε."""
FREE, ACCEPT, PLAIN, LONGEST = 6, 0.7, 6, 400
"""Newton points that are kept whatever they show, what the next ones must come down to, plain steps between them in large models, or where they do not, and
how many there may be."""
TIED = 4.0
"""Of equal numbers: how many widths they may be apart in all."""
TINY, LOOSEST = 1e-13, 0.1
"""The least ε; a goal that is larger is this."""
Found = Generator[State, None, State | None]
"""Sweeps, and the one that was looked for."""


def steps_to(matrix: Any, goal: BoolArray) -> Array:
    """From where a chain, or rows (n·S, S) of n options each, reach some states, (S,): in how many steps, infinitely many from where they do not."""
    S = goal.size
    steps = sparse.coo_array(matrix)
    kept, ends = steps.data > FAINT, np.flatnonzero(goal)
    sources = steps.row[kept] // (steps.shape[0] // S)
    edges = np.concatenate([steps.col[kept], np.full(ends.size, S)]), np.concatenate([sources, ends])
    graph = sparse.csr_array((np.ones(edges[0].size, np.int8), edges), shape=(S + 1, S + 1))
    from scipy.sparse.csgraph import dijkstra  # takes a tenth of a second

    return np.asarray(dijkstra(graph, unweighted=True, indices=S)[:S] - 1)


def distances(model: Model) -> Array:
    """How far states are from where the process ends at a value, (S,), by the mean kernel."""
    return steps_to(model.mean_matrix()[0], np.asarray(model.ends != 0))


def levelled(value: Array, width: float) -> Array:
    """The same where numbers that follow each other within a width are one: nature leaves a way out where it seems to cost her nothing."""
    order = np.argsort(value, kind="stable")
    ranked = value[order]
    group = np.zeros(value.size, dtype=np.int64)
    while True:  # those that are wider than that by far are no ties, but many numbers
        group = np.cumsum((np.diff(ranked, prepend=ranked[0]) > width) | (np.diff(group, prepend=0) > 0))
        first = np.flatnonzero(np.diff(group, prepend=-1))
        wide = ranked[np.append(first[1:], value.size) - 1] - ranked[first] > TIED * width
        if not wide.any() or width < EPS:
            break
        width /= 8
    found = value.copy()
    found[order] = ranked[first][group]
    return found


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
        self._points: Iterator[State] = iter(())

    def init(self, problem: Problem, value: Array | None) -> State:
        """Begin."""
        self._points = Course(problem).points()
        return next(self._points)

    def step(self, problem: Problem, state: State) -> State:
        """The next sweep; where there is none, what is left is beyond precision."""
        found = next(self._points, None)
        if found is None:
            problem.verdict = Verdict(Bounds(state.value, state.value), state.value, state.value, exhausted=2.0)
        return found or state


class Course:
    """The sweeps of one problem, one after the other."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.model = problem, problem.model
        self.maximise, self.live = self.model.maximise, ~self.model.terminal
        ball = problem.operator.ball
        assert ball is not None
        self.helps = ball.nature == "cooperative"
        self.side = 1.0 if self.maximise else -1.0  # of ε
        self.policy: Any = problem.policy  # the last that made progress
        self.width = 0.0  # values that differ by less are equal to nature
        self.box = (-1.0, 0.0) if self.maximise else (0.0, 1.0)

    def points(self) -> Iterator[State]:
        """All of them."""
        v, w = self._start()
        goal, last, eps = min(self.problem.goal, LOOSEST), np.inf, np.inf
        for k in range(TRIES):
            eps = max(min(goal / (8 * w), eps / 2), TINY)
            self.problem.criterion.share = 1 / (16 * w)
            self.width = min(100 * eps * w, 0.01 * goal)
            near = yield from self._near(v, eps)
            if near is None:
                if k == 0:
                    yield State(v, None).swept(self.problem)
                return
            v, w = near.value, self._time(near)
            if eps * w > goal / 2 and eps > TINY and k < TRIES - 1:  # it takes longer than it seemed
                continue
            far = yield from self._far(near)
            yield near  # which of the bounds from this side is the best is known now
            gap = float(np.abs(np.abs(far) - np.abs(v)).max())
            if gap <= goal or gap > 0.9 * last or eps <= TINY:
                return
            last, eps = gap, eps * min(goal / gap, 1.0)

    def _time(self, state: State) -> float:
        """The longest expected time of a pair where there is something to expect."""
        assert state.update is not None
        one = np.ones(state.value.size)
        found = self._solve(state.update.chain, self.live & (state.value != 0), 1 - 1e-9, one)
        return max(1.0, float(np.abs(found).max()))

    def _start(self) -> tuple[Array, float]:
        """A discounted value, and the longest expected time of its pair where there is something to expect."""
        model = self.model
        first = ended(model, -self.side * 0.99 ** distances(model))
        state, _ = self._newton(first, 0.0, EARLY, START * (1 - EARLY), self.problem.policy)
        assert state.update is not None
        v, chain, self.policy = state.value, state.update.chain, state.update.policy
        # a pair at a discount makes progress, which without one a tie need not; what is not 0 where it does not arrive is inaccuracy
        v = np.where(np.isfinite(steps_to(far_side.chosen(chain), np.asarray(model.ends != 0))), ended(model, v), 0.0)
        return v, self._time(State(v, state.update))

    def _solve(self, chain: Any, active: Any, rate: float, right: Array) -> Array:
        """(I − λP)⁻¹ r on some states, 0 elsewhere; what is not a number says that it failed."""
        found, own = np.zeros(right.size), np.flatnonzero(active)
        if own.size:
            found[own] = far_side.solved(rate * far_side.chosen(chain)[own][:, own], right[own])[0]
        return found

    def _near(self, v: Array, eps: float) -> Found:
        """A strict bound for ε, by Newton's method or, where that does not settle, policy by policy, as long as one is better by more than the goal."""
        given, rate, last = self.problem.policy, 1 - min(eps, 1e-3), None
        state, fits = self._newton(v, eps, rate, 4 * eps, given)
        if fits or given is not None or self.helps:
            if fits:
                yield state
            return state if fits else None
        for _ in range(POLICIES):
            found, fits = self._newton(v, eps, rate, 4 * eps, self.policy)
            if not fits:
                break
            v, better = found.value, State(found.value, self.problem.sweep(found.value))
            yield better
            assert found.update is not None
            assert better.update is not None
            # of a policy that is given only the worst case is known, not what others can do
            last = better if not self.maximise else State(v, replace(found.update, lower_step=better.update.lower_step))
            gain = found.residual - better.residual
            if not gain.max() > 0.1 * eps:
                break
            self.policy = np.where((gain > 0.1 * eps)[:, None], better.update.policy, self.policy)
        if last is not None:
            yield last
        return last

    def _newton(self, v: Array, eps: float, rate: float, near: float, policy: Array | None) -> tuple[State, bool]:
        """Newton's method on v = G(v), of a policy if there is one.

        Returns the first point whose step is short and, if ε is not 0, whose sweep is strict, and True; or the last, and False.
        """
        problem, model, best, tight = self.problem, self.model, np.inf, None
        alone, plain = self.helps or policy is not None, PLAIN if v.size > DENSE else 0
        for k in range(MOST):
            for still in range(plain, -1, -1):
                v = ended(model, np.clip(v, *self.box))
                update = problem.sweep(v) if policy is None else replace(problem.evaluate(v, policy), policy=policy)
                state = State(v, update)
                goes = rate * (v + state.residual) + self.side * eps
                wanted = ended(model, np.clip(goes, *self.box))
                off = float(np.abs(wanted - v).max())
                strict = (-self.side * state.residual >= eps / 2) | (v == 0) | ~self.live
                if (eps == 0 or strict.all()) and off <= near:
                    return state, True
                if still:
                    v = wanted
            tight = state if eps > 0 and strict.all() else tight
            if k >= FREE and off > ACCEPT * best and not alone:
                plain = max(2 * plain, PLAIN)
            if plain > LONGEST:
                break
            best = min(best, off)
            active = self.live & ((v != 0) | (wanted != 0))
            d = self._solve(update.chain, active, rate, np.where(active, goes - v, 0.0))
            if not np.abs(d).max(initial=0.0) <= 4:
                break
            v = v + d
        return (state, False) if tight is None or not alone else (tight, True)

    def _far(self, near: State) -> Generator[State, None, Array]:
        """An upper bound on the probability."""
        problem, update, given = self.problem, near.update, self.problem.policy
        assert update is not None
        x, shown = update.policy if given is None else given, update.nature
        players: far_side.Players | None = None
        if self.maximise == self.helps:  # nature wants the target reached
            players = far_side.Free(problem, None if self.maximise and given is None else x)
        else:
            free = self.maximise and given is None
            answer = table(problem, levelled(near.value, self.width), self.model.available if free else x > 0)
            if answer is not None:
                matrix, played, shown = answer.matrix, self.model.available, answer.shown
                if not free:  # one chain
                    S, A = x.shape
                    mix = (x.ravel(), np.arange(S * A), np.arange(0, S * A + 1, A))
                    matrix, played = (
                        sparse.csr_array(sparse.csr_array(mix, shape=(S, S * A)) @ matrix),
                        self.live[:, None],
                    )
                players = far_side.Agent(matrix, played)
        found = None
        if players is not None:
            found = far_side.bound(players, self.live, np.abs(near.value), problem.checkpoint, near=problem.goal / 4)
        if found is None or not found.holds:
            return np.where(self.live, self.side, near.value)
        value, step = -found.p if self.maximise else found.p, np.zeros(found.p.size)
        yield State(value, Update(value, step, step, x, update.nature, Proved(shown)))
        return value
