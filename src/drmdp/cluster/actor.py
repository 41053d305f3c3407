"""A worker in a process of its own, as Ray starts it, and how arguments reach it.

On the driver's machine they are in memory that both share (`drmdp.cluster.shared`). Elsewhere Ray brings them, but only what stands among the arguments of a
call itself, not what is inside of them. So vectors travel as `values` after the others, and a `Slot` stands where one was.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from drmdp.cluster.shared import Area, At, Handle, InRoom
from drmdp.cluster.source import Source
from drmdp.cluster.worker import Worker
from drmdp.errors import InputError
from drmdp.sets import AmbiguitySet

REACH = "reach"
"""The call that asks whether a worker shares memory with the driver."""


class Order(NamedTuple):
    """A call."""

    number: int  # calls come in this order
    name: str
    facts: Any
    args: tuple[Any, ...]
    rooms: list[int] | None = None  # in shared memory, for vectors; None: Ray brings what is kept
    taken: list[tuple[int, int]] | None = None  # of the worker's file there
    held: bool = False  # with Ray: the arrays are one thing


class Slot:
    """Where an argument was: the value at `start`, or all up to `stop`, put together."""

    def __init__(self, start: int, stop: int | None = None) -> None:
        self.start, self.stop = start, stop

    def of(self, values: tuple[Any, ...]) -> Any:
        """What was there."""
        if self.stop is not None:
            return np.concatenate(values[self.start : self.stop])
        return values[self.start]


class Actor:
    """A worker."""

    _busy = False

    def __init__(
        self, source: Source, ball: AmbiguitySet, lo: int, hi: int, threads: int, handle: Handle | None
    ) -> None:
        self._worker = Worker(source, ball, lo, hi, threads)
        self._handle, self._last = handle, -1
        self._area: Area | None = None

    def call(self, order: Order, *values: Any) -> Any:
        """Answer a call: where the arrays are and the rest; or, for Ray to keep them, the arrays one by one, or as one to be held, and the rest."""
        if order.number < self._last:
            raise RuntimeError("a call that was repeated long ago")
        self._busy, self._last = True, order.number
        try:
            if order.name == REACH:
                return self._reached()
            given = tuple(self._filled(arg, values) for arg in order.args)
            arrays, answer = self._worker.call(order.name, order.facts, given)
            if order.rooms is not None:
                return self._shared.keep(arrays, order.rooms, order.taken or []), answer
        finally:
            self._busy = False
        if order.held:
            return arrays, answer
        return (*arrays, answer) if arrays else answer

    def alive(self) -> tuple[int, bool]:
        """Number of the process, and whether it is at work; told beside a call that is going on."""
        return os.getpid(), self._busy

    @property
    def _shared(self) -> Area:
        if self._area is None:
            assert self._handle is not None
            lo, hi = self._worker.lo, self._worker.hi
            try:
                self._area = Area(self._handle, lo, hi)
            except OSError as error:
                where = f"does not reach the memory of process {self._handle.process}: {error.strerror}"
                raise InputError(f"the worker of the states {lo} … {hi - 1} {where}") from None
        return self._area

    def _reached(self) -> bool:
        try:
            return self._shared is not None
        except InputError:
            return False

    def _filled(self, arg: Any, values: tuple[Any, ...]) -> Any:
        if isinstance(arg, InRoom | At):
            return self._shared.view(arg)
        if isinstance(arg, tuple):
            return tuple(self._filled(part, values) for part in arg)
        return arg.of(values) if isinstance(arg, Slot) else arg
