"""Workers as ranks of an MPI job: `mpiexec -n 8 drmdp solve …`.

Rank 0 drives and is a worker too; the others wait for calls. Vectors are pieces in the ranks' memory, known to the driver by number; those that it no
longer refers to are dropped with the next call. A rank that dies ends the whole job, as MPI has it: it is resumed from its checkpoint.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.engine import Engine, Whole, own
from drmdp.cluster.source import Source
from drmdp.cluster.vector import Vector
from drmdp.cluster.worker import Worker
from drmdp.errors import InputError, imported
from drmdp.sets import AmbiguitySet


def world() -> Any:
    """All ranks."""
    return imported("mpi4py.MPI", "mpi").COMM_WORLD


class _Piece:
    """An array, or a tuple of them, that every rank has a piece of; forgotten by all when the driver forgets it."""

    def __init__(self, number: int, dead: list[int]) -> None:
        self.number, self._dead = number, dead

    def __del__(self) -> None:
        self._dead.append(self.number)


class _Named:
    """A piece, or with `whole` all of them, by its number."""

    def __init__(self, number: int, whole: bool = False) -> None:
        self.number, self.whole = number, whole


class Rank:
    """One rank at work: its worker and its pieces."""

    def __init__(self, source: Source, ball: AmbiguitySet, ranges: list[tuple[int, int]], threads: int) -> None:
        self.comm = world()
        lo, hi = ranges[self.comm.rank]
        self._worker = Worker(source, ball, lo, hi, threads)
        self._sizes = [b - a for a, b in ranges]
        self.pieces: dict[int, Any] = {}

    def answer(self, order: Any) -> Any:
        """Carry out an order of the driver; all ranks do so at the same time."""
        name, facts, args, numbers, dead, held = order
        for number in dead:
            self.pieces.pop(number, None)
        arrays, answer = self._worker.call(name, facts, tuple(self._filled(arg) for arg in args))
        self.pieces.update({numbers[0]: arrays} if held else zip(numbers, arrays, strict=True))
        return answer

    def _filled(self, arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple(self._filled(part) for part in arg)
        if not isinstance(arg, _Named):
            return arg
        return self.whole(arg.number) if arg.whole else self.pieces[arg.number]

    def whole(self, number: int) -> Array:
        """All pieces of a vector."""
        piece = np.ascontiguousarray(self.pieces[number], dtype=np.float64)
        found = np.empty(sum(self._sizes))
        self.comm.Allgatherv(piece, [found, self._sizes])
        return found


class MpiEngine(Engine):
    """Workers that are ranks; made by rank 0 while the others `serve`."""

    def __init__(self, source: Source, ball: AmbiguitySet, threads: int) -> None:
        comm = world()
        super().__init__(source, ball, comm.size, threads)
        if len(self.ranges) < comm.size:
            raise InputError(f"{self.n_states} states are too few for {comm.size} ranks")
        self._numbers, self._dead = itertools.count(), list[int]()
        comm.bcast((source, ball, self.ranges, threads))
        self._rank = Rank(source, ball, self.ranges, threads)

    def _run(self, name: str, args: tuple[Any, ...], kept: int, ask: bool) -> tuple[list[Any], list[Any]]:
        numbers = [next(self._numbers) for _ in range(kept)]
        answers = self._order(name, args, numbers, False)
        return [Vector(self, [_Piece(number, self._dead)]) for number in numbers], answers

    def _hold(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        number = next(self._numbers)
        self._order(name, args, [number], True)
        return [_Piece(number, self._dead)]

    def _order(self, name: str, args: tuple[Any, ...], numbers: list[int], held: bool) -> list[Any]:
        def pick(arg: Any) -> Any:
            if isinstance(arg, np.ndarray):
                return arg
            whole = isinstance(arg, Whole)
            piece = (arg.vector if isinstance(arg, Whole) else arg).pieces[0]
            return _Named(piece.number, whole)

        dead = self._dead[:]
        del self._dead[: len(dead)]
        order = name, self.facts, tuple(own(arg, pick) for arg in args), numbers, dead, held
        self._rank.comm.bcast(order)
        return _together(self._rank, order)

    def gather(self, vector: Any) -> Array:
        """A vector, here."""
        return np.concatenate(self.run("tell", vector)[1])

    def scatter(self, values: Array) -> Any:
        """Numbers at hand as a vector."""
        return self.run("own", values, kept=1)[0][0]

    def close(self) -> None:
        """Let the other ranks go."""
        self._rank.comm.bcast(None)


def _together(rank: Rank, order: Any) -> list[Any]:
    """Carry out an order, and bring all answers to rank 0; an error anywhere is one for all."""
    try:
        mine: Any = (True, rank.answer(order))
    except Exception as error:
        mine = (False, error)
    answers = rank.comm.gather(mine)
    failed = next((found for done, found in answers or [mine] if not done), None)
    if failed is not None and rank.comm.rank == 0:
        raise failed
    return [found for _, found in answers or []]


def serve() -> None:
    """Be a worker of rank 0 until it is done."""
    comm = world()
    start = comm.bcast(None)
    if start is None:
        return
    rank = Rank(*start)
    while (order := comm.bcast(None)) is not None:
        _together(rank, order)
