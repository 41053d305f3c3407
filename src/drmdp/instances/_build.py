"""Parts of the families: checked sizes, random rows, and kernels made of them.

Kernels are built in the storage of the package, so that a dense and a sparse instance are the same
numbers and nothing of size S·A·S is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from drmdp._typing import Array
from drmdp.core.storage import Kernels, compress_sparse, over_rows
from drmdp.core.validation import integer
from drmdp.errors import unexpected
from drmdp.io.files import require
from drmdp.ui.text import count

SPREAD = 0.3
"""Default deviation of the logarithm of the factors in `log_normal`."""


def check_sizes(n_states: int, n_actions: int, n_kernels: int, successors: int) -> None:
    """Refuse sizes that do not fit in memory, with so many next states of a pair."""
    pairs = f"{n_states:,} states × {n_actions:,} actions"
    entries = f"{count(n_kernels, 'kernel')} × {count(successors, 'next state')}"
    nbytes = 8.0 * n_states * n_actions * successors * (n_kernels + 3)
    require(nbytes, f"{pairs} × {entries}")


def n_successors(branching: Any, n_states: int) -> int:
    """Count the next states of a pair: an int is the count itself, a float a share of S, rounded
    up, at least 1.
    """
    if isinstance(branching, int | np.integer):
        return integer("branching", branching, 1, n_states)
    if not isinstance(branching, float | np.floating) or not 0 < branching <= 1:
        raise unexpected(
            "branching", "a share in (0, 1] or a whole number of next states", branching
        )
    # .07 · 100 is 7.000000000000001 in floating point, and means 7
    return max(1, math.ceil(round(float(branching) * n_states, 9)))


def subsets(rng: np.random.Generator, rows: int, n: int, k: int) -> Any:
    """Draw k distinct numbers below n for each row, ascending and uniformly among all subsets,
    (rows, k) int32.
    """
    if 2 * k > n:
        flags = np.ones((rows, n), dtype=bool)
        np.put_along_axis(flags, subsets(rng, rows, n, n - k), False, axis=1)
        return np.nonzero(flags)[1].astype(np.int32).reshape(rows, k)
    chosen = np.sort(rng.integers(n, size=(rows, k), dtype=np.int32), axis=1)
    open_rows = np.arange(rows)
    while open_rows.size:  # redraw duplicates, alike for all numbers: subsets stay uniform
        drawn = chosen[open_rows]
        twice = drawn[:, 1:] == drawn[:, :-1]
        clash = twice.any(axis=1)
        open_rows, drawn, twice = open_rows[clash], drawn[clash], twice[clash]
        drawn[:, 1:][twice] = rng.integers(n, size=int(twice.sum()), dtype=np.int32)
        chosen[open_rows] = np.sort(drawn, axis=1)
    return chosen


def cuts(rng: np.random.Generator, rows: int, k: int) -> Array:
    """Draw distributions on k points, the gaps between k − 1 sorted uniform cuts of [0, 1], (rows,
    k).
    """
    inner = np.sort(rng.random((rows, k - 1)), axis=1)
    return np.diff(inner, axis=1, prepend=0.0, append=1.0)


def kernel_of(
    lo: int, hi: int, n_states: int, n_actions: int, moves: Iterable[tuple[Any, ...]]
) -> Kernels:
    """Build the kernel of the states lo … hi − 1 from moves (s, a, t, probability), each a number
    or an array; equal (s, a, t) add up.

    Moves of other states are left out.
    """
    columns = zip(*(np.broadcast_arrays(*np.atleast_1d(*move)) for move in moves), strict=True)
    s, a, t, probability = (np.concatenate(column) for column in columns)
    inside = (s >= lo) & (s < hi)
    places = (((s - lo) * n_actions + a)[inside], t[inside])
    matrix = coo_array((probability[inside], places), shape=((hi - lo) * n_actions, n_states))
    return compress_sparse([matrix], np.ones((hi - lo, n_actions), dtype=bool))


def random_kernel(
    rng: np.random.Generator, n_states: int, n_actions: int, successors: Any
) -> Kernels:
    """Build the kernel of n states with `cuts` as probabilities of the given successors, (n·A, k),
    distinct and ascending.
    """
    pairs, k = successors.shape
    indptr = np.arange(0, pairs * k + 1, k)
    probabilities = cuts(rng, pairs, k).ravel()
    indices = successors.astype(np.int32, copy=False).ravel()
    return Kernels(n_states, n_actions, 1, indptr, indices, probabilities, is_sparse=True)


def resample(kernel: Kernels, n_kernels: int, draw: Callable[[Array], Array]) -> Kernels:
    """Sample kernels on the support of a single one, all of the same states.

    `draw` turns its stored probabilities into random positive weights, which are normalised row by
    row. Kernels are drawn one after the other, so the first ones do not depend on how many there
    are.
    """
    nominal, lengths = kernel.entries(0), kernel.lengths
    data = np.empty(n_kernels * nominal.size)
    samples = replace(kernel, n_kernels=n_kernels, data=data.view())  # which is made read-only
    for i in range(n_kernels):
        weights = draw(nominal)
        weights /= np.repeat(over_rows(np.add, weights, kernel.indptr), lengths)
        data[samples.positions(i)] = weights
    return samples


def log_normal(rng: np.random.Generator, spread: float) -> Callable[[Array], Array]:
    """Return a draw for `resample` that multiplies each probability by exp(spread · z), z standard
    normal.
    """
    return lambda p: np.exp(spread * rng.standard_normal(p.size)) * p


def bump(distance: Any) -> Array:
    """Cost 10·exp(−½(distance/5)²) of being near a place to avoid."""
    return np.asarray(10 * np.exp(-0.5 * (distance / 5) ** 2))
