"""The incumbent of a run: the sweep with the smallest gap, its policy and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import PairClaim
from drmdp.certificate.dense import Bounds
from drmdp.core.cached import cached_property
from drmdp.core.levels import ended
from drmdp.core.tolerance import largest_cost
from drmdp.core.vectors import Extent, dots, extent_of
from drmdp.criteria import Sides
from drmdp.model import Model
from drmdp.operators.nominal import NominalOperator
from drmdp.operators.operator import Update
from drmdp.solvers.problem import Problem, Verdict, any_policy, playable


class KnownBounds:
    """Bounds and their statistics."""

    def __init__(self, model: Model, lower: Array, upper: Array) -> None:
        self._model, self.lower, self.upper = model, lower, upper
        self.extent = extent_of(lower, upper)

    @cached_property
    def means(self) -> list[float]:
        """Weighted by the start distribution."""
        initial = self._model.initial
        return dots((initial, self.lower), (initial, self.upper))


class Side(NamedTuple):
    """A sweep that bounds a side, or both, its point, and whether it was proved."""

    value: Array
    update: Update
    proved: bool = False


class Incumbent:
    """The sweeps with the smallest gap so far, one for each side; before the first, bounds of any
    policy.
    """

    def __init__(self, problem: Problem) -> None:
        low, high = problem.criterion.range
        self._problem, self._criterion = problem, problem.criterion
        self.largest_cost = largest_cost(problem.model) / problem.criterion.unit
        if not self.largest_cost and not self._criterion.joint:  # the unit does not matter
            self.largest_cost = 1.0
        self._extent = Extent(high - low, abs(high), 0.0)
        self._bounds: KnownBounds | None = None
        self._sides: list[Side | None] = [None, None]  # from below, from above
        self._verdict: Verdict | None = None

    @cached_property
    def _evaluator(self) -> Any:
        """Imported at the first pair, as it runs the loop."""
        from drmdp.solvers.pair_bounds import PairEvaluator

        return PairEvaluator(self._problem)

    @property
    def _unknown(self) -> tuple[Array, Array]:
        """Bounds that hold for any policy."""
        model, (low, high) = self._problem.model, self._criterion.range
        return ended(model, low), ended(model, high)

    @property
    def bounds(self) -> KnownBounds:
        """The bounds so far."""
        if self._bounds is None:
            self._bounds = KnownBounds(self._problem.model, *self._unknown)
        return self._bounds

    def take(self, value: Array, update: Update) -> None:
        """Keep a sweep for the sides on which it has the smallest gap."""
        verdict = None
        if isinstance(claim := update.claim, PairClaim):
            claim = replace(claim, policy=playable(self._problem.model, claim.policy))
            update = replace(update, policy=claim.policy, claim=claim)
            verdict = self._problem.verdict = self._evaluator.evaluate(claim, value)
            bounds: Sides = self._within(verdict.bounds)
        else:
            bounds = self._criterion.bounds(value, update)
        for which in ((0, 1),) if self._criterion.joint else ((0,), (1,)):
            if any(bounds[k] is None for k in which):
                continue
            known = self._with(bounds, which)
            if self._sides[which[0]] is None or not known.extent.gap > self.gap:
                self._keep(known, which, Side(value, update))
                self._verdict = verdict

    def _with(self, bounds: Sides, which: Sequence[int]) -> KnownBounds:
        """The bounds so far, with some sides replaced."""
        known = self.bounds.lower, self.bounds.upper
        sides: Any = (bounds[k] if k in which else known[k] for k in (0, 1))
        return KnownBounds(self._problem.model, *sides)

    def _keep(self, known: KnownBounds, which: Sequence[int], side: Side | None) -> None:
        self._bounds, self._extent = known, known.extent
        for k in which:
            self._sides[k] = side

    def keep_below(self, lower: Array, side: Side) -> None:
        """Replace the bound from below by one that has another proof."""
        self._keep(self._with((lower, None), (0,)), (0,), side)

    def prove(self) -> None:
        """Prove the bounds from the raw data; those of methods and operators are dropped.

        A side that is not confirmed is as unknown as before the first sweep.
        """
        for k in (0, 1):
            side = self._sides[k]
            if side is None or side.proved:
                continue
            which = [j for j, other in enumerate(self._sides) if other is side]
            value, update = side.value, side.update
            bounds: Sides
            if isinstance(update.claim, PairClaim):
                assert self._verdict is not None
                verdict, nature = self._evaluator.proved(update.claim, self._verdict)
                update = replace(update, nature=nature)
                bounds = self._within(verdict.bounds)
            else:
                update = self._problem.prove(value, update, self._problem.policy is not None)
                bounds = self._criterion.bounds(value, update)
            lost = [j for j in which if bounds[j] is None]
            proved = [j for j in which if bounds[j] is not None]
            self._keep(self._with(bounds, proved), proved, Side(value, update, proved=True))
            if lost:
                self._criterion.widen(update)
                self._keep(self._with(self._unknown, lost), lost, None)

    @property
    def policy(self) -> Array:
        """The policy of the sweep that bounds from above; any, before the first."""
        side = self._sides[1]
        return any_policy(self._problem.model) if side is None else side.update.policy

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """Bounds and sweeps for `restore`; None before the first sweep."""
        if not self.exists:
            return None
        sides = self._sides[:1] if self._sides[0] is self._sides[1] else self._sides
        saved = (None if side is None else tuple(side) for side in sides)
        return self.bounds.lower, self.bounds.upper, *saved

    def restore(self, saved: tuple[Any, ...] | None) -> None:
        """Set the bounds and sweeps that were saved."""
        if saved is not None:
            lower, upper, *saved_sides = saved
            self._keep(KnownBounds(self._problem.model, lower, upper), (), None)
            sides = [None if side is None else Side(*side) for side in saved_sides]
            self._sides = sides * 2 if len(sides) == 1 else sides

    def _within(self, bounds: Bounds) -> tuple[Array, Array]:
        low, high = self._criterion.range
        return np.maximum(bounds.lower, low), np.minimum(bounds.upper, high)

    @property
    def proved(self) -> bool:
        """Whether all sides are proved."""
        return all(side is None or side.proved for side in self._sides)

    @property
    def exists(self) -> bool:
        """Whether there is a sweep."""
        return any(side is not None for side in self._sides)

    @property
    def sweep(self) -> tuple[Array | None, Any]:
        """Point and nature of the sweep that proves both sides; no point before the first, where a
        pair was bounded by its values, or where each side has a separate sweep (`sweeps`).
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
        """The rate per unit of time that is subtracted from costs in the sweeps."""
        return getattr(self._criterion, "rate", 0.0)

    @property
    def nature(self) -> Any:
        """Nature in the sweep that bounds from below, with her N kernels or her mixtures of them if
        she has them; None before the first.
        """
        return None if self._sides[0] is None else self._sides[0].update.nature

    @property
    def make_kernel(self) -> Callable[[], Any]:
        """A function that makes nature's mean kernel of that sweep, (S, A, S), and holds no more of
        the run than it needs.
        """
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
        """The scale of a relative gap, if the run ended here."""
        most = self._extent.most
        return max(most, self.largest_cost) if most < np.inf else self.least_scale

    @property
    def least_scale(self) -> float:
        """Lower bound on the scale at the end: the true value lies between the bounds."""
        return max(self._extent.nearest, self.largest_cost, self._criterion.guess)
