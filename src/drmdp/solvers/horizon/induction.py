"""Backward induction: from the last stage to the first, one sweep each, with bounds.

With final values v_T, v_t = F_t(v_{t+1}) for t = T − 1, …, 0, where F_t is the robust Bellman
operator of the model and the set of stage t: nature moves anew at every stage and state. The policy
of stage t attains F_t at v_{t+1}. For a plan that is given, F_t is that of its policy x_t.

**Bounds.** F_t is monotone and F_t(v + δ) ≤ F_t(v) + λ δ for constants δ ≥ 0. A sweep at v gives L
≤ F_t(v) and F^x(v) ≤ U, so with e = max(upper_{t+1} − v, 0) and d = max(v − lower_{t+1}, 0) over
the states, U + λ e bounds the worst-case value of the policies of the stages t, …, T − 1 from above
and L − λ d the optimum from below; of a plan that is given, both bound its worst-case value. One
sweep a stage; the gap grows by the operator's error each. A discount of 1 is allowed: nothing is
summed up to infinity.

**Idle** at stage t is a state where every allowed transition costs 0 and leads to states of value 0
at stage t + 1: its value is 0 exactly, and no margin is needed. So are terminal states.

**Cut short** by Ctrl-C or the clock before stage t was done, the stages before it get the policy of
the last one that was, and bounds that hold for any: max(upper_{t+1}) and min(lower_{t+1})
discounted, plus the largest and the smallest cost of the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core import levels
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.operators.build import build
from drmdp.operators.exact import ExactOperator
from drmdp.operators.operator import Operator, Update
from drmdp.sets import AmbiguitySet
from drmdp.solvers.horizon.stages import Stages, mapped
from drmdp.solvers.problem import Problem, any_policy
from drmdp.ui import clock


class StageBounds:
    """Bounds and policies of the stages, filled from the last one on; signs are internal.

    A `plan` (T, S, A) is evaluated instead of optimising.
    """

    def __init__(self, stages: Stages, plan: Array | None) -> None:
        T, (S, A) = len(stages), stages.first.available.shape
        self.stages, self.plan = stages, plan
        self.lower, self.upper = np.empty((2, T + 1, S))
        self.lower[T] = self.upper[T] = stages.final
        self.swept = np.empty((T, S))  # points of the sweeps
        self.policy: Array = np.empty((T, S, A)) if plan is None else plan

    def fill(self, backend: str, threads: int | None, deadline: float) -> Iterator[int]:
        """Go from the last stage to the first, until time is up; yields each stage."""
        v = self.stages.final
        idle = Idle(v == 0)
        for t, operator in _operators(self.stages, backend, threads):
            if clock.now() > deadline:
                return
            problem = Problem(operator, None if self.plan is None else self.plan[t])
            self.swept[t] = v
            idle_states = idle.before(operator.model, operator.ambiguity or self.stages.sets[t])
            v = self._set(t, v, problem.proved(v), idle_states)
            yield t

    def _set(self, t: int, v: Array, update: Update, idle: BoolArray) -> Array:
        """Set the bounds of stage t from its sweep at v; returns the point of the next sweep."""
        discount, lower, upper = self.stages.models[t].discount, self.lower, self.upper
        above, below = (max(0.0, float(gap.max())) for gap in (upper[t + 1] - v, v - lower[t + 1]))
        upper[t] = _shifted(levels.beyond(v, update.upper_step, +1), discount * above)
        lower[t] = _shifted(levels.beyond(v, update.lower_step, -1), -discount * below)
        upper[t, idle] = lower[t, idle] = 0.0
        if self.stages.first.ends is not None:
            for side in (lower, upper):
                side[t] = levels.ended(self.stages.first, side[t])
        if self.plan is None:
            self.policy[t] = update.policy
        return np.clip(update.value, lower[t], upper[t])

    def fill_up(self, t: int) -> None:
        """Give the stages before t bounds of any policy: a pair of numbers a stage, but for
        terminal states.
        """
        if t == 0:
            return
        first, models = self.stages.first, self.stages.models
        ranges = mapped(models[:t], attrgetter("cost_range"))
        values = levels.ended(first, np.zeros(first.n_states))[first.terminal]
        ends = [float(values.min()), float(values.max())] if values.size else []
        low, high = np.empty((2, t))
        least, most = float(self.lower[t].min()), float(self.upper[t].max())
        for k in reversed(range(t)):
            cheap, dear = ranges[k]
            low[k] = least = outside(cheap, models[k].discount * least, -1)
            high[k] = most = outside(dear, models[k].discount * most, +1)
            least, most = min([least, *ends]), max([most, *ends])
        self.lower[:t] = levels.ended(first, low[:, None])
        self.upper[:t] = levels.ended(first, high[:, None])
        if self.plan is None:
            self.policy[:t] = self.policy[t] if t < len(self.policy) else any_policy(first)


@dataclass
class Idle:
    """States of value 0 at a stage, and the step to the stage before."""

    states: BoolArray  # (S,)
    last: Any = None  # model and set of the last stage, if the states did not change there

    def before(self, model: Model, ambiguity: AmbiguitySet) -> BoolArray:
        """Go one stage back: `model` and `ambiguity` are those of that stage."""
        if self.last is None or self.last[0] is not model or self.last[1] is not ambiguity:
            over = model.terminal if model.ends is None else model.terminal & (model.ends == 0)
            idle = over | (_free(model, ambiguity) & ~model.terminal)
            if not np.array_equal(idle, over):
                idle = over | (idle & ~_leaving(model, ~(self.states | over)))
            self.last = (model, ambiguity) if np.array_equal(idle, self.states) else None
            self.states = idle
        return self.states


@dataclass(frozen=True)
class Natures:
    """Nature's mean kernel of a stage, made by repeating its sweep."""

    stages: Stages
    policy: Array | None  # (T, S, A) if it is fixed
    swept: Array
    backend: str
    threads: int | None
    reached: int  # first stage that was swept

    def __call__(self, t: int) -> Any:
        """Her answer at stage t: of the saddle point, or her best response to a fixed plan."""
        model, ambiguity = self.stages.models[t], self.stages.sets[t]
        return self._sweep(build(model, ambiguity, self.backend, self.threads), t).kernel

    def again(self) -> Iterator[tuple[int, Update]]:
        """All sweeps, from the last stage to the first."""
        for t, operator in _operators(self.stages, self.backend, self.threads):
            yield t, self._sweep(operator, t)

    def _sweep(self, operator: Operator, t: int) -> Update:
        if t < self.reached:
            raise InputError(f"stage {t} was not reached")
        problem = Problem(operator, None if self.policy is None else self.policy[t])
        return problem.proved(self.swept[t])


