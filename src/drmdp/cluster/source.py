"""Sources of models for workers: a `.drmdp` directory, or a function of Python; each opens its
range.

Of a function a worker gets its name, "module:name", the laws, and its range of the arrays of the
model; arrays whose numbers are all the same are one number. So nothing that grows with the number
of states is sent unless the user made it, and a worker that dies leaves nothing to restore.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from drmdp.core.cached import cached_property
from drmdp.core.validation import Names
from drmdp.core.vectors import block
from drmdp.errors import InputError
from drmdp.formats.directory import events, holds_events, open_stored
from drmdp.model import Model, of_span
from drmdp.model.events import EventModel, joined
from drmdp.model.events.rules import EventFunction, name_of
from drmdp.model.state_ranges import Head, digests, fingerprint

Ranges = list[tuple[int, int]]
"""Ranges of states."""
ARRAYS = ("available", "terminal", "initial", "_prices", "classes")
"""What a model of events has for each state, but for its names."""


@dataclass(frozen=True)
class DirectorySource:
    """A model in a directory; what is sent to workers is the path."""

    path: str

    def __getstate__(self) -> dict[str, Any]:
        """The path alone."""
        return {"path": os.path.abspath(self.path)}

    @cached_property
    def model(self) -> Any:
        """The directory, opened and not read."""
        return open_stored(self.path)

    @property
    def head(self) -> Head:
        """Sizes, names of actions and kernels, discount: all but the states."""
        return cast(Head, self.model.head)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.head.n_states

    def part(self, lo: int, hi: int, checked: bool) -> Model:
        """The states lo … hi − 1; unless that was done before, they are checked by the rules of a
        model.
        """
        return of_span(self.head, self.model.span(lo, hi) if checked else self.model.read(lo, hi))

    @property
    def states(self) -> Names:
        """Names of the states."""
        return cast(Names, self.model.states)

    def has(self, name: str) -> bool:
        """Whether the model has an optional array."""
        return name in self.model.arrays

    def sent(self, lo: int, hi: int) -> DirectorySource:
        """The source that is sent to the worker of a range."""
        return self

    @property
    def again(self) -> DirectorySource:
        """A copy that is not opened yet, with an absolute path."""
        return replace(self, path=os.path.abspath(self.path))

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint that begin in the range."""
        return digests(self.model, lo, hi)

    def fingerprint(self, blocks: list[bytes]) -> str:
        """Fingerprint of the model, from the digests of all blocks."""
        return fingerprint(self.head, blocks)

    def entries(self, starts: Any) -> Any:
        """Next states listed before each of some states."""
        return np.asarray(self.model.arrays["indptr"][np.asarray(starts) * self.head.n_actions])

    def mapped(self, n: int, e: int) -> int:
        """Bytes of files that n states with e listed next states take."""
        head = self.head
        costs: int = self.model.costs.nbytes * n // self.n_states
        return head.n_kernels * e * head.dtype.itemsize + 4 * e + 8 * head.n_actions * n + costs

    def opened(self, n: int, e: int) -> float:
        """Bytes in no file that the part of n states with e listed next states takes once it is
        open, at most.
        """
        return 4 * e + (14 * self.head.n_actions + 48) * n

    def ranges(self, parts: int) -> Ranges:
        """At most so many ranges of whole blocks with about equal numbers of probabilities."""
        S = self.n_states
        starts = np.arange(0, S, block(S))
        before = self.entries(starts)
        marks = np.linspace(0, self.entries(S), parts + 1)[1:-1]
        cuts = starts[np.minimum(np.searchsorted(before, marks), starts.size - 1)]
        edges = np.unique([0, *cuts.tolist(), S])
        return [(int(a), int(b)) for a, b in pairwise(edges)]


class EventSource(DirectorySource):
    """A model of events."""

    @property
    @abstractmethod
    def model(self) -> EventModel:
        """All of it, or the range of a worker; nothing of it was asked."""

    def has(self, name: str) -> bool:
        """Whether the model has an optional array."""
        return getattr(self.model, name) is not None

    def part(self, lo: int, hi: int, checked: bool) -> EventModel:
        """The states lo … hi − 1; unless that was done before, what their events lead to is
        checked.
        """
        self.model.check_unchanged()
        piece = self._piece(lo, hi)
        if not checked:
            events.check(piece)
        return piece

    def _piece(self, lo: int, hi: int) -> EventModel:
        return self.model.piece(lo - self.model.first, hi - self.model.first)

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint that the range is made of."""
        return self.model.digests(lo - self.model.first, hi - self.model.first)

    def fingerprint(self, blocks: list[bytes]) -> str:
        """Fingerprint of the model, from the digests of all blocks."""
        return joined(self.head, self.model.laws, blocks)

    def entries(self, starts: Any) -> Any:
        """Events before each of some states."""
        return np.asarray(starts, np.int64) * self.head.n_actions * self.model.n_events

    def mapped(self, n: int, e: int) -> int:
        """Bytes of files that n states take."""
        mapped = 12 if self.model.priced else 4
        return 0 if isinstance(self.model.rule, EventFunction) else e * mapped

    def opened(self, n: int, e: int) -> float:
        """Nobody knows; it is opened in no time."""
        return math.inf


@dataclass(frozen=True)
class TableSource(EventSource):
    """The table of a directory; what is sent to workers is the path."""

    @cached_property
    def model(self) -> EventModel:
        """The directory, opened and not read."""
        return events.opened(self.path)


@dataclass(frozen=True)
class FunctionSource(EventSource):
    """A function that is asked; `path` is its name."""

    given: EventModel

    @property
    def model(self) -> EventModel:
        """The model of the function."""
        return self.given

    @property
    def again(self) -> DirectorySource:
        """The same: nothing is opened."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Names, laws and sizes; arrays where their numbers differ."""
        held = self.model.__getstate__()
        return {"path": self.path, "held": held | {name: _packed(held[name]) for name in ARRAYS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays are arrays again."""
        held = state["held"]
        model: EventModel = object.__new__(EventModel)
        same = {name: array for name, array in held.items() if isinstance(array, Same)}
        model._set(**held | {name: array.spread() for name, array in same.items()})
        vars(self).update(path=state["path"], given=model)

    def sent(self, lo: int, hi: int) -> FunctionSource:
        """The source that is sent to the worker of a range."""
        return FunctionSource(self.path, self._piece(lo, hi))


class Same(NamedTuple):
    """An array of one number."""

    number: Any
    shape: tuple[int, ...]

    def spread(self) -> Any:
        """The array."""
        return np.full(self.shape, self.number)


def _packed(array: Any) -> Any:
    if array.size and (array == array.flat[0]).all():
        return Same(array.flat[0], array.shape)
    return np.asarray(array)


def source_of(model: str | os.PathLike[str] | EventModel) -> DirectorySource:
    """The source of a path, or of a model of events."""
    if not isinstance(model, EventModel):
        kind = TableSource if holds_events(model) else DirectorySource
        return kind(os.fspath(model))
    if not isinstance(model.rule, EventFunction):
        cure = "write it to a .drmdp directory and solve its path"
        fact = "workers map the table of a model of events from its file"
        raise InputError(f"cluster: {fact}: {cure}")
    return FunctionSource(name_of(model.rule.function), model)
