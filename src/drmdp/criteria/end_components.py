"""End components: sets of states in which the players who are free can stay for ever, each within
reach of each.

An option belongs to a state; it may lead to some next states, and either can be kept inside a set
of states or cannot. A component is a set C of states with options that can be kept inside C and
connect it. The largest ones are found as usual: take the strongly connected components of what can
be kept, take away what cannot stay in its component, and begin again. What lost its last option is
taken away first, together with all that cannot do without it, from state to state backwards, so
that long corridors cost one look at each entry and not one at all for each step.

`keeps` may be wrong; then components are too large or too small, and bounds that are made with them
do not close. They hold, for nobody believes components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import BoolArray, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.storage import row_entries

Keeps = Callable[[IntArray, IntArray], BoolArray]
"""Of labels (S,) and some options, ascending: can each be kept inside the states that have the
label of its own?
"""


@dataclass
class StateOptions:
    """What states can do: option o is one of state owner[o] and may lead to
    indices[indptr[o]:indptr[o + 1]].
    """

    owner: IntArray  # (O,) ascending
    indptr: IntArray  # (O + 1,)
    indices: Any
    keeps: Keeps | None = None  # without it an option stays where all it leads to is

    @classmethod
    def of_kernel(cls, matrix: Any, played: BoolArray) -> StateOptions:
        """Those of a kernel, sparse (S·A, S), and pairs (S, A), each for itself."""
        pairs = np.flatnonzero(played)
        kept = sparse.csr_array(matrix)[pairs]
        kept.eliminate_zeros()
        return cls(pairs // played.shape[1], kept.indptr.astype(np.int64), kept.indices)

    @property
    def source(self) -> IntArray:
        """The option of each entry."""
        return np.repeat(np.arange(self.owner.size), np.diff(self.indptr))

    def stays(self, label: IntArray, some: IntArray) -> BoolArray:
        """Which of some options can be kept inside."""
        if self.keeps is not None:
            return self.keeps(label, some)
        at, lengths = row_entries(self.indptr, some)
        out = label[self.indices[at]] != np.repeat(label[self.owner[some]], lengths)
        leaving = np.repeat(np.arange(some.size), lengths)[out]
        return np.asarray(np.bincount(leaving, minlength=some.size) == 0)

    @cached_property
    def before(self) -> tuple[IntArray, IntArray]:
        """Which options may lead to each state, as `indptr` (S + 1,) and numbers."""
        order = np.argsort(self.indices, kind="stable")
        indptr = np.append(0, np.cumsum(np.bincount(self.indices)))
        return indptr.astype(np.int64), self.source[order]

    def leading_to(self, states: IntArray) -> IntArray:
        """Options that may lead to some states, ascending."""
        indptr, before = self.before
        return np.unique(before[row_entries(indptr, states[states < indptr.size - 1])[0]])


def graph_of(sources: IntArray, targets: IntArray, n: int) -> Any:
    """The graph on n nodes with some edges."""
    return sparse.csr_array((np.ones(sources.size, np.int8), (sources, targets)), shape=(n, n))


def backward_graph(sources: IntArray, targets: IntArray, goal: BoolArray) -> Any:
    """The graph with all edges turned round, and one more node that leads to the goal, (S,)."""
    ends = np.flatnonzero(goal)
    origin = np.full(ends.size, goal.size)
    return graph_of(np.append(targets, origin), np.append(sources, ends), goal.size + 1)


def end_components(options: StateOptions, live: BoolArray) -> tuple[IntArray, BoolArray]:
    """Number of the component of each state, (S,), −1 outside of all; and which options stay in
    theirs, (O,).
    """
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
        graph = graph_of(*edges, live.size)
        from scipy.sparse.csgraph import connected_components  # takes a tenth of a second

        found = np.where(label >= 0, connected_components(graph, connection="strong")[1], -1)
        names, numbers = np.unique(found[found >= 0], return_inverse=True)
        label[label >= 0] = numbers
        if before == (names.size, numbers.size):  # nothing was taken away, and nothing fell apart
            return label, kept
        before = names.size, numbers.size
        asked = np.unique(source[inner][label[edges[0]] != label[edges[1]]])


def _peel(
    options: StateOptions, label: IntArray, kept: BoolArray, left: IntArray, asked: IntArray
) -> None:
    """Take away options that do not stay, states that have no other, options that led there and
    cannot do without, and so on.
    """
    while asked.size:
        gone = asked[~options.stays(label, asked)]
        kept[gone] = False
        states, times = np.unique(options.owner[gone], return_counts=True)
        left[states] -= times
        lost = states[left[states] == 0]
        label[lost] = -1
        asked = options.leading_to(lost)
        asked = asked[kept[asked]]
