"""The operator of a model, a set and the name of a backend."""

from __future__ import annotations

from drmdp.bellman.operator import ENGINES, Operator
from drmdp.core.progress import stage
from drmdp.errors import InputError, shown
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.registry import load

DEFAULT_BACKEND = "exact"


def build(model: Model, ball: AmbiguitySet, backend: str, threads: int | None = None) -> Operator:
    """Make the operator of a backend, after checking that model and ball fit."""
    check_problem(model, ball)
    ball = ball.fitted(model).facing(ball.nature)
    if not isinstance(backend, str) or backend not in ENGINES:
        raise InputError(f"unknown backend {shown(backend)}; known: {', '.join(ENGINES)}")
    if ball.nature == "cooperative":
        if backend != DEFAULT_BACKEND:
            raise InputError(f"backend: with a cooperative nature it is {DEFAULT_BACKEND!r}, got {backend!r}")
        from drmdp.bellman.cooperative import CooperativeOperator

        return CooperativeOperator(model, ball, threads)
    with stage("laying out the kernels"):
        operator: Operator = load(ENGINES[backend])(model, ball, threads)
    return operator
