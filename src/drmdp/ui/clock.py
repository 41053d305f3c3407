"""The clock, and deadlines."""

from __future__ import annotations

import math
from time import perf_counter as now


def deadline(seconds: float | None) -> float:
    """The time after so many seconds; infinity without a limit."""
    return math.inf if seconds is None else now() + seconds


__all__ = ["deadline", "now"]
