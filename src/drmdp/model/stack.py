"""Several models of the same states and actions as one with N kernels.

Model m with the weight ω_m and the kernels ŷ_mi, w_mi gives the kernels ŷ_mi with the weights
ω_m w_mi. There is one cost of a transition, whichever kernel makes it: where models disagree it is
their mean, weighted by ω_m ȳ_m(t|s, a) if costs depend on the next state and by ω_m if not, and a
note says so. With costs on the next state the mean kernel then has the mean cost of the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.levels import ended
from drmdp.core.names import same
from drmdp.core.storage import extremes
from drmdp.core.validation import Names
from drmdp.errors import InputError, described, first_place
from drmdp.model import Model, changed, check_model
from drmdp.model import counts as counted


def stack(models: Sequence[Model], weights: ArrayLike = None, names: Names | None = None) -> Model:
    """Make one model with the kernels of several, which have the same states, actions, available
    pairs, ends and discount.

    Parameters
    ----------
    models : sequence of M models
        Each with one kernel or several. Counts stay, by kernel if each model has them so, else
        added up; a model without makes those of all unknown.
    weights : (M,), optional
        Of the models; equal by default. Those of the kernels within a model stay as they are among
        themselves.
    names : M names, optional
        Of the models, and so of their kernels; a kernel of a model with several is a tuple of both
        names. 0, 1, 2, … by default.

    Examples
    --------
    >>> import drmdp
    >>> kernels = [[[[p, 1 - p]], [[0, 1]]] for p in (0.6, 0.8, 0.9)]
    >>> parts = [drmdp.Model(kernel, costs=[1, 0], discount=0.9) for kernel in kernels]
    >>> drmdp.stack(parts, names=["dry", "usual", "wet"])
    Model: 2 states × 1 action × 3 kernels, discount 0.9
      costs (S, A) in [0, 1]
      dense, 75% of the probabilities stored, 192 bytes
      kernels dry, usual, wet
    """
    if not isinstance(models, Sequence) or isinstance(models, str) or not models:
        raise InputError(f"models: expected one or more models, got {described(models)}")
    for m, model in enumerate(models):
        check_model(model, f"models: {m}")
        _check(model, models[0], m)
    labels = checks.names_of("names", names, len(models))
    shares = checks.distribution("weights", weights, labels, "model")
    first, notes = models[0], [note for model in models for note in model.notes]
    costs, differ = _costs(models, shares)
    initial = np.average([model.initial for model in models], axis=0, weights=shares)
    if all(np.array_equal(model.initial, first.initial) for model in models):
        initial = first.initial
    else:
        notes.append("the models start differently: the start distribution is their weighted mean")
    if differ:
        notes.append("the models disagree on costs: of each transition it is the weighted mean")
    weights = [share * model.weights for share, model in zip(shares, models, strict=True)]
    kernel_names = (
        label if model.n_kernels == 1 else (label, name)
        for label, model in zip(labels, models, strict=True)
        for name in model.kernel_names
    )
    shared = ("states", "actions", "available", "terminal", "sojourn")
    stacked = Model(
        _kernels(models),
        **{"rewards" if first.maximise else "costs": 0.0 - costs if first.maximise else costs},
        **{name: getattr(first, name) for name in shared},
        **{"discount": first.factor, "weights": np.concatenate(weights), "initial": initial},
        kernel_names=None if names is None else list(kernel_names),
        notes=list(dict.fromkeys(notes)),
        counts=counted.joined(models),
    )
    start = first.start if len({model.start for model in models}) == 1 else None
    return changed(stacked, start=start, ends=first.ends)


def _check(model: Model, first: Model, m: int) -> None:
    """Refuse a model of another process."""
    for kind in ("states", "actions"):
        if not same(getattr(model, kind), getattr(first, kind)):
            raise InputError(f"models: {m} has other {kind} than 0")
    pair, labels = (first, model), first.labels
    if first.discount != model.discount:
        raise InputError(f"models: 0 has discount {first.discount:g}, and {m} {model.discount:g}")
    if first.maximise != model.maximise:
        kinds = ["rewards" if each.maximise else "costs" for each in pair]
        raise InputError(f"models: 0 has {kinds[0]}, and {m} {kinds[1]}")
    if np.any(first.factor != np.asarray(model.factor)):
        raise InputError(f"models: {m} has another discount in some pairs than 0")
    if at := first_place(model.terminal != first.terminal):
        state = first.states[at[0]]
        raise InputError(f"models: state {state!r} is terminal in only one of 0 and {m}")
    ends = [ended(each, np.zeros(each.n_states)) for each in pair]
    if at := first_place(ends[0] != ends[1]):
        state = f"terminal state {first.states[at[0]]!r}"
        raise InputError(f"models: {state} has another value in 0 than in {m}")
    if at := first_place((model.available != first.available).ravel()):
        raise InputError(f"models: {labels.pair(*at)} is available in only one of 0 and {m}")
    lasts = [(1.0 * each.available if each.sojourn is None else each.sojourn) for each in pair]
    if at := first_place((lasts[0] != lasts[1]).ravel()):
        times = f"lasts {lasts[0].ravel()[at]:g} in 0 and {lasts[1].ravel()[at]:g} in {m}"
        raise InputError(f"models: {labels.pair(*at)} {times}")


def _kernels(models: Sequence[Model]) -> Any:
    if any(model.is_sparse for model in models):
        kernels = [kernel for model in models for kernel in model.kernels]
        flat = [k if sparse.issparse(k) else k.reshape(-1, k.shape[-1]) for k in kernels]
        return [sparse.csr_array(k) for k in flat]
    return np.concatenate([model.kernels for model in models])


def _costs(models: Sequence[Model], shares: Array) -> tuple[Any, bool]:
    """A common cost, in the sign of costs, and whether the models disagree."""
    if not any(model.next_costs for model in models):
        table = np.stack([model.costs for model in models])
        differ = bool((np.ptp(table, axis=0)[models[0].available] != 0).any())
        return (np.average(table, axis=0, weights=shares) if differ else table[0]), differ
    if any(model.is_sparse or sparse.issparse(model.costs) for model in models):
        return _listed_costs(models, shares)
    S, A = models[0].available.shape
    tables = [m.costs if m.next_costs else m.costs[:, :, None] for m in models]
    table = np.stack([np.broadcast_to(costs, (S, A, S)) for costs in tables])
    weight = np.stack([w * model.mean_kernel for w, model in zip(shares, models, strict=True)])
    observed = weight.sum(axis=0) > 0
    weight = np.where(observed, weight, ~np.isnan(table))  # elsewhere, any cost that is known
    known = weight > 0
    low = np.where(known, table, np.inf).min(axis=0)
    high = np.where(known, table, -np.inf).max(axis=0)
    total = weight.sum(axis=0)
    mean = np.where(known, weight * np.where(known, table, 0.0), 0.0).sum(axis=0)
    mean /= np.where(total > 0, total, np.nan)
    return np.where(low == high, low, mean), bool((observed & (low != high)).any())


def _listed_costs(models: Sequence[Model], shares: Array) -> tuple[Any, bool]:
    """Costs of the transitions that some model makes, as a sparse (S·A, S) matrix."""
    S, A = models[0].available.shape
    keys, prices, weight = [], [], []
    for share, model in zip(shares, models, strict=True):
        pairs = np.repeat(np.arange(S * A), model.blocks.lengths)
        keys.append(pairs * S + model.blocks.indices)
        prices.append(model.listed_costs() if model.next_costs else model.costs.ravel()[pairs])
        weight.append(share * model.mean)
    key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    price, mass = np.concatenate(prices), np.concatenate(weight)
    low, high = extremes(inverse, price, key.size)
    total = np.bincount(inverse, mass)
    mean = np.bincount(inverse, mass * price) / np.where(total > 0, total, 1.0)
    costs = np.where((low == high) | (total == 0), low, mean)
    table = sparse.csr_array((costs, (key // S, key % S)), shape=(S * A, S))
    return table, bool(((low != high) & (total > 0)).any())
