"""The linear programs of one state, for HiGHS.

Columns: displacements up p and down m of each entry, (y − ŷ)/ρ = p − m with 0 ≤ p and 0 ≤ m ≤ ŷ/ρ; their weighted means
e_a(t) = Σ_i w_i (p − m); γ; for (ℓ∞, 1) a radius r_i per kernel. Splitting the displacement is an order of magnitude faster
than epigraphs of |y − ŷ|, and the means keep the coefficients that change with the stakes down to one per (a, t).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.conic.operator import Entries
from drmdp.errors import MissingExtra
from drmdp.sets import AmbiguitySet

try:
    import highspy
except ImportError as error:
    raise MissingExtra("highspy", "conic") from error

FEASIBILITY_TOL = 1e-10  # the least HiGHS accepts


class LinearProgram(ABC):
    """Update and evaluation of one state; what the ball adds is said by its own class below."""

    power, own_support = 1.0, False
    radii = False  # a column for the radius of each kernel

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        self._entries, self._ball = entries, ball
        self._solvers: dict[bool, Any] = {}  # by "the policy is free"
        E, A, N = entries.a.size, entries.n_actions, entries.weights.size
        self._down = np.flatnonzero(entries.nominal > 0)
        pairs, self._mean_of = np.unique(np.stack([entries.a, entries.t]), axis=1, return_inverse=True)
        self._mean_of = self._mean_of.ravel()
        self._pair_action = pairs[0]
        _, self._first = np.unique(self._mean_of, return_index=True)  # an entry of each mean
        self._means = E + self._down.size + np.arange(pairs.shape[1])
        self._gamma = int(self._means[-1]) + 1
        self._radii = self._gamma + 1 + np.arange(N if self.radii else 0)
        self._n_columns = self._gamma + 1 + self._radii.size
        self._sum_rows = np.arange(A * N)
        self._mean_rows = A * N + np.arange(pairs.shape[1])
        self._gamma_rows = int(self._mean_rows[-1]) + 1 + np.arange(A)
        self._ball_rows = int(self._gamma_rows[-1]) + 1 + np.arange(self._n_ball_rows())

    @abstractmethod
    def _n_ball_rows(self) -> int:
        """Number of rows that bound a distance by the radius."""

    def _limit(self, upper: Array, down: slice) -> None:
        """Bound the columns up (from 0 on) and down; most balls do not."""
        return

    @abstractmethod
    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        """Rows, columns and coefficients of the ball; `kernel` is that of each column up or down. Rows beyond the last are ≤ 0."""

    def update(self, stakes: Array, room: Array) -> tuple[Array, Array]:
        """Solve max γ; see `Program`."""
        solver = self._solver(free=True)
        for row, column, z in zip(self._gamma_rows[self._pair_action], self._means, stakes[self._first], strict=True):
            solver.changeCoeff(int(row), int(column), -float(z))
        rows = self._gamma_rows.astype(np.int32)
        solver.changeRowsBounds(rows.size, rows, np.full(rows.size, -highspy.kHighsInf), room)
        displacement, dual = self._run(solver)
        policy = np.maximum(-dual[self._gamma_rows], 0.0)
        return policy / policy.sum(), displacement

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `Program`."""
        solver = self._solver(free=False)
        cost = -stakes[self._first]
        solver.changeColsCost(cost.size, self._means.astype(np.int32), cost)
        return self._run(solver)[0]

    def _run(self, solver: Any) -> tuple[Array, Array]:
        """Displacements and the duals of the rows."""
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # a bad warm start: once more, cold
            solver.clearSolver()
            solver.run()
        solution, E = solver.getSolution(), self._entries.a.size
        value = np.array(solution.col_value)
        displacement = value[:E]
        displacement[self._down] -= value[E : E + self._down.size]
        return displacement, np.array(solution.row_dual)

    def _solver(self, free: bool) -> Any:
        if free not in self._solvers:
            self._solvers[free] = self._build(free)
        return self._solvers[free]

    def _build(self, free: bool) -> Any:
        matrix, upper = self._rows()
        inf = highspy.kHighsInf
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self._n_columns, matrix.shape[0]
        lower, above = self._column_bounds()
        cost = np.zeros(self._n_columns)
        if free:
            cost[self._gamma] = -1
        else:  # γ is not used
            lower[self._gamma] = above[self._gamma] = 0
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, above
        equal = np.zeros(matrix.shape[0], dtype=bool)
        equal[self._sum_rows] = equal[self._mean_rows] = True
        if not free:
            upper[self._gamma_rows] = inf
        lp.row_lower_, lp.row_upper_ = np.where(equal, 0.0, -inf), upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        solver: Any = highspy.Highs()
        solver.silent()
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            solver.setOptionValue(option, FEASIBILITY_TOL)
        solver.setOptionValue("threads", 1)
        solver.passModel(lp)
        return solver

    def _column_bounds(self) -> tuple[Array, Array]:
        entries, inf = self._entries, highspy.kHighsInf
        lower, upper = np.zeros(self._n_columns), np.full(self._n_columns, inf)
        lower[self._means], lower[self._gamma] = -inf, -inf
        down = slice(entries.a.size, entries.a.size + self._down.size)
        upper[down] = entries.nominal[self._down] / entries.scale
        self._limit(upper, down)
        return lower, upper

    def _rows(self) -> tuple[Any, Array]:
        """Coefficients (CSC) and upper limits of all rows; the γ rows hold zeros to be changed."""
        entries, w = self._entries, self._entries.weights
        E, D = entries.a.size, self._down.size
        entry = np.concatenate([np.arange(E), self._down])  # entry of each p and m column
        column = np.arange(E + D)
        sign = np.concatenate([np.ones(E), -np.ones(D)])
        kernel = entries.i[entry]
        parts = [
            (self._sum_rows[entries.row[entry]], column, sign),
            (self._mean_rows[self._mean_of[entry]], column, -sign * w[kernel]),
            (self._mean_rows, self._means, np.ones(self._means.size)),
            (self._gamma_rows, np.full(self._gamma_rows.size, self._gamma), np.ones(self._gamma_rows.size)),
            (self._gamma_rows[self._pair_action], self._means, np.ones(self._means.size)),
        ]
        n_rows = int(self._gamma_rows[-1]) + 1 + self._ball_rows.size
        upper = np.zeros(n_rows)
        upper[self._ball_rows] = entries.radius / entries.scale
        parts += self._ball_parts(column, kernel)
        upper = np.concatenate([upper, np.zeros(max(int(part[0].max(initial=0)) for part in parts) + 1 - n_rows)])
        rows, columns, values = (np.concatenate(x) for x in zip(*parts, strict=True))
        return sparse.csc_array((values, (rows, columns)), shape=(upper.size, self._n_columns)), upper


