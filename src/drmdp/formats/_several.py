"""Several things at once: each becomes a model, and all of them one model with a kernel each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drmdp._typing import ArrayLike
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.stack import stack


def stacked(
    given: Sequence[Any], one: Callable[[Any], Model], weights: ArrayLike = None, names: Names | None = None
) -> Model:
    """The model of several things; errors name the one they are about."""
    if not given:
        raise InputError("expected one or more, got an empty list")
    models = []
    for m, item in enumerate(given):
        try:
            models.append(one(item))
        except InputError as error:
            raise InputError(f"number {m}: {error}") from None
    return stack(models, weights, names)


def alone(weights: ArrayLike, names: Names | None) -> None:
    """Refuse weights and names of kernels where there is one thing only."""
    for what, value in (("weights", weights), ("names", names)):
        if value is not None:
            raise InputError(f"{what}: they go with a list of several")
