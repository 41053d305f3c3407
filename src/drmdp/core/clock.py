"""Seconds, and when so many will be over."""

from __future__ import annotations

import math
from time import perf_counter as now


def deadline(seconds: float | None) -> float:
    """When so many seconds will be over; infinity without a limit."""
    return math.inf if seconds is None else now() + seconds


__all__ = ["deadline", "now"]
