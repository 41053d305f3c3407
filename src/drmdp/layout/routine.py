"""Routines of `drmdp._native`: the rows that a set is around, and arguments beside a layout."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from drmdp.sets.registry import entry_of

ONE = np.ones(1)
ORDER = "the order of the set"


@dataclass(frozen=True)
class NativeRoutine:
    """A routine for a set, or for several that differ in numbers only."""

    routine: str
    mean: bool = False  # the rows of the mean kernel stand for all
    extra: Any = None  # further arguments of the routine
    single_kernels: bool = True  # whether nature's kernel is the mean of N

    def of(self, ambiguity: Any) -> Self:
        """That of a set: of its centre, its order, its kind or its functions from outside."""
        changes: dict[str, Any] = {}
        if getattr(ambiguity, "around", "kernels") == "mean":
            changes = {"mean": True, "single_kernels": False}
        if self.extra == ORDER:
            changes["extra"] = float(ambiguity.order), None
        if self.routine == "mix":
            changes["routine"] = f"mix_{ambiguity.kind}"
        if self.routine == "outside":
            changes["routine"] = "outside_radius" if ambiguity.by_kernel else "outside_price"
            changes["extra"] = 1.0, None, entry_of(ambiguity).functions
        return replace(self, **changes)

    def around(self, layout: Any) -> Any:
        """The rows that the set is around, and a radius of transport in the unit of the lists."""
        if (ground := layout.ground) is not None:
            radius = layout.radius / ground.unit
            layout = layout._replace(radius=radius, ground=ground._replace(unit=1.0))
        return layout._replace(data=layout.mean, weights=ONE) if self.mean else layout

    def arguments(self, layout: Any) -> Any:
        """Arguments beside the layout: those of the routine, or the lists of transport."""
        ground = layout.ground
        return (math.nan, ground.lists, ground.source, ground.free) if ground else self.extra
