"""Work space of the kernels of (ℓ1, ∞) and (ℓ∞, 1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.core.compiled import LEAN
from drmdp.layout.layout import Layout, scratch

JOIN = 3  # actions at a time
PLAYED = 1e-12  # a smaller probability of the last policy does not count


class Room(NamedTuple):
    """Work space for states of A actions, N kernels and up to K entries in all."""

    scale: Array  # (A, N)
    action: Any  # (A,) of each table
    member: Any  # (A,) whether an action needs no price
    joined: Any  # (JOIN,)
    values: Array  # (JOIN,)
    radius: Array  # (N,)
    slopes: Array  # (2, N)
    gain: Array  # (N,)
    u: Array  # (K,)
    cost: Array  # (A,)
    nominal: Array  # (A,)
    key: Array  # (K,)
    where: Any  # (S,) −1
    entry: Any  # (K + 1,)
    level: Array  # (K + 1,)
    stack: Any  # (K + 2,)
    place: Any  # (K,)
    mass: Array  # (K + 1,)
    index: Any  # (K + 1,)
    one: Array  # (1,) 1


def make_room(layout: Layout, start: int, stop: int) -> Room:
    """Work space for a range of states."""
    own = scratch(layout, start, stop)
    S, (A, N), K = layout.available.shape[0], own.scale.shape, own.u.size
    whole: Any = np.int64
    return Room(
        own.scale, np.empty(A, whole), np.empty(A, np.bool_), np.empty(JOIN, whole), np.empty(JOIN), np.empty(N), np.empty((2, N)),
        np.empty(N), own.u, own.cost, own.nominal, np.empty(K), np.full(S, -1), np.empty(K + 1, whole), np.empty(K + 1),
        np.empty(K + 2, whole), np.empty(K, whole), np.empty(K + 1), np.empty(K + 1, whole), np.ones(1),
    )  # fmt: skip


@njit(**LEAN)
def scan(policy, room):  # type: ignore[no-untyped-def]
    """Clear what does not count in the last policy; returns the actions of lowest cost and value, that played alone or −1, and Σ x."""
    first = 0  # attains the cap
    lowest = 0
    only = -1
    given = 0.0
    for a in range(policy.size):
        room.member[a] = False
        value = room.cost[a] + room.nominal[a]
        if room.cost[a] < room.cost[first]:
            first = a
        if value < room.cost[lowest] + room.nominal[lowest]:
            lowest = a
        if policy[a] > PLAYED and policy[a] <= 1.0 and value < 0.0:
            only = a if given == 0.0 else -1
            given += policy[a]
        else:
            policy[a] = 0.0
    return first, lowest, only, given