class L1Shared(LinearProgram):
    """(ℓ1, 1): Σ_i w_i (up + down) ≤ θ."""

    def _n_ball_rows(self) -> int:
        return 1

    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        return [(np.full(column.size, self._ball_rows[0]), column, self._entries.weights[kernel])]


class Tv(L1Shared):
    """tv: ½ Σ_i w_i (up + down) ≤ θ."""

    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        return [(np.full(column.size, self._ball_rows[0]), column, self._entries.weights[kernel] / 2)]


class L1Each(LinearProgram):
    """(ℓ1, ∞): up + down ≤ θ for each kernel."""

    def _n_ball_rows(self) -> int:
        return int(self._entries.weights.size)

    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        return [(self._ball_rows[kernel], column, np.ones(column.size))]


class LinfShared(LinearProgram):
    """(ℓ∞, 1): up ≤ r_i, down ≤ r_i, Σ_i w_i r_i ≤ θ."""

    radii = True

    def _n_ball_rows(self) -> int:
        return 1

    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        w = self._entries.weights
        reach = int(self._ball_rows[-1]) + 1 + column  # p − r_i ≤ 0 and m − r_i ≤ 0
        budget = (np.full(w.size, self._ball_rows[0]), self._radii, w)
        return [budget, (reach, column, np.ones(column.size)), (reach, self._radii[kernel], -np.ones(column.size))]


class LinfEach(LinearProgram):
    """(ℓ∞, ∞): up ≤ θ and down ≤ θ, limits of the columns."""

    def _n_ball_rows(self) -> int:
        return 0

    def _limit(self, upper: Array, down: slice) -> None:
        reach = self._entries.radius / self._entries.scale
        upper[: self._entries.a.size] = reach
        upper[down] = np.minimum(upper[down], reach)

    def _ball_parts(self, column: Any, kernel: Any) -> list[tuple[Any, Any, Any]]:
        return []
