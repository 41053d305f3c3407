"""Understand a policy: its values, its rounding, its alternatives, and what nature did to it."""

from drmdp.policies.actions import ActionLosses, Rounded, deterministic, near_optimal
from drmdp.policies.bent import Bent, bent
from drmdp.policies.outcomes import CostEffectiveness, cost_effectiveness
from drmdp.policies.values import Values, most_visited, under, values, visits

__all__ = [
    "ActionLosses", "Bent", "CostEffectiveness", "Rounded", "Values", "bent", "cost_effectiveness", "deterministic", "most_visited", "near_optimal",
    "under", "values", "visits",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
