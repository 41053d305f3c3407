"""What a policy is compared with: current practice, if it was given, and the policy that is best for the mean kernel.

A rival is judged as the policy is: its value under the mean kernel, and its worst case over the same set, proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drmdp import policies
from drmdp._typing import Array
from drmdp.api import evaluate, solve
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, Wasserstein
from drmdp.solution import Solution

LARGE = 10_000_000
"""Models with more stored probabilities are compared with what was given only."""
PRACTICE, NOMINAL = "Current practice", "The policy that is best if the data are right"


@dataclass(frozen=True)
class Rival:
    """A policy, by name, and what it is worth, mean over the start distribution."""

    name: str
    policy: Array
    mean: float
    worst: float


def rivals(solution: Solution, model: Model, ball: AmbiguitySet, baseline: Any = None) -> list[Rival]:
    """Current practice and the nominal optimum; the second one not of large models."""
    found = []
    rtol = solution.asked.rtol
    if baseline is not None:
        found.append(_judged(PRACTICE, model, ball, model.policy(baseline), rtol))
    if model.blocks.data.size <= LARGE:
        nominal = solve(model, Wasserstein(0.0), rtol=rtol, progress=False)
        found.append(_judged(NOMINAL, model, ball, nominal.policy, rtol))
    return found


def _judged(name: str, model: Model, ball: AmbiguitySet, policy: Array, rtol: float) -> Rival:
    mean = policies.under(model, policy, [None])[0]
    worst = evaluate(model, ball, policy, rtol=max(rtol, 1e-6), progress=False, nature=ball.nature).value
    return Rival(name, policy, float(model.initial @ mean), float(model.initial @ worst))
