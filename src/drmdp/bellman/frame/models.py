"""Families: a row model, what it is a model around, and the additive solver, as `drmdp.bellman.family` wants them.

The solver is compiled once for all row models that need nothing besides the row: it calls them by address (`drmdp.core.compiled.wall`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from drmdp.bellman.frame import additive
from drmdp.bellman.frame.nature import answer_of
from drmdp.bellman.nature_rows import Answer
from drmdp.core.cached import cached_property
from drmdp.core.compiled import Walls, wall
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point


@cache
def _compiled(model: Any, real: Any, fixed: bool) -> Walls:
    """What `additive.sweep` is told beside the data: `answers`, with both functions of the row model behind walls, for data of a type."""
    if fixed:
        return Walls((fixed, *_compiled(model, real, not fixed)[1:]))
    respond, saturate = model.response, model.saturated

    def response(t, y, scale, w, u, z, listed, aux):
        return respond(t, y, scale, w, u, z)

    def saturated(y, scale, w, u, z, listed, aux):
        return saturate(y, scale, w, u, z)

    y, listed = np.empty(1, dtype=real), np.empty(1, dtype=np.int32)
    for part in (y, listed):
        part.setflags(write=False)
    row = y, np.empty(1), np.empty(1), np.empty(1), np.empty(1), listed, 0.0
    return Walls((fixed, wall(response, (0.0, 0.0, 0.0), 0.0, *row), wall(saturated, (0.0, 0.0), *row), False))


ONE = np.ones(1)


@dataclass(frozen=True)
class Family:
    """One budget for all actions of a state, costs of rows added up."""

    model: Any  # a module of `drmdp.bellman.rows`: `response`, `saturated`, `fill`
    unit: float = 1.0  # budget in a unit of the radius
    mean: bool = False  # around the mean kernel: its rows stand for all

    def workspace(self, layout: Layout, point: Point, start: int, stop: int) -> Any:
        """Work space for the states start … stop − 1."""
        return additive.workspace(layout, point, start, stop)

    def update(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Minimise over the policy, let nature maximise."""
        self._sweep(False, start, stop, layout, point, memory, out, tol, work)

    def evaluate(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Keep the policy in out.policy."""
        self._sweep(True, start, stop, layout, point, memory, out, tol, work)

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return answer_of(self.model.fill, self._data, single_kernels=not self.mean)

    def prepared(self, layout: Layout) -> Layout:
        """The rows that the set is around, and the radius as a budget."""
        if self.unit != 1.0:
            radius = self.unit * layout.radius
            radius.setflags(write=False)
            layout = layout._replace(radius=radius)
        return self._data(layout)

    def _sweep(self, fixed: bool, start: int, stop: int, layout: Layout, *others: Any) -> None:
        additive.sweep(start, stop, layout, *others, _compiled(self.model, layout.data.dtype, fixed))

    def _data(self, layout: Layout) -> Layout:
        """The rows that the set is around."""
        return layout._replace(data=layout.mean, weights=ONE) if self.mean else layout
