"""The programs of one state with exponential cones, for Clarabel: KL and Burg.

Variables: the displacement δ = (y − ŷ)/ρ of each entry, a bound r on what each entry with ŷ > 0 costs, and γ in the update. Rows, in Clarabel's form
A x + s = b: sums Σ_t δ_ia = 0; in the update γ − Σ w z·δ ≤ room of each action; the budget Σ_i w_i Σ r ≤ θ; y ≥ 0 where ŷ = 0; and a cone
{(p, q, h) : q e^{p/q} ≤ h} for each r:

    KL      r ≥ y log(y/ŷ)   as   (−r, y, ŷ),        Burg    r ≥ ŷ log(ŷ/y)   as   (−r, ŷ, y).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.conic.cone import clarabel, settings
from drmdp.bellman.conic.operator import Entries
from drmdp.sets import AmbiguitySet


class Entropy:
    """Update and evaluation of one state; the classes below say where y stands in the cone."""

    power, own_support = 0.5, False
    place = 0  # of y in (−r, ·, ·); ŷ has the other one

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        self._entries = entries
        self._seen = np.flatnonzero(entries.nominal > 0)
        self._new = np.flatnonzero(entries.nominal == 0)
        self._sums = entries.n_actions * entries.weights.size
        self._solvers: dict[bool, tuple[Any, Any, Any, Array, Array]] = {}  # by "the policy is free"

    def update(self, stakes: Array, room: Array) -> tuple[Array, Array]:
        """Solve max γ; see `Program`."""
        entries = self._entries
        solver, matrix, place, rhs, _ = self._solver(free=True)
        matrix.data[place] = -entries.weights[entries.i] * stakes
        own = slice(self._sums, self._sums + entries.n_actions)
        rhs[own] = room
        solver.update(A=matrix, b=rhs)
        solution = solver.solve()
        policy = np.maximum(np.array(solution.z)[own], 0.0)
        return policy / policy.sum(), np.array(solution.x)[: stakes.size]

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `Program`."""
        entries = self._entries
        solver, _, _, _, objective = self._solver(free=False)
        objective[: stakes.size] = -entries.weights[entries.i] * stakes
        solver.update(q=objective)
        return np.array(solver.solve().x)[: stakes.size]

    def _solver(self, free: bool) -> tuple[Any, Any, Any, Array, Array]:
        if free not in self._solvers:
            self._solvers[free] = self._build(free)
        return self._solvers[free]

    def _build(self, free: bool) -> tuple[Any, Any, Any, Array, Array]:
        """Solver, its matrix, where the stakes lie in the matrix, the right-hand side and the objective."""
        entries, seen, new = self._entries, self._seen, self._new
        E, R, A = entries.a.size, seen.size, entries.n_actions
        column, cost = np.arange(E), E + np.arange(R)
        budget = self._sums + (A if free else 0)
        signs, cones = budget + 1 + np.arange(new.size), budget + 1 + new.size + 3 * np.arange(R)
        parts = [
            (entries.row, column, np.ones(E)),
            (np.full(R, budget), cost, entries.weights[entries.i[seen]]),
            (signs, new, -np.ones(new.size)),
            (cones, cost, np.ones(R)),
            (cones + 1 + self.place, seen, np.full(R, -entries.scale)),
        ]
        if free:
            parts.append((self._sums + entries.a, column, np.full(E, np.pi)))  # a mark, found again below
            parts.append((self._sums + np.arange(A), np.full(A, E + R), np.ones(A)))
        rows, columns, values = (np.concatenate(x) for x in zip(*parts, strict=True))
        shape = budget + 1 + new.size + 3 * R, E + R + (1 if free else 0)
        matrix = sparse.csc_matrix((values, (rows, columns)), shape=shape)
        rhs, objective = np.zeros(shape[0]), np.zeros(shape[1])
        rhs[budget] = entries.radius
        rhs[cones + 1] = rhs[cones + 2] = entries.nominal[seen]
        if free:
            objective[-1] = -1
        limits = [clarabel.ZeroConeT(self._sums), clarabel.NonnegativeConeT(budget + 1 + new.size - self._sums)]
        limits += [clarabel.ExponentialConeT() for _ in range(R)]
        none = sparse.csc_matrix((shape[1], shape[1]))
        solver = clarabel.DefaultSolver(none, objective, matrix, rhs, limits, settings())
        return solver, matrix, np.flatnonzero(matrix.data == np.pi), rhs, objective


class Kl(Entropy):
    """Σ_i w_i Σ y log(y/ŷ) ≤ θ."""

    own_support = True


class Burg(Entropy):
    """Σ_i w_i Σ ŷ log(ŷ/y) ≤ θ."""

    place = 1
