"""Workers as Ray actors: on the cores of this machine, or on a cluster.

Vectors are in Ray's object store, where workers of one machine share them and others fetch them
from each other, and outlive the worker that made them; the driver holds references. Where a worker
dies, Ray starts it again, and the driver, which waits for every call, repeats the one that was
lost; the answer has the same bits, as calls depend on nothing but their arguments. A worker that
dies of every call, or no longer answers at all, is an error that names it.

Ray brings what stands among the arguments of a call itself, not what is inside of them. So vectors
travel as `values` after the others, and a `Slot` stands where one was. It hands out arrays that
cannot be written, and routines refuse such where others have what they fill. A worker writes to no
argument, so it gets views like any other array.
"""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.cluster import Ray
from drmdp.cluster.engine import Engine, Returned, Vector, Whole, argument_of
from drmdp.cluster.session import start
from drmdp.cluster.source import DirectorySource
from drmdp.cluster.worker import Worker
from drmdp.errors import InputError, brief
from drmdp.sets import AmbiguitySet

PATIENCE = 300.0
"""Seconds without a sign of life after which a worker is given up."""
REPEATS = 10
"""How often a call is repeated whose worker died."""
RETURN = 100
"""How often, with a tenth of a second in between, a worker is looked for that seems to be gone for
good.
"""
GO_ON = "what was checkpointed is kept, and `drmdp resume` goes on from there"


class ActorCall(NamedTuple):
    """A call."""

    number: int  # calls come in this order
    name: str
    facts: Any
    args: tuple[Any, ...]
    held: bool  # the arrays are one thing


@dataclass(frozen=True)
class Slot:
    """The place of an argument: the value at `start`, or all up to `stop`, joined."""

    start: int
    stop: int | None = None

    def of(self, values: tuple[Any, ...]) -> Any:
        """The argument."""
        if self.stop is not None:
            return np.concatenate(values[self.start : self.stop])
        value = values[self.start]
        return tuple(map(plain, value)) if isinstance(value, tuple) else plain(value)


