"""The best sweep of a run: the one with the smallest gap, its policy and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Update
from drmdp.certificate import Pair
from drmdp.certificate import dense as certificate
from drmdp.certificate.dense import Bounds
from drmdp.core.cached import cached_property
from drmdp.core.levels import value_range
from drmdp.core.surveys import Extent, extent_of
from drmdp.core.tolerance import largest_cost
from drmdp.core.vectors import dots
from drmdp.model import Model
from drmdp.solvers.problem import Problem, Verdict, any_policy, playable


class Bounded:
    """Bounds at hand."""

    def __init__(self, model: Model, lower: Array, upper: Array) -> None:
        self._model, self.lower, self.upper = model, lower, upper
        self.extent = extent_of(lower, upper)

    @cached_property
    def means(self) -> list[float]:
        """Weighted by the start distribution."""
        initial = self._model.initial
        return dots((initial, self.lower), (initial, self.upper))


class Best:
    """The sweep with the smallest gap so far; before the first one, what is true of any policy."""

    def __init__(self, problem: Problem) -> None:
        model = problem.model
        low, high = value_range(model)
        self._problem = problem
        self.range = low, high  # 0 is between them: states that end have that
        self.largest_cost = largest_cost(model)
        self._extent = Extent(high - low, abs(high), 0.0)
        self._found: Bounded | None = None
        self._sweep: tuple[Array, Update] | None = None
        self._verdict: Verdict | None = None
        self._proved = True

    @cached_property
    def _judge(self) -> Any:
        """Made when there is something to judge: it runs the loop."""
        from drmdp.solvers.judge import ByValues

        return ByValues(self._problem)

    @property
    def _known(self) -> Bounded:
        """The bounds; these are true before the first sweep."""
        if self._found is None:
            ends = self._problem.model.terminal
            lower, upper = (np.where(ends, 0.0, own) for own in self.range)
            self._found = Bounded(self._problem.model, lower, upper)
        return self._found

    @property
    def lower(self) -> Array:
        """Bound from below, (S,)."""
        return self._known.lower

    @property
    def upper(self) -> Array:
        """Bound from above, (S,)."""
        return self._known.upper

    @property
    def means(self) -> Sequence[float]:
        """Both, weighted by the start distribution."""
        return self._known.means

    def take(self, value: Array, update: Update) -> None:
        """Keep a sweep if it is the best."""
        verdict = None
        if isinstance(claim := update.claim, Pair):
            claim = replace(claim, policy=playable(self._problem.model, claim.policy))
            update = replace(update, policy=claim.policy, claim=claim)
            verdict = self._problem.verdict = self._judge.look(claim, value)
            known = self._within(verdict.bounds)
        else:
            known = self._bounds(value, update)
        if self._sweep is None or known.extent.gap <= self.gap:
            self._keep(known, value, update)
            self._verdict, self._proved = verdict, False

    def _keep(self, known: Bounded, value: Array, update: Update) -> None:
        self._found, self._extent, self._sweep = known, known.extent, (value, update)

    def prove(self) -> None:
        """Have the bounds proved from the raw data; what a method or an operator said of them is forgotten."""
        if self._sweep is None or self._proved:
            return
        value, update = self._sweep
        if isinstance(update.claim, Pair):
            assert self._verdict is not None
            verdict, nature = self._judge.proved(update.claim, self._verdict)
            update = replace(update, nature=nature)
            known = self._within(verdict.bounds)
        else:
            update = self._problem.prove(value, update, self._problem.policy is not None)
            known = self._bounds(value, update)
        self._keep(known, value, update)
        self._proved = True

    @property
    def policy(self) -> Array:
        """The policy of that sweep; any, before the first."""
        return any_policy(self._problem.model) if self._sweep is None else self._sweep[1].policy

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """What is held, for `restore`; None before the first sweep."""
        return None if self._sweep is None else (self.lower, self.upper, self._sweep, self._proved)

    def restore(self, saved: tuple[Any, ...] | None) -> None:
        """Hold what was saved."""
        if saved is not None:
            lower, upper, sweep, self._proved = saved
            self._keep(Bounded(self._problem.model, lower, upper), *sweep)

    def _bounds(self, value: Array, update: Update) -> Bounded:
        model = self._problem.model
        steps = update.lower_step, update.upper_step
        found = certificate.bounds(value, *steps, model.discount, model.terminal, *self.range)
        return Bounded(model, found.lower, found.upper)

    def _within(self, found: Bounds) -> Bounded:
        lower, upper = np.maximum(found.lower, self.range[0]), np.minimum(found.upper, self.range[1])
        return Bounded(self._problem.model, lower, upper)

    @property
    def proved(self) -> bool:
        """Whether there is nothing to prove."""
        return self._proved

    @property
    def found(self) -> bool:
        """Whether there is a sweep at all."""
        return self._sweep is not None

    @property
    def sweep(self) -> tuple[Array | None, Any]:
        """Where that sweep was made and nature's side of it; nowhere before the first, or where a pair was judged by its values."""
        judged = self._sweep is None or self._verdict is not None
        return None if judged or self._sweep is None else self._sweep[0], self.nature

    @property
    def nature(self) -> Any:
        """Nature's side of that sweep, which may remember her N kernels or her mixtures of them; None before the first."""
        return None if self._sweep is None else self._sweep[1].nature

    @property
    def make_kernel(self) -> Callable[[], Any]:
        """What makes nature's mean kernel of that sweep, (S, A, S); it holds no more of the run than that needs."""
        model = self._problem.model
        nature = NominalOperator(model, model.mean_kernel).nature if self._sweep is None else self.nature
        make: Callable[[], Any] = nature.kernel
        return make

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return self._extent.gap

    @property
    def scale(self) -> float:
        """What a relative gap is relative to, if the run ended here."""
        return max(self._extent.most, self.largest_cost)

    @property
    def least_scale(self) -> float:
        """What the scale will be at least, whatever is found: the true value lies between the bounds."""
        return max(self._extent.nearest, self.largest_cost)
