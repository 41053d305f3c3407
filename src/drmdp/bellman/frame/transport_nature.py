"""Nature's rows under transport: the mass of source j goes to its targets at t₁ and t₂, in the shares 1 − f and f.

A plan is the same for all kernels where the mean has one (order 1), so that single kernels are moved by it too. Targets that a pair does not list are
entries of their own, two for each source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.bellman.nature_rows import Answer, Question, Work, begin, piece_at
from drmdp.bellman.rows.transport import scanned
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.layout.events import lengths
from drmdp.layout.grounded import Grounded, plain
from drmdp.layout.memory import Memory
from drmdp.layout.point import Point


def answer_of(mean: bool) -> Answer:
    """How the memory becomes rows; `mean`: one plan for all kernels."""

    def extra(layout: Any) -> Any:
        rows = 1 if mean and (layout.weights > 0).all() else layout.weights.size
        return 2 * rows * lengths(layout) * layout.unlisted

    def respond(
        start: int, stop: int, layout: Grounded, point: Point, memory: Memory, question: Question, work: Work
    ) -> None:
        data = plain(layout)
        if mean and (layout.weights > 0).all():
            data = data._replace(data=layout.mean, weights=np.ones(1))
            work = work._replace(state=work.state._replace(scale=np.ones((work.state.scale.shape[0], 1))))
        _respond(start, stop, data, point, memory, question, work, (layout.lists, layout.source))

    return Answer(respond, single=extra, prefixes=False)


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work, moves):
    """Rows of the states start … stop − 1.

    reads   layout, point, memory.by_row, question: weights, share; moves: lists, and the list of each entry
    fills   question.target, work
    """
    weights, lists = question.weights, moves[0]
    A = weights.shape[1]
    for s in range(start, stop):
        if begin(layout, point, s, work.state):
            for a in range(A):
                if weights[s, a] > 0.0:
                    piece = piece_at(layout, s, a, work.state, question.target)
                    source = moves[1][layout.indptr[s * A + a] : layout.indptr[s * A + a + 1]]
                    stakes = point.order.common if layout.common else piece.u
                    _move(
                        piece,
                        layout.weights,
                        weights[s, a],
                        question.share[s],
                        memory.by_row[s, a],
                        (lists, source, stakes),
                    )


@njit(**INLINE)
def _move(piece, w, x, share, mixtures, moves):
    """Add the rows of a pair.

    reads   piece, w (N,), x (weight of the pair), share, mixtures (3,) or (3 N,): t₁, t₂, f; moves: lists, source (K,), stakes of the targets
    fills   piece: mass, states
    """
    K = piece.u.size
    lists, source, stakes = moves
    for i in range(w.size):
        mixture = mixtures[3 * i : 3 * i + 3] if mixtures.size > 3 else mixtures
        part = share[min(i, share.size - 1)]
        for j in range(K):
            p = x * w[i] * piece.scale[i] * piece.y[i * K + j]
            if not p > 0.0:
                continue
            for side in range(2):
                mass = p * (mixture[2] if side == 1 else 1.0 - mixture[2])
                bent = mass * part if mixture[side] > 0.0 else 0.0
                piece.mass[j] += mass - bent
                if bent > 0.0:
                    to = lists.target[scanned(lists, source[j], mixture[side], stakes)]
                    if piece.mass.size > K:
                        at = K + 2 * (i * K + j) + side
                        piece.states[at] = to
                        piece.mass[at] += bent
                    else:
                        piece.mass[to] += bent
