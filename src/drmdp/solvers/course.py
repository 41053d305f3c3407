"""Several steps of policy iteration of a small model in one compiled call.

In a model of a few states a sweep takes microseconds, and to come back to Python after each takes longer than all of them. So a *course* goes ahead from a
start: it sweeps, finds the chain of the pair, solves its system, and sweeps again, as `drmdp.solvers.policy_iteration` does, with the kernels that are
called there, in the same machine code (`drmdp.core.compiled.call`). It ends where the gap is small enough, and before whatever is not plain sailing: a point
that the safeguard refuses, noise, numbers that are none. The method hands over where it ended, which the loop checks as any other point, and
the sweeps on the way there, where no check ends a run; from there on it goes its own way. Bits, history and counts are those of single steps.

To compile a course takes a third as long as all else, and its work space as long as a few sweeps, so the first run of a model with a kind of set has none. A
course is for runs that nobody watches: a callback or a checkpoint is due after every iteration, and so is the clock where a deadline is near.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.exact import COARSEST, FINEST, MANY, ExactOperator, Left
from drmdp.bellman.nature_rows import EACH, Question, Target, workspace
from drmdp.certificate.dense import fill_bounds
from drmdp.core import threads as workers
from drmdp.core.compact import Parts, allot, spell
from drmdp.core.compiled import KERNEL, LEAN, call, entry, is_kernel, njit
from drmdp.core.levels import EPS, fill_around, fill_both_steps
from drmdp.core.packs import Pack, direct, opened
from drmdp.core.sums import mean_of
from drmdp.core.surveys import all_finite, both_finite, bound_numbers, sweep_numbers
from drmdp.layout import events
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Order, Point, add_up, look, point_at
from drmdp.layout.rooms import orders_in
from drmdp.layout.sorting import copy, rank, rank_down
from drmdp.solvers import linear
from drmdp.solvers.journey import Journey
from drmdp.solvers.mean_start import Rows, rounds
from drmdp.solvers.problem import ACCEPT, FREE, NOISY, Aim, Problem

LONGEST = 8
"""Sweeps of a course; most runs need half as many."""
ORDERS = 3
"""Orders of states that a course keeps, at most: one number of them for all models, as each is another type."""


class Swept(NamedTuple):
    """What the sweeps of a course found, one after the other."""

    value: Array  # (K, S) where they were made
    u: Array  # (K, S) without its level
    low: Array  # (K, S) steps
    high: Array
    new: Array  # (K, S) F(v)
    passes: Array  # (K, S)
    lower: Array  # (K, S) bounds
    upper: Array
    policy: Array  # (K, S, A)
    memory: Memory  # (K, …) each
    numbers: Array  # (K, 12) a `Survey` each, an `Extent`, the means of the bounds, the best residual, and whether it came by a plain step


class Space(NamedTuple):
    """Work space of a course itself."""

    common: Array  # (S,) or empty
    states: Any  # of an `Order`, (S,) or empty
    down: Array
    sums: Array  # (2, S + 1)
    rank: Any
    below: Any
    beyond: Any
    key: Array  # (S,), also U
    place: Any  # (2, S)
    chain: Array  # (2, S, S)
    right: Array  # (S,)
    listed: Any  # (S,)
    lengths: Any  # (S·A,)
    share: Array  # (S, 1)
    target: Target
    entry_ptr: Any  # (S + 1,)
    prefix_ptr: Any
    terms: Array  # (S,)


class Work(NamedTuple):
    """All work space."""

    space: Space
    orders: Any  # arrays (S,): states by ascending v, first its own
    update: Any  # that of the kernel of updates
    answer: Any  # that of nature's


class Task(NamedTuple):
    """What a course is of, and where it works."""

    update: Any  # entry of the kernel of updates
    respond: Any  # of nature's
    layout: Layout
    mean: Rows
    terminal: Any  # (S,)
    initial: Array  # (S,)
    moving: float  # range of costs of next states
    prefixes: int  # of a row of nature's
    memory: Memory  # that the last sweep left
    policy: Array
    swept: Swept
    work: Work


class Kit:
    """What courses of a model and a kind of set have in common."""

    def __init__(self, problem: Problem, operator: ExactOperator, layout: Layout) -> None:
        family: Any = operator.family
        S, A = layout.available.shape
        N = layout.weights.size
        answer, real = family.NATURE, layout.data.dtype
        self.indptr = layout.indptr  # that of all radii
        whole, short = np.dtype(np.int64), np.dtype(np.int32)
        parts = operator.left.memory
        self.rows = np.empty((8, LONGEST, S))
        kept = Memory(*(np.empty((LONGEST, *part.shape), part.dtype) for part in parts))
        self.swept = Swept._make([*self.rows, np.empty((LONGEST, S, A)), kept, np.empty((LONGEST, 12))])
        listed = S if layout.common and layout.unlisted else 0
        extra = answer.single(layout) if callable(answer.single) else N if answer.single == EACH else answer.single
        lengths = events.lengths(layout) + extra
        entries, terms = int(lengths.sum()), S * A * N if layout.unlisted and answer.prefixes else 0
        target = Target(
            np.empty(S * A + 1, whole), np.empty(entries, short), np.empty(entries, real), np.empty(S * A + 1, whole),
            np.empty(terms, short), np.empty(terms, real), np.empty(terms, real),
        )  # fmt: skip
        space = Space(
            np.empty(S if layout.common else 0), np.empty(listed, short), np.empty(listed), np.empty((2, listed + 1 if listed else 0)),
            np.empty(listed, short), np.empty(listed, short), np.zeros(1, whole), np.empty(S), np.empty((2, S), whole),
            np.empty((2, S, S)), np.empty(S), np.empty(S, whole), lengths, np.ones((S, 1)), target, np.empty(S + 1, whole), np.empty(S + 1, whole), np.empty(S),
        )  # fmt: skip
        point = point_at(layout, np.zeros(S))
        work, answering = family.workspace(layout, point, 0, S), workspace(layout, point, 0, S)
        orders = [np.empty(S, whole), *orders_in(work), *orders_in(answering)]
        orders += [orders[0]] * (ORDERS - len(orders))
        memory, out = Memory(*map(np.copy, parts)), Out(np.empty(S), np.empty(S), np.empty((S, A)), np.empty(S))
        question = Question(out.policy, space.share, target)
        self.radius = np.empty(S)
        own = layout._replace(radius=self.radius.view())
        own.radius.setflags(write=False)
        self._layout: Any = None
        self._left: Any = None
        self.task = Task(
            entry(family.update, 0, S, layout, point, memory, out, 0.0, work),
            entry(answer.kernel, 0, S, layout, point, memory, question, answering),
            own, problem.mean_rows(), operator.model.terminal, operator.model.initial, operator.ready.moving, N if layout.unlisted and answer.prefixes else 0,
            memory, np.copy(operator.left.policy), self.swept, Work(space, tuple(orders), work, answering),
        )  # fmt: skip
        self._pack = Pack(self.task)
        aim = Aim(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, 0)
        self._walk = direct(walk, self._pack, aim, 0.0, True)

    def go(self, layout: Layout, left: Left, aim: Aim, accuracy: float, start: Array | None) -> int:
        """Fill `swept`, from the optimum of the mean kernel on unless there is a start."""
        if layout is not self._layout:
            self.radius[:], self._layout = layout.radius, layout
        if left is not self._left:
            for own, part in zip((*self.task.memory, self.task.policy), (*left.memory, left.policy), strict=True):
                own[:] = part
            self._left = left
        if start is not None:
            self.swept.value[0] = start
        return int(self._walk(self._pack, aim, accuracy, start is None))


def possible(problem: Problem) -> bool:
    """Whether the model is small and was solved before, its kernels are compiled, and nobody watches."""
    operator = problem.operator
    if problem.aim is None or problem.policy is not None or type(operator) is not ExactOperator:
        return False
    if operator.ready.courses is None:
        operator.ready.courses = [] if _fits(operator) else ()
        return False
    return operator.ready.courses != () and operator.left.sweeps + LONGEST < MANY


def _fits(operator: ExactOperator) -> bool:
    layout, family, S = operator.layout, operator.family, operator.model.n_states
    return (
        0 < S <= linear.SMALL
        and isinstance(layout, Layout)
        and isinstance(family, ModuleType)  # others depend on more than the kind of set
        and bool(operator.ready.work[S] < workers.SMALL)
        and not (hasattr(family, "FRESH") or hasattr(family, "prepared"))
        and is_kernel(family.update)
        and is_kernel(family.NATURE.kernel)
    )


def course(problem: Problem, start: Array | None) -> Journey:
    """Sweeps from `start` on, or from the optimum of the mean kernel."""
    operator, aim = problem.operator, problem.aim
    assert isinstance(operator, ExactOperator)
    assert aim is not None
    layout, held, left = operator.layout, operator.ready.courses, operator.left
    try:
        kit = held.pop()
    except IndexError:  # another thread has it
        kit = None
    if kit is None or kit.indptr is not layout.indptr:
        kit = Kit(problem, operator, layout)
    count, swept = kit.go(layout, left, aim, operator.accuracy, start), kit.swept
    memory, numbers = [part[:count].copy() for part in swept.memory], swept.numbers[:count].tolist()
    rows, policy = kit.rows[:, :count].copy(), swept.policy[:count].copy()
    held[:] = [kit]
    return Journey(operator, layout, left.sweeps, rows, policy, memory, numbers)


@njit(**KERNEL)
def walk(pack, aim, accuracy, mean):
    """Go ahead from swept.value[0]; see the module, and `PolicyIteration.step`, whose decisions these are.

    reads   pack (a Task), aim, accuracy (of the first sweep), mean: whether to begin at the optimum of the mean kernel
    fills   pack: what was swept, and work space
    returns how many sweeps count
    """
    task = opened(pack)
    swept, space, discount = task.swept, task.work.space, task.layout.discount
    if mean:
        _begin_at_mean(task, 1e-9 * max(abs(aim.floor), abs(aim.ceiling)))
    span, size, best, plain = np.inf, np.inf, (np.inf, 0.0, 0.0), False
    last = min(swept.value.shape[0] - 1, aim.iterations)
    for k in range(last + 1):
        if not all_finite(swept.value[k]):
            return k
        _begin(k, task)
        point = _sweep(k, task, accuracy)
        if not both_finite(swept.low[k], swept.high[k]):
            return k
        seen = sweep_numbers(swept.value[k], swept.low[k], swept.high[k])
        if not (k <= FREE or plain or aim.one_sided or seen[0] <= ACCEPT * span or seen[1] <= ACCEPT * size):
            return k
        span, size = (seen[0], seen[1]) if k <= FREE else (min(seen[0], span), min(seen[1], size))
        here = _bounded(k, task, aim)
        best = here if here[0] <= best[0] else best
        own = swept.numbers[k]
        own[0], own[1], own[2], own[3] = seen
        own[4], own[5], own[6] = here
        own[7], own[8] = (
            mean_of(task.initial, swept.lower[k], space.terms),
            mean_of(task.initial, swept.upper[k], space.terms),
        )
        own[9], own[10], own[11] = span, size, 1.0 if plain else 0.0
        noise = (seen[2] + EPS * seen[3]) / (1 - discount)
        if not best[0] < np.inf or best[0] <= _goal(aim, best[1]) or NOISY * noise >= best[0]:
            return k + 1
        if k == last or not seen[3] <= aim.runaway:
            return k + 1
        goal = _goal(aim, best[2])
        accuracy = aim.share * goal
        plain = not (plain or aim.one_sided) and seen[2] + discount * discount * seen[0] <= (1 - discount) * goal
        if plain:
            copy(swept.new[k], swept.value[k + 1])
        elif not _newton(k, task, point):
            return k + 1
    return last + 1


@njit(**LEAN)
def _begin_at_mean(task, near):
    """Put the optimum of the mean kernel where the first sweep is made.

    reads   task, near (what it may be off)
    fills   task.swept, task.work
    """
    value, x, space = task.swept.value[0], task.swept.policy[0], task.work.space
    for s in range(value.size):
        value[s] = 0.0
        for a in range(x.shape[1]):
            x[s, a] = 0.0
    rounds(task.mean, True, near, x, value, space.right, space.chain, space.listed)


@njit(**LEAN)
def _goal(aim, scale):
    """The gap to reach, absolute; see `drmdp.core.tolerance.Tolerance.goal`."""
    size = max(scale, aim.cost)
    return aim.rtol * size if np.isnan(aim.tol) else aim.tol


@njit(**LEAN)
def _left(k, swept):
    """The memory of sweep k."""
    return Memory(swept.memory.by_action[k], swept.memory.by_kernel[k], swept.memory.by_row[k])


@njit(**LEAN)
def _begin(k, task):
    """Begin sweep k with what the one before it left.

    reads   k, task
    fills   task.swept
    """
    swept = task.swept
    memory = task.memory if k == 0 else _left(k - 1, swept)
    own = _left(k, swept)
    copy(memory.by_action, own.by_action)
    copy(memory.by_kernel, own.by_kernel)
    for s in range(memory.by_row.shape[0]):
        copy(memory.by_row[s], own.by_row[s])
    copy(task.policy if k == 0 else swept.policy[k - 1], swept.policy[k])


@njit(**LEAN)
def _sweep(k, task, accuracy):
    """One sweep, as `drmdp.bellman.exact` makes it.

    reads   k, task, accuracy
    fills   task.swept, task.work
    returns v as it was seen
    """
    layout, terminal, swept, work = task.layout, task.terminal, task.swept, task.work
    u, policy = swept.u[k], swept.policy[k]
    S, A = policy.shape
    shift = fill_around(swept.value[k], u)
    point = _ordered(layout, u, work.space)
    if len(work.orders) > 1:
        rank(u, work.orders[0], work.space.place[0])
        for n in range(1, len(work.orders)):
            copy(work.orders[0], work.orders[n])
    out = Out(work.space.key, swept.new[k], policy, swept.passes[k])
    for s in range(S):
        out.upper[s], out.lower[s], out.passes[s] = 0.0, 0.0, 0.0
    widest = layout.discount * point.span + task.moving
    tol = min(max(accuracy / widest, FINEST), COARSEST) if widest > 0 else FINEST
    call(task.update, (np.int64(0), S, layout, point, _left(k, swept), out, tol, work.update))
    for s in range(S):
        if terminal[s]:
            for a in range(A):
                policy[s, a] = 0.0
    fill_both_steps(u, shift, layout.discount, terminal, out.lower, out.upper, 4 * EPS, swept.low[k], swept.high[k])
    return point


@njit(**LEAN)
def _ordered(layout, value, space):
    """v as all actions see it, and its states in descending order where unlisted ones matter; see `point_at`.

    reads   layout, value (S,)
    fills   space
    returns a Point
    """
    top, span = look(value, layout.discount, space.common)
    second, level = 0.0, 0.0
    if space.states.size > 0:
        rank_down(value, space.states, space.rank, (space.key, space.place))
        second = add_up(space.common, space.states, (space.down, space.sums[0], space.sums[1]), space.below)
        level = -np.inf
    order = Order(
        space.common, space.states, space.down, space.sums[0], space.sums[1], space.rank, space.below, second, level, space.beyond
    )  # fmt: skip
    return Point(value, top, span, order)


@njit(**LEAN)
def _bounded(k, task, aim):
    """Bounds from sweep k; see `drmdp.solvers.best`.

    reads   k, task, aim
    fills   task.swept
    returns gap, largest |U| and largest distance of 0 from the bounds
    """
    swept, ratio = task.swept, task.layout.discount / (1 - task.layout.discount)
    lower, upper, steps = swept.lower[k], swept.upper[k], (swept.low[k], swept.high[k])
    fill_bounds(swept.value[k], *steps, ratio, task.terminal, aim.floor, aim.ceiling, lower, upper)
    return bound_numbers(lower, upper)


@njit(**LEAN)
def _newton(k, task, point):
    """Where Newton's method goes from sweep k: the chain of its pair, and the system.

    reads   k, task, point
    fills   task.swept.value[k + 1], task.work
    returns whether the policy is one
    """
    layout, swept, space = task.layout, task.swept, task.work.space
    policy = swept.policy[k]
    S, A = policy.shape
    target, chain, first = space.target, space.chain[0], np.int64(0)
    if allot(policy, layout.available, space.lengths, task.prefixes, target.entry_at, target.prefix_at):
        return False
    for e in range(target.entry_at[S * A]):
        target.states[e], target.mass[e] = 0, 0.0
    for e in range(target.prefix_at[S * A]):
        target.length[e], target.slope[e], target.level[e] = 0, 0.0, 0.0
    question = Question(policy, space.share, target)
    call(task.respond, (first, S, layout, point, _left(k, swept), question, task.work.answer))
    for s in range(S + 1):
        space.entry_ptr[s], space.prefix_ptr[s] = target.entry_at[s * A], target.prefix_at[s * A]
    for s in range(S):
        space.right[s] = (swept.low[k, s] + swept.high[k, s]) / 2
        for t in range(S):
            chain[s, t] = 0.0
    ends = space.entry_ptr, target.states, target.mass, space.prefix_ptr
    spell(first, Parts(*ends, target.length, target.slope, target.level), space.states, space.down, chain)
    linear.solve_small(chain, layout.discount, space.right, space.chain[1], space.listed)
    for s in range(S):
        swept.value[k + 1, s] = 0.0 if task.terminal[s] else swept.value[k, s] + space.right[s]
    return True
