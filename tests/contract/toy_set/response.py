"""The response: all that nature may take goes to the best next state.

There the normalised stake is 0, so that

    F̄ = min_a cost_a + (1 − θ) V⁰_a,        and Σ_a x_a (cost_a + (1 − θ) V⁰_a) of a policy.

Memory: by_kernel holds θ.
"""

from typing import NamedTuple

import numpy as np
from drmdp.core.compiled import KERNEL, njit

from drmdp.bellman.nature_rows import Answer, begin, piece_at
from drmdp.layout.point import Scratch, normalise, scratch


class Work(NamedTuple):
    state: Scratch


def workspace(layout, point, start, stop):
    return Work(scratch(layout, start, stop))


@njit(**KERNEL)
def update(start, stop, layout, point, memory, out, tol, work):
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:
            theta = min(layout.radius[s], 1.0)
            memory.by_kernel[s] = theta
            best, played = np.inf, 0
            for a in range(work.state.cost.size):
                bent = work.state.cost[a] + (1.0 - theta) * work.state.nominal[a]
                out.policy[s, a] = 0.0
                if layout.available[s, a] and bent < best:
                    best, played = bent, a
            out.policy[s, played] = 1.0
            out.upper[s] = base + unit * best
            out.lower[s] = out.upper[s]


@njit(**KERNEL)
def evaluate(start, stop, layout, point, memory, out, tol, work):
    for s in range(start, stop):
        base, unit = normalise(layout, point, s, work.state)
        if base < np.inf:
            theta = min(layout.radius[s], 1.0)
            memory.by_kernel[s] = theta
            worst = 0.0
            for a in range(work.state.cost.size):
                if out.policy[s, a] > 0.0:
                    bent = work.state.cost[a] + (1.0 - theta) * work.state.nominal[a]
                    worst += out.policy[s, a] * bent
            out.upper[s] = base + unit * worst
            out.lower[s] = out.upper[s]


@njit(**KERNEL)
def _respond(start, stop, layout, point, memory, question, work):
    A = layout.available.shape[1]
    for s in range(start, stop):
        if begin(layout, point, s, work.state):
            for a in range(A):
                x = question.weights[s, a]
                if x > 0.0:
                    piece = piece_at(layout, s, a, work.state, question.target)
                    K, lo, share = piece.u.size, layout.indptr[s * A + a], question.share[s]
                    piece.states[K] = point.order.states[0] if layout.unlisted else piece.listed[np.argmax(piece.u)]
                    moved = 0.0
                    for i in range(layout.weights.size):
                        moved += layout.weights[i] * share[min(i, share.size - 1)] * memory.by_kernel[s, i]
                    for j in range(K):
                        piece.mass[j] += x * (1.0 - moved) * layout.mean[lo + j]
                    piece.mass[K] += x * moved


NATURE = Answer(_respond, single=1, prefixes=False)
