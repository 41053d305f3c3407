"""The proof of sets with a budget for each action: that of the set with one budget a state, for every pair (s, a) as a state with one action.

With L_a ≤ F_a ≤ U_a the bounds of the pairs, U = Σ_a x_a U_a ≥ F^x, and L = min_a L_a, or Σ_a x_a L_a for a fixed policy, as nature's rows in one action cost
nothing in another. The sum is made of differences from the smallest U_a, so that a common level costs no digits: (A + 8) ε times their sizes and 4 ε times
the level itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.certificate.view import EPS, Found
from drmdp.layout.pairs import by_pair, memory_by_pair


def states(proof: Any, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Found) -> None:
    """Prove L, U and the shares of nature's moves for the states start … stop − 1; `proof` is that of the set with one budget a state."""
    S, A = layout.available.shape
    N, x = layout.weights.size, claim.policy[start:stop]
    pairs, first, last = by_pair(layout), start * A, stop * A
    found = Found(np.zeros(S * A), np.zeros(S * A), np.ones((S * A, N)))
    asked = np.zeros((S * A, 1))
    asked[first:last, 0] = (x > 0).ravel()
    each = claim._replace(policy=asked, memory=memory_by_pair(claim.memory, N), fixed=False)
    proof.states(first, last, pairs, view, each, found)
    low, high = (part.reshape(S, A)[start:stop] for part in (found.low, found.high))
    available = layout.available[start:stop]
    ends = ~available.any(axis=1)
    bounds.high[start:stop] = np.where(ends, 0.0, mixed(x, high, +1))
    least = np.where(available, low, np.inf).min(axis=1)
    bounds.low[start:stop] = np.where(ends, 0.0, mixed(x, low, -1) if claim.fixed else least)
    bounds.share[start:stop] = found.share.reshape(S, -1)[start:stop]


def mixed(x: Array, bounds: Array, side: int) -> Array:
    """Σ x·bounds/Σ x over the played actions, (n,), on the safe side; infinite where nothing is played or proved."""
    played: BoolArray = x > 0
    level = np.where(played, bounds, np.inf).min(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.where(played, bounds - level[:, None], 0.0)
        mean = (x * above).sum(axis=1) / x.sum(axis=1)
        alone = played.sum(axis=1) == 1
        margin = np.where(alone, 0.0, (x.shape[1] + 8) * EPS * mean + 4 * EPS * np.abs(level))
        found = np.where(alone, level, level + mean + side * margin)
    return np.where(np.isfinite(found), found, side * np.inf)
