"""What no kernel of a ball of a norm does more than: the e of `drmdp_check`, kernel by kernel.

A kernel gains f(d) at a distance d; f is concave, and its slope λ is the price of the distance. Of order p, Hölder's inequality is an equality at the prices
λ_i = μ (d_i/θ)^(p − 1) with Σ_i w_i (λ_i/μ)^q = 1, that is Σ_i w_i (d_i/θ)^p = 1, and the left side falls in μ. Of order 1 all prices are μ; of order ∞
each kernel is at d_i = θ. For ℓ1 and ℓ∞ slopes fall in steps. For ℓ2 kernels move by e/κ, so that λ = κ d; where the entries that are emptied do not change,
d² is c₁/κ² + c₂.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.proof.responses import STEPS, Row, bisect, scale

NEAR = 1e-14
"""Logarithms that differ by less are equal."""


class Steps(NamedTuple):
    """Slopes that fall in steps."""

    slope: Array  # (n,)
    end: Array  # (n,) distances at which they end


FAINT = 1e-150
"""Radii are taken for at least this where they are squared or divided by: any e will do, and prices hardly change."""


def _prices(curves: list[Steps], weights: Array, radius: float, order: float) -> Array:
    """The price of each kernel's distance, (N,)."""
    if order == 1:
        slope = np.concatenate([own.slope for own in curves])
        length = np.concatenate([w * np.diff(own.end, prepend=0.0) for own, w in zip(curves, weights, strict=True)])
        steep = np.argsort(-slope, kind="stable")
        return np.full(weights.size, _crossed(slope[steep], np.cumsum(length[steep]), radius))
    if order == math.inf:
        return np.array([_crossed(*own, radius) for own in curves])
    steps = [(own, (own.slope > 0) & (own.end > 0)) for own in curves]
    logs = [(np.log(own.slope[some]), np.log(own.end[some] / max(radius, FAINT))) for own, some in steps]

    def prices(mu: float) -> Array:
        """λ with λ = μ (d/θ)^(p − 1), where a falling step meets a rising power."""
        level = math.log(mu)
        return np.array([np.exp(np.minimum(s, level + (order - 1) * d).max(initial=-np.inf)) for s, d in logs])

    def spent(mu: float) -> float:
        return float(weights @ (prices(mu) / mu) ** (order / (order - 1)))

    mu = bisect(spent, 1.0, max((float(own.slope.max(initial=0.0)) for own in curves), default=0.0) or 1.0)
    return prices(mu) if mu > 0 else np.zeros(weights.size)


def _crossed(slope: Array, end: Array, radius: float) -> float:
    """The slope at a distance; 0 beyond the last step."""
    reached = end >= radius
    return float(slope[np.argmax(reached)]) if reached.any() else 0.0


class Stacked(NamedTuple):
    """Rows of all actions, as long as the longest."""

    g: Array  # (A, 1, K), −∞ beyond a row
    y: Array  # (A, N, K)


def _stack(rows: list[Row]) -> Stacked:
    K, N = max(row.g.size for row in rows), rows[0].y.shape[0]
    g, y = np.full((len(rows), 1, K), -np.inf), np.zeros((len(rows), N, K))
    for k, row in enumerate(rows):
        g[k, 0, : row.g.size], y[k, :, : row.g.size] = row.g, row.y
    return Stacked(g, y)


def _bent_l2(data: Stacked, kappa: Array) -> Array:
    """e = max(g − η, −κ ŷ), (A, N, K), with Σ (g − η)/κ = Σ ŷ over those that are emptied; `kappa` (N,).

    Whatever is emptied at the level of all entries is emptied at η, which is higher: so entries are left out until none is below.
    """
    y = kappa[:, None] * data.y
    full = data.g + y
    active = full > -np.inf
    left = np.count_nonzero(active)
    while True:
        count = np.maximum(active.sum(axis=-1), 1)
        level = (np.where(active, data.g, 0.0).sum(axis=-1) - np.where(active, 0.0, y).sum(axis=-1)) / count
        active &= full > level[..., None]
        before, left = left, np.count_nonzero(active)
        if left == before:
            return np.asarray(np.maximum(data.g - np.minimum(level, 0.0)[..., None], -y))


class Far(NamedTuple):
    """What κ does to kernels, (N,) each."""

    distance: Array
    variable: Array  # squared distance, but for what does not change with κ: it falls as 1/κ²

    @property
    def share(self) -> Array:
        """−d log distance / d log κ."""
        square = self.distance**2
        return np.divide(self.variable, square, out=np.zeros_like(square), where=square > 0)


def _far_l2(data: Stacked, kappa: Array) -> Far:
    """Distances of the kernels' answers at κ; they move by e/κ."""
    e = _bent_l2(data, kappa)
    active = e > -kappa[:, None] * data.y
    count = np.maximum(np.count_nonzero(active, axis=-1), 1)
    level = np.where(active, e, 0.0).sum(axis=-1) / count
    spread = np.where(active, e - level[..., None], 0.0)
    return Far(np.sqrt((e * e).sum(axis=(0, 2))) / kappa, (spread * spread).sum(axis=(0, 2)) / kappa**2)


