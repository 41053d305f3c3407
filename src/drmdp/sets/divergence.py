"""What is feared: next-state distributions that are not too unlike the data, by a divergence D(y ‖ ŷ).

    kl     Σ y log(y/ŷ)              burg   Σ ŷ log(ŷ/y)
    chi2   Σ (y − ŷ)²/ŷ              tv     ½ ‖y − ŷ‖₁

    around="mean":      Σ_a D(y_a ‖ ȳ_a) ≤ θ_s            with ȳ = Σ_i w_i ŷ_i the mean kernel,
    around="kernels":   Σ_i w_i Σ_a D(y_ia ‖ ŷ_ia) ≤ θ_s   for N-tuples of kernels, of which nature plays the mean.

With rectangular="sa" the sums over a become "for each a", with θ_s or θ_sa. By convexity the set around the mean contains the means of the tuples around the
kernels, and costs N times less. With kl and chi2 no row leaves the support of the row it is compared with, whatever `support` says; burg and tv may bring
mass to any allowed next state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.sums import raised
from drmdp.errors import InputError, shown
from drmdp.model import Model
from drmdp.sets.base import AmbiguitySet, moved
from drmdp.sets.confidence import from_counts
from drmdp.sets.keeping import Leaving


class Kind(NamedTuple):
    """A divergence."""

    words: str
    apart: Callable[
        [Array, Array, Array], Array
    ]  # what each entry adds, of y, ŷ and the ratio y/ŷ, which is 1 where nothing was seen
    farthest: Callable[
        [Array, BoolArray, Array], float
    ]  # size from which rows (A, N, K) can be anything on `allowed`, of weights (N,)
    confined: Callable[
        [Array, Array], Array
    ]  # of the row that stays inside and is nearest, from the mass that is outside and inside
    stays: bool = False  # no row leaves its own support


def _lonely(each: Callable[[Array], Array]) -> Callable[[Array, BoolArray, Array], float]:
    """The farthest of a divergence that is largest where all mass is at the least likely next state, from the probability of that."""

    def farthest(y: Array, allowed: BoolArray, w: Array) -> float:
        least = np.where(y > 0, y, np.inf).min(axis=2)  # (A, N)
        return float((np.maximum(each(least), 0.0) @ w).sum())

    return farthest


KINDS = {
    "kl": Kind(
        "Kullback–Leibler divergence from the data",
        lambda y, nominal, ratio: nominal * np.where(ratio > 0, ratio * np.log1p(ratio - 1) - (ratio - 1), 1.0),
        _lonely(lambda least: -np.log(least)),
        lambda lost, kept: np.log1p(lost / kept),
        stays=True,
    ),
    "burg": Kind(
        "Burg divergence: that of the data from nature's kernel",
        lambda y, nominal, ratio: (
            nominal * (ratio - 1 - np.where(ratio > 0.5, np.log1p(ratio - 1), np.log(ratio)))
            + np.where(nominal > 0, 0.0, y)
        ),
        lambda y, allowed, w: np.inf if (allowed.sum(axis=2) > 1).any() else 0.0,
        lambda lost, kept: np.where(lost > 0, np.inf, 0.0),
    ),
    "chi2": Kind(
        "Pearson's χ²",
        lambda y, nominal, ratio: nominal * (ratio - 1) ** 2,
        _lonely(lambda least: 1 / least - 1),
        lambda lost, kept: lost / kept,
        stays=True,
    ),
    "tv": Kind(
        "total variation: the probability that is moved",
        lambda y, nominal, ratio: np.abs(y - nominal) / 2,
        lambda y, allowed, w: float(np.where(allowed[:, 0], 1 - np.einsum("i,aik->ak", w, y), 0.0).max(axis=1).sum()),
        lambda lost, kept: lost,
    ),
}
"""Every divergence by its name."""
UNKNOWN, NOTHING = 1e-290, 1e-280
"""Means of products below this may have underflowed: no row of the set that is known has more than nothing there."""
AROUND = {"mean": "the mean kernel", "kernels": "each kernel, the mean divergence being bounded"}


@dataclass(frozen=True, eq=False, repr=False)
class Divergence(AmbiguitySet):
    """A ball of next-state distributions by a divergence.

    Parameters
    ----------
    radius : float, (S,) array, or with rectangular="sa" (S, A) array
        Largest divergence, added up over the actions of a state or for each of them.
    kind : "kl", "burg", "chi2" or "tv"
        Σ y log(y/ŷ), Σ ŷ log(ŷ/y), Σ (y − ŷ)²/ŷ (no ½), or ½ ‖y − ŷ‖₁.
    around : "mean" or "kernels"
        Whether nature bends the mean kernel, or each kernel with the mean divergence bounded.
    support : "observed", "state" or "all"
        Where burg and tv may bring mass: to next states seen from the same state and action, from the state under any action, or anywhere; kl and chi2
        never leave the support of a row.
    rectangular : "s" or "sa"
        Whether the actions of a state share one budget, or each has its own; "s" by default.
    moves : "states" or "events"
        Whether nature moves probabilities of next states, "the transition probabilities may be wrong", or the laws of a model of events, "the law of the
        demand may be wrong" (`drmdp.Model.from_events`); rectangular is then "sa" by default.

    Examples
    --------
    >>> import drmdp
    >>> drmdp.Divergence(0.1)
    Divergence(radius=0.1, kind='kl', around='mean', support='observed', rectangular='s')
    """

    radius: Any
    kind: str = "kl"
    around: str = "mean"
    support: str = "observed"
    rectangular: str = cast(str, None)
    moves: str = "states"

    by_kernel = False

    def __post_init__(self) -> None:
        for name, known in (("kind", KINDS), ("around", AROUND)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in known:
                raise InputError(f"{name} is {', '.join(map(repr, known))}, got {shown(given)}")
        self.check_size()

    @classmethod
    def from_counts(cls, model: Model, level: float = 0.95) -> Self:
        """What we recommend for a log: the Burg ball of radius ln(1/(1 − level))/n(s, a) by pair.

        Mass moves to next states seen from the state under any action. For values that are fixed
        before, its worst case is no better than the truth with probability `level`, pair by pair;
        inside a decision problem that is measured, not proved. `drmdp.radius.from_counts` has radii
        that are proved, which are larger, and those of other sets.

        Parameters
        ----------
        model : Model
            With counts whose shares are its kernel, as `drmdp.estimate` makes it without `by`.
        level : float in (0, 1)
            How sure to be.
        """
        ambiguity = cls(0.0, "burg", support="state", rectangular="sa")
        return ambiguity.with_radius(from_counts(model, ambiguity, level, "value"))

    @property
    def key(self) -> tuple[str, str]:
        """(kind, around)."""
        return self.kind, self.around

    @property
    def degree(self) -> int:  # type: ignore[override]
        """1 for total variation, a norm."""
        return 1 if self.kind == "tv" else 2

    @property
    def short(self) -> str:
        """Kind and what it is around, if not the mean."""
        return self.named(self.kind + (" around kernels" if self.around == "kernels" else ""))

    @property
    def words(self) -> str:
        """Kind, centre, support and rectangularity."""
        return f"{self.kind} around {self.around}, support {self.support}, rectangular {self.rectangular}" + (
            ", moves events" if self.moves == "events" else ""
        )

    def facts(self) -> dict[str, str]:
        """Kind and centre in words."""
        return {
            "divergence": KINDS[self.kind].words,
            "around": AROUND[self.around],
            "budget": self.budget_words,
            **self.moved_words,
        }

    def covered(self, n: int) -> str:
        """Around the mean, or around kernels of which nature plays the mean."""
        if n <= 1 or self.around == "mean":
            return super().covered(n)
        return f"kernels within {self.range_text} of those {n:,}, on average, have a mean that makes"

    @property
    def size_meaning(self) -> str:
        """How much mass total variation moves; the others tell no such thing."""
        return moved(self.radius, self.moves) if self.kind == "tv" and not np.ndim(self.radius) else ""

    def fitted(self, model: Model) -> Self:
        """The set that operators of this model take: rows that cannot leave their support need no other states."""
        if KINDS[self.kind].stays and self.support != "observed":
            return replace(self, support="observed").fitted(model)
        return super().fitted(model)

    def centred(self, nominal: Array, weights: Array) -> tuple[Array, Array]:
        """What it is around, rows (…, N, K) and weights (N,): the data or their mean."""
        if self.around == "kernels":
            return nominal, weights
        mean = raised(np.einsum("i,...ik->...k", weights, nominal), weights, nominal)
        return mean[..., None, :], np.ones(1)

    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """Divergence of kernels (…, A, N, K) from the data, (…, 1)."""
        seen = nominal > 0
        ratio = np.where(seen, y / np.where(seen, nominal, 1.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = KINDS[self.kind].apart(y, nominal, ratio)
            if KINDS[self.kind].stays:
                unknown = (y > NOTHING) & (nominal < UNKNOWN) if self.around == "mean" else False
                each = np.where(unknown | (~seen & (y > 0)), np.inf, each)
            return np.asarray(np.broadcast_to(each, y.shape).sum(axis=(-3, -1)) @ weights)[..., None]

    def least_radius(self, rows: Leaving) -> Array:
        """Radius from which nature can keep rows inside, (G,)."""
        around, weights = (rows.mean[None], np.ones(1)) if self.around == "mean" else (rows.rows, rows.weights)
        lost, kept = rows.spilt(around)
        nowhere = (rows.room == 0) | (KINDS[self.kind].stays & (kept == 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(lost > 0, np.where(nowhere, np.inf, KINDS[self.kind].confined(lost, kept)), 0.0)
        return np.asarray(rows.gathered(weights @ each))

    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Divergence at which every row can have all its mass where it pleases; infinite for burg, unless there is one place only."""
        y, w = self.centred(y[:, w > 0], w[w > 0])
        return KINDS[self.kind].farthest(y, allowed, w)

    def __repr__(self) -> str:
        return (
            f"Divergence(radius={self.radius_text}, kind={self.kind!r}, around={self.around!r}, support={self.support!r}, "
            f"rectangular={self.rectangular!r}{', moves=' + repr(self.moves) if self.moves == 'events' else ''})"
        )
