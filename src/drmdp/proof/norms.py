"""Bounds on all kernels of a set of a norm: the e of `drmdp_check`, kernel by kernel.

A kernel gains f(d) at a distance d; f is concave, and its slope λ is the price of the distance. Of
order p, Hölder's inequality is an equality at the prices λ_i = μ (d_i/θ)^(p − 1) with Σ_i w_i
(λ_i/μ)^q = 1, that is Σ_i w_i (d_i/θ)^p = 1, and the left side falls in μ. Of order 1 all prices
are μ; of order ∞ each kernel is at d_i = θ. For ℓ1 and ℓ∞ slopes fall in steps. For ℓ2 kernels move
by e/κ, so that λ = κ d; where the entries that are emptied do not change, d² is c₁/κ² + c₂.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.proof.responses import STEPS, Row, bisect, pivot, scale

NEAR = 1e-14
"""Logarithms that differ by less are equal."""
StepSlopes = tuple[Array, Array]
"""Slopes that fall in steps, (n,), and the distances at which they end."""
FAINT = 1e-150
"""Least radius where radii are squared or divided by: any e is valid, and prices hardly change."""


def _prices(curves: list[StepSlopes], weights: Array, radius: float, order: float) -> Array:
    """The price of each kernel's distance, (N,)."""
    if order == 1:
        slope = np.concatenate([slope for slope, _ in curves])
        ends = zip(weights, curves, strict=True)
        length = np.concatenate([w * np.diff(end, prepend=0.0) for w, (_, end) in ends])
        steep = np.argsort(-slope, kind="stable")
        return np.full(weights.size, _crossed(slope[steep], np.cumsum(length[steep]), radius))
    if order == math.inf:
        return np.array([_crossed(*curve, radius) for curve in curves])
    logs = []
    for slope, end in curves:
        positive = (slope > 0) & (end > 0)
        logs.append((np.log(slope[positive]), np.log(end[positive] / max(radius, FAINT))))

    def prices(mu: float) -> Array:
        """λ with λ = μ (d/θ)^(p − 1), where a falling step meets a rising power."""
        level = math.log(mu)
        meet = (np.minimum(slope, level + (order - 1) * far) for slope, far in logs)
        return np.array([np.exp(at.max(initial=-np.inf)) for at in meet])

    def spent(mu: float) -> float:
        return float(weights @ (prices(mu) / mu) ** (order / (order - 1)))

    steepest = max((float(slope.max(initial=0.0)) for slope, _ in curves), default=0.0)
    mu = bisect(spent, 1.0, steepest or 1.0)
    return prices(mu) if mu > 0 else np.zeros(weights.size)


def _crossed(slope: Array, end: Array, radius: float) -> float:
    """The slope at a distance; 0 beyond the last step."""
    reached = end >= radius
    return float(slope[np.argmax(reached)]) if reached.any() else 0.0


Stacked = tuple[Array, Array]
"""Rows of all actions, as long as the longest: g, (A, 1, K), −∞ beyond a row, and y, (A, N, K)."""


def _stack(rows: list[Row]) -> Stacked:
    K, N = max(row.g.size for row in rows), rows[0].y.shape[0]
    g, y = np.full((len(rows), 1, K), -np.inf), np.zeros((len(rows), N, K))
    for k, row in enumerate(rows):
        g[k, 0, : row.g.size], y[k, :, : row.g.size] = row.g, row.y
    return g, y


def _bent_l2(data: Stacked, kappa: Array) -> Array:
    """e = max(g − η, −κ ŷ), (A, N, K), with Σ (g − η)/κ = Σ ŷ over those that are emptied; `kappa`
    (N,).

    Entries that are emptied at the level of all of them are emptied at η, which is higher: so
    entries are left out until none is below.
    """
    g, y = data[0], kappa[:, None] * data[1]
    full = g + y
    active = full > -np.inf
    n_active = np.count_nonzero(active)
    while True:
        count = np.maximum(active.sum(axis=-1), 1)
        emptied = np.where(active, 0.0, y).sum(axis=-1)
        level = (np.where(active, g, 0.0).sum(axis=-1) - emptied) / count
        active &= full > level[..., None]
        before, n_active = n_active, np.count_nonzero(active)
        if n_active == before:
            return np.asarray(np.maximum(g - np.minimum(level, 0.0)[..., None], -y))


class Distances(NamedTuple):
    """Distances of the kernels' answers at κ, (N,) each."""

    distance: Array
    variable: Array  # squared distance, but for what does not change with κ: it falls as 1/κ²

    @property
    def share(self) -> Array:
        """−d log distance / d log κ."""
        square = self.distance**2
        return np.divide(self.variable, square, out=np.zeros_like(square), where=square > 0)


def _far_l2(data: Stacked, kappa: Array) -> Distances:
    """Distances of the kernels' answers at κ; they move by e/κ."""
    e = _bent_l2(data, kappa)
    active = e > -kappa[:, None] * data[1]
    count = np.maximum(np.count_nonzero(active, axis=-1), 1)
    level = np.where(active, e, 0.0).sum(axis=-1) / count
    spread = np.where(active, e - level[..., None], 0.0)
    distance = np.sqrt((e * e).sum(axis=(0, 2))) / kappa
    return Distances(distance, (spread * spread).sum(axis=(0, 2)) / kappa**2)


