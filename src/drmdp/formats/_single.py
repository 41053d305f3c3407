"""One kernel of a model, for programs that know no more."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core.validation import kernel_number
from drmdp.errors import InputError
from drmdp.model import Model

Which = int | str | None
"""The number of a kernel, its name, or "mean"."""


def kernel_of(model: Model, which: Which) -> Any:
    """Kernel `which`, or the mean of all, as a sparse (S·A, S) matrix; rows of terminal states stay, unavailable are 0."""
    blocks, S, A = model.blocks, model.n_states, model.n_actions
    if which is None and model.n_kernels > 1:
        raise InputError(f"the model has {model.n_kernels} kernels: choose one, or kernel='mean'")
    values = (
        model.mean
        if which == "mean"
        else blocks.data[blocks.positions(kernel_number(model, 0 if which is None else which))]
    )
    matrix = blocks.matrix(values).copy()
    matrix.eliminate_zeros()
    stay = np.repeat(model.terminal, A)
    rows = np.flatnonzero(stay)
    return sparse.csr_array(matrix + sparse.csr_array((np.ones(rows.size), (rows, rows // A)), shape=(S * A, S)))


def rewards_of(model: Model, kernel: Any) -> Array:
    """Rewards (S, A): their means under the kernel if they depend on the next state, 0 in terminal states."""
    S, A = model.n_states, model.n_actions
    if not model.next_costs:
        return np.asarray(0.0 - model.costs)
    costs = model.blocks.matrix(np.array(model.listed_costs()))
    return np.asarray(0.0 - kernel.multiply(costs).sum(axis=1)).reshape(S, A)
