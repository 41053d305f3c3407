"""What no kernel of a set does more than: multipliers and thresholds of nature's answer to a policy, state by state.

The numbers found here are witnesses of weak duality: `drmdp_check` states the bounds, which hold for any numbers and are tight for these. Every set has one
multiplier κ for a given policy, or one for each kernel, and it is found by bisection: the larger κ, the less nature spends. Stakes g = x (z − top) ≤ 0 and
thresholds η ≤ 0 are relative to the highest stake that nature may use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array

STEPS = 200
"""Of a bisection; fewer where no float is left between its ends."""


@dataclass(frozen=True)
class Row:
    """The rows of one action that is played: stakes and the kernels over them."""

    g: Array  # (K,)
    y: Array  # (N, K)


def _bisect(spent: Callable[[float], float], budget: float, scale: float) -> float:
    """The κ > 0 at which a decreasing function comes down to the budget; 0 if it never exceeds it."""
    lo, hi = scale * 1e-30, scale
    if not spent(lo) > budget:
        return 0.0
    while spent(hi) > budget and hi < 1e300:
        hi *= 16
    for _ in range(STEPS):
        middle = math.sqrt(lo * hi) if hi > 2 * lo else (lo + hi) / 2
        if not lo < middle < hi:
            break
        lo, hi = (middle, hi) if spent(middle) > budget else (lo, middle)
    return hi


def _scale(rows: list[Row]) -> float:
    return max((float(-row.g.min(initial=0.0)) for row in rows), default=0.0) or 1.0


# ---------------------------------------------------------------------- norms


def _project(g: Array, y: Array, kappa: float) -> float:
    """η with Σ (ŷ + (g − η)/κ)⁺ = 1."""
    point = np.sort(kappa * y + g)[::-1]
    sums = (np.cumsum(point) - kappa) / np.arange(1, point.size + 1)
    active = int(np.count_nonzero(point > sums))
    return float(min(sums[active - 1], 0.0))


def _far_l2(rows: list[Row], i: int, kappa: float) -> float:
    """Squared distance of kernel i's answer from the data."""
    total = 0.0
    for row in rows:
        move = np.maximum((row.g - _project(row.g, row.y[i], kappa)) / kappa, -row.y[i])
        total += float(move @ move)
    return total


def l2(rows: list[Row], weights: Array, radius: float, ball: Any) -> list[Any]:
    """Rows [[1, η, κ]] by action and kernel."""
    scale, kernels = _scale(rows), range(weights.size)
    if ball.by_kernel:
        kappas = [_bisect(lambda k, i=i: _far_l2(rows, i, k), radius**2, scale) for i in kernels]  # type: ignore[misc]
    else:
        every = _bisect(lambda k: sum(w * _far_l2(rows, i, k) for i, w in enumerate(weights)), radius**2, scale)
        kappas = [every] * weights.size
    return [
        [[[1, _project(row.g, row.y[i], kappas[i]) if kappas[i] > 0 else 0.0, kappas[i]]] for i in kernels]
        for row in rows
    ]


def _slope_l1(rows: list[Row], i: int, budget: float) -> float:
    """The least c with at most the budget of mass at stakes below −c."""
    far = np.concatenate([-row.g for row in rows])
    mass = np.concatenate([row.y[i] for row in rows])
    order = np.argsort(-far, kind="stable")
    kept = np.cumsum(mass[order]) > budget
    return float(far[order][np.argmax(kept)]) if kept.any() else 0.0


def l1(rows: list[Row], weights: Array, radius: float, ball: Any) -> list[Any]:
    """The same, with a budget for each row; the mean's has one."""
    slopes = [_slope_l1(rows, i, radius / 2) for i in range(weights.size)]
    return [[[[1, -c, 0.0]] for c in slopes] for _ in rows]


def l1_shared(rows: list[Row], weights: Array, radius: float) -> list[Any]:
    """The same, with one budget for all rows: one slope."""
    mixed = [Row(np.tile(row.g, weights.size), (weights[:, None] * row.y).reshape(1, -1)) for row in rows]
    c = _slope_l1(mixed, 0, radius / 2)
    return [[[[1, -c, 0.0]] for _ in weights] for _ in rows]


def _fill(g: Array, y: Array, r: float) -> float:
    """The stake η at which a row ends to be filled when every probability may change by r."""
    low, order = np.maximum(y - r, 0.0), np.argsort(-g, kind="stable")
    filled = np.cumsum((y + r - low)[order]) >= 1 - low.sum()
    return float(g[order][np.argmax(filled)]) if filled.any() else float(g.min())


def _norm_linf(rows: list[Row], i: int, r: float) -> float:
    """Σ |e| of kernel i at radius r: what a unit of radius gains."""
    total = 0.0
    for row in rows:
        eta = _fill(row.g, row.y[i], r)
        free = (row.g > eta) | ((row.y[i] > 0) & (row.y[i] >= r))
        total += float(np.abs(row.g - eta)[free].sum())
    return total


