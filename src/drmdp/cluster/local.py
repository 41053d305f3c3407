"""Range after range in one process: for models that are larger than memory.

Vectors are plain arrays. Ranges are opened one at a time, and some stay open
(`drmdp.cluster.plan.stay_open`). Policies and what sweeps leave behind go to files that have no
name and are gone with the process; the system keeps of them in memory what fits.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster import Local
from drmdp.cluster.engine import Engine, Holding, Returned, Whole, argument_of
from drmdp.cluster.plan import stay_open
from drmdp.cluster.source import DirectorySource
from drmdp.cluster.worker import Worker
from drmdp.core import threads as cores
from drmdp.sets import AmbiguitySet

LARGE = 2**24
"""Bytes of an array of all states from which on it goes to a file."""


class LocalEngine(Engine):
    """Workers that take turns."""

    def __init__(
        self, source: DirectorySource, ambiguity: AmbiguitySet, cluster: Local, scratch: str | None
    ) -> None:
        threads = cores.count(cluster.threads)
        super().__init__(source, ambiguity, cluster.parts, threads)
        self._scratch = scratch
        self._workers = [Worker(source, ambiguity, lo, hi, threads) for lo, hi in self.ranges]
        self._alone = len(self._workers) == 1
        self._large = math.inf if self._alone else LARGE / len(self._workers)
        if not self._alone:
            for worker in self._workers:
                worker.settle = self._settle
        self._stay = len(stay_open(source, ambiguity, self.ranges))

    def _run(self, name: str, args: tuple[Any, ...], n: int | None) -> Returned:
        kept: list[Any] = [None] * (n or 0)
        answers = []
        for k, worker in enumerate(self._workers):
            arrays, answer = self._call(k, name, args)
            answers.append(answer)
            if n is None:
                kept.append(tuple(map(self._settle, arrays)))
            elif self._alone:
                kept[:] = arrays
            else:
                for j, array in enumerate(arrays):
                    if kept[j] is None:
                        kept[j] = self._allocated((self.n_states, *array.shape[1:]), array.dtype)
                    kept[j][worker.lo : worker.hi] = array
        return kept, answers

    def _call(self, k: int, name: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        worker = self._workers[k]

        def pick(arg: Any) -> Any:
            if isinstance(arg, Whole):
                return arg.vector
            if isinstance(arg, Holding):
                return arg.pieces[k]
            return arg[worker.lo : worker.hi] if isinstance(arg, np.ndarray) else arg

        answer = worker.call(name, self.facts, argument_of(args, pick))
        if not self._alone:
            worker.forget(model=k >= self._stay)
        return answer

    def _settle(self, array: Array) -> Array:
        """Move a large array to a file."""
        if array.nbytes < self._large:
            return array
        stored = self._allocated(array.shape, array.dtype)
        stored[...] = array
        return stored

    def _allocated(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array, in a file without a name if it is large and more than a number for each
        state.
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size < self._large or shape == (self.n_states,):
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self._scratch) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)

    def gather(self, vector: Any) -> Array:
        """The same array."""
        return np.asarray(vector)

    def scatter(self, values: Array) -> Array:
        """The same array."""
        return values

    def close(self) -> None:
        """Close all ranges."""
        for worker in self._workers:
            worker.forget()
