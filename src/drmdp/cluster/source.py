"""Where workers find their states: a `.drmdp` directory, of which each opens its range."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp import formats
from drmdp.core.vectors import block
from drmdp.model import Model


@dataclass(frozen=True)
class Source:
    """A model in a directory; what is sent to workers is the path."""

    path: str

    def __getstate__(self) -> dict[str, Any]:
        """The path alone."""
        return {"path": os.path.abspath(self.path)}

    @cached_property
    def whole(self) -> Model:
        """The model, mapped."""
        return formats.read(self.path)

    @property
    def outline(self) -> Model:
        """Sizes, discount and names."""
        return self.whole

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.whole.n_states

    def part(self, lo: int, hi: int) -> Model:
        """The states lo … hi − 1."""
        return self.whole.part(lo, hi)

    def ranges(self, parts: int) -> list[tuple[int, int]]:
        """At most so many ranges of whole blocks with about equal numbers of probabilities."""
        S, A = self.n_states, self.whole.n_actions
        indptr, step = self.whole.blocks.indptr, block(S)
        starts = np.arange(0, S, step)
        marks = np.linspace(0, int(indptr[-1]), parts + 1)[1:-1]
        cuts = starts[np.minimum(np.searchsorted(indptr[starts * A], marks), starts.size - 1)]
        edges = np.unique([0, *cuts.tolist(), S])
        return [(int(a), int(b)) for a, b in pairwise(edges)]
