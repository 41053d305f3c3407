"""What is feared: a Wasserstein ball around the observed kernels, one per state.

The ball of state s is the set of N-tuples y = (y_1, …, y_N) of kernels, y_i = (y_ia)_a with y_ia a distribution on
the allowed next states of (s, a), such that

    Σ_i w_i d(y_i, ŷ_i)^p ≤ θ_s^p     (order p = 1 or 2),        d(y_i, ŷ_i) ≤ θ_s for all i with w_i > 0  (p = ∞),

where d is the ℓ1, ℓ2 or ℓ∞ norm of the difference, *stacked over the available actions* of s. What nature plays is the
mean Σ_i w_i y_i. This is a ball over distributions of kernels; it is not the ball over next-state distributions with
a metric between states that is also called Wasserstein elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.checks import numbers
from drmdp.errors import InputError, described, shown
from drmdp.model import Model, check_model

Pair = tuple[str, float]

PAIRS: tuple[Pair, ...] = (
    ("l1", 1), ("l2", 2), ("linf", 1), ("l1", math.inf), ("l2", math.inf), ("linf", math.inf),
)  # fmt: skip
"""The implemented (metric, order) pairs: the six of the paper."""
OWN_ORDER = {"l1": 1, "l2": 2, "linf": math.inf}
"""Order of a metric unless another one is asked for."""


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """A Wasserstein ball around the N kernels of a model.

    Parameters
    ----------
    radius : float or (S,) array
        How far nature may go, at every state or state by state; see `saturation` for what is large.
    metric : "l1", "l2" or "linf"
    order : 1, 2 or math.inf, optional
        The metric's own by default: 1 for "l1", 2 for "l2", infinity for "linf".
    support : "observed" or "all"
        Whether mass may move only to next states that some kernel with positive weight reaches from the same state and
        action, or to any state, as in the paper.

    Examples
    --------
    >>> import drmdp
    >>> drmdp.Wasserstein(0.5, metric="l1")
    Wasserstein(radius=0.5, metric='l1', order=1, support='observed')
    """

    radius: Any
    metric: Literal["l1", "l2", "linf"] = "l2"
    order: float = cast(float, None)
    support: Literal["observed", "all"] = "observed"

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            raise InputError(
                f"radius: expected a number or shape (S,), and before the metric, got {shown(self.radius)}"
            )
        radius = numbers("radius", self.radius)
        if radius.ndim > 1 or radius.size == 0:
            raise InputError(f"radius: expected a number or shape (S,), got shape {radius.shape}")
        bad = ~np.isfinite(radius) | (radius < 0)
        if bad.any():
            where = f" at state {int(np.argmax(bad))}" if radius.ndim else ""
            value = float(radius.ravel()[int(np.argmax(bad))])
            raise InputError(f"radius must be finite and not negative, got {value!r}{where}")
        radius.setflags(write=False)
        object.__setattr__(self, "radius", float(radius) if radius.ndim == 0 else radius)
        if self.order is None and isinstance(self.metric, str) and self.metric in OWN_ORDER:
            object.__setattr__(self, "order", OWN_ORDER[self.metric])
        # By string and number only: True is not order 1, and arrays compare element by element.
        number = isinstance(self.order, int | float | np.number) and self.order is not True
        plain = isinstance(self.metric, str) and number
        own = next((pair for pair in PAIRS if plain and pair == self.pair), None)
        if own is None:
            known = ", ".join(f"({metric!r}, {_order(order)})" for metric, order in PAIRS)
            asked = f"({shown(self.metric)}, {shown(self.order)})"
            if self.order is None:
                raise InputError(f"metric is {', '.join(map(repr, OWN_ORDER))}, got {shown(self.metric)}")
            raise InputError(f"{asked} is not implemented; (metric, order) is one of {known}")
        object.__setattr__(self, "metric", own[0])
        object.__setattr__(self, "order", own[1])
        if not isinstance(self.support, str) or self.support not in ("all", "observed"):
            raise InputError(f"support is 'observed' or 'all', got {shown(self.support)}")

    @property
    def pair(self) -> Pair:
        """(metric, order)."""
        return self.metric, self.order

    def with_radius(self, radius: Any) -> Wasserstein:
        """The same ball with another radius."""
        return replace(self, radius=radius)

    def fitted(self, model: Model) -> Wasserstein:
        """The ball that operators of this model take, after checking that the two fit together.

        With support "all" nature needs the cost of every transition. At radius 0 she cannot move: then the ball is the
        same set with either support, and what she would need is not asked for.
        """
        self.radii(model)
        if self.support == "observed" or not model.costs_missing:
            return self
        if np.any(self.radius):
            raise InputError(
                "costs of transitions that no kernel has are unknown, and with support='all' nature may use them: "
                "give every cost as an (S, A, S) array, or take support='observed'"
            )
        return replace(self, support="observed")

    def radii(self, model: Model) -> Array:
        """Radius of each state, (S,)."""
        check_model(model)
        if np.ndim(self.radius) and np.shape(self.radius) != (model.n_states,):
            raise InputError(f"radius has shape {np.shape(self.radius)}, the model has {model.n_states} states")
        return np.broadcast_to(np.asarray(self.radius, dtype=np.float64), (model.n_states,))

    def allowed(self, model: Model, start: int, stop: int) -> BoolArray:
        """Next states that may receive mass, for the states start … stop − 1, (n, A, S); none where unavailable."""
        if self.support == "observed":
            return model.observed(start, stop)
        shape = (stop - start, model.n_actions, model.n_states)
        return np.broadcast_to(model.available[start:stop, :, None], shape).copy()

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Radius of each state from which nature is unconstrained, (S,); 0 in terminal states. `states`: numbers of some, in that order.

        The set of mean kernels is convex, so it is everything as soon as it holds every choice of one next state t_a
        per action: the largest distance of such a choice from the data. For ("linf", 1) the next states are chosen
        kernel by kernel, which is the same whenever each row has a next state of probability 0 in all kernels and
        otherwise errs on the large side.
        """
        check_model(model)
        w = model.weights
        asked = np.arange(model.n_states) if states is None else np.asarray(states)
        out = np.zeros(asked.size)
        for k, s in enumerate(asked.tolist()):
            if not model.terminal[s]:
                out[k] = self._farthest(*self._rows(model, s), w)
        return out

    def spread(self, model: Model, states: Any) -> Array:
        """Distance of the N kernels from their mean in each of some states (numbers), measured as the ball does."""
        used = model.weights > 0
        w, found = model.weights[used], []
        for s in np.asarray(states).tolist():
            y = model.blocks.dense(s, s + 1)[0][model.available[s]][:, used]  # (A', N, S)
            off = np.abs(y - np.einsum("i,ait->at", w, y)[:, None, :])
            norm = {"l1": off.sum(axis=(0, 2)), "l2": np.sqrt((off**2).sum(axis=(0, 2))), "linf": off.max(axis=(0, 2))}
            own = norm[self.metric]
            found.append(own.max() if self.order == math.inf else (w @ own**self.order) ** (1 / self.order))
        return np.array(found)

    def room(self, model: Model) -> BoolArray:
        """In which states nature could move mass at a large radius, (S,): where some action has two allowed next states."""
        if self.support == "all":
            return np.asarray(model.available.any(axis=1) & (model.n_states > 1))
        pairs = np.repeat(np.arange(model.available.size), model.blocks.lengths)
        allowed = np.bincount(pairs[model.mean > 0], minlength=model.available.size)
        return np.asarray((allowed > 1).reshape(model.available.shape).any(axis=1))

    def remarks(self, model: Model) -> tuple[str, ...]:
        """What there is to say of this ball around this model: that it has no room, if so."""
        positive = self.radii(model) > 0
        if not positive.any() or (positive & self.room(model)).any():
            return ()
        if self.support == "all":
            return ("the ball has no room: there is no other state to go to, so any radius is the same as 0",)
        return (
            "the ball has no room: each action was seen to lead to one next state only, and with support='observed' nature has "
            "no other, so any radius is the same as 0",
        )

    def _rows(self, model: Model, s: int) -> tuple[Array, BoolArray]:
        """Available rows of state s on the next states some row lists and one that none does, (A', N, K), and which are allowed."""
        blocks, A, N = model.blocks, model.n_actions, model.n_kernels
        own = np.flatnonzero(model.available[s])
        listed = [blocks.indices[blocks.indptr[k] : blocks.indptr[k + 1]] for k in (s * A + own).tolist()]
        columns = np.unique(np.concatenate(listed))
        other = self.support == "all" and columns.size < model.n_states
        y = np.zeros((own.size, N, columns.size + other))
        for row, k, states in zip(y, (s * A + own).tolist(), listed, strict=True):
            block = blocks.data[N * blocks.indptr[k] : N * blocks.indptr[k + 1]]
            row[:, np.searchsorted(columns, states)] = block.reshape(N, -1)
        if blocks.data.dtype != np.float64:
            y /= y.sum(axis=2, keepdims=True)
        if self.support == "all":
            return y, np.ones((own.size, 1, y.shape[2]), dtype=bool)
        return y, np.asarray((y[:, model.weights > 0] > 0).any(axis=1, keepdims=True))

    def _farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        used = w > 0
        y, w = y[:, used], w[used]
        if self.metric == "l2":
            others = np.maximum((y * y).sum(axis=2, keepdims=True) - y * y, 0)  # apart, or rounding makes it negative
            distance = np.where(allowed, (1 - y) ** 2 + others, 0)  # squared
            if self.order == 2:
                return math.sqrt((w @ distance).max(axis=1).sum())
            return math.sqrt(distance.max(axis=2).sum(axis=0).max())
        distance = np.where(allowed, np.maximum(1 - y, 0), 0)  # of linf; half of that of l1
        if self.pair == ("l1", 1):
            return float(2 * (w @ distance).max(axis=1).sum())
        far = distance.max(axis=2)  # (A, N)
        if self.pair == ("l1", math.inf):
            return float(2 * far.sum(axis=0).max())
        by_kernel = far.max(axis=0)
        return float(w @ by_kernel if self.order == 1 else by_kernel.max())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wasserstein):
            return NotImplemented
        same = self.pair == other.pair and self.support == other.support
        return same and np.array_equal(self.radius, other.radius)

    def __hash__(self) -> int:
        return hash((self.pair, self.support, np.asarray(self.radius).tobytes()))

    def __repr__(self) -> str:
        r = self.radius
        radius = f"{r:g}" if np.ndim(r) == 0 else f"<{r.size} values in [{r.min():g}, {r.max():g}]>"
        where = f"metric={self.metric!r}, order={_order(self.order)}, support={self.support!r}"
        return f"Wasserstein(radius={radius}, {where})"


def check_problem(model: Any, ball: Any) -> None:
    """Refuse what is not a model and a ball, with what was probably meant."""
    if isinstance(model, Wasserstein) and isinstance(ball, Model):
        raise InputError("model, ball: the model comes first, and these are the other way round")
    check_model(model)
    if not isinstance(ball, Wasserstein):
        number = isinstance(ball, int | float | np.number) and not isinstance(ball, bool)
        cure = f": write drmdp.Wasserstein({ball!r})" if number else ""
        raise InputError(f"ball: expected a drmdp.Wasserstein, got {described(ball)}{cure}")


def _order(order: float) -> str:
    return "inf" if order == math.inf else f"{order:g}"


def parse_order(text: str) -> float:
    """Read an order as typed on a command line or stored in a file: "1", "2" or "inf"."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"order is 1, 2 or inf, got {text!r}") from None
