"""Backward induction: from the last stage to the first, one sweep each, with bounds.

With final values v_T, v_t = F_t(v_{t+1}) for t = T − 1, …, 0, where F_t is the robust Bellman operator of the model and the set of stage t: nature moves
anew at every stage and state. The policy of stage t attains F_t at v_{t+1}. For a plan that is given, F_t is that of its policy x_t.

**Bounds.** F_t is monotone and F_t(v + δ) ≤ F_t(v) + λ δ for constants δ ≥ 0. A sweep at v gives L ≤ F_t(v) and F^x(v) ≤ U, so with
e = max(upper_{t+1} − v, 0) and d = max(v − lower_{t+1}, 0) over the states, U + λ e bounds the worst-case value of the policies of the stages
t, …, T − 1 from above and L − λ d the optimum from below; of a plan that is given, both bound its worst-case value. One sweep a stage; the gap grows by
the operator's error each. A discount of 1 is allowed: nothing is summed up to infinity.

**Nothing happens any more** at stage t in a state where every allowed transition costs 0 and leads to states of value 0 at stage t + 1: its value is 0
exactly, and no margin is needed. So it is in terminal states.

**Cut short** by Ctrl-C or the clock before stage t was done, the stages before it get the policy of the last one that was, and bounds that hold for any:
max(upper_{t+1}) and min(lower_{t+1}) discounted, plus the largest and the smallest cost of the stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.bellman.build import build
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.operator import Operator, Update
from drmdp.core import clock, levels
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.sets import AmbiguitySet
from drmdp.solvers.horizon.stages import Stages
from drmdp.solvers.problem import Problem, any_policy


@dataclass
class Plan:
    """Bounds and policies of the stages, filled from the last one on; signs are internal."""

    stages: Stages
    given: Array | None  # (T, S, A) policies to evaluate instead of optimising
    lower: Array = field(init=False)  # (T + 1, S)
    upper: Array = field(init=False)
    policy: Array = field(init=False)  # (T, S, A)
    swept: Array = field(init=False)  # (T, S) where the sweep of each stage was made

    def __post_init__(self) -> None:
        T, model = len(self.stages), self.stages.first
        S, A = model.n_states, model.n_actions
        self.lower, self.upper, self.swept = np.empty((T + 1, S)), np.empty((T + 1, S)), np.empty((T, S))
        self.policy = np.empty((T, S, A)) if self.given is None else self.given
        self.lower[T] = self.upper[T] = self.stages.final

    def fill(self, backend: str, threads: int | None, deadline: float) -> Iterator[int]:
        """Go from the last stage to the first, until time is up; yields each stage."""
        stages, operator, v = self.stages, None, self.stages.final
        idle = Idle(v == 0)
        for t in reversed(range(len(stages))):
            if clock.now() > deadline:
                return
            model = stages.models[t]
            if operator is None or operator.model is not model or not stages.alike(t, t + 1):
                new = build(model, stages.balls[t], backend, threads)
                operator = _next(new, operator) if operator is not None and stages.alike(t, t + 1) else new
            problem = Problem(operator, None if self.given is None else self.given[t])
            self.swept[t] = v
            v = self._set(t, v, problem.proved(v), idle.before(model, operator.ball or stages.balls[t]))
            yield t

    def _set(self, t: int, v: Array, update: Update, idle: BoolArray) -> Array:
        """Take the sweep of stage t at v; returns where to go on."""
        discount, lower, upper = self.stages.models[t].discount, self.lower, self.upper
        above, below = (max(0.0, float(gap.max())) for gap in (upper[t + 1] - v, v - lower[t + 1]))
        upper[t] = _shifted(levels.beyond(v, update.upper_step, +1), discount * above)
        lower[t] = _shifted(levels.beyond(v, update.lower_step, -1), -discount * below)
        upper[t, idle] = lower[t, idle] = 0.0
        if (ends := self.stages.first.ends) is not None:
            upper[t], lower[t] = (np.where(self.stages.first.terminal, ends, side[t]) for side in (upper, lower))
        if self.given is None:
            self.policy[t] = update.policy
        return np.clip(update.value, lower[t], upper[t])

    def fill_up(self, t: int) -> None:
        """Give the stages before t what is true of any policy: one pair of numbers a stage, but for terminal states."""
        if t == 0:
            return
        models, end = self.stages.models, self.stages.first.terminal
        values = levels.ended(self.stages.first, np.zeros(end.size))[end]
        ends = (float(values.min()), float(values.max())) if end.any() else ()
        low, high = np.empty(t), np.empty(t)
        least, most = float(self.lower[t].min()), float(self.upper[t].max())
        last = models[t - 1]
        cheap, dear = last.cost_range
        for k in reversed(range(t)):
            if models[k] is not last:
                last = models[k]
                cheap, dear = last.cost_range
            low[k] = least = outside(cheap, last.discount * least, -1)
            high[k] = most = outside(dear, last.discount * most, +1)
            if ends:
                least, most = min(least, *ends), max(most, *ends)
        self.lower[:t], self.upper[:t] = (levels.ended(self.stages.first, side[:, None]) for side in (low, high))
        if self.given is None:
            self.policy[:t] = self.policy[t] if t < len(self.policy) else any_policy(self.stages.first)


@dataclass
class Idle:
    """States of value 0 at a stage, and which they are at the one before."""

    states: BoolArray  # (S,)
    last: Any = None  # model and set of the stage that they were found for, if nothing changed there

    def before(self, model: Model, ball: AmbiguitySet) -> BoolArray:
        """Go one stage back: `model` and `ball` are those of that stage."""
        if self.last is None or self.last[0] is not model or self.last[1] is not ball:
            over = model.terminal if model.ends is None else model.terminal & (model.ends == 0)
            found = over | (_free(model, ball) & ~model.terminal)
            if not np.array_equal(found, over):
                found = over | (found & ~_leaving(model, ~(self.states | over)))
            self.last = (model, ball) if np.array_equal(found, self.states) else None
            self.states = found
        return self.states


@dataclass(frozen=True)
class Natures:
    """Nature's mean kernel of a stage, made by sweeping it again where it was swept."""

    stages: Stages
    policy: Array | None  # (T, S, A) if it was given
    swept: Array
    backend: str
    threads: int | None
    reached: int  # first stage that was swept

    def __call__(self, t: int) -> Any:
        """Her answer at stage t: her side of the saddle point, or her best response to a plan that was given."""
        return self._sweep(build(self.stages.models[t], self.stages.balls[t], self.backend, self.threads), t).kernel

    def again(self) -> Iterator[tuple[int, Update]]:
        """All sweeps, from the last stage to the first."""
        operator: Operator | None = None
        for t in reversed(range(len(self.stages))):
            model, ball = self.stages.models[t], self.stages.balls[t]
            if operator is None or operator.model is not model or ball is not self.stages.balls[t + 1]:
                operator = build(model, ball, self.backend, self.threads)
            yield t, self._sweep(operator, t)

    def _sweep(self, operator: Operator, t: int) -> Update:
        if t < self.reached:
            raise InputError(f"stage {t} was not reached")
        return Problem(operator, None if self.policy is None else self.policy[t]).proved(self.swept[t])


