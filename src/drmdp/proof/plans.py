"""Nature's plans under transport: where the mass of each next state goes, from what a sweep remembers.

A sweep keeps t₁, t₂ and f for every row (`native/rows/transport.hpp`): the mass of j goes to its best targets at t₁ and t₂ in the shares 1 − f
and f. Targets are looked up as the sweep does it, for a tie broken otherwise would be another plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.layout.events import EventLayout, pieces
from drmdp.layout.grounded import Lists
from drmdp.layout.memory import Memory
from drmdp.layout.pairs import by_pair, memory_by_pair

FLAT = 1e-13
"""Stakes this near to the top are rounding, to sweeps."""


def plans(nature: Any, s: int, a: int, pairwise: bool) -> list[list[Any]]:
    """Moves [from, to, share of what is there] of a pair: one list for the mean, or one for each kernel; `pairwise`: actions have budgets of their own."""
    layout, memory, A = nature.layout, nature.memory, nature.model.n_actions
    if isinstance(layout, EventLayout):
        _, _, layout, own = next(pieces(layout, s, s + 1))
        memory, s = Memory(*(part[own] for part in memory)), 0
    if pairwise and layout.available.shape[1] > 1:
        layout, memory = by_pair(layout), memory_by_pair(memory, layout.weights.size)
    at, action = (s, a) if layout.available.shape[1] > 1 else (s * A + a, 0)
    entries = slice(int(layout.indptr[s * A + a]), int(layout.indptr[s * A + a + 1]))
    u = nature.point.order.common if layout.common else _stakes(layout, nature.point, at, action)
    listed, source = np.asarray(layout.indices[entries]), layout.ground.source[entries]
    found = []
    for t1, t2, f in memory.by_row[at, action].reshape(-1, 3).tolist():
        moves: list[Any] = []
        for j, own in zip(listed.tolist(), source.tolist(), strict=True):
            for t, part in ((t1, 1 - f), (t2, f)):
                target = _best(layout.ground.lists, own, t, u) if t > 0 else -1
                to = j if target < 0 else target if layout.common else int(listed[target])
                if to != j and part > 0:
                    moves.append([j, to, part])
        found.append(moves)
    return found


def _stakes(layout: Any, point: Any, s: int, a: int) -> Array:
    """Stakes of the listed states of a pair, in the largest range of any action, as sweeps have them (`native/stakes.hpp`)."""
    A, each = layout.available.shape[1], []
    for pair in range(s * A, s * A + A):
        own = slice(int(layout.indptr[pair]), int(layout.indptr[pair + 1]))
        rate = layout.discount if isinstance(layout.discount, float) else layout.discount[pair]
        z = rate * point.value[layout.indices[own]]
        each.append(z + layout.next_costs[own] if layout.next_costs.size else z)
    unit = max(float(np.ptp(z)) if z.size else 0.0 for z in each)
    u = (each[a] - each[a].max()) * (1.0 / unit if unit > 1e-280 else 0.0)
    return np.where(u <= -FLAT, u, 0.0)


def _best(lists: Lists, j: int, t: float, u: Array) -> int:
    """The target of source j that is best at t: of the highest score, then of the highest stake, then the nearest."""
    own = slice(int(lists.ptr[j]), int(lists.ptr[j + 1]))
    targets = lists.target[own]
    stakes = u[targets]
    if t < np.inf:
        score = t * stakes - lists.cost[own]
        stakes = np.where(score == score.max(), stakes, -np.inf)
    return int(targets[np.argmax(stakes)])
