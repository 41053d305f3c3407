"""Models as lists of transitions, which is how text files and environments have them: (kernel, s, a, t, p, reward).

A pair with no entry is not available, a state with no pair is terminal. Entries with p = 0 say what a transition that
no kernel has would pay. Rewards that differ between kernels are averaged with weights p, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, IntArray
from drmdp.core.distributions import fault
from drmdp.core.files import memory_limit
from drmdp.core.storage import NEGATIVE, NEGATIVE_NORMALIZED, Kernels, from_parts, unsigned
from drmdp.errors import InputError
from drmdp.model import Model

DENSE_ENTRIES = 50_000_000
"""Models with more probabilities than this, zeros included, are sparse."""
TEXT_TOL = 1e-5
"""How far from 1 a row may be that was printed with few digits."""


@dataclass(frozen=True)
class Cells:
    """Transitions, entry by entry, (n,) each."""

    kernel: IntArray
    s: IntArray
    a: IntArray
    t: IntArray
    p: Array
    reward: Array
    place: Callable[[int], str]  # names an entry in messages

    def keep(self, chosen: Any) -> Cells:
        """Those entries only."""
        at = np.flatnonzero(chosen)
        columns = (self.kernel, self.s, self.a, self.t, self.p, self.reward)
        kernel, s, a, t, p, reward = (column[at] for column in columns)
        return Cells(kernel, s, a, t, p, reward, lambda k: self.place(int(at[k])))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Parts:
    """What else a model has."""

    discount: float
    initial: Any = None
    states: Any = None
    actions: Any = None
    terminal: Any = None  # (S,) bool; by default the states without entries
    notes: list[str] = field(default_factory=list)
    normalize: bool = False  # scale rows to sum to 1


def check_ids(kind: str, ids: IntArray, base: int) -> int:
    """How many there are, if all numbers from 0 are used; sizes are therefore bounded by the length of the file."""
    used = np.unique(ids)
    if used[0] < 0:
        raise InputError(f"{kind} {int(used[0]) + base} is below {base}, the first number")
    if used[-1] != used.size - 1:
        gap = int(np.argmax(used != np.arange(used.size)))
        hint = "; is the file 1-based (base=1)?" if gap == 0 and base == 0 else ""
        raise InputError(f"{kind} {gap + base} is never mentioned, but {kind} {int(used[-1]) + base} is{hint}")
    return int(used.size)


def model_of(cells: Cells, shape: tuple[int, int, int], parts: Parts) -> Model:
    """Build a model; (N, S, A) is the shape."""
    N, S, A = shape
    n_rows = N * S * A
    if n_rows > memory_limit() // 64:
        raise InputError(f"{N} kernels × {S} states × {A} actions do not fit in memory")
    pair = cells.s * A + cells.a
    check_once(cells, pair)
    available = np.zeros((S, A), dtype=bool)
    available.ravel()[pair] = True
    terminal: Any = ~available.any(axis=1) if parts.terminal is None else parts.terminal
    cells = cells.keep(~terminal[cells.s])
    notes = list(parts.notes)
    pair = cells.s * A + cells.a
    p = _rescaled(cells, pair, shape, notes, parts.normalize)
    parts_of = _by_kernel(cells.kernel, pair * S + cells.t, p, N)
    kernels = from_parts(parts_of, S, S, A, S * A * S * N > DENSE_ENTRIES)
    rewards = _rewards(kernels, pair, cells, notes)
    return Model(
        kernels,
        rewards=rewards,
        discount=parts.discount,
        initial=parts.initial,
        states=parts.states,
        actions=parts.actions,
        available=available,
        terminal=terminal,
        notes=notes,
        normalize=parts.normalize,
    )


def _by_kernel(kernel: IntArray, keys: IntArray, p: Array, N: int) -> list[tuple[IntArray, Array]]:
    """Keys, ascending, and probabilities of each kernel, without those of probability 0."""
    order = np.lexsort((keys, kernel))
    order = order[p[order] != 0]
    bounds = np.searchsorted(kernel[order], np.arange(N + 1))
    return [(keys[order[lo:hi]], p[order[lo:hi]]) for lo, hi in pairwise(bounds.tolist())]


def check_once(cells: Cells, pair: IntArray) -> None:
    """Refuse a transition that is given twice."""
    keys = np.stack([cells.kernel, pair, cells.t])
    order = np.lexsort(keys[::-1])
    same = (keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)
    if same.any():
        second = int(order[1:][same].min())
        first = next(k for k in order.tolist() if (keys[:, k] == keys[:, second]).all())
        raise InputError(f"{cells.place(second)}: the transition of {cells.place(min(first, second))} again")


def _rescaled(cells: Cells, pair: IntArray, shape: tuple[int, int, int], notes: list[str], normalize: bool) -> Array:
    """Probabilities, after dividing out what few printed digits explain; as they are if the model is to scale them."""
    N, S, A = shape
    p = unsigned(cells.p, NEGATIVE_NORMALIZED if normalize else NEGATIVE)
    if (p < 0).any():
        k = int(np.argmax(p < 0))
        raise InputError(f"{cells.place(k)}: probabilities must not be negative, got {float(p[k])!r}")
    if normalize:
        return p
    row = cells.kernel * (S * A) + pair
    total = np.bincount(row, weights=p, minlength=N * S * A)
    off = np.abs(total - 1)
    wrong = off[row] > TEXT_TOL
    if wrong.any():
        k = int(np.argmax(wrong))
        what = f"the row of kernel {cells.kernel[k]} that begins here"
        raise InputError(f"{cells.place(k)}: {what} {fault(float(total[row[k]]))}")
    few = (off > 1e-9) & (off <= TEXT_TOL)
    if not few.any():
        return p
    n = int(few.sum())
    notes.append(f"{n} row{'' if n == 1 else 's'} renormalised; the largest deviation from 1 was {off[few].max():.1e}")
    return np.asarray(p / np.where(few, total, 1.0)[row])


def _rewards(kernels: Kernels, pair: IntArray, cells: Cells, notes: list[str]) -> Any:
    """(S, A) if no reward depends on the next state; else a sparse matrix, or (S, A, S) if more are known than needed."""
    S, A = kernels.n_states, kernels.n_actions
    p, reward = cells.p, cells.reward
    keys, cell = np.unique(pair * S + cells.t, return_inverse=True)
    low, high = _span(cell, reward, keys.size)
    value = low
    if (low < high).any():
        mass = np.bincount(cell, weights=p, minlength=keys.size)
        weight = np.where(mass[cell] > 0, p, 1.0)
        mean = np.bincount(cell, weights=weight * reward) / np.bincount(cell, weights=weight)
        value = np.where(low < high, mean, low)
        n = int((low < high).sum())
        notes.append(
            f"rewards of {n} transition{'' if n == 1 else 's'} differ between kernels: averaged by probability"
        )
    pairs, columns = np.divmod(keys, S)
    low, high = _span(pairs, value, S * A)
    if not (low < high).any():
        return np.where(np.isfinite(low), low, 0.0).reshape(S, A)
    if keys.size == kernels.indices.size:
        return sparse.csr_array((value, (pairs, columns)), shape=(S * A, S))
    n_cells = S * A * S
    if n_cells > memory_limit() // 64:
        raise InputError(
            f"rewards of {keys.size} transitions, some with probability 0, do not fit in memory as (S, A, S)"
        )
    full = np.full((S * A, S), np.nan)
    full[pairs, columns] = value
    return full.reshape(S, A, S)


def _span(group: IntArray, values: Array, n: int) -> tuple[Array, Array]:
    """Smallest and largest value of each group, (n,); ±inf where there is none."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return low, high


