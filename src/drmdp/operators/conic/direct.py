"""Sets that pose the programs of their states themselves: intervals and re-weighting.

What nature chooses in a state is no tuple of rows near the data. A subclass solves one state, this
module all of them. The claim is the memory of the exact operator after it has evaluated the policy,
with the numbers by kernel of these programs.

**Intervals**: max z·y, lower ≤ y ≤ upper, Σ y = 1, for every pair, by HiGHS; the best action is
played.

**Re-weighting.** With G_ai = ŷ_ia·z_a, brought to [0, 1], nature's mixture q solves

    max { γ :  γ ≤ Σ_i q_i G_ai for every a,  Σ q = 1,  q ≥ 0,  q in the set },

the duals of the first rows being the policy; with a policy x it is max Σ_i q_i Σ_a x_a G_ai. tv,
cvar and any are linear programs for HiGHS, χ² has a second-order cone and KL and Burg have
exponential ones, for Clarabel: those of KL and Burg in `cone`, with q for y and w for ŷ. With "sa"
every action has a program of its own.

Claim: q.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from drmdp import _native
from drmdp._typing import Array
from drmdp.core import levels
from drmdp.layout.layout import entries_of, in_force, lay_out
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.operators.operator import Update, tabled
from drmdp.ui.interrupts import put_off

TINY = 1e-300


class Game(NamedTuple):
    """One state: its available actions and what they cost in each next state."""

    s: int
    actions: Any  # (A',)
    z: Array  # (A', S) below the top of the action, 0 where nature cannot go
    top: Array  # (A',)
    policy: Array | None  # (A',) if it is fixed


class DirectOperator(ABC):
    """The sweeps of a set that poses its own programs."""

    def __init__(self, model: Model, ambiguity: Any) -> None:
        self.model, self.ambiguity = model, ambiguity
        self.layout = lay_out(model, ambiguity)
        self._twin = ExactOperator(model, ambiguity, 1)

    @abstractmethod
    def solve(self, game: Game, by_kernel: Array) -> tuple[Array, Array]:
        """Policy (A',) and nature's mean rows (A', S) in a state; fills the claim's numbers of the
        state, `by_kernel`.
        """

    def sweep(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        """Update the states start … stop − 1, or evaluate a policy (S, A)."""
        model, shift = self.model, levels.level(value, self.model)
        u, n, states = value - shift, stop - start, slice(start, stop)
        by_kernel = self._twin.warm_start.memory.by_kernel.copy()
        x, new = np.zeros(model.available.shape), np.zeros(n)
        kernel = np.zeros((n, model.n_actions, model.n_next))
        for s in range(start, stop):
            if model.terminal[s]:
                continue
            actions = np.flatnonzero(model.available[s])
            allowed = self.ambiguity.allowed(model, s, s + 1)[0][actions]
            z = model.stakes(u, s, s + 1)[0][actions]
            top = np.where(allowed, z, -np.inf).max(axis=1)
            z = np.where(allowed, z - top[:, None], 0.0)
            game = Game(s, actions, z, top, None if policy is None else policy[s, actions])
            with put_off():
                share, rows = self.solve(game, by_kernel[s])
            x[s, actions], kernel[s - start, actions] = share, rows
            worth = (rows * z).sum(axis=1) + top
            new[s - start] = worth.min() if policy is None else share @ worth
        low, high, result = levels.both_steps(u[states], shift, model, new, new, states)
        claim = self._twin.evaluate(value, x, start, stop).claim
        # 0 marks actions that are not played, of which nature was not asked
        asked = np.where((x > 0) | (not self.ambiguity.by_pair), claim.by_action, 1.0)
        claim = claim._replace(by_action=asked, by_kernel=by_kernel)
        return Update(result, low, high, x[states], tabled(kernel), claim)


class Boxes(DirectOperator):
    """A program for each pair; the certificate needs no claim."""

    def solve(self, game: Game, by_kernel: Array) -> tuple[Array, Array]:
        """Policy and nature's rows."""
        layout, rows = self.layout, np.zeros(game.z.shape)
        for k, pair in enumerate((game.s * self.model.n_actions + game.actions).tolist()):
            entries = entries_of(layout, pair)
            columns = layout.indices[entries]
            bounds = in_force(layout, entries, layout.radius[game.s])
            z = game.z[k, columns]
            cost, ones = z / (z.min() or -1.0), np.ones((1, z.size))
            y = linprog(cost, None, None, ones, [1.0], np.transpose(bounds), method="highs").x
            rows[k, columns] = bounds[0] / bounds[0].sum() if y is None else y
        if game.policy is not None:
            return game.policy, rows
        return np.eye(game.actions.size)[np.argmin((rows * game.z).sum(axis=1) + game.top)], rows


class Mixing(DirectOperator):
    """Nature's mixtures in each state."""

    def solve(self, game: Game, by_kernel: Array) -> tuple[Array, Array]:
        """Policy and nature's rows."""
        model, s, actions, used = self.model, game.s, game.actions, self.model.weights > 0
        y = model.blocks.dense(s, s + 1)[0][actions][:, used]  # (A', N, S)
        y = y / y.sum(axis=2, keepdims=True)
        G = np.einsum("ait,at->ai", y, game.z) + (game.top - game.top.min())[:, None]
        radii, w = self.ambiguity.radii(model), model.weights[used] / math.fsum(model.weights[used])
        kind = self.ambiguity.kind
        if not self.ambiguity.by_pair:
            x, by_kernel[:] = mixture(kind, float(radii[s]), w, G, game.policy)
            return x, np.einsum("i,ait->at", pulled_inside(kind, by_kernel, radii[s], w), y)
        rows, worst = np.zeros(game.z.shape), np.zeros(actions.size)
        by_kernel = by_kernel.reshape(model.n_actions, -1)
        for k, a in enumerate(actions.tolist()):
            by_kernel[a] = mixture(kind, float(radii[s, a]), w, G[[k]], np.ones(1))[1]
            q = pulled_inside(kind, by_kernel[a], radii[s, a], w)
            rows[k], worst[k] = q @ y[k], q @ G[k]
        return np.eye(actions.size)[np.argmin(worst)] if game.policy is None else game.policy, rows


def pulled_inside(kind: str, q: Array, size: float, w: Array) -> Array:
    """A mixture that surely is in the set."""
    out = np.array(q)[None]
    _native.pull(f"mix_{kind}", np.array([float(size)]), w, out)
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
    lhs, rhs = [np.hstack([-g, np.zeros((n, up)), np.ones((n, 1))])], [np.zeros(n)]
    gamma, total = np.r_[np.zeros(N + up), 1.0], np.r_[np.ones(N), np.zeros(up + 1)][None]
    if up:
        lhs += [np.hstack([np.eye(N), -np.eye(N), np.zeros((N, 1))])]
        lhs += [np.r_[np.zeros(N), np.ones(N), 0.0][None]]
        rhs += [w, np.array([size])]
    below = np.vstack(lhs), np.concatenate(rhs)
    solution = linprog(-gamma, *below, total, [1.0], bounds, method="highs")
    if solution.x is None:
        return np.zeros(n), np.zeros(N)
    return -solution.ineqlin.marginals[:n], solution.x[:N]


def conic(kind: str, size: float, w: Array, g: Array) -> tuple[Array, Array]:
    """kl, burg and chi2. Columns: q, for the entropies the cost of each, and γ. Rows: the sum, γ,
    signs or the budget, the cones.
    """
    from drmdp.operators.conic.cone import Constraints, clarabel

    (n, N), q, rows = g.shape, np.arange(g.shape[1]), Constraints()
    gamma, zeros = N if kind == "chi2" else 2 * N, np.zeros(N, dtype=int)
    k, i = np.indices(g.shape).reshape(2, -1)
    rows.add([(zeros, q, 1.0)], 1.0, clarabel.ZeroConeT(1))
    parts = [(k, i, -g.ravel()), (np.arange(n), np.full(n, gamma), 1.0)]
    rows.add(parts, 0.0, clarabel.NonnegativeConeT(n))
    if kind == "chi2":
        rhs = np.r_[math.sqrt(size), -np.sqrt(w)]
        rows.add([(q, q, -1.0)], 0.0, clarabel.NonnegativeConeT(N))
        rows.add([(1 + q, q, -1 / np.sqrt(w))], rhs, clarabel.SecondOrderConeT(N + 1))
    else:
        constants, place = np.zeros((N, 3)), 1 if kind == "kl" else 2
        constants[:, 3 - place] = w
        rows.add([(zeros, N + q, 1.0)], size, clarabel.NonnegativeConeT(1))
        cones = [clarabel.ExponentialConeT()] * N
        rows.add([(3 * q, N + q, 1.0), (3 * q + place, q, -1.0)], constants.ravel(), *cones)
    solution = rows.solver(np.append(np.zeros(gamma), -1.0)).solver.solve()
    return np.array(solution.z)[1 : 1 + n], np.array(solution.x)[:N]
