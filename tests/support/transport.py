"""Transport by its definition: one linear program a state over the plans of all N kernels, and
problems with every degeneracy we know.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import drmdp
from cases import cases

GROUNDS = (
    "dense",
    "dense",
    "metric",
    "line",
    "grid",
    "sparse",
    "zeros",
    "ties",
    "far",
    "discrete",
    "alone",
)
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def ground_of(rng, kind, S):
    """Costs of a kind between S states, as `drmdp.Wasserstein` takes them."""
    if kind == "line":
        return "line", rng.choice([rng.normal(size=S), np.round(3 * rng.random(S))], axis=0)
    if kind == "grid":
        return "grid", rng.integers(0, 3, (S, 2)) * rng.choice([1.0, 0.3, 1e9])
    D = rng.random((S, S))
    if kind == "metric":
        x = rng.normal(size=(S, 2))
        D = np.linalg.norm(x[:, None] - x[None], axis=2)
    elif kind == "zeros":
        D[rng.random((S, S)) < 0.3] = 0
    elif kind == "ties":
        D = rng.integers(1, 3, (S, S)).astype(float)
    elif kind == "far":
        D *= 10.0 ** rng.integers(-9, 10)
    elif kind == "discrete":
        D = np.ones((S, S))
    elif kind == "alone":
        D[rng.random((S, S)) < 0.4] = np.inf
    np.fill_diagonal(D, 0)
    if kind != "sparse":
        return D
    keep = rng.random((S, S)) < 0.6
    np.fill_diagonal(keep, rng.random(S) < 0.5)
    row, column = np.nonzero(keep)
    return sparse.csr_array((D[row, column], (row, column)), shape=(S, S))


def dense(ground, S):
    """The same as an (S, S) array, inf where mass cannot move."""
    if isinstance(ground, tuple):
        x = np.asarray(ground[1], dtype=float).reshape(S, -1)
        return np.abs(x[:, None] - x[None]).sum(axis=2)
    if not sparse.issparse(ground):
        return np.asarray(ground)
    D, entries = np.full((S, S), np.inf), sparse.coo_array(ground)
    D[entries.row, entries.col] = entries.data
    np.fill_diagonal(D, 0)
    return D


def dealt(order, n, seed=0, rectangular="s"):
    """Problems: model, ball, value and the ground as an (S, S) array."""
    for number, case in enumerate(cases(("l1", order), n, seed)):
        rng, S = np.random.default_rng([seed, number]), case.model.n_states
        ground = ground_of(rng, GROUNDS[number % len(GROUNDS)], S)
        ambiguity = drmdp.Wasserstein(
            1.0, "transport", order, case.ambiguity.support, rectangular, ground=ground
        )
        if ambiguity.ground.free and case.ambiguity.support == "all" and case.model.costs_missing:
            continue
        widest = case.ambiguity.saturation(case.model).max()
        part = np.asarray(case.ambiguity.radius) / (widest if widest > 0 else 1.0)
        radius = part * (ambiguity.saturation(case.model).max() or 1.0)
        yield (
            case.model,
            ambiguity.with_radius(radius if radius.ndim else float(radius)),
            case.value,
            dense(ground, S),
        )


def worst(D, rows, allowed, z, w, radius, order, x=None):
    """max_y min_a Σ_i w_i y_ia·z_a, or Σ_a x_a …, of one state: rows (A, N, S), allowed and z (A,
    S); a budget for all actions.
    """
    A = rows.shape[0]
    z = np.where(allowed, z, 0.0)
    low, span = z.min(), max(np.ptp(z), 1e-300)
    finite = np.isfinite(D)
    unit = D[finite].max() or 1.0
    a, i, j, k = np.nonzero((rows > 0)[..., None] & finite & allowed[:, None, None, :])
    E = a.size
    gain = w[i] * (z[a, k] - low) / span
    cost = D[j, k] / unit
    key = np.ravel_multi_index((a, i, j), rows.shape)
    places = np.unique(key)
    equal = sparse.csr_array(
        (np.ones(E), (np.searchsorted(places, key), np.arange(E))), shape=(places.size, E + 1)
    )
    groups = i if order == math.inf else np.zeros(E, dtype=int)
    limits = [
        sparse.csr_array(
            (cost * (1 if order == math.inf else w[i]), (groups, np.arange(E))),
            shape=(groups.max() + 1, E + 1),
        )
    ]
    right = [np.full(groups.max() + 1, radius / unit)]
    objective = np.zeros(E + 1)
    if x is None:
        objective[-1] = -1
        below = sparse.lil_array((A, E + 1))
        for row in range(A):
            below[row, -1] = 1
            below[row, np.flatnonzero(a == row)] = -gain[a == row]
        limits.append(below.tocsr())
        right.append(np.zeros(A))
    else:
        objective[:E] = -x[a] * gain
    bounds = [(0, None)] * E + [(None, None)]
    found = linprog(
        objective,
        sparse.vstack(limits),
        np.concatenate(right),
        equal,
        rows.ravel()[places],
        bounds,
        options=TIGHT,
    )
    assert found.status == 0, found.message
    return low + span * -found.fun


def wanted(model, ambiguity, value, D, policy=None):
    """F at v, or F^x, by that program, (S,)."""
    used = model.weights > 0
    w, out, stakes = (
        model.weights[used],
        np.zeros(model.n_states),
        model.stakes(value, 0, model.n_states),
    )
    radii = ambiguity.radii(model).reshape(model.n_states, -1)
    for s in np.flatnonzero(~model.terminal):
        own = np.flatnonzero(model.available[s])
        rows = model.blocks.dense(s, s + 1)[0][own][:, used]
        allowed = ambiguity.allowed(model, s, s + 1)[0][own]
        x = None if policy is None else policy[s][own]
        if not ambiguity.by_pair:
            out[s] = worst(D, rows, allowed, stakes[s][own], w, radii[s, 0], ambiguity.order, x)
            continue
        each = [
            worst(
                D,
                rows[[n]],
                allowed[[n]],
                stakes[s][own][[n]],
                w,
                radii[s, min(a, radii.shape[1] - 1)],
                ambiguity.order,
            )
            for n, a in enumerate(own)
        ]
        out[s] = min(each) if x is None else x @ np.array(each)
    return out
