"""The proof of sets with one budget for all actions of a state, costs of rows added up; see `drmdp.certificate.compressed` and `rows`.

U, at any multiplier τ > 0 of the budget B and with the bounds of `rows` on the conjugates h_ia:

    Σ_a x_a Σ_i w_i z_ia·u_a  ≤  (B + Σ_a Σ_i w_i h_ia(τ x_a))/τ        for every z with Σ_a Σ_i w_i C_ia(z_ia) ≤ B.

L: the value of the rows (1 − f) z(t₁) + f z(t₂), built anew from three numbers an action, whose costs are measured. Costs are convex and 0 at the data, so that
the share s = min(1, B/ΣC) of the way from the data costs at most B.

Around the mean kernel the one row of the mean stands for all; it is off by 4 (K + N + 4) ε, relatively.

**Rounding.** Adding up N rows and A actions takes (N + A + 8) ε times what is added, and B, τ and s some ε more. The value of a row is off by
2 (depth(K) + 16) ε times its size, which is at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.certificate.sums import EPS, dot, finish, mean_worth, normalise, weigh_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN, Walls, njit, wall


@njit(**INLINE)
def _price(x, by_action):
    """The multiplier τ = Σ t_a that is claimed.

    reads   x (A,), by_action (A,)
    returns τ, or 0 if it is none
    """
    total = 0.0
    for a in range(x.size):
        if x[a] > 0.0 and by_action[a] > 0.0:
            total += by_action[a]
    return total if total > 0.0 and total < 1e200 else 0.0


@njit(**LEAN)
def _above(layout, s, tau, x, work, dual, n_mean):
    """Bound Σ_a x_a y_a·u from above.

    reads   layout, s, tau (0: there is none), x (A,), work: u, scale; dual, n_mean (kernels behind the mean, 0 if rows are kernels)
    returns the bound; rows of played actions were weighed
    """
    A, N = work.scale.shape
    budget, first = layout.radius[s], layout.indptr[s * A]
    total, size, still = budget, budget, 0.0
    if not tau > 0.0 and budget > 0.0:
        return 0.0
    for a in range(A):
        if not x[a] > 0.0:
            continue
        lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
        if not budget > 0.0:
            off = 4.0 * (hi - lo + max(N, n_mean) + 8) * EPS
            still += x[a] * (1.0 - off) * dot(layout.mean, lo, work.u, lo - first, hi - lo)
            continue
        off = 4.0 * (hi - lo + n_mean + 4) if n_mean > 0 else 0.0
        for i in range(N):
            y = layout.data[N * lo + i * (hi - lo) : N * lo + (i + 1) * (hi - lo)]
            h = layout.weights[i] * dual(tau * x[a], y, work.scale[a, i], work.u[lo - first : hi - first], off)
            total += h
            size += abs(h)
    if not budget > 0.0:
        return still
    return (total + (N + A + 16) * EPS * size) / tau


@njit(**LEAN)
def _bend(t, y, scale, u, z, point):
    """Write a row of mass 1 at t, that of the data if t is no multiplier.

    reads   t, y (K,), scale, u (K,), point
    fills   z (K,)
    returns what a top that is not listed has
    """
    K = u.size
    top = 0.0
    if t > 0.0:
        top = point(t, y, scale, u, z[:K])
    mass = top
    for j in range(K):
        mass += z[j] if t > 0.0 else 0.0
    if not (mass > 1e-200 and mass < np.inf):
        for j in range(K):
            z[j] = scale * y[j]
        return 0.0
    for j in range(K):
        z[j] /= mass
    return top / mass


@njit(**LEAN)
def _row(mixture, y, scale, u, z, other, off, calls):
    """Build and measure one of nature's rows.

    reads   mixture (3,): t₁, t₂, f; y (K,), scale, u (K,), off (of ŷ), calls (see `_states`)
    fills   z, other
    returns what it is surely worth, and a bound on its cost
    """
    K, f = u.size, mixture[2]
    f = f if f >= 0.0 and f <= 1.0 else 0.0
    top = (1.0 - f) * _bend(mixture[0] if f < 1.0 else mixture[1], y, scale, u, z, calls[2])
    if f == 1.0:
        top = _bend(mixture[1], y, scale, u, z, calls[2])
    elif f > 0.0:
        top += f * _bend(mixture[1], y, scale, u, other, calls[2])
        for j in range(K):
            z[j] = (1.0 - f) * z[j] + f * other[j]
    mass, value = top, 0.0
    for j in range(K):
        mass += z[j]
        value += z[j] * u[j]
    return value / mass - 2.0 * (K + 16) * EPS * abs(value), calls[3](z[:K], top, mass, y, scale, off)


@njit(**INLINE)
def _bent(mixture):
    """Whether (t₁, t₂, f) says that rows are to be bent."""
    return mixture[0] > 0.0 or mixture[1] > 0.0


@njit(**KERNEL)
def _states(start, stop, layout, view, claim, bounds, work, calls):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal.

    reads   layout, view, claim, calls: the kernels behind the mean, `dual`, `point` and `cost`
    fills   bounds, work
    """
    A, N = layout.available.shape[1], layout.weights.size
    w, n_mean = layout.weights, calls[0]
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        x, first, mixtures, spent = claim.policy[s], layout.indptr[s * A], claim.memory.by_row[s], 0.0
        for a in range(A):
            if not layout.available[s, a]:
                continue
            work.worth[a] = mean_worth(layout, s, a, work)
            work.actions[0, a] = work.worth[a]
            if x[a] > 0.0 or _bent(mixtures[a]):
                weigh_rows(layout, s, a, work)
            if not _bent(mixtures[a]):
                continue
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            off, value = 4.0 * (hi - lo + n_mean + 4) if n_mean > 0 else 0.0, -(N + 8) * EPS
            for i in range(N):
                y = layout.data[N * lo + i * (hi - lo) : N * lo + (i + 1) * (hi - lo)]
                worth, cost = _row(
                    mixtures[a], y, work.scale[a, i], work.u[lo - first : hi - first], work.reals[0], work.reals[1], off, calls
                )  # fmt: skip
                value += w[i] * worth
                spent += w[i] * cost
            work.actions[0, a] = value
        budget = layout.radius[s] * (1.0 - (N + A + 16) * EPS)
        share = 1.0 if spent <= budget else (budget / spent if spent < np.inf else 0.0)
        for i in range(bounds.share.shape[1]):
            bounds.share[s, i] = share
        for a in range(A):
            if layout.available[s, a]:
                bent = (1.0 - share) * work.worth[a] + share * work.actions[0, a] - 8.0 * EPS
                work.worth[a] = bent if work.actions[0, a] != work.worth[a] else work.worth[a]
        above = _above(layout, s, _price(x, claim.memory.by_action[s]), x, work, calls[1], n_mean)
        finish(s, base, unit, min(above, 0.0), layout, view, claim, bounds, work)


