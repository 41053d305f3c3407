"""Kernels of ℓ1 and ℓ∞ sets with a given mean: linear programs of one state; see
`drmdp.certificate.membership`.

HiGHS maximises λ over the displacements y − ŷ of mean λ(ȳ − m), bounded by θ for (ℓ∞, ∞), and by
r_i with Σ_i w_i r_i ≤ θ for (ℓ∞, 1). For (ℓ1, ∞), if one kernel brings mass to t and another takes
mass from there, the first may as well bring it where the second does; so mass leaves only the t
with ȳ(t) < m(t), at most θ/2 of each kernel, and arrives only where ȳ(t) > m(t). Other orders bound
s_i ≥ (r_i/θ)ᵖ, Σ_i w_i s_i ≤ 1, by tangents: first at r_i = θ, then at the distances of each answer
that is too far away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate.membership import ENOUGH, PRECISE, StateData, attain

CUTS = 60
"""Linear programs for one state of finite order."""
PRECISION = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10)
SETTINGS = {**PRECISION, "time_limit": 60.0}


def linear(state: StateData) -> tuple[float, Array]:
    """Largest share of the way to the goal, and a tuple that takes it."""
    solutions = [(part.nominal, *_program(part)) for part in state.parts()]
    share = min(reached for _, reached, _ in solutions)
    rows = []
    for nominal, reached, y in solutions:
        rows.append(nominal + (share / reached if reached > 0 else 0.0) * (y - nominal))
    return share, attain(np.concatenate(rows), state.weights, state.target(share))


Entries = tuple[Any, Any, Any]
"""The used entries (a, i, t) of a state, (E,) each."""


def _sums(values: Any, row: Any, n: int) -> Any:
    """A matrix of n rows that add up the entries of each `row`."""
    places = row, np.arange(row.size)
    return sparse.csr_array((np.broadcast_to(values, row.shape), places), (n, row.size))


def _program(state: StateData) -> tuple[float, Array]:
    """Solve for (y − ŷ on the used entries, r_i/θ and s_i for each i, λ), all scaled to be of order
    1.
    """
    nominal, w, by_kernel = state.nominal, state.weights, state.ambiguity.by_kernel
    way = np.where(np.abs(state.way) > PRECISE, state.way, 0.0)
    length, unit = float(np.abs(way).max()), min(state.radius, 1.0)
    if length == 0:
        return 1.0, nominal
    a, i, t = np.nonzero(np.broadcast_to(state.used[:, None], nominal.shape))
    centre, E, N = nominal[a, i, t] / unit, a.size, w.size  # in the unit of displacements
    equal = _equalities(state, (a, i, t), way, length)
    below, low, high = _limits(state, i, centre, np.sign(way[a, t]), state.radius / unit)
    wide = np.ones(2 * N) if by_kernel else np.append(w ** (-1 / state.ambiguity.order), 1 / w)
    low, high = np.append(low, np.zeros(2 * N + 1)), np.concatenate([high, wide, [length / unit]])
    best, limit, rho = (0.0, nominal), np.zeros(below.shape[0]), np.ones(N)
    cost, zero = np.append(np.zeros(E + 2 * N), -1.0), np.zeros(equal.shape[0])
    if not by_kernel:
        below = sparse.vstack([below, np.concatenate([np.zeros(E + N), w, [0.0]])[None]])
        limit = np.append(limit, 1.0)
    from scipy.optimize import linprog  # slow to import, and rarely needed

    for _ in range(CUTS):
        if not by_kernel:
            below, limit = _cut(state.ambiguity.order, rho, below, limit)
        box = np.stack([low, high], axis=1)
        x = linprog(cost, below, limit, equal, zero, box, options=SETTINGS).x
        if x is None:
            break
        y = nominal.copy()
        y[a, i, t] = np.maximum(unit * (centre + x[:E]), 0.0)
        y, share = y / y.sum(axis=2, keepdims=True), min(float(x[-1]) * unit / length, 1.0)
        pull = state.radius / max(state.apart(y), state.radius)
        if share * pull > best[0]:
            best = share * pull, nominal + pull * (y - nominal)
        if best[0] >= (1 - ENOUGH) * share:
            break
        distances = state.ambiguity.norm.of(y - nominal, axis=(0, 2))
        rho = np.minimum(distances / state.radius, wide[:N])
    return best


def _equalities(state: StateData, entries: Entries, way: Array, length: float) -> Any:
    """Rows that sum to 0, and a mean that moves along the way."""
    (A, N, K), (a, i, t) = state.nominal.shape, entries
    # one mean of each action follows from the others, up to rounding
    needed = (np.arange(K) != np.abs(way).argmax(axis=1)[:, None]).ravel()
    rows = [_sums(1.0, a * N + i, A * N), np.zeros((A * N, 2 * N)), None]
    means = _sums(state.weights[i], a * K + t, A * K)[needed]
    return sparse.bmat([rows, [means, None, -way.ravel()[needed, None] / length]]).tocsr()


def _limits(state: StateData, i: Any, y: Array, sign: Array, radius: float) -> Any:
    """Rows that are at most 0, and limits of the displacements of kernels i from below and above;
    y are the entries of ŷ.
    """
    E, N, low, high = y.size, state.weights.size, -y, np.full(y.size, np.inf)
    if state.ambiguity.metric == "l1":
        leaving = 2 * _sums(np.minimum(sign, 0.0), i, N)
        below = sparse.bmat([[leaving, -radius * np.eye(N), np.zeros((N, N + 1))]])
        return below, np.where(sign < 0, low, 0.0), np.where(sign > 0, high, 0.0)
    if state.ambiguity.by_kernel:
        below = sparse.csr_array((0, E + 2 * N + 1))
        return below, np.maximum(low, -radius), np.full(E, radius)
    up, positive = _sums(1.0, np.arange(E), E), y > 0
    radii = radius * _sums(1.0, i, N).T.tocsr()
    parts = [[up, -radii, np.zeros((E, N + 1))], [-up[positive], -radii[positive], None]]
    return sparse.bmat(parts), low, high


def _cut(p: float, rho: Array, below: Any, limit: Array) -> tuple[Any, Array]:
    """Add the tangents s_i ≥ ρᵖ + p ρ^{p−1} (ρ_i − ρ) to rows of (…, ρ_i, s_i, λ), scaled to be of
    order 1.
    """
    N, slope = rho.size, p * rho ** (p - 1)
    size = np.maximum(slope, 1.0)
    unused = np.zeros((N, below.shape[1] - 2 * N - 1))
    rows = [unused, np.diag(slope / size), np.diag(-1 / size), np.zeros((N, 1))]
    right = slope / size * rho * (1 - 1 / p)
    return sparse.vstack([below, np.concatenate(rows, axis=1)]), np.append(limit, right)
