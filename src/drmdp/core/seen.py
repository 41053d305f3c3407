"""Rows that were made before, by what they are made of: a small table of fixed size, for one thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import INLINE, njit

PLACES = 1024
"""For rows that were seen, twice as many as are kept."""
NUMBERS = 2**19
"""That are kept, about."""


class Seen(NamedTuple):
    """Rows that were written before, by what they are made of."""

    keys: Any  # (places, words) uint64: class and direction, then where runs begin; 0 in a free place
    at: Any  # (places,) where the rows begin in data, their mean behind them
    data: Array
    used: Any  # (2,) numbers in data, places
    word: Any  # (words,) the key that is looked for


def room_for_seen(E: int, N: int) -> Seen:
    """Nothing was seen."""
    words, whole = 1 + (E + 63) // 64, np.dtype(np.int64)
    kept = min(PLACES // 2, 1 + NUMBERS // (E * (N + 1))) * E * (N + 1)
    return Seen(
        np.zeros((PLACES, words), np.uint64), np.zeros(PLACES, whole), np.empty(kept), np.zeros(2, whole), np.zeros(words, np.uint64)
    )  # fmt: skip


@njit(**INLINE)
def look(seen):
    """Look for rows.

    reads   seen
    returns whether they are there, and in which place; or a free one, −1 if there is none
    """
    mixed = np.uint64(0)
    for j in range(seen.word.size):
        mixed = (mixed ^ seen.word[j]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    place = np.int64(mixed % np.uint64(PLACES))
    while seen.keys[place, 0] != 0:
        same = True
        for j in range(seen.word.size):
            same = same and seen.keys[place, j] == seen.word[j]
        if same:
            return True, place
        place = (place + 1) % PLACES
    return False, place if 2 * seen.used[1] < PLACES else np.int64(-1)


@njit(**INLINE)
def copy(source, at, target, to, n):
    """Copy n numbers.

    reads   source from at on
    fills   target from to on
    """
    p, q = np.uint64(at), np.uint64(to)
    for k in range(np.uint64(n)):
        target[q + k] = source[p + k]


@njit(**INLINE)
def keep(seen, place, data, mean, N, at, K):
    """Keep the rows of a pair, if there is room.

    reads   place (a free one, or −1), data from N·at on, mean from at on, K (entries)
    fills   seen
    """
    to = seen.used[0]
    if place >= 0 and to + (N + 1) * K <= seen.data.size:
        for j in range(seen.word.size):
            seen.keys[place, j] = seen.word[j]
        seen.at[place] = to
        copy(data, N * at, seen.data, to, N * K)
        copy(mean, at, seen.data, to + N * K, K)
        seen.used[0] += (N + 1) * K
        seen.used[1] += 1
