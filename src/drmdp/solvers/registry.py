"""The methods by name: a new one is one file and one line here."""

from __future__ import annotations

from drmdp.errors import InputError, shown
from drmdp.solvers.accelerated import Accelerated
from drmdp.solvers.anderson import Anderson
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.gauss_seidel import GaussSeidel
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Method
from drmdp.solvers.stopping import RULES
from drmdp.solvers.value_iteration import ValueIteration

METHODS: dict[str, type[Method]] = {
    "policy-iteration": PolicyIteration,
    "value-iteration": ValueIteration,
    "gauss-seidel": GaussSeidel,
    "anderson": Anderson,
    "accelerated": Accelerated,
    "first-order": FirstOrder,
}


def resolve(method: str | Method) -> tuple[str, Method]:
    """Name and settings of a method given by name, "auto", or as an object."""
    if isinstance(method, str):
        name = "policy-iteration" if method == "auto" else method
        if name not in METHODS:
            raise InputError(f"unknown method {shown(method)}; known: auto, {', '.join(METHODS)}")
        chosen: Method = METHODS[name]()
    else:
        chosen = method
        names = [name for name, kind in METHODS.items() if isinstance(method, kind)]
        if not names:
            raise InputError(
                f"method: expected a name or one of {', '.join(METHODS)} as an object, got {shown(method)}"
            )
        name = names[0]
    if not isinstance(chosen.stop, str) or chosen.stop not in RULES:
        raise InputError(f"unknown stopping rule {shown(chosen.stop)}; known: {', '.join(RULES)}")
    return name, chosen