# ---------------------------------------------------------------------- model → cells


def list_cells(model: Model) -> Iterator[tuple[int, int, int, int, float, float]]:
    """(kernel, s, a, t, p, reward), kernel by kernel; first what transitions of probability 0 would pay, if known."""
    blocks, A, N = model.blocks, model.n_actions, model.n_kernels
    rewards = 0.0 - model.listed_costs() if model.next_costs else None
    if model.next_costs and not sparse.issparse(model.costs):
        known = ~np.isnan(model.costs) & ~blocks.mask(0, model.n_states) & model.available[:, :, None]
        for s, a, t in np.argwhere(known).tolist():
            yield 0, s, a, t, 0.0, 0.0 - float(model.costs[s, a, t])
    for i in range(N):
        data = blocks.data[blocks.positions(i)]
        for pair in range(model.n_states * A):
            s, a = divmod(pair, A)
            for k in range(int(blocks.indptr[pair]), int(blocks.indptr[pair + 1])):
                if data[k] > 0:
                    reward = 0.0 - float(model.costs[s, a]) if rewards is None else float(rewards[k])
                    yield i, s, a, int(blocks.indices[k]), float(data[k]), reward


def check_holdable(model: Model, what: str, next_states: Any = None) -> None:
    """Refuse a model that a list of transitions cannot give back; `next_states` are those listed, if not the kernels are."""
    if next_states is None and not np.allclose(model.weights, 1 / model.n_kernels, rtol=0, atol=1e-12):
        raise InputError(f"{what} holds no weights of kernels, and these are not equal")
    closed = ~model.available.any(axis=0)
    if closed.any():
        raise InputError(f"{what} cannot hold action {model.actions[int(np.argmax(closed))]!r}: no state has it")
    reached = np.zeros(model.n_states, dtype=bool)
    reached[model.blocks.indices if next_states is None else next_states] = True
    lost = model.terminal & ~reached
    if lost.any():
        raise InputError(f"{what} cannot hold state {model.states[int(np.argmax(lost))]!r}: terminal and never reached")
