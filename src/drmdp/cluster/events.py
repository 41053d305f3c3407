"""Models of events past one machine: workers map the table of a `.drmdp` directory, or ask the function, each for its range.

Of a function a worker is told its name, "module:name", the laws, and its range of what was given as arrays; arrays whose numbers are all the same are one
number. So nothing that grows with the number of states is sent unless the user made it, and a worker that dies leaves nothing to restore.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp.cluster.source import Source
from drmdp.core.cached import cached_property
from drmdp.core.rules import Function, name_of
from drmdp.core.spans import Head
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.formats import _events
from drmdp.formats.directory import holds_events
from drmdp.model.events import EventModel, joined

ARRAYS = ("available", "terminal", "initial", "_prices", "classes")
"""What a model of events has for each state, but for its names."""


class EventSource(Source):
    """A model of events."""

    @property
    @abstractmethod
    def model(self) -> EventModel:
        """All of it, or the range of a worker; nothing of it was asked."""

    @property
    def head(self) -> Head:
        """What does not grow with the number of states."""
        return self.model.head

    @property
    def states(self) -> Names:
        """Names of the states."""
        return self.model.states

    def part(self, lo: int, hi: int, checked: bool) -> EventModel:
        """The states lo … hi − 1; unless that was done before, what their events lead to is checked."""
        self.model.check_unchanged()
        found = self.model.piece(lo - self.model.first, hi - self.model.first)
        if not checked:
            _events.check(found)
        return found

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint that the range is made of."""
        return self.model.digests(lo - self.model.first, hi - self.model.first)

    def fingerprint(self, blocks: list[bytes]) -> str:
        """That of the model, from the digests of all blocks."""
        return joined(self.head, self.model.laws, blocks)

    def entries(self, starts: Any) -> Any:
        """Events before each of some states."""
        return np.asarray(starts, np.int64) * self.head.n_actions * self.model.n_events

    def mapped(self, n: int, e: int) -> int:
        """Bytes of files that n states take."""
        return 0 if isinstance(self.model.rule, Function) else e * (12 if self.model.priced else 4)

    def opened(self, n: int, e: int) -> float:
        """Nobody knows; it is opened in no time."""
        return math.inf


@dataclass(frozen=True)
class TableSource(EventSource):
    """The table of a directory; what is sent to workers is the path."""

    @cached_property
    def model(self) -> EventModel:
        """The directory, opened and not read."""
        return _events.opened(self.path)


@dataclass(frozen=True)
class FunctionSource(EventSource):
    """A function that is asked; `path` is its name."""

    given: EventModel

    @property
    def model(self) -> EventModel:
        """What was given."""
        return self.given

    @property
    def again(self) -> Source:
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
        model._set(**held | {name: held[name].spread() for name in ARRAYS if isinstance(held[name], Same)})
        vars(self).update(path=state["path"], given=model)

    def sent(self, lo: int, hi: int) -> FunctionSource:
        """The function, and the range of what was given for each state."""
        return FunctionSource(self.path, self.model.piece(lo - self.model.first, hi - self.model.first))


class Same(NamedTuple):
    """An array of one number."""

    number: Any
    shape: tuple[int, ...]

    def spread(self) -> Any:
        """The array."""
        return np.full(self.shape, self.number)


def _packed(array: Any) -> Any:
    return Same(array.flat[0], array.shape) if array.size and (array == array.flat[0]).all() else np.asarray(array)


def source_of(given: str | os.PathLike[str] | EventModel) -> Source:
    """What workers of a path, or of a model of events, are told."""
    if not isinstance(given, EventModel):
        return TableSource(os.fspath(given)) if holds_events(given) else Source(os.fspath(given))
    if not isinstance(given.rule, Function):
        raise InputError(
            "cluster: workers map the table of a model of events from its file: write it to a .drmdp directory and solve its path"
        )
    return FunctionSource(name_of(given.rule.function), given)
