"""Continuous time as steps: uniformisation.

With rates q(t | s, a) ≥ 0 of jumps from s to t ≠ s, costs c(s, a) per unit of time, j(s, a, t) for
a jump, and interest α, values solve

    α V(s) = min_a c(s, a) + Σ_t q(t | s, a) (j(s, a, t) + V(t) − V(s)).

Let Λ be the largest rate at which any pair is left under any kernel, and P = I + Q/Λ. Adding Λ V(s)
on both sides and dividing by Λ + α,

    V(s) = min_a c(s, a)/(Λ + α) + λ Σ_t P(t | s, a) (j(s, a, t) 1{t ≠ s} + V(t)),  λ = Λ/(Λ + α),

the equation of a model with discount λ, whose values are those of continuous time. With α = 0 and
terminal states it is a total, with α = 0 and none only averages are finite. Steps last 1/(Λ + α):
as they cost c/(Λ + α) and Λ/(Λ + α) times what jumps do, averages per unit of time are those of
continuous time. Λ is the same for all kernels, so that nature moves what leads to a next state and
never the clock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core.distributions import Labels
from drmdp.core.validation import number_from, numbers
from drmdp.errors import InputError, first_place, unexpected

SLACK = 1e-9
"""Largest sum of a row, relative to its largest number."""


def interest_of(given: Any) -> float:
    """A rate of interest, at least 0."""
    return number_from(0.0, "interest", given, "a rate per unit of time, at least 0")


def uniformised(rates: ArrayLike, open_pairs: BoolArray, labels: Labels) -> tuple[Array, float]:
    """Kernels (N, S, A, S) of checked rates, and Λ."""
    q = jumps(rates)
    S, A = q.shape[1:3]
    states = np.arange(S)
    leave = q.copy()
    leave[:, states, :, states] = 0.0
    bad = open_pairs & ~(np.isfinite(q).all(axis=3) & (leave >= 0).all(axis=3))
    if at := first_place(bad):
        i, s, a = at
        t = int(np.argmin(np.where(np.isfinite(q[i, s, a]), leave[i, s, a], -np.inf)))
        place = f"{labels.row(s * A + a, i)}, next state {labels.states[t]!r}"
        rule = "finite and not negative but to the state itself"
        raise InputError(f"rates must be {rule}: {place} has {float(q[i, s, a, t])!r}")
    sums = q.sum(axis=3)
    off = open_pairs & (np.abs(sums) > SLACK * np.abs(q).max(axis=3))
    if at := first_place(off):
        i, s, a = at
        row = f"{labels.row(s * A + a, i)} sums to {float(sums[at])!r}"
        cure = f"its rate to itself should be {-float(leave[i, s, a].sum())!r}"
        raise InputError(f"rates must sum to 0: {row}; {cure}")
    leave = np.where(open_pairs[:, :, None], leave, 0.0)
    fastest = float(leave.sum(axis=3).max())
    if not 0 < fastest < np.inf:
        rate = f"the largest rate at which a state is left is {fastest!r}"
        raise InputError(f"rates: {rate}, expected a positive number")
    kernels = leave / fastest
    kernels[:, states, :, states] = np.maximum(1 - kernels.sum(axis=3), 0.0).transpose(1, 0, 2)
    return kernels, fastest


def jumps(rates: ArrayLike) -> Array:
    """Rates as (N, S, A, S)."""
    q = numbers("rates", rates)
    q = q[None] if q.ndim == 3 else q
    if q.ndim != 4 or q.shape[1] != q.shape[3]:
        raise InputError(f"rates: expected shape (S, A, S) or (N, S, A, S), got {q.shape}")
    return q


def priced(
    name: str, flow: ArrayLike, jump: ArrayLike, step: float, discount: float, S: int, A: int
) -> Array:
    """Costs of a step, (S, A) or (S, A, S), from those per unit of time, times `step`, and those of
    jumps, times `discount`.
    """
    costs = np.zeros((S, A))
    if flow is not None:
        costs = by_pair(name, flow, (S, A), ", per unit of time")
    if jump is None:
        return costs * step
    extra = by_pair(f"jump_{name}", jump, (S, A, S)) * discount
    extra[np.arange(S), :, np.arange(S)] = 0.0
    return costs[:, :, None] * step + extra


def by_pair(name: str, given: ArrayLike, shape: tuple[int, ...], unit: str = "") -> Array:
    """Numbers (S, A, …), or (S, …) for all actions alike, as (S, A, …)."""
    S, A, *others = shape
    array = numbers(name, given)
    if array.shape == (S, *others):
        array = np.repeat(array[:, None], A, axis=1)
    if array.shape != shape:
        raise unexpected(name, f"shape {shape} or {(S, *others)}{unit}", array.shape)
    return array


def at_rate(model: Any, rate: float) -> Any:
    """The model whose steps cost c − rate · τ, τ(s, a) their mean length."""
    if rate == 0 or model.sojourn is None:
        return model
    off = rate * model.sojourn
    if model._costs.ndim == 1:
        off = np.repeat(off.ravel(), model.blocks.lengths)
    costs = model._costs - (off[:, :, None] if model._costs.ndim == 3 else off)
    return model._changed(_costs=costs)
