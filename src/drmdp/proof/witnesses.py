"""What a proof file says of each set: its name, what bounds nature from above, and her answer.

`above` takes the rows of the actions that are played, weights of the kernels and a radius; see `responses`. The registry says which set has which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.proof import responses
from drmdp.proof.responses import Row
from drmdp.sets import AmbiguitySet

Side = dict[str, Any]
"""One side of a line of the file; lists by action are of the played ones."""


@dataclass(frozen=True)
class Norm:
    """Balls of a norm; `mean`: the means of tuples are the ball around the mean."""

    find: Any
    mean: bool = False
    mixture: bool = False

    def told(self, ball: Any) -> dict[str, Any]:
        """The set, but for its radius."""
        order = "inf" if ball.by_kernel else ball.order
        return {"family": "norm", "metric": ball.metric, "order": order, **({"around": "mean"} if self.mean else {})}

    def above(self, ball: AmbiguitySet, rows: list[Row], weights: Array, radius: float) -> Side:
        """Thresholds and sizes; nothing moves without a radius."""
        return {"rows": self.find(rows, weights, radius, ball)} if radius > 0 else {}


L1, L1_MEAN, L2, LINF = Norm(responses.l1), Norm(responses.l1, mean=True), Norm(responses.l2), Norm(responses.linf)


@dataclass(frozen=True)
class Divergence:
    """Balls by a divergence around the mean or the kernels."""

    kind: str
    mean: bool
    mixture: bool = False

    def told(self, ball: Any) -> dict[str, Any]:
        """The set, but for its radius."""
        return {"family": "divergence", "kind": self.kind, "around": "mean" if self.mean else "kernels"}

    def above(self, ball: AmbiguitySet, rows: list[Row], weights: Array, radius: float) -> Side:
        """A multiplier and thresholds; nothing moves without a radius."""
        if not radius > 0:
            return {}
        if self.kind == "tv":
            return {"rows": responses.l1_shared(rows, weights, 2 * radius)}
        return responses.divergence(self.kind, rows, weights, radius)


@dataclass(frozen=True)
class Reweighting:
    """Mixtures of the kernels: rows over the kernels, whose stakes are their losses."""

    kind: str
    mean: bool = False
    mixture: bool = True

    def told(self, ball: Any) -> dict[str, Any]:
        """The set, but for its radius."""
        return {"family": "reweighting", "kind": self.kind}

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """What bounds a mixture; the radius of cvar is its level."""
        losses = sum(np.einsum("ik,k->i", row.y, row.g) for row in rows)
        mixed = [Row(losses - np.max(losses), weights[None])]
        if self.kind in ("cvar", "any"):
            most = weights / radius if self.kind == "cvar" and radius > 0 else np.ones(weights.size)
            return {"eta": [responses.pivot(losses, np.zeros(weights.size), most)]}
        return Divergence(self.kind, mean=True).above(ball, mixed, np.ones(1), radius)


def by_kind(kind: str) -> tuple[Divergence, Divergence, Reweighting]:
    """The three sets of a kind of divergence: around the mean, around the kernels, of mixtures."""
    return Divergence(kind, mean=True), Divergence(kind, mean=False), Reweighting(kind)


KL_MEAN, KL, MIX_KL = by_kind("kl")
BURG_MEAN, BURG, MIX_BURG = by_kind("burg")
CHI2_MEAN, CHI2, MIX_CHI2 = by_kind("chi2")
TV_MEAN, TV, MIX_TV = by_kind("tv")
MIX_CVAR, MIX_ANY = Reweighting("cvar"), Reweighting("any")


@dataclass(frozen=True)
class Intervals:
    """An interval for each probability."""

    mean: bool = True
    mixture: bool = False

    def told(self, ball: Any) -> dict[str, Any]:
        """The set; its intervals are in the lines of the states."""
        return {"family": "intervals"}

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """Thresholds."""
        return {"eta": [responses.pivot(row.g, row.y[0], row.y[1]) for row in rows]}


INTERVALS = Intervals()
