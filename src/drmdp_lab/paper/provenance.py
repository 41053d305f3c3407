"""Where a row comes from: machine, versions, commit; no names of hosts or folders. And clocks: time and memory of one call."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._version import __version__
from drmdp.core import threads
from drmdp.core.text import count
from drmdp.errors import MissingExtra

PACKAGES = ("numpy", "scipy", "numba", "clarabel", "highspy", "cvxpy-base", "scs", "quantecon", "mdpsolver")
SHORT = 0.02
"""A call that takes less than so many CPU seconds is repeated."""
REPEATS = 5
LONG = 1.0
"""Below so many, the first call may have taken long to load what it needs: the second one tells."""


@cache
def here() -> dict[str, Any]:
    """Machine, versions, commit and date."""
    return {
        "machine": f"{_processor()}, {count(threads.count(None), 'core')}, {platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {version}" for name, version in _versions()),
        "commit": _commit(),
        "date": date.today().isoformat(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def _versions() -> list[tuple[str, str]]:
    found = [("python", platform.python_version()), ("drmdp", __version__)]
    for name in PACKAGES:
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """Commit of the source, with a plus if files have changed since; "" outside a repository."""
    folder = Path(__file__).parents[1]
    try:
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, capture_output=True, text=True)
        if head.returncode != 0:
            return ""
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "."], cwd=folder, capture_output=True, text=True
        )
    except OSError:
        return ""
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def one_thread() -> AbstractContextManager[Any]:
    """Hold linear algebra to one thread: idle ones spin and count as CPU time."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtra("threadpoolctl", "study") from error
    found: AbstractContextManager[Any] = threadpool_limits(1)
    return found


@dataclass(frozen=True)
class Cost:
    """What a call took; medians if it was repeated."""

    seconds: float  # on the wall
    cpu_seconds: float  # of all threads
    repeats: int
    memory_mb: float | None  # resident memory at the peak of the first call, minus that before it


def timed(call: Callable[[], Any]) -> tuple[Any, Cost]:
    """Result of the first call, and the cost."""
    before = _restart_peak()
    found, *first = clocked(call)
    peak = _status("VmHWM")
    memory = None if before is None or peak is None else max(0.0, peak - before)
    times: list[Any] = [first]
    while len(times) < REPEATS and (min(cpu for _, cpu in times) < SHORT or (times == [first] and first[1] < LONG)):
        times.append(clocked(call)[1:])
    wall, cpu = np.median(np.array(times[1:] or times), axis=0)  # the first may have loaded modules
    return found, Cost(float(wall), float(cpu), len(times), memory)


def clocked(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, seconds on the wall and CPU seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def _restart_peak() -> float | None:
    """Resident memory now, in MB; Linux forgets the peak on request, elsewhere memory is not measured."""
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
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":")), None)
