"""Memory that the driver and the workers of one machine share: what a worker keeps there outlives it.

The driver makes files without a name, one for vectors and one for each worker. Workers open them as the driver's in /proc, so that they are gone when all of
these processes are. A number drawn at random stands at the beginning: who does not find it is elsewhere.

**Vectors** with a number for each state have rooms of 8 S bytes, of which each worker fills its range. Who needs one whole copies it: pages of shared memory
are small ones, and a product that looks up states here and there took a fifth longer in them.
**Other arrays** are in the file of the worker that made them, in the first gap between those that are still wanted. Where nothing was written yet they are
written as to a file: to touch new pages one by one takes twice as long.

The driver says with every call which rooms and places are taken. A worker writes to its own range of a room and its own file only, and answers one call
after the other, so a call that is repeated or given up spoils nothing that is wanted.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array

SIZE = 2**40
"""Bytes of a file; those that were never written take no memory."""
FIRST, ALIGNED = 4096, 64
"""Where arrays begin, and what they begin at multiples of."""
SMALL = 2**20
"""Bytes of an array that is stored as any other."""


class Handle(NamedTuple):
    """What a worker needs to find the files."""

    process: int
    vectors: int
    own: int
    token: bytes
    n_states: int


class InRoom(NamedTuple):
    """A vector, or with `whole` the vector of all states, by the number of its room."""

    room: int
    whole: bool


class At(NamedTuple):
    """An array in the file of a worker."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset + int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def view(self, memory: mmap.mmap) -> Array:
        """The array."""
        return np.ndarray(self.shape, self.dtype, memory, self.offset)


def room(memory: mmap.mmap, number: int, n_states: int) -> Array:
    """The vector in a room."""
    size = -(-8 * n_states // FIRST) * FIRST
    return np.ndarray((n_states,), np.float64, memory, FIRST + number * size)


class Wanted:
    """A room or a place that the driver refers to; free when it no longer does."""

    def __init__(self, at: Any, release: Any) -> None:
        self.at, self._release = at, release

    def __del__(self) -> None:
        self._release(self.at)


class Shared:
    """The driver's side."""

    def __init__(self, ranges: list[tuple[int, int]], n_states: int) -> None:
        self._n_states, self._token = n_states, secrets.token_bytes(16)
        self._files = [os.memfd_create("drmdp") for _ in range(len(ranges) + 1)]
        for file in self._files:
            os.truncate(file, SIZE)
            os.pwrite(file, self._token, 0)
        self._vectors = mmap.mmap(self._files[0], SIZE)
        self._free: list[int] = []
        self._rooms = 0
        self._taken: list[set[At]] = [set() for _ in ranges]

    @property
    def handles(self) -> list[Handle]:
        """What each worker needs."""
        first, *own = self._files
        return [Handle(os.getpid(), first, file, self._token, self._n_states) for file in own]

    def rooms(self, count: int) -> list[Wanted]:
        """Rooms for so many vectors."""
        while len(self._free) < count:
            self._free.append(self._rooms)
            self._rooms += 1
        return [Wanted(self._free.pop(), self._free.append) for _ in range(count)]

    def taken(self, k: int) -> list[tuple[int, int]]:
        """Where the file of worker k is not free."""
        return [(at.offset, at.end) for at in self._taken[k]]

    def kept(self, k: int, found: list[Any], rooms: list[Wanted]) -> list[Wanted]:
        """What worker k kept: in a room where it says nothing else."""
        self._taken[k].update(filter(None, found))
        release = self._taken[k].discard
        return [rooms[j] if at is None else Wanted(at, release) for j, at in enumerate(found)]

    def gather(self, pieces: list[Wanted]) -> Array:
        """A vector, here."""
        if isinstance(pieces[0].at, int):
            return room(self._vectors, pieces[0].at, self._n_states).copy()
        files = [mmap.mmap(file, SIZE) for file in self._files[1:]]
        return np.concatenate([piece.at.view(file) for piece, file in zip(pieces, files, strict=True)])

    def scatter(self, values: Array) -> Wanted:
        """Numbers at hand in a room."""
        (found,) = self.rooms(1)
        room(self._vectors, found.at, self._n_states)[:] = values
        return found

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            os.close(file)
        self._files = []


class Area:
    """A worker's side."""

    def __init__(self, handle: Handle, lo: int, hi: int) -> None:
        self._lo, self._hi, self._n_states = lo, hi, handle.n_states
        vectors, self._file = _opened(handle, handle.vectors), _opened(handle, handle.own)
        self._vectors, self._own = mmap.mmap(vectors, SIZE), mmap.mmap(self._file, SIZE)
        os.close(vectors)
        self._end = 0  # up to where this worker wrote

    def view(self, place: Any) -> Any:
        """What is there; of a tuple, each."""
        if isinstance(place, InRoom):
            found = room(self._vectors, place.room, self._n_states)
            return found.copy() if place.whole else found[self._lo : self._hi]
        return place.view(self._own)

    def keep(self, arrays: tuple[Array, ...], rooms: list[int], taken: list[tuple[int, int]]) -> list[At | None]:
        """Put arrays where they stay, vectors in rooms if there are any; where the others are."""
        found: list[At | None] = []
        for j, array in enumerate(arrays):
            if j < len(rooms) and array.dtype == np.float64 and array.ndim == 1:
                self.view(InRoom(rooms[j], False))[:] = array
                found.append(None)
                continue
            at = At(_gap(taken, array.nbytes), array.shape, array.dtype.str)
            self._put(at, array)
            taken.append((at.offset, at.end))
            found.append(at)
        return found

    def _put(self, at: At, array: Array) -> None:
        if at.end <= self._end or array.nbytes < SMALL:
            at.view(self._own)[...] = array
            return
        rest = np.ascontiguousarray(array).data.cast("B")
        while rest:
            rest = rest[os.pwrite(self._file, rest, at.end - len(rest)) :]
        self._end = at.end


def _gap(taken: list[tuple[int, int]], size: int) -> int:
    """Where so many bytes are free."""
    at = FIRST
    for lo, hi in sorted(taken):
        if lo - at >= size:
            break
        at = max(at, -(-hi // ALIGNED) * ALIGNED)
    return at


def _opened(handle: Handle, number: int) -> int:
    """A file of the driver; an `OSError` where it is not."""
    file = os.open(f"/proc/{handle.process}/fd/{number}", os.O_RDWR)
    if os.pread(file, len(handle.token), 0) != handle.token:
        os.close(file)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return file
