"""The conic programs of one state, for Clarabel: what all balls share, and those of ℓ2 and χ².

Variables: the displacement δ = (y − ŷ)/ρ of each entry, whatever else the ball needs, and γ in the update. Rows, in Clarabel's form A x + s = b:
sums Σ_t δ_ia = 0; in the update γ − Σ w z·δ ≤ room of each action; and those of the ball. Here they are signs −δ ≤ ŷ/ρ and the cone
‖(√w_i δ_i)‖₂ ≤ θ/ρ over all kernels (order 2) or ‖δ_i‖₂ ≤ θ/ρ for each (order ∞); for χ² ‖(√(w_i/ŷ) δ)‖₂ ≤ √θ/ρ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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

__all__ = ["Chi2", "ConeProgram", "Constraints", "clarabel", "settings"]
TOL = 1e-11  # of gap and feasibility on normalised data; what is not reached shows in the certificate


class Constraints:
    """Rows of a program in Clarabel's form A x + s = b, cone after cone."""

    def __init__(self) -> None:
        self.count, self.cones = 0, []  # type: ignore[var-annotated]
        self._parts: list[tuple[Any, Any, Any]] = []
        self._rhs: list[Array] = []

    def add(self, parts: list[tuple[Any, Any, Any]], rhs: Any, *cones: Any) -> None:
        """Add rows: entries (row, column, value), the right-hand side (or 0) and the cones of the slacks."""
        n = sum(getattr(cone, "dim", 3) for cone in cones)
        for row, column, value in parts:
            self._parts.append((self.count + row, column, np.broadcast_to(value, np.shape(column))))
        self._rhs.append(np.broadcast_to(np.asarray(rhs, dtype=float), (n,)))
        self.cones += cones
        self.count += n

    def made(self, columns: int) -> tuple[Any, Array]:
        """Matrix and right-hand side."""
        rows, column, values = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        matrix = sparse.csc_matrix((values, (rows, column)), shape=(self.count, columns))
        return matrix, np.concatenate(self._rhs)


class Built(NamedTuple):
    """A program whose stakes can be changed."""

    solver: Any
    matrix: Any
    place: Any  # of the stakes in the matrix
    rhs: Array
    objective: Array


class ConeProgram:
    """Update and evaluation of one state, with an ℓ2 ball; others say what their columns and rows are."""

    power, own_support = 1.0, False

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        self._entries, self._ball = entries, ball
        self._programs: dict[bool, Built] = {}  # by "the policy is free"

    def update(self, stakes: Array, room: Array) -> tuple[Array, Array]:
        """Solve max γ; see `Program`."""
        entries, program = self._entries, self._program(free=True)
        first = entries.n_actions * entries.weights.size
        program.matrix.data[program.place] = -entries.weights[entries.i] * stakes
        program.rhs[first : first + entries.n_actions] = room
        program.solver.update(A=program.matrix, b=program.rhs)
        solution = program.solver.solve()
        policy = np.maximum(np.array(solution.z)[first : first + entries.n_actions], 0.0)
        return policy / policy.sum(), np.array(solution.x)[: stakes.size]

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `Program`."""
        program = self._program(free=False)
        program.objective[: stakes.size] = -self._entries.weights[self._entries.i] * stakes
        program.solver.update(q=program.objective)
        return np.array(program.solver.solve().x)[: stakes.size]

    def _program(self, free: bool) -> Built:
        if free in self._programs:
            return self._programs[free]
        entries, columns, rows = self._entries, self._columns(), Constraints()
        A, own, sums = entries.n_actions, np.arange(entries.a.size), entries.n_actions * entries.weights.size
        rows.add([(entries.row, own, 1.0)], 0.0, clarabel.ZeroConeT(sums))
        if free:  # π is a mark, found again below
            gamma = np.arange(A), np.full(A, columns), 1.0
            rows.add([(entries.a, own, np.pi), gamma], 0.0, clarabel.NonnegativeConeT(A))
        self._bound(rows, own)
        matrix, rhs = rows.made(columns + free)
        objective = np.zeros(columns + free)
        objective[columns:] = -1.0
        none = sparse.csc_matrix((objective.size, objective.size))
        solver = clarabel.DefaultSolver(none, objective, matrix, rhs, rows.cones, settings())
        self._programs[free] = Built(solver, matrix, np.flatnonzero(matrix.data == np.pi), rhs, objective)
        return self._programs[free]

    def _columns(self) -> int:
        """Number of columns without γ; those of the displacements are the first."""
        return int(self._entries.a.size)

    def _bound(self, rows: Constraints, own: Any) -> None:
        """Add the rows of the ball; `own` are the columns of the displacements."""
        self._signs(rows, own)
        entries, reach = self._entries, self._size() / self._entries.scale
        parts = [own[entries.i == i] for i in range(entries.weights.size)] if self._ball.by_kernel else [own]
        for mine in parts:
            factors = 1.0 if self._ball.by_kernel else self._factors()
            rhs = np.append(reach, np.zeros(mine.size))
            rows.add([(1 + np.arange(mine.size), mine, -factors)], rhs, clarabel.SecondOrderConeT(mine.size + 1))

    def _signs(self, rows: Constraints, own: Any) -> None:
        rows.add([(own, own, -1.0)], self._entries.nominal / self._entries.scale, clarabel.NonnegativeConeT(own.size))

    def _size(self) -> float:
        """What the norm is bounded by."""
        return self._entries.radius

    def _factors(self) -> Array:
        """Of each entry in the norm over all kernels."""
        return np.asarray(np.sqrt(self._entries.weights[self._entries.i]))


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
