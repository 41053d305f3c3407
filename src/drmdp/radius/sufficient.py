"""A radius that holds the truth with a given probability.

**Assumptions.** One true kernel y*; row (s, a) of observed kernel i is the empirical distribution of n_i(s, a) independent draws from y*(·|s,a); the
counts do not depend on what was drawn; the true next states are among those the ball allows. No drift, no differences between the sources, no
bootstrap or posterior draws (which share data), no rows filled by a rule. For trajectories the counts are random and the statement is an
approximation.

**Statement.** With probability 1 − δ every row satisfies d(ŷ, y*) ≤ ε at once, R rows sharing δ equally, δ' = δ/R, K allowed next states:

    ℓ1:  ε² = 2 (ln(2^K − 2) + ln 1/δ') / n                                   (Weissman et al., 2003)
    ℓ2:  ε  = (1 + √ln 1/δ') / √n                                             (McDiarmid; E d ≤ 1/√n)
    ℓ∞:  ε  = min{ √(ln(2K/δ') / (2n)),  (1 + √(½ ln 1/δ')) / √n }            (Hoeffding, or as for ℓ2)

and never more than the diameter 2, √2, 1. Rows of the actions stack to d_i by the norm (Σ ε, √Σε², max ε), kernels to
θ = (Σ_i w_i d_i^p)^{1/p} or max_i d_i. Then the N-tuple (y*, …, y*) is in every state's ball, and the worst-case value of every policy
bounds its true value. The bound is distribution-free, so it is generous; the radius that performs best is usually smaller
(`choose`, `cross_validate`).
"""

from __future__ import annotations

import math

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core.validation import number, numbers
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, Wasserstein, check_problem


def sufficient(model: Model, ball: AmbiguitySet, counts: ArrayLike, confidence: float = 0.95) -> Array:
    """Radius of each state, (S,), with which the true kernel is in all balls at once with probability `confidence`.

    That holds if each row is the share of next states in so many independent draws from one true kernel: no drift, no bootstrap, no rows
    that a rule filled. It needs no other assumption, so it is generous: the radius that does best is usually smaller.

    Parameters
    ----------
    model : Model
        Its rows are estimates.
    ball : Wasserstein
        Metric and order; its radius does not matter.
    counts : number, (S, A) or (N, S, A)
        How many draws each row is made of.
    confidence : float in (0, 1)
        Probability with which the truth shall be inside.
    """
    check_problem(model, ball)
    if not isinstance(ball, Wasserstein) or ball.ground is not None:
        raise InputError(f"{ball.short}: no radius is known to suffice; only Wasserstein balls of norms have one")
    n = _counts(model, counts)
    level = number("confidence", confidence)
    if not 0 < level < 1:
        raise InputError(f"confidence: expected a number between 0 and 1, got {level!r}")
    used = model.weights > 0
    w = model.weights[used]
    rows = int(model.available.sum()) * w.size
    if not rows:
        return np.zeros(model.n_states)
    log = math.log(rows / (1 - level))
    allowed = ball.places(model)  # (S, A)
    row = np.minimum(ball.norm.deviation(n[used], np.maximum(allowed, 1), log), ball.norm.diameter)  # (N, S, A)
    row = np.where(model.available & (allowed > 1), row, 0.0)
    return np.asarray(ball.stacked(ball.norm.of(row, axis=2).T, w).max(axis=-1))


def _counts(model: Model, counts: ArrayLike) -> Array:
    n = numbers("counts", counts)
    S, A, N = model.n_states, model.n_actions, model.n_kernels
    if n.shape not in ((), (S, A), (N, S, A)):
        raise InputError(f"counts: expected a number, shape {(S, A)} or {(N, S, A)}, got {n.shape}")
    full = np.where(model.available, np.broadcast_to(n, (N, S, A)), 0.0)
    bad = ~np.isfinite(full) | (full < 0)
    if bad.any():
        i, s, a = np.argwhere(bad)[0].tolist()
        where = f"kernel {model.kernel_names[i]!r}, state {model.states[s]!r}, action {model.actions[a]!r}"
        raise InputError(f"counts must be finite and not negative: {where} has {float(full[i, s, a])!r}")
    return full
