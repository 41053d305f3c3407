"""The surrogate of (ℓ2, ∞): what f is while active sets stay, and its minimiser.

    m(x) = Σ_a x_a (cost_a + Σ_i w_i V_ia(0)) + Σ_i w_i r_i √(Σ_a x_a² D_ia),      κ_i = r_i / √(Σ_a x_a² D_ia),
    ∇m = cost_a + Σ_i w_i (V_ia(0) + κ_i x_a D_ia),   ∇²m = Σ_i w_i κ_i [diag(D_i) − (D_i∘x)(D_i∘x)ᵀ / Σ_a x_a² D_ia].

Minimised by Newton's method over the policies ≥ LEAST on the candidates (`qp`), with steps halved until m falls enough; mostly one step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.qp import Program, make_program, simplex_qp
from drmdp.bellman.rows.l2 import FIELDS, SLOPE, VALUE
from drmdp.core.compiled import INLINE, LEAN, njit

LEAST = 1e-13  # probability of a candidate
NEWTON = 20  # Newton steps on m


class Surrogate(NamedTuple):
    """What a pass over the rows finds, the surrogate it makes, and work space beside them."""

    rows: Array  # (A, FIELDS, N), see `drmdp.bellman.rows.l2`
    kernels: Array  # (5, N): ΣE, Σx²D, r, Σz²D, √(w κ/Σz²D)
    candidates: Any  # (A,)
    target: Array  # (A,)
    off: Array  # (A,) how far from 1 the masses were
    vectors: Array  # (5, A), by candidates: linear part of m, z, gradient, two points
    side: Array  # (A, N): the rank-one terms of ∇²m are its columns
    H: Array  # (A, A)
    program: Program
    share: Array  # (2, A): solution at the last radius, last point
    kappa: Array  # (2, N)
    tau: Array  # (2, A, N)


def make_surrogate(A: int, N: int) -> Surrogate:
    """Work space for A actions and N kernels."""
    return Surrogate(
        np.zeros((A, FIELDS, N)), np.empty((5, N)), np.empty(A, dtype=np.int64), np.empty(A), np.empty(A), np.empty((5, A)),
        np.empty((A, N)), np.empty((A, A)), make_program(A), np.empty((2, A)), np.empty((2, N)), np.empty((2, A, N)),
    )  # fmt: skip


@njit(**INLINE)
def linearise(state, share, kappa, count, work):
    """Make the surrogate m of the first `count` candidates after a pass.

    reads   state, share (A,), kappa (N,), count, work: rows, kernels, candidates
    fills   work: the linear part of m, and r_i, 0 where the kernel spent far too much
    returns whether none did
    """
    N = kappa.size
    theta2 = state.theta * state.theta
    spent, curvature, radius = work.kernels[0], work.kernels[1], work.kernels[2]
    sound = True
    for i in range(N):
        rest = theta2 - spent[i] + kappa[i] * kappa[i] * curvature[i]
        radius[i] = math.sqrt(rest) if rest > 0.0 else 0.0
        sound = sound and rest > 0.0
    for r in range(count):
        a = work.candidates[r]
        rows = work.rows[a]
        total = state.cost[a]
        for i in range(N):
            total += state.w[i] * (rows[VALUE, i] - kappa[i] * share[a] * rows[SLOPE, i])
        work.vectors[0, r] = total
    return sound


@njit(**LEAN)
def surrogate(state, z, count, work):
    """The value of the surrogate.

    reads   state, z (count,), by candidates, count, work
    fills   work.kernels[3]: Σz²D
    returns m(z)
    """
    curvature = work.kernels[3]
    curvature[:] = 0.0
    value = 0.0
    for r in range(count):
        value += z[r] * work.vectors[0, r]
        D = work.rows[work.candidates[r], SLOPE]
        for i in range(D.size):
            curvature[i] += z[r] * z[r] * D[i]
    for i in range(curvature.size):
        value += state.w[i] * work.kernels[2, i] * math.sqrt(curvature[i])
    return value


@njit(**INLINE)
def surrogate_gradient(state, z, count, g, work):
    """The gradient of the surrogate after its value.

    reads   state, z (count,), count, work
    fills   g: ∇m(z); work: side, kernels[4]
    returns (z − LEAST)·(g − min g), by how much z is not optimal
    """
    N = state.w.size
    curvature, root = work.kernels[3], work.kernels[4]
    for i in range(N):
        S = curvature[i]
        root[i] = math.sqrt(state.w[i] * work.kernels[2, i] / (S * math.sqrt(S))) if S > 1e-300 else 0.0
    lowest = np.inf
    for r in range(count):
        D = work.rows[work.candidates[r], SLOPE]
        side = work.side[r]
        total = work.vectors[0, r]
        for i in range(N):
            side[i] = z[r] * D[i] * root[i]
            total += side[i] * root[i] * curvature[i]
        g[r] = total
        lowest = min(lowest, total)
    residual = 0.0
    for r in range(count):
        residual += (z[r] - LEAST) * (g[r] - lowest)
    return residual


@njit(**INLINE)
def surrogate_hessian(z, count, N, work):
    """The Hessian of the surrogate after its gradient; the diagonal without cancellation.

    reads   z (count,), count, N, work
    fills   work.H: ∇²m(z)
    """
    H = work.H
    for r in range(count):
        D = work.rows[work.candidates[r], SLOPE]
        diagonal = 0.0
        for i in range(N):
            root = work.kernels[4, i]
            diagonal += D[i] * root * root * max(work.kernels[3, i] - z[r] * z[r] * D[i], 0.0)
        H[r, r] = diagonal
        for c in range(r):
            product = 0.0
            for i in range(N):
                product += work.side[r, i] * work.side[c, i]
            H[r, c] = -product
            H[c, r] = -product


@njit(**LEAN)
def minimise_surrogate(state, share, count, goal, work):
    """Minimise the surrogate over policies ≥ LEAST on the candidates, up to a residual of `goal`.

    reads   state, share (A,), count, goal
    fills   work.target (A,), and works in the others
    """
    point, g, inside, z = work.vectors[1], work.vectors[2], work.vectors[3], work.vectors[4]
    rest = 1.0 - count * LEAST
    for r in range(count):
        point[r] = share[work.candidates[r]]
    value = surrogate(state, point, count, work)
    for step in range(NEWTON):
        residual = surrogate_gradient(state, point, count, g, work)
        if step > 0 and residual <= goal:
            break
        surrogate_hessian(point, count, state.w.size, work)
        for r in range(count):
            inside[r] = max((point[r] - LEAST) / rest, 0.0)
        if not simplex_qp(work.H, g, inside, count, 0, z, work.program):
            break
        slope = 0.0
        for r in range(count):
            z[r] = LEAST + rest * z[r] - point[r]
            slope += g[r] * z[r]
        part = 1.0
        new = np.inf
        while part > 1e-9:
            for r in range(count):
                inside[r] = max(point[r] + part * z[r], LEAST)
            new = surrogate(state, inside, count, work)
            if new <= value + 1e-4 * part * slope + 1e-15:
                break
            part *= 0.5
        for r in range(count):
            point[r] = inside[r]
        value = new
    work.target[:] = 0.0
    for r in range(count):
        work.target[work.candidates[r]] = point[r]
