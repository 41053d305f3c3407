"""Where vectors are that workers of Ray keep: in memory that all share, on one machine, or in Ray's object store.

Either way they outlive the worker that made them, and the driver holds references. In the store, workers of one machine share them and others fetch
them from each other; to put a vector there takes several times as long as to make it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.actor import Order, Slot
from drmdp.cluster.engine import Whole
from drmdp.cluster.shared import InRoom, Shared, Wanted


class Route(Protocol):
    """How arrays reach workers and stay with them."""

    def room(self, kept: int) -> Any:
        """What is made ready for the vectors of a call to all workers."""

    def given(self, arg: Any, k: int, values: list[Any]) -> Any:
        """What stands for an argument in a call to worker k; `values` go with it."""

    def ordered(self, order: Order, k: int, kept: int | None, room: Any) -> tuple[Order, int]:
        """The call with what says where its arrays stay, and how many things it returns; kept None: one holding."""

    def pieces(self, k: int, refs: list[Any], answer: Any, room: Any) -> tuple[Any, Any]:
        """What worker k kept, and its answer, from what came back."""

    def gather(self, vector: Any) -> Array:
        """A vector, here."""

    def scatter(self, values: Array) -> list[Any]:
        """Numbers at hand, in pieces."""


class ByMemory:
    """Shared memory."""

    def __init__(self, shared: Shared, workers: int) -> None:
        self._shared, self._workers = shared, workers

    def room(self, kept: int) -> list[Wanted]:
        """Rooms for vectors."""
        return self._shared.rooms(kept)

    def given(self, arg: Any, k: int, values: list[Any]) -> Any:
        """The number of a room, or the place of an array."""
        if isinstance(arg, Whole):
            return InRoom(arg.vector.pieces[k].at, True)
        found = arg.pieces[k]
        return tuple(map(_place, found)) if isinstance(found, list) else _place(found)

    def ordered(self, order: Order, k: int, kept: int | None, room: list[Wanted]) -> tuple[Order, int]:
        """Rooms, and what is taken."""
        return order._replace(rooms=[own.at for own in room], taken=self._shared.taken(k)), 1

    def pieces(self, k: int, refs: list[Any], answer: Any, room: list[Wanted]) -> tuple[Any, Any]:
        """Rooms and places."""
        places, told = answer
        return self._shared.kept(k, places, room), told

    def gather(self, vector: Any) -> Array:
        """A vector, here."""
        return self._shared.gather(vector.pieces)

    def scatter(self, values: Array) -> list[Any]:
        """Numbers at hand in a room."""
        return [self._shared.scatter(values)] * self._workers


def _place(piece: Wanted) -> Any:
    return InRoom(piece.at, False) if isinstance(piece.at, int) else piece.at


class ByStore:
    """Ray's object store."""

    def __init__(self, ray: Any, ranges: list[tuple[int, int]]) -> None:
        self._ray, self._ranges = ray, ranges

    def room(self, kept: int) -> None:
        """Nothing."""

    def given(self, arg: Any, k: int, values: list[Any]) -> Slot:
        """A slot for what Ray brings."""
        at = len(values)
        if isinstance(arg, Whole):
            values.extend(arg.vector.pieces)
            return Slot(at, len(values))
        piece = arg.pieces[k]
        values.append(piece[0] if isinstance(piece, list) else piece)
        return Slot(at)

    def ordered(self, order: Order, k: int, kept: int | None, room: None) -> tuple[Order, int]:
        """Every vector is returned by itself."""
        return order._replace(held=kept is None), (1 if kept is None else kept) + 1

    def pieces(self, k: int, refs: list[Any], answer: Any, room: None) -> tuple[Any, Any]:
        """References; of a holding, one."""
        return refs[:-1], answer

    def gather(self, vector: Any) -> Array:
        """A vector, here."""
        return np.concatenate(self._ray.get(vector.pieces))

    def scatter(self, values: Array) -> list[Any]:
        """Numbers at hand, put into the store."""
        return [self._ray.put(values[lo:hi]) for lo, hi in self._ranges]
