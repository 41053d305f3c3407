"""Continuous time as steps: uniformisation.

With rates q(t | s, a) ≥ 0 of jumps from s to t ≠ s, costs c(s, a) per unit of time, j(s, a, t) for a jump, and interest α, values solve

    α V(s) = min_a c(s, a) + Σ_t q(t | s, a) (j(s, a, t) + V(t) − V(s)).

Let Λ be the largest rate at which any pair is left under any kernel, and P = I + Q/Λ. Adding Λ V(s) on both sides and dividing by Λ + α,

    V(s) = min_a c(s, a)/(Λ + α) + λ Σ_t P(t | s, a) (j(s, a, t) 1{t ≠ s} + V(t)),        λ = Λ/(Λ + α),

the equation of a model with discount λ, whose values are those of continuous time. With α = 0 and terminal states it is a total,
with α = 0 and none only averages are finite. Steps last 1/(Λ + α): as they cost c/(Λ + α) and
Λ/(Λ + α) times what jumps do, averages per unit of time are those of continuous time. Λ is the same
for all kernels, so that nature moves what leads to a next state and never the clock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core.distributions import Labels
from drmdp.core.validation import number, numbers
from drmdp.errors import InputError

SLACK = 1e-9
"""What a row may sum to, relative to its largest number."""


def interest_of(given: Any) -> float:
    """A rate of interest, at least 0."""
    found = number("interest", given)
    if not 0 <= found < np.inf:
        raise InputError(f"interest: expected a rate per unit of time, at least 0, got {found!r}")
    return found


def uniformised(rates: ArrayLike, open_pairs: BoolArray, labels: Labels) -> tuple[Array, float]:
    """Kernels (N, S, A, S) of checked rates, and Λ."""
    found = jumps(rates)
    S, A = found.shape[1:3]
    here = np.arange(S)
    leave = found.copy()
    leave[:, here, :, here] = 0.0
    bad = open_pairs & ~(np.isfinite(found).all(axis=3) & (leave >= 0).all(axis=3))
    if bad.any():
        i, s, a = np.argwhere(bad)[0]
        t = int(np.argmin(np.where(np.isfinite(found[i, s, a]), leave[i, s, a], -np.inf)))
        place = f"{labels.row(s * A + a, i)}, next state {labels.states[t]!r}"
        rule = "finite and not negative but to the state itself"
        raise InputError(f"rates must be {rule}: {place} has {float(found[i, s, a, t])!r}")
    sums = found.sum(axis=3)
    off = open_pairs & (np.abs(sums) > SLACK * np.abs(found).max(axis=3))
    if off.any():
        i, s, a = np.argwhere(off)[0]
        own = -float(leave[i, s, a].sum())
        raise InputError(
            f"rates must sum to 0: {labels.row(s * A + a, i)} sums to {float(sums[i, s, a])!r}; its rate to itself should be {own!r}"
        )
    leave = np.where(open_pairs[:, :, None], leave, 0.0)
    fastest = float(leave.sum(axis=3).max())
    if not 0 < fastest < np.inf:
        raise InputError(f"rates: the largest rate at which a state is left is {fastest!r}, expected a positive number")
    kernels = leave / fastest
    kernels[:, here, :, here] = np.maximum(1 - kernels.sum(axis=3), 0.0).transpose(1, 0, 2)
    return kernels, fastest


def jumps(rates: ArrayLike) -> Array:
    """Rates as (N, S, A, S)."""
    found = numbers("rates", rates)
    found = found[None] if found.ndim == 3 else found
    if found.ndim != 4 or found.shape[1] != found.shape[3]:
        raise InputError(f"rates: expected shape (S, A, S) or (N, S, A, S), got {found.shape}")
    return found


def priced(
    name: str, costs: ArrayLike, jump_costs: ArrayLike, step: float, jump: float, shape: tuple[int, int]
) -> Array:
    """Costs of a step, (S, A) or (S, A, S), from those per unit of time, times `step`, and those of jumps, times `jump`."""
    S, A = shape
    found = np.zeros((S, A)) if costs is None else numbers(name, costs)
    found = np.repeat(found[:, None], A, axis=1) if found.shape == (S,) else found
    if found.shape != (S, A):
        raise InputError(f"{name}: expected shape {(S, A)} or {(S,)}, per unit of time, got {found.shape}")
    if jump_costs is None:
        return found * step
    own = numbers(f"jump_{name}", jump_costs)
    own = np.repeat(own[:, None], A, axis=1) if own.shape == (S, S) else own
    if own.shape != (S, A, S):
        raise InputError(f"jump_{name}: expected shape {(S, A, S)} or {(S, S)}, got {own.shape}")
    own = own * jump
    own[np.arange(S), :, np.arange(S)] = 0.0
    return found[:, :, None] * step + own
