"""Range after range in one process: for models that are larger than memory.

Vectors are plain arrays. Ranges are opened one at a time, and some stay open (`drmdp.cluster.plan.stay_open`). Policies and what sweeps leave behind go to
files that have no name and are gone with the process; the system keeps of them in memory what fits.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.engine import Engine, Holding, Whole, own
from drmdp.cluster.plan import stay_open
from drmdp.cluster.source import Source
from drmdp.cluster.worker import Worker
from drmdp.sets import AmbiguitySet

LARGE = 2**24
"""Bytes of an array of all states from which on it goes to a file."""


class LocalEngine(Engine):
    """Workers that take turns."""

    def __init__(self, source: Source, ball: AmbiguitySet, parts: int, threads: int, scratch: str | None) -> None:
        super().__init__(source, ball, parts, threads)
        self._scratch = scratch
        self._workers = [Worker(source, ball, lo, hi, threads) for lo, hi in self.ranges]
        self._large = LARGE / len(self._workers)
        if len(self._workers) > 1:
            for worker in self._workers:
                worker.settle = self._settle
        self._stay = len(stay_open(source, ball, self.ranges))

    def _run(self, name: str, args: tuple[Any, ...], kept: int, ask: bool) -> tuple[list[Any], list[Any]]:
        whole: list[Any] = [None] * kept
        answers = []
        for k, worker in enumerate(self._workers):
            arrays, answer = self._call(k, name, args)
            answers.append(answer)
            for j, array in enumerate(arrays):
                if len(self._workers) == 1:
                    whole[j] = array
                    continue
                if whole[j] is None:
                    whole[j] = self._room((self.n_states, *array.shape[1:]), array.dtype)
                whole[j][worker.lo : worker.hi] = array
        return whole, answers

    def _hold(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        return [tuple(map(self._settle, self._call(k, name, args)[0])) for k in range(len(self._workers))]

    def _call(self, k: int, name: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        worker = self._workers[k]

        def pick(arg: Any) -> Any:
            if isinstance(arg, Whole):
                return arg.vector
            return arg.pieces[k] if isinstance(arg, Holding) else arg[worker.lo : worker.hi]

        answer = worker.call(name, self.facts, tuple(own(arg, pick) for arg in args))
        if len(self._workers) > 1:
            worker.forget(model=k >= self._stay)
        return answer

    def _settle(self, array: Array) -> Array:
        """The same array where it can stay."""
        if array.nbytes < self._large or len(self._workers) == 1:
            return array
        there = self._room(array.shape, array.dtype)
        there[...] = array
        return there

    def _room(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array, in a file without a name if it is large and more than a number for each state."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size < self._large or shape == (self.n_states,):
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self._scratch) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)

    def gather(self, vector: Any) -> Array:
        """It is here."""
        return np.asarray(vector)

    def scatter(self, values: Array) -> Array:
        """It is where it should be."""
        return values

    def close(self) -> None:
        """Let go of what is open."""
        for worker in self._workers:
            worker.forget()
