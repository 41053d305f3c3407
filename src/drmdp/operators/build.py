"""The operator of a model, a set and the name of a backend."""

from __future__ import annotations

from typing import Any

from drmdp.errors import InputError, shown
from drmdp.model import Model
from drmdp.operators.operator import ENGINES, Operator
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.registry import load
from drmdp.ui.progress import stage

DEFAULT_BACKEND = "exact"


def build(model: Model, ambiguity: AmbiguitySet, backend: str, threads: Any = None) -> Operator:
    """Make the operator of a backend, after checking that model and set fit."""
    check_problem(model, ambiguity)
    ambiguity = ambiguity.fitted(model).facing(ambiguity.nature)
    if not isinstance(backend, str) or backend not in ENGINES:
        raise InputError(f"unknown backend {shown(backend)}; known: {', '.join(ENGINES)}")
    if ambiguity.nature == "cooperative":
        if backend != DEFAULT_BACKEND:
            rule = f"with a cooperative nature it is {DEFAULT_BACKEND!r}"
            raise InputError(f"backend: {rule}, got {backend!r}")
        from drmdp.operators.cooperative import CooperativeOperator

        return CooperativeOperator(model, ambiguity, threads)
    with stage("laying out the kernels"):
        return load(ENGINES[backend])(model, ambiguity, threads)  # type: ignore[no-any-return]
