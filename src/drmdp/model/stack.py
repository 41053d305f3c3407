"""Several models of the same states and actions become one with N kernels.

Model m with the weight ω_m and the kernels ŷ_mi, w_mi gives the kernels ŷ_mi with the weights ω_m w_mi. There is one cost of a transition, whichever
kernel makes it: where models disagree it is their mean, weighted by ω_m ȳ_m(t|s, a) if costs depend on the next state and by ω_m if not, and a note says
so. With costs on the next state the mean kernel then has the mean cost of the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.core import counts as counted
from drmdp.core import validation as checks
from drmdp.core.levels import ended
from drmdp.core.names import same
from drmdp.core.validation import Names
from drmdp.errors import InputError, described
from drmdp.model import Model, changed, check_model


def stack(models: Sequence[Model], weights: ArrayLike = None, names: Names | None = None) -> Model:
    """Make one model with the kernels of several, which have the same states, actions, available pairs, ends and discount.

    Parameters
    ----------
    models : sequence of M models
        Each with one kernel or several.
        Counts stay, by kernel if each model has them so, else added up; a model without makes those of all unknown.
    weights : (M,), optional
        Of the models; equal by default. Those of the kernels within a model stay as they are among themselves.
    names : M names, optional
        Of the models, and so of their kernels; a kernel of a model with several is a tuple of both names. 0, 1, 2, … by default.

    Examples
    --------
    >>> import drmdp
    >>> parts = [drmdp.Model([[[p, 1 - p]], [[0, 1]]], costs=[1, 0], discount=0.9) for p in (0.6, 0.8, 0.9)]
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
    stacked = Model(
        _kernels(models),
        **{"rewards" if first.maximise else "costs": 0.0 - costs if first.maximise else costs},
        discount=first.factor,
        weights=np.concatenate([share * model.weights for share, model in zip(shares, models, strict=True)]),
        initial=initial,
        states=first.states,
        actions=first.actions,
        available=first.available,
        terminal=first.terminal,
        sojourn=first.sojourn,
        kernel_names=_names(models, labels, names is not None),
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
    for kind in ("discount", "maximise"):
        one, other = getattr(first, kind), getattr(model, kind)
        if one != other:
            words = (
                ["rewards" if x else "costs" for x in (one, other)]
                if kind == "maximise"
                else [f"{one:g}", f"{other:g}"]
            )
            raise InputError(f"models: 0 has {'' if kind == 'maximise' else 'discount '}{words[0]}, and {m} {words[1]}")
    shape = first.available.shape
    if not np.array_equal(np.broadcast_to(first.factor, shape), np.broadcast_to(model.factor, shape)):
        raise InputError(f"models: {m} has another discount in some pairs than 0")
    if not np.array_equal(model.terminal, first.terminal):
        s = int(np.argmax(model.terminal != first.terminal))
        raise InputError(f"models: state {first.states[s]!r} is terminal in only one of 0 and {m}")
    ends = [ended(one, np.zeros(one.n_states)) for one in (first, model)]
    if not np.array_equal(*ends):
        s = int(np.argmax(ends[0] != ends[1]))
        raise InputError(f"models: terminal state {first.states[s]!r} has another value in 0 than in {m}")
    if not np.array_equal(model.available, first.available):
        s, a = np.argwhere(model.available != first.available)[0].tolist()
        raise InputError(
            f"models: state {first.states[s]!r}, action {first.actions[a]!r} is available in only one of 0 and {m}"
        )
    lasts = [1.0 * one.available if one.sojourn is None else one.sojourn for one in (first, model)]
    if not np.array_equal(lasts[0], lasts[1]):
        s, a = np.argwhere(lasts[0] != lasts[1])[0].tolist()
        where = f"state {first.states[s]!r}, action {first.actions[a]!r}"
        raise InputError(f"models: {where} lasts {lasts[0][s, a]:g} in 0 and {lasts[1][s, a]:g} in {m}")


def _kernels(models: Sequence[Model]) -> Any:
    if any(model.is_sparse for model in models):
        listed = [kernel for model in models for kernel in model.kernels]
        return [k if sparse.issparse(k) else sparse.csr_array(k.reshape(-1, k.shape[-1])) for k in listed]
    return np.concatenate([model.kernels for model in models])


def _names(models: Sequence[Model], labels: Names, given: bool) -> Any:
    if not given:
        return None
    return [
        label if model.n_kernels == 1 else (label, name)
        for label, model in zip(labels, models, strict=True)
        for name in model.kernel_names
    ]


def _costs(models: Sequence[Model], shares: Array) -> tuple[Any, bool]:
    """One cost for all, inside's sign, and whether the models disagree."""
    if not any(model.next_costs for model in models):
        table = np.stack([model.costs for model in models])
        differ = bool((np.ptp(table, axis=0)[models[0].available] != 0).any())
        return (np.average(table, axis=0, weights=shares) if differ else table[0]), differ
    if any(model.is_sparse or sparse.issparse(model.costs) for model in models):
        return _listed_costs(models, shares)
    S, A = models[0].available.shape
    table = np.stack([np.broadcast_to(m.costs if m.next_costs else m.costs[:, :, None], (S, A, S)) for m in models])
    weight = np.stack([share * model.mean_kernel for share, model in zip(shares, models, strict=True)])
    seen = weight.sum(axis=0) > 0
    weight = np.where(seen, weight, ~np.isnan(table))  # where nobody goes, what anybody says
    known = weight > 0
    low, high = (fold(np.where(known, table, end), axis=0) for fold, end in ((np.min, np.inf), (np.max, -np.inf)))
    total = weight.sum(axis=0)
    mean = np.where(known, weight * np.where(known, table, 0.0), 0.0).sum(axis=0) / np.where(total > 0, total, np.nan)
    return np.where(low == high, low, mean), bool((seen & (low != high)).any())


def _listed_costs(models: Sequence[Model], shares: Array) -> tuple[Any, bool]:
    """Costs of the transitions that some model makes, as a sparse (S·A, S) matrix."""
    S, A = models[0].available.shape
    keys, costs, weight = [], [], []
    for share, model in zip(shares, models, strict=True):
        pairs = np.repeat(np.arange(S * A), model.blocks.lengths)
        keys.append(pairs * S + model.blocks.indices)
        costs.append(model.listed_costs() if model.next_costs else model.costs.ravel()[pairs])
        weight.append(share * model.mean)
    key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    price, mass = np.concatenate(costs), np.concatenate(weight)
    low, high = np.full(key.size, np.inf), np.full(key.size, -np.inf)
    np.minimum.at(low, inverse, price)
    np.maximum.at(high, inverse, price)
    total = np.bincount(inverse, mass)
    mean = np.bincount(inverse, mass * price) / np.where(total > 0, total, 1.0)
    found = np.where((low == high) | (total == 0), low, mean)
    table = sparse.csr_array((found, (key // S, key % S)), shape=(S * A, S))
    return table, bool(((low != high) & (total > 0)).any())
