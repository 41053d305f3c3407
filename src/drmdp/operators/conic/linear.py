"""The linear programs of one state, for HiGHS.

Columns: displacements up p and down m of each entry, (y − ŷ)/ρ = p − m with 0 ≤ p and 0 ≤ m ≤ ŷ/ρ;
their weighted means e_a(t) = Σ_i w_i (p − m); γ; for (ℓ∞, 1) a radius r_i per kernel. Splitting the
displacement is an order of magnitude faster than epigraphs of |y − ŷ|, and the means keep the
coefficients that change with the stakes down to one per (a, t).

**Transport** has a column more for each move of mass, π ≥ 0 from
entry j to entry k ≠ j of the same row, in units of ρ. What goes up receives no more than arrives,
what goes down gives no less than leaves; both have the same sum in a row, so that both hold with
equality.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.errors import MissingExtra
from drmdp.operators.conic.operator import Entries
from drmdp.sets import AmbiguitySet

try:
    import highspy
except ImportError as error:
    raise MissingExtra("highspy", "conic") from error

FEASIBILITY_TOL = 1e-10  # the least HiGHS accepts
INF = highspy.kHighsInf


class LinearProgram:
    """Update and evaluation of one state, with a set (ℓ1, 1): Σ_i w_i (up + down) ≤ θ; others
    override its rows.
    """

    power, own_support = 1.0, False
    part = 1.0  # of the ℓ1 distance

    def __init__(self, entries: Entries, ambiguity: AmbiguitySet) -> None:
        self._entries, self._ambiguity = entries, ambiguity
        self._solvers: dict[bool, Any] = {}  # by "the policy is free"
        self._parts: list[tuple[Any, Any, Any]] = []  # rows, columns and coefficients
        self._sides: list[tuple[Array, Array]] = []  # limits of rows
        E, A, w = entries.a.size, entries.n_actions, entries.weights
        self._down = np.flatnonzero(entries.nominal > 0)
        entry = np.concatenate([np.arange(E), self._down])  # of each column up and down
        self._moved, self._kernel = np.arange(entry.size), entries.i[entry]
        sign = np.where(self._moved < E, 1.0, -1.0)
        self._most = np.full(entry.size, INF)
        self._most[E:] = entries.nominal[self._down] / entries.scale
        pairs, mean_of = np.unique(np.stack([entries.a, entries.t]), axis=1, return_inverse=True)
        self._action, mean = pairs[0], mean_of.ravel()
        _, self._first = np.unique(mean, return_index=True)  # an entry of each mean
        self._n_columns = entry.size
        self._means, (self._gamma,) = self._more(pairs.shape[1]), self._more(1)
        self._add(A * w.size, [(entries.row[entry], self._moved, sign)], 0.0, 0.0)
        n, moved = self._means.size, (mean[entry], self._moved, -sign * w[self._kernel])
        self._add(n, [moved, (np.arange(n), self._means, 1.0)], 0.0, 0.0)
        gains = self._action, self._means, 1.0  # to be changed
        self._gammas = self._add(A, [(np.arange(A), np.full(A, self._gamma), 1.0), gains])
        self._bound(entries.radius / entries.scale)

    def _more(self, n: int) -> Any:
        """The numbers of n more columns."""
        self._n_columns += n
        return np.arange(self._n_columns - n, self._n_columns)

    def _add(self, n: int, parts: Any, upper: float = 0.0, lower: float = -INF) -> Any:
        """Add n rows between limits, counted from 0 in `parts`; their numbers."""
        first = sum(side[0].size for side in self._sides)
        for row, column, value in parts:
            self._parts.append((first + row, column, np.broadcast_to(value, np.shape(column))))
        self._sides.append((np.full(n, lower), np.full(n, upper)))
        return np.arange(first, first + n)

    def _bound(self, reach: float) -> None:
        """Add the columns and rows of the set."""
        weights = self.part * self._entries.weights[self._kernel]
        self._add(1, [(np.zeros_like(self._moved), self._moved, weights)], reach)

    def update(self, stakes: Array, room: Array) -> tuple[Array, Array]:
        """Solve max γ; see `operator`."""
        solver = self._solver(free=True)
        places = zip(self._gammas[self._action], self._means, strict=True)
        for (row, column), z in zip(places, stakes[self._first], strict=True):
            solver.changeCoeff(int(row), int(column), -float(z))
        rows = self._gammas.astype(np.int32)
        solver.changeRowsBounds(rows.size, rows, np.full(rows.size, -INF), room)
        displacement, dual = self._run(solver)
        policy = np.maximum(-dual[self._gammas], 0.0)
        return policy / policy.sum(), displacement

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `operator`."""
        solver = self._solver(free=False)
        cost = -stakes[self._first]
        solver.changeColsCost(cost.size, self._means.astype(np.int32), cost)
        return self._run(solver)[0]

    def _run(self, solver: Any) -> tuple[Array, Array]:
        """Displacements and the duals of the rows."""
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # again, without a basis
            solver.clearSolver()
            solver.run()
        solution, E = solver.getSolution(), self._entries.a.size
        value = np.array(solution.col_value)
        displacement = value[:E]
        displacement[self._down] -= value[E : self._moved.size]
        return displacement, np.array(solution.row_dual)

    def _solver(self, free: bool) -> Any:
        if free in self._solvers:
            return self._solvers[free]
        lp, solver, n = highspy.HighsLp(), highspy.Highs(), self._n_columns
        rows, columns, values = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        lower, upper = (np.concatenate(x) for x in zip(*self._sides, strict=True))
        matrix: Any = sparse.csc_array((values, (rows, columns)), shape=(upper.size, n))
        cost, least, most = np.zeros(n), np.zeros(n), np.full(n, INF)
        least[self._means], most[self._moved] = -INF, self._most
        if free:
            cost[self._gamma], least[self._gamma] = -1.0, -INF
        else:  # γ is not used
            most[self._gamma], upper[self._gammas] = 0.0, INF
        lp.num_col_, lp.num_row_ = n, upper.size
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, least, most
        lp.row_lower_, lp.row_upper_ = lower, upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
        lp.a_matrix_.value_ = matrix.data
        solver.silent()
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            solver.setOptionValue(option, FEASIBILITY_TOL)
        solver.setOptionValue("threads", 1)
        solver.passModel(lp)
        self._solvers[free] = solver
        return solver


