"""The methods that are compared, by name.

What each one's update is computed with decides how it is measured: "exact" and "first-order" ones
are run; "conic" ones are run where that fits the time limit and extrapolated otherwise; "update"
ones (a peer's Bellman update inside value iteration) are extrapolated always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from drmdp.solvers.anderson import Anderson
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.value_iteration import Accelerated, GaussSeidel, ValueIteration
from drmdp_lab.paper.passes import Passes


@dataclass(frozen=True)
class Entry:
    """How a method is called in pictures, what it is, and the exact method that takes the same
    steps.
    """

    label: str
    kind: str  # exact, first-order, conic, update, nominal, interval, gap, map
    make: Callable[..., Any] = PolicyIteration
    printed: Callable[..., Any] | None = None  # under the printed rules, if another one
    random_start: bool = False  # v uniform in [0, 1] instead of 0


METHODS: dict[str, Entry] = {
    "exact": Entry("exact engine (policy iteration)", "exact", PolicyIteration),
    "exact-vi": Entry("VI, exact updates", "exact", ValueIteration),
    "exact-gs": Entry("Gauss–Seidel, exact updates", "exact", GaussSeidel, Passes),
    "exact-anderson": Entry("Anderson, exact updates", "exact", Anderson),
    "exact-avi": Entry("AVI, exact updates", "exact", Accelerated),
    "fast": Entry("first-order preset", "first-order", FirstOrder.fast),
    "algorithm-1": Entry("Algorithm 1", "first-order", FirstOrder),
    "algorithm-1 random v": Entry(
        "Algorithm 1, random v", "first-order", FirstOrder, random_start=True
    ),
    "conic-vi": Entry("VI, conic updates", "conic", ValueIteration),
    "conic-gs": Entry("Gauss–Seidel, conic updates", "conic", GaussSeidel, Passes),
    "conic-anderson": Entry("Anderson, conic updates", "conic", Anderson),
    "conic-avi": Entry("AVI, conic updates", "conic", Accelerated),
    "baseline-2023": Entry("VI, bisection (2023)", "update", ValueIteration),
    "cvxpy-clarabel": Entry("VI, CVXPY + Clarabel", "update", ValueIteration),
    "cvxpy-scs": Entry("VI, CVXPY + SCS", "update", ValueIteration),
    "quantecon": Entry("QuantEcon", "nominal"),
    "mdpsolver": Entry("mdpsolver", "nominal"),
    "pymdptoolbox": Entry("pymdptoolbox", "nominal"),
    "storm": Entry("Storm", "interval"),
    "gap-exact": Entry("exact engine", "gap", PolicyIteration),
    "gap-conic": Entry("VI, conic updates", "gap", ValueIteration),
    "map-bisection": Entry("three nested bisections", "map"),
    "map-newton": Entry("Newton's method", "map"),
}
CONIC = tuple(name for name, entry in METHODS.items() if entry.kind == "conic")


POWERS = ((0, 2), (1, 2), (2, 2), (1, 1), (1, 3))
"""Weight and epoch powers p and q whose convergence is measured."""
CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"p={p} q={q}": (f"p = {p}, q = {q}", {"weight_power": p, "epoch_power": q})
        for p, q in POWERS
    },
    "mirror-prox": ("Mirror Prox, p = 1, q = 2", {"steps": "mirror-prox"}),
    "mirror-descent": ("Mirror Descent, p = 1, q = 2", {"steps": "mirror-descent"}),
    "epoch": ("VI, inner first-order method, q = 2", {"output": "epoch"}),
}
"""Algorithm 1 with one thing changed: label and settings."""
for _name, (_label, _settings) in CHANGED.items():
    METHODS[f"algorithm-1 {_name}"] = Entry(_label, "first-order", partial(FirstOrder, **_settings))


def rule(method: str, name: str) -> tuple[str, float]:
    """Stopping rule of the library and what the tolerance is multiplied by, for a rule of a
    study.
    """
    if name != "printed":
        return name, 1.0
    if METHODS[method].kind == "first-order":
        return "duality-gap", 1.0  # (DG) ≤ ε/2
    return "paper", 2.0  # ‖v − F(v)‖ < 2λε/(1−λ)
