"""Proofs that are routines of `drmdp._native`; see `native/judge`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp import _native
from drmdp.certificate import transport_dense
from drmdp.layout.grounded import besides, in_unit
from drmdp.sets.registry import entry_of

ONE = np.ones(1)


@dataclass(frozen=True)
class NativeProof:
    """The proof of a routine; `mean`: its rows stand for all kernels."""

    routine: str
    mean: bool = False
    extra: Any = None  # what the set has besides
    inside: Any = None  # brings kernels of any origin into the set, where that is not the way of `membership`

    def states(self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any) -> None:
        """Prove L, U and the share of nature's move for the states start … stop − 1."""
        n_mean = layout.weights.size if self.mean else 0
        if self.mean:
            layout = layout._replace(data=layout.mean, weights=ONE)
        _native.prove(self.routine, start, stop, layout, view, claim, bounds, n_mean, self.extra)


class NativeTransport(NativeProof):
    """The proof of a routine for transport."""

    feasible = staticmethod(transport_dense.feasible)
    attain = staticmethod(transport_dense.attain)

    def states(self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any) -> None:
        """The same in the unit of the lists."""
        super(NativeTransport, replace(self, extra=besides(layout))).states(
            start, stop, in_unit(layout), view, claim, bounds
        )


class NativeOrders(NativeProof):
    """The proof of a routine for sets of every finite order."""

    def of(self, ball: Any) -> NativeProof:
        """That of the order of a ball."""
        return replace(self, extra=(float(ball.order), None))


class NativeOutside(NativeProof):
    """The proof of rows that are functions from outside."""

    def of(self, ball: Any) -> NativeProof:
        """That of a set."""
        mean = getattr(ball, "around", "kernels") == "mean"
        routine = "outside_radius" if ball.by_kernel else "outside_price"
        return NativeProof(routine, mean, (1.0, None, entry_of(ball).functions))


KL, KL_MEAN = NativeProof("kl"), NativeProof("kl", mean=True)
BURG, BURG_MEAN = NativeProof("burg"), NativeProof("burg", mean=True)
CHI2, CHI2_MEAN = NativeProof("chi2"), NativeProof("chi2", mean=True)
L1, TV = NativeProof("l1", mean=True), NativeProof("tv", mean=True)
L2, LINF_ORDERS = NativeProof("l2"), NativeOrders("linf")
LINF_1, LINF_INF = (NativeProof("linf", extra=(order, None)) for order in (1.0, math.inf))
L2_INF, L2_ORDERS = NativeProof("l2_orders", extra=(math.inf, None)), NativeOrders("l2_orders")
L1_INF, L1_ORDERS = NativeProof("l1_orders", extra=(math.inf, None)), NativeOrders("l1_orders")
TRANSPORT = NativeTransport("transport", mean=True)
TRANSPORT_INF = NativeTransport("transport_each")
OUTSIDE = NativeOutside("outside_price")
