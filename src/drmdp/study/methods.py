"""The methods that are compared, by name.

What each one's update is computed with decides how it is measured: "exact" and "first-order" ones are run; "conic" ones are run where that fits
the time limit and extrapolated otherwise; "update" ones (a peer's Bellman update inside value iteration) are extrapolated always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drmdp.solvers.accelerated import Accelerated
from drmdp.solvers.anderson import Anderson
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.gauss_seidel import GaussSeidel
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.value_iteration import ValueIteration


@dataclass(frozen=True)
class Entry:
    """How a method is called in pictures, what it is, and the exact method that takes the same steps."""

    label: str
    kind: str  # exact, first-order, conic, update, nominal, gap
    make: Callable[..., Any] = PolicyIteration
    random_start: bool = False  # v uniform in [0, 1] instead of 0


METHODS: dict[str, Entry] = {
    "exact": Entry("exact engine (policy iteration)", "exact", PolicyIteration),
    "exact-vi": Entry("VI, exact updates", "exact", ValueIteration),
    "exact-gs": Entry("Gauss–Seidel, exact updates", "exact", GaussSeidel),
    "exact-anderson": Entry("Anderson, exact updates", "exact", Anderson),
    "exact-avi": Entry("AVI, exact updates", "exact", Accelerated),
    "fast": Entry("first-order preset", "first-order", FirstOrder.fast),
    "algorithm-1": Entry("Algorithm 1", "first-order", FirstOrder),
    "algorithm-1 random v": Entry("Algorithm 1, random v", "first-order", FirstOrder, random_start=True),
    "conic-vi": Entry("VI, conic updates", "conic", ValueIteration),
    "conic-gs": Entry("Gauss–Seidel, conic updates", "conic", GaussSeidel),
    "conic-anderson": Entry("Anderson, conic updates", "conic", Anderson),
    "conic-avi": Entry("AVI, conic updates", "conic", Accelerated),
    "baseline-2023": Entry("VI, bisection (2023)", "update", ValueIteration),
    "cvxpy-clarabel": Entry("VI, CVXPY + Clarabel", "update", ValueIteration),
    "cvxpy-scs": Entry("VI, CVXPY + SCS", "update", ValueIteration),
    "quantecon": Entry("QuantEcon", "nominal"),
    "mdpsolver": Entry("mdpsolver", "nominal"),
    "gap-exact": Entry("exact engine", "gap", PolicyIteration),
    "gap-conic": Entry("VI, conic updates", "gap", ValueIteration),
}
CONIC = tuple(name for name, entry in METHODS.items() if entry.kind == "conic")


def _powers() -> None:
    for p, q in ((0, 2), (1, 2), (2, 2), (1, 1), (1, 3)):
        make = lambda stop="certified", p=p, q=q: FirstOrder(stop=stop, weight_power=p, epoch_power=q)  # noqa: E731
        METHODS[f"algorithm-1 p={p} q={q}"] = Entry(f"p = {p}, q = {q}", "first-order", make)


_powers()
METHODS["algorithm-1 mirror-prox"] = Entry(
    "Mirror Prox, p = 1, q = 2", "first-order", lambda stop="certified": FirstOrder(stop=stop, steps="mirror-prox")
)


def rule(method: str, name: str) -> tuple[str, float]:
    """Stopping rule of the library and what the tolerance is multiplied by, for a rule of a study."""
    if name != "printed":
        return name, 1.0
    if METHODS[method].kind == "first-order":
        return "duality-gap", 1.0  # (DG) ≤ ε/2
    return "paper", 2.0  # ‖v − F(v)‖ < 2λε/(1−λ)
