"""Wasserstein balls around the observed kernels, one per state.

The ball of state s is the set of N-tuples y = (y_1, …, y_N) of kernels, y_i = (y_ia)_a with y_ia a
distribution on the allowed next states of (s, a), such that

    Σ_i w_i d(y_i, ŷ_i)^p ≤ θ_s^p              (order 1 ≤ p < ∞),
    d(y_i, ŷ_i) ≤ θ_s for all i with w_i > 0   (p = ∞),

where d is the ℓ1, ℓ2 or ℓ∞ norm of the difference, *stacked over the available actions* of s. With
rectangular="sa" the same holds for every action on its own, with θ_s or θ_sa. What nature plays is
the mean Σ_i w_i y_i. This is a ball over distributions of kernels.

With metric="transport", d(y_i, ŷ_i) = Σ_a W_D(y_ia, ŷ_ia) is the cost of moving next-state
distributions (`drmdp.sets.transport`), p = 1 or ∞. For p = 1 the set of means is the ball around
the mean kernel: the average of N plans is a plan of the mean, and a plan of the mean moves every
kernel. With N = 1 this is the ball that is called Wasserstein elsewhere.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.cached import cached_property
from drmdp.errors import InputError, one_of, shown
from drmdp.model import Model, check_model
from drmdp.sets import transport
from drmdp.sets.base import AmbiguitySet, moved
from drmdp.sets.confinement import Leaving
from drmdp.sets.norms import NORMS, NormMetric, order_text, order_words, stack

Pair = tuple[str, float]

PAIRS: tuple[Pair, ...] = (("l1", 1), ("l2", 2), ("linf", 1))
PAIRS += (("l1", math.inf), ("l2", math.inf), ("linf", math.inf))
"""The (metric, order) pairs of the paper, which have solvers of their own; others share one."""


@dataclass(frozen=True, eq=False, repr=False)
class Wasserstein(AmbiguitySet):
    """A Wasserstein ball around the N kernels of a model.

    Parameters
    ----------
    radius : float or (S,) array
        How far nature may go, at every state or state by state; see `saturation` for what is large.
    metric : "l1", "l2", "linf" or "transport"
        How far a kernel is from another: a norm of the difference, or what moving the mass costs.
    order : 1 or more, or math.inf, optional
        The metric's own by default: 1 for "l1" and "transport", 2 for "l2", infinity for "linf";
        "transport" has 1 and infinity.
    rectangular : "s" or "sa"
        Whether the distance is stacked over the actions of a state, or bounded for each action on
        its own, with a number, (S,) or (S, A) radius; "s" by default.
    support : "observed", "state" or "all"
        Whether mass may move only to next states that some kernel with positive weight reaches from
        the same state and action, from the same state under any available action, or to any state,
        as in the paper.
    moves : "states" or "events"
        Whether nature moves probabilities of next states, "the transition probabilities may be
        wrong", or the laws of a model of events, "the law of the demand may be wrong"
        (`drmdp.Model.from_events`); rectangular is then "sa" by default.
    ground : (S, S) array, sparse matrix, ("line", positions (S,)) or ("grid", coordinates (S, k))
        For metric "transport". Cost D[j, k] of moving a unit of mass from next state j to k; in a
        sparse matrix mass cannot move where nothing is stored, and the diagonal is 0 anyway. The
        radius is in its unit.

    Examples
    --------
    >>> import drmdp
    >>> drmdp.Wasserstein(0.5, metric="l1")
    Wasserstein(radius=0.5, metric='l1', order=1, support='observed')
    >>> drmdp.Wasserstein(0.5, metric="transport", ground=("line", [0.0, 1.0, 3.0]))
    Wasserstein(radius=0.5, metric='transport', order=1, support='observed', ground=<line of 3>)
    """

    radius: Any
    metric: str = "l2"
    order: float = cast(float, None)
    support: str = "observed"
    rectangular: str = cast(str, None)
    moves: str = "states"
    ground: Any = None

    def __post_init__(self) -> None:
        self.check_size()
        if isinstance(self.metric, str) and self.metric == "transport":
            self._check_transport()
            return
        if self.ground is not None:
            kind = f"got metric {shown(self.metric)}"
            raise InputError(f"ground: only metric 'transport' has one, {kind}")
        one_of("metric", self.metric, (*NORMS, "transport"))
        object.__setattr__(self, "metric", str(self.metric))
        order = self.norm.power if self.order is None else self.order
        too_large = isinstance(order, int) and order > sys.float_info.max
        if not _is_number(order) or not order >= 1 or too_large:
            raise InputError(f"order is a number from 1 on or inf, got {shown(order)}")
        listed = [known for metric, known in PAIRS if (metric, known) == (self.metric, order)]
        object.__setattr__(self, "order", listed[0] if listed else float(order))

    def _check_transport(self) -> None:
        if self.moves == "events":
            cure = "take metric 'l1', 'l2' or 'linf'"
            raise InputError(f"moves='events': transport is between states; {cure}")
        order, ground = 1 if self.order is None else self.order, self.ground
        if not _is_number(order) or order not in (1, math.inf):
            what = f"('transport', {shown(order)}) is not implemented"
            raise InputError(f"{what}; its order is 1 or inf")
        ground = ground if isinstance(ground, transport.Ground) else transport.Ground(ground)
        self.__dict__.update(order=1 if order == 1 else math.inf, ground=ground)

    @property
    def pair(self) -> Pair:
        """(metric, order)."""
        return self.metric, self.order

    @cached_property
    def key(self) -> tuple[str, Any]:
        """(metric, order), or (metric, "p") where no solver is for that order alone."""
        alone = self.ground is not None or self.pair in PAIRS
        return self.pair if alone else (self.metric, "p")

    @property
    def norm(self) -> NormMetric:
        """The norm of a difference; transport has none."""
        if self.metric not in NORMS:
            raise InputError(f"{self.short} is not a norm of differences")
        return NORMS[self.metric]

    @property
    def free(self) -> bool:  # type: ignore[override]
        """Whether nature can move at radius 0: where mass goes to another state at no cost."""
        return self.ground is not None and self.ground.free

    @property
    def diameter(self) -> float:  # type: ignore[override]
        """Distance between two next states that are certain; transport has one for each two."""
        return self.norm.diameter if self.ground is None else math.inf

    @property
    def listing(self) -> str:
        """Key of its layout, with the costs of moving mass."""
        return super().listing if self.ground is None else f"{self.support} {self.ground.digest}"

    @property
    def by_kernel(self) -> bool:
        """Whether every kernel has a budget of its own: for order ∞."""
        return self.order == math.inf

    @property
    def short(self) -> str:
        """(metric, order), as text."""
        return self.named(f"({self.metric}, {order_text(self.order)})")

    @property
    def words(self) -> str:
        """Metric, order and support."""
        options = [f"metric {self.metric}", f"order {order_text(self.order)}"]
        options.append(f"support {self.support}")
        options += ["rectangular sa"] if self.rectangular == "sa" else []
        options += [] if self.ground is None else [f"ground {self.ground.words}"]
        return ", ".join(options + (["moves events"] if self.moves == "events" else []))

    def facts(self) -> dict[str, str]:
        """Metric and order in words."""
        alone = {"budget": self.budget_words} if self.rectangular == "sa" else {}
        if self.ground is None:
            metric = self.norm.words
        else:
            metric = f"transport: cost of moving mass, ground {self.ground.words}"
        return {"metric": metric, "order": order_words(self.order), **alone, **self.moved_words}

    def covered(self, n: int) -> str:
        """Around the mean where all tuples are as good as those of the mean, else kernels of which
        nature plays the mean.
        """
        if n <= 1 or self.pair in (("l1", 1), ("transport", 1)):
            return super().covered(n)
        means = {1.0: "on average", 2.0: "in the root mean square"}
        mean = means.get(float(self.order), f"in the mean of order {self.order:g}")
        how = "each" if self.by_kernel else mean
        return f"kernels within {self.range_text} of those {n:,}, {how}, have a mean that makes"

    @property
    def size_meaning(self) -> str:
        """How much mass moves by ℓ1, for ‖d‖₁/2 of it does; no probability moves by more than ℓ2
        and ℓ∞, nor does that of the mean.
        """
        if self.ground is not None or np.ndim(self.radius) or not 0 < self.radius < 1:
            return ""
        if self.metric == "l1":
            return moved(self.radius / 2, self.moves)
        what = "probability of an event" if self.moves == "events" else "probability"
        return f"no {what} moves by more than that"

    def fitted(self, model: Model) -> Self:
        """The set that operators of this model take, after checking that the two fit together."""
        check_model(model)
        if self.ground is not None:
            transport.check_fits(self, model)
        return super().fitted(model)

    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """Distances of kernels from the data, (…, A, N, K) → (…, N), or of tuples, (…, 1), for a
        finite order; transport is of all K = S states.
        """
        if self.ground is not None:
            return self.stacked(transport.distance(self.ground, y, nominal), weights)
        return self.stacked(self.norm.of(y - nominal, axis=(-3, -1)), weights)

    def least_radius(self, rows: Leaving) -> Array:
        """Radius from which nature can keep rows inside, (G,)."""
        lost, _ = rows.spilt(rows.rows)
        if self.ground is None:
            join = np.maximum if self.norm.power == math.inf else np.add
            parts = self.norm.confined(rows, lost)
            each = self.norm.root(join.reduceat(parts, rows.groups, axis=1))
        else:
            each = rows.gathered(transport.confined(self.ground, rows))
        stuck = rows.gathered((rows.room == 0) & (rows.total(rows.outside) > 0)) > 0
        return np.where(stuck, np.inf, self.stacked(each.T, rows.weights).max(axis=-1))

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Radius of each state from which nature is unconstrained, (S,); 0 in terminal states.

        Parameters
        ----------
        model : Model
            Whose kernels are the centre.
        states : numbers, optional
            Only these, in that order.
        """
        fitted = self if self.ground is None else self.fitted(model)
        return super(Wasserstein, fitted).saturation(model, states)

    def rows(self, model: Model, s: int) -> tuple[Array, BoolArray]:
        """Available rows of a state, (A', N, K), and where they may have mass, (A', 1, K)."""
        return super().rows(model, s) if self.ground is None else transport.rows(self, model, s)

    def stacked(self, each: Array, weights: Array) -> Array:
        """Distances of kernels, (…, N), to compare with the radius: (…, N), or (…, 1) for a finite
        order.
        """
        return each if self.by_kernel else stack(self.order, each, weights)[..., None]

    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Largest distance of a choice of one next state per action; where that is no sum over the
        kernels, of one per action and kernel.

        The latter is the same whenever each row has a next state of probability 0 in all kernels,
        and else errs on the large side.
        """
        if self.ground is not None:
            return transport.farthest(self, y, allowed, w)
        used = w > 0
        y, w, norm = y[:, used], w[used], self.norm
        corner = np.where(allowed, norm.corner(y), 0)  # (A, N, K)
        if self.by_kernel:
            far = norm.gather(corner.max(axis=2)).max()
        elif self.order == norm.power:
            far = norm.gather((w @ corner).max(axis=1))
        else:
            each = norm.gather(corner.max(axis=2))
            return float(stack(self.order, np.sqrt(each) if norm.power == 2 else each, w))
        return float(norm.root(far))

    @property
    def _identity(self) -> tuple[Any, ...]:
        return *super()._identity, self.ground

    def __repr__(self) -> str:
        options = [f"radius={self.radius_text}", f"metric={self.metric!r}"]
        options += [f"order={order_text(self.order)}", f"support={self.support!r}"]
        options += [f"rectangular={self.rectangular!r}"] if self.by_pair else []
        options += [] if self.ground is None else [f"ground={self.ground!r}"]
        options += ["moves='events'"] if self.moves == "events" else []
        return f"Wasserstein({', '.join(options)})"


def _is_number(order: Any) -> bool:
    """Whether it is a number: True is not order 1, and arrays compare element by element."""
    return isinstance(order, int | float | np.number) and not isinstance(order, bool)


def parse_order(text: str) -> float:
    """Read an order as typed on a command line or stored in a file: a number from 1 on, or
    "inf".
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(f"order is a number from 1 on or inf, got {text!r}") from None
