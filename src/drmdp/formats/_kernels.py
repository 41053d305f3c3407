"""Kernels across the border: several objects become the kernels of a model, and a kernel leaves for
programs that know only one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.core.storage import no_zeros
from drmdp.core.validation import Names, kernel_number, placed
from drmdp.errors import InputError, refuse_given
from drmdp.model import Model
from drmdp.model.stack import stack

Which = int | str | None
"""The number of a kernel, its name, or "mean"."""


def kernel_of(model: Model, which: Which) -> Any:
    """Kernel `which`, or the mean of all, as a sparse (S·A, S) matrix; rows of terminal states
    stay, unavailable are 0.
    """
    blocks, S, A = model.blocks, model.n_states, model.n_actions
    if which is None and model.n_kernels > 1:
        raise InputError(f"the model has {model.n_kernels} kernels: choose one, or kernel='mean'")
    if which == "mean":
        values = model.mean
    else:
        values = blocks.data[blocks.positions(kernel_number(model, 0 if which is None else which))]
    rows = np.flatnonzero(np.repeat(model.terminal, A))
    stay = sparse.csr_array((np.ones(rows.size), (rows, rows // A)), shape=(S * A, S))
    return sparse.csr_array(no_zeros(blocks.matrix(values)) + stay)


def rewards_of(model: Model, kernel: Any) -> Array:
    """Rewards (S, A): their means under the kernel if they depend on the next state, 0 in terminal
    states.
    """
    S, A = model.n_states, model.n_actions
    if not model.next_costs:
        return np.asarray(0.0 - model.costs)
    costs = model.blocks.matrix(np.array(model.listed_costs()))
    return np.asarray(0.0 - kernel.multiply(costs).sum(axis=1)).reshape(S, A)


def stacked(
    items: Sequence[Any], convert: Callable[[Any], Model], weights: ArrayLike, names: Names | None
) -> Model:
    """The model of several things; errors name the one they are about."""
    if not items:
        raise InputError("expected one or more, got an empty list")
    models = []
    for m, item in enumerate(items):
        with placed(f"number {m}"):
            models.append(convert(item))
    return stack(models, weights, names)


def alone(weights: ArrayLike, names: Names | None) -> None:
    """Refuse weights and names of kernels where there is one thing only."""
    refuse_given({"weights": weights, "names": names}, "they go with a list of several")
