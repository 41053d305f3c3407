"""Families whose sweeps and rows are routines of `drmdp._native`; see `drmdp.bellman.family` and `native/`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp import _native
from drmdp.bellman.family import FAINTEST
from drmdp.bellman.nature_rows import EACH, Answer, Question
from drmdp.core.cached import cached_property
from drmdp.layout import events
from drmdp.layout.grounded import Grounded, besides, in_unit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point

ONE = np.ones(1)


@dataclass(frozen=True)
class NativeFamily:
    """A routine, and what its rows are around."""

    routine: str
    mean: bool = False  # the rows of the mean kernel stand for all
    single_kernels: bool = True  # whether nature's kernel is the mean of N
    tops: int = 1  # entries of a row beside the listed ones
    prefixes: int = 0  # prefix terms of a row
    weights: Any = None  # makes mixtures of the kernels of what is kept; see `nature_rows.Answer`
    by_pair: bool = False  # a budget for each action
    FAINTEST: float = FAINTEST  # the least radius that its kernels tell from 0
    extra: Any = None  # what the set has besides

    def workspace(self, layout: Layout, point: Point, start: int, stop: int) -> None:
        """None: routines have their own."""

    def update(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Minimise over the policy, let nature maximise."""
        _native.sweep(
            self.routine, False, self.by_pair, start, stop, layout, point, memory, out, tol, self._besides(layout)
        )

    def evaluate(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Keep the policy in out.policy."""
        _native.sweep(
            self.routine, True, self.by_pair, start, stop, layout, point, memory, out, tol, self._besides(layout)
        )

    def _besides(self, layout: Any) -> Any:
        """What the routine is told beside the layout."""
        return self.extra

    def prepared(self, layout: Any) -> Any:
        """The rows that the set is around."""
        return layout._replace(data=layout.mean, weights=ONE) if self.mean else layout

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return Answer(
            self._respond,
            self.singles,
            self.prefixes,
            single_kernels=self.single_kernels,
            work=False,
            weights=self.weights,
        )

    def singles(self, layout: Any) -> Any:
        """Entries of a row beside the listed ones; see `nature_rows.Answer`."""
        return layout.weights.size if self.tops == EACH else self.tops

    def _respond(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, question: Question, work: Any
    ) -> None:
        if self.mean and (layout.weights > 0).all():  # else a single kernel is asked for, which moves as the mean does
            layout = self.prepared(layout)
        _native.respond(self.routine, self.by_pair, start, stop, layout, point, memory, question, self._besides(layout))


class NativeOrders(NativeFamily):
    """A routine for sets of every order."""

    def of(self, ball: Any) -> NativeFamily:
        """That of the order of a ball."""
        return replace(self, extra=(float(ball.order), None))


class NativeTransport(NativeFamily):
    """A routine for transport: lists say where mass can go."""

    def _besides(self, layout: Grounded) -> Any:
        return besides(layout)

    def prepared(self, layout: Grounded) -> Any:
        """The rows that the set is around, and the radius in the unit of the lists."""
        return super().prepared(in_unit(layout))

    def singles(self, layout: Any) -> Any:
        """Two targets that are not listed for each entry of a row."""
        rows = 1 if self.mean and (layout.weights > 0).all() else layout.weights.size
        return 2 * rows * events.lengths(layout) * layout.unlisted


def _mean(routine: str) -> NativeFamily:
    return NativeFamily(routine, mean=True, single_kernels=False)


KL, KL_MEAN = NativeFamily("kl"), _mean("kl")
BURG, BURG_MEAN = NativeFamily("burg"), _mean("burg")
CHI2, CHI2_MEAN = NativeFamily("chi2"), _mean("chi2")
L1, TV, TV_MEAN = NativeFamily("l1", mean=True), NativeFamily("tv", mean=True), _mean("tv")
L2 = NativeFamily("l2", tops=0, prefixes=2, FAINTEST=1e-14)  # of smaller moves rounding leaves nothing
L1_INF, L1_ORDERS = NativeFamily("l1_orders", extra=(math.inf, None), FAINTEST=1e-14), NativeOrders("l1_orders")
L2_ORDERS = NativeOrders("l2_orders", tops=0, prefixes=1)
L2_INF = NativeFamily("l2_orders", tops=0, prefixes=1, extra=(math.inf, None))
INTERVALS = NativeFamily("intervals", single_kernels=False, tops=0)
LINF_ORDERS = NativeOrders("linf", tops=EACH, prefixes=1)
LINF_1, LINF_INF = (NativeFamily("linf", tops=EACH, prefixes=1, extra=(order, None)) for order in (1.0, math.inf))
TRANSPORT, TRANSPORT_INF = NativeTransport("transport", mean=True), NativeTransport("transport_each")
