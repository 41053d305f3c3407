"""The rows of a state, and what they answer to the multipliers that their curves are asked at."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.frame.curves import insert
from drmdp.bellman.rows import LARGEST
from drmdp.core.compiled import INLINE, LEAN, njit
from drmdp.layout.point import row_scales


class Rows(NamedTuple):
    """The rows of a state, and who answers for them."""

    y: Any  # N rows per action
    listed: Any  # next states of the entries
    ptr: Any  # (A + 1,) where each action's entries begin
    u: Array
    scale: Array  # (A, N)
    w: Array  # (N,)
    z: Array
    aux: Any
    response: Any
    saturated: Any


@njit(**INLINE)
def rows_at(layout, listed, s, work, answers):
    """Gather the rows of state s after it was normalised.

    reads   layout, listed (what a row model is told of each entry), s, answers (see `sweep`)
    fills   work.state: scale, ptr
    returns Rows
    """
    state = work.state
    A, N = state.scale.shape
    row_scales(layout, s, state.scale)
    first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
    for a in range(A + 1):
        state.ptr[a] = layout.indptr[s * A + a] - first
    return Rows(
        layout.data[N * first : N * last], listed[first:last], state.ptr, state.u, state.scale, layout.weights, work.z,
        work.aux, answers[1], answers[2],
    )  # fmt: skip


@njit(**LEAN)
def ask(rows, a, t):
    """Ask the rows of action a.

    reads   rows, a, t (∞: the saturated point)
    returns V, E, D
    """
    lo, hi, N = rows.ptr[a], rows.ptr[a + 1], rows.w.size
    y, u, listed = rows.y[N * lo : N * hi], rows.u[lo:hi], rows.listed[lo:hi]
    if t < LARGEST:
        return rows.response(t, y, rows.scale[a], rows.w, u, rows.z, listed, rows.aux)
    value, cost = rows.saturated(y, rows.scale[a], rows.w, u, rows.z, listed, rows.aux)
    return value, cost, 0.0


@njit(**LEAN)
def visit(rows, curves, x):
    """Evaluate the curves where `choose_next` says.

    reads   rows, x (A,): a policy, if there is one curve for it, or (0,): a curve for each action
    fills   curves
    """
    for k in range(curves.cost.size):
        t = curves.next[k]
        if not t > 0.0:
            continue
        if t >= LARGEST:
            t = np.inf
        if x.size == 0:
            value, cost, slope = ask(rows, k, t)
        else:
            value, cost, slope = 0.0, 0.0, 0.0
            for a in range(x.size):
                if x[a] > 0.0:
                    v, e, d = ask(rows, a, t * x[a])
                    value += x[a] * v
                    cost += e
                    slope += x[a] * x[a] * d
        insert(curves, k, t, value, cost, slope)
