"""Runs of a routine over ranges of states, on one thread or several.

Routines release the GIL and write each state's results to that state's own place, so results do not
depend on the number of threads or on who runs first. Any number of callers may map at the same
time. A forked child makes threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from drmdp._typing import IntArray
from drmdp.core.validation import is_integer
from drmdp.errors import InputError, shown

Routine = Callable[[int, int], None]
VARIABLE = "DRMDP_THREADS"
MOST = 1024
"""More threads than any machine has cores are a slip."""
PIECES = 8
"""Ranges per thread: enough that a slow one does not keep the others waiting."""
SMALL = 100_000
"""A sweep over fewer probabilities is not worth waking a thread for."""


def count(threads: int | None) -> int:
    """Number of threads to use: as given, else from the environment, else one per core of this
    process.
    """
    given: Any = threads
    if given is None:
        text = os.environ.get(VARIABLE) or str(min(cores(), MOST))
        given = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    if not is_integer(given) or not 1 <= given <= MOST:
        variable = f"threads ({VARIABLE} in the environment)"
        raise InputError(f"{variable} is a whole number from 1 to {MOST}, got {shown(given)}")
    return int(given)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of one process: a forked child inherits the object, but not the threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix="drmdp")


def cut(work: IntArray, start: int, stop: int, pieces: int) -> list[tuple[int, int]]:
    """Cut start … stop into ranges of about equal work; `work` (S + 1,) is cumulative."""
    marks = np.linspace(work[start], work[stop], pieces + 1)[1:-1]
    inner = np.searchsorted(work[start : stop + 1], marks) + start
    return list(pairwise(sorted({start, *inner.tolist(), stop})))


def run(routine: Routine, work: IntArray, start: int, stop: int, threads: int) -> None:
    """Call routine(lo, hi) on ranges that cover start … stop."""
    if threads == 1 or work[stop] - work[start] < SMALL:
        routine(start, stop)
        return
    jobs: list[Future[None]] = []
    try:
        pieces = cut(work, start, stop, PIECES * threads)
        jobs.extend(_submit(routine, piece, threads) for piece in pieces)
        for job in jobs:
            job.result()
    finally:
        for job in jobs:
            job.cancel()
        wait(jobs)


def run_blocks(routine: Routine, n: int, length: int, work: int, threads: int) -> None:
    """Call routine(lo, hi) on blocks of `length` that cover 0 … n, each number `work`."""

    def blocks(lo: int, hi: int) -> None:
        for first in range(length * lo, min(length * hi, n), length):
            routine(first, min(first + length, n))

    count = -(-n // length)
    run(blocks, np.arange(count + 1) * (length * work), 0, count, threads)


def _submit(routine: Routine, piece: tuple[int, int], threads: int) -> Future[None]:
    try:
        return _pool(threads, os.getpid()).submit(routine, *piece)
    except RuntimeError as error:  # a limit of the system
        fault = f"{threads} threads cannot be started: {error}"
        raise InputError(f"{fault}; take fewer ({VARIABLE})") from None
