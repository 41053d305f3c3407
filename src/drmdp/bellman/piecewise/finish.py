"""The simplex method where `drmdp.bellman.piecewise.method` stalls: the same problem, work space and results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from drmdp.bellman.piecewise import game as play
from drmdp.bellman.piecewise.method import compiled, copy_rows, gains, keep_upper, rounds, worst_case
from drmdp.core.compiled import INNER
from drmdp.layout.layout import Out

POINTS = 2000


def sweep(kernel: Any, joint: bool, start: int, stop: int, out: Out, *given: Any) -> None:
    """Run a kernel over the states whose passes are negative with `rounds`, and again with `finish` where they remain so."""
    own = out.passes[start:stop]
    for method in (rounds, finish):
        if (own < 0.0).any():
            kernel(start, stop, out, *given, compiled(method, joint))
    np.abs(own, out=own)


def finish(n, N, tables, w, B, cap, tol, work, joint):  # type: ignore[no-untyped-def]
    """Close the gap by the simplex method from m⁰; returns U, L and the answers of nature."""
    m, q, x = work.amounts, work.q, work.x
    rows = n if joint is None else 1
    game = play.empty(n)
    points = np.empty((n + 1, rows, N))
    _shrink(joint, rows, N, w, B, work.centre)
    low = min(cap, gains(n, N, tables, w, work.centre, work, q, joint))
    copy_rows(work.centre, work.best, rows)
    high = keep_upper(worst_case(n, N, tables, w, B, x, work, joint), cap, n, N, work, joint)
    level, unit = low, max(high - low, 0.1 * tol)
    for a in range(n):
        q[a] = (q[a] - level) / unit
    copy_rows(work.best, points[0], rows)
    play.begin(game, n, q)
    answers = 0
    for _ in range(POINTS if high - low > tol else 0):
        gamma = level + unit * play.balance(game, n, 1e-3 * tol / unit)
        if not gamma > -np.inf:
            break
        total = 0.0
        for a in range(n):
            x[a] = max(game.price[a], 0.0)
            total += x[a]
        for a in range(n):
            x[a] /= total
        high = keep_upper(worst_case(n, N, tables, w, B, x, work, joint), high, n, N, work, joint)
        answers += 1
        if high - gamma <= tol:
            break
        gains(n, N, tables, w, m, work, q, joint)
        for a in range(n):
            q[a] = (q[a] - level) / unit
        slot = play.admit(game, n, q)
        if slot < 0:
            break
        copy_rows(m, points[slot], rows)
    for a in range(rows):
        for i in range(N):
            m[a, i] = 0.0
            for k in range(n + 1):
                if game.kind[k] >= n:
                    m[a, i] += max(game.level[k], 0.0) * game.matrix[n, k] * points[game.kind[k] - n, a, i]
    _shrink(joint, rows, N, w, B, m)
    least = min(cap, gains(n, N, tables, w, m, work, q, joint))
    if least > low:
        low = least
        copy_rows(m, work.best, rows)
    return high, low, answers


@njit(**INNER)
def _shrink(joint, rows, N, w, B, m):  # type: ignore[no-untyped-def]
    """Undo what rounding spends beyond the budget."""
    mean = 0.0
    for i in range(N):
        total = 0.0
        for a in range(rows):
            total += m[a, i]
        mean += w[i] * total
        if total > B and joint is None:
            for a in range(rows):
                m[a, i] *= B / total
    if joint is not None and mean > B:
        for i in range(N):
            m[0, i] *= B / mean
