"""Families whose sweeps and rows are routines of `drmdp._native`; see `drmdp.bellman.family` and `native/`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from drmdp import _native
from drmdp.bellman.nature_rows import Answer, Question
from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Point

ONE = np.ones(1)


@dataclass(frozen=True)
class NativeFamily:
    """A routine, and what its rows are around."""

    routine: str
    mean: bool = False  # the rows of the mean kernel stand for all

    def workspace(self, layout: Layout, point: Point, start: int, stop: int) -> None:
        """None: routines have their own."""

    def update(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Minimise over the policy, let nature maximise."""
        _native.sweep(self.routine, False, False, start, stop, layout, point, memory, out, tol)

    def evaluate(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, out: Out, tol: float, work: Any
    ) -> None:
        """Keep the policy in out.policy."""
        _native.sweep(self.routine, True, False, start, stop, layout, point, memory, out, tol)

    def prepared(self, layout: Layout) -> Layout:
        """The rows that the set is around."""
        return layout._replace(data=layout.mean, weights=ONE) if self.mean else layout

    @cached_property
    def NATURE(self) -> Answer:  # noqa: N802
        """How her rows follow from the memory."""
        return Answer(self._respond, single=1, prefixes=False, single_kernels=not self.mean)

    def _respond(
        self, start: int, stop: int, layout: Layout, point: Point, memory: Memory, question: Question, work: Any
    ) -> None:
        _native.respond(self.routine, False, start, stop, self.prepared(layout), point, memory, question)


KL, KL_MEAN = NativeFamily("kl"), NativeFamily("kl", mean=True)
BURG, BURG_MEAN = NativeFamily("burg"), NativeFamily("burg", mean=True)
CHI2, CHI2_MEAN = NativeFamily("chi2"), NativeFamily("chi2", mean=True)
