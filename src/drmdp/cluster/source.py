"""Where workers find their states: a `.drmdp` directory, of which each opens its range."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp.core.spans import Head, digests
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

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint that begin in the range."""
        return digests(self.stored, lo, hi)

    def ranges(self, parts: int) -> list[tuple[int, int]]:
        """At most so many ranges of whole blocks with about equal numbers of probabilities."""
        S, A = self.n_states, self.head.n_actions
        starts = np.arange(0, S, block(S))
        before = np.asarray(self.stored.indptr[starts * A])
        marks = np.linspace(0, self.stored.indices.size, parts + 1)[1:-1]
        cuts = starts[np.minimum(np.searchsorted(before, marks), starts.size - 1)]
        edges = np.unique([0, *cuts.tolist(), S])
        return [(int(a), int(b)) for a, b in pairwise(edges)]
