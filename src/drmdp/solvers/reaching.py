"""The probability of reaching a target, certified from both sides.

**Near side**, where bounds are strict: the lower bound on the probability. Newton's method on v = clip(λ F(v) ± ε), a step of which costs ε and is discounted
by λ = 1 − ε, so that nobody goes round in circles and every system is regular; from a discounted value, where nobody does either. ε is such that it adds up
to a fraction of the goal over the expected time until the end. Where two players move and Newton's method does not settle, nature alone is answered for one
policy after the other (Hoffman–Karp).

**Far side**: `drmdp.solvers.far_side`. Against the agent who wants to arrive nature has to say what she does (`drmdp.solvers.nature_table`); with him, or
against one who does not want to, she is free; where both do not want to, nobody is.

Bounds that are too far apart are found again with a smaller ε.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.bellman.build import build
from drmdp.bellman.operator import Update
from drmdp.certificate.dense import Bounds
from drmdp.core.compact import DENSE
from drmdp.core.levels import EPS, ended
from drmdp.core.tolerance import Tolerance
from drmdp.model import Model, changed
from drmdp.solvers import far_side, loop
from drmdp.solvers.nature_table import FAINT, Proved, table
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem, State, Verdict

RATES, START = (0.99, 1 - 1e-4, 1 - 1e-6), 0.1
"""Discounts on the way to a start, and what a residual may be there: less than it costs to go round in circles."""
MOST, POLICIES, TRIES = 30, 20, 4
"""Newton points of one ε, policies of Hoffman and Karp, and values of ε."""
FREE, ACCEPT = 6, 0.7
"""Newton points of two players that are kept whatever they show, and what the next ones must come down to."""
TIED = 4.0
"""Of equal numbers: how many widths they may be apart in all."""
TINY, STUCK = 1e-14, 100.0
"""The least ε; and the residual of a start, in what it costs to go round in circles, that is too large to begin with."""
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
        self.policy: Any = None  # the last that made progress
        self.better = False  # whether another one is
        self.width = 0.0  # values that differ by less are equal to nature
        self.box = (-1.0, 0.0) if self.maximise else (0.0, 1.0)

    def points(self) -> Iterator[State]:
        """All of them."""
        v, w = self._start()
        goal, last, gap = self.problem.goal, np.inf, np.inf
        eps = margin = max(goal / (8 * max(w, 1.0)), TINY)
        self.problem.criterion.share = 1 / (16 * max(w, 1.0))
        margin = far_side.ROUNDING * (1 if v.size <= DENSE else 8)
        for k in range(TRIES):
            self.width = min(100 * eps * max(w, 1.0), 0.01 * goal)
            for _ in range(POLICIES):
                near = yield from self._near(v, eps, True)
                if near is None:
                    return
                v = near.value
                far = yield from self._far(near, margin)
                yield near  # which of the bounds from this side is the best is known now
                before, gap = gap, float(np.abs(np.abs(far) - np.abs(v)).max())
                if gap <= goal or not self.better or gap > 0.9 * before:
                    break
            if gap <= goal or gap > 0.9 * last or eps <= TINY:
                return
            last, eps = gap, max(eps * min(0.5 * goal / gap, 0.5), TINY)
            margin = max(margin / 30, far_side.ROUNDING)

    # ------------------------------------------------------------------ start

    def _start(self) -> tuple[Array, float]:
        """A discounted value, and the longest expected time of its pair where there is something to expect."""
        model, rate = self.model, RATES[0]
        v = ended(model, -self.side * rate ** distances(model))
        for rate in RATES:
            v, chain = self._discounted(v, rate)
        # a pair at a discount makes progress, which without one a tie need not; what is not 0 where it does not arrive is inaccuracy
        v = np.where(np.isfinite(steps_to(far_side.chosen(chain), np.asarray(model.ends != 0))), ended(model, v), 0.0)
        w = self._solve(chain, self.live & (v != 0), 1 - 1e-7, np.ones(v.size))
        return v, float(np.abs(w).max())

    def _discounted(self, v: Array, rate: float) -> tuple[Array, Any]:
        """A point near the value at a discount, and the chain of its pair; by the usual policy iteration where Newton's method alone does not settle."""
        problem, best = self.problem, np.inf
        for k in range(MOST):
            update = problem.sweep(v)
            right = np.where(self.live, rate * (v + (update.lower_step + update.upper_step) / 2) - v, 0.0)
            chain, off = update.chain, float(np.abs(right).max())
            self.policy = update.policy
            if off <= (START if rate == RATES[-1] else 1.0) * (1 - rate):
                return v, chain
            if k >= FREE and off > best:
                if rate < RATES[-1] or off <= STUCK * (1 - rate):
                    return v, chain
                break
            best, v = min(best, off), v + self._solve(chain, self.live, rate, right)
        ball: Any = problem.operator.ball
        inner = Problem(
            build(changed(self.model, discount=rate, discounts=None), ball, "exact", problem.operator.threads),
            None,
            problem.checkpoint,
        )
        found = loop.run(
            PolicyIteration(), inner, start=np.clip(v, *self.box), tolerance=Tolerance(1e-4), inner=True, proof=False, title="looking for a start"
        )  # fmt: skip
        problem.kernel_passes += inner.kernel_passes
        self.policy = found.policy
        return np.clip(found.middle, *self.box), found.best.nature.chain(found.policy)

    def _sweep(self, v: Array, policy: Array | None = None) -> Update:
        problem = self.problem
        return problem.sweep(v) if policy is None else replace(problem.evaluate(v, policy), policy=policy)

    def _solve(self, chain: Any, active: Any, rate: float, right: Array) -> Array:
        """(I − λP)⁻¹ r on some states, 0 elsewhere; what is not a number says that it failed."""
        found, own = np.zeros(right.size), np.flatnonzero(active)
        if own.size:
            found[own] = far_side.solved(rate * far_side.chosen(chain)[own][:, own], right[own])
        return found

    # ------------------------------------------------------------------ near side

    def _near(self, v: Array, eps: float, newton: bool) -> Found:
        """A strict bound for ε, by Newton's method or, where that does not settle, policy by policy, as long as one is better by more than the goal."""
        self.better, last = False, None
        if newton:
            last = yield from self._newton(v, eps, None)
            if last is not None or self.helps:
                return last
        for _ in range(POLICIES):
            found = yield from self._newton(v, eps, self.policy)
            if found is None:
                break
            v, better = found.value, State(found.value, self._sweep(found.value))
            yield better
            assert found.update is not None
            assert better.update is not None
            # of a policy that is given only the worst case is known, not what others can do
            last = better if not self.maximise else State(v, replace(found.update, lower_step=better.update.lower_step))
            gain = found.residual - better.residual
            self.better = bool(gain.max() > 0.1 * eps)
            if not self.better:
                break
            self.policy = np.where((gain > 0.1 * eps)[:, None], better.update.policy, self.policy)
            if self.maximise and gain.max() <= self.problem.goal:
                break
        if last is not None:
            yield last
        return last

    def _newton(self, v: Array, eps: float, policy: Array | None) -> Found:
        """Newton's method on v = clip(λ F(v) ± ε); returns the first point whose sweep is strict, and near ε; where one player moves, at least strict."""
        rate, tight, best, alone = 1 - min(eps, 1e-3), None, np.inf, self.helps or policy is not None
        for k in range(MOST):
            v = ended(self.model, np.clip(v, *self.box))
            state = State(v, self._sweep(v, policy))
            if policy is None:
                yield state
            wanted = ended(self.model, np.clip(rate * (v + state.residual) + self.side * eps, *self.box))
            strict = (-self.side * state.residual >= eps / 2) | (v == 0) | ~self.live
            off = float(np.abs(wanted - v).max())
            if strict.all():
                tight = state
                if off <= 4 * eps:
                    return state
            if not alone and k >= FREE and off > ACCEPT * best:
                return None
            best = min(best, off)
            active = self.live & ((v != 0) | (wanted != 0))
            assert state.update is not None
            right = rate * (v + state.residual) + self.side * eps - v
            d = self._solve(state.update.chain, active, rate, np.where(active, right, 0.0))
            if not np.abs(d).max(initial=0.0) <= 4:
                return None
            v = v + d
        return tight if alone else None

    # ------------------------------------------------------------------ far side

    def _far(self, near: State, margin: float) -> Generator[State, None, Array]:
        """An upper bound on the probability."""
        v, update = near.value, near.update
        assert update is not None
        problem, p = self.problem, np.abs(v)
        players: Any
        shown: Any = update.nature
        if self.maximise and self.helps:
            players = far_side.Both(problem)
        elif self.maximise or self.helps:
            played = self.model.available if self.maximise else update.policy > 0
            answer = table(problem, levelled(v, self.width), played)
            if answer is None:
                return np.where(self.live, self.side, v)
            players, shown = far_side.Agent(answer.matrix, played), answer.shown
        else:
            players = far_side.Nature(problem, update.policy)
        found = far_side.bound(players, self.live, p, margin, problem.checkpoint, near=problem.goal / 4)
        if not found.holds:
            return np.where(self.live, 1.0, v)
        value = -found.p if self.maximise else found.p
        step = np.zeros(value.size)
        yield State(value, Update(value, step - self.maximise * 0.0, step, update.policy, update.nature, Proved(shown)))
        return value
