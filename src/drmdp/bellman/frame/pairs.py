"""A budget for each action: any set, asked action by action.

Nature never has to choose between actions, so that with F_a the worst case of action a alone

    F(v)(s) = min_a F_a(v)(s),        F^x(v)(s) = Σ_a x_a F_a(v)(s),

and an optimal policy plays one action. F_a is the update of the set with one budget a state, on the pair as a state with one action. An action whose nominal
value is not below the worst case of another one is not asked: first comes the action that was best in the last sweep, then all that are still open.

Memory: that of the set, for every pair; a pair that was not asked has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.nature_rows import Answer, Question, Work, workspace
from drmdp.core.compiled import KERNEL, njit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.pairs import by_pair, memory_by_pair, share_by_pair
from drmdp.layout.point import Point


@njit(**KERNEL)
def _nominal(start, stop, layout, value, low):
    """Value of each action before nature moves.

    reads   layout, value
    fills   low (stop − start, A), inf where unavailable
    """
    A = low.shape[1]
    for s in range(start, stop):
        for a in range(A):
            low[s - start, a] = np.inf
            if layout.available[s, a]:
                total = 0.0
                for e in range(layout.indptr[s * A + a], layout.indptr[s * A + a + 1]):
                    z = layout.discount * value[layout.indices[e]]
                    if layout.next_costs.size > 0:
                        z += layout.next_costs[e]
                    total += layout.mean[e] * z
                low[s - start, a] = layout.costs[s, a] + total


@dataclass(frozen=True)
class Pairwise:
    """The family of a set with a budget for each action, made of that with one for each state."""

    family: Any

    def workspace(self, layout: Layout, point: Point, start: int, stop: int) -> Any:
        """Work space for the states start … stop − 1."""
        A = layout.available.shape[1]
        return self.family.workspace(by_pair(layout), point, start * A, stop * A)

    def update(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """The best action against nature; see the module."""
        A, own = layout.available.shape[1], slice(start, stop)
        low = np.empty((stop - start, A))
        _nominal(start, stop, layout._replace(radius=layout.radius.reshape(-1)), point.value, low)
        guess = np.where(layout.available[own] & (out.policy[own] > 0), low, np.inf)
        first = np.where(np.isfinite(guess).any(axis=1), guess.argmin(axis=1), low.argmin(axis=1))
        chosen = np.zeros((stop - start, A), dtype=bool)
        np.put_along_axis(chosen, first[:, None], np.isfinite(low.min(axis=1))[:, None], axis=1)
        found = _Found(
            np.full((stop - start, A), np.inf), np.full((stop - start, A), np.inf), chosen, np.zeros(stop - start)
        )
        self._ask(chosen, start, stop, layout, point, memory, tol, work, found)
        more = (low < found.upper.min(axis=1, keepdims=True)) & ~chosen
        if more.any():
            self._ask(more, start, stop, layout, point, memory, tol, work, found)
        asked = chosen | more
        _forget(memory, start, asked)
        out.policy[own] = 0.0
        np.put_along_axis(out.policy[own], found.upper.argmin(axis=1)[:, None], 1.0, axis=1)
        for target, source in ((out.upper, found.upper), (out.lower, found.lower)):
            target[own] = np.where(chosen.any(axis=1), source.min(axis=1), 0.0)  # nothing is asked where a state ends
        out.passes[own] = found.passes

    def evaluate(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Every action that out.policy plays against nature."""
        own = slice(start, stop)
        x = np.where(layout.available[own], out.policy[own], 0.0)
        shape = x.shape
        found = _Found(np.zeros(shape), np.zeros(shape), x > 0, np.zeros(shape[0]))
        self._ask(x > 0, start, stop, layout, point, memory, tol, work, found)
        _forget(memory, start, x > 0)
        out.upper[own], out.lower[own] = (x * found.upper).sum(axis=1), (x * found.lower).sum(axis=1)
        out.passes[own] = found.passes

    def _ask(
        self, chosen: Any, start: int, stop: int, layout: Layout, point: Point, memory: Memory, tol: float, work: Any, found: Any
    ) -> None:  # fmt: skip
        """Let nature answer each chosen pair (stop − start, A), and note what she can do there."""
        S, A = layout.available.shape
        everywhere = np.zeros((S, A), dtype=bool)
        everywhere[start:stop] = chosen & layout.available[start:stop]
        pairs = Out(np.zeros(S * A), np.zeros(S * A), np.ones((S * A, 1)), np.zeros(S * A))
        within = by_pair(layout, everywhere), point, memory_by_pair(memory, layout.weights.size), pairs
        self.family.update(start * A, stop * A, *within, tol, work)
        for target, source in ((found.upper, pairs.upper), (found.lower, pairs.lower)):
            np.copyto(target, source.reshape(S, A)[start:stop], where=everywhere[start:stop])
        found.passes[:] += (pairs.passes.reshape(S, A)[start:stop] * everywhere[start:stop]).sum(axis=1) / A

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        own: Answer = self.family.NATURE
        return own._replace(kernel=self._respond, split=None if own.split is None else self._split)

    def _respond(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, question: Question, work: Work
    ) -> None:
        A, pairs = layout.available.shape[1], by_pair(layout)
        asked = Question(question.weights.reshape(-1, 1), share_by_pair(question.share, A), question.target)
        space = workspace(pairs, point, start * A, stop * A)
        own = memory_by_pair(memory, layout.weights.size)
        self.family.NATURE.kernel(start * A, stop * A, pairs, point, own, asked, space)

    def _split(self, layout: Layout, point: Point, memory: Memory) -> Array:
        split: Array = self.family.NATURE.split(by_pair(layout), point, memory_by_pair(memory, layout.weights.size))
        return split.reshape(*layout.available.shape, -1)


@dataclass(frozen=True)
class _Found:
    """Bounds of pairs, (n, A) each, which of them were asked first, and passes over the rows of a state."""

    upper: Array
    lower: Array
    first: Any
    passes: Array


def _forget(memory: Memory, start: int, asked: Any) -> None:
    """Nothing is known of pairs that were not asked."""
    own = slice(start, start + asked.shape[0])
    memory.by_action[own][~asked] = 0.0
    if memory.by_row.size:
        memory.by_row[own][~asked] = 0.0
