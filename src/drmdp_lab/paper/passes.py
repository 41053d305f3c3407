"""Gauss–Seidel as the paper stops it: its residual is what a pass changed, ‖v⁺ − v‖, and its policy
what the pass chose.

A pass is a contraction of factor λ with the fixed point of F, so its own change serves a residual
rule, after every pass and without another sweep. The library's `GaussSeidel` certifies instead:
every few passes it sweeps F once more. Nothing is proved here, so the bounds are those of any
policy; the study judges what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drmdp._typing import Array
from drmdp.operators.operator import Update
from drmdp.solvers.problem import MethodState, Problem
from drmdp.solvers.value_iteration import GaussSeidel


@dataclass(frozen=True)
class Newest:
    """Nature after a pass: in each state what she played when it came to it."""

    parts: tuple[Update, ...]

    def kernel(self) -> Array:
        """Mean kernel, (S, A, S); a part tells of its own state, or of all."""
        tables = [np.asarray(part.kernel) for part in self.parts]
        return np.stack([table[0 if len(table) == 1 else s] for s, table in enumerate(tables)])

    def pulled(self, share: Array) -> Newest:
        """What was played was played."""
        return self

    def chain(self, policy: Array) -> Array:
        """Σ_a x_a y_a."""
        return np.asarray(np.einsum("na,nat->nt", policy, self.kernel()))


@dataclass(frozen=True)
class Passes(GaussSeidel):
    """Gauss–Seidel value iteration without certificates, for the residual rules only."""

    stop: str = "paper"

    def init(self, problem: Problem, value: Array | None) -> MethodState:  # type: ignore[override]
        """Start at `value` or 0, with nothing swept."""
        return MethodState(np.zeros(problem.model.n_states) if value is None else value, None)

    def step(self, problem: Problem, state: MethodState) -> MethodState:  # type: ignore[override]
        """One pass; the update's steps are what each state changed."""
        value, parts = state.value.copy(), []
        for s in range(value.size):
            parts.append(problem.update(value, s, s + 1))
            value[s] = parts[-1].value[0]
        lower, upper, policy = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("lower_step", "upper_step", "policy")
        )
        return MethodState(value, Update(value, lower, upper, policy, Newest(tuple(parts))))
