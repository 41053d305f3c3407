"""What nature did: the transitions that her kernel changes most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.core.compact import MeanKernel
from drmdp.core.validation import whole
from drmdp.errors import InputError
from drmdp.model import Model, check_model
from drmdp.policies import fixed_kernel as fixed

NOTHING = 1e-12
"""A smaller difference of probabilities is rounding."""


@dataclass(frozen=True)
class Bent:
    """A transition and what nature made of it.

    Attributes
    ----------
    state, action, next_state : names
        The transition.
    nominal : float
        Its probability in the mean kernel.
    worst : float
        Its probability in nature's.
    """

    state: Any
    action: Any
    next_state: Any
    nominal: float
    worst: float

    @property
    def change(self) -> float:
        """How much more probable nature made it."""
        return self.worst - self.nominal


def bent(model: Model, kernel: Any, n: int = 10, policy: ArrayLike = None, states: Any = None) -> tuple[Bent, ...]:
    """The n transitions whose probability differs most between nature's kernel and the mean kernel, largest first.

    With `policy`, only of actions it plays; the kernel of a solution bends the others as well, to make them unattractive. With `states`,
    numbers of states, only from these.

    Parameters
    ----------
    model : Model
        What is known.
    kernel : (S, A, S)
        Nature's kernel, such as `solution.kernel`.
    n : int
        How many transitions.
    policy : as for `drmdp.evaluate`, optional
        Restricts them to actions that it plays.
    states : numbers of states, optional
        Restricts them to those that begin there.
    """
    check_model(model)
    count = whole("n", n, 1)
    S, A = model.n_states, model.n_actions
    played = model.available if policy is None else model.policy(policy) > 0
    if not isinstance(kernel, MeanKernel):
        kernel = fixed.matrix_of(model, kernel)
    elif kernel.shape != (S, A, S):
        raise InputError(f"kernel: expected shape {(S, A, S)}, got {kernel.shape}")
    mean = model.blocks.matrix(model.mean)
    found: list[tuple[float, int, int, int, float, float]] = []
    chosen = np.flatnonzero(played.any(axis=1))
    if states is not None:
        chosen = np.intersect1d(chosen, states)
    for s in chosen.tolist():
        rows, nominal = _rows(kernel, s, A), mean[s * A : (s + 1) * A].toarray()
        off = np.where(played[s][:, None], np.abs(rows - nominal), 0.0)
        for k in np.argpartition(-off, min(count, off.size) - 1, axis=None)[:count].tolist():
            a, t = divmod(k, S)
            if off[a, t] > NOTHING:
                found.append((-float(off[a, t]), s, a, t, float(nominal[a, t]), float(rows[a, t])))
        found = sorted(found)[:count]
    return tuple(
        Bent(model.states[s], model.actions[a], model.states[t], nominal, worst) for _, s, a, t, nominal, worst in found
    )


def _rows(kernel: Any, s: int, n_actions: int) -> Array:
    if isinstance(kernel, MeanKernel):
        return kernel.rows(s)
    own = kernel[s * n_actions : (s + 1) * n_actions]
    return own.toarray() if sparse.issparse(own) else np.asarray(own)
