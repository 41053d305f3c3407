"""Models as lists of transitions, which is how text files and environments have them: (kernel, s,
a, t, p, reward).

A pair with no entry is not available, a state with no pair is terminal. Entries with p = 0 say what
a transition that no kernel has would pay. Rewards that differ between kernels are averaged with
weights p, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.distributions import sum_fault
from drmdp.core.storage import Kernels, extremes, from_parts, slack_of, unsigned
from drmdp.errors import InputError
from drmdp.io.files import memory_limit
from drmdp.model import Model

DENSE_ENTRIES = 50_000_000
"""Models with more probabilities than this, zeros included, are sparse."""
TEXT_TOL = 1e-5
"""How far from 1 a row may be that was printed with few digits."""


@dataclass(frozen=True)
class TransitionList:
    """Transitions, entry by entry, (n,) each."""

    s: IntArray
    a: IntArray
    t: IntArray
    p: Array
    reward: Array
    place: Callable[[int], str]  # names an entry in messages
    kernel: Any = None  # all 0 by default

    def __post_init__(self) -> None:
        if self.kernel is None:
            vars(self).update(kernel=np.zeros(self.s.size, dtype=np.int64))

    def keep(self, chosen: Any) -> TransitionList:
        """Those entries only."""
        at = np.flatnonzero(chosen)
        columns: Any = {n: x[at] for n, x in vars(self).items() if n != "place"}
        return TransitionList(**columns, place=lambda k: self.place(int(at[k])))


@dataclass(frozen=True)
class ModelParts:
    """Settings of a model beside its transitions."""

    discount: float
    initial: Any = None
    states: Any = None
    actions: Any = None
    terminal: Any = None  # (S,) bool; by default the states without entries
    notes: list[str] = field(default_factory=list)
    normalize: bool = False  # scale rows to sum to 1


def check_ids(kind: str, ids: IntArray, base: int) -> int:
    """Count numbers of which all from 0 on are used; sizes are therefore bounded by the length of
    the file.
    """
    used = np.unique(ids)
    if used[0] < 0:
        raise InputError(f"{kind} {int(used[0]) + base} is below {base}, the first number")
    if used[-1] != used.size - 1:
        gap = int(np.argmax(used != np.arange(used.size)))
        hint = "; is the file 1-based (base=1)?" if gap == 0 and base == 0 else ""
        last = int(used[-1]) + base
        raise InputError(f"{kind} {gap + base} is never mentioned, but {kind} {last} is{hint}")
    return int(used.size)


def model_of(cells: TransitionList, shape: tuple[int, int, int], parts: ModelParts) -> Model:
    """Build a model; (N, S, A) is the shape."""
    N, S, A = shape
    if memory_limit() // 64 < N * S * A:
        raise InputError(f"{N} kernels × {S} states × {A} actions do not fit in memory")
    pair = cells.s * A + cells.a
    check_once(cells, pair)
    available = np.zeros((S, A), dtype=bool)
    available.ravel()[pair] = True
    terminal: Any = ~available.any(axis=1) if parts.terminal is None else parts.terminal
    cells = cells.keep(~terminal[cells.s])
    notes = list(parts.notes)
    pair = cells.s * A + cells.a
    p = _rescaled(cells, shape, notes, parts.normalize)
    parts_of = _by_kernel(cells.kernel, pair * S + cells.t, p, N)
    kernels = from_parts(parts_of, S, S, A, S * A * S * N > DENSE_ENTRIES)
    rewards = _rewards(kernels, pair, cells, notes)
    settings = vars(parts) | {"terminal": terminal, "notes": notes}
    return Model(kernels, rewards=rewards, available=available, **settings)


def _by_kernel(kernel: IntArray, keys: IntArray, p: Array, N: int) -> list[tuple[IntArray, Array]]:
    """Keys, ascending, and probabilities of each kernel, without those of probability 0."""
    order = np.lexsort((keys, kernel))
    order = order[p[order] != 0]
    bounds = np.searchsorted(kernel[order], np.arange(N + 1))
    return [(keys[order[lo:hi]], p[order[lo:hi]]) for lo, hi in pairwise(bounds.tolist())]


def check_once(cells: TransitionList, pair: IntArray) -> None:
    """Refuse a transition that is given twice."""
    keys = np.stack([cells.kernel, pair, cells.t])
    order = np.lexsort(keys[::-1])
    same = (keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)
    if same.any():
        second = int(order[1:][same].min())
        first = next(k for k in order.tolist() if (keys[:, k] == keys[:, second]).all())
        earlier = cells.place(min(first, second))
        raise InputError(f"{cells.place(second)}: the transition of {earlier} again")


def _rescaled(
    cells: TransitionList, shape: tuple[int, int, int], notes: list[str], normalize: bool
) -> Array:
    """Probabilities, after dividing out what few printed digits explain; as they are if the model
    is to scale them.
    """
    N, S, A = shape
    p = unsigned(cells.p, slack_of(normalize))
    for k in np.flatnonzero(p < 0)[:1].tolist():
        fault = f"probabilities must not be negative, got {float(p[k])!r}"
        raise InputError(f"{cells.place(k)}: {fault}")
    if normalize:
        return p
    row = (cells.kernel * S + cells.s) * A + cells.a
    total = np.bincount(row, weights=p, minlength=N * S * A)
    off = np.abs(total - 1)
    for k in np.flatnonzero(off[row] > TEXT_TOL)[:1].tolist():
        what = f"the row of kernel {cells.kernel[k]} that begins here"
        raise InputError(f"{cells.place(k)}: {what} {sum_fault(float(total[row[k]]))}")
    few = (off > 1e-9) & (off <= TEXT_TOL)
    if not few.any():
        return p
    most = f"the largest deviation from 1 was {off[few].max():.1e}"
    notes.append(f"{_counted(few, 'row')} renormalised; {most}")
    return np.asarray(p / np.where(few, total, 1.0)[row])


def _rewards(kernels: Kernels, pair: IntArray, cells: TransitionList, notes: list[str]) -> Any:
    """(S, A) if no reward depends on the next state; else a sparse matrix, or (S, A, S) if more are
    known than needed.
    """
    S, A = kernels.n_states, kernels.n_actions
    p, reward = cells.p, cells.reward
    keys, cell = np.unique(pair * S + cells.t, return_inverse=True)
    low, high = extremes(cell, reward, keys.size)
    value = low
    if (low < high).any():
        mass = np.bincount(cell, weights=p, minlength=keys.size)
        weight = np.where(mass[cell] > 0, p, 1.0)
        mean = np.bincount(cell, weights=weight * reward) / np.bincount(cell, weights=weight)
        value = np.where(low < high, mean, low)
        which = f"rewards of {_counted(low < high, 'transition')}"
        notes.append(f"{which} differ between kernels: averaged by probability")
    pairs, columns = np.divmod(keys, S)
    low, high = extremes(pairs, value, S * A)
    if not (low < high).any():
        return np.where(np.isfinite(low), low, 0.0).reshape(S, A)
    if keys.size == kernels.indices.size:
        return sparse.csr_array((value, (pairs, columns)), shape=(S * A, S))
    if memory_limit() // 64 < S * A * S:
        what = f"rewards of {keys.size} transitions, some with probability 0"
        raise InputError(f"{what}, do not fit in memory as (S, A, S)")
    full = np.full((S * A, S), np.nan)
    full[pairs, columns] = value
    return full.reshape(S, A, S)


def _counted(flags: BoolArray, noun: str) -> str:
    n = int(flags.sum())
    return f"{n} {noun}{'' if n == 1 else 's'}"


# ---------------------------------------------------------------------- model → cells


def list_cells(model: Model) -> Iterator[tuple[int, int, int, int, float, float]]:
    """(kernel, s, a, t, p, reward), kernel by kernel; first what transitions of probability 0 would
    pay, if known.
    """
    blocks = model.blocks
    if model.next_costs and not sparse.issparse(model.costs):
        listed = blocks.mask(0, model.n_states)
        known = ~np.isnan(model.costs) & ~listed & model.available[:, :, None]
        for s, a, t in np.argwhere(known).tolist():
            yield 0, s, a, t, 0.0, 0.0 - float(model.costs[s, a, t])
    pairs = np.repeat(np.arange(model.available.size), blocks.lengths)
    states, actions = np.divmod(pairs, model.n_actions)
    costs: Any = model.listed_costs() if model.next_costs else model.costs[states, actions]
    rewards = 0.0 - costs
    for i in range(model.n_kernels):
        p = blocks.data[blocks.positions(i)]
        columns = (states, actions, blocks.indices, p, rewards)
        yield from zip(repeat(i), *(column[p > 0].tolist() for column in columns), strict=False)


def list_held(model: Model, what: str) -> list[tuple[int, int, int, float, float]]:
    """The same for one kernel, where what transitions of probability 0 would pay cannot be held."""
    cells = [cell[1:] for cell in list_cells(model)]
    if any(p == 0 for _, _, _, p, _ in cells):
        raise InputError(f"{what} cannot hold rewards of transitions of probability 0")
    return cells


def check_holdable(model: Model, what: str, next_states: Any = None) -> None:
    """Refuse a model that a list of transitions cannot give back; `next_states` are those listed,
    if not the kernels are.
    """
    even = np.allclose(model.weights, 1 / model.n_kernels, rtol=0, atol=1e-12)
    if next_states is None and not even:
        raise InputError(f"{what} holds no weights of kernels, and these are not equal")
    for a in np.flatnonzero(~model.available.any(axis=0))[:1]:
        raise InputError(f"{what} cannot hold action {model.actions[a]!r}: no state has it")
    reached = np.zeros(model.n_states, dtype=bool)
    reached[model.blocks.indices if next_states is None else next_states] = True
    for s in np.flatnonzero(model.terminal & ~reached)[:1].tolist():
        state = model.states[s]
        raise InputError(f"{what} cannot hold state {state!r}: terminal and never reached")
