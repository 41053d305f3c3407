"""Workers as ranks of an MPI job: `mpiexec -n 8 drmdp solve …`.

Rank 0 drives and is a worker too; the others carry out what it broadcasts: a start, then calls,
then the end, with what all ranks return or raise. Vectors are pieces in the ranks' memory, known to
the driver by number; those that it no longer refers to are dropped with the next call. An error in
a call is raised on rank 0, and the ranks go on; any other one ends the job, for the rest would wait
for ever. A rank that dies ends it too, as MPI has it: it is resumed from its checkpoint.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from drmdp.cluster import world
from drmdp.cluster.engine import Engine, Returned, Vector, Whole, argument_of
from drmdp.cluster.source import DirectorySource, Ranges
from drmdp.cluster.worker import Worker
from drmdp.errors import InputError
from drmdp.sets import AmbiguitySet
from drmdp.ui.interrupts import put_off

T = TypeVar("T")


@dataclass(frozen=True)
class PieceName:
    """The number of a vector: its piece of a rank, or `gathered` from all."""

    number: int
    gathered: bool


class RankCall(NamedTuple):
    """A call to all ranks."""

    name: str
    facts: Any
    args: tuple[Any, ...]
    numbers: list[int]  # of the arrays that stay
    dead: list[int]  # numbers that nobody asks for any more
    held: bool  # the arrays have one number together


class Rank:
    """One rank at work: its worker and its pieces."""

    def __init__(
        self, source: DirectorySource, ambiguity: AmbiguitySet, ranges: Ranges, threads: int
    ) -> None:
        self.comm = world()
        lo, hi = ranges[self.comm.rank]
        self._worker = Worker(source, ambiguity, lo, hi, threads)
        self._sizes = [b - a for a, b in ranges]
        self._pieces: dict[int, Any] = {}

    def carry_out(self, order: RankCall) -> list[Any]:
        """Do as all ranks do now, and bring the answers to rank 0, where an error of any of them is
        raised.
        """
        for number in order.dead:
            self._pieces.pop(number, None)
        args = argument_of(order.args, self._filled)
        try:
            arrays, answer = self._worker.call(order.name, order.facts, args)
            pieces = (arrays,) if order.held else arrays
            self._pieces.update(zip(order.numbers, pieces, strict=True))
            mine: Any = (True, answer)
        except Exception as error:
            mine = (False, error)
        answers = self.comm.gather(mine) or []
        failed = next((answer for done, answer in answers if not done), None)
        if failed is not None:
            raise failed
        return [answer for _, answer in answers]

    def _filled(self, arg: Any) -> Any:
        if not isinstance(arg, PieceName):
            return arg
        if not arg.gathered:
            return self._pieces[arg.number]
        piece = np.ascontiguousarray(self._pieces[arg.number], dtype=np.float64)
        vector = np.empty(sum(self._sizes))
        self.comm.Allgatherv(piece, [vector, self._sizes])
        return vector


class _Piece:
    """An array, or a tuple of them, that every rank has a piece of; forgotten by all when the
    driver forgets it.
    """

    def __init__(self, number: int, dead: list[int]) -> None:
        self.number, self._dead = number, dead

    def __del__(self) -> None:
        self._dead.append(self.number)


class MpiEngine(Engine):
    """Workers that are ranks; made by rank 0 while the others work for it."""

    def __init__(self, source: DirectorySource, ambiguity: AmbiguitySet, threads: int) -> None:
        comm = world()
        super().__init__(source, ambiguity, comm.size, threads)
        if len(self.ranges) < comm.size:
            raise InputError(f"{self.n_states} states are too few for {comm.size} ranks")
        self._numbers, self._dead = itertools.count(), list[int]()
        comm.bcast(("start", (source, ambiguity, self.ranges, threads)))
        self._rank = Rank(source, ambiguity, self.ranges, threads)

    def _run(self, name: str, args: tuple[Any, ...], n: int | None) -> Returned:
        def pick(arg: Any) -> Any:
            vector = arg.vector if isinstance(arg, Whole) else arg
            if not hasattr(vector, "pieces"):
                return arg
            return PieceName(vector.pieces[0].number, isinstance(arg, Whole))

        held = n is None
        numbers = list(itertools.islice(self._numbers, 1 if n is None else n))
        dead = self._dead[:]
        del self._dead[: len(dead)]
        order = RankCall(name, self.facts, argument_of(args, pick), numbers, dead, held)
        with put_off():  # half an order is none
            self._rank.comm.bcast(("call", order))
            answers = self._rank.carry_out(order)
        pieces = [_Piece(number, self._dead) for number in numbers]
        return pieces if held else [Vector(self, [piece]) for piece in pieces], answers

    def close(self) -> None:
        """Nothing: `drive` lets the ranks go."""


def drive(run: Callable[[], T]) -> T:
    """On every rank what `run` returns or raises on rank 0, whose workers the others are
    meanwhile.
    """
    comm = world()
    error, result = None, None
    try:
        if comm.rank:
            error, result = _serve(comm)
        else:
            try:
                result = run()
            except Exception as raised:
                error = raised
            comm.bcast(("end", (error, result)))
    except BaseException:
        traceback.print_exc()
        comm.Abort(1)
        raise
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _serve(comm: Any) -> Any:
    """Work for rank 0 until it is done; returns what it says then."""
    while True:
        kind, content = comm.bcast(None)
        if kind == "end":
            return content
        if kind == "start":
            rank = Rank(*content)
        else:
            rank.carry_out(content)
