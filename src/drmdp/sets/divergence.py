"""Sets of next-state distributions whose divergence D(y ‖ ŷ) from the data is small.

    kl     Σ y log(y/ŷ)              burg   Σ ŷ log(ŷ/y)
    chi2   Σ (y − ŷ)²/ŷ              tv     ½ ‖y − ŷ‖₁

    around="mean":      Σ_a D(y_a ‖ ȳ_a) ≤ θ_s            with ȳ = Σ_i w_i ŷ_i the mean kernel,
    around="kernels":   Σ_i w_i Σ_a D(y_ia ‖ ŷ_ia) ≤ θ_s   for N-tuples of kernels.

Of a tuple nature plays the mean.

With rectangular="sa" the sums over a become "for each a", with θ_s or θ_sa. By convexity the set
around the mean contains the means of the tuples around the kernels, and costs N times less. With kl
and chi2 no row leaves the support of the row it is compared with, whatever `support` says; burg and
tv may bring mass to any allowed next state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.sums import raised
from drmdp.errors import one_of
from drmdp.model import Model
from drmdp.sets.base import AmbiguitySet, moved
from drmdp.sets.confidence import from_counts
from drmdp.sets.confinement import Leaving


class DivergenceKind(NamedTuple):
    """A divergence."""

    words: str
    # what each entry adds, of y, ŷ and the ratio y/ŷ, which is 1 where nothing was seen
    apart: Callable[[Array, Array, Array], Array]
    # size from which rows (A, N, K) can be anything on `allowed`, of weights (N,)
    farthest: Callable[[Array, BoolArray, Array], float]
    # of the row that stays inside and is nearest, from the mass that is outside and inside
    confined: Callable[[Array, Array], Array]
    stays: bool = False  # no row leaves its own support


def _lonely(each: Callable[[Array], Array]) -> Callable[[Array, BoolArray, Array], float]:
    """The farthest of a divergence that is largest where all mass is at the least likely next
    state, from the probability of that.
    """

    def farthest(y: Array, allowed: BoolArray, w: Array) -> float:
        least = np.where(y > 0, y, np.inf).min(axis=2)  # (A, N)
        return float((np.maximum(each(least), 0.0) @ w).sum())

    return farthest


def _kl(y: Array, nominal: Array, ratio: Array) -> Array:
    entropy = ratio * np.log1p(ratio - 1) - (ratio - 1)
    return np.asarray(nominal * np.where(ratio > 0, entropy, 1.0))


def _burg(y: Array, nominal: Array, ratio: Array) -> Array:
    log = np.where(ratio > 0.5, np.log1p(ratio - 1), np.log(ratio))
    return np.asarray(nominal * (ratio - 1 - log) + np.where(nominal > 0, 0.0, y))


def _farthest_tv(y: Array, allowed: BoolArray, w: Array) -> float:
    share = np.einsum("i,aik->ak", w, y)
    return float(np.where(allowed[:, 0], 1 - share, 0.0).max(axis=1).sum())


KINDS = {
    "kl": DivergenceKind(
        "Kullback–Leibler divergence from the data",
        _kl,
        _lonely(lambda least: -np.log(least)),
        lambda lost, inside: np.log1p(lost / inside),
        stays=True,
    ),
    "burg": DivergenceKind(
        "Burg divergence: that of the data from nature's kernel",
        _burg,
        lambda y, allowed, w: np.inf if (allowed.sum(axis=2) > 1).any() else 0.0,
        lambda lost, inside: np.where(lost > 0, np.inf, 0.0),
    ),
    "chi2": DivergenceKind(
        "Pearson's χ²",
        lambda y, nominal, ratio: nominal * (ratio - 1) ** 2,
        _lonely(lambda least: 1 / least - 1),
        lambda lost, inside: lost / inside,
        stays=True,
    ),
    "tv": DivergenceKind(
        "total variation: the probability that is moved",
        lambda y, nominal, ratio: np.abs(y - nominal) / 2,
        _farthest_tv,
        lambda lost, inside: lost,
    ),
}
"""Every divergence by its name."""
PROMISED = (
    "radii from the counts: with probability {:.4g} %, for each state and action by itself, the "
    "worst case is no better than the truth, for later values that are fixed before (promise "
    "'value'); of all of them together this was measured, not proved"
)
UNKNOWN, NOTHING = 1e-290, 1e-280
"""Means of products below this may have underflowed: no row of the set that is known has more than
nothing there.
"""
AROUND = {"mean": "the mean kernel", "kernels": "each kernel, the mean divergence being bounded"}


@dataclass(frozen=True, eq=False, repr=False)
class Divergence(AmbiguitySet):
    """Next-state distributions within a divergence of the data.

    Parameters
    ----------
    radius : float, (S,) array, or with rectangular="sa" (S, A) array
        Largest divergence, added up over the actions of a state or for each of them.
    kind : "kl", "burg", "chi2" or "tv"
        Σ y log(y/ŷ), Σ ŷ log(ŷ/y), Σ (y − ŷ)²/ŷ (no ½), or ½ ‖y − ŷ‖₁.
    around : "mean" or "kernels"
        Whether nature bends the mean kernel, or each kernel with the mean divergence bounded.
    support : "observed", "state" or "all"
        Where burg and tv may bring mass: to next states seen from the same state and action, from
        the state under any action, or anywhere; kl and chi2 never leave the support of a row.
    rectangular : "s" or "sa"
        Whether the actions of a state share one budget, or each has its own; "s" by default.
    moves : "states" or "events"
        Whether nature moves probabilities of next states, "the transition probabilities may be
        wrong", or the laws of a model of events, "the law of the demand may be wrong"
        (`drmdp.Model.from_events`); rectangular is then "sa" by default.

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
            one_of(name, getattr(self, name), known)
        self.check_size()

    @classmethod
    def from_counts(cls, model: Model, level: float = 0.95) -> Self:
        """The Burg ball of radius ln(1/(1 − level))/n(s, a) by pair, recommended for a log.

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
        sized = ambiguity.with_radius(from_counts(model, ambiguity, level, "value"))
        return sized._with(promise=PROMISED.format(100 * level))

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
        where = f"support {self.support}, rectangular {self.rectangular}"
        where += ", moves events" if self.moves == "events" else ""
        return f"{self.kind} around {self.around}, {where}"

    def facts(self) -> dict[str, str]:
        """Kind and centre in words."""
        kind = {"divergence": KINDS[self.kind].words, "around": AROUND[self.around]}
        return kind | {"budget": self.budget_words} | self.moved_words

    def covered(self, n: int) -> str:
        """Around the mean, or around kernels of which nature plays the mean."""
        if n <= 1 or self.around == "mean":
            return super().covered(n)
        return (
            f"kernels within {self.range_text} of those {n:,}, on average, have a mean that makes"
        )

    @property
    def size_meaning(self) -> str:
        """How much mass total variation moves; the others tell no such thing."""
        moving = self.kind == "tv" and not np.ndim(self.radius)
        return moved(self.radius, self.moves) if moving else ""

    def fitted(self, model: Model) -> Self:
        """The set that operators of this model take: rows that cannot leave their support need no
        other states.
        """
        if KINDS[self.kind].stays and self.support != "observed":
            return replace(self, support="observed").fitted(model)
        return super().fitted(model)

    def centred(self, nominal: Array, weights: Array) -> tuple[Array, Array]:
        """Centre of the set, rows (…, N, K) and weights (N,): the data or their mean."""
        if self.around == "kernels":
            return nominal, weights
        mean = raised(np.einsum("i,...ik->...k", weights, nominal), weights, nominal)
        return mean[..., None, :], np.ones(1)

    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """Divergence of kernels (…, A, N, K) from the data, (…, 1)."""
        observed, kind = nominal > 0, KINDS[self.kind]
        ratio = np.where(observed, y / np.where(observed, nominal, 1.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            entries = kind.apart(y, nominal, ratio)
            if kind.stays:
                unknown = (y > NOTHING) & (nominal < UNKNOWN) if self.around == "mean" else False
                entries = np.where(unknown | (~observed & (y > 0)), np.inf, entries)
            kernels = np.broadcast_to(entries, y.shape).sum(axis=(-3, -1))
            return np.asarray(kernels @ weights)[..., None]

    def least_radius(self, rows: Leaving) -> Array:
        """Radius from which nature can keep rows inside, (G,)."""
        mean, kind = self.around == "mean", KINDS[self.kind]
        around, weights = (rows.mean[None], np.ones(1)) if mean else (rows.rows, rows.weights)
        lost, inside = rows.spilt(around)
        nowhere = (rows.room == 0) | (kind.stays & (inside == 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(nowhere, np.inf, kind.confined(lost, inside))
        return np.asarray(rows.gathered(weights @ np.where(lost > 0, needed, 0.0)))

    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Divergence at which every row can have all its mass where it pleases; infinite for burg,
        unless there is one place only.
        """
        y, w = self.centred(y[:, w > 0], w[w > 0])
        return KINDS[self.kind].farthest(y, allowed, w)

    def __repr__(self) -> str:
        names = ["kind", "around", "support", "rectangular"]
        names += ["moves"] if self.moves == "events" else []
        options = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"Divergence(radius={self.radius_text}, {options})"
