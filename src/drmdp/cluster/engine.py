"""The seam: what runs workers, and what the driver sees of them.

An engine starts one `Worker` for each range of states and makes calls to all of them. What a call keeps stays with the workers: the driver gets vectors
(`drmdp.cluster.vector`, or plain arrays where everything is in one process) and holdings, which it can only hand back. So the driver holds numbers
and references.

**Exchanges.** An argument wrapped in `Whole` is made known to all workers: each receives the 8 (S − n) bytes that it does not own. `traffic` counts
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.source import Source
from drmdp.core.facts import Facts, together
from drmdp.core.text import count, memory
from drmdp.sets import AmbiguitySet


@dataclass(frozen=True)
class Whole:
    """A vector that every worker gets whole."""

    vector: Any


@dataclass(frozen=True)
class Holding:
    """Arrays of any shape that stay with the workers, a tuple of them for each range."""

    pieces: list[Any]


@dataclass
class Traffic:
    """What was asked of the workers."""

    calls: dict[str, int] = field(default_factory=dict)
    exchanges: int = 0
    bytes: int = 0  # received by all workers together in exchanges

    def __str__(self) -> str:
        return f"{count(self.exchanges, 'exchange')}, {memory(self.bytes)}"


class Engine(ABC):
    """Workers of a model and a set."""

    def __init__(self, source: Source, ball: AmbiguitySet, parts: int, threads: int) -> None:
        self.source, self.ball, self.threads = source, ball, threads
        self.ranges = source.ranges(parts)
        self.n_states = source.n_states
        self.traffic = Traffic()
        self.facts: Facts | None = None

    def survey(self) -> Facts:
        """Start: every range tells its facts, and every later call gets those of all."""
        self.facts = together(self.run("survey")[1])
        return self.facts

    def run(self, name: str, *args: Any, kept: int = 0, ask: bool = True) -> tuple[list[Any], list[Any]]:
        """Call all workers: `kept` vectors that stay with them, and what each answers, if it is asked for."""
        self._count(name, args)
        return self._run(name, args, kept, ask or not kept)

    def hold(self, name: str, *args: Any) -> Holding:
        """Call all workers and leave with them what they return."""
        self._count(name, args)
        return Holding(self._hold(name, args))

    def _count(self, name: str, args: tuple[Any, ...]) -> None:
        traffic = self.traffic
        traffic.calls[name] = traffic.calls.get(name, 0) + 1
        whole = _wholes(args)
        traffic.exchanges += whole
        traffic.bytes += whole * 8 * self.n_states * (len(self.ranges) - 1)

    @abstractmethod
    def _run(self, name: str, args: tuple[Any, ...], kept: int, ask: bool) -> tuple[list[Any], list[Any]]: ...

    @abstractmethod
    def _hold(self, name: str, args: tuple[Any, ...]) -> list[Any]: ...

    @abstractmethod
    def gather(self, vector: Any) -> Array:
        """A vector, here."""

    @abstractmethod
    def scatter(self, values: Array) -> Any:
        """Numbers at hand as a vector."""

    @abstractmethod
    def close(self) -> None:
        """End the workers."""


def own(arg: Any, pick: Any) -> Any:
    """An argument as one worker gets it; `pick` gives its piece of a vector, of a holding or of what is whole."""
    if isinstance(arg, tuple):
        return tuple(own(part, pick) for part in arg)
    if isinstance(arg, Whole | Holding) or hasattr(arg, "pieces") or isinstance(arg, np.ndarray):
        return pick(arg)
    return arg


def _wholes(arg: Any) -> int:
    """Vectors that are made known to all for an argument."""
    return sum(map(_wholes, arg)) if isinstance(arg, tuple) else isinstance(arg, Whole)
