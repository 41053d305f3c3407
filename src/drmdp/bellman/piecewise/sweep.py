"""How Python drives the kernels of (ℓ1, ∞) and (ℓ∞, 1): the proximal method first, the simplex method where that stalls."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from drmdp.bellman.piecewise.budget_per_kernel import make_tables
from drmdp.bellman.piecewise.columns import finish
from drmdp.bellman.piecewise.method import rounds
from drmdp.bellman.piecewise.work import make_method
from drmdp.core.compiled import wall
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point


def solve_open(
    kernel: Any, joint: bool, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
) -> None:  # fmt: skip
    """Run a kernel over the states that are open, out.passes < 0, with `rounds`, and again with `finish` where they stay so."""
    passes = out.passes[start:stop]
    for method in (rounds, finish):
        if (passes < 0.0).any():
            kernel(start, stop, layout, point, memory, out, tol, work, compiled(method, joint))
    np.abs(passes, out=passes)


@cache
def compiled(method: Any, joint: bool) -> Any:
    """`rounds`, or what takes and returns the same, for one kind of budget."""
    return wall(
        method, (0.0, 0.0, 0), 0, make_tables(1, 1, 1), np.empty(1), 0.0, 0.0, 0.0, make_method(1, 1, joint), True if joint else None
    )  # fmt: skip
