"""Nature's rows of the pairs that a sweep plays, written while they are at hand; to make them again would take as long as a third of a solve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.nature_rows import Answer, respond
from drmdp.core.compact import Parted, Rows, joined
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory
from drmdp.layout.point import Point

NOTHING = 1e-8
"""A mass that single precision would lose beside 1."""
TOGETHER = 64
"""Pieces whose rows are put together."""


class Played:
    """Rows of the pairs that a sweep plays, written while they are at hand: single precision does for a Newton direction."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Rows]] = []
        self._parts: list[tuple[int, Rows]] = []
        self._policy: Array | None = None
        self._threads = 1

    def write(self, own: slice, answer: Answer, part: Layout, point: Point, memory: Memory, policy: Array) -> None:
        """Write those of a piece."""
        rows = respond(answer, part, point, memory, policy, np.ones((len(policy), 1)), by_pair=False, threads=1)
        keep = rows.entry_mass > NOTHING
        ptr = np.concatenate([[0], np.cumsum(keep)])[rows.entry_ptr]
        mass: Any = rows.entry_mass[keep].astype(np.float32)
        self._open.append(
            (own.start, replace(rows, entry_ptr=ptr, entry_state=rows.entry_state[keep], entry_mass=mass))
        )

    def close(self, lo: int, hi: int) -> None:
        """Put the pieces of a range together."""
        own = sorted((one for one in self._open if lo <= one[0] < hi), key=lambda one: one[0])
        for k in range(0, len(own), TOGETHER):
            some = own[k : k + TOGETHER]
            self._parts.append((some[0][0], joined([rows for _, rows in some])))
        for one in own:
            self._open.remove(one)

    def of(self, policy: Array, threads: int) -> None:
        """Say whose rows these are."""
        self._policy, self._threads = policy, threads

    def take(self, policy: Array) -> Parted | None:
        """The chain of a policy, once, if it is the one."""
        if self._policy is None or policy is not self._policy:
            return None
        parts, self._parts, self._policy = sorted(self._parts, key=lambda one: one[0]), [], None
        return Parted(tuple(rows for _, rows in parts), self._threads)
