"""Radii that hold a share of posterior draws.

With draws y_1, …, y_N of the kernel, the radius of a pair (of a state, with rectangular="s") is the
`level` quantile over j of the distance of y_j from what the set is around: the mean of the draws,
or the draws themselves, as the tuple (y_j, …, y_j). Below `FEW` draws y_j is left out of what it is
compared with. This is a statement about the posterior, so it is as good as the prior; it is no
confidence (`drmdp.radius.from_counts` has that).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.errors import InputError, unexpected
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.confidence import around_mean, checked_level

FEW = 100
"""With fewer draws each is compared with the others."""


def credible(draws: Model, ambiguity: AmbiguitySet, level: float = 0.9) -> Array:
    """Radii that hold a share `level` of posterior draws: by pair, (S, A), for "s" by state, (S,).

    Parameters
    ----------
    draws : Model
        Its kernels are draws from the posterior, as ``drmdp.estimate(…, by="posterior",
        n_kernels=200)`` makes them.
    ambiguity : set
        Its kind, order, support and rectangularity; its radius does not matter.
    level : float in (0, 1)
        Share of the draws.

    Examples
    --------
    >>> import drmdp
    >>> log = {"state": ["ok"] * 20, "action": ["run"] * 20, "cost": [1.0] * 20}
    >>> log["next_state"] = ["ok"] * 15 + ["worn"] * 5
    >>> given = {"cost": "cost", "discount": 0.9, "terminal": "worn"}
    >>> draws = drmdp.estimate(log, by="posterior", n_kernels=200, **given)
    >>> feared = drmdp.Divergence(0, "tv", rectangular="sa")
    >>> bool(0.1 < drmdp.radius.credible(draws, feared)[0, 0] < 0.2)
    True
    """
    check_problem(draws, ambiguity)
    ambiguity.fitted(draws).check_sized()
    level, used = checked_level("level", level), np.flatnonzero(draws.weights > 0)
    if ambiguity.moves != "states" or used.size < 2 or ambiguity.short == "intervals":
        raise unexpected(ambiguity.short, "a set around two or more posterior draws", used.size)
    weights = draws.weights[used] / draws.weights[used].sum()
    out = np.zeros(draws.available.shape if ambiguity.by_pair else draws.n_states)
    for s in np.flatnonzero(draws.available.any(axis=1)).tolist():
        rows = draws.blocks.dense(s, s + 1)[0][draws.available[s]][:, used]  # (A', N, S)
        if getattr(ambiguity, "ground", None) is None:
            rows = rows[:, :, rows.any(axis=(0, 1))]
        far = _distances(ambiguity, rows, weights)  # (N, A') or (N,)
        order = np.argsort(far, axis=0)
        enough = np.cumsum(weights[order], axis=0) >= level * (1 - 1e-12)
        last = np.take_along_axis(order, enough.argmax(axis=0)[None], 0)
        radii = np.take_along_axis(far, last, 0)[0]
        if not np.isfinite(radii).all():
            cure = "some draws lack next states that others have: take tv, or a larger prior"
            what = f"state {draws.states[s]!r}: no radius holds {level:g} of the draws"
            raise InputError(f"{ambiguity.short}: {what}: {cure}")
        out[(s, draws.available[s]) if ambiguity.by_pair else s] = radii
    return out


def _distances(ambiguity: AmbiguitySet, rows: Array, weights: Array) -> Array:
    """Distance of each draw from what the set is around, of rows (A', N, S)."""
    y = rows.swapaxes(0, 1)[:, :, None]  # (N, A', 1, S)
    N, alone = weights.size, weights.size < FEW

    def apart(drawn: Any, centre: Any, shares: Array) -> Array:
        parts = np.broadcast_arrays(drawn, centre)
        drawn, centre = (part[:, :, None] if ambiguity.by_pair else part for part in parts)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(ambiguity.apart(drawn, centre, shares).max(axis=-1))

    if around_mean(ambiguity):
        mean, share = np.einsum("i,iajk->ajk", weights, y), weights[:, None, None, None]
        others = np.maximum(mean - share * y, 0.0) / (1 - share) if alone else mean
        return apart(y, others, np.ones(1))
    far = []
    for j in range(N):
        keep = (np.arange(N) != j) | (not alone)
        far.append(apart(y[j : j + 1], rows[:, keep], weights[keep] / weights[keep].sum()))
    return np.concatenate(far)
