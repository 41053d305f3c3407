"""Proofs that are routines of `drmdp._native`; see `native/judge`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from drmdp import _native
from drmdp._typing import Array
from drmdp.certificate import additive, l1, l2, linf, orders

ONE = np.ones(1)


@dataclass(frozen=True)
class NativeProof:
    """The proof of a routine; `mean`: its rows stand for all kernels."""

    routine: str
    dense: Any  # proves dense data
    mean: bool = False
    extra: Any = None  # what the set has besides
    WORK: ClassVar[bool] = False  # routines have their own work space

    def states(self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any, work: Any) -> None:
        """Prove L, U and the share of nature's move for the states start … stop − 1."""
        n_mean = layout.weights.size if self.mean else 0
        if self.mean:
            layout = layout._replace(data=layout.mean, weights=ONE)
        _native.prove(self.routine, start, stop, layout, view, claim, bounds, n_mean, self.extra)

    def dual_rows(self, ball: Any, data: Any, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
        """See `drmdp.certificate.dense`."""
        found: tuple[Array, Array] = self.dense.dual_rows(ball, data, xz, top, mu, tau)
        return found


class NativeOrders(NativeProof):
    """The proof of a routine for sets of every finite order; `dense` is that of order ∞."""

    def of(self, ball: Any) -> NativeProof:
        """That of the order of a ball."""
        order = float(ball.order)
        return replace(self, dense=orders.Proof(None, self.dense.dual_rows, order), extra=(order, None))


KL, KL_MEAN = NativeProof("kl", additive.KL), NativeProof("kl", additive.KL_MEAN, mean=True)
BURG, BURG_MEAN = NativeProof("burg", additive.BURG), NativeProof("burg", additive.BURG_MEAN, mean=True)
CHI2, CHI2_MEAN = NativeProof("chi2", additive.CHI2), NativeProof("chi2", additive.CHI2_MEAN, mean=True)
L1, TV, L2 = NativeProof("l1", l1, mean=True), NativeProof("tv", l1.TV, mean=True), NativeProof("l2", l2)
LINF_INF = NativeProof("linf_inf", linf)
L2_INF, L2_ORDERS = NativeProof("l2_orders", l2, extra=(math.inf, None)), NativeOrders("l2_orders", l2)
