"""The map: run a kernel over ranges of states, on one thread or several.

Kernels release the GIL and write each state's results to that state's own place, so results do not depend on the number of
threads or on who runs first. Threads only, no fork; any number of callers may map at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp._typing import IntArray
from drmdp.errors import InputError

VARIABLE = "DRMDP_THREADS"
PIECES = 8
"""Ranges per thread: enough that a slow one does not keep the others waiting."""
SMALL = 100_000
"""A sweep over fewer probabilities is not worth waking a thread for."""


def count(threads: int | None) -> int:
    """Number of threads to use: as given, else from the environment, else one per core this process may use."""
    given: Any = threads
    if given is None:
        given = os.environ.get(VARIABLE) or _cores()
    try:
        n = int(given)
    except (TypeError, ValueError):
        n = 0
    if n < 1:
        raise InputError(f"threads ({VARIABLE} in the environment) is a whole number from 1 on, got {given!r}")
    return n


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="drmdp")


def cut(work: IntArray, start: int, stop: int, pieces: int) -> list[tuple[int, int]]:
    """Cut start … stop into ranges of about equal work; `work` (S + 1,) is cumulative."""
    marks = np.linspace(work[start], work[stop], pieces + 1)[1:-1]
    edges = np.unique(np.concatenate([[start], np.searchsorted(work[start : stop + 1], marks) + start, [stop]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def run(kernel: Callable[[int, int], None], work: IntArray, start: int, stop: int, threads: int) -> None:
    """Call kernel(lo, hi) on ranges that cover start … stop."""
    if threads == 1 or work[stop] - work[start] < SMALL:
        kernel(start, stop)
        return
    ranges = cut(work, start, stop, PIECES * threads)
    for _ in _pool(threads).map(lambda piece: kernel(*piece), ranges):
        pass
