"""End components: sets of states in which the players who are free can stay for ever, each within reach of each.

An option belongs to a state; it may lead to some next states, and either can be kept inside a set of states or cannot. A component is a set C of states with
options that can be kept inside C and connect it. The largest ones are found as usual: take the strongly connected components of what can be kept, take away
what cannot stay in its component, and begin again. What lost its last option is taken away first, together with all that cannot do without it, from state to
state backwards, so that long corridors cost one look at each entry and not one at all for each step.

`keeps` may be wrong; then components are too large or too small, and bounds that are made with them do not close. They hold, for nobody believes components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import BoolArray, IntArray
from drmdp.core.cached import cached_property

Keeps = Callable[[IntArray, IntArray], BoolArray]
"""Of labels (S,) and some options, ascending: can each be kept inside the states that have the label of its own?"""


@dataclass
class Options:
    """What states can do: option o is one of state owner[o] and may lead to indices[indptr[o]:indptr[o + 1]]."""

    owner: IntArray  # (O,) ascending
    indptr: IntArray  # (O + 1,)
    indices: Any
    keeps: Keeps | None = None  # without it an option stays where all it leads to is

    @classmethod
    def of_kernel(cls, matrix: Any, played: BoolArray, free: bool) -> Options:
        """Those of a kernel, sparse (S·A, S), and pairs (S, A): each for itself if the agent is free, else those of a state together."""
        A = played.shape[1]
        matrix = sparse.csr_array(matrix)
        pairs = np.flatnonzero(played)
        kept = matrix[pairs]
        kept.eliminate_zeros()
        if free:
            return cls(pairs // A, kept.indptr.astype(np.int64), kept.indices)
        owner = np.unique(pairs // A)
        joined = (
            sparse.csr_array(
                (np.ones(pairs.size), (np.searchsorted(owner, pairs // A), np.arange(pairs.size))),
                shape=(owner.size, pairs.size),
            )
            @ kept
        )
        return cls(owner, joined.indptr.astype(np.int64), joined.indices)

    @property
    def source(self) -> IntArray:
        """The option of each entry."""
        return np.repeat(np.arange(self.owner.size), np.diff(self.indptr))

    def stays(self, label: IntArray, some: IntArray) -> BoolArray:
        """Which of some options can be kept inside."""
        if self.keeps is not None:
            return self.keeps(label, some)
        at, lengths = entries_of(self.indptr, some)
        out = label[self.indices[at]] != np.repeat(label[self.owner[some]], lengths)
        return np.asarray(np.bincount(np.repeat(np.arange(some.size), lengths)[out], minlength=some.size) == 0)

    @cached_property
    def before(self) -> tuple[IntArray, IntArray]:
        """Which options may lead to each state, as `indptr` (S + 1,) and numbers."""
        order = np.argsort(self.indices, kind="stable")
        n = int(self.indices.max(initial=-1)) + 1
        return np.concatenate([[0], np.cumsum(np.bincount(self.indices, minlength=n))]), self.source[order]


def entries_of(indptr: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Where the entries of some rows are, one row after the other, and how many each has."""
    lengths = indptr[rows + 1] - indptr[rows]
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(indptr[rows] - (ends - lengths), lengths), lengths


def end_components(options: Options, live: BoolArray) -> tuple[IntArray, BoolArray]:
    """Number of the component of each state, (S,), −1 outside of all; and which options stay in theirs, (O,)."""
    label = np.where(live, 0, -1)
    kept = live[options.owner]
    left = np.bincount(options.owner[kept], minlength=live.size)
    label[left == 0] = -1
    source, asked, before = options.source, np.flatnonzero(kept), (0, 0)
    while True:
        _peel(options, label, kept, left, asked)
        inner = kept[source]
        inner[inner] = label[options.indices[inner]] == label[options.owner[source[inner]]]
        edges = options.owner[source[inner]], options.indices[inner]
        graph = sparse.csr_array((np.ones(edges[0].size, np.int8), edges), shape=(live.size, live.size))
        from scipy.sparse.csgraph import connected_components  # takes a tenth of a second

        found = np.where(label >= 0, connected_components(graph, connection="strong")[1], -1)
        names, numbers = np.unique(found[found >= 0], return_inverse=True)
        label[label >= 0] = numbers
        if before == (names.size, numbers.size):  # nothing was taken away, and nothing fell apart
            return label, kept
        before = names.size, numbers.size
        asked = np.unique(source[inner][label[edges[0]] != label[edges[1]]])


def _peel(options: Options, label: IntArray, kept: BoolArray, left: IntArray, asked: IntArray) -> None:
    """Take away options that do not stay, states that have no other, options that led there and cannot do without, and so on."""
    indptr, before = options.before
    while asked.size:
        gone = asked[~options.stays(label, asked)]
        kept[gone] = False
        states, times = np.unique(options.owner[gone], return_counts=True)
        left[states] -= times
        lost = states[left[states] == 0]
        label[lost] = -1
        at, _ = entries_of(indptr, lost[lost < indptr.size - 1])
        asked = np.unique(before[at])
        asked = asked[kept[asked]]