class _ArrayBuffer:
    """The memory of an array, for another view of it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def plain(array: Array) -> Array:
    """An array itself, or a view of one that cannot be written which does not say so."""
    return array if array.flags.writeable else np.asarray(_ArrayBuffer(array))


class Actor:
    """A worker in a process of its own."""

    _busy = False

    def __init__(self, *given: Any) -> None:
        self._worker, self._last = Worker(*given), -1

    def call(self, order: ActorCall, *values: Any) -> Any:
        """Answer a call: the arrays one by one, or as one to be held, for Ray to keep them, and the
        rest.
        """
        if order.number < self._last:
            raise RuntimeError("a call that was repeated long ago")
        self._busy, self._last = True, order.number

        def fill(arg: Any) -> Any:
            return arg.of(values) if isinstance(arg, Slot) else arg

        try:
            args = argument_of(order.args, fill)
            arrays, answer = self._worker.call(order.name, order.facts, args)
        finally:
            self._busy = False
        if order.held:
            return arrays, answer
        return (*arrays, answer) if arrays else answer

    def alive(self) -> tuple[int, bool]:
        """Number of the process, and whether it is at work; told beside a call that is going on."""
        return os.getpid(), self._busy


class RayEngine(Engine):
    """Workers that Ray runs."""

    def __init__(self, source: DirectorySource, ambiguity: AmbiguitySet, cluster: Ray) -> None:
        threads = cluster.threads
        super().__init__(source, ambiguity, cluster.workers, threads)
        self._ray, self._started = start(cluster.address, len(self.ranges) * threads)
        self._numbers = itertools.count()
        parts = ((source.sent(lo, hi), ambiguity, lo, hi, threads) for lo, hi in self.ranges)
        self._actors = [self._actor(*part) for part in parts]

    def _actor(self, *args: Any) -> Any:
        """A worker; its arguments start it again."""
        groups = {"signs": 1}
        settings = {"num_cpus": self.threads, "max_restarts": -1, "concurrency_groups": groups}
        return self._ray.remote(**settings)(Actor).remote(*args)

    def _run(self, name: str, args: tuple[Any, ...], n: int | None) -> Returned:
        """Call all workers and wait for them; what a worker died of is asked again."""
        ray, workers = self._ray, range(len(self.ranges))
        calls = [self._call(k, name, args, n) for k in workers]
        answers, tries, idle = [None] * len(calls), [0] * len(calls), [0] * len(calls)
        waiting = {calls[k][-1]: k for k in workers}
        while waiting:
            done, pending = ray.wait(list(waiting), num_returns=len(waiting), timeout=PATIENCE / 4)
            lost = []
            for ref in done:
                k = waiting.pop(ref)
                try:
                    answers[k] = ray.get(ref)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause or error from None
                except ray.exceptions.RayActorError as error:
                    tries[k] += 1
                    if tries[k] > REPEATS:
                        why = f"died {tries[k]} times of one call: {brief(str(error), 300)}"
                        raise self._given_up(k, why) from None
                    self._busy(k)
                    lost.append(k)
            for ref in pending if not done else ():
                k = waiting[ref]
                idle[k] = 0 if self._busy(k) else idle[k] + 1
                if idle[k] == 2:  # nobody works on it
                    del waiting[ref]
                    lost.append(k)
            for k in lost:
                calls[k] = self._call(k, name, args, n)
                waiting[calls[k][-1]] = k
        if n is None:
            return [refs[:-1] for refs in calls], answers
        return [Vector(self, [refs[j] for refs in calls]) for j in range(n)], answers

    def _call(self, k: int, name: str, args: tuple[Any, ...], n: int | None) -> Any:
        values: list[Any] = []

        def pick(arg: Any) -> Any:
            at = len(values)
            if isinstance(arg, Whole):
                values.extend(arg.vector.pieces)
                return Slot(at, len(values))
            if not hasattr(arg, "pieces"):
                return arg
            piece = arg.pieces[k]
            values.append(piece[0] if isinstance(piece, list) else piece)
            return Slot(at)

        picked = argument_of(args, pick)  # which may take calls
        order = ActorCall(next(self._numbers), name, self.facts, picked, n is None)
        call = self._actors[k].call.options(num_returns=(1 if n is None else n) + 1)
        refs = call.remote(order, *values)
        return refs if isinstance(refs, list) else [refs]

    def _busy(self, k: int) -> bool:
        """Whether a worker is at work, once it gives a sign of life."""
        ray, end, dead = self._ray, time.monotonic() + PATIENCE, 0
        while (remaining := end - time.monotonic()) > 0:
            try:
                signs = self._actors[k].alive.options(concurrency_group="signs")
                return bool(ray.get(signs.remote(), timeout=remaining)[1])
            except ray.exceptions.GetTimeoutError:
                break
            except ray.exceptions.ActorDiedError as error:  # or it starts again in a moment
                dead += 1
                if dead > RETURN:
                    raise self._given_up(k, f"does not start: {brief(str(error), 500)}") from None
            except ray.exceptions.RayActorError:
                pass
            time.sleep(0.1)
        cores = f"{len(self.ranges)} × {self.threads} free cores"
        why = f"it hangs, cannot be reached, or has no place among {cores}"
        raise self._given_up(k, f"has not answered for {PATIENCE:.0f} s: {why}")

    def _given_up(self, k: int, why: str) -> InputError:
        lo, hi = self.ranges[k]
        return InputError(f"the worker of the states {lo} … {hi - 1} {why}; {GO_ON}")

    def gather(self, vector: Any) -> Array:
        """The numbers of a vector, as an array."""
        return np.concatenate(self._ray.get(vector.pieces))

    def scatter(self, values: Array) -> Vector:
        """Make a vector of an array."""
        return Vector(self, [self._ray.put(values[lo:hi]) for lo, hi in self.ranges])

    def close(self) -> None:
        """End the workers, and Ray if it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()
