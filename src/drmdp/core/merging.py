"""Rows of kernels made of laws of events.

Event e has probability p_i(e) in kernel i, and leads from (s, a) to the next state f(s, a, e) at a cost c(s, a, e). So

    ŷ_i(t | s, a) = Σ_{e : f(s, a, e) = t} p_i^k(e),        k = k(s, a) the class of laws that the pair has.

Events that end in the same state at the same cost are one *slot*; at different costs they stay apart, for a kernel has one cost for each entry, and the
conditional cost given the next state would depend on i. Slots are in ascending order of (next state, cost), as a stored model has them. Events that no
kernel has (`live` are the others) are left out: under support "observed" nature may not use them.

Most rules map runs of neighbouring events to a slot, such as "demand above stock". A slot of one event copies its probability; a run that reaches the last
event is a suffix sum of the law, made once; any other is summed up. Nothing is subtracted: tiny probabilities keep their digits. Where next states go up or
down from event to event, rows depend on the class, the direction and where runs begin alone: those that were written before are copied (`Seen`).

**Rounding.** Sums are those of `drmdp.core.sums`: an entry made of E events is off by ½ (1 + E ε) ε ≤ ε, relatively, ε = 2⁻⁵², whatever E is. A law misses 1
by 4 ε at most (`drmdp.core.event_laws`), so that a row sums to 1 up to 5 ε, and each of its entries, divided by that sum, is Σ p(e)/Σ p up to 2 ε, relatively.
So these are rows like any others: within `drmdp.core.storage.rounding(K)` of 1, and what certificates take off for rows of K entries covers how they are made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, KERNEL, njit
from drmdp.core.seen import Seen, copy, keep, look, room_for_seen
from drmdp.core.sums import add, keep_seen


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
    mean: Array
    costs: Array  # of the entries
    slot: Any  # (E,) of each live event
    first: Any  # (E + 1,) live event of each slot
    place: Any  # (E,) of each slot in ascending order
    spare: Any  # (E,) states
    price: Array  # (E,)
    lost: Array  # (E·N,) what the sums of a pair's slots leave out
    seen: Seen
    same: Any  # (1,) entries that hold the only rows there are


def block_of(n: int, A: int, E: int, N: int) -> Block:
    """Room for the rows of n states."""
    whole: Any = np.int64
    return Block(
        np.zeros(n * A + 1, whole), np.zeros(n * A * E, np.int32), np.empty(N * n * A * E), np.empty(n * A * E), np.zeros(n * A * E),
        np.zeros(E, whole), np.zeros(E + 1, whole), np.zeros(E, whole), np.zeros(E, np.int32), np.zeros(E), np.empty(E * N),
        room_for_seen(E, N), np.zeros(1, whole),
    )  # fmt: skip


@njit(**KERNEL)
def fill(asked, laws, merged, block):
    """Write the rows of some states.

    reads   asked, laws, merged (whether events in the same slot are one entry)
    fills   block
    returns the number of entries
    """
    n, A = asked.available.shape
    at = np.int64(0)
    block.indptr[0] = 0
    for s in range(n):
        for a in range(A):
            if asked.available[s, a]:
                c = np.int64(asked.classes[s, a]) if asked.classes.size > 0 else np.int64(0)
                if merged:
                    at += _merge(asked, s, a, laws, c, at, block)
                else:
                    _events(asked, s, a, laws, c, at, block)
                    at += laws.n_live[c]
            block.indptr[s * A + a + 1] = at
    return at


@njit(**INLINE)
def _events(asked, s, a, laws, c, at, block):
    """Write a pair whose entries are its live events; where all pairs have the same laws, rows that are there stay.

    reads   asked, s, a, laws, c, at
    fills   block
    """
    N, K = laws.p.shape[2], laws.n_live[c]
    for k in range(K):
        e = laws.live[c, k]
        block.indices[at + k] = asked.next[s, a, e]
        block.costs[at + k] = asked.costs[s, a, e] if asked.costs.size > 0 else 0.0
    if laws.p.shape[0] == 1 and at < block.same[0]:
        return
    for i in range(N):
        for k in range(K):
            block.data[N * at + i * K + k] = laws.p[c, k, i]
    _average(laws.weights, at, K, block)
    block.same[0] = at + K


@njit(**INLINE)
def _merge(asked, s, a, laws, c, at, block):
    """Write a pair whose entries are its slots.

    reads   asked, s, a, laws, c, at
    fills   block
    returns how many there are
    """
    N, live, n_live = laws.p.shape[2], laws.live[c], laws.n_live[c]
    K, up, down = _runs(asked, s, a, live, n_live, at, block)
    if not (up or down):
        K, runs = _slots(asked, s, a, live, n_live, at, block)
        _ascend(at, K, block)
        _rows(laws, c, K, runs, N * at, block)
        _average(laws.weights, at, K, block)
        return K
    if not up:
        _turn(at, K, block)
    if N == 0:
        return K
    seen = block.seen
    seen.word[0] = np.uint64(2 * c + (2 if up else 1))
    found, place = look(seen)
    if found:
        copy(seen.data, seen.at[place], block.data, N * at, N * K)
        copy(seen.data, seen.at[place] + N * K, block.mean, at, K)
        return K
    _number(seen.word, n_live, up, K, block)
    _rows(laws, c, K, True, N * at, block)
    _average(laws.weights, at, K, block)
    keep(seen, place, block.data, block.mean, N, at, K)
    return K


@njit(**INLINE)
def _runs(asked, s, a, live, n_live, at, block):
    """Find the slots of a pair whose next states, and costs where those are equal, go up or down from event to event: they are runs.

    reads   asked, s, a, live, n_live, at (where its entries begin)
    fills   block: indices and costs from at on; seen.word: where runs begin
    returns how many there are, and whether they ascend, and descend
    """
    word, there, free = block.seen.word, asked.next[s, a], asked.costs.size == 0
    last, falls, rises = np.uint64(at), 0, 0  # unsigned indices are not looked at for their signs
    before = there[np.uint64(live[0])]
    paid = 0.0 if free else asked.costs[s, a, live[0]]
    block.indices[last], block.costs[last] = before, paid
    for j in range(1, word.size):
        bits = np.uint64(1 if j == 1 else 0)
        for k in range(max(1, 64 * (j - 1)), min(64 * j, n_live)):
            e = np.uint64(live[np.uint64(k)])
            t = there[e]
            new, less = t != before, t < before
            if not free:
                x = asked.costs[s, a, e]
                less = less or (not new and x < paid)
                new = new or x != paid
                paid = x
            last += np.uint64(new)
            block.indices[last] = t
            if not free:
                block.costs[last] = paid
            falls += less
            rises += new and not less
            bits |= np.uint64(new) << np.uint64(k & 63)
            before = t
        word[j] = bits
    return np.int64(last) - at + 1, falls == 0, rises == 0


@njit(**INLINE)
def _turn(at, K, block):
    """Turn the slots of a pair around.

    reads   at, K
    fills   block: indices and costs from at on
    """
    for j in range(K // 2):
        p, q = at + j, at + K - 1 - j
        block.indices[p], block.indices[q] = block.indices[q], block.indices[p]
        block.costs[p], block.costs[q] = block.costs[q], block.costs[p]


@njit(**INLINE)
def _number(word, n_live, up, K, block):
    """Number the slots of runs.

    reads   word (where they begin), n_live, up, K
    fills   block: slot, first, place
    """
    j = np.int64(-1)
    for k in range(n_live):
        if word[1 + (k >> 6)] >> np.uint64(k & 63) & np.uint64(1):
            j += 1
            block.first[j] = k
            block.place[j] = j if up else K - 1 - j
        block.slot[k] = j
    block.first[K] = n_live


@njit(**INLINE)
def _average(weights, at, K, block):
    """Write the mean row of a pair, as `drmdp.core.sums.add_rows` adds it up.

    reads   weights (N,), at, K, block.data
    fills   block.mean
    """
    N = weights.size
    for j in range(K):
        block.mean[at + j] = 0.0
    for i in range(N):
        if weights[i] > 0.0:
            for j in range(K):
                block.mean[at + j] += weights[i] * block.data[N * at + i * K + j]
    keep_seen(weights, block.data, N * at, K, block.mean, at)


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
    fills   block.data, block.lost
    """
    n_live, step = laws.n_live[c], np.uint64(K)
    for k in range(n_live):
        j = block.slot[k]
        q, r = np.uint64(base + block.place[j]), np.uint64(j * laws.p.shape[2])
        rest = runs and block.first[j] == k and block.first[j + 1] == n_live
        column = laws.tail[c, k] if rest else laws.p[c, k]
        if block.first[j] == k:
            for i in range(column.size):
                block.data[q], block.lost[r] = column[i], 0.0
                q, r = q + step, r + np.uint64(1)
        else:
            for i in range(column.size):
                block.data[q], block.lost[r] = add(block.data[q], block.lost[r], column[i])
                q, r = q + step, r + np.uint64(1)
        if rest:
            break
