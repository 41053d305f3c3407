"""Families: a row model, what it is a model around, and the additive solver, as `drmdp.bellman.family` wants them.

The solver is compiled once for all row models that need nothing besides the row: it calls them by address (`drmdp.core.compiled.wall`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from drmdp.bellman.frame import additive
from drmdp.bellman.frame.nature import answer_of
from drmdp.bellman.nature_rows import Answer
from drmdp.bellman.rows import burg, chi2, kl, tv
from drmdp.core.compiled import wall
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point


def _kl(t, y, scale, w, u, z, listed, aux):
    return kl.response(t, y, scale, w, u, z)


def _kl_end(y, scale, w, u, z, listed, aux):
    return kl.saturated(y, scale, w, u, z)


def _burg(t, y, scale, w, u, z, listed, aux):
    return burg.response(t, y, scale, w, u, z)


def _burg_end(y, scale, w, u, z, listed, aux):
    return burg.saturated(y, scale, w, u, z)


def _chi2(t, y, scale, w, u, z, listed, aux):
    return chi2.response(t, y, scale, w, u, z)


def _chi2_end(y, scale, w, u, z, listed, aux):
    return chi2.saturated(y, scale, w, u, z)


def _tv(t, y, scale, w, u, z, listed, aux):
    return tv.response(t, y, scale, w, u, z)


def _tv_end(y, scale, w, u, z, listed, aux):
    return tv.saturated(y, scale, w, u, z)


@cache
def _compiled(response: Any, saturated: Any, real: Any) -> tuple[Any, Any]:
    """Both functions of a row model behind walls, for data of a type."""
    y, listed = np.empty(1, dtype=real), np.empty(1, dtype=np.int32)
    for part in (y, listed):
        part.setflags(write=False)
    row = y, np.empty(1), np.empty(1), np.empty(1), np.empty(1), listed, 0.0
    return wall(response, (0.0, 0.0, 0.0), 0.0, *row), wall(saturated, (0.0, 0.0), *row)


ONE = np.ones(1)


@dataclass(frozen=True)
class Family:
    """One budget for all actions of a state, costs of rows added up."""

    response: Any
    saturated: Any
    fill: Any
    unit: float = 1.0  # budget in a unit of the radius
    mean: bool = False  # around the mean kernel: its rows stand for all

    def workspace(self, layout: Layout, point: Point, start: int, stop: int) -> Any:
        """Work space for the states start … stop − 1."""
        return additive.workspace(self._data(layout), point, start, stop)

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
        return answer_of(self.fill, self._data, single_kernels=not self.mean)

    def _sweep(self, fixed: bool, start: int, stop: int, layout: Layout, *others: Any) -> None:
        layout = self._data(layout)
        if self.unit != 1.0:
            radius = self.unit * layout.radius
            radius.setflags(write=False)
            layout = layout._replace(radius=radius)
        calls = _compiled(self.response, self.saturated, layout.data.dtype)
        additive.sweep(start, stop, layout, *others, (fixed, *calls))

    def _data(self, layout: Layout) -> Layout:
        """The rows that the set is around."""
        return layout._replace(data=layout.mean, weights=ONE) if self.mean else layout


KL, BURG = Family(_kl, _kl_end, kl.fill), Family(_burg, _burg_end, burg.fill)
CHI2, TV = Family(_chi2, _chi2_end, chi2.fill, unit=0.5), Family(_tv, _tv_end, tv.fill)
KL_MEAN, BURG_MEAN = replace(KL, mean=True), replace(BURG, mean=True)
CHI2_MEAN, TV_MEAN = replace(CHI2, mean=True), replace(TV, mean=True)
