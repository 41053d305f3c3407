"""A budget for each action: any set, asked action by action.

Nature never has to choose between actions, so that with F_a the worst case of action a alone

    F(v)(s) = min_a F_a(v)(s),        F^x(v)(s) = Σ_a x_a F_a(v)(s),

and an optimal policy plays one action. F_a is the update of the set with one budget a state, on the pair as a state with one action. An action whose nominal
value is not below the worst case of another one is not asked: first comes the action that was best in the last sweep, then all that are still open.

Memory: that of the set, for every pair; a pair that was not asked has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman import nature_rows
from drmdp.bellman.family import prepared
from drmdp.bellman.nature_rows import Answer, Question
from drmdp.core.cached import cached_property
from drmdp.core.compiled import FAST, INLINE, KERNEL, LEAN, njit
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.pairs import by_pair, memory_by_pair, share_by_pair
from drmdp.layout.point import Point


class Rows(NamedTuple):
    """The mean kernel, by pair."""

    indptr: Any
    indices: Any
    mean: Array
    costs: Array  # (S·A, 1)
    next_costs: Array
    discount: float


class Paired(NamedTuple):
    """The data of states whose actions are asked one by one."""

    available: Any  # (S, A)
    pairs: Any  # a layout of pairs, as the family's kernels read it
    rows: Rows
    n_kernels: int


class Turn(NamedTuple):
    """Whom nature answers."""

    now: Any  # (S·A, 1) pairs that are asked next
    asked: Any  # (S·A, 1) those that were
    low: Array  # (S·A,) values before she moves


class Work(NamedTuple):
    """Work space of a range."""

    inner: Any  # the family's own
    open: Any  # `turn.now` as kernels read it
    out: Out  # of the pairs
    turn: Turn


@dataclass(frozen=True)
class Pairwise:
    """The family of a set with a budget for each action, made of that with one for each state."""

    family: Any

    @property
    def FRESH(self) -> bool:  # noqa: N802
        """See `drmdp.bellman.family`."""
        return getattr(self.family, "FRESH", False)

    def prepared(self, layout: Layout) -> Paired:
        """The data of the pairs."""
        pairs = by_pair(layout)
        rows = Rows(*(getattr(pairs, name) for name in Rows._fields))
        return Paired(layout.available, prepared(self.family, pairs), rows, layout.weights.size)

    def workspace(self, layout: Paired, point: Point, start: int, stop: int) -> Work:
        """Work space for the states start … stop − 1."""
        A, n = layout.available.shape[1], layout.available.size
        now, asked = np.zeros((n, 1), dtype=bool), np.zeros((n, 1), dtype=bool)
        view = now.view()
        view.setflags(write=False)
        out = Out(np.zeros(n), np.zeros(n), np.ones((n, 1)), np.zeros(n))
        inner = self.family.workspace(layout.pairs, point, start * A, stop * A)
        return Work(inner, view, out, Turn(now, asked, np.empty(n)))

    def update(
        self, start: int, stop: int, layout: Paired, point: Point, memory: Memory, out: Out, tol: float, work: Work
    ) -> None:
        """The best action against nature; see the module."""
        A, turn = layout.available.shape[1], work.turn
        own = memory_by_pair(memory, layout.n_kernels)
        pairs = layout.pairs._replace(available=work.open)
        given = start * A, stop * A, pairs, point, own, work.out, tol, work.inner
        _first(start, stop, layout.rows, layout.available, point.value, out.policy, turn, work.out)
        self.family.update(*given)
        if _more(start, stop, layout.available, turn, work.out, out):
            self.family.update(*given)
        _best(start, stop, turn, work.out, own, out)

    def evaluate(
        self, start: int, stop: int, layout: Paired, point: Point, memory: Memory, out: Out, tol: float, work: Work
    ) -> None:
        """Every action that out.policy plays against nature."""
        A, turn = layout.available.shape[1], work.turn
        own = memory_by_pair(memory, layout.n_kernels)
        _played(start, stop, layout.available, out.policy, turn, work.out)
        pairs = layout.pairs._replace(available=work.open)
        self.family.update(start * A, stop * A, pairs, point, own, work.out, tol, work.inner)
        _mean(start, stop, turn, work.out, own, out)

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        own: Answer = self.family.NATURE
        return own._replace(kernel=self._respond)

    def _respond(
        self,
        start: int,
        stop: int,
        layout: Layout,
        point: Point,
        memory: Memory,
        question: Question,
        work: nature_rows.Work,
    ) -> None:
        A, pairs = layout.available.shape[1], by_pair(layout)
        asked = Question(question.weights.reshape(-1, 1), share_by_pair(question.share, A), question.target)
        space = nature_rows.workspace(pairs, point, start * A, stop * A)
        own = memory_by_pair(memory, layout.weights.size)
        self.family.NATURE.kernel(start * A, stop * A, pairs, point, own, asked, space)


@njit(fastmath=FAST, **LEAN)
def _before(rows, lo, hi, value):
    """What a pair is worth before nature moves, without its cost.

    reads   rows from lo to hi, value
    returns it
    """
    total, e0 = 0.0, np.uint64(lo)
    for j in range(np.uint64(hi - lo)):
        total += rows.mean[e0 + j] * value[np.uint32(rows.indices[e0 + j])]
    total *= rows.discount
    if rows.next_costs.size > 0:
        for j in range(np.uint64(hi - lo)):
            total += rows.mean[e0 + j] * rows.next_costs[e0 + j]
    return total


@njit(**KERNEL)
def _first(start, stop, rows, available, value, policy, turn, pairs):
    """Ask the best of the actions that were played, or the best one if none was.

    reads   rows, available (S, A), value, policy (S, A)
    fills   turn, pairs.policy
    """
    A = available.shape[1]
    for s in range(start, stop):
        best, played = -1, -1
        for k in range(s * A, (s + 1) * A):
            turn.now[k, 0], turn.asked[k, 0], pairs.policy[k, 0] = False, False, 1.0
            if not available[s, k - s * A]:
                continue
            turn.low[k] = rows.costs[k, 0] + _before(rows, rows.indptr[k], rows.indptr[k + 1], value)
            if best < 0 or turn.low[k] < turn.low[best]:
                best = k
            if policy[s, k - s * A] > 0.0 and (played < 0 or turn.low[k] < turn.low[played]):
                played = k
        if best >= 0:
            turn.now[played if played >= 0 else best, 0] = True


@njit(**KERNEL)
def _more(start, stop, available, turn, pairs, out):
    """Ask every other action whose value before nature moves is below the worst case of the first one.

    reads   available (S, A), pairs: upper, passes
    fills   turn, out.passes
    returns whether there are any
    """
    A, some = available.shape[1], False
    for s in range(start, stop):
        worst, out.passes[s] = np.inf, 0.0
        for k in range(s * A, (s + 1) * A):
            if turn.now[k, 0]:
                worst, out.passes[s] = pairs.upper[k], pairs.passes[k] / A
                turn.asked[k, 0] = True
        for k in range(s * A, (s + 1) * A):
            more = available[s, k - s * A] and not turn.asked[k, 0] and turn.low[k] < worst
            turn.now[k, 0] = more
            some |= more
    return some


@njit(**KERNEL)
def _best(start, stop, turn, pairs, memory, out):
    """Play the action with the least worst case.

    reads   turn.now (asked last), pairs
    fills   turn.asked, memory (of pairs), out
    """
    A = out.policy.shape[1]
    for s in range(start, stop):
        best, lower = -1, np.inf
        for k in range(s * A, (s + 1) * A):
            out.policy[s, k - s * A] = 0.0
            if turn.now[k, 0]:
                turn.asked[k, 0] = True
                out.passes[s] += pairs.passes[k] / A
            if turn.asked[k, 0]:
                lower = min(lower, pairs.lower[k])
                if best < 0 or pairs.upper[k] < pairs.upper[best]:
                    best = k
            else:
                _forget(k, memory)
        out.upper[s], out.lower[s] = 0.0, 0.0  # nothing is asked where a state ends
        if best >= 0:
            out.upper[s], out.lower[s], out.policy[s, best - s * A] = pairs.upper[best], lower, 1.0


@njit(**KERNEL)
def _played(start, stop, available, policy, turn, pairs):
    """Ask the actions of a policy.

    reads   available (S, A), policy (S, A)
    fills   turn, pairs.policy
    """
    A = available.shape[1]
    for s in range(start, stop):
        for k in range(s * A, (s + 1) * A):
            turn.now[k, 0] = available[s, k - s * A] and policy[s, k - s * A] > 0.0
            pairs.policy[k, 0] = 1.0


@njit(**KERNEL)
def _mean(start, stop, turn, pairs, memory, out):
    """The worst case of a policy.

    reads   turn.now, pairs, out.policy
    fills   memory (of pairs), out: upper, lower, passes
    """
    A = out.policy.shape[1]
    for s in range(start, stop):
        out.upper[s], out.lower[s], out.passes[s] = 0.0, 0.0, 0.0
        for k in range(s * A, (s + 1) * A):
            if turn.now[k, 0]:
                x = out.policy[s, k - s * A]
                out.upper[s] += x * pairs.upper[k]
                out.lower[s] += x * pairs.lower[k]
                out.passes[s] += pairs.passes[k] / A
            else:
                _forget(k, memory)


@njit(**INLINE)
def _forget(k, memory):
    """Nothing is known of a pair that was not asked.

    reads   k
    fills   memory
    """
    memory.by_action[k, 0] = 0.0
    for i in range(memory.by_row.shape[1]):
        for j in range(memory.by_row.shape[2]):
            memory.by_row[k, i, j] = 0.0
