"""The methods by name: a new one is one file and one line here."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

from drmdp.errors import InputError, shown, unexpected
from drmdp.solvers.anderson import Anderson
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Method
from drmdp.solvers.stopping import RULES
from drmdp.solvers.value_iteration import Accelerated, GaussSeidel, ValueIteration

METHODS: dict[str, type[Method]] = {
    "policy-iteration": PolicyIteration,
    "value-iteration": ValueIteration,
    "gauss-seidel": GaussSeidel,
    "anderson": Anderson,
    "accelerated": Accelerated,
    "first-order": FirstOrder,
}

PARTS = ("init", "step", "backend", "stop", "max_iters")
"""Attributes of a method; see `drmdp.solvers.problem.Method`."""


def settings_of(method: Method) -> dict[str, Any]:
    """Settings of a method, for the record."""
    if is_dataclass(method):
        return {field.name: deepcopy(getattr(method, field.name)) for field in fields(method)}
    return {"backend": method.backend, "stop": method.stop}


def resolve(method: str | Method) -> tuple[str, Method]:
    """Name and settings of a method given by name, "auto", or as an object, registered or not."""
    if isinstance(method, str):
        name = "policy-iteration" if method == "auto" else method
        if name not in METHODS:
            raise InputError(f"unknown method {shown(method)}; known: auto, {', '.join(METHODS)}")
        chosen: Method = METHODS[name]()
    else:
        chosen = method
        lacking = [part for part in PARTS if not hasattr(method, part)]
        if lacking or isinstance(method, type):
            expected = f"one of {', '.join(METHODS)}, or an object with {', '.join(PARTS)}"
            raise unexpected("method", expected, method)
        names = (name for name, kind in METHODS.items() if isinstance(method, kind))
        name = next(names, type(method).__name__)
    if not isinstance(chosen.stop, str) or chosen.stop not in RULES:
        raise InputError(f"unknown stopping rule {shown(chosen.stop)}; known: {', '.join(RULES)}")
    return name, chosen
