"""Time spent on work: this clock stands still while kernels are being compiled.

Numba compiles a kernel when it is first called and keeps the machine code on disk, so compilation is paid once per machine. It is neither
part of the seconds of a solution nor of its time limit; `compiled` tells it apart.
"""

from __future__ import annotations

import math
import os
import threading
import time

_lock = threading.Lock()  # for those who change what follows
_depth = 0  # kernels that are being compiled now, one inside the other
_counts = False  # whether any of them was really compiled
_spent: tuple[float, float | None] = (
    0.0,
    None,
)  # seconds of compilation that are over, and since when there is more; replaced as one


def now() -> float:
    """Seconds on this clock; only differences mean something."""
    total, since = _spent
    return (time.perf_counter() if since is None else since) - total


def compiled() -> float:
    """Seconds that this process has spent on compilation."""
    total, since = _spent
    return total if since is None else total + (time.perf_counter() - since)


def is_compiling() -> bool:
    """Whether a kernel is being compiled now, in whichever thread."""
    return _depth > 0


def begin_compiling() -> None:
    """Stop the clock; calls may be nested."""
    global _depth, _spent
    with _lock:
        if _depth == 0:
            _spent = _spent[0], time.perf_counter()
        _depth += 1


def end_compiling(counts: bool = True) -> None:
    """Let the clock go on; from where it would be if nothing that was going on, in whichever thread, counts as compiling."""
    global _depth, _spent, _counts
    with _lock:
        _depth -= 1
        _counts |= counts
        if _depth == 0:
            _spent = compiled() if _counts else _spent[0], None
            _counts = False


def deadline(seconds: float | None) -> float:
    """When so many seconds will be over on this clock; infinity without a limit."""
    return math.inf if seconds is None else now() + seconds


def _renew() -> None:
    """Give a forked child a clock that nobody holds."""
    global _lock, _depth, _counts, _spent
    _lock, _depth, _counts, _spent = threading.Lock(), 0, False, (_spent[0], None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
