"""Kernels of ℓ1 and ℓ∞ balls with a given mean: linear programs of one state; see `drmdp.certificate.membership`.

HiGHS maximises λ over the displacements y − ŷ of mean λ(ȳ − m), bounded by θ for (ℓ∞, ∞), and by r_i
with Σ_i w_i r_i ≤ θ for (ℓ∞, 1). For (ℓ1, ∞), if one kernel brings mass to t and another takes mass from there, the
first may as well bring it where the second does; so mass leaves only the t with ȳ(t) < m(t), at most θ/2 of each
kernel, and arrives only where ȳ(t) > m(t). Other orders bound s_i ≥ (r_i/θ)ᵖ, Σ_i w_i s_i ≤ 1, by tangents: first at r_i = θ, then at the distances of each
answer that is too far away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate.membership import ENOUGH, PRECISE, State, attain

CUTS = 60
"""Linear programs for one state of finite order."""
SETTINGS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "time_limit": 60.0}


def linear(state: State) -> tuple[float, Array]:
    """Largest share of the way to the goal, and a tuple that takes it."""
    each = [(part, *_program(part)) for part in state.parts()]
    share = min(own for _, own, _ in each)
    y = [part.nominal + (share / own if own > 0 else 0.0) * (y - part.nominal) for part, own, y in each]
    return share, attain(np.concatenate(y), state.weights, state.target(share))


def _program(state: State) -> tuple[float, Array]:
    """Solve for (y − ŷ on the used entries, r_i/θ and s_i for each i, λ), all scaled to be of order 1."""
    nominal, w, way = state.nominal, state.weights, np.where(np.abs(state.way) > PRECISE, state.way, 0.0)
    length, unit = float(np.abs(way).max()), min(state.radius, 1.0)
    if length == 0:
        return 1.0, nominal
    (A, N, K), radius = nominal.shape, state.radius / unit
    a, i, t = np.nonzero(np.broadcast_to(state.used[:, None], nominal.shape))
    E, y, sign = a.size, nominal[a, i, t] / unit, np.sign(way[a, t])

    def sums(values: Array, row: Any, n: int) -> Any:
        return sparse.csr_array((values, (row, np.arange(E))), shape=(n, E))

    rows, columns = sums(np.ones(E), a * N + i, A * N), sums(w[i], a * K + t, A * K)
    needed = (np.arange(K) != np.abs(way).argmax(axis=1)[:, None]).ravel()  # one of each action follows, up to rounding
    equal = sparse.bmat(
        [[rows, np.zeros((A * N, 2 * N)), None], [columns[needed], None, -way.ravel()[needed, None] / length]]
    )
    low, high, below = -y, np.full(E, np.inf), sparse.csr_array((0, E + 2 * N + 1))
    if state.ball.metric == "l1":
        low, high = np.where(sign < 0, -y, 0.0), np.where(sign > 0, np.inf, 0.0)
        below = sparse.bmat([[2 * sums(np.minimum(sign, 0.0), i, N), -radius * np.eye(N), np.zeros((N, N + 1))]])
    elif state.ball.by_kernel:
        low, high = np.maximum(-y, -radius), np.full(E, radius)
    else:
        up, own, some = sums(np.ones(E), np.arange(E), E), radius * sums(np.ones(E), i, N).T.tocsr(), y > 0
        below = sparse.bmat([[up, -own, np.zeros((E, N + 1))], [-up[some], -own[some], None]])
    wide = np.ones(2 * N) if state.ball.by_kernel else np.append(w ** (-1 / state.ball.order), 1 / w)
    box = np.append(low, np.zeros(2 * N + 1)), np.concatenate([high, wide, [length / unit]])
    best, limit = (0.0, nominal), np.zeros(below.shape[0])
    cost, zero, rho = np.append(np.zeros(E + 2 * N), -1.0), np.zeros(equal.shape[0]), np.ones(N)
    if not state.ball.by_kernel:
        below = sparse.vstack([below, np.concatenate([np.zeros(E + N), w, [0.0]])[None]])
        limit = np.append(limit, 1.0)
    from scipy.optimize import linprog  # a quarter of the time `import drmdp` takes, and rarely needed

    for _ in range(CUTS):
        if not state.ball.by_kernel:
            below, limit = _cut(state.ball.order, rho, below, limit)
        x = linprog(cost, below, limit, equal.tocsr(), zero, np.stack(box, axis=1), options=SETTINGS).x
        if x is None:
            break
        found = nominal.copy()
        found[a, i, t] = np.maximum(unit * (y + x[:E]), 0.0)
        found, share = found / found.sum(axis=2, keepdims=True), min(float(x[-1]) * unit / length, 1.0)
        pull = state.radius / max(state.apart(found), state.radius)
        best = max(best, (share * pull, nominal + pull * (found - nominal)), key=lambda pair: pair[0])
        if best[0] >= (1 - ENOUGH) * share:
            break
        rho = np.minimum(state.ball.norm.of(found - nominal, axis=(0, 2)) / state.radius, wide[:N])
    return best


def _cut(p: float, rho: Array, below: Any, limit: Array) -> tuple[Any, Array]:
    """Add the tangents s_i ≥ ρᵖ + p ρ^{p−1} (ρ_i − ρ) to rows of (…, ρ_i, s_i, λ), scaled to be of order 1."""
    N, slope = rho.size, p * rho ** (p - 1)
    size = np.maximum(slope, 1.0)
    rows = [np.zeros((N, below.shape[1] - 2 * N - 1)), np.diag(slope / size), np.diag(-1 / size), np.zeros((N, 1))]
    return sparse.vstack([below, np.concatenate(rows, axis=1)]), np.append(limit, slope / size * rho * (1 - 1 / p))
