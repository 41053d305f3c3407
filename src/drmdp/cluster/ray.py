"""Workers as Ray actors: on the cores of this machine, or on a cluster.

Vectors are pieces in Ray's object store: workers of one machine share them, others fetch them from each other, and the driver holds references. They
outlive the worker that made them. Where a worker dies, Ray starts it again and repeats the call that was lost; the answer has the same bits, as calls
depend on nothing but their arguments. A worker that no longer answers at all is an error that names it.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.engine import Engine, Whole, own
from drmdp.cluster.source import Source
from drmdp.cluster.vector import Vector
from drmdp.cluster.worker import Worker
from drmdp.errors import InputError, imported
from drmdp.sets import AmbiguitySet

PATIENCE = 60.0
"""Seconds without a sign of life after which a worker is given up."""


TOKENS = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


def _ask_for_tokens(alone: bool) -> None:
    """Have Ray, before it is imported, accept nobody without a token; a cluster of one process makes its own."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    known = os.environ.keys() & TOKENS or Path("~/.ray/auth_token").expanduser().exists()
    if alone and os.environ["RAY_AUTH_MODE"] == "token" and not known:
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


class _Slot:
    """Where an argument was: the values from `start` on, put together if there are several."""

    def __init__(self, start: int, stop: int | None = None) -> None:
        self.start, self.stop = start, stop

    def of(self, values: tuple[Any, ...]) -> Any:
        return values[self.start] if self.stop is None else np.concatenate(values[self.start : self.stop])


class Actor:
    """A worker in a process of its own."""

    def __init__(self, source: Source, ball: AmbiguitySet, lo: int, hi: int, threads: int) -> None:
        self._worker = Worker(source, ball, lo, hi, threads)

    def call(self, name: str, facts: Any, args: tuple[Any, ...], kept: int | None, *values: Any) -> Any:
        """Answer a call: the arrays one by one and then the rest, or, to be held, the arrays as one."""
        given = tuple(_filled(arg, values) for arg in args)
        arrays, answer = self._worker.call(name, facts, given)
        if kept is None:
            return arrays
        return (*arrays, answer) if kept else answer

    def alive(self) -> int:
        """Number of the process; answered beside a call that is going on."""
        return os.getpid()


def _filled(arg: Any, values: tuple[Any, ...]) -> Any:
    if isinstance(arg, tuple):
        return tuple(_filled(part, values) for part in arg)
    return arg.of(values) if isinstance(arg, _Slot) else arg


class RayEngine(Engine):
    """Workers that Ray runs."""

    def __init__(self, source: Source, ball: AmbiguitySet, workers: int, threads: int, address: str | None) -> None:
        super().__init__(source, ball, workers, threads)
        if "ray" not in sys.modules:
            _ask_for_tokens(address is None)
        ray = self._ray = imported("ray", "ray")
        self._started = not ray.is_initialized()
        if self._started:
            self._start(address, len(self.ranges) * threads)
        make = ray.remote(num_cpus=threads, max_restarts=-1, max_task_retries=-1, concurrency_groups={"signs": 1})(
            Actor
        )
        self._actors = [make.remote(source, ball, lo, hi, threads) for lo, hi in self.ranges]

    def _start(self, address: str | None, cores: int) -> None:
        if address is not None:
            self._ray.init(address=address, log_to_driver=False)
            return
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
        self._ray.init(num_cpus=cores, _node_ip_address="127.0.0.1", **quiet)

    def _run(self, name: str, args: tuple[Any, ...], kept: int, ask: bool) -> tuple[list[Any], list[Any]]:
        found = [self._call(k, name, args, kept) for k in range(len(self.ranges))]
        if not kept:
            return [], self._get(found)
        vectors = [Vector(self, [refs[j] for refs in found]) for j in range(kept)]
        return vectors, self._get([refs[-1] for refs in found]) if ask else []

    def _hold(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        return [self._call(k, name, args, None) for k in range(len(self.ranges))]

    def _call(self, k: int, name: str, args: tuple[Any, ...], kept: int | None) -> Any:
        values: list[Any] = []

        def pick(arg: Any) -> Any:
            at = len(values)
            if isinstance(arg, np.ndarray):
                return arg
            if isinstance(arg, Whole):
                values.extend(arg.vector.pieces)
                return _Slot(at, len(values))
            values.append(arg.pieces[k])
            return _Slot(at)

        spec = tuple(own(arg, pick) for arg in args)
        method = self._actors[k].call.options(num_returns=(kept or 0) + 1)
        return method.remote(name, self.facts, spec, kept, *values)

    def _get(self, refs: list[Any]) -> list[Any]:
        """Wait for answers, as long as every worker gives signs of life."""
        ray = self._ray
        try:
            while True:
                _, pending = ray.wait(refs, num_returns=len(refs), timeout=PATIENCE / 4)
                if not pending:
                    return list(ray.get(refs))
                self._look()
        except ray.exceptions.RayTaskError as error:
            raise error.cause or error from None

    def _look(self) -> None:
        ray, begin = self._ray, time.monotonic()
        signs = {actor.alive.options(concurrency_group="signs").remote(): k for k, actor in enumerate(self._actors)}
        _, silent = ray.wait(list(signs), num_returns=len(signs), timeout=PATIENCE)
        if silent:
            lo, hi = self.ranges[signs[silent[0]]]
            waited = time.monotonic() - begin
            raise InputError(
                f"the worker of the states {lo} … {hi - 1} has not answered for {waited:.0f} s: it hangs or cannot be reached; "
                "what was checkpointed is kept, and `drmdp resume` goes on from there"
            )

    def gather(self, vector: Any) -> Array:
        """A vector, here."""
        return np.concatenate(self._get(vector.pieces))

    def scatter(self, values: Array) -> Vector:
        """Numbers at hand as a vector."""
        return Vector(self, [self._ray.put(values[lo:hi]) for lo, hi in self.ranges])

    def close(self) -> None:
        """End the workers, and Ray if it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()
