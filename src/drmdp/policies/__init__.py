"""Understand a policy: its values, its rounding, its alternatives, and what nature did to it."""

from drmdp.policies.actions import ActionLosses, Rounded, deterministic, near_optimal
from drmdp.policies.cost_effectiveness import CostEffectiveness, cost_effectiveness
from drmdp.policies.values import Bent, Values, bent, most_visited, under, values, visits

__all__ = ["ActionLosses", "Bent", "CostEffectiveness", "Rounded", "Values"]
__all__ += ["bent", "cost_effectiveness", "deterministic", "most_visited", "near_optimal", "under"]
__all__ += ["values", "visits"]


def __dir__() -> list[str]:
    return __all__
