"""The conic programs of one state, for Clarabel: the base of all sets, those of ℓ2 and χ², of KL
and Burg, and of any finite order.

Variables: the displacement δ = (y − ŷ)/ρ of each entry, those of the set, and γ in the update.
Rows, in Clarabel's form A x + s = b: sums Σ_t δ_ia = 0; in the update γ − Σ w z·δ ≤ room of each
action; and those of the set. Here they are signs −δ ≤ ŷ/ρ and the cone ‖(√w_i δ_i)‖₂ ≤ θ/ρ over all
kernels (order 2) or ‖δ_i‖₂ ≤ θ/ρ for each (order ∞); for χ² ‖(√(w_i/ŷ) δ)‖₂ ≤ √θ/ρ.

**KL and Burg.** To the variables comes a bound r on the cost of each entry with
ŷ > 0; the set is the budget Σ_i w_i Σ r ≤ θ, y ≥ 0 where ŷ = 0, and a cone {(p, q, h) :
q e^{p/q} ≤ h} for each r:

    KL      r ≥ y log(y/ŷ)   as   (−r, y, ŷ),        Burg    r ≥ ŷ log(ŷ/y)   as   (−r, ŷ, y).

**Orders.** To the variables come for ℓ1 the size of each displacement, the
distance d_i of each kernel in units of ρ, and for p > 1 a share s_i of the budget. With R = θ/ρ the
set is

    ℓ1: |δ| ≤ size, Σ size ≤ d_i;    ℓ2: ‖δ_i‖ ≤ d_i;    ℓ∞: |δ| ≤ d_i;
    p = 1: Σ w_i d_i ≤ R;    else  d_i ≤ s_i^{1/p} R^{1−1/p}, Σ w_i s_i ≤ R,

the last but one a power cone for each kernel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.errors import MissingExtra
from drmdp.operators.conic.operator import Entries
from drmdp.sets import AmbiguitySet

try:
    import clarabel
except ImportError as error:
    raise MissingExtra("clarabel", "conic") from error

__all__ = ["Chi2", "ConeProgram", "Constraints", "clarabel"]
TOL = 1e-11
"""Of gap and feasibility on normalised data; the certificate measures what is not reached."""


class Constraints:
    """Rows of a program in Clarabel's form A x + s = b, cone after cone."""

    def __init__(self) -> None:
        self.count, self.cones = 0, []  # type: ignore[var-annotated]
        self._parts: list[tuple[Any, Any, Any]] = []
        self._rhs: list[Array] = []

    def add(self, parts: list[tuple[Any, Any, Any]], rhs: Any, *cones: Any) -> None:
        """Add rows: entries (row, column, value), the right-hand side (or 0) and the cones of the
        slacks.
        """
        n = sum(getattr(cone, "dim", 3) for cone in cones)
        for row, column, value in parts:
            self._parts.append((self.count + row, column, np.broadcast_to(value, np.shape(column))))
        self._rhs.append(np.broadcast_to(np.asarray(rhs, dtype=float), (n,)))
        self.cones += cones
        self.count += n

    def solver(self, objective: Array) -> ConeSolver:
        """The solver of a linear objective."""
        rows, column, values = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        matrix = sparse.csc_matrix((values, (rows, column)), shape=(self.count, objective.size))
        rhs, zero = np.concatenate(self._rhs), sparse.csc_matrix(2 * (objective.size,))
        solver = clarabel.DefaultSolver(zero, objective, matrix, rhs, self.cones, settings())
        return ConeSolver(solver, matrix, rhs, objective)


class ConeSolver(NamedTuple):
    """A solver whose stakes can be changed."""

    solver: Any
    matrix: Any
    rhs: Array
    objective: Array


