"""The proof of a sweep of a small model in one compiled call.

It is that of `drmdp.certificate.compressed`, by the kernel of the set that proves there, in the same machine code, and with the same bits. Around that kernel
arrays are made and looked at one by one, which takes longer than to prove ten states. So what a model and a kind of set need for it is made once, and kept with
the model; the first proof does without.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.certificate.compressed import clean
from drmdp.certificate.sums import Claim, Found, View, Work, fill_rises, look, view, work_space
from drmdp.core import threads as workers
from drmdp.core.compiled import KERNEL, LEAN, call, entry, is_kernel, njit
from drmdp.core.levels import EPS, fill_around, fill_both_steps
from drmdp.core.packs import Pack, direct, opened
from drmdp.layout.events import spread_out
from drmdp.layout.events import work as probabilities
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, empty_memory
from drmdp.layout.sorting import rank_down
from drmdp.sets.registry import entry_of, part_of

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet

MOST = 1000
"""States of a small model; so many are sorted in no time."""


class Task(NamedTuple):
    """What proofs of a model and a kind of set have in common."""

    states: Any  # entry of the kernel that proves
    layout: Layout
    terminal: Any  # (S,)
    every: bool  # see `Claim`
    value: Array  # (S,) without its level
    policy: Array  # (S, A)
    low: Array  # (S,)
    high: Array
    seen: View
    key: Array  # (S,)
    place: Any  # (2, S)
    work: Work


class Kit:
    """Proves sweeps of a model and a kind of set."""

    def __init__(self, model: Model, ball: AmbiguitySet, layout: Layout) -> None:
        (S, A), parts = layout.available.shape, entry_of(ball)
        self._ball: Any = None
        self._radius, self._shares = np.empty(S), (S, layout.weights.size)
        weights = layout.weights / math.fsum(layout.weights.tolist())
        own = layout._replace(weights=weights, radius=self._radius.view())
        own.radius.setflags(write=False)
        value, policy, work = np.zeros(S), np.empty((S, A)), work_space(layout, 0, S)
        memory = empty_memory(S, A, layout.weights.size, parts.keeps, layout.data.dtype)
        seen = view(layout, value)
        found = Found(np.empty(S), np.empty(S), np.empty(self._shares))
        examples = 0, S, own, seen, Claim(policy, memory, ball.by_kernel, False), found, work
        self._pack = Pack(
            Task(
                entry(part_of(parts.certificate, ball).states, *examples), own, model.terminal, ball.by_kernel, value, policy, found.low, found.high, seen,
                np.empty(S), np.empty((2, S), dtype=np.int64), work,
            )
        )  # fmt: skip
        self._kinds = [(part.shape, part.dtype) for part in (value, policy, *memory)]
        self._prove = direct(prove_all, self._pack, value, policy, memory, False, found.low, found.high, found.share)

    def prove(
        self, model: Model, ball: AmbiguitySet, value: Any, policy: Any, memory: Memory, fixed: bool
    ) -> tuple[Array, Array, Array] | None:
        """Steps L − v and U − v, (S,) each, and the share of nature's move that is surely allowed; None if something has another shape."""
        given = [np.ascontiguousarray(part) for part in (value, policy, *memory)]
        if [(part.shape, part.dtype) for part in given] != self._kinds:
            return None
        if ball is not self._ball:
            self._radius[:], self._ball = ball.radii(model), ball
        low, high, share = np.empty(self._shares[0]), np.empty(self._shares[0]), np.empty(self._shares)
        value, policy, *parts = given
        self._prove(self._pack, value, policy, Memory(*parts), fixed, low, high, share)
        return low, high, share


def prove(
    model: Model, ball: AmbiguitySet, value: Any, policy: Any, memory: Any, fixed: bool
) -> tuple[Array, Array, Array] | None:
    """See `Kit.prove`; None also for the first proof of a model, and for those that are not small."""
    key = "proofs", ball.kin
    held = model.kept.get(key)
    if held is None:
        model.kept[key] = [] if _fits(ball, spread_out(model, ball)) else ()
    if held is None or held == () or not isinstance(memory, Memory):
        return None
    try:
        kit = held.pop()
    except IndexError:  # another thread has it
        kit = Kit(model, ball, spread_out(model, ball))
    found: tuple[Array, Array, Array] | None = kit.prove(model, ball, value, policy, memory, fixed)
    held[:] = [kit]
    return found


def _fits(ball: AmbiguitySet, layout: Any) -> bool:
    parts = entry_of(ball)
    proof = part_of(parts.certificate, ball)
    return (
        isinstance(layout, Layout)
        and isinstance(proof, ModuleType)  # others depend on more than the kind of set
        and not parts.keeps.by_pair
        and is_kernel(proof.states)
        and 0 < layout.radius.size <= MOST
        and bool(probabilities(layout)[-1] < workers.SMALL)
    )


@njit(**KERNEL)
def prove_all(pack, value, policy, memory, fixed, low, high, share):
    """Prove all states.

    reads   pack (a Task), value (S,), policy (S, A), memory, fixed (see `Claim`)
    fills   low, high: steps, (S,) each; share (S, N)
    """
    task = opened(pack)
    layout, u, bounds, first = task.layout, task.value, Found(task.low, task.high, share), np.int64(0)
    shift = fill_around(value, u)
    clean(policy, layout.available, task.policy)
    for s in range(u.size):
        bounds.low[s], bounds.high[s] = 0.0, 0.0
        for i in range(share.shape[1]):
            share[s, i] = 1.0
    claim = Claim(task.policy, memory, task.every, fixed)
    call(task.states, (first, u.size, layout, _seen(task), claim, bounds, task.work))
    fill_both_steps(u, shift, layout.discount, task.terminal, bounds.low, bounds.high, 4 * EPS, low, high)


@njit(**LEAN)
def _seen(task):
    """See `view`.

    reads   task.value
    fills   task.seen, task.key, task.place
    returns a View
    """
    value, seen = task.value, task.seen
    top, span = look(value, task.layout.discount, seen.u)
    if seen.states.size > 0:
        rank_down(value, seen.states, seen.place, (task.key, task.place))
        for k in range(value.size):
            seen.down[k] = seen.u[seen.states[k]]
        fill_rises(seen.down, seen.rise, seen.rise2)
    return View(value, top, span, seen.u, seen.states, seen.place, seen.down, seen.rise, seen.rise2, seen.beyond)