def _newton(
    f: Callable[[Array], tuple[Array, Array]], lo: Array, hi: Array, x: Array | None = None
) -> Array:
    """Zeros of increasing functions between lo and hi, by Newton's method, or by bisection where
    that leaves the bracket; f has values and slopes.
    """
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
    (g, y), size = _stack(rows), scale(rows)
    kappa = size * _kappas((g / size, y), weights, radius, order)
    scarce = kappa > 0
    e = np.where(scarce[:, None], _bent_l2((g, y), np.where(scarce, kappa, size)), 0.0)
    return [by_kernel[:, : row.g.size] for by_kernel, row in zip(e, rows, strict=True)]


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

        def residual(y: Array) -> tuple[Array, Array]:
            far = _far_l2(data, np.exp(y))
            value = y + np.log(far.distance) - x - (order - 1) * np.log(far.distance / radius)
            return np.where(far.distance > 0, value, np.inf), 1 + (order - 2) * far.share

        last = _newton(residual, lo, hi, last)
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
        root = _newton(f, lo[:1], hi[:1])
        return np.asarray(np.exp(np.full(weights.size, root) if order == 2 else last))


def l1(
    rows: list[Row], weights: Array, radius: float, order: float
) -> tuple[list[Array], list[float]]:
    """The e of each action and the e where nothing is listed, for each kernel: max(g, −c) + c/2,
    and c/2.
    """
    far = np.concatenate([-row.g for row in rows])
    steep = np.argsort(-far, kind="stable")
    ends = 2 * np.cumsum(np.concatenate([row.y for row in rows], axis=1)[:, steep], axis=1)
    curves = [(far[steep] / 2, end) for end in ends]
    price = _prices(curves, weights, radius, order)
    c, bent = 2 * price[:, None], []
    for row in rows:
        listed = np.isin(row.states, row.columns)
        bent.append(np.where(listed, np.maximum(row.g, -c) + c / 2, c / 2))
    return bent, price.tolist()


def _bent_linf(row: Row, i: int, r: float) -> Array:
    """The e of a row at radius r: g − η where a probability changes by all of r; at η it is
    full.
    """
    y = row.y[i]
    eta = pivot(row.g, np.maximum(y - r, 0.0), y + r)
    return np.where((row.g > eta) | ((y > 0) & (y >= r)), row.g - eta, 0.0)


def linf(rows: list[Row], weights: Array, radius: float, order: float) -> list[Array]:
    """The e of each action, (N, K); where kernels share a budget, mixtures of two, one on each side
    of a kink.
    """
    kernels = range(weights.size)
    if order == math.inf:
        return [np.stack([_bent_linf(row, i, radius) for i in kernels]) for row in rows]
    pieces, curves = [_segments(partial(_slope_linf, rows, i)) for i in kernels], []
    for segments in pieces:
        slopes, lengths, _ = np.reshape(segments, (-1, 3)).T
        curves.append((slopes, np.cumsum(lengths)))
    out = [np.zeros(row.y.shape) for row in rows]
    for i, price in enumerate(_prices(curves, weights, radius, order).tolist()):
        if not price > 0:
            continue
        above = [s for s in pieces[i] if s.slope > price]
        below = pieces[i][len(above)] if len(above) < len(pieces[i]) else None
        flat = below.slope if below else 0.0
        share = (price - flat) / (above[-1].slope - flat) if above else 0.0
        for row, e in zip(rows, out, strict=True):
            if share > 0:
                e[i] += share * _bent_linf(row, i, above[-1].middle)
            if below:
                e[i] += (1 - share) * _bent_linf(row, i, below.middle)
    return out


class Segment(NamedTuple):
    """An interval of radii with a constant slope."""

    slope: float
    length: float
    middle: float


def _slope_linf(rows: list[Row], i: int, r: float) -> float:
    """Gain of kernel i for a unit of radius."""
    return sum(float(np.abs(_bent_linf(row, i, r)).sum()) for row in rows)


def _segments(slope: Callable[[float], float]) -> list[Segment]:
    """A slope that decreases in steps from 0 to 1, as steps; each kink is found by bisection."""
    segments: list[Segment] = []
    open_: list[tuple[float, float, float, float]] = [(0.0, 1.0, slope(1e-18), slope(1.0))]
    while open_:
        lo, hi, first, last = open_.pop()
        middle = (lo + hi) / 2
        if first == last or not lo + 1e-16 < middle < hi:
            segments.append(Segment(first, hi - lo, middle))
        else:
            between = slope(middle)
            open_ += [(middle, hi, between, last), (lo, middle, first, between)]
    return _joined(segments)


def _joined(segments: list[Segment]) -> list[Segment]:
    """Join neighbours of the same slope; leave out segments between kinks that are rounding."""
    out: list[Segment] = []
    for segment in segments:
        if out and segment.slope >= out[-1].slope:
            last = out.pop()
            middle = last.middle if last.length > segment.length else segment.middle
            out.append(Segment(last.slope, last.length + segment.length, middle))
        elif segment.length > 1e-14:
            out.append(segment)
    return out
