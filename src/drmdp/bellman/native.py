"""Families: how nature answers one set, or several that differ in numbers only, by routines of `drmdp._native` (`native/`).

A family says what its rows are around, `sweep`s over ranges of states, and writes her rows after a sweep (`respond`, `nature_rows`). What a sweep keeps of a
state is `drmdp.layout.memory.Memory`: the claim that `drmdp.certificate` proves, and where the next sweep begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp import _native
from drmdp.layout import events
from drmdp.layout.grounded import besides, in_unit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point
from drmdp.sets.registry import entry_of

if TYPE_CHECKING:
    from drmdp.bellman.nature_rows import Question

ONE = np.ones(1)
EACH = -1


@dataclass(frozen=True)
class NativeFamily:
    """A routine, and what its rows are around."""

    routine: str
    mean: bool = False  # the rows of the mean kernel stand for all
    single_kernels: bool = True  # whether nature's kernel is the mean of N
    tops: int = 1  # entries of a row beside the listed ones; EACH: one for each kernel
    prefixes: int = 0  # prefix terms of a row, so many for each kernel
    weights: Any = None  # makes mixtures of the kernels, (S, N) or (S, A, N), of layout, memory and share, if that is what she plays
    by_pair: bool = False  # a budget for each action
    faintest: float = 1e-40
    """Radii below count as this one: what it buys no double can tell, and routines divide by radii. Bounds are proved at those of the set."""
    extra: Any = None  # what the set has besides

    def sweep(
        self, fixed: bool, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float
    ) -> None:
        """Minimise over the policy, or keep the one in out.policy (`fixed`), and let nature maximise; the layout is `prepared`."""
        _native.sweep(
            self.routine, fixed, self.by_pair, start, stop, layout, point, memory, out, tol, self.besides(layout)
        )

    def besides(self, layout: Any) -> Any:
        """What the routine is told beside the layout."""
        return self.extra

    def prepared(self, layout: Any) -> Any:
        """The data as sweeps read them."""
        faint = (layout.radius > 0.0) & (layout.radius < self.faintest)
        if faint.any():
            layout = layout._replace(radius=np.where(faint, self.faintest, layout.radius))
        return self.around(layout)

    def around(self, layout: Any) -> Any:
        """The rows that the set is around."""
        return layout._replace(data=layout.mean, weights=ONE) if self.mean else layout

    def singles(self, layout: Any) -> Any:
        """Entries of her rows beside the listed ones; or how many for each pair."""
        return layout.weights.size if self.tops == EACH else self.tops

    def respond(self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, question: Question) -> None:
        """Write her rows."""
        if self.mean and (layout.weights > 0).all():  # else a single kernel is asked for, which moves as the mean does
            layout = self.around(layout)
        _native.respond(self.routine, self.by_pair, start, stop, layout, point, memory, question, self.besides(layout))


class NativeOrders(NativeFamily):
    """A routine for sets of every order."""

    def of(self, ball: Any) -> NativeFamily:
        """That of the order of a ball."""
        return replace(self, extra=(float(ball.order), None))


class NativeTransport(NativeFamily):
    """A routine for transport: lists say where mass can go."""

    def besides(self, layout: Layout) -> Any:
        """The lists."""
        return besides(layout)

    def around(self, layout: Layout) -> Any:
        """The rows that the set is around, and the radius in the unit of the lists."""
        return super().around(in_unit(layout))

    def singles(self, layout: Any) -> Any:
        """Two targets that are not listed for each entry of a row."""
        rows = 1 if self.mean and (layout.weights > 0).all() else layout.weights.size
        return 2 * rows * events.lengths(layout) * layout.unlisted


class NativeOutside(NativeFamily):
    """Rows that are functions from outside."""

    def of(self, ball: Any) -> NativeFamily:
        """Those of a set."""
        mean = getattr(ball, "around", "kernels") == "mean"
        routine = "outside_radius" if ball.by_kernel else "outside_price"
        return NativeFamily(routine, mean, single_kernels=not mean, extra=(1.0, None, entry_of(ball).functions))


def _mean(routine: str) -> NativeFamily:
    return NativeFamily(routine, mean=True, single_kernels=False)


KL, KL_MEAN = NativeFamily("kl"), _mean("kl")
BURG, BURG_MEAN = NativeFamily("burg"), _mean("burg")
CHI2, CHI2_MEAN = NativeFamily("chi2"), _mean("chi2")
L1, TV, TV_MEAN = NativeFamily("l1", mean=True), NativeFamily("tv", mean=True), _mean("tv")
L2 = NativeFamily("l2", tops=0, prefixes=2, faintest=1e-14)  # of smaller moves rounding leaves nothing
L1_INF, L1_ORDERS = NativeFamily("l1_orders", extra=(math.inf, None), faintest=1e-14), NativeOrders("l1_orders")
L2_ORDERS = NativeOrders("l2_orders", tops=0, prefixes=1)
L2_INF = NativeFamily("l2_orders", tops=0, prefixes=1, extra=(math.inf, None))
INTERVALS = NativeFamily("intervals", single_kernels=False, tops=0)
LINF_ORDERS = NativeOrders("linf", tops=EACH, prefixes=1)
LINF_1, LINF_INF = (NativeFamily("linf", tops=EACH, prefixes=1, extra=(order, None)) for order in (1.0, math.inf))
TRANSPORT, TRANSPORT_INF = NativeTransport("transport", mean=True), NativeTransport("transport_each")
OUTSIDE = NativeOutside("outside_price")
