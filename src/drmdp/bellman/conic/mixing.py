"""Re-weighting by conic programs of one state.

With G_ai = ŷ_ia·z_a, brought to [0, 1], nature's mixture q solves

    max { γ :  γ ≤ Σ_i q_i G_ai for every a,  Σ q = 1,  q ≥ 0,  q in the ball },

the duals of the first rows being the policy; with a policy x it is max Σ_i q_i Σ_a x_a G_ai. tv, cvar and any are linear programs for HiGHS, χ² has a
second-order cone and KL and Burg have exponential ones, for Clarabel: those of `entropy`, with q for y and w for ŷ. With "sa" every action has a
program of its own.

Claim: q.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from drmdp import _native
from drmdp._typing import Array
from drmdp.bellman.conic.cone import Constraints, clarabel, settings
from drmdp.bellman.conic.direct import DirectOperator, Game
from drmdp.sets.reweighting import Reweighting

TINY = 1e-300


class Mixing(DirectOperator):
    """Nature's mixtures in each state."""

    ball: Reweighting

    def solve(self, game: Game, kept: Array) -> tuple[Array, Array]:
        """Policy and nature's rows."""
        model, s, own, used = self.model, game.s, game.own, self.model.weights > 0
        y = model.blocks.dense(s, s + 1)[0][own][:, used]  # (A', N, S)
        y = y / y.sum(axis=2, keepdims=True)
        G = np.einsum("ait,at->ai", y, game.z) + (game.top - game.top.min())[:, None]
        radii, w = self.ball.radii(model), model.weights[used] / math.fsum(model.weights[used])
        if not self.ball.by_pair:
            x, kept[:] = mixture(self.ball.kind, float(radii[s]), w, G, game.policy)
            return x, np.einsum("i,ait->at", self._inside(kept, radii[s], w), y)
        rows, worst = np.zeros(game.z.shape), np.zeros(own.size)
        kept = kept.reshape(model.n_actions, -1)
        for k, a in enumerate(own.tolist()):
            _, kept[a] = mixture(self.ball.kind, float(radii[s, a]), w, G[[k]], np.ones(1))
            q = self._inside(kept[a], radii[s, a], w)
            rows[k], worst[k] = q @ y[k], q @ G[k]
        return np.eye(own.size)[np.argmin(worst)] if game.policy is None else game.policy, rows

    def _inside(self, q: Array, size: float, w: Array) -> Array:
        """The mixture, surely in the ball."""
        out = np.array(q)[None]
        _native.pull(f"mix_{self.ball.kind}", np.array([float(size)]), w, out)
        return np.asarray(out[0])


def mixture(kind: str, size: float, w: Array, G: Array, x: Array | None) -> tuple[Array, Array]:
    """Policy and mixture of a state."""
    low, span = float(G.min()), float(np.ptp(G))
    start = (np.eye(len(G))[np.argmin(G @ w)] if x is None else x), w
    if not span > TINY or (size == 0 and kind not in ("cvar", "any")):
        return start
    g = (G - low) / span if x is None else (x @ (G - low) / span)[None]
    solve = linear if kind in ("tv", "cvar", "any") else conic
    policy, q = solve(kind, size, w, g)
    q, policy = np.maximum(q, 0.0), np.maximum(policy, 0.0)
    if not (q.sum() > 0 and policy.sum() > 0):
        return start
    return policy / policy.sum() if x is None else x, q / q.sum()


def linear(kind: str, size: float, w: Array, g: Array) -> tuple[Array, Array]:
    """tv, cvar and any. Columns: q, for tv what goes up, and γ."""
    n, N = g.shape
    up = N if kind == "tv" else 0
    most = w / size if kind == "cvar" and size > 0 else np.ones(N)
    bounds = [(0.0, min(top, 1.0)) for top in most.tolist()] + [(0.0, None)] * up + [(None, None)]
    left, right = [np.hstack([-g, np.zeros((n, up)), np.ones((n, 1))])], [np.zeros(n)]
    if up:
        left += [np.hstack([np.eye(N), -np.eye(N), np.zeros((N, 1))]), np.r_[np.zeros(N), np.ones(N), 0.0][None]]
        right += [w, np.array([size])]
    total = np.r_[np.ones(N), np.zeros(up + 1)][None]
    found = linprog(
        -np.r_[np.zeros(N + up), 1.0], np.vstack(left), np.concatenate(right), total, [1.0], bounds, method="highs"
    )
    if found.x is None:
        return np.zeros(n), np.zeros(N)
    return -found.ineqlin.marginals[:n], found.x[:N]


def conic(kind: str, size: float, w: Array, g: Array) -> tuple[Array, Array]:
    """kl, burg and chi2. Columns: q, for the entropies what each costs, and γ. Rows: the sum, γ, signs or the budget, the cones."""
    (n, N), q, rows = g.shape, np.arange(g.shape[1]), Constraints()
    gamma, one, (k, i) = N if kind == "chi2" else 2 * N, np.zeros(N, dtype=int), np.indices(g.shape).reshape(2, -1)
    rows.add([(one, q, 1.0)], 1.0, clarabel.ZeroConeT(1))
    rows.add([(k, i, -g.ravel()), (np.arange(n), np.full(n, gamma), 1.0)], 0.0, clarabel.NonnegativeConeT(n))
    if kind == "chi2":
        rows.add([(q, q, -1.0)], 0.0, clarabel.NonnegativeConeT(N))
        rows.add([(1 + q, q, -1 / np.sqrt(w))], np.r_[math.sqrt(size), -np.sqrt(w)], clarabel.SecondOrderConeT(N + 1))
    else:
        given, place = np.zeros((N, 3)), 1 if kind == "kl" else 2
        given[:, 3 - place] = w
        rows.add([(one, N + q, 1.0)], size, clarabel.NonnegativeConeT(1))
        cones = [clarabel.ExponentialConeT()] * N
        rows.add([(3 * q, N + q, 1.0), (3 * q + place, q, -1.0)], given.ravel(), *cones)
    matrix, rhs = rows.made(gamma + 1)
    zero, objective = sparse.csc_matrix((gamma + 1, gamma + 1)), np.append(np.zeros(gamma), -1.0)
    found = clarabel.DefaultSolver(zero, objective, matrix, rhs, rows.cones, settings()).solve()
    return np.array(found.z)[1 : 1 + n], np.array(found.x)[:N]
