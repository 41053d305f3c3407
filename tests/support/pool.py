"""Ray's engine on actors that are kept from one solve to the next: to start one takes longer than
to solve a small model.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from drmdp.cluster import Ray
from drmdp.cluster.ray import Actor, RayEngine

_numbers = itertools.count()
_actors: dict[int, Any] = {}


class Seat(Actor):
    """An actor that becomes another worker when it is told of one."""

    def __init__(self):
        self._number = -1

    def call(self, number, given, *args):
        """Answer as the worker of this number."""
        if number != self._number:
            super().__init__(*given)
            self._number = number
        return super().call(*args)


class _Taken:
    """A seat as the engine sees its actor."""

    def __init__(self, actor, given):
        self._actor, self._number, self._given = actor, next(_numbers), given
        self.alive, self.call = actor.alive, self

    def options(self, **settings):
        """As Ray has it."""
        method = self._actor.call.options(**settings)
        return type(
            "Method",
            (),
            {"remote": lambda _, *args: method.remote(self._number, self._given, *args)},
        )()


class PooledEngine(RayEngine):
    """Workers that sit where others sat before."""

    def _actor(self, *given):
        at = self.ranges.index(given[2:4])
        if at not in _actors:
            settings = {"num_cpus": 0, "max_restarts": -1, "concurrency_groups": {"signs": 1}}
            _actors[at] = self._ray.remote(**settings)(Seat).remote()
        return _Taken(_actors[at], given)

    def close(self):
        """The seats stay."""


@dataclass(frozen=True)
class Pooled(Ray):
    """Ray with seats."""

    def start(self, source, ambiguity, scratch):
        """The engine."""
        return PooledEngine(source, ambiguity, self)
