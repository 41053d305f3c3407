"""Workers as ranks of an MPI job: `mpiexec -n 8 drmdp solve …`.

Rank 0 drives and is a worker too; the others work for it (`drmdp.cluster.ranks`). Vectors are pieces in the ranks' memory, known to the driver by number;
those that it no longer refers to are dropped with the next call. A rank that dies ends the whole job, as MPI has it: it is resumed from its
checkpoint.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.engine import Engine, Whole, own
from drmdp.cluster.ranks import Named, Order, Rank, world
from drmdp.cluster.source import Source
from drmdp.cluster.vector import Vector
from drmdp.core.interrupts import put_off
from drmdp.errors import InputError
from drmdp.sets import AmbiguitySet


class _Piece:
    """An array, or a tuple of them, that every rank has a piece of; forgotten by all when the driver forgets it."""

    def __init__(self, number: int, dead: list[int]) -> None:
        self.number, self._dead = number, dead

    def __del__(self) -> None:
        self._dead.append(self.number)


class MpiEngine(Engine):
    """Workers that are ranks; made by rank 0 while the others work for it."""

    def __init__(self, source: Source, ball: AmbiguitySet, threads: int) -> None:
        comm = world()
        super().__init__(source, ball, comm.size, threads)
        if len(self.ranges) < comm.size:
            raise InputError(f"{self.n_states} states are too few for {comm.size} ranks")
        self._numbers, self._dead = itertools.count(), list[int]()
        comm.bcast(("start", (source, ball, self.ranges, threads)))
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
            return Named(piece.number, whole)

        dead = self._dead[:]
        del self._dead[: len(dead)]
        order = Order(name, self.facts, tuple(own(arg, pick) for arg in args), numbers, dead, held)
        with put_off():  # half an order is none
            self._rank.comm.bcast(("call", order))
            return self._rank.carry_out(order)

    def gather(self, vector: Any) -> Array:
        """A vector, here."""
        return np.concatenate(self.run("tell", vector)[1])

    def scatter(self, values: Array) -> Any:
        """Numbers at hand as a vector."""
        return self.run("own", values, kept=1)[0][0]

    def close(self) -> None:
        """Nothing: `drive` lets the ranks go."""
