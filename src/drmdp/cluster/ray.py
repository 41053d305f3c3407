"""Workers as Ray actors: on the cores of this machine, or on a cluster.

Vectors are pieces in Ray's object store: workers of one machine share them, others fetch them from each other, and the driver holds references. They
outlive the worker that made them. Where a worker dies, Ray starts it again and repeats the call that was lost; the answer has the same bits, as calls
depend on nothing but their arguments. A worker that dies of every call, or no longer answers at all, is an error that names it.
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
from drmdp.cluster.actor import Actor, Slot
from drmdp.cluster.engine import Engine, Whole, own
from drmdp.cluster.source import Source
from drmdp.cluster.vector import Vector
from drmdp.errors import InputError, brief, imported
from drmdp.sets import AmbiguitySet

PATIENCE = 300.0
"""Seconds without a sign of life after which a worker is given up."""
REPEATS = 10
"""How often a call is repeated whose worker died."""
GO_ON = "what was checkpointed is kept, and `drmdp resume` goes on from there"
TOKENS = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


def _ask_for_tokens(alone: bool) -> None:
    """Have Ray, before it is imported, accept nobody without a token; a cluster of one process makes its own."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    known = os.environ.keys() & TOKENS or Path("~/.ray/auth_token").expanduser().exists()
    if alone and os.environ["RAY_AUTH_MODE"] == "token" and not known:
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


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
        self._actors = [self._actor(source, ball, lo, hi, threads) for lo, hi in self.ranges]

    def _start(self, address: str | None, cores: int) -> None:
        if address is not None:
            self._ray.init(address=address, log_to_driver=False)
            return
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
        self._ray.init(num_cpus=cores, _node_ip_address="127.0.0.1", **quiet)

    def _actor(self, *given: Any) -> Any:
        """A worker; its arguments start it again."""
        again = {"max_restarts": -1, "max_task_retries": REPEATS, "concurrency_groups": {"signs": 1}}
        return self._ray.remote(num_cpus=self.threads, **again)(Actor).remote(*given)

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
                return Slot(at, len(values))
            values.append(arg.pieces[k])
            return Slot(at)

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
        except ray.exceptions.RayActorError as error:
            raise InputError(
                f"a worker died {REPEATS + 1} times of one call: {brief(str(error), 500)}; {GO_ON}"
            ) from None

    def _look(self) -> None:
        ray, begin = self._ray, time.monotonic()
        signs = {actor.alive.options(concurrency_group="signs").remote(): k for k, actor in enumerate(self._actors)}
        _, silent = ray.wait(list(signs), num_returns=len(signs), timeout=PATIENCE)
        if silent:
            lo, hi = self.ranges[signs[silent[0]]]
            cores = f"{len(self.ranges)} × {self.threads}"
            raise InputError(
                f"the worker of the states {lo} … {hi - 1} has not answered for {time.monotonic() - begin:.0f} s: it hangs, cannot be "
                f"reached, or has not found its place among {cores} free cores; {GO_ON}"
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
