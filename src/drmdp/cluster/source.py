"""Where workers find their states: a `.drmdp` directory, of which each opens its range; see `drmdp.cluster.events` for models of events."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp.core.cached import cached_property
from drmdp.core.spans import Head, digests, fingerprint
from drmdp.core.validation import Names
from drmdp.core.vectors import block
from drmdp.formats._stored import Stored
from drmdp.formats.directory import open_stored
from drmdp.model import Model, of_span


@dataclass(frozen=True)
class Source:
    """A model in a directory; what is sent to workers is the path."""

    path: str

    def __getstate__(self) -> dict[str, Any]:
        """The path alone."""
        return {"path": os.path.abspath(self.path)}

    @cached_property
    def stored(self) -> Stored:
        """The directory, opened and not read."""
        return open_stored(self.path)

    @property
    def head(self) -> Head:
        """What does not grow with the number of states."""
        return self.stored.head

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.head.n_states

    def part(self, lo: int, hi: int, checked: bool) -> Model:
        """The states lo … hi − 1; unless that was done before, they are checked by the rules of a model."""
        return of_span(self.head, self.stored.span(lo, hi) if checked else self.stored.read(lo, hi))

    @property
    def states(self) -> Names:
        """Names of the states."""
        return self.stored.states

    def sent(self, lo: int, hi: int) -> Source:
        """What the worker of a range is told."""
        return self

    @property
    def again(self) -> Source:
        """The same, not opened yet, wherever this process is then."""
        return replace(self, path=os.path.abspath(self.path))

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint that begin in the range."""
        return digests(self.stored, lo, hi)

    def fingerprint(self, blocks: list[bytes]) -> str:
        """That of the model, from the digests of all blocks."""
        return fingerprint(self.head, blocks)

    def entries(self, starts: Any) -> Any:
        """Next states listed before each of some states."""
        return np.asarray(self.stored.indptr[np.asarray(starts) * self.head.n_actions])

    def mapped(self, n: int, e: int) -> int:
        """Bytes of files that n states with e listed next states take."""
        head = self.head
        costs: int = self.stored.costs.nbytes * n // self.n_states
        return head.n_kernels * e * head.dtype.itemsize + 4 * e + 8 * head.n_actions * n + costs

    def opened(self, n: int, e: int) -> float:
        """Bytes in no file that the part of n states with e listed next states takes once it is open, at most."""
        return 4 * e + (14 * self.head.n_actions + 48) * n

    def ranges(self, parts: int) -> list[tuple[int, int]]:
        """At most so many ranges of whole blocks with about equal numbers of probabilities."""
        S = self.n_states
        starts = np.arange(0, S, block(S))
        before = self.entries(starts)
        marks = np.linspace(0, self.entries(S), parts + 1)[1:-1]
        cuts = starts[np.minimum(np.searchsorted(before, marks), starts.size - 1)]
        edges = np.unique([0, *cuts.tolist(), S])
        return [(int(a), int(b)) for a, b in pairwise(edges)]
