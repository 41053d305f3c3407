"""Optimal transport between next-state distributions: W_D(y, ŷ), the least Σ π(j, k) D(j, k) over plans π with marginals ŷ and y.

A plan sends the mass ŷ(j) of every next state j to others, D[j, k] a unit to k (`drmdp.sets.ground`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets.ground import Ground
from drmdp.sets.keeping import Leaving

if TYPE_CHECKING:
    from drmdp.sets.wasserstein import Wasserstein

SETTINGS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def plan(ground: Ground, data: Array, goal: Array) -> tuple[float, Array]:
    """W_D of two distributions (S,), inf if there is no plan, and shares P(k | j) of a plan, (S, S); up to what HiGHS is off."""
    stay = np.eye(data.size)
    if np.array_equal(data, goal):
        return 0.0, stay
    sources, targets = np.flatnonzero(data > 0), np.flatnonzero(goal > 0)
    costs = ground.between(sources, targets)
    row, column = np.nonzero(np.isfinite(costs))
    n, m, E = sources.size, targets.size, row.size
    ends = np.concatenate([row, n + column])
    sums = sparse.csr_array((np.ones(2 * E), (ends, np.tile(np.arange(E), 2))), shape=(n + m, E))
    from scipy.optimize import linprog  # a quarter of the time `import drmdp` takes, and rarely needed

    unit = np.append(data[sources], goal[targets] * (data.sum() / goal.sum()))
    found = linprog(costs[row, column] / ground.scale, A_eq=sums, b_eq=unit, options=SETTINGS) if E else None
    if found is None or found.x is None:
        return np.inf, stay
    mass = np.zeros((data.size, data.size))
    mass[sources[row], targets[column]] = np.maximum(found.x, 0.0)
    total = mass.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, mass / np.where(total > 0, total, 1.0), stay)
    return max(float(found.fun), 0.0) * ground.scale, shares


def distance(ground: Ground, y: Array, nominal: Array) -> Array:
    """Σ_a W_D(y_a, ŷ_a) of kernels (…, A, N, S), (…, N)."""
    nominal = np.broadcast_to(nominal, y.shape)
    rows = [
        plan(ground, a, b)[0] for a, b in zip(nominal.reshape(-1, y.shape[-1]), y.reshape(-1, y.shape[-1]), strict=True)
    ]
    return np.asarray(np.array(rows).reshape(y.shape[:-1]).sum(axis=-2))


def confined(ground: Ground, rows: Leaving) -> Array:
    """What it costs to move the mass of each row that is outside to the nearest place inside, (N, P); row by row."""
    nearest = np.zeros(rows.states.size)
    ends = np.append(rows.starts[1:], rows.states.size)
    for k in np.flatnonzero(rows.total(rows.outside) > 0).tolist():
        own = slice(rows.starts[k], ends[k])
        out, here = rows.outside[own], rows.states[own]
        inside = here[~out] if rows.others is None else np.flatnonzero(rows.others[1] == rows.others[0][k])
        if inside.size:
            nearest[own][out] = ground.between(here[out], inside).min(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(rows.total(np.where(rows.outside & (rows.rows > 0), rows.rows * nearest, 0.0)))


def saturation(ball: Wasserstein, model: Model, states: Any) -> Array:
    """Radius from which nature is unconstrained in some states.

    W_D is convex, so that every distribution is in the ball as soon as all single next states are: max_k Σ_j ŷ(j) D(j, k). Where some mass cannot move
    everywhere, Σ_j ŷ(j) max_k D(j, k) over what it can reach is enough.
    """
    out = np.zeros(len(states))
    used = model.weights > 0
    for place, s in enumerate(states):
        if model.terminal[s]:
            continue
        rows = model.blocks.dense(s, s + 1)[0][model.available[s]][:, used]  # (A', N, S)
        if not ball.by_kernel:
            rows = np.einsum("i,aij->aj", model.weights[used], rows)[:, None]
        allowed = ball.allowed(model, s, s + 1)[0][model.available[s]]
        far = np.array([[_farthest(ball.ground, y, to) for y in own] for own, to in zip(rows, allowed, strict=True)])
        out[place] = far.max() if ball.by_pair else far.sum(axis=0).max()
    return out


def _farthest(ground: Ground, y: Array, allowed: BoolArray) -> float:
    sources = np.flatnonzero(y > 0)
    costs = ground.between(sources, np.flatnonzero(allowed))
    if np.isfinite(costs).all():
        return float((y[sources] @ costs).max())
    return float(y[sources] @ np.where(np.isfinite(costs), costs, 0.0).max(axis=1))


def check_fits(ball: Wasserstein, model: Model) -> None:
    """Refuse a ground that is not one of the model's states, or moves whose costs are unknown."""
    if ball.ground.n_states != model.n_next:
        raise InputError(f"ground: expected costs between {model.n_next} states, got {ball.ground.n_states}")
    if ball.free and ball.support != "observed" and model.costs_missing:
        try:
            ball.priced(model)
        except InputError as error:
            raise InputError(f"ground: mass moves at no cost between some states: {error}") from None