def _newton(f: Callable[[Array], tuple[Array, Array]], lo: Array, hi: Array, x: Array | None = None) -> Array:
    """Zeros of increasing functions between lo and hi, by Newton's method, or by bisection where that leaves the bracket; f has values and slopes."""
    x = (lo + hi) / 2 if x is None else x
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            value, slope = f(x)
            lo, hi = np.where(value < 0, x, lo), np.where(value < 0, hi, x)
            step = x - value / slope
            near = (lo <= step) & (step <= hi) & np.isfinite(slope)  # at a zero x stays where it is
            new = np.where(near, step, (lo + hi) / 2)
            if np.all(np.abs(new - x) <= NEAR):
                break
            x = new
    return x


def l2(rows: list[Row], weights: Array, radius: float, order: float) -> list[Array]:
    """The e of each action, (N, K): max(g − η, −κ ŷ)."""
    data, size = _stack(rows), scale(rows)
    kappa = size * _kappas(data._replace(g=data.g / size), weights, radius, order)
    scarce = kappa > 0
    e = np.where(scarce[:, None], _bent_l2(data, np.where(scarce, kappa, size)), 0.0)
    return [own[:, : row.g.size] for own, row in zip(e, rows, strict=True)]


def _kappas(data: Stacked, weights: Array, radius: float, order: float) -> Array:
    """κ of each kernel; 0 where nothing is scarce."""
    radius = max(radius, FAINT)
    lo, hi = (np.full(weights.size, math.log(end)) for end in (1e-30, 1e30))
    if order == math.inf:

        def each(x: Array) -> tuple[Array, Array]:
            far = _far_l2(data, np.exp(x))
            return -np.log(far.distance / radius), far.share

        with np.errstate(divide="ignore"):
            scarce = each(lo)[0] < 0
        return np.where(scarce, np.exp(_newton(each, lo, hi)), 0.0)

    def shared(x: Array) -> tuple[Array, Array]:
        """At one κ, order 2."""
        far = _far_l2(data, np.exp(np.full(weights.size, x)))
        total, falls = weights @ far.distance**2, weights @ far.variable
        return -np.log([total / radius**2]) / 2, np.array([falls / total])

    last = lo

    def priced(x: Array) -> tuple[Array, Array]:
        """At one μ, other orders."""
        nonlocal last

        def own(y: Array) -> tuple[Array, Array]:
            far = _far_l2(data, np.exp(y))
            value = y + np.log(far.distance) - x - (order - 1) * np.log(far.distance / radius)
            return np.where(far.distance > 0, value, np.inf), 1 + (order - 2) * far.share

        last = _newton(own, lo, hi, last)
        far = _far_l2(data, np.exp(last))
        if order == 1:  # distances jump: no slope helps
            return -np.log([weights @ far.distance / radius]), np.array([np.inf])
        part = np.exp((last + np.log(far.distance) - x) * order / (order - 1))
        falls = weights @ (part * order * far.share / (1 + (order - 2) * far.share))
        return -np.log([weights @ part]), np.array([falls / (weights @ part)])

    with np.errstate(all="ignore"):
        f = shared if order == 2 else priced
        if not f(lo[:1])[0] < 0:
            return np.zeros(weights.size)
        found = _newton(f, lo[:1], hi[:1])
        return np.asarray(np.exp(np.full(weights.size, found) if order == 2 else last))


def l1(rows: list[Row], weights: Array, radius: float, order: float) -> tuple[list[Array], list[float]]:
    """The e of each action and the e where nothing is listed, for each kernel: max(g, −c) + c/2, and c/2."""
    far = np.concatenate([-row.g for row in rows])
    steep = np.argsort(-far, kind="stable")
    ends = 2 * np.cumsum(np.concatenate([row.y for row in rows], axis=1)[:, steep], axis=1)
    price = _prices([Steps(far[steep] / 2, own) for own in ends], weights, radius, order)
    c = 2 * price[:, None]
    bent = [np.where(np.isin(row.states, row.columns), np.maximum(row.g, -c) + c / 2, c / 2) for row in rows]
    return bent, price.tolist()


def _fill(g: Array, y: Array, r: float) -> float:
    """The stake η at which a row ends to be filled when every probability may change by r."""
    low, order = np.maximum(y - r, 0.0), np.argsort(-g, kind="stable")
    filled = np.cumsum((y + r - low)[order]) >= 1 - low.sum()
    return float(g[order][np.argmax(filled)]) if filled.any() else float(g.min())


def _bent_linf(row: Row, i: int, r: float) -> Array:
    """The e of a row at radius r: g − η where a probability changes by all of r."""
    eta, y = _fill(row.g, row.y[i], r), row.y[i]
    return np.where((row.g > eta) | ((y > 0) & (y >= r)), row.g - eta, 0.0)


def linf(rows: list[Row], weights: Array, radius: float, order: float) -> list[Array]:
    """The e of each action, (N, K); where kernels share a budget, mixtures of two, one on each side of a kink."""
    kernels = range(weights.size)
    if order == math.inf:
        return [np.stack([_bent_linf(row, i, radius) for i in kernels]) for row in rows]
    pieces = [_segments(lambda r, i=i: _slope_linf(rows, i, r)) for i in kernels]  # type: ignore[misc]
    curves = [Steps(np.array([s.slope for s in own]), np.cumsum([s.length for s in own])) for own in pieces]
    out = [np.zeros(row.y.shape) for row in rows]
    for i, price in enumerate(_prices(curves, weights, radius, order).tolist()):
        if not price > 0:
            continue
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
