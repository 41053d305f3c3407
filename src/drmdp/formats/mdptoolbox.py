"""The arrays of pymdptoolbox, both ways.

=========== ========================================================================================
array       forms
=========== ========================================================================================
transitions (A, S, S), or A matrices (S, S), sparse or not
rewards     (S,), (S, A), (A, S, S), or A matrices (S, S); the last two depend on the next state
=========== ========================================================================================

Sparse rewards are known only where a transition is, so such a model needs support "observed". Not
held: unavailable actions (refused), names, weights, start distribution. Costs leave as negative
rewards, terminal states as states that stay where they are for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import ArrayLike
from drmdp.core.validation import Names, numbers
from drmdp.errors import InputError, first_place, unexpected
from drmdp.formats._kernels import Which, alone, kernel_of, rewards_of, stacked
from drmdp.model import Model


def from_mdptoolbox(
    transitions: Any,
    rewards: Any = None,
    discount: float | None = None,
    weights: ArrayLike = None,
    names: Names | None = None,
) -> Model:
    """Take over the arguments `transitions`, `reward` and `discount` of pymdptoolbox as a model
    with one kernel.

    A list of pairs (transitions, rewards), with `rewards` left out, becomes one model with a kernel
    each; see `drmdp.stack` for weights and names.

    Parameters
    ----------
    transitions : (A, S, S) array, or A matrices
        Probabilities, action by action.
    rewards : (S,), (S, A) or (A, S, S)
        What is earned.
    discount : float in [0, 1]
        What a reward of the next step is worth now.
    weights, names : optional
        Of the kernels, for a list; see `drmdp.stack`.
    """
    if discount is None:
        raise InputError("discount: it is missing")
    if rewards is None:
        pairs = _pairs(transitions)
        return stacked(
            pairs, lambda pair: from_mdptoolbox(pair[0], pair[1], discount), weights, names
        )
    alone(weights, names)
    transitions, rewards = (
        list(value) if isinstance(value, np.ndarray) and value.dtype == object else value
        for value in (transitions, rewards)
    )
    kernels = _by_state("transitions", transitions)
    if sparse.issparse(kernels):
        S = kernels.shape[1]
        A = kernels.shape[0] // S
    else:
        S, A = kernels.shape[:2]
        kernels = kernels[None]
    prices = _by_state("rewards", rewards) if _is_list(rewards) else numbers("rewards", rewards)
    if prices.shape == (A, S, S):
        prices = _by_state("rewards", prices)
    elif not sparse.issparse(prices) and prices.shape not in ((S,), (S, A)):
        raise unexpected("rewards", f"shape {(S,)}, {(S, A)} or {(A, S, S)}", prices.shape)
    return Model(kernels, rewards=prices, discount=discount)


def _pairs(problems: Any) -> list[Any]:
    """Pairs (transitions, rewards), or an error."""
    several = isinstance(problems, list | tuple)
    if not several or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in problems):
        cure = "several problems are a list of pairs (transitions, rewards)"
        raise InputError(f"rewards: they are missing; {cure}")
    return list(problems)


def to_mdptoolbox(model: Model, *, kernel: Which = None) -> tuple[Any, Any]:
    """Give (transitions, rewards) of one kernel: (A, S, S), or A sparse matrices for sparse models,
    and (S, A).

    Rewards on the next state become their means under the kernel.

    Parameters
    ----------
    model : Model
        What to give.
    kernel : number or name of a kernel, or "mean", optional
        Which, if there are several.
    """
    if at := first_place((~model.available & ~model.terminal[:, None]).ravel()):
        rule = "pymdptoolbox has every action in every state"
        raise InputError(f"{rule}, but {model.labels.pair(*at)} is not available")
    P = kernel_of(model, kernel)
    R = rewards_of(model, P)
    A = model.n_actions
    matrices = [P[a::A] for a in range(A)]
    if model.is_sparse:
        return [sparse.csr_matrix(matrix) for matrix in matrices], R
    return np.stack([matrix.toarray() for matrix in matrices]), R


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(sparse.issparse(matrix) for matrix in value)


def _by_state(name: str, matrices: Any) -> Any:
    """(S, A, S), or a sparse (S·A, S) matrix, of A matrices."""
    if not _is_list(matrices):
        array = numbers(name, matrices)
        if array.ndim != 3 or array.shape[1] != array.shape[2] or 0 in array.shape:
            cure = "; several models are a list of pairs (transitions, rewards)"
            fault = f"expected shape (A, S, S), got {array.shape}"
            raise InputError(f"{name}: {fault}{cure if array.ndim == 4 else ''}")
        return np.ascontiguousarray(array.transpose(1, 0, 2))
    A, shape = len(matrices), np.shape(matrices[0])
    for a, matrix in enumerate(matrices):
        if np.shape(matrix) != shape or len(shape) != 2 or shape[0] != shape[1]:
            fault = f"action {a} has shape {np.shape(matrix)}"
            raise InputError(f"{name}: {fault}, expected a square like that of action 0")
    S = shape[0]
    # row a·S + s
    stacked = sparse.vstack([sparse.csr_array(matrix) for matrix in matrices], format="csr")
    order = (np.arange(S)[:, None] + S * np.arange(A)[None, :]).ravel()
    return stacked[order]