def linf(rows: list[Row], weights: Array, radius: float, ball: Any) -> list[Any]:
    """The same; with a shared budget a row may be a mixture of two, one on each side of a kink."""
    if ball.by_kernel:
        return [[[[1, _fill(row.g, y, radius), radius]] for y in row.y] for row in rows]
    scale, kernels = sum(float(-row.g.sum()) for row in rows) or 1.0, range(weights.size)

    def sizes(price: float) -> list[float]:
        return [_bisect_down(lambda r, i=i: _norm_linf(rows, i, r), price) for i in kernels]  # type: ignore[misc]

    price = _bisect(lambda p: float(weights @ np.array(sizes(p))), radius, scale)
    if price == 0.0:
        return [[[[1, 0.0, 2.0]] for _ in kernels] for _ in rows]
    out: list[Any] = [[] for _ in rows]
    for i, r in zip(kernels, sizes(price), strict=True):
        ends = (max(np.nextafter(r, 0.0) * (1 - 1e-15), 0.0), r * (1 + 1e-15))
        steep, flat = (_norm_linf(rows, i, end) for end in ends)
        share = (steep - price) / (steep - flat) if steep > price > flat else float(steep > price)
        for row, own in zip(rows, out, strict=True):
            parts = [(1 - share, ends[0]), (share, ends[1])]
            own.append([[f, _fill(row.g, row.y[i], end), end] for f, end in parts if f > 0])
    return out


def _bisect_down(slope: Callable[[float], float], price: float) -> float:
    """The radius in [0, 1] at which a decreasing slope comes down to a price."""
    lo, hi = 0.0, 1.0
    if slope(hi) >= price:
        return hi
    for _ in range(STEPS):
        middle = (lo + hi) / 2
        if not lo < middle < hi:
            break
        lo, hi = (middle, hi) if slope(middle) > price else (lo, middle)
    return hi


# ---------------------------------------------------------------------- divergences


def _tilted(kind: str, g: Array, y: Array, kappa: float) -> tuple[float, float]:
    """Threshold of a row at a price κ, and what the row costs."""
    own = y > 0
    g, y = g[own], y[own]
    if kind == "kl":
        high = g.max()
        mass = float(y @ np.exp((g - high) / kappa))
        z = y * np.exp((g - high) / kappa) / mass
        return float(high + kappa * math.log(mass)), float(max(z @ ((g - high) / kappa - math.log(mass)), 0.0))
    if kind == "chi2":
        shift = g.max()  # the highest stakes are 0 exactly, however small κ is
        g, order = g - shift, np.argsort(-g, kind="stable")
        p0, p1 = np.cumsum(y[order]), np.cumsum((y * g)[order])
        etas = (p1 + 2 * kappa * (p0 - 1)) / p0
        active = np.count_nonzero(g[order] - etas > -2 * kappa)
        eta = float(etas[active - 1])
        ratio = np.maximum(1 + (g - eta) / (2 * kappa), 0.0)
        return float(eta + shift), float(y @ (ratio - 1) ** 2)
    lo, hi = 0.0, kappa  # z = κ ŷ/(hi − g), and η = hi − κ
    with np.errstate(divide="ignore"):
        while kappa * float((y / (hi - g)).sum()) > 1:
            hi *= 2
        if not kappa * float((y / (lo - g)).sum()) > 1:
            lo = hi = 0.0
    for _ in range(STEPS):
        middle = (lo + hi) / 2
        if not lo < middle < hi:
            break
        lo, hi = (middle, hi) if kappa * float((y / (middle - g)).sum()) > 1 else (lo, middle)
    with np.errstate(divide="ignore"):
        return max(hi - kappa, -kappa), float(y @ np.log((hi - g) / kappa)) if (hi > g).all() else math.inf


def divergence(kind: str, rows: list[Row], weights: Array, budget: float) -> dict[str, Any]:
    """κ, and η by action and kernel."""

    def spent(kappa: float) -> float:
        return float(
            sum(w * _tilted(kind, row.g, y, kappa)[1] for row in rows for w, y in zip(weights, row.y, strict=True))
        )

    kappa = _bisect(spent, budget, _scale(rows))
    if kappa == 0.0:
        return {"kappa": 0, "eta": [[0] * weights.size for _ in rows]}
    return {"kappa": kappa, "eta": [[_tilted(kind, row.g, y, kappa)[0] for y in row.y] for row in rows]}


def pivot(z: Array, lo: Array, hi: Array) -> float:
    """The stake, less the highest, at which a row of intervals ends to be filled."""
    order = np.argsort(-z, kind="stable")
    filled = np.cumsum((hi - lo)[order]) >= 1 - lo.sum()
    return float(z[order][np.argmax(filled)] - z.max()) if filled.any() else float(z.min() - z.max())
