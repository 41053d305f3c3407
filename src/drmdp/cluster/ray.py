"""Workers as Ray actors: on the cores of this machine, or on a cluster.

Vectors are in memory that all share, or in Ray's object store (`drmdp.cluster.routes`), and outlive the worker that made them. Where a worker dies, Ray
starts it again, and the driver, which waits for every call, repeats the one that was lost; the answer has the same bits, as calls depend on nothing but
their arguments. A worker that dies of every call, or no longer answers at all, is an error that names it.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.actor import REACH, Actor, Order
from drmdp.cluster.engine import Engine, own
from drmdp.cluster.routes import ByMemory, ByStore, Route
from drmdp.cluster.session import one_machine, start
from drmdp.cluster.shared import Shared
from drmdp.cluster.source import Source
from drmdp.cluster.vector import Vector
from drmdp.core.facts import Facts
from drmdp.errors import InputError, brief
from drmdp.sets import AmbiguitySet

PATIENCE = 300.0
"""Seconds without a sign of life after which a worker is given up."""
REPEATS = 10
"""How often a call is repeated whose worker died."""
RETURN = 100
"""How often, with a tenth of a second in between, a worker is looked for that seems to be gone for good."""
GO_ON = "what was checkpointed is kept, and `drmdp resume` goes on from there"


class RayEngine(Engine):
    """Workers that Ray runs."""

    def __init__(self, source: Source, ball: AmbiguitySet, workers: int, threads: int, address: str | None) -> None:
        super().__init__(source, ball, workers, threads)
        self._ray, self._started = start(address, len(self.ranges) * threads)
        self._shared = Shared(self.ranges, self.n_states) if one_machine(self._ray) else None
        self._route: Route = ByStore(self._ray, self.ranges)
        self._numbers = itertools.count()
        at = [None for _ in self.ranges] if self._shared is None else self._shared.handles
        self._actors = [self._actor(source.sent(*own), ball, *own, threads, at[k]) for k, own in enumerate(self.ranges)]

    def _actor(self, *given: Any) -> Any:
        """A worker; its arguments start it again."""
        settings = {"num_cpus": self.threads, "max_restarts": -1, "concurrency_groups": {"signs": 1}}
        return self._ray.remote(**settings)(Actor).remote(*given)

    def survey(self) -> Facts:
        """Start: where all share memory, vectors go there."""
        if self._shared is not None and all(self._each(REACH, (), 0)[1]):
            self._route = ByMemory(self._shared, len(self.ranges))
        return super().survey()

    def _run(self, name: str, args: tuple[Any, ...], kept: int, ask: bool) -> tuple[list[Any], list[Any]]:
        pieces, answers = self._each(name, args, kept)
        return [Vector(self, [own[j] for own in pieces]) for j in range(kept)], answers

    def _hold(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        return self._each(name, args, None)[0]

    def _each(self, name: str, args: tuple[Any, ...], kept: int | None) -> tuple[list[Any], list[Any]]:
        """Call all workers and wait for them: where what stays is, and what they answer. What a worker died of is asked again."""
        ray, workers, room = self._ray, range(len(self.ranges)), self._route.room(kept or 0)
        found = [self._call(k, name, args, kept, room) for k in workers]
        answers, tries, idle = [None for _ in workers], [0 for _ in workers], [0 for _ in workers]
        waiting = {found[k][-1]: k for k in workers}
        while waiting:
            ready, pending = ray.wait(list(waiting), num_returns=len(waiting), timeout=PATIENCE / 4)
            lost = []
            for ref in ready:
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
            for ref in pending if not ready else ():
                k = waiting[ref]
                idle[k] = 0 if self._busy(k) else idle[k] + 1
                if idle[k] == 2:  # nobody works on it
                    del waiting[ref]
                    lost.append(k)
            for k in lost:
                found[k] = self._call(k, name, args, kept, room)
                waiting[found[k][-1]] = k
        pieces, told = zip(*(self._route.pieces(k, found[k], answers[k], room) for k in workers), strict=True)
        return list(pieces), list(told)

    def _call(self, k: int, name: str, args: tuple[Any, ...], kept: int | None, room: Any) -> Any:
        values: list[Any] = []

        def pick(arg: Any) -> Any:
            return arg if isinstance(arg, np.ndarray) else self._route.given(arg, k, values)

        given = tuple(own(arg, pick) for arg in args)  # which may take calls
        order, returns = self._route.ordered(Order(next(self._numbers), name, self.facts, given), k, kept, room)
        refs = self._actors[k].call.options(num_returns=returns).remote(order, *values)
        return refs if isinstance(refs, list) else [refs]

    def _busy(self, k: int) -> bool:
        """Whether a worker is at work, once it gives a sign of life."""
        ray, end, dead = self._ray, time.monotonic() + PATIENCE, 0
        while (left := end - time.monotonic()) > 0:
            try:
                signs = self._actors[k].alive.options(concurrency_group="signs")
                return bool(ray.get(signs.remote(), timeout=left)[1])
            except ray.exceptions.GetTimeoutError:
                break
            except ray.exceptions.ActorDiedError as error:  # or it starts again in a moment
                dead += 1
                if dead > RETURN:
                    raise self._given_up(k, f"does not start: {brief(str(error), 500)}") from None
            except ray.exceptions.RayActorError:
                pass
            time.sleep(0.1)
        why = f"it hangs, cannot be reached, or has no place among {len(self.ranges)} × {self.threads} free cores"
        raise self._given_up(k, f"has not answered for {PATIENCE:.0f} s: {why}")

    def _given_up(self, k: int, why: str) -> InputError:
        return InputError(f"the worker of the states {self.ranges[k][0]} … {self.ranges[k][1] - 1} {why}; {GO_ON}")

    def gather(self, vector: Any) -> Array:
        """A vector, here."""
        return self._route.gather(vector)

    def scatter(self, values: Array) -> Vector:
        """Numbers at hand as a vector."""
        return Vector(self, self._route.scatter(values))

    def close(self) -> None:
        """End the workers, and Ray if it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._shared is not None:
            self._shared.close()
        if self._started:
            self._ray.shutdown()
