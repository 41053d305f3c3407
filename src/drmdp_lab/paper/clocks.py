"""Clocks: CPU time and memory of one call, repeated while it is short."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SHORT = 0.1
"""A call that takes less than so many CPU seconds is measured again at a second visit."""
LONG = 1.0
"""One that takes longer than this is made once."""
REPEATS = 3
"""Timed calls at a visit, after a first one that may load what it needs and does not count."""


@dataclass(frozen=True)
class Cost:
    """What the timed calls of a visit took."""

    seconds: float  # on the wall, median
    cpu_times: tuple[float, ...]  # of all threads, a number for each call
    memory_mb: float | None  # resident memory at the peak of the first call, minus that before it

    def cells(self) -> dict[str, Any]:
        """Entries of a row."""
        return {
            "seconds": self.seconds,
            "memory_mb": self.memory_mb,
            **summary(self.cpu_times),
        }


def summary(cpu_times: Sequence[float]) -> dict[str, Any]:
    """Median of repeated calls, and how they scatter."""
    return {
        "cpu_seconds": float(np.median(cpu_times)),
        "cpu_times": [float(f"{value:.6g}") for value in cpu_times],
        "repeats": len(cpu_times),
        "scatter": scatter(cpu_times),
    }


def scatter(values: Sequence[float]) -> float | None:
    """Interquartile range over the median; None of a single call."""
    if len(values) < 2:
        return None
    low, middle, high = np.percentile(values, (25, 50, 75))
    return float((high - low) / middle) if middle > 0 else 0.0


def timed(call: Callable[[], Any]) -> tuple[Any, Cost]:
    """Result of the first call, and the cost."""
    before = _restart_peak()
    result, *first = clocked(call)
    peak = _status("VmHWM")
    memory = None if before is None or peak is None else max(0.0, peak - before)
    times = [tuple(first)]
    while len(times) <= REPEATS and min(cpu for _, cpu in times) < LONG:
        times.append(clocked(call)[1:])
    wall, cpu = zip(*(times[1:] or times), strict=True)
    return result, Cost(float(np.median(wall)), cpu, memory)


def clocked(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, seconds on the wall and CPU seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def _restart_peak() -> float | None:
    """Resident memory now, in MB; Linux forgets the peak on request, elsewhere memory is not
    measured.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":")), None
    )
