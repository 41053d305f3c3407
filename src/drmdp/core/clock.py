"""Time spent on work: this clock stands still while kernels are being compiled.

Numba compiles a kernel when it is first called and keeps the machine code on disk, so compilation is paid once per machine. It is neither
part of the seconds of a solution nor of its time limit; `compiled` tells it apart.
"""

from __future__ import annotations

import math
import os
import threading
import time

_lock = threading.Lock()
_depth = 0  # kernels that are being compiled now, one inside the other
_since = 0.0  # when the outermost of them began
_total = 0.0
_counts = False  # whether any of them was really compiled


def now() -> float:
    """Seconds on this clock; only differences mean something."""
    with _lock:
        at = time.perf_counter()
        return at - (_total + (at - _since) if _depth else _total)


def compiled() -> float:
    """Seconds that this process has spent on compilation."""
    with _lock:
        return _compiled()


def is_compiling() -> bool:
    """Whether a kernel is being compiled now, in whichever thread."""
    return _depth > 0


def begin_compiling() -> None:
    """Stop the clock; calls may be nested."""
    global _depth, _since
    with _lock:
        if _depth == 0:
            _since = time.perf_counter()
        _depth += 1


def end_compiling(counts: bool = True) -> None:
    """Let the clock go on; from where it would be if nothing that was going on, in whichever thread, counts as compiling."""
    global _depth, _total, _counts
    with _lock:
        _depth -= 1
        _counts |= counts
        if _depth == 0:
            _total += time.perf_counter() - _since if _counts else 0.0
            _counts = False


def deadline(seconds: float | None) -> float:
    """When so many seconds will be over on this clock; infinity without a limit."""
    return math.inf if seconds is None else now() + seconds


def _compiled() -> float:
    return _total + (time.perf_counter() - _since if _depth else 0.0)


def _renew() -> None:
    """Give a forked child a clock that nobody holds."""
    global _lock, _depth, _counts
    _lock, _depth, _counts = threading.Lock(), 0, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