class Tv(LinearProgram):
    """tv: ½ Σ_i w_i (up + down) ≤ θ."""

    part = 0.5


class L1Each(LinearProgram):
    """(ℓ1, ∞): up + down ≤ θ for each kernel."""

    def _bound(self, reach: float) -> None:
        self._add(self._entries.weights.size, [(self._kernel, self._moved, 1.0)], reach)


class LinfShared(LinearProgram):
    """(ℓ∞, 1): up ≤ r_i, down ≤ r_i, Σ_i w_i r_i ≤ θ."""

    def _bound(self, reach: float) -> None:
        w, moved = self._entries.weights, self._moved
        radii = self._more(w.size)
        self._add(1, [(np.zeros(w.size, dtype=int), radii, w)], reach)
        self._add(moved.size, [(moved, moved, 1.0), (moved, radii[self._kernel], -1.0)])


class LinfEach(LinearProgram):
    """(ℓ∞, ∞): up ≤ θ and down ≤ θ, limits of the columns."""

    def _bound(self, reach: float) -> None:
        self._most = np.minimum(self._most, reach)


class TransportProgram(LinearProgram):
    """Σ π D ≤ θ, with weights over all kernels or for each."""

    each = False

    def _bound(self, reach: float) -> None:
        ambiguity: Any = self._ambiguity
        entries, ground, pairs = self._entries, ambiguity.ground, []
        for row in range(int(entries.row.max()) + 1):
            entry = np.flatnonzero(entries.row == row)
            costs = ground.between(entries.t[entry], entries.t[entry])
            source = (entries.nominal[entry] > 0)[:, None]
            j, k = np.nonzero(np.isfinite(costs) & source & ~np.eye(entry.size, dtype=bool))
            pairs.append((entry[j], entry[k], costs[j, k]))
        leaves, arrives, price = (np.concatenate(part) for part in zip(*pairs, strict=True))
        moves, kernel = self._more(price.size), entries.i[leaves]
        up, down = np.arange(entries.a.size), np.arange(self._down.size)
        if self.each:
            self._add(entries.weights.size, [(kernel, moves, price)], reach)
        else:
            self._add(1, [(np.zeros_like(kernel), moves, price * entries.weights[kernel])], reach)
        self._add(up.size, [(up, up, 1.0), (arrives, moves, -1.0)])
        given = np.searchsorted(self._down, leaves), moves, 1.0
        self._add(down.size, [(down, up.size + down, -1.0), given])


class TransportEach(TransportProgram):
    """For each kernel."""

    each = True