def outside(cost: float, later: float, side: int) -> float:
    """Cost + later, rounded away from the truth (side ±1)."""
    total = cost + later
    return total + side * 4 * levels.EPS * (abs(cost) + abs(later))


def _free(model: Model, ball: AmbiguitySet) -> BoolArray:
    """States where every allowed transition costs 0 and nature has no other, (S,)."""
    if ball.support == "all" or (ball.support == "state" and model.next_costs):
        return model.terminal
    if isinstance(model, EventModel) and model.priced:
        return _free_events(model)
    if not model.next_costs:
        return np.asarray(((model.costs == 0) | ~model.available).all(axis=1))
    return ~_some(model, model.listed_costs() != 0)


def _free_events(model: EventModel) -> BoolArray:
    """The same where events cost."""
    found = np.array(model.terminal)
    for first, last, block, n in model.batches(model.used, 0, model.n_states):
        ends = block.indptr[: (last - first) * model.n_actions + 1 : model.n_actions]
        paid = np.concatenate([[0], np.cumsum(block.costs[:n] != 0)])
        found[first:last] |= paid[ends[1:]] == paid[ends[:-1]]
    return found


def _leaving(model: Model, there: BoolArray) -> BoolArray:
    """States with a stored transition to one of some states, (S,)."""
    if isinstance(model, EventModel):
        found = np.zeros(model.n_states, dtype=bool)
        for first, last, block, n in model.batches(model.used, 0, model.n_states):
            ends = block.indptr[: (last - first) * model.n_actions + 1 : model.n_actions]
            marked = np.concatenate([[0], np.cumsum(there[block.indices[:n]])])
            found[first:last] = marked[ends[1:]] > marked[ends[:-1]]
        return found
    return _some(model, there[model.blocks.indices])


def _some(model: Model, entries: BoolArray) -> BoolArray:
    """States of which some stored entry is marked, (S,)."""
    pairs = np.repeat(np.arange(model.available.size), model.blocks.lengths)
    marked = np.bincount(pairs[entries], minlength=model.available.size) > 0
    return np.asarray(marked.reshape(model.available.shape).any(axis=1))


def _shifted(bound: Array, by: float) -> Array:
    """Bound + by, rounded in the direction of `by`."""
    return bound if by == 0 else np.nextafter(bound + by * (1 + 4 * levels.EPS), np.sign(by) * np.inf)


def _next(new: Operator, old: Operator | None) -> Operator:
    if isinstance(new, ExactOperator) and isinstance(old, ExactOperator):
        new.adopt(old)
    return new
