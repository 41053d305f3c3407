"""Transport on dense data: kernels that surely are in the ball; see `drmdp.certificate.dense` and `membership`.

A kernel is compared with the data by a plan that HiGHS finds. The plan is not believed: its shares P(k | j), divided by their sums, move the data to
y(k) = Σ_j ŷ(j) P(k | j), which is as near to the kernel as the plan is right, and costs exactly Σ_j ŷ(j) P(k | j) D(j, k).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate.dense import Block
from drmdp.core.levels import EPS
from drmdp.sets.ground import Ground
from drmdp.sets.transport import SETTINGS, plan

MOST = 200_000
"""Entries of the plans of a state beyond which no tuple of a given mean is searched for."""


def feasible(ball: Any, data: Block, kernels: Array) -> Array:
    """A tuple (n, A, N, S) that surely is in the ball, near the one that is given or on the way to it from the data."""
    n, A, N, S = data.nominal.shape
    y, spent = data.nominal.copy(), np.zeros((n, N))
    y[~data.available] = 0.0
    for s, a, i in np.ndindex(n, A, N):
        if not data.available[s, a]:
            continue
        row = np.where(data.allowed[s, a] & np.isfinite(kernels[s, a, i]), np.maximum(kernels[s, a, i], 0.0), 0.0)
        if row.max() > 0:
            row = row / row.max()
            y[s, a, i], cost = moved(ball.ground, data.nominal[s, a, i], row / row.sum())
            spent[s, i] += cost
    if not ball.by_kernel:
        spent = (spent @ data.weights)[:, None]
    room = data.radius[:, None] * (1 - A * (2 * S + 8) * EPS)
    share = np.where(spent > room, room / np.where(spent > room, spent, 1.0), 1.0)
    return np.asarray(data.nominal + share[:, None, :, None] * (y - data.nominal))


def moved(ground: Ground, nominal: Array, goal: Array) -> tuple[Array, float]:
    """Where a plan to the goal brings a row of the data, and a bound on what that costs; the data itself where there is no plan."""
    found, shares = plan(ground, nominal, goal)
    if not np.isfinite(found) or np.array_equal(nominal, goal):
        return nominal, 0.0
    costs = ground.between(np.arange(goal.size), np.arange(goal.size))
    mass = nominal[:, None] * shares
    total = float(np.where(mass > 0, mass * np.where(np.isfinite(costs), costs, 0.0), 0.0).sum())
    return mass.sum(axis=0), total * (1 + (goal.size**2 + 16) * EPS)


def attain(ball: Any, data: Block, goal: Array) -> Array:
    """A tuple (n, A, N, S) of the mean `goal` (n, A, S), or near it: by one plan of the mean, or by plans of least greatest cost."""
    y = data.nominal.copy()
    mean = np.einsum("i,naij->naj", data.weights, data.nominal)
    for s in range(data.nominal.shape[0]):
        own = np.flatnonzero(data.available[s])
        if ball.by_kernel and data.weights.size > 1:
            y[s, own] = _together(ball.ground, data.nominal[s, own], data.weights, goal[s, own])
            continue
        for a in own:
            found, shares = plan(ball.ground, mean[s, a], goal[s, a])
            y[s, a] = data.nominal[s, a] @ shares if np.isfinite(found) else data.nominal[s, a]
    return y


def _together(ground: Ground, rows: Array, w: Array, goal: Array) -> Array:
    """Rows (A, N, S) moved to a mean (A, S), the largest cost of a kernel being least; the data where that is not found."""
    A, N, S = rows.shape
    costs = ground.between(np.arange(S), np.arange(S))
    a, i, j, k = np.nonzero((rows > 0)[..., None] & np.isfinite(costs) & (goal > 0)[:, None, None, :])
    E = a.size
    if E > MOST or E == 0:
        return rows
    column, one = np.arange(E), np.ones(E)
    out = sparse.csr_array((one, (np.ravel_multi_index((a, i, j), rows.shape), column)), shape=(rows.size, E + 1))
    arrive = sparse.csr_array((w[i], (a * S + k, column)), shape=(A * S, E + 1))
    given, reached = rows.ravel() > 0, goal.ravel() > 0
    equal = sparse.vstack([out[given], arrive[reached]])
    spent = sparse.csr_array(
        (
            np.append(costs[j, k] / ground.scale, -np.ones(N)),
            (np.append(i, np.arange(N)), np.append(column, np.full(N, E))),
        )
    )
    from scipy.optimize import linprog  # a quarter of the time `import drmdp` takes, and rarely needed

    right = np.concatenate([rows.ravel()[given], goal.ravel()[reached]])
    found = linprog(np.append(np.zeros(E), 1.0), spent, np.zeros(N), equal, right, options=SETTINGS).x
    if found is None:
        return rows
    y, mass = np.zeros(rows.shape), np.maximum(found[:E], 0.0)
    np.add.at(y, (a, i, k), mass)
    return np.asarray(y / np.maximum(y.sum(axis=2, keepdims=True), 1e-300))
