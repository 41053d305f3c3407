"""The proof of balls of finite order p; see `drmdp.certificate.compressed`.

**From above.** For prices λ_i ≥ 0 of the distances d_i, Hölder's inequality gives Σ_i w_i λ_i d_i ≤ θ ‖λ‖, where ‖λ‖ = (Σ_i w_i λ_i^q)^{1/q}, q = p/(p − 1),
and max λ_i for p = 1. So for every y in the ball

    Σ_a x_a Σ_i w_i y_ia·u_a  ≤  U = Σ_i w_i B_i + θ ‖λ‖,        B_i ≥ max_y Σ_a x_a y_ia·u_a − λ_i d_i(y)    over all kernels y.

No power is taken of anything that is searched for, and p enters through the norm alone.

    ℓ∞: with h_ia the bounds of `linf` on a row's value at radius r, B_i = max_r Σ_a x_a h_ia(r) − λ_i r, for the λ_i handed over, thresholds by `linf_radii`.

**From below.** Rows are built from what is handed over (radii by_kernel), their distances d_i are measured, and
all rows are pulled towards the data by θ/D, D = (Σ_i w_i d_iᵖ)^{1/p}, if D > θ: D is a norm of y − ŷ.

**Rounding.** A norm is taken of λ/max λ. A power is right up to 2 ε, relatively, beside what its base and its exponent are off: the base by ε, which the
root turns back into ε, and the exponent by ε, which moves a sum s by |ln s| ε/q. So ‖λ‖ and D are off by (N + 16 + 2 |ln s|) ε, relatively. B_i has the margins
of the files named.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp.certificate import duals, linf, linf_radii
from drmdp.certificate.sums import EPS, depth, finish, normalise, weigh_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.sets import AmbiguitySet


@njit(**LEAN)
def norm_above(q, each, w):
    """(Σ_i w_i each_i^q)^{1/q}, rounded up; max each_i for q = ∞.

    reads   q, each (N,) ≥ 0, w (N,)
    returns it
    """
    most, total = 0.0, 0.0
    for i in range(w.size):
        if not (each[i] >= 0.0 and each[i] < np.inf):
            return np.inf
        most = max(most, each[i])
    if not most > 0.0 or q == np.inf:
        return most
    for i in range(w.size):
        total += w[i] * (each[i] / most) ** q
    if not total > 0.0:
        return most
    return most * total ** (1.0 / q) * (1.0 + (w.size + 16.0 + 2.0 * abs(math.log(total))) * EPS)


@njit(**INLINE)
def _conjugate(p):
    """q with 1/p + 1/q = 1.

    reads   p
    returns it
    """
    return p / (p - 1.0) if p > 1.0 else np.inf


@njit(**INLINE)
def _pull(p, theta, each, w, slack, share):
    """Share of nature's move that is surely in the ball.

    reads   p, theta, each (N,): distances of the kernels; w (N,), slack (relative errors of the distances, in ε)
    fills   share (N,), at most 1
    """
    far, most = norm_above(p, each, w), theta * (1.0 - (slack + 16.0) * EPS)
    part = 1.0 if far <= most else (most / far if most > 0.0 and far < np.inf else 0.0)
    for i in range(share.size):
        share[i] = part


@njit(**INLINE)
def _prices(source, prices):
    """The prices that are claimed; what is no price is 0.

    reads   source (N,)
    fills   prices (N,)
    """
    for i in range(prices.size):
        prices[i] = source[i] if source[i] > 0.0 and source[i] < 1e100 else 0.0


@njit(**KERNEL)
def _states_linf(start, stop, layout, view, claim, bounds, work, p):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal.

    reads   layout, view, claim, p
    fills   bounds, work
    """
    A, N = layout.available.shape[1], layout.weights.size
    memory, w, tau, prices, far = claim.memory, layout.weights, work.actions[0], work.kernels[0], work.kernels[1]
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        theta, x, radius = layout.radius[s], claim.policy[s], memory.by_kernel[s]
        entries = layout.indptr[(s + 1) * A] - layout.indptr[s * A]
        terms = 2 * depth(entries) + A + 16
        for i in range(N):
            far[i] = radius[i] if radius[i] > 0.0 else 0.0
        _pull(p, theta, far, w, depth(entries) + 2 * entries + 32, bounds.share[s])
        for a in range(A):
            if layout.available[s, a]:
                weigh_rows(layout, s, a, work)
                work.worth[a] = linf.worth_of(layout, view, s, a, far, bounds.share[s], work)
        _prices(memory.by_row[s, 0], prices)
        above = theta * norm_above(_conjugate(p), prices, w) * (1.0 + 4.0 * EPS)
        for i in range(N):
            spot, r = linf.Spot(layout, view, s, i, x), far[i]
            linf_radii.thresholds(spot, prices[i], r if r <= 1.0 else 1.0, linf_radii.NEAR * min(theta, 1.0), work, tau)
            worth, rise, n = linf.pieces_of(spot, tau, work)
            bound = linf_radii.climb(worth, rise, n, prices[i], 1.0 if theta > 0.0 else 0.0, terms, work)
            above += w[i] * bound + (N + 8) * EPS * w[i] * (abs(bound) + prices[i])
        finish(s, base, unit, above if above < 0.0 else 0.0, layout, view, claim, bounds, work)


class Proof(NamedTuple):
    """A metric and an order."""

    kernel: Any
    dual_rows: Any
    p: float

    def states(self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any, work: Any) -> None:
        """Prove L, U and the share of nature's move for the states start … stop − 1."""
        self.kernel(start, stop, layout, view, claim, bounds, work, self.p)


class Orders(NamedTuple):
    """The proofs of a metric."""

    kernel: Any
    rows: Any

    def of(self, ball: AmbiguitySet) -> Proof:
        """That of the order of a ball."""
        order: Any = ball.order  # type: ignore[attr-defined]
        return Proof(self.kernel, duals.of_order(self.rows, float(order)), float(order))


LINF_ORDERS = Orders(_states_linf, duals.linf)
