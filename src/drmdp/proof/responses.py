"""What no kernel of a set does more than: multipliers and thresholds of nature's answer to a policy, state by state.

The numbers found here are witnesses of weak duality: `drmdp_check` states the bounds, which hold for any numbers and are tight for these. Every set has one
multiplier κ for a given policy, or one for each kernel, and it is found by bisection: the larger κ, the less nature spends. Stakes g = x (z − top) ≤ 0 and
thresholds η ≤ 0 are relative to the highest stake that nature may use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array

STEPS = 200
"""Of a bisection; fewer where no float is left between its ends."""


@dataclass(frozen=True)
class Row:
    """The rows of one action that is played: stakes and the kernels over them."""

    g: Array  # (K,)
    y: Array  # (N, K)
    states: Any = None  # (K,) next states
    columns: Any = None  # those that the model lists


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


def l2(rows: list[Row], weights: Array, radius: float, ball: Any) -> list[Array]:
    """The e of each action, (N, K): max(g − η, −κ ŷ)."""
    scale, kernels = _scale(rows), range(weights.size)
    if ball.by_kernel:
        kappas = [_bisect(lambda k, i=i: _far_l2(rows, i, k), radius**2, scale) for i in kernels]  # type: ignore[misc]
    else:
        every = _bisect(lambda k: sum(w * _far_l2(rows, i, k) for i, w in enumerate(weights)), radius**2, scale)
        kappas = [every] * weights.size
    return [np.stack([_bent_l2(row, i, kappas[i]) for i in kernels]) for row in rows]


def _bent_l2(row: Row, i: int, kappa: float) -> Array:
    if not kappa > 0:
        return np.zeros(row.g.size)
    return np.asarray(np.maximum(row.g - _project(row.g, row.y[i], kappa), -kappa * row.y[i]))


def _slope_l1(rows: list[Row], i: int, budget: float) -> float:
    """The least c with at most the budget of mass at stakes below −c."""
    far = np.concatenate([-row.g for row in rows])
    mass = np.concatenate([row.y[i] for row in rows])
    order = np.argsort(-far, kind="stable")
    kept = np.cumsum(mass[order]) > budget
    return float(far[order][np.argmax(kept)]) if kept.any() else 0.0


def l1(rows: list[Row], weights: Array, radius: float, shared: bool) -> tuple[list[Array], list[float]]:
    """The e of each action and the e where nothing is listed, for each kernel: max(g, −c) + c/2, and c/2, with one c for all kernels that share a budget."""
    if shared:
        mixed = [Row(np.tile(row.g, weights.size), (weights[:, None] * row.y).reshape(1, -1)) for row in rows]
        slopes = np.full(weights.size, _slope_l1(mixed, 0, radius / 2))
    else:
        slopes = np.array([_slope_l1(rows, i, radius / 2) for i in range(weights.size)])
    c = slopes[:, None]
    return [np.where(np.isin(row.states, row.columns), np.maximum(row.g, -c) + c / 2, c / 2) for row in rows], (
        slopes / 2
    ).tolist()


def _fill(g: Array, y: Array, r: float) -> float:
    """The stake η at which a row ends to be filled when every probability may change by r."""
    low, order = np.maximum(y - r, 0.0), np.argsort(-g, kind="stable")
    filled = np.cumsum((y + r - low)[order]) >= 1 - low.sum()
    return float(g[order][np.argmax(filled)]) if filled.any() else float(g.min())


def _bent_linf(row: Row, i: int, r: float) -> Array:
    """The e of a row at radius r: g − η where a probability changes by all of r."""
    eta, y = _fill(row.g, row.y[i], r), row.y[i]
    return np.where((row.g > eta) | ((y > 0) & (y >= r)), row.g - eta, 0.0)


def linf(rows: list[Row], weights: Array, radius: float, ball: Any) -> list[Array]:
    """The e of each action, (N, K); where kernels share a budget, mixtures of two, one on each side of a kink."""
    kernels = range(weights.size)
    if ball.by_kernel:
        return [np.stack([_bent_linf(row, i, radius) for i in kernels]) for row in rows]
    pieces = [_segments(lambda r, i=i: _slope_linf(rows, i, r)) for i in kernels]  # type: ignore[misc]
    steep = sorted(((s.slope, w * s.length) for own, w in zip(pieces, weights, strict=True) for s in own), reverse=True)
    within = np.cumsum([length for _, length in steep]) < radius
    price = 0.0 if within.all() else steep[int(np.argmin(within))][0]
    out = [np.zeros(row.y.shape) for row in rows]
    for i in kernels if price > 0 else ():
        above = [s for s in pieces[i] if s.slope > price]
        below = pieces[i][len(above)] if len(above) < len(pieces[i]) else None
        flat = below.slope if below else 0.0
        share = (price - flat) / (above[-1].slope - flat) if above else 0.0
        for row, own in zip(rows, out, strict=True):
            if share > 0:
                own[i] += share * _bent_linf(row, i, above[-1].middle)
            if below:
                own[i] += (1 - share) * _bent_linf(row, i, below.middle)
    return out


class Segment(NamedTuple):
    """Where a slope is constant."""

    slope: float
    length: float
    middle: float


def _slope_linf(rows: list[Row], i: int, r: float) -> float:
    """What a unit of radius gains for kernel i."""
    return sum(float(np.abs(_bent_linf(row, i, r)).sum()) for row in rows)


def _segments(slope: Callable[[float], float]) -> list[Segment]:
    """A slope that decreases in steps from 0 to 1, as steps; each kink is found by bisection."""
    found: list[Segment] = []
    open_: list[tuple[float, float, float, float]] = [(0.0, 1.0, slope(1e-18), slope(1.0))]
    while open_:
        lo, hi, first, last = open_.pop()
        middle = (lo + hi) / 2
        if first == last or not lo + 1e-16 < middle < hi:
            found.append(Segment(first, hi - lo, middle))
        else:
            between = slope(middle)
            open_ += [(middle, hi, between, last), (lo, middle, first, between)]
    return _joined(found)


def _joined(found: list[Segment]) -> list[Segment]:
    """Neighbours of the same slope as one; what is in the way between two kinks by rounding is left out."""
    out: list[Segment] = []
    for own in found:
        if out and own.slope >= out[-1].slope:
            last = out.pop()
            middle = last.middle if last.length > own.length else own.middle
            out.append(Segment(last.slope, last.length + own.length, middle))
        elif own.length > 1e-14:
            out.append(own)
    return out


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


def transport(rows: list[Row], near: list[Any], i: int, budget: float) -> float:
    """The price κ of moving the mass of kernel i; `near` has the costs D of each row's moves, (K, K)."""
    far = max((float(d[np.isfinite(d)].max(initial=0.0)) for d in near), default=0.0) or 1.0

    def spent(kappa: float) -> float:
        total = 0.0
        for row, costs in zip(rows, near, strict=True):
            score = row.g - kappa * costs
            best = score.max(axis=1)
            total += float(row.y[i] @ np.where(score >= best[:, None], costs, np.inf).min(axis=1))
        return total

    return _bisect(spent, budget, _scale(rows) / far)


def pivot(z: Array, lo: Array, hi: Array) -> float:
    """The stake, less the highest, at which a row of intervals ends to be filled."""
    order = np.argsort(-z, kind="stable")
    filled = np.cumsum((hi - lo)[order]) >= 1 - lo.sum()
    return float(z[order][np.argmax(filled)] - z.max()) if filled.any() else float(z.min() - z.max())
