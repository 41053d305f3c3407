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
from drmdp.bellman.conic.operator import Answer, Entries
from drmdp.errors import MissingExtra
from drmdp.sets import AmbiguitySet

try:
    import clarabel
except ImportError as error:
    raise MissingExtra("clarabel", "conic") from error

STILL = 1e-9  # a kernel that moves less than this is given a direction nonetheless


class PowerProgram:
    """Update and evaluation of one state with a ball of finite order."""

    power, own_support = 1.0, False

    def __init__(self, entries: Entries, ball: AmbiguitySet) -> None:
        self._entries, self._ball = entries, ball
        self._order: Any = ball.order  # type: ignore[attr-defined]

    def update(self, stakes: Array, room: Array) -> Answer:
        """Solve max γ; see `Program`."""
        return self._solve(stakes, room)

    def evaluate(self, stakes: Array) -> Answer:
        """Solve with the policy inside the stakes; see `Program`."""
        return self._solve(stakes, None)

    def _solve(self, stakes: Array, room: Array | None) -> Answer:
        entries, p, metric = self._entries, float(self._order), self._ball.metric  # type: ignore[attr-defined]
        E, A, N, w = entries.a.size, entries.n_actions, entries.weights.size, entries.weights
        reach, free = entries.radius / entries.scale, room is not None
        rows = _Rows()
        delta, size, far, part, gamma = (
            np.arange(E),
            E + np.arange(E),
            2 * E + np.arange(N),
            2 * E + N + np.arange(N),
            2 * E + 2 * N,
        )
        kernel = 2 * E + entries.i
        rows.add(A * N, [(entries.row, delta, 1.0)], 0.0, clarabel.ZeroConeT(A * N))
        own = np.arange(E)
        rows.add(E, [(own, delta, -1.0)], entries.nominal / entries.scale, clarabel.NonnegativeConeT(E))
        first = rows.count
        if free:
            gain = (entries.a, delta, -w[entries.i] * stakes)
            rows.add(A, [gain, (np.arange(A), np.full(A, gamma), 1.0)], room, clarabel.NonnegativeConeT(A))
        bound = rows.count
        if metric == "l2":
            for i in range(N):
                mine = delta[entries.i == i]
                parts = [(np.array([0]), far[i : i + 1], -1.0), (1 + np.arange(mine.size), mine, -1.0)]
                rows.add(mine.size + 1, parts, 0.0, clarabel.SecondOrderConeT(mine.size + 1))
        else:
            above = kernel if metric == "linf" else size
            for sign in (1.0, -1.0):
                rows.add(E, [(own, delta, sign), (own, above, -1.0)], 0.0, clarabel.NonnegativeConeT(E))
            sums = rows.count
            if metric == "l1":
                total = [(entries.i, size, 1.0), (np.arange(N), far, -1.0)]
                rows.add(N, total, 0.0, clarabel.NonnegativeConeT(N))
        if p == 1:
            rows.add(1, [(np.zeros(N, dtype=int), far, w)], reach, clarabel.NonnegativeConeT(1))
        else:
            rows.add(1, [(np.zeros(N, dtype=int), part, w)], reach, clarabel.NonnegativeConeT(1))
            for i in range(N):
                ends = [(np.array([0]), part[i : i + 1], -1.0), (np.array([2]), far[i : i + 1], -1.0)]
                rows.add(3, ends, np.array([0.0, reach, 0.0]), clarabel.PowerConeT(1 / p))
        matrix, rhs = rows.made(gamma + 1)
        objective = np.zeros(gamma + 1)
        objective[gamma] = -1.0 if free else 0.0
        if not free:
            objective[:E] = -w[entries.i] * stakes
        none = sparse.csc_matrix((gamma + 1, gamma + 1))
        solution = clarabel.DefaultSolver(none, objective, matrix, rhs, rows.cones, settings()).solve()
        dual, moved = np.array(solution.z), np.array(solution.x)[:E]
        policy = np.maximum(dual[first : first + A], 0.0) if free else np.zeros(A)
        if metric == "l2":
            heads = bound + np.concatenate([[0], np.cumsum(np.bincount(entries.i, minlength=N) + 1)[:-1]])
            price = np.maximum(dual[heads], 0.0) / w
            distance = np.sqrt(np.bincount(entries.i, moved * moved, minlength=N)) * entries.scale
            price = price / (2 * np.maximum(distance, STILL * entries.scale))
        elif metric == "l1":
            price = np.maximum(dual[sums : sums + N], 0.0) / w
        else:
            both = np.maximum(dual[bound : bound + E], 0.0) + np.maximum(dual[bound + E : bound + 2 * E], 0.0)
            price = np.bincount(entries.i, both, minlength=N) / w
        thresholds = dual[: A * N].reshape(A, N) / w
        return Answer(policy / policy.sum() if free else policy, price, thresholds, moved)


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
