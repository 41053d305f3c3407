"""Nature's rows under a row model: mixtures (1 − f) z(t₁) + f z(t₂) of what the memory says, for every action.

The rows of a pair are z_i, one for each kernel; what they give to a top that is not listed is one more entry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from drmdp.bellman.nature_rows import Answer, Question, Work, begin, piece_at
from drmdp.core.compiled import INLINE, KERNEL, njit, wall
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory
from drmdp.layout.point import Point


def answer_of(fill: Any, data: Callable[[Layout], Layout], single_kernels: bool) -> Answer:
    """How the memory becomes rows, `fill` being that of a row model and `data` giving the layout of the rows that are bent."""

    def respond(
        start: int, stop: int, layout: Layout, point: Point, memory: Memory, question: Question, work: Work
    ) -> None:
        layout = data(layout)
        A, N = work.state.scale.shape
        if layout.weights.size < N:
            work = work._replace(state=work.state._replace(scale=np.ones((A, layout.weights.size))))
        _respond(start, stop, layout, point, memory, question, work, _compiled(fill, layout.data.dtype))

    return Answer(respond, single=1, prefixes=False, single_kernels=single_kernels)


@cache
def _compiled(fill: Any, real: Any) -> Any:
    y = np.empty(1, dtype=real)
    y.setflags(write=False)
    return wall(fill.py_func, 0.0, 0.0, y, 0.0, np.empty(1), np.empty(1))


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work, fill):
    """Rows of the states start … stop − 1.

    reads   layout, point, memory.by_row, question: weights, share; fill
    fills   question.target, work
    """
    weights = question.weights
    for s in range(start, stop):
        if begin(layout, point, s, work.state):
            for a in range(weights.shape[1]):
                if weights[s, a] > 0.0:
                    piece = piece_at(layout, s, a, work.state, question.target)
                    piece.states[piece.u.size] = (
                        point.order.states[0] if layout.unlisted else piece.listed[np.argmax(piece.u)]
                    )
                    _mix(
                        piece,
                        layout.weights,
                        weights[s, a],
                        question.share[s],
                        memory.by_row[s, a],
                        fill,
                        work.sort.key,
                    )


@njit(**INLINE)
def _mix(piece, w, x, share, mixture, fill, z):
    """Add the rows of a pair.

    reads   piece, w (N,), x (weight of the pair), share, mixture (3,): t₁, t₂, f; fill
    fills   piece.mass, z
    """
    K = piece.u.size
    for i in range(w.size):
        y, moved = piece.y[i * K : (i + 1) * K], share[min(i, share.size - 1)]
        for side in range(2):
            t, part = mixture[side], mixture[2] if side == 1 else 1.0 - mixture[2]
            bent = x * w[i] * part * (moved if t > 0.0 else 0.0)
            if bent > 0.0:
                piece.mass[K] += bent * fill(t, y, piece.scale[i], piece.u, z[:K])
                for j in range(K):
                    piece.mass[j] += bent * z[j]
            for j in range(K):
                piece.mass[j] += (x * w[i] * part - bent) * piece.scale[i] * y[j]
