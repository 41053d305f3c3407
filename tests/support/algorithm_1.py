"""Algorithm 1 written from the paper alone, state by state, with exact projections: nothing of the
package is used.

Three slips of its printed form are mended, or it could not be run: epoch ℓ begins after Σ_{k<ℓ} k²
steps, takes ℓ² of them and averages those; at v = 0, where the printed steps are undefined, the
policy goes to the least cost and nature stays; and nature's step has a plus, unless `printed` asks
for the sign as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

Array = np.ndarray


@dataclass
class Run:
    """Where the algorithm stands."""

    x: Array  # (S, A)
    y: Array  # (N, S, A, S)
    v: Array  # (S,)
    steps: int
    x_mean: Array  # of all steps, weight t
    y_mean: Array  # the same of the mean kernel, (S, A, S)


def algorithm_1(kernels, costs, discount, radius, metric, n_epochs, v, printed=False):
    """Run n epochs from the data, the uniform policy and v; `metric` is "l2" (order 2) or "l1"
    (order 1).
    """
    N, S, A, _ = kernels.shape
    run = Run(np.full((S, A), 1 / A), kernels.copy(), v, 0, np.zeros((S, A)), np.zeros((S, A, S)))
    for epoch in range(1, n_epochs + 1):
        size = discount * np.linalg.norm(run.v)
        tau, sigma = (1 / (np.sqrt(A) * size), N * np.sqrt(A) / size) if size > 0 else (np.inf, 0.0)
        first, last = run.steps + 1, run.steps + epoch**2
        x_mean, y_mean = np.zeros((S, A)), np.zeros((S, A, S))
        for t in range(first, last + 1):
            for s in range(S):
                stakes = costs[s] + discount * run.y[:, s].mean(axis=0) @ run.v
                new = np.eye(A)[stakes.argmin()] if size == 0 else simplex(run.x[s] - tau * stakes)
                push = discount / N * (2 * new - run.x[s])[:, None] * run.v
                point = run.y[:, s] + sigma * (-push if printed else push)
                run.x[s], run.y[:, s] = new, project(point, kernels[:, s], radius, metric)
            x_mean += t * run.x
            y_mean += t * run.y.mean(axis=0)
        run.x_mean += x_mean
        run.y_mean += y_mean
        total = sum(range(first, last + 1))
        x_mean, y_mean = x_mean / total, y_mean / total
        run.v, run.steps = (x_mean * (costs + discount * y_mean @ run.v)).sum(axis=1), last
    total = run.steps * (run.steps + 1) / 2
    run.x_mean, run.y_mean = run.x_mean / total, run.y_mean / total
    return run


# ---------------------------------------------------------------------- projections


def simplex(z: Array) -> Array:
    """Projection of each row (…, n) on the simplex, by sorting."""
    order = np.sort(z, axis=-1)[..., ::-1]
    level = (np.cumsum(order, axis=-1) - 1) / np.arange(1, z.shape[-1] + 1)
    last = (order > level).sum(axis=-1, keepdims=True) - 1
    return np.maximum(z - np.take_along_axis(level, last, axis=-1), 0)


def project(point: Array, centre: Array, radius: float, metric: str) -> Array:
    """The nearest tuple (N, A, S) in the ball: the multiplier of its constraint to the last bit,
    the rows in closed form.
    """
    shrunk, power = {"l2": (pulled, 2), "l1": (shrunken, 1)}[metric]

    def excess(gamma: float) -> float:
        return float(
            (np.abs(shrunk(point, centre, gamma) - centre) ** power).sum()
            - len(point) * radius**power
        )

    if excess(0.0) <= 0:
        return shrunk(point, centre, 0.0)
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return shrunk(
        point,
        centre,
        brentq(excess, 0.0, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=1000),
    )


def pulled(point: Array, centre: Array, gamma: float) -> Array:
    """Where ½‖y − z‖² + γ/2 ‖y − ŷ‖² is least on the simplex."""
    return simplex((point + gamma * centre) / (1 + gamma))


def shrunken(point: Array, centre: Array, gamma: float) -> Array:
    """Where ½‖y − z‖² + γ ‖y − ŷ‖₁ is least on the simplex: α by interpolation between its
    breakpoints, equation (19) for y.
    """
    points = breakpoints(point, centre, gamma)
    sums = entries(point[..., None, :], centre[..., None, :], gamma, points[..., None]).sum(axis=-1)
    alpha = np.empty(point.shape[:-1])
    for row in np.ndindex(alpha.shape):
        alpha[row] = np.interp(
            1.0, sums[row], points[row]
        )  # sums rise as α falls, from 0 to at least 1
    return entries(point, centre, gamma, alpha[..., None])


def breakpoints(z: Array, p: Array, gamma: float) -> Array:
    """The values of α at which an entry starts or stops to change, largest first."""
    return np.sort(np.concatenate([z + gamma, z - p + gamma, z - p - gamma], axis=-1), axis=-1)[
        ..., ::-1
    ]


def entries(z: Array, p: Array, gamma: float, alpha: Array | float) -> Array:
    """Equation (19), σ absorbed in γ and α."""
    apart = z - p - alpha
    return np.where(
        apart > gamma,
        z - gamma - alpha,
        np.where(apart < -gamma, np.maximum(z + gamma - alpha, 0), p),
    )


# ---------------------------------------------------------------------- nature as a friend


def optimistic(kernels: Array, costs: Array, discount: float, radius: float) -> Array:
    """Value of min_x min_y over the (l2, 2) ball: one action takes all of nature's budget, the best
    one does.
    """
    _, S, A, _ = kernels.shape
    v = np.zeros(S)
    for _ in range(2000):
        new = [
            min(costs[s, a] + discount * cheapest(kernels[:, s, a], v, radius) for a in range(A))
            for s in range(S)
        ]
        if np.abs(new - v).max() < 1e-12:
            break
        v = np.array(new)
    return v


def cheapest(rows: Array, v: Array, radius: float) -> float:
    """The least (1/N) Σ y_i·v within (1/N) Σ ‖y_i − ŷ_i‖² ≤ θ²: y_i = Proj(ŷ_i − t v)."""

    def moved(t: float) -> Array:
        return simplex(rows - t * v)

    def excess(t: float) -> float:
        return float(((moved(t) - rows) ** 2).sum() - len(rows) * radius**2)

    high = 1e6 / max(np.ptp(v), 1e-300)
    t = high if excess(high) <= 0 else brentq(excess, 0.0, high, xtol=1e-15)
    return float((moved(t) @ v).mean())
