"""Problems of any size whose states come in few kinds, and what `oracle` says about them.

The S states are cut into G kinds of given sizes. All states of a kind have the same costs and rows,
and a row gives the same probability to all states of a kind, so v* and every F(v) at such a v are
constant on the kinds: G numbers, exactly known.

Rows and weights count as divided by their sums, which is how the package reads them. Values are
costs to the agent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

import drmdp
import oracle


@dataclass(frozen=True)
class Lumped:
    """A problem; arrays are by kind, everything as floats."""

    sizes: np.ndarray  # (G,) int
    kernels: np.ndarray  # (N, G, A, G): probability of each single state of a kind
    costs: np.ndarray  # (G, A), or (G, A, G) by next state
    discount: float
    pair: tuple[str, float]
    radius: np.ndarray  # (G,)
    support: str = "all"
    weights: np.ndarray | None = None
    available: np.ndarray | None = None  # (G, A)
    terminal: np.ndarray | None = None  # (G,)
    rewards: bool = False
    dtype: str = "float64"
    is_sparse: bool = True

    @cached_property
    def kind(self) -> np.ndarray:
        """Kind of each state, (S,)."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def first(self) -> np.ndarray:
        """First state of each kind, (G,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    @property
    def n_kernels(self) -> int:
        return self.kernels.shape[0]

    @property
    def n_actions(self) -> int:
        return self.kernels.shape[2]

    @cached_property
    def ends(self) -> np.ndarray:
        return np.zeros(self.sizes.size, dtype=bool) if self.terminal is None else self.terminal

    @cached_property
    def open(self) -> np.ndarray:
        """Pairs that can be played, (G, A)."""
        shape = (self.sizes.size, self.n_actions)
        return (
            np.ones(shape, dtype=bool) if self.available is None else self.available
        ) & ~self.ends[:, None]

    # ------------------------------------------------------------------ as the package sees it

    @cached_property
    def model(self) -> drmdp.Model:
        kind = self.kind
        costs = self.costs[kind] if self.costs.ndim == 2 else self.costs[kind][:, :, kind]
        return drmdp.Model(
            self._rows(),
            **{"rewards" if self.rewards else "costs": -costs if self.rewards else costs},
            discount=self.discount,
            weights=self.weights,
            available=self.open[kind] | self.ends[kind][:, None],
            terminal=self.ends[kind],
            dtype=self.dtype,
        )

    @property
    def ambiguity(self) -> drmdp.Wasserstein:
        radius = (
            float(self.radius[0])
            if (self.radius == self.radius[0]).all()
            else self.radius[self.kind]
        )
        return drmdp.Wasserstein(radius, *self.pair, self.support)

    def _rows(self):
        """N kernels: an array, or sparse matrices made row by row of the kinds."""
        kind = self.kind
        if not self.is_sparse:
            return self.kernels[:, kind][:, :, :, kind]
        A, S = self.n_actions, kind.size
        return [
            _expanded(np.where(self.open[:, :, None], own, 0.0), kind, S, A) for own in self.kernels
        ]

    def expand(self, by_kind) -> np.ndarray:
        """(S,) numbers, constant on the kinds."""
        return np.asarray(by_kind)[self.kind]

    # ------------------------------------------------------------------ as it is

    @cached_property
    def _exact(self):
        """Weights and rows divided by their sums, without the kernels of weight 0, and costs."""
        given = (
            np.full(self.n_kernels, 1 / self.n_kernels) if self.weights is None else self.weights
        )
        used = np.flatnonzero(given > 0)
        weights = [Fraction(float(w)) for w in given[used]]
        total = sum(weights)
        sizes = self.sizes.tolist()
        stored = self.kernels.astype(self.dtype).astype(float)

        def row(i, g, a):
            masses = [Fraction(p) for p in stored[i, g, a].tolist()]
            whole = sum(k * p for k, p in zip(sizes, masses, strict=True))
            return [p / whole for p in masses]

        rows = {(g, a): [row(i, g, a) for i in used] for g, a in np.argwhere(self.open).tolist()}
        return [w / total for w in weights], rows

    def game(self, g: int, value) -> tuple[oracle.Game, list[list[int]], list[int]]:
        """The game of a state of kind g at a value by kind; with it the kinds in each action's
        groups, and the actions.
        """
        weights, rows = self._exact
        discount, sizes = Fraction(self.discount), self.sizes.tolist()
        actions, kinds = np.flatnonzero(self.open[g]).tolist(), []
        games = []
        for a in actions:
            chances = list(zip(*rows[g, a], strict=True))
            seen = [rows[g, b] for b in (actions if self.support == "state" else [a])]
            used = [
                h
                for h in range(len(sizes))
                if self.support == "all" or any(row[h] for own in seen for row in own)
            ]
            cost = [
                Fraction(float(self.costs[g, a] if self.costs.ndim == 2 else self.costs[g, a, h]))
                for h in used
            ]
            games.append(
                [
                    oracle.Group(sizes[h], c + discount * value[h], tuple(chances[h]))
                    for h, c in zip(used, cost, strict=True)
                ]
            )
            kinds.append(used)
        game = oracle.Game(games, weights, *self.pair, Fraction(float(self.radius[g])))
        return game, kinds, actions

    def step(self, g: int, value, policy=None) -> oracle.Step:
        """F(v), or F^x(v) for a policy (G, A), in a state of kind g."""
        if self.ends[g]:
            return oracle.Step(Fraction(0), Fraction(0), [], [])
        game, _, actions = self.game(g, value)
        return oracle.play(
            game, None if policy is None else [Fraction(float(policy[g, a])) for a in actions]
        )

    @staticmethod
    def exact(value) -> list[Fraction]:
        """Floats as fractions."""
        return [Fraction(float(v)) for v in value]

    def bellman(self, value, policy=None) -> tuple[list[Fraction], list[Fraction]]:
        """F(v) by kind, enclosed, at a value by kind."""
        steps = [self.step(g, self.exact(value), policy) for g in range(self.sizes.size)]
        return [step.low for step in steps], [step.high for step in steps]

    def optimum(self, policy=None, start=None) -> tuple[list[Fraction], list[Fraction]]:
        """v*, or the worst-case value of a policy (G, A), by kind, enclosed; `start` is a guess by
        kind that saves time.
        """
        first = [Fraction(0)] * self.sizes.size if start is None else self.exact(start)
        return oracle.fixed_point(
            lambda g, v: self.step(g, v, policy), self._chain, Fraction(self.discount), first
        )

    def _chain(self, g: int, step: oracle.Step):
        """Cost of the saddle point of a step, and λ times the mass of each kind."""
        masses, cost = [Fraction(0)] * self.sizes.size, Fraction(0)
        if self.ends[g]:
            return cost, masses
        zero = [Fraction(0)] * self.sizes.size
        game, kinds, _ = self.game(g, zero)  # at v = 0 the stakes are the costs
        for x, groups, own, kernel in zip(
            step.policy, game.actions, kinds, step.kernel, strict=True
        ):
            for h, group, mass in zip(own, groups, kernel, strict=True):
                cost += x * mass * group.stake
                masses[h] += Fraction(self.discount) * x * mass
        return cost, oracle.rounded(masses)

    def at(self, **changes) -> Lumped:
        """The same problem but for some fields."""
        other = replace(self, **changes)
        if set(changes) <= {"radius", "pair", "support"} and "model" in self.__dict__:
            other.__dict__["model"] = self.model  # which takes longer than the rest
        return other


def apart(model: drmdp.Model, ambiguity: drmdp.Wasserstein) -> Lumped:
    """A small model as it is: every state is of its own kind."""
    S, A = model.n_states, model.n_actions
    kernels = model.kernels
    if model.is_sparse:
        kernels = np.stack([kernel.toarray().reshape(S, A, S) for kernel in kernels])
    costs = model.costs
    costs = costs.toarray().reshape(S, A, S) if sparse.issparse(costs) else np.asarray(costs)
    return Lumped(
        np.ones(S, dtype=int),
        kernels,
        costs,
        model.discount,
        ambiguity.pair,
        np.broadcast_to(ambiguity.radius, S),
        ambiguity.support,
        model.weights,
        model.available,
        model.terminal,
        is_sparse=model.is_sparse,
    )


def _expanded(rows, kind, S, A):
    """Sparse (S·A, S) matrix of rows (G, A, G) that give the same number to all states of a
    kind.
    """
    G = rows.shape[0]
    states = [np.flatnonzero(kind == h) for h in range(G)]
    own = [
        [
            np.concatenate(
                [states[h] for h in range(G) if rows[g, a, h] != 0] or [np.zeros(0, dtype=int)]
            )
            for a in range(A)
        ]
        for g in range(G)
    ]
    lengths = np.array([[own[g][a].size for a in range(A)] for g in range(G)])
    indptr = np.concatenate([[0], np.cumsum(lengths[kind].ravel())])
    indices = (
        np.concatenate([own[g][a] for g in kind for a in range(A)])
        if S <= 64
        else _tiled(own, kind, A)
    )
    pair = np.repeat(np.arange(S * A), lengths[kind].ravel())
    data = rows[kind].reshape(S * A, G)[pair, kind[indices]]
    matrix = sparse.csr_array((data, indices, indptr), shape=(S * A, S))
    matrix.sort_indices()
    return matrix


def _tiled(own, kind, A):
    """Columns of all rows, kind by kind; kinds are contiguous."""
    sizes = np.bincount(kind)
    return np.concatenate([np.tile(np.concatenate(own[g]), sizes[g]) for g in range(sizes.size)])


def false_bounds(lower, upper, low, high) -> list[str]:
    """Where a lower bound is above `high` or an upper bound below `low`: floats (G,) against an
    enclosure.
    """
    wrong = []
    for g, (below, above, least, most) in enumerate(
        zip(np.asarray(lower).tolist(), np.asarray(upper).tolist(), low, high, strict=True)
    ):
        if np.isnan(below) or (below != -np.inf and Fraction(below) > most):
            wrong.append(
                f"kind {g}: lower {below!r} is above the truth by {float(Fraction(below) - most) if not np.isnan(below) else below:.3g}"
            )
        if np.isnan(above) or (above != np.inf and Fraction(above) < least):
            wrong.append(
                f"kind {g}: upper {above!r} is below the truth by {float(least - Fraction(above)) if not np.isnan(above) else above:.3g}"
            )
    return wrong
