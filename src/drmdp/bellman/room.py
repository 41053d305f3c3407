"""Work space of the kernels of (ℓ1, ∞) and (ℓ∞, 1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.layout import Layout, scratch

JOIN = 3  # actions at a time


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
