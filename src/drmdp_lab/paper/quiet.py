"""How quiet the machine is beside a run: one core, one thread, and what other processes take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from drmdp.errors import MissingExtra

BUSY = 0.3
"""Cores that other processes may keep busy beside a run; with more of them a row is marked."""
SPAN = 1.0
"""Seconds that a load is measured over at least: the system counts in hundredths of a second."""
LOOK = 0.5
"""Seconds of a first look, before a pass."""


class Sample(NamedTuple):
    """A time, and the CPU seconds of other processes until then."""

    wall: float
    others: float


def sample() -> Sample | None:
    """Now; None where the system does not tell (Linux does)."""
    try:
        total = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user, nice, system, _, _, *interrupts = map(int, total)  # idle and waiting for disks left out
    busy = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    used = own.user + own.system + own.children_user + own.children_system
    return Sample(time.perf_counter(), busy - used)


def load(since: Sample | None, until: Sample | None) -> float | None:
    """Cores that other processes kept busy between two samples."""
    if since is None or until is None or until.wall <= since.wall:
        return None
    return max(0.0, (until.others - since.others) / (until.wall - since.wall))


class Neighbours:
    """The load of other processes beside one row after another."""

    def __init__(self) -> None:
        self._samples: list[Sample | None] = [sample()]

    def beside(self) -> float | None:
        """Load since the last time this was asked, or over SPAN if that is longer."""
        now = sample()
        if now is None:
            return None
        old = [s for s in self._samples if s is not None and now.wall - s.wall >= SPAN]
        found = load(old[-1] if old else self._samples[0], now)
        self._samples = [*old[-1:], *(s for s in self._samples if s not in old), now]
        return found


def warning() -> str | None:
    """A sentence, if other processes keep the machine busy now."""
    before = sample()
    if before is None:
        return None
    time.sleep(LOOK)
    now = load(before, sample())
    if now is None or now <= BUSY:
        return None
    return (
        f"the machine is busy: other processes take {now:.1f} cores; times scatter, "
        f"and rows beside a load above {BUSY:g} are marked"
    )


@contextmanager
def pinned() -> Iterator[int | None]:
    """Hold this process to one core, the last it may use; None where systems cannot."""
    try:
        allowed = os.sched_getaffinity(0)
        core = max(allowed)
        os.sched_setaffinity(0, {core})
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield core
    finally:
        os.sched_setaffinity(0, allowed)


def one_thread() -> AbstractContextManager[Any]:
    """Hold linear algebra to one thread: idle ones spin and count as CPU time."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtra("threadpoolctl", "study") from error
    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits
