"""What every rank of an MPI job does: it has a worker and pieces of vectors, and carries out what rank 0 broadcasts.

Rank 0 tells a start, then calls, then the end, with what all ranks return or raise. An error in a call is told to rank 0, and the ranks go on; any other
one ends the whole job, for the rest would wait for ever.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.source import Source
from drmdp.cluster.worker import Worker
from drmdp.errors import imported
from drmdp.sets import AmbiguitySet

T = TypeVar("T")


def world() -> Any:
    """All ranks."""
    return imported("mpi4py.MPI", "mpi").COMM_WORLD


class Named(NamedTuple):
    """A piece, or with `whole` all of them, by its number."""

    number: int
    whole: bool


class Order(NamedTuple):
    """A call to all ranks."""

    name: str
    facts: Any
    args: tuple[Any, ...]
    numbers: list[int]  # of the arrays that stay
    dead: list[int]  # numbers that nobody asks for any more
    held: bool  # the arrays have one number together


class Rank:
    """One rank at work: its worker and its pieces."""

    def __init__(self, source: Source, ball: AmbiguitySet, ranges: list[tuple[int, int]], threads: int) -> None:
        self.comm = world()
        lo, hi = ranges[self.comm.rank]
        self._worker = Worker(source, ball, lo, hi, threads)
        self._sizes = [b - a for a, b in ranges]
        self._pieces: dict[int, Any] = {}

    def carry_out(self, order: Order) -> list[Any]:
        """Do as all ranks do now, and bring the answers to rank 0, where an error of any of them is raised."""
        for number in order.dead:
            self._pieces.pop(number, None)
        given = tuple(self._filled(arg) for arg in order.args)
        try:
            mine: Any = (True, self._answer(order, given))
        except Exception as error:
            mine = (False, error)
        answers = self.comm.gather(mine) or []
        failed = next((found for done, found in answers if not done), None)
        if failed is not None:
            raise failed
        return [found for _, found in answers]

    def _answer(self, order: Order, given: tuple[Any, ...]) -> Any:
        arrays, answer = self._worker.call(order.name, order.facts, given)
        self._pieces.update({order.numbers[0]: arrays} if order.held else zip(order.numbers, arrays, strict=True))
        return answer

    def _filled(self, arg: Any) -> Any:
        if isinstance(arg, Named):
            return self._whole(arg.number) if arg.whole else self._pieces[arg.number]
        return tuple(self._filled(part) for part in arg) if isinstance(arg, tuple) else arg

    def _whole(self, number: int) -> Array:
        piece = np.ascontiguousarray(self._pieces[number], dtype=np.float64)
        found = np.empty(sum(self._sizes))
        self.comm.Allgatherv(piece, [found, self._sizes])
        return found


def drive(run: Callable[[], T]) -> T:
    """On every rank what `run` returns or raises on rank 0, whose workers the others are meanwhile."""
    comm = world()
    error, found = None, None
    try:
        if comm.rank:
            error, found = _serve(comm)
        else:
            try:
                found = run()
            except Exception as raised:
                error = raised
            comm.bcast(("end", (error, found)))
    except BaseException:
        traceback.print_exc()
        comm.Abort(1)
        raise
    if error is not None:
        raise error
    return found  # type: ignore[return-value]


def _serve(comm: Any) -> Any:
    """Work for rank 0 until it is done; returns what it says then."""
    while True:
        kind, told = comm.bcast(None)
        if kind == "end":
            return told
        if kind == "start":
            rank = Rank(*told)
        else:
            rank.carry_out(told)