def _operators(stages: Stages, backend: str, threads: int | None) -> Iterator[tuple[int, Operator]]:
    """Operators of the stages, from the last one to the first; each goes on where that of a stage
    with the same kernels ended.
    """
    operator: Any = None
    for t in reversed(range(len(stages))):
        model, last = stages.models[t], operator
        alike = last is not None and stages.alike(t, t + 1)
        if not alike or last.model is not model:
            operator = build(model, stages.sets[t], backend, threads)
            if alike and isinstance(operator, ExactOperator) and isinstance(last, ExactOperator):
                operator.warm_start = last.warm_start._replace(sweeps=0)
        yield t, operator


def outside(cost: float, later: float, side: int) -> float:
    """Cost + later, rounded away from the truth (side ±1)."""
    total = cost + later
    return total + side * 4 * levels.EPS * (abs(cost) + abs(later))


def _free(model: Model, ambiguity: AmbiguitySet) -> BoolArray:
    """States where every allowed transition costs 0 and nature has no other, (S,)."""
    if ambiguity.support == "all" or (ambiguity.support == "state" and model.next_costs):
        return model.terminal
    if isinstance(model, EventModel) and model.priced:
        paid = _with_marked_events(model, lambda block, n: block.costs[:n] != 0)
        return np.asarray(model.terminal | ~paid)
    if not model.next_costs:
        return np.asarray(((model.costs == 0) | ~model.available).all(axis=1))
    return ~_with_marked(model, model.listed_costs() != 0)


def _leaving(model: Model, goal: BoolArray) -> BoolArray:
    """States with a stored transition to a state of `goal`, (S,)."""
    if isinstance(model, EventModel):
        return _with_marked_events(model, lambda block, n: goal[block.indices[:n]])
    return _with_marked(model, goal[model.blocks.indices])


def _with_marked_events(model: EventModel, mark: Callable[[Any, int], BoolArray]) -> BoolArray:
    """States with a marked entry in the blocks of a model of events, (S,)."""
    out = np.zeros(model.n_states, dtype=bool)
    for first, last, block, n in model.batches(model.used, 0, model.n_states):
        ends = block.indptr[: (last - first) * model.n_actions + 1 : model.n_actions]
        count = np.concatenate([[0], np.cumsum(mark(block, n))])
        out[first:last] = count[ends[1:]] > count[ends[:-1]]
    return out


def _with_marked(model: Model, entries: BoolArray) -> BoolArray:
    """States with a marked stored entry, (S,)."""
    states = np.repeat(np.arange(model.available.size) // model.n_actions, model.blocks.lengths)
    return np.asarray(np.bincount(states[entries], minlength=model.n_states) > 0)


def _shifted(bound: Array, by: float) -> Array:
    """Bound + by, rounded in the direction of `by`."""
    if by == 0:
        return bound
    return np.asarray(np.nextafter(bound + by * (1 + 4 * levels.EPS), np.sign(by) * np.inf))
