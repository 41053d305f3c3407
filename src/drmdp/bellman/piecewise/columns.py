"""The simplex method where `drmdp.bellman.piecewise.method` stalls: the same problem, work space and results.

The agent mixes over n actions, nature over points with gains q ∈ Rⁿ, which are found one by one; an oracle answers a policy x with a point of
greatest x·q.

    max γ   such that   γ ≤ Σ_j λ_j q_ja for every a,    λ ≥ 0,  Σ_j λ_j = 1                    (dual: x ≥ 0, Σ_a x_a = 1)

The revised simplex method, a column at a time: γ is a lower bound, x·q of the oracle's point an upper one, and the method is finite. No
scale enters it, so it ends where methods with a step size stall: where what is left to gain is many orders of magnitude below the rest.
It needs many points where n is large; it is meant to begin near the end, with gains measured in units of the gap that is left. A column is divided
by its largest entry, for single points may gain and lose many times the gap.

A basis has n + 1 variables: γ, some λ, and slacks. Whatever belongs to a column is kept under its slot, 0 … n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.elimination import eliminate
from drmdp.bellman.piecewise.budget_per_kernel import Priced
from drmdp.bellman.piecewise.method import copy_rows, gains, keep_upper, worst_case
from drmdp.core.compiled import KERNEL, LEAN, njit

POINTS = 2000
PIVOT = 1e-13  # a smaller pivot is rounding
NEGATIVE = 1e-11  # and so is a probability this far below 0


class Basis(NamedTuple):
    """Basis and work space for up to A actions."""

    matrix: Array  # (A + 1, A + 1), a column for each basic variable; the last row holds what makes λ of its value
    kind: Any  # (A + 1,) of each basic variable: −1 for γ, a for the slack of action a, n + k for λ in slot k
    level: Array  # (A + 1,) value of each basic variable
    price: Array  # (A + 1,) dual, x first
    work: Array  # (A + 1, A + 2)
    column: Array  # (A + 1,) of the variable that enters
    fresh: Array  # (A + 1,) a copy of it


def make_basis(A: int) -> Basis:
    """Work space for A actions."""
    n = A + 1
    return Basis(
        np.zeros((n, n)), np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n), np.zeros((n, n + 1)), np.zeros(n), np.zeros(n)
    )  # fmt: skip


def finish(n, tables, w, B, cap, tol, method, joint):
    """Close the gap by the simplex method from m⁰.

    reads   n, tables, w (N,), B, cap, tol, joint
    fills   method: the best x, m and μ of its solver
    returns U, L and the answers of nature
    """
    work, basis, points = method.solver, method.basis, method.points
    m, q, x = work.amounts, work.q, work.x
    N, priced = w.size, Priced(tables, n, B, x)
    rows = n if joint is None else 1
    _shrink(joint, rows, w, B, work.centre)
    low = min(cap, gains(priced, w, work.centre, work, q, joint))
    copy_rows(work.centre, work.best, rows)
    high = keep_upper(worst_case(priced, w, work, joint), cap, n, N, work, joint)
    level, unit = low, max(high - low, 0.1 * tol)
    for a in range(n):
        q[a] = (q[a] - level) / unit
    copy_rows(work.best, points[0], rows)
    begin(basis, n, q)
    answers = 0
    for _ in range(POINTS if high - low > tol else 0):
        gamma = level + unit * balance(basis, n, 1e-3 * tol / unit)
        if not gamma > -np.inf:
            break
        total = 0.0
        for a in range(n):
            x[a] = max(basis.price[a], 0.0)
            total += x[a]
        for a in range(n):
            x[a] /= total
        high = keep_upper(worst_case(priced, w, work, joint), high, n, N, work, joint)
        answers += 1
        if high - gamma <= tol:
            break
        gains(priced, w, m, work, q, joint)
        for a in range(n):
            q[a] = (q[a] - level) / unit
        slot = admit(basis, n, q)
        if slot < 0:
            break
        copy_rows(m, points[slot], rows)
    for a in range(rows):
        for i in range(N):
            m[a, i] = 0.0
            for k in range(n + 1):
                if basis.kind[k] >= n:
                    m[a, i] += max(basis.level[k], 0.0) * basis.matrix[n, k] * points[basis.kind[k] - n, a, i]
    _shrink(joint, rows, w, B, m)
    least = min(cap, gains(priced, w, m, work, q, joint))
    if least > low:
        low = least
        copy_rows(m, work.best, rows)
    return high, low, answers


@njit(**LEAN)
def _shrink(joint, rows, w, B, m):
    """Undo what rounding spends beyond the budget.

    reads   joint, rows, w (N,), B
    fills   m
    """
    mean = 0.0
    for i in range(w.size):
        total = 0.0
        for a in range(rows):
            total += m[a, i]
        mean += w[i] * total
        if total > B and joint is None:
            for a in range(rows):
                m[a, i] *= B / total
    if joint is not None and mean > B:
        for i in range(w.size):
            m[0, i] *= B / mean


@njit(**KERNEL)
def begin(basis, n, q):
    """Start from one point, in slot 0.

    reads   n, q (n,): its gains
    fills   basis
    """
    least = 0
    for a in range(n):
        if q[a] < q[least]:
            least = a
    for a in range(n + 1):
        basis.level[a] = 0.0
        for k in range(n + 1):
            basis.matrix[a, k] = 0.0
    _column(n, q, basis.price)
    for a in range(n + 1):
        basis.matrix[a, 0] = 1.0 if a < n else 0.0
        basis.matrix[a, 1] = basis.price[a]
    basis.kind[0], basis.kind[1] = -1, n
    k = 2
    for a in range(n):
        if a != least:
            basis.matrix[a, k] = 1.0
            basis.kind[k] = a
            k += 1


@njit(**LEAN)
def _column(n, q, column):
    """The column of a point, divided by its largest entry.

    reads   n, q (n,)
    fills   column (n + 1,)
    """
    size = 1.0
    for a in range(n):
        size = max(size, abs(q[a]))
    for a in range(n):
        column[a] = -q[a] / size
    column[n] = 1.0 / size


@njit(**KERNEL)
def balance(basis, n, tie):
    """Mix the columns so far, slacks included, in the best way.

    Right-hand sides differ by up to `tie`, or columns of equal gains would take turns for ever.

    reads   n, tie
    fills   basis: level, price
    returns γ; NaN if the basis is singular
    """
    for _ in range(20 * (n + 1)):
        for a in range(n):
            basis.level[a] = tie * (a + 1) / n
        basis.level[n] = 1.0
        if not _solve(basis.matrix, basis.level, n + 1, basis.work, False):
            return np.nan
        for k in range(n + 1):
            basis.price[k] = 1.0 if basis.kind[k] == -1 else 0.0
        if not _solve(basis.matrix, basis.price, n + 1, basis.work, True):
            return np.nan
        worst = -1
        least = -NEGATIVE
        for a in range(n):
            if basis.price[a] < least:
                least = basis.price[a]
                worst = a
        if worst < 0:
            break
        for a in range(n + 1):
            basis.column[a] = 1.0 if a == worst else 0.0
        if _enter(basis, n, worst) == -2:
            return np.nan
    for k in range(n + 1):
        if basis.kind[k] == -1:
            return basis.level[k]
    return np.nan


@njit(**KERNEL)
def admit(basis, n, q):
    """Let a point enter.

    reads   n, q (n,): its gains
    fills   basis
    returns its slot, or −1 if that is impossible
    """
    _column(n, q, basis.column)
    slot = 0
    while True:  # the first slot that no basic column holds
        taken = False
        for k in range(n + 1):
            taken = taken or basis.kind[k] == n + slot
        if not taken:
            break
        slot += 1
    return slot if _enter(basis, n, n + slot) != -2 else -1


@njit(**LEAN)
def _enter(basis, n, kind):
    """Exchange a basic variable for a new one, whose column is in the basis.

    reads   n, kind (of the new one)
    fills   basis
    returns the kind of the old one, −2 if there is none
    """
    column, fresh = basis.column, basis.fresh
    for a in range(n + 1):
        fresh[a] = column[a]
    if not _solve(basis.matrix, column, n + 1, basis.work, False):
        return -2
    leaving = -1
    ratio = np.inf
    for k in range(n + 1):
        if basis.kind[k] != -1 and column[k] > PIVOT:
            r = max(basis.level[k], 0.0) / column[k]
            if r < ratio or (r == ratio and column[k] > column[leaving]):
                ratio = r
                leaving = k
    if leaving < 0:
        return -2
    old = basis.kind[leaving]
    basis.kind[leaving] = kind
    for a in range(n + 1):
        basis.matrix[a, leaving] = fresh[a]
    return old


@njit(**LEAN)
def _solve(matrix, b, n, work, transposed):
    """Solve M z = b or Mᵀ z = b.

    reads   matrix, n, transposed
    fills   b: z; work
    returns whether M is regular
    """
    for r in range(n):
        for c in range(n):
            work[r, c] = matrix[c, r] if transposed else matrix[r, c]
        work[r, n] = b[r]
    return eliminate(work, n, b)
