"""The interface of engines: one `Worker` for each range of states, and calls to all of them.

A call *keeps* vectors with the workers (`Vector`, or plain arrays where everything is in one
process), *holds* arrays of any shape, which the driver can only hand back, or *asks* for an answer
of each worker. So the driver has numbers and references.

**A vector** follows NumPy's protocols: arithmetic, comparisons, `np.where` and the like are one
call each, in which every worker treats its range, and give such vectors again; `max`, `min`, `any`,
`all` and `dots` give numbers. `np.asarray` gathers it, which only results and small models need.
Numbers never change, so that the smallest and the largest are asked for once and together.

**Exchanges.** An argument wrapped in `Whole` is made known to all workers: each receives the 8 (S −
n) bytes that it does not own. `traffic` counts them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from drmdp._typing import Array
from drmdp.cluster.source import DirectorySource
from drmdp.model.state_ranges import ModelFacts, together
from drmdp.sets import AmbiguitySet
from drmdp.ui.text import count, memory

Returned = tuple[list[Any], list[Any]]
"""What stays with the workers, and their answers."""


@dataclass(frozen=True)
class Whole:
    """A vector of which every worker gets all states."""

    vector: Any


@dataclass(frozen=True)
class Holding:
    """Arrays of any shape that stay with the workers, a tuple of them for each range."""

    pieces: list[Any]


@dataclass
class Traffic:
    """Calls to the workers, and the bytes that they received."""

    calls: dict[str, int] = field(default_factory=dict)
    exchanges: int = 0
    bytes: int = 0  # received by all workers together in exchanges

    def __str__(self) -> str:
        return f"{count(self.exchanges, 'exchange')}, {memory(self.bytes)}"


class Engine(ABC):
    """Workers of a model and a set."""

    def __init__(
        self, source: DirectorySource, ambiguity: AmbiguitySet, parts: int, threads: int
    ) -> None:
        self.source, self.ambiguity, self.threads = source, ambiguity, threads
        self.ranges = source.ranges(parts)
        self.n_states = source.n_states
        self.traffic = Traffic()
        self.facts: ModelFacts | None = None

    def survey(self) -> ModelFacts:
        """Start: join the facts of all ranges, which every later call gets."""
        self.facts = together(self.ask("survey"))
        return self.facts

    def keep(self, name: str, *args: Any, n: int = 1) -> list[Any]:
        """Call all workers; n vectors, which stay with them."""
        return self._counted(name, args, n)[0]

    def ask(self, name: str, *args: Any) -> list[Any]:
        """Call all workers; the answer of each."""
        return self._counted(name, args, 0)[1]

    def hold(self, name: str, *args: Any) -> Holding:
        """Call all workers; arrays of any shape, which stay with them."""
        return Holding(self._counted(name, args, None)[0])

    def _counted(self, name: str, args: tuple[Any, ...], n: int | None) -> Returned:
        traffic = self.traffic
        traffic.calls[name] = traffic.calls.get(name, 0) + 1
        exchanged = _wholes(args)
        traffic.exchanges += exchanged
        traffic.bytes += exchanged * 8 * self.n_states * (len(self.ranges) - 1)
        return self._run(name, args, n)

    @abstractmethod
    def _run(self, name: str, args: tuple[Any, ...], n: int | None) -> Returned:
        """Carry out a call: n vectors, or without n the pieces of a holding, and the answers."""

    def gather(self, vector: Any) -> Array:
        """The numbers of a vector, as an array."""
        return np.concatenate(self.ask("gather", vector))

    def scatter(self, values: Array) -> Any:
        """Make a vector of an array."""
        return self.keep("scatter", values)[0]

    @abstractmethod
    def close(self) -> None:
        """End the workers."""


def argument_of(arg: Any, pick: Callable[[Any], Any]) -> Any:
    """An argument as a worker gets it: what `pick` makes of it, or of each part of a tuple."""
    return tuple(argument_of(part, pick) for part in arg) if isinstance(arg, tuple) else pick(arg)


def _wholes(arg: Any) -> int:
    """Vectors that are made known to all for an argument."""
    return sum(map(_wholes, arg)) if isinstance(arg, tuple) else isinstance(arg, Whole)


BY_STATE = (np.where, np.zeros_like, np.full_like, np.sum)
"""Functions of arrays that treat each state alone."""


class Vector(NDArrayOperatorsMixin):
    """One row for each state, in pieces that stay with the workers, one for each range."""

    def __init__(self, engine: Engine, pieces: list[Any]) -> None:
        self.engine, self.pieces = engine, pieces
        self._ends: tuple[Any, Any] | None = None

    def __len__(self) -> int:
        return self.engine.n_states

    def mapped(self, function: Any, *args: Any, **settings: Any) -> Any:
        """`function`, which treats each state alone, of vectors and numbers."""
        return self.engine.keep("elementwise", function, args, settings)[0]

    def scattered(self, values: Array) -> Any:
        """An array of all states as such a vector."""
        return self.engine.scatter(values)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Arithmetic, elementwise."""
        if method != "__call__" or "out" in settings:
            return NotImplemented
        return self.mapped(ufunc, *inputs, **settings)

    def __array_function__(self, function: Any, types: Any, args: Any, settings: Any) -> Any:
        """The functions of `BY_STATE`, and `np.ptp`."""
        if function is np.ptp:
            return self.max() - self.min()
        if function in BY_STATE and (function is not np.sum or settings.get("axis") == 1):
            return self.mapped(function, *args, **settings)
        return NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All numbers, gathered."""
        return np.asarray(self.engine.gather(self), dtype=dtype)

    def ends_of(self, *vectors: Vector) -> list[tuple[Any, Any]]:
        """Smallest and largest number of some vectors, asked for in one call."""
        new = tuple(vector for vector in vectors if vector._ends is None)
        if new:
            ranges = self.engine.ask("extremes", new)
            for vector, ends in zip(new, zip(*ranges, strict=True), strict=True):
                low, high = zip(*ends, strict=True)
                vector._ends = np.min(low), np.max(high)
        return [vector._ends for vector in vectors]  # type: ignore[misc]

    def max(self) -> float:
        """Largest number."""
        return float(self.ends_of(self)[0][1])

    def min(self) -> float:
        """Smallest number."""
        return float(self.ends_of(self)[0][0])

    def any(self) -> bool:
        """Whether any number is not 0."""
        return bool(self.max())

    def all(self) -> bool:
        """Whether no number is 0."""
        return bool(self.min())

    def sum(self, axis: int, keepdims: bool = False) -> Any:
        """Sums over the actions."""
        return self.mapped(np.sum, self, axis=axis, keepdims=keepdims)

    def dots(self, *pairs: tuple[Any, Any]) -> list[float]:
        """Sums of products of pairs of vectors, as `drmdp.core.vectors.dots` makes them."""
        ranges = self.engine.ask("dots", pairs)
        return [math.fsum(part for sums in ranges for part in sums[k]) for k in range(len(pairs))]
