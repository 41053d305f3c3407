"""Nature's rows of the pairs that a sweep plays, written while they are at hand; to make them again would take as long as a third of a solve.

Where few thresholds are kept (`drmdp.layout.light`) a pair's rows are y_i = (ŷ_i + t u − τ_i)⁺ with τ_i found again from the one that is kept, so that whoever
writes them from the same memory writes the same bits. A row of the chain is Σ_a x_a Σ_i w_i y_ia. It is for a Newton direction, for which four digits do: its
masses are whole numbers of 16 bits, and a product divides by their sum.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core import threads as workers
from drmdp.core.compiled import KERNEL, njit
from drmdp.layout import events
from drmdp.layout.layout import Layout
from drmdp.layout.light import threshold
from drmdp.layout.memory import Memory
from drmdp.layout.pairs import by_pair
from drmdp.layout.point import Point, Scratch, normalise, scratch

WHOLE = 65535
"""The mass 1."""
TOGETHER = 64
"""Pieces whose rows are put together."""


class Page(NamedTuple):
    """Rows of consecutive states."""

    ptr: Any  # (n + 1,) int32
    states: Any  # int32
    mass: Any  # uint16


class Pages(NamedTuple):
    """The chain of all states, or of a range."""

    pages: tuple[Page, ...]
    threads: int

    def __matmul__(self, z: Array) -> Array:
        """Product with a vector (S,)."""
        ends = np.cumsum([0, *(page.ptr.size - 1 for page in self.pages)])
        work = np.cumsum([0, *(page.mass.size for page in self.pages)])
        out = np.empty(ends[-1])

        def over(lo: int, hi: int) -> None:
            for k in range(lo, hi):
                _product(self.pages[k], z, out[ends[k] : ends[k + 1]])

        workers.run(over, work, 0, len(self.pages), self.threads)
        return out


class _Room(NamedTuple):
    """Where the rows of a piece are written."""

    page: Page
    row: Array  # entries of a pair
    state: Scratch


class Played:
    """Rows of the pairs that a sweep plays."""

    def __init__(self) -> None:
        self._pages: list[tuple[int, Page]] = []
        self._policy: Array | None = None
        self._threads = 1

    @contextlib.contextmanager
    def range(self) -> Iterator[Callable[..., None]]:
        """Gives what writes the rows of the pieces of a range, one after the other; some are put together as soon as they are there."""
        some: list[Page] = []
        first = 0

        def close() -> None:
            if some:
                self._pages.append((first, _joined(some)))
                some.clear()

        def write(own: slice, part: Layout, point: Point, memory: Memory, policy: Array) -> None:
            nonlocal first
            if len(some) == TOGETHER:
                close()
            first = first if some else own.start
            some.append(_page(part, point, memory, policy))

        yield write
        close()

    def of(self, policy: Array, threads: int) -> None:
        """Say whose rows these are."""
        self._policy, self._threads = policy, threads

    def take(self, policy: Array) -> Pages | None:
        """The chain of a policy, once, if it is the one."""
        if self._policy is None or policy is not self._policy:
            return None
        self._policy = None
        return Pages(self.pages(), self._threads)

    def pages(self) -> tuple[Page, ...]:
        """All rows, once."""
        pages, self._pages = sorted(self._pages, key=lambda one: one[0]), []
        return tuple(page for _, page in pages)


def _page(part: Layout, point: Point, memory: Memory, policy: Array) -> Page:
    """The rows of a piece."""
    pairs = part.radius.ndim == 2  # every pair has a scale of its own
    whole = by_pair(part) if pairs else part
    shape, size = whole.available.shape, part.indices.size
    state = scratch(whole, 0, shape[0])
    page = Page(np.zeros(shape[0] + 1, np.int32), np.empty(size, np.int32), np.empty(size, np.uint16))
    bend, tau, weights = (array.reshape(shape) for array in (memory.by_action, memory.by_row, policy))
    k = _write(whole, point, bend, tau, weights, _Room(page, np.empty(state.u.size), state))
    ptr = page.ptr[:: policy.shape[1]].copy() if pairs else page.ptr
    return Page(ptr, page.states[:k].copy(), page.mass[:k].copy())


def _joined(pages: list[Page]) -> Page:
    ptr = np.zeros(sum(page.ptr.size - 1 for page in pages) + 1, np.int32)
    np.cumsum(np.concatenate([np.diff(page.ptr) for page in pages]), out=ptr[1:])
    return Page(ptr, *(np.concatenate([getattr(page, name) for page in pages]) for name in ("states", "mass")))


def written(layout: Any, point: Point, memory: Memory, policy: Array, threads: int) -> Pages:
    """The rows of a policy, as a sweep that leaves this memory writes them."""
    played = Played()

    def over(lo: int, hi: int) -> None:
        with played.range() as write:
            for _, _, part, own in events.pieces(layout, lo, hi):
                write(own, part, point, Memory(*(array[own] for array in memory)), policy[own])

    workers.run(over, events.work(layout), 0, len(policy), threads)
    return Pages(played.pages(), threads)


@njit(**KERNEL)
def _product(page, z, out):
    """Expected values after some states; 0 where nothing is played.

    reads   page, z (S,)
    fills   out (n,)
    """
    for r in range(out.size):
        total, whole = 0.0, 0.0
        for k in range(page.ptr[r], page.ptr[r + 1]):
            mass = np.float64(page.mass[k])
            total += mass * z[page.states[k]]
            whole += mass
        out[r] = total / whole if whole > 0.0 else 0.0


@njit(**KERNEL)
def _write(layout, point, bend, tau, weights, work):
    """Write the rows of the pairs that are played.

    reads   layout, point, bend (n, A), tau (n, A) of the first kernel, weights (n, A)
    fills   work
    returns how many entries there are
    """
    n, A = weights.shape
    w, state, mass, page = layout.weights, work.state, work.row, work.page
    N, k = w.size, np.int64(0)
    for s in range(n):
        first, played = layout.indptr[s * A], False
        for a in range(A):
            played = played or (weights[s, a] > 0.0 and layout.available[s, a])
        if played:
            normalise(layout, point, s, state)
        for a in range(A):
            if not (weights[s, a] > 0.0 and layout.available[s, a]):
                continue
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            K, u, t, level = hi - lo, lo - first, bend[s, a], 1.0 * tau[s, a]
            for j in range(K):
                mass[j] = 0.0
            for i in range(N):
                c, at = weights[s, a] * w[i], N * lo + i * K
                level = threshold(layout.data, at, state.u, u, K, t, level) if t > 0.0 else -np.inf
                for j in range(K):
                    y = layout.data[at + j]
                    mass[j] += c * (max(y + t * state.u[u + j] - level, 0.0) if t > 0.0 else y)
            for j in range(K):
                q = np.int64(WHOLE * min(mass[j], 1.0) + 0.5)
                if q > 0:
                    page.states[k], page.mass[k] = layout.indices[lo + j], q
                    k += 1
        page.ptr[s + 1] = k
    return k
