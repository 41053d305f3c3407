"""Rows of kernels made of laws of events.

Event e has probability p_i(e) in kernel i, and leads from (s, a) to the next state f(s, a, e) at a cost c(s, a, e). So

    ŷ_i(t | s, a) = Σ_{e : f(s, a, e) = t} p_i^k(e),        k = k(s, a) the class of laws that the pair has.

Events that end in the same state at the same cost are one *slot*; at different costs they stay apart, for a kernel has one cost for each entry, and the
conditional cost given the next state would depend on i. Slots are in ascending order of (next state, cost), as a stored model has them. Events that no
kernel has (`live` are the others) are left out: under support "observed" nature may not use them.

Most rules map runs of neighbouring events to a slot, such as "demand above stock". A slot of one event copies its probability; a run that reaches the last
event is a suffix sum of the law, made once; any other is summed up. Nothing is subtracted: tiny probabilities keep their digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.core.storage import rounding, row_sum_tol
from drmdp.errors import InputError


class Laws(NamedTuple):
    """Laws by class, the live events of each class first."""

    p: Array  # (C, E, N)
    tail: Array  # (C, E, N), sums from each live event on
    live: Any  # (C, E) events
    n_live: Any  # (C,)


def laws_of(laws: Array, used: Any) -> Laws:
    """Laws (C, N, E) of the kernels that are used, (N,) flags; live is what one of them has."""
    own = laws[:, used]
    alive = (own > 0).any(axis=1)
    order = np.argsort(~alive, axis=1, kind="stable")
    p = np.ascontiguousarray(np.take_along_axis(own, order[:, None, :], axis=2).transpose(0, 2, 1))
    tail = np.ascontiguousarray(np.cumsum(p[:, ::-1], axis=1)[:, ::-1])
    return Laws(p, tail, order.astype(np.int64), alive.sum(axis=1).astype(np.int64))


def checked_laws(given: ArrayLike, n_events: int, n_classes: int | None = None) -> Array:
    """Laws as (C, N, E), each a distribution; the first that is none is named."""
    laws, _ = checks.numbers_with_slack("laws", given)
    tol = row_sum_tol(np.asarray(given).dtype) if isinstance(given, np.ndarray) else 1e-9
    laws = laws[None] if laws.ndim == 2 else laws
    if laws.ndim != 3 or laws.shape[2] != n_events or 0 in laws.shape or (n_classes or len(laws)) != len(laws):
        raise InputError(f"laws: expected shape (N, {n_events}) or (classes, N, {n_events}), got {np.shape(given)}")
    sums = laws.sum(axis=2)
    for bad, rule in ((~np.isfinite(laws), "must be finite"), (laws < 0, "must not be negative")):
        if bad.any():
            c, i, e = (int(k) for k in np.argwhere(bad)[0])
            where = f"class {c}, " if len(laws) > 1 else ""
            raise InputError(f"laws {rule}: {where}law {i}, event {e} has {float(laws[c, i, e])!r}")
    if (np.abs(sums - 1) > tol).any():
        c, i = (int(k) for k in np.argwhere(np.abs(sums - 1) > tol)[0])
        where = f"class {c}, " if len(laws) > 1 else ""
        raise InputError(f"laws must sum to 1: {where}law {i} sums to {float(sums[c, i])!r}")
    off = np.abs(sums - 1) > rounding(n_events)
    return np.where(off[:, :, None], laws / sums[:, :, None], laws)


class Asked(NamedTuple):
    """What the rule says of some states."""

    next: Any  # (n, A, E) int32
    costs: Array  # (n, A, E), or (0, 0, 0)
    classes: Any  # (n, A), or (0, 0): all 0
    available: Any  # (n, A)


class Block(NamedTuple):
    """Rows of some states, in the arrays of `drmdp.core.storage`, and work space."""

    indptr: Any  # (n·A + 1,)
    indices: Any
    data: Array
    costs: Array  # of the entries
    slot: Any  # (E,) of each live event
    first: Any  # (E + 1,) live event of each slot
    place: Any  # (E,) of each slot in ascending order
    spare: Any  # (E,) states
    price: Array  # (E,)


def block_of(n: int, A: int, E: int, N: int) -> Block:
    """Room for the rows of n states."""
    whole: Any = np.int64
    return Block(
        np.zeros(n * A + 1, whole), np.zeros(n * A * E, np.int32), np.zeros(N * n * A * E), np.zeros(n * A * E),
        np.zeros(E, whole), np.zeros(E + 1, whole), np.zeros(E, whole), np.zeros(E, np.int32), np.zeros(E),
    )  # fmt: skip


@njit(**KERNEL)
def fill(asked, laws, merged, block):
    """Write the rows of some states.

    reads   asked, laws, merged (whether events in the same slot are one entry)
    fills   block
    returns the number of entries
    """
    n, A = asked.available.shape
    N = laws.p.shape[2]
    at = np.int64(0)
    block.indptr[0] = 0
    for s in range(n):
        for a in range(A):
            if asked.available[s, a]:
                c = np.int64(asked.classes[s, a]) if asked.classes.size > 0 else np.int64(0)
                if merged:
                    K, runs = _slots(asked, s, a, laws.live[c], laws.n_live[c], at, block)
                    _ascend(at, K, block)
                    _rows(laws, c, K, runs, N * at, block)
                else:
                    K = laws.n_live[c]
                    _events(asked, s, a, laws, c, at, block)
                at += K
            block.indptr[s * A + a + 1] = at
    return at


@njit(**INLINE)
def _events(asked, s, a, laws, c, at, block):
    """Write a pair whose entries are its live events.

    reads   asked, s, a, laws, c, at
    fills   block
    """
    N, K = laws.p.shape[2], laws.n_live[c]
    for k in range(K):
        e = laws.live[c, k]
        block.indices[at + k] = asked.next[s, a, e]
        block.costs[at + k] = asked.costs[s, a, e] if asked.costs.size > 0 else 0.0
    for i in range(N):
        for k in range(K):
            block.data[N * at + i * K + k] = laws.p[c, k, i]


@njit(**INLINE)
def _slots(asked, s, a, live, n_live, at, block):
    """Find the slots of a pair, in the order met.

    reads   asked, s, a, live, n_live, at (where its entries begin)
    fills   block: indices and costs from at on, slot, first
    returns how many there are, and whether each is a run of live events
    """
    K = np.int64(0)
    runs = True
    lowest, highest = np.int64(0), np.int64(-1)
    for k in range(n_live):
        e = live[k]
        t = asked.next[s, a, e]
        x = asked.costs[s, a, e] if asked.costs.size > 0 else 0.0
        j = np.int64(-1)
        if K > 0 and block.indices[at + K - 1] == t and block.costs[at + K - 1] == x:
            j = K - 1
        elif lowest <= t and t <= highest:
            j = K - 2
            while j >= 0 and not (block.indices[at + j] == t and block.costs[at + j] == x):
                j -= 1
            if j >= 0:
                runs = False
        if j < 0:
            block.indices[at + K] = t
            block.costs[at + K] = x
            block.first[K] = k
            j = K
            lowest = np.int64(t) if K == 0 or t < lowest else lowest
            highest = np.int64(t) if K == 0 or t > highest else highest
            K += 1
        block.slot[k] = j
    block.first[K] = n_live
    return K, runs


@njit(**INLINE)
def _ascend(at, K, block):
    """Put slots in ascending order of (next state, cost).

    reads   at, K
    fills   block: indices and costs from at on, place (K,): where each slot went; spare, price
    """
    up, down = True, True
    for j in range(1, K):
        t, before = block.indices[at + j], block.indices[at + j - 1]
        less = t < before or (t == before and block.costs[at + j] < block.costs[at + j - 1])
        up = up and not less
        down = down and less
    for j in range(K):
        block.place[j] = K - 1 - j if down and K > 1 else j
    if up:
        return
    for j in range(K):
        block.spare[j] = block.indices[at + j]
        block.price[j] = block.costs[at + j]
    if not down:
        for j in range(K):
            before = 0
            for m in range(K):
                t = block.spare[m]
                before += t < block.spare[j] or (t == block.spare[j] and block.price[m] < block.price[j])
            block.place[j] = before
    for j in range(K):
        block.indices[at + block.place[j]] = block.spare[j]
        block.costs[at + block.place[j]] = block.price[j]


@njit(**INLINE)
def _rows(laws, c, K, runs, base, block):
    """Write the N rows of a pair.

    reads   laws, c (its class), K (its slots), runs, base (where its rows begin), block: slot, first, place
    fills   block.data
    """
    n_live, step = laws.n_live[c], np.uint64(K)
    for k in range(n_live):
        j = block.slot[k]
        q = np.uint64(base + block.place[j])
        rest = runs and block.first[j] == k and block.first[j + 1] == n_live
        column = laws.tail[c, k] if rest else laws.p[c, k]
        if block.first[j] == k:
            for i in range(column.size):
                block.data[q] = column[i]
                q += step
        else:
            for i in range(column.size):
                block.data[q] += column[i]
                q += step
        if rest:
            break
