"""`DiscreteDP` of QuantEcon, both ways and in both forms.

======== =================== ==============================================================
form     product             pairs
======== =================== ==============================================================
R        (S, A)              (L,); −inf (or no pair) means that the action is not available
Q        (S, A, S)           (L, S), an array or a sparse matrix
indices                      s_indices (L,), a_indices (L,)
beta     discount            discount
======== =================== ==============================================================

Not held: names, weights and start distribution. Costs leave as negative rewards, terminal states as
states that stay where they are for nothing, rewards on the next state as their means under the
kernel: the nominal problem is the same.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import ArrayLike, IntArray
from drmdp.core.validation import Names, numbers
from drmdp.errors import InputError, shown
from drmdp.formats._kernels import Which, alone, kernel_of, rewards_of, stacked
from drmdp.io.files import memory_limit
from drmdp.model import Model

PARTS = ("R", "Q", "beta", "s_indices", "a_indices")


def from_quantecon(ddp: Any, weights: ArrayLike = None, names: Names | None = None) -> Model:
    """Take over a `quantecon.markov.DiscreteDP` as a model with one kernel, or a list of them as
    one with a kernel each (see `drmdp.stack`).

    Parameters
    ----------
    ddp : DiscreteDP, or a list of them
        With rewards, transitions and beta.
    weights, names : optional
        Of the kernels, for a list; see `drmdp.stack`.

    Raises
    ------
    InputError
        If it is not one, or beta is 1.
    """
    if isinstance(ddp, list | tuple):
        return stacked(ddp, from_quantecon, weights, names)
    alone(weights, names)
    try:
        R, Q, beta, s_indices, a_indices = attrgetter(*PARTS)(ddp)
    except AttributeError as error:
        got = f"{type(ddp).__name__}: {error}"
        raise InputError(f"expected a quantecon DiscreteDP, got {got}") from None
    R = numbers("R", R)
    if s_indices is None:
        feasible = ~np.isneginf(R)
        Q = numbers("Q", Q)
        Q, R = Q[None] if Q.ndim == 3 else Q, np.where(feasible, R, 0)
        return Model(Q, rewards=R, discount=beta, available=feasible)
    s, a = _indices("s_indices", s_indices), _indices("a_indices", a_indices)
    Q = sparse.csr_array(Q) if sparse.issparse(Q) else numbers("Q", Q)
    if Q.ndim != 2 or not s.shape == a.shape == R.shape == Q.shape[:1]:
        shapes = ", ".join(str(array.shape) for array in (s, a, R, Q))
        raise InputError(f"s_indices, a_indices, R, Q: shapes {shapes} do not match")
    S, A = Q.shape[1], int(a.max(initial=0)) + 1
    if s.max(initial=0) >= S or memory_limit() // 64 < S * A:
        raise InputError(f"s_indices, a_indices: up to {int(s.max())} and {A - 1} with {S} states")
    good = ~np.isneginf(R)
    pair = (s * A + a)[good]
    if np.unique(pair).size < pair.size:
        raise InputError("s_indices, a_indices: a pair is given twice")
    places = pair, np.flatnonzero(good)
    rows = sparse.csr_array((np.ones(pair.size), places), shape=(S * A, s.size))
    rewards, available = np.zeros((S, A)), np.zeros((S, A), dtype=bool)
    rewards.ravel()[pair], available.ravel()[pair] = R[good], True
    return Model(rows @ sparse.csr_array(Q), rewards=rewards, discount=beta, available=available)


def _indices(name: str, values: Any) -> IntArray:
    indices = numbers(name, values)
    whole = (indices >= 0) & (indices < 2**31) & (indices == np.floor(indices))
    if indices.ndim != 1 or not whole.all():
        raise InputError(f"{name}: expected whole numbers from 0, got {shown(values)}")
    return indices.astype(np.int64)


def to_quantecon(model: Model, *, kernel: Which = None, pairs: bool | None = None) -> Any:
    """Make a `quantecon.markov.DiscreteDP` of one kernel of a model.

    Parameters
    ----------
    model : Model
        What to give.
    kernel : number or name of a kernel, or "mean", optional
        Which, if there are several.
    pairs : bool, optional
        The form with a row per available pair and a sparse matrix; by default for sparse models.
    """
    if model.discounts is not None:
        raise InputError("discount: QuantEcon has one for all pairs, and this model one for each")
    from quantecon.markov import DiscreteDP

    Q = kernel_of(model, kernel)
    R = rewards_of(model, Q)
    S, A = R.shape
    feasible = model.available | model.terminal[:, None]
    if model.is_sparse if pairs is None else pairs:
        s, a = np.nonzero(feasible)
        return DiscreteDP(R[s, a], sparse.csr_matrix(Q[s * A + a]), model.discount, s, a)
    return DiscreteDP(np.where(feasible, R, -np.inf), Q.toarray().reshape(S, A, S), model.discount)
