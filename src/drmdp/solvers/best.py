"""The best sweep of a run: the one with the smallest gap, its policy and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Update
from drmdp.certificate import Pair
from drmdp.certificate.dense import Bounds
from drmdp.core.cached import cached_property
from drmdp.core.levels import ended
from drmdp.core.surveys import Extent, extent_of
from drmdp.core.tolerance import largest_cost
from drmdp.core.vectors import dots
from drmdp.criteria import Sides
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


class Side(NamedTuple):
    """A sweep that bounds one side, or both, where it was made, and whether it was proved."""

    value: Array
    update: Update
    proved: bool = False


class Best:
    """The sweeps with the smallest gap so far, one for each side; before the first one, what is true of any policy."""

    def __init__(self, problem: Problem) -> None:
        low, high = problem.criterion.range
        self._problem, self._criterion = problem, problem.criterion
        self.range = low, high  # 0 is between them: states that end have that
        self.largest_cost = largest_cost(problem.model) / problem.criterion.unit
        if not self.largest_cost and not self._criterion.joint:  # any unit is as good as any other
            self.largest_cost = 1.0
        self._extent = Extent(high - low, abs(high), 0.0)
        self._found: Bounded | None = None
        self._sides: list[Side | None] = [None, None]  # from below, from above
        self._verdict: Verdict | None = None

    @cached_property
    def _judge(self) -> Any:
        """Made when there is something to judge: it runs the loop."""
        from drmdp.solvers.judge import ByValues

        return ByValues(self._problem)

    @property
    def _known(self) -> Bounded:
        """The bounds; these are true before the first sweep."""
        if self._found is None:
            lower, upper = (ended(self._problem.model, own) for own in self.range)
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
        """Keep a sweep if it is the best, of the sides that it bounds."""
        verdict = None
        if isinstance(claim := update.claim, Pair):
            claim = replace(claim, policy=playable(self._problem.model, claim.policy))
            update = replace(update, policy=claim.policy, claim=claim)
            verdict = self._problem.verdict = self._judge.look(claim, value)
            found: Sides = self._within(verdict.bounds)
        else:
            found = self._criterion.bounds(value, update)
        for which in ((0, 1),) if self._criterion.joint else ((0,), (1,)):
            if any(found[k] is None for k in which):
                continue
            known = self._with(found, which)
            if self._sides[which[0]] is None or not known.extent.gap > self.gap:
                self._keep(known, which, Side(value, update))
                self._verdict = verdict

    def _with(self, found: Sides, which: Sequence[int]) -> Bounded:
        """The bounds that are known, with some of those found."""
        lower = found[0] if 0 in which else self.lower
        upper = found[1] if 1 in which else self.upper
        assert lower is not None
        assert upper is not None
        return Bounded(self._problem.model, lower, upper)

    def _keep(self, known: Bounded, which: Sequence[int], side: Side | None) -> None:
        self._found, self._extent = known, known.extent
        for k in which:
            self._sides[k] = side

    def keep_below(self, lower: Array, side: Side) -> None:
        """Take a bound from below that was proved otherwise."""
        self._keep(self._with((lower, None), (0,)), (0,), side)

    def prove(self) -> None:
        """Have the bounds proved from the raw data; what a method or an operator said of them is forgotten.

        A side that is not confirmed is as unknown as before the first sweep.
        """
        for k in (0, 1):
            side = self._sides[k]
            if side is None or side.proved:
                continue
            which = [j for j, other in enumerate(self._sides) if other is side]
            value, update = side.value, side.update
            found: Sides
            if isinstance(update.claim, Pair):
                assert self._verdict is not None
                verdict, nature = self._judge.proved(update.claim, self._verdict)
                update = replace(update, nature=nature)
                found = self._within(verdict.bounds)
            else:
                update = self._problem.prove(value, update, self._problem.policy is not None)
                found = self._criterion.bounds(value, update)
            lost = [j for j in which if found[j] is None]
            kept = [j for j in which if found[j] is not None]
            self._keep(self._with(found, kept), kept, Side(value, update, proved=True))
            if lost:
                self._criterion.widen(update)
                unknown = ended(self._problem.model, self.range[0]), ended(self._problem.model, self.range[1])
                self._keep(self._with(unknown, lost), lost, None)

    @property
    def policy(self) -> Array:
        """The policy of the sweep that bounds from above; any, before the first."""
        return any_policy(self._problem.model) if self._sides[1] is None else self._sides[1].update.policy

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """What is held, for `restore`; None before the first sweep."""
        if not self.found:
            return None
        sides = self._sides[:1] if self._sides[0] is self._sides[1] else self._sides
        return self.lower, self.upper, *(None if side is None else tuple(side) for side in sides)

    def restore(self, saved: tuple[Any, ...] | None) -> None:
        """Hold what was saved."""
        if saved is not None:
            lower, upper, *kept = saved
            self._keep(Bounded(self._problem.model, lower, upper), (), None)
            sides = [None if side is None else Side(*side) for side in kept]
            self._sides = sides * 2 if len(sides) == 1 else sides

    def _within(self, found: Bounds) -> tuple[Array, Array]:
        return np.maximum(found.lower, self.range[0]), np.minimum(found.upper, self.range[1])

    @property
    def proved(self) -> bool:
        """Whether there is nothing to prove."""
        return all(side is None or side.proved for side in self._sides)

    @property
    def found(self) -> bool:
        """Whether there is a sweep at all."""
        return any(side is not None for side in self._sides)

    @property
    def sweep(self) -> tuple[Array | None, Any]:
        """Where the sweep was made that proves both sides and nature's side of it; nowhere before the first, where a pair was judged by its values, or where
        each side has its own (`sweeps`).
        """
        side = self._sides[1]
        alone = side is not None and side is self._sides[0] and self._verdict is None
        return side.value if alone and side is not None else None, self.nature

    @property
    def sweeps(self) -> tuple[Side | None, Side | None]:
        """The sweeps that bound from below and from above."""
        return self._sides[0], self._sides[1]

    @property
    def rate(self) -> float:
        """What the sweeps take off costs per unit of time."""
        return getattr(self._criterion, "rate", 0.0)

    @property
    def nature(self) -> Any:
        """Nature's side of the sweep that bounds from below, which may remember her N kernels or her mixtures of them; None before the first."""
        return None if self._sides[0] is None else self._sides[0].update.nature

    @property
    def make_kernel(self) -> Callable[[], Any]:
        """What makes nature's mean kernel of that sweep, (S, A, S); it holds no more of the run than that needs."""
        model, nature = self._problem.model, self.nature
        if nature is None:
            nature = NominalOperator(model, model.mean_kernel).nature
        make: Callable[[], Any] = nature.kernel
        return make

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return self._extent.gap

    @property
    def scale(self) -> float:
        """What a relative gap is relative to, if the run ended here."""
        return max(self._extent.most, self.largest_cost) if self._extent.most < np.inf else self.least_scale

    @property
    def least_scale(self) -> float:
        """What the scale will be at least, whatever is found: the true value lies between the bounds."""
        return max(self._extent.nearest, self.largest_cost, self._criterion.guess)