class ConeProgram:
    """Update and evaluation of one state, with an ℓ2 set; others override its columns and rows."""

    power, own_support = 1.0, False

    def __init__(self, entries: Entries, ambiguity: AmbiguitySet) -> None:
        self._entries, self._ambiguity = entries, ambiguity
        self._programs: dict[bool, ConeSolver] = {}  # by "the policy is free"
        self._place: Any = None  # of the stakes in the matrix where it is

    def update(self, stakes: Array, room: Array) -> tuple[Array, Array]:
        """Solve max γ; see `operator`."""
        entries, program = self._entries, self._program(free=True)
        first = entries.n_actions * entries.weights.size
        program.matrix.data[self._place] = -entries.weights[entries.i] * stakes
        program.rhs[first : first + entries.n_actions] = room
        program.solver.update(A=program.matrix, b=program.rhs)
        solution = program.solver.solve()
        policy = np.maximum(np.array(solution.z)[first : first + entries.n_actions], 0.0)
        return policy / policy.sum(), np.array(solution.x)[: stakes.size]

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `operator`."""
        program = self._program(free=False)
        program.objective[: stakes.size] = -self._entries.weights[self._entries.i] * stakes
        program.solver.update(q=program.objective)
        return np.array(program.solver.solve().x)[: stakes.size]

    def _program(self, free: bool) -> ConeSolver:
        if free in self._programs:
            return self._programs[free]
        entries, columns, rows = self._entries, self._columns(), Constraints()
        A, moved = entries.n_actions, np.arange(entries.a.size)
        rows.add([(entries.row, moved, 1.0)], 0.0, clarabel.ZeroConeT(A * entries.weights.size))
        if free:  # π marks the places of the stakes
            gamma = np.arange(A), np.full(A, columns), 1.0
            rows.add([(entries.a, moved, np.pi), gamma], 0.0, clarabel.NonnegativeConeT(A))
        self._bound(rows, moved)
        program = rows.solver(np.append(np.zeros(columns), -np.ones(int(free))))
        if free:
            self._place = np.flatnonzero(program.matrix.data == np.pi)
        self._programs[free] = program
        return program

    def _columns(self) -> int:
        """Number of columns without γ; those of the displacements are the first."""
        return int(self._entries.a.size)

    def _bound(self, rows: Constraints, moved: Any) -> None:
        """Add the rows of the set; `moved` are the columns of the displacements."""
        self._signs(rows, moved)
        entries, reach = self._entries, self._size() / self._entries.scale
        parts, factors = [moved], -self._factors()
        if self._ambiguity.by_kernel:
            parts = [moved[entries.i == i] for i in range(entries.weights.size)]
            factors = -1.0
        for part in parts:
            rhs, row = np.append(reach, np.zeros(part.size)), 1 + np.arange(part.size)
            rows.add([(row, part, factors)], rhs, clarabel.SecondOrderConeT(part.size + 1))

    def _signs(self, rows: Constraints, moved: Any) -> None:
        least = self._entries.nominal / self._entries.scale
        rows.add([(moved, moved, -1.0)], least, clarabel.NonnegativeConeT(moved.size))

    def _size(self) -> float:
        """Bound of the norm."""
        return self._entries.radius

    def _factors(self) -> Any:
        """Factor of each entry in the norm over all kernels."""
        return np.asarray(np.sqrt(self._entries.weights[self._entries.i]))


class Chi2(ConeProgram):
    """χ² = Σ_i w_i Σ (y − ŷ)²/ŷ ≤ θ, no row leaving its support."""

    power, own_support = 0.5, True

    def _size(self) -> float:
        return math.sqrt(self._entries.radius)

    def _factors(self) -> Array:
        return np.asarray(np.sqrt(self._entries.weights[self._entries.i] / self._entries.nominal))


class Kl(ConeProgram):
    """Σ_i w_i Σ y log(y/ŷ) ≤ θ."""

    power, own_support = 0.5, True
    place = 1  # of y in (−r, ·, ·); ŷ has the other one

    def _columns(self) -> int:
        return int(self._entries.a.size + np.count_nonzero(self._entries.nominal))

    def _bound(self, rows: Constraints, moved: Any) -> None:
        entries = self._entries
        observed, new = np.flatnonzero(entries.nominal > 0), np.flatnonzero(entries.nominal == 0)
        R, each = observed.size, 3 * np.arange(observed.size)
        cost = moved.size + np.arange(R)
        budget = np.zeros(R, dtype=int), cost, entries.weights[entries.i[observed]]
        rows.add([budget], entries.radius, clarabel.NonnegativeConeT(1))
        if new.size:
            rows.add([(np.arange(new.size), new, -1.0)], 0.0, clarabel.NonnegativeConeT(new.size))
        rhs = np.outer(entries.nominal[observed], [0.0, 1.0, 1.0]).ravel()
        parts = [(each, cost, 1.0), (each + self.place, observed, -entries.scale)]
        rows.add(parts, rhs, *[clarabel.ExponentialConeT()] * R)


class Burg(Kl):
    """Σ_i w_i Σ ŷ log(ŷ/y) ≤ θ."""

    own_support, place = False, 2


class PowerProgram(ConeProgram):
    """Update and evaluation of one state with a set of finite order."""

    def _columns(self) -> int:
        return 2 * int(self._entries.a.size + self._entries.weights.size)

    def _bound(self, rows: Constraints, moved: Any) -> None:
        self._signs(rows, moved)
        ambiguity: Any = self._ambiguity
        entries, p, metric = self._entries, float(ambiguity.order), ambiguity.metric
        w, reach = entries.weights, entries.radius / entries.scale
        E, N = moved.size, w.size
        size, far, part = E + moved, 2 * E + np.arange(N), 2 * E + N + np.arange(N)
        if metric == "l2":
            for i in range(N):
                row = moved[entries.i == i]
                norm = 1 + np.arange(row.size), row, -1.0
                parts = [(np.array([0]), far[i : i + 1], -1.0), norm]
                rows.add(parts, 0.0, clarabel.SecondOrderConeT(row.size + 1))
        else:
            above = far[entries.i] if metric == "linf" else size
            for sign in (1.0, -1.0):
                parts = [(moved, moved, sign), (moved, above, -1.0)]
                rows.add(parts, 0.0, clarabel.NonnegativeConeT(E))
            if metric == "l1":
                total = [(entries.i, size, 1.0), (np.arange(N), far, -1.0)]
                rows.add(total, 0.0, clarabel.NonnegativeConeT(N))
        spent = far if p == 1 else part
        rows.add([(np.zeros(N, dtype=int), spent, w)], reach, clarabel.NonnegativeConeT(1))
        for i in range(N if p > 1 else 0):
            ends = [(np.array([0]), part[i : i + 1], -1.0), (np.array([2]), far[i : i + 1], -1.0)]
            rows.add(ends, np.array([0.0, reach, 0.0]), clarabel.PowerConeT(1 / p))


def settings() -> Any:
    """Settings of Clarabel: exact, one thread, data that can be changed."""
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.presolve_enable = False  # the data must stay updatable
    options.max_threads = 1
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = TOL
    return options