@njit(**KERNEL)
def _duals(y, u, t, off, duals, dual):
    """Bound conjugates of dense rows.

    reads   y (R, K), u (R, K), t (R,), off, dual
    fills   duals (R,)
    """
    for r in range(t.size):
        duals[r] = dual(t[r], y[r], 1.0, u[r], off)


@cache
def _compiled(dual: Any, point: Any, cost: Any, real: Any, n_mean: int) -> Walls:
    """The kernels behind the mean, and the functions of a row model behind walls, for data of a type."""
    if n_mean:
        return Walls((n_mean, *_compiled(dual, point, cost, real, 0)[1:]))
    y, row, many = np.empty(1, dtype=real), np.empty(1), np.empty(1)
    y.setflags(write=False)
    return Walls(
        (
            n_mean,
            wall(dual.py_func, 0.0, 0.0, y, 0.0, row, 0.0),
            wall(point.py_func, 0.0, 0.0, y, 0.0, row, many),
            wall(cost.py_func, 0.0, row, 0.0, 0.0, y, 0.0, 0.0),
        )
    )


@dataclass(frozen=True)
class Proof:
    """The proof of a row model with one budget for all actions."""

    model: Any  # `dual`, `point`, `cost`
    mean: bool  # around the mean kernel
    unit: float = 1.0  # budget in a unit of the radius

    def states(self, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any, work: Any) -> None:
        """Prove L, U and the share of nature's move for the states start … stop − 1."""
        n_mean = 0
        if self.unit != 1.0:
            radius = self.unit * layout.radius
            radius.setflags(write=False)
            layout = layout._replace(radius=radius)
        if self.mean:
            n_mean = layout.weights.size
            layout = layout._replace(data=layout.mean, weights=np.ones(1))
            work = work._replace(scale=work.scale[:, :1].copy(), own=work.own[:, :1].copy())
        _states(start, stop, layout, view, claim, bounds, work, self._compiled(layout.data.dtype, n_mean))

    def dual_rows(self, ball: Any, data: Any, xz: Array, top: Array, mu: Array, tau: Array) -> tuple[Array, Array]:
        """R_i of each row and Σ|terms|, (n, N) each, for `drmdp.certificate.dense`: Σ_a top_a + μ h((x z − top)/μ), and the budget μ B."""
        n, A, N, S = data.nominal.shape
        allowed = np.broadcast_to(data.allowed[:, :, None, :], data.nominal.shape)
        below = np.where(allowed, xz - top[:, :, None, None], 0.0)
        unit = np.maximum(-below.min(axis=3), 1e-300)  # (n, A, N)
        price = np.broadcast_to(mu[:, None, :] / self.unit, unit.shape)
        usable = (price > 0) & (unit / np.where(price > 0, price, 1.0) < 1e200)
        t = np.where(usable, unit / np.where(usable, price, 1.0), 1.0)
        u = np.minimum(below / unit[..., None], 0.0)
        y, stakes = _listed(data.nominal, allowed, u)
        h = np.empty(n * A * N)
        dual = self._compiled(np.dtype(np.float64), 0)[1]
        _duals(y, stakes, np.ascontiguousarray(t).ravel(), 4.0 * (S + data.n_kernels + 4), h, dual)
        each = np.where(data.available[:, :, None], np.where(usable, price * h.reshape(n, A, N), np.inf), 0.0)
        paid = mu * data.radius[:, None]
        size = np.abs(each) + np.abs(top)[:, :, None] + 4 * np.where(data.available[:, :, None], unit, 0.0)
        return each.sum(axis=1) + top.sum(axis=1)[:, None] + paid, size.sum(axis=1) + paid

    def _compiled(self, real: Any, n_mean: int) -> Walls:
        return _compiled(self.model.dual, self.model.point, self.model.cost, real, n_mean)


def _listed(nominal: Array, allowed: Any, u: Array) -> tuple[Array, Array]:
    """Rows and stakes, (R, S) each, as a row model reads them: what is not allowed is never seen, and no top."""
    S = nominal.shape[3]
    rows = np.where(allowed, nominal, 0.0).reshape(-1, S)
    rows.setflags(write=False)
    return rows, np.where(allowed, u, -1.0).reshape(-1, S)
