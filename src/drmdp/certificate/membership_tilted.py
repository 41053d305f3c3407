"""Tuples of a mean kernel that cost least, for divergences around the kernels.

For one action, rows ŷ_i, weights w and a mean ȳ:

    min Σ_i w_i Σ_j ŷ_ij f(y_ij/ŷ_ij)    subject to    Σ_j y_ij = 1,  Σ_i w_i y_ij = ȳ_j,  y ≥ 0.

With one price θ_j for each next state the kernels separate, and the best rows are those of the data, tilted alike:

    y_ij = ŷ_ij h(θ_j − τ_i),   h = (f′)⁻¹,   τ_i such that the row sums to 1;    kl: h(t) = eᵗ,   chi2: (1 + t/2)⁺,   burg: −1/t.

The dual θ·ȳ − Σ_i w_i max_y (y·θ − cost) is concave, its slope is ȳ − Σ_i w_i y_i, and with d_ij = ŷ_ij h′ its curvature is
−Σ_i w_i (diag d_i − d_i d_iᵀ/Σ_j d_ij): Newton's method, held back until a step pays. Where ȳ is 0, so is y, which burg does not allow, and `SEED` lets burg go
where ŷ is 0. What is found is a search result like any other: the tuple is measured by whoever asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp._typing import Array

if TYPE_CHECKING:
    from drmdp.certificate.membership import State

STEPS, TRIES, ROOTS = 100, 20, 100
NEAR = 1e-14
"""Error of a mean, added up, that is none."""
SEED = 1e-9
"""Mass that burg, to which new next states cost nothing, is given to begin with where a row has none."""


def tilted(state: State) -> tuple[float, Array]:
    """The rows of each action, tilted to the mean of the goal; 0 and the data where that cannot be."""
    pairs = zip(state.nominal, state.goal, strict=True)
    found = [rows for y, goal in pairs if (rows := _one(state.ball.kind, y, state.weights, goal)) is not None]
    if len(found) < len(state.goal):
        return 0.0, state.nominal
    y = np.stack(found)
    off = np.abs(np.einsum("i,aij->aj", state.weights, y) - state.goal).sum(axis=1).max()
    return max(0.0, 1.0 - float(off)), y


def _one(kind: str, nominal: Array, weights: Array, goal: Array) -> Array | None:
    """The rows (N, K) of one action; None where no tilt has this mean."""
    used = goal > 0
    rows = np.where(used, nominal, 0.0)
    lost = kind == "burg" and bool((nominal > rows).any())
    if kind == "burg":
        rows = np.where(used, np.maximum(rows, SEED), 0.0)
    mean = weights @ rows
    if lost or (mean[used] <= 0).any() or not (rows.sum(axis=1) > 0).all():
        return None
    own = rows[:, used]
    out = np.zeros_like(nominal)
    out[:, used] = _newton(kind, own, weights, goal[used] / goal[used].sum(), mean[used])
    return out


def _newton(kind: str, y: Array, w: Array, goal: Array, mean: Array) -> Array:
    ratio = goal / mean
    theta = {"kl": np.log(ratio), "chi2": 2 * (ratio - 1), "burg": -1 / ratio}[kind]
    z, d, worth = _tilt(kind, y, theta)
    slope, height = goal - w @ z, goal @ theta - w @ worth
    for _ in range(STEPS):
        left = np.abs(slope).sum()
        if left <= NEAR:
            break
        curve = np.diag(w @ d) - (d * (w / d.sum(axis=1))[:, None]).T @ d
        size = np.trace(curve) / theta.size
        for k in range(TRIES):
            held = curve + size * (1 / theta.size + 1e-13 * 10.0**k * np.eye(theta.size))
            try:
                step = np.linalg.solve(held, slope)
            except (
                np.linalg.LinAlgError
            ):  # probabilities so small that nothing is left of their squares: the next is farther from singular
                continue
            there = theta + step
            tried = _tilt(kind, y, there)
            new, high = goal - w @ tried[0], goal @ there - w @ tried[2]
            if np.abs(new).sum() <= 0.9 * left or high > height + 1e-4 * (slope @ step):
                break
        else:
            break
        theta, (z, d, _), slope, height = there, tried, new, high
    return z


def _tilt(kind: str, y: Array, theta: Array) -> tuple[Array, Array, Array]:
    """Rows tilted by θ, how they bend (N, K), and what each is worth: y·θ − cost."""
    with np.errstate(all="ignore"):
        if kind == "kl":
            top = theta.max()
            z = y * np.exp(theta - top)
            mass = z.sum(axis=1, keepdims=True)
            z /= mass
            return z, z, np.log(mass[:, 0]) + top
        tau = _level(kind, y, theta)
        t = theta - tau
        if kind == "chi2":
            h = np.maximum(1 + t / 2, 0.0)
            z, d, cost = y * h, y * (h > 0) / 2, y * (h - 1) ** 2
        else:
            h = -1 / t
            z, d, cost = y * h, y * h * h, -y * np.log(h)
        scale = z.sum(axis=1, keepdims=True)
        cost = np.where(y > 0, cost, 0.0).sum(axis=1)
        return z / scale, np.where(y > 0, d, 0.0), np.where(y > 0, z * theta, 0.0).sum(axis=1) - cost


def _level(kind: str, y: Array, theta: Array) -> Array:
    """τ (N, 1), by Newton's method from the left, where sums are 1 at least; they fall and are convex in τ."""
    tau: Any = (y @ theta)[:, None] / y.sum(axis=1, keepdims=True)
    if kind == "burg":
        tau = np.where(y > 0, theta + y, -np.inf).max(axis=1, keepdims=True)
    for _ in range(ROOTS):
        t = theta - tau
        h = np.maximum(1 + t / 2, 0.0) if kind == "chi2" else -1 / t
        bend = (h > 0) / 2 if kind == "chi2" else h * h
        over = np.where(y > 0, y * h, 0.0).sum(axis=1, keepdims=True) - 1
        step = over / np.where(y > 0, y * bend, 0.0).sum(axis=1, keepdims=True)
        tau = tau + step
        if not (np.abs(step) > 1e-16 * (1 + np.abs(tau))).any():
            break
    return np.asarray(tau)
