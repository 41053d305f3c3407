"""A worker in a process of its own, as Ray starts it, and how arguments reach it.

Ray brings along what stands among the arguments of a call itself, not what is inside of them. So vectors travel as `values` after the others, and a `Slot`
stands where one was.

Ray hands out arrays that cannot be written, and Numba compiles another kernel for such. A worker writes to no argument, so it gets views like any other array.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.source import Source
from drmdp.cluster.worker import Worker
from drmdp.sets import AmbiguitySet


class Slot:
    """Where an argument was: the value at `start`, or all up to `stop`, put together."""

    def __init__(self, start: int, stop: int | None = None) -> None:
        self.start, self.stop = start, stop

    def of(self, values: tuple[Any, ...]) -> Any:
        """What was there."""
        if self.stop is not None:
            return np.concatenate(values[self.start : self.stop])
        value = values[self.start]
        return tuple(map(plain, value)) if isinstance(value, tuple) else plain(value)


class _Memory:
    """The memory of an array, for another view of it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def plain(array: Array) -> Array:
    """An array itself, or a view of one that cannot be written which does not say so."""
    return array if array.flags.writeable else np.asarray(_Memory(array))


class Actor:
    """A worker."""

    _busy = False

    def __init__(self, source: Source, ball: AmbiguitySet, lo: int, hi: int, threads: int) -> None:
        self._worker = Worker(source, ball, lo, hi, threads)

    def call(self, name: str, facts: Any, args: tuple[Any, ...], held: bool, *values: Any) -> Any:
        """Answer a call: the arrays one by one, or as one to be held, and then the rest."""
        self._busy = True
        try:
            arrays, answer = self._worker.call(name, facts, tuple(_filled(arg, values) for arg in args))
        finally:
            self._busy = False
        if held:
            return arrays, answer
        return (*arrays, answer) if arrays else answer

    def alive(self) -> tuple[int, bool]:
        """Number of the process, and whether it is at work; told beside a call that is going on."""
        return os.getpid(), self._busy


def _filled(arg: Any, values: tuple[Any, ...]) -> Any:
    if isinstance(arg, tuple):
        return tuple(_filled(part, values) for part in arg)
    return arg.of(values) if isinstance(arg, Slot) else arg
