"""Bounds on all kernels of a set: multipliers and thresholds of nature's answer to a policy, state
by state.

These numbers are witnesses of weak duality: `drmdp_check` states the bounds, which hold for any
numbers and are tight for these. Every set has a multiplier κ for a given policy, or one for each
kernel, and it is found by bisection: the larger κ, the less nature spends. Stakes g = x (z − top)
≤ 0 and thresholds η ≤ 0 are relative to the highest stake that nature may use.
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
    """The rows of a played action: stakes and the kernels over them."""

    g: Array  # (K,)
    y: Array  # (N, K)
    states: Any = None  # (K,) next states
    columns: Any = None  # next states that the model lists


def bisect(spent: Callable[[float], float], budget: float, scale: float) -> float:
    """The κ > 0 at which a decreasing function equals the budget; 0 if it never exceeds it."""
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


def scale(rows: list[Row]) -> float:
    """Range of the stakes, or 1."""
    return max((float(-row.g.min(initial=0.0)) for row in rows), default=0.0) or 1.0


# ---------------------------------------------------------------------- divergences


SLIGHT = 1 / 16
"""Stakes in units of κ up to which a row is nearly that of the data, and its cost is a sum of
squares, each relatively precise.
"""
ENOUGH = 1e18
"""Price in ranges of the stakes from which on nature gains less than the precision of a double."""


def _slight(kind: str, g: Array, y: Array, kappa: float) -> tuple[float, float]:
    """The same of a row near the data; s are stakes above the threshold, in units of κ."""
    mean = min(max(float(y @ g / y.sum()), float(g.min())), float(g.max()))  # whatever y is
    s, more = (g - mean) / kappa, 0.0
    if kind == "chi2":
        return mean, float(y @ (s / 2) ** 2)
    if kind == "kl":  # z = ŷ e^s/Z, Σ ŷ s = 0
        bent = np.expm1(s)
        mass = float(y @ np.where(np.abs(s) < 1e-3, s * s * (1 / 2 + s / 6 + s * s / 24), bent - s))
        log = math.log1p(mass)
        return mean + kappa * log, max(float(y @ (s * bent)) / (1 + mass) - log, 0.0)
    # burg: z = ŷ/(1 − s), and Σ z = 1 where the threshold is above the mean by Σ ŷ s²/(1 − s)
    for _ in range(60):
        x = more - s
        more = float(y @ (x * x / (1 + x)))
    x = more - s
    series, exact = x * x * (1 / 2 - 2 * x / 3 + 3 * x * x / 4), np.log1p(x) - x / (1 + x)
    return mean + kappa * more, float(y @ np.where(np.abs(x) < 1e-3, series, exact))


def _tilted(kind: str, g: Array, y: Array, kappa: float) -> tuple[float, float]:
    """Threshold and cost of a row at a price κ."""
    positive = y > 0
    g, y = g[positive], y[positive]
    if g.max() - g.min() <= SLIGHT * kappa and (kind != "burg" or g.min() >= -SLIGHT * kappa):
        return _slight(kind, g, y, kappa)
    if kind == "kl":
        high = g.max()
        s = (g - high) / kappa
        mass = float(y @ np.exp(s))
        cost = (y * np.exp(s) / mass) @ (s - math.log(mass))
        return float(high + kappa * math.log(mass)), float(max(cost, 0.0))
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
    eta = max(hi - kappa, -kappa)
    # the slack of the highest stake may be less than rounding takes
    while math.fsum((eta, kappa, -float(g.max()))) <= 0:
        eta = math.nextafter(eta, math.inf)
    with np.errstate(divide="ignore"):
        return eta, float(y @ np.log((hi - g) / kappa)) if (hi > g).all() else math.inf


def divergence(kind: str, rows: list[Row], weights: Array, budget: float) -> dict[str, Any]:
    """κ, and η by action and kernel."""

    def spent(kappa: float) -> float:
        pairs = ((w, row.g, y) for row in rows for w, y in zip(weights, row.y, strict=True))
        return float(sum(w * _tilted(kind, g, y, kappa)[1] for w, g, y in pairs))

    kappa = min(bisect(spent, budget, scale(rows)), ENOUGH * scale(rows))
    if kappa == 0.0:
        return {"kappa": 0, "eta": [[0] * weights.size for _ in rows]}
    etas = [[_tilted(kind, row.g, y, kappa)[0] for y in row.y] for row in rows]
    return {"kappa": kappa, "eta": etas}


def transport(rows: list[Row], near: list[Any], i: int, budget: float) -> float:
    """The price κ of moving the mass of kernel i; `near` has the costs D of each row's moves, (K,
    K).
    """
    far = max((float(d[np.isfinite(d)].max(initial=0.0)) for d in near), default=0.0) or 1.0

    def spent(kappa: float) -> float:
        total = 0.0
        for row, costs in zip(rows, near, strict=True):
            score = row.g - kappa * costs
            best = score.max(axis=1)
            total += float(row.y[i] @ np.where(score >= best[:, None], costs, np.inf).min(axis=1))
        return total

    return bisect(spent, budget, scale(rows) / far)


def pivot(z: Array, lo: Array, hi: Array) -> float:
    """The stake, less the highest, at which a row of intervals is full."""
    order = np.argsort(-z, kind="stable")
    filled = np.cumsum((hi - lo)[order]) >= 1 - lo.sum()
    last = z[order][np.argmax(filled)] if filled.any() else z.min()
    return float(last - z.max())
