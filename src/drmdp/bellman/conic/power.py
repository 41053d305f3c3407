"""The conic programs of one state of a ball of any finite order, for Clarabel.

Variables: the displacement δ = (y − ŷ)/ρ of each entry, for ℓ1 its size, the distance d_i of each kernel in units of ρ, for p > 1 a share s_i of the budget,
and γ in the update. With R = θ/ρ the ball is

    ℓ1: |δ| ≤ size, Σ size ≤ d_i;    ℓ2: ‖δ_i‖ ≤ d_i;    ℓ∞: |δ| ≤ d_i;        p = 1: Σ w_i d_i ≤ R;    else  d_i ≤ s_i^{1/p} R^{1−1/p}, Σ w_i s_i ≤ R,

the last but one a power cone for each kernel. A program is built for each answer: this is a reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.bellman.conic.cone import settings
from drmdp.bellman.conic.operator import Entries
from drmdp.errors import MissingExtra
from drmdp.sets import AmbiguitySet

try:
    import clarabel
except ImportError as error:
    raise MissingExtra("clarabel", "conic") from error


class PowerProgram:
    """Update and evaluation of one state with a ball of finite order."""

    power, own_support = 1.0, False

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        self._entries, self._ball = entries, ball
        self._order: Any = ball.order  # type: ignore[attr-defined]

    def evaluate(self, stakes: Array) -> Array:
        """Solve with the policy inside the stakes; see `Program`."""
        return self.update(stakes, None)[1]

    def update(self, stakes: Array, room: Array | None) -> tuple[Array, Array]:
        """Solve max γ; see `Program`."""
        entries = self._entries
        E, A, N, w = entries.a.size, entries.n_actions, entries.weights.size, entries.weights
        rows, own, free, gamma = _Rows(), np.arange(E), room is not None, 2 * E + 2 * N
        rows.add(A * N, [(entries.row, own, 1.0)], 0.0, clarabel.ZeroConeT(A * N))
        rows.add(E, [(own, own, -1.0)], entries.nominal / entries.scale, clarabel.NonnegativeConeT(E))
        first = rows.count
        if free:
            gain = (entries.a, own, -w[entries.i] * stakes)
            rows.add(A, [gain, (np.arange(A), np.full(A, gamma), 1.0)], room, clarabel.NonnegativeConeT(A))
        self._bound_distances(rows)
        matrix, rhs = rows.made(gamma + 1)
        objective = np.zeros(gamma + 1)
        objective[gamma] = -1.0 if free else 0.0
        if not free:
            objective[:E] = -w[entries.i] * stakes
        none = sparse.csc_matrix((gamma + 1, gamma + 1))
        solution = clarabel.DefaultSolver(none, objective, matrix, rhs, rows.cones, settings()).solve()
        policy = np.maximum(np.array(solution.z)[first : first + A], 0.0)
        return policy / (policy.sum() if free else 1.0), np.array(solution.x)[:E]

    def _bound_distances(self, rows: _Rows) -> None:
        """Bound the distance of each kernel from above, and their mean of order p."""
        entries, p, metric = self._entries, float(self._order), self._ball.metric  # type: ignore[attr-defined]
        E, N, w, reach = entries.a.size, entries.weights.size, entries.weights, entries.radius / entries.scale
        own, size, far, part = np.arange(E), E + np.arange(E), 2 * E + np.arange(N), 2 * E + N + np.arange(N)
        if metric == "l2":
            for i in range(N):
                mine = own[entries.i == i]
                parts = [(np.array([0]), far[i : i + 1], -1.0), (1 + np.arange(mine.size), mine, -1.0)]
                rows.add(mine.size + 1, parts, 0.0, clarabel.SecondOrderConeT(mine.size + 1))
        else:
            above = 2 * E + entries.i if metric == "linf" else size
            for sign in (1.0, -1.0):
                rows.add(E, [(own, own, sign), (own, above, -1.0)], 0.0, clarabel.NonnegativeConeT(E))
            if metric == "l1":
                total = [(entries.i, size, 1.0), (np.arange(N), far, -1.0)]
                rows.add(N, total, 0.0, clarabel.NonnegativeConeT(N))
        spent = far if p == 1 else part
        rows.add(1, [(np.zeros(N, dtype=int), spent, w)], reach, clarabel.NonnegativeConeT(1))
        for i in range(N if p > 1 else 0):
            ends = [(np.array([0]), part[i : i + 1], -1.0), (np.array([2]), far[i : i + 1], -1.0)]
            rows.add(3, ends, np.array([0.0, reach, 0.0]), clarabel.PowerConeT(1 / p))


class _Rows:
    """Rows of a program in Clarabel's form A x + s = b, cone after cone."""

    def __init__(self) -> None:
        self.count, self.cones = 0, []  # type: ignore[var-annotated]
        self._parts: list[tuple[Any, Any, Any]] = []
        self._rhs: list[Array] = []

    def add(self, n: int, parts: list[tuple[Any, Any, Any]], rhs: Any, cone: Any) -> None:
        """Add n rows: entries (row, column, value), the right-hand side and the cone of the slacks."""
        for row, column, value in parts:
            self._parts.append((self.count + row, column, np.broadcast_to(value, np.shape(column))))
        self._rhs.append(np.broadcast_to(np.asarray(rhs, dtype=float), (n,)))
        self.cones.append(cone)
        self.count += n

    def made(self, columns: int) -> tuple[Any, Array]:
        """Matrix and right-hand side."""
        rows, column, values = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        matrix = sparse.csc_matrix((values, (rows, column)), shape=(self.count, columns))
        return matrix, np.concatenate(self._rhs)
