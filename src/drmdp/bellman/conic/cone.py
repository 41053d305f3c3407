"""The second-order cone programs of one state, for Clarabel.

Variables: the displacement δ = (y − ŷ)/ρ of each entry, and γ in the update. Rows, in Clarabel's form A x + s = b:
sums Σ_t δ_ia = 0; signs −δ ≤ ŷ/ρ; in the update γ − Σ w z·δ ≤ room of each action; and the cone
‖(√w_i δ_i)‖₂ ≤ θ/ρ over all kernels (order 2) or ‖δ_i‖₂ ≤ θ/ρ for each (order ∞); for χ² ‖(√(w_i/ŷ) δ)‖₂ ≤ √θ/ρ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.conic.operator import Entries
from drmdp.errors import MissingExtra
from drmdp.sets import AmbiguitySet

try:
    import clarabel
except ImportError as error:
    raise MissingExtra("clarabel", "conic") from error

__all__ = ["Chi2", "ConeProgram", "clarabel", "settings"]
TOL = 1e-11  # of gap and feasibility on normalised data; what is not reached shows in the certificate


class ConeProgram:
    """Update and evaluation of one state with an ℓ2 ball."""

    power, own_support = 1.0, False

    def _size(self) -> float:
        """What the norm is bounded by."""
        return self._entries.radius

    def _factors(self) -> Array:
        """Of each entry in the norm over all kernels."""
        return np.asarray(np.sqrt(self._entries.weights[self._entries.i]))

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        self._entries, self._ball = entries, ball
        self._solvers: dict[bool, tuple[Any, Any, Any, Array]] = {}  # by "the policy is free"

    def update(self, stakes: Array, room: Array) -> tuple[Array, Array]:
        """Solve max γ; see `Program`."""
        entries = self._entries
        solver, matrix, place, rhs = self._solver(free=True)
        matrix.data[place] = -entries.weights[entries.i] * stakes
        first = entries.n_actions * entries.weights.size + entries.a.size
        rhs[first : first + entries.n_actions] = room
        solver.update(A=matrix, b=rhs)
        solution = solver.solve()
        policy = np.maximum(np.array(solution.z)[first : first + entries.n_actions], 0.0)
        return policy / policy.sum(), np.array(solution.x)[:-1]

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `Program`."""
        entries = self._entries
        solver, *_ = self._solver(free=False)
        solver.update(q=-entries.weights[entries.i] * stakes)
        return np.array(solver.solve().x)

    def _solver(self, free: bool) -> tuple[Any, Any, Any, Array]:
        if free not in self._solvers:
            self._solvers[free] = self._build(free)
        return self._solvers[free]

    def _build(self, free: bool) -> tuple[Any, Any, Any, Array]:
        """Solver, its matrix, where the stakes lie in the matrix, and the right-hand side."""
        entries = self._entries
        E, A, N = entries.a.size, entries.n_actions, entries.weights.size
        column = np.arange(E)
        gammas = A * N + E
        cones = gammas + (A if free else 0)
        parts = [
            (entries.row, column, np.ones(E)),
            (A * N + column, column, -np.ones(E)),
        ]
        if free:
            parts.append((gammas + entries.a, column, np.full(E, np.pi)))  # a mark, found again below
            parts.append((gammas + np.arange(A), np.full(A, E), np.ones(A)))
        reach = self._size() / entries.scale
        if not self._ball.by_kernel:
            parts.append((cones + 1 + column, column, -self._factors()))
            heads, kinds = np.array([0]), [clarabel.SecondOrderConeT(E + 1)]
            n_rows = cones + E + 1
        else:
            sizes = np.bincount(entries.i, minlength=N)
            heads = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]])
            inside = np.zeros(E, dtype=np.int64)
            by_kernel = np.argsort(entries.i, kind="stable")
            inside[by_kernel] = np.arange(E) + entries.i[by_kernel] + 1
            parts.append((cones + inside, column, -np.ones(E)))
            kinds = [clarabel.SecondOrderConeT(int(k) + 1) for k in sizes]
            n_rows = cones + E + N
        rows, columns, values = (np.concatenate(x) for x in zip(*parts, strict=True))
        matrix = sparse.csc_matrix((values, (rows, columns)), shape=(n_rows, E + (1 if free else 0)))
        rhs = np.zeros(n_rows)
        rhs[A * N : A * N + E] = entries.nominal / entries.scale
        rhs[cones + heads] = reach
        objective = np.zeros(matrix.shape[1])
        if free:
            objective[-1] = -1
        limits = [clarabel.ZeroConeT(A * N), clarabel.NonnegativeConeT(E + (A if free else 0)), *kinds]
        none = sparse.csc_matrix((matrix.shape[1], matrix.shape[1]))
        solver = clarabel.DefaultSolver(none, objective, matrix, rhs, limits, settings())
        return solver, matrix, np.flatnonzero(matrix.data == np.pi), rhs


class Chi2(ConeProgram):
    """χ² = Σ_i w_i Σ (y − ŷ)²/ŷ ≤ θ, no row leaving its support."""

    power, own_support = 0.5, True

    def _size(self) -> float:
        return math.sqrt(self._entries.radius)

    def _factors(self) -> Array:
        return np.asarray(np.sqrt(self._entries.weights[self._entries.i] / self._entries.nominal))


def settings() -> Any:
    """How Clarabel is run: exactly, alone, and with data that can be changed."""
    made = clarabel.DefaultSettings()
    made.verbose = False
    made.presolve_enable = False  # the data must stay updatable
    made.max_threads = 1
    made.tol_gap_abs = made.tol_gap_rel = made.tol_feas = TOL
    return made
