"""What every set of kernels offers: its size in each state, where mass may move, and what is worth saying of it.

A set belongs to a state. It contains the observed kernels; nature picks N kernels from it, and what counts is their weighted mean.
A class of sets says what is allowed (`drmdp.sets.wasserstein`); `drmdp.sets.registry` says where it is solved and proved.
"""

from __future__ import annotations

import copy
import decimal
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.cached import cached_property
from drmdp.core.validation import numbers
from drmdp.errors import InputError, described, shown
from drmdp.model import Model, check_model
from drmdp.model.events import EventModel
from drmdp.model.lifted import width
from drmdp.model.reach import COSTS, check_priced, reached
from drmdp.sets.keeping import SLACK, Leaving
from drmdp.sets.rows import classed, rows_of

NATURES = ("adversarial", "cooperative")
DOWN = decimal.Context(prec=3, rounding=decimal.ROUND_FLOOR)
SUPPORTS = ("observed", "state", "all")
"""Where mass may move: to what was seen under the same action, under any action of the state, or anywhere."""


class AmbiguitySet(ABC):
    """A set around the N kernels of a model, with a radius in each state. Classes of sets are frozen dataclasses."""

    radius: Any
    support: str
    rectangular: str = "s"
    """Whether the actions of a state share a budget, "s", or each has its own, "sa"."""
    moves: str = "states"
    """Whether nature moves probabilities of next states, or those of "events", whatever state they lead to."""
    nature: str = "adversarial"
    """Or "cooperative": what she does with it."""
    sized: bool = True
    """Whether it has a radius."""
    degree: int = 1
    """Degree of the radius in distances from the data; n rows of data are within n^(−degree/2)."""
    free: bool = False
    """Whether nature can move at radius 0."""
    diameter: float = math.inf
    """Distance between two next states that are certain, as the radius is measured; infinite where radii do not compare with it."""

    @property
    def by_pair(self) -> bool:
        """Whether it is solved and proved action by action, each with a budget of its own."""
        return self.rectangular == "sa"

    @property
    def reach(self) -> str:
        """Where mass may move, in words."""
        events = self.moves == "events"
        if self.support == "all":
            return "to any event" if events else "to any state"
        where = " in the same state, under any action" if self.support == "state" else ""
        return f"only to {'events that some law' if events else 'next states that some kernel'} has seen{where}"

    def facing(self, nature: str) -> Self:
        """The same set in the hands of a nature that is "adversarial" or "cooperative"; a set that already faces one that helps stays so."""
        if not isinstance(nature, str) or nature not in NATURES:
            raise InputError(f"nature is {' or '.join(map(repr, NATURES))}, got {shown(nature)}")
        if nature == "adversarial" or self.nature == nature:
            return self
        other = copy.copy(self)
        object.__setattr__(other, "nature", nature)
        return other

    def opposed(self) -> Self:
        """The same set in the hands of an adversarial nature, whoever had it."""
        other = copy.copy(self)
        object.__setattr__(other, "nature", "adversarial")
        return other

    @property
    def listing(self) -> str:
        """What tells its layout from that of other sets around the same model."""
        return self.support if self.moves == "states" else f"{self.support} events"

    @cached_property
    def kin(self) -> tuple[Any, ...]:
        """What it shares with sets that differ from it in their size alone: whatever is kept for all of these goes by it."""
        return self.key, self.by_pair, self.listing

    @property
    def each(self) -> Self:
        """The set with one budget for each state that every action has on its own, without its radius."""
        return replace(self, rectangular="s", radius=0.0)  # type: ignore[type-var]

    def check_sized(self) -> None:
        """Refuse to speak of the radius of a set that has none."""
        if not self.sized:
            raise InputError(f"{self.short} has no radius: the set is what it is")

    def check_size(self) -> None:
        """Refuse a radius, a rectangularity or a support that is none; called by every class when it is made."""
        if not isinstance(self.moves, str) or self.moves not in ("states", "events"):
            raise InputError(f"moves is 'states' or 'events', got {shown(self.moves)}")
        if self.rectangular is None:
            object.__setattr__(self, "rectangular", "sa" if self.moves == "events" else "s")
        if not isinstance(self.rectangular, str) or self.rectangular not in ("s", "sa"):
            raise InputError(f"rectangular is 's' or 'sa', got {shown(self.rectangular)}")
        object.__setattr__(self, "radius", checked_radius(self.radius, by_pair=self.by_pair))
        if not isinstance(self.support, str) or self.support not in SUPPORTS:
            raise InputError(f"support is 'observed', 'state' or 'all', got {shown(self.support)}")

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """What the registry knows the set by."""

    @property
    @abstractmethod
    def short(self) -> str:
        """A few characters that tell it from others."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is, but for its radius, in the words of the options."""

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """What it is, by subject, for a report."""

    @abstractmethod
    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Radius from which nature is unconstrained, of one state; rows (A', N, K) and which entries may have mass, (A', 1, K)."""

    @property
    @abstractmethod
    def by_kernel(self) -> bool:
        """Whether every kernel has a budget of its own, or all share one."""

    @property
    def priced_by_kernel(self) -> bool:
        """Whether a proof needs a price for every kernel, or one for all."""
        return self.by_kernel

    @abstractmethod
    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """How far kernels (…, A, N, K) are from the data, to be compared with the radius: (…, N), or (…, 1) where a budget is shared.

        Convex in y and 0 at the data, so that a tuple outside can be pulled towards the data until it is inside.
        """

    def with_radius(self, radius: Any) -> Self:
        """The same set with another radius.

        Parameters
        ----------
        radius : number or (S,)
            Its size; with budgets for each action also (S, A).
        """
        return replace(self, radius=radius)  # type: ignore[type-var]

    def fitted(self, model: Model) -> Self:
        """The set that operators of this model take, after checking that the two fit together.

        With support "all" nature needs the cost of every transition, with "state" of those to next states of the same state. At radius 0 she
        cannot move: then it is the same with any support, and what she would need is not asked for.
        """
        self._check_radius(model)
        if self.moves == "events":
            self._check_events(model)
            return self
        if self.support == "observed" or not model.costs_missing:
            return self
        if not (np.any(self.radius) or self.free):
            return replace(self, support="observed")  # type: ignore[type-var]
        return self.priced(model)

    def priced(self, model: Model) -> Self:
        """The set for a model some of whose transitions have no cost, if nature cannot use these."""
        if self.support == "all":
            raise InputError(
                f"costs of transitions that no kernel has are unknown, and with support='all' nature may use them: {COSTS}"
            )
        check_priced(model)
        if isinstance(model, EventModel):  # every action has all next states of its state
            return replace(self, support="observed")  # type: ignore[type-var]
        return self

    def _check_events(self, model: Model) -> None:
        """Refuse a model without laws of events, or events whose costs may be beyond those of the model."""
        if not isinstance(model, EventModel):
            raise InputError(
                "moves='events': this model has no laws of events; drmdp.Model.from_events makes one that has"
            )
        dead = np.flatnonzero(~(model.laws[:, model.weights > 0] > 0).any(axis=(0, 1)))
        if self.support == "all" and model.priced and dead.size:
            raise InputError(
                f"support='all': event {dead[0]} has probability 0 in every law, and costs: leave it out, or take support='observed'"
            )

    def part(self, lo: int, hi: int) -> Self:
        """The set of a part of the model, its states lo … hi − 1; a radius for each state is that of all."""
        return self

    def radii(self, model: Model) -> Array:
        """Radius of each state, (S,), or where every action has a budget of each pair, (S, A)."""
        self._check_radius(model)
        A = model.n_actions
        radius: Any = np.asarray(self.radius, dtype=np.float64)
        if radius.ndim:
            radius = radius[model.own]
        if not self.by_pair:
            return np.broadcast_to(radius, (model.n_states,))
        return np.broadcast_to(radius[:, None] if radius.ndim == 1 else radius, (model.n_states, A))

    def _check_radius(self, model: Model) -> None:
        """Refuse a model whose shape is not that of the radii."""
        check_model(model)
        shape, S, A = getattr(self.radius, "shape", ()), model.n_next, model.n_actions
        if len(shape) == 2 and shape != (S, A):
            raise InputError(f"radius has shape {shape}, the model has {S} states and {A} actions")
        if len(shape) == 1 and shape != (S,):
            raise InputError(f"radius has shape {shape}, the model has {S} states")

    def allowed(self, model: Model, start: int, stop: int) -> BoolArray:
        """Next states that may receive mass, for the states start … stop − 1, (n, A, width); none where unavailable."""
        if self.support != "all":
            seen = model.observed(start, stop)
            together = self.support == "state"
            return seen.any(axis=1, keepdims=True) & model.available[start:stop, :, None] if together else seen
        shape = (stop - start, model.n_actions, width(model))
        return np.broadcast_to(model.available[start:stop, :, None], shape).copy()

    def least_radius(self, rows: Leaving) -> Array:
        """Radius from which nature can keep rows inside, one for each group of them, (G,); where nothing else is known, never unless nothing leads out."""
        out = rows.total(rows.outside) > 0
        if rows.others is not None:
            own, label = rows.others
            out = out | (np.bincount(label[label >= 0])[own] < label.size)
        return np.where(rows.gathered(out) > 0, np.inf, 0.0)

    def keeps(self, rows: Leaving) -> BoolArray:
        """Whether she can with what she has, (G,); see `drmdp.sets.keeping`."""
        return np.asarray(self.least_radius(rows) <= rows.radius * (1 + SLACK))

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Radius of each state from which nature is unconstrained, (S,); 0 in terminal states. `states`: numbers of some, in that order.

        The set of mean kernels is convex, so it is everything as soon as it holds every choice of one next state t_a
        per action: the largest distance of such a choice from the data. With a budget for each action, the largest of theirs.
        """
        check_model(model)
        w = model.weights
        asked = np.arange(model.n_states) if states is None else np.asarray(states)
        out = np.zeros(asked.size)
        for k, s in enumerate(asked.tolist()):
            if not model.terminal[s]:
                y, allowed = rows_of(self, model, s)
                parts = (
                    zip(y[:, None], allowed[:, None], strict=True) if self.by_pair else zip([y], [allowed], strict=True)
                )
                out[k] = max(0.0, *(self.farthest(rows, places, w) for rows, places in parts))  # rounding may go below
        return out

    def longest(self, saturation: float) -> float:
        """Where a path over its radii ends unless somebody says otherwise; `saturation` is the largest."""
        if np.isfinite(saturation):
            return saturation
        raise InputError(f"top: {self.short} is never unconstrained: give the largest radius, or all of them")

    def spread(self, model: Model, states: Any) -> Array:
        """Distance of the N kernels from their mean in each of some states (numbers), measured as the ball does."""
        used = model.weights > 0
        w, found = model.weights[used], []
        for s in np.asarray(states).tolist():
            if isinstance(model, EventModel):
                y = rows_of(self, model, s)[0][:, used]
            else:
                y = model.blocks.dense(s, s + 1)[0][model.available[s]][:, used]  # (A', N, S)
            mean = np.einsum("i,ait->at", w, y)[:, None, :]
            parts = zip(y[:, None], mean[:, None], strict=True) if self.by_pair else zip([y], [mean], strict=True)
            found.append(max(self.apart(rows, centre, w).max() for rows, centre in parts))
        return np.array(found)

    def places(self, model: Model) -> Any:
        """Between how many next states, or events, mass may move, (S, A)."""
        if isinstance(model, EventModel) and self.moves == "events":
            classes, _, live = classed(self, model)
            return live.sum(axis=1)[classes]
        if self.support == "state":
            return np.where(model.available, reached(model)[:, None], 0)
        if isinstance(model, EventModel) and self.support == "observed":
            return model.choices
        return np.stack([self.allowed(model, s, s + 1)[0].sum(axis=1) for s in range(model.n_states)])

    def room(self, model: Model) -> BoolArray:
        """In which states nature could move mass at a large radius, (S,): where some action has two allowed next states."""
        if isinstance(model, EventModel) and self.moves == "events":
            return np.asarray((model.available & (self.places(model) > 1)).any(axis=1))
        if self.support == "all":
            return np.asarray(model.available.any(axis=1) & (model.n_states > 1))
        if self.support == "state":
            return np.asarray(reached(model) > 1)
        if "room" not in model.kept:
            model.kept["room"] = np.asarray((model.choices > 1).any(axis=1))
        found: BoolArray = model.kept["room"]
        return found

    def remarks(self, model: Model) -> tuple[str, ...]:
        """What there is to say of this set around this model: that it has no room, if so."""
        if isinstance(self.radius, float):
            key = "some room", self.support, self.moves
            if key not in model.kept:
                model.kept[key] = bool(self.room(model).any())
            lacking = self.radius > 0 and not model.kept[key]
        else:
            positive = self.radii(model).reshape(model.n_states, -1).max(axis=1) > 0
            lacking = bool(positive.any()) and not (positive & self.room(model)).any()
        if not lacking:
            return ()
        if self.moves == "events":
            return ("the ball has no room: there is no other event, so any radius is the same as 0",)
        if self.support == "all":
            return ("the ball has no room: there is no other state to go to, so any radius is the same as 0",)
        whose = "action was" if self.support == "observed" else "state was, under all actions,"
        return (
            f"the ball has no room: each {whose} seen to lead to one next state only, and with support={self.support!r} nature has "
            "no other, so any radius is the same as 0",
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AmbiguitySet):
            return NotImplemented
        same = (self.key, self.short, self.support, self.rectangular, self.moves) == (
            other.key, other.short, other.support, other.rectangular, other.moves,
        )  # fmt: skip
        return same and np.array_equal(self.radius, other.radius)

    def __hash__(self) -> int:
        return hash((self.key, self.support, self.rectangular, self.moves, np.asarray(self.radius).tobytes()))

    def named(self, short: str) -> str:
        """A short name, "sa" where every action has a budget of its own, and "events" where nature moves those."""
        alone = f"{short} sa" if self.rectangular == "sa" else short
        return f"{alone} events" if self.moves == "events" else alone

    @property
    def moved_words(self) -> dict[str, str]:
        """What nature moves, for a report, where it is not next states."""
        return {"moves": "the law of the events, whatever state they lead to"} if self.moves == "events" else {}

    @property
    def budget_words(self) -> str:
        """Whose budget the radius is, in words."""
        return "one for each state and action" if self.rectangular == "sa" else "one for all actions of a state"

    def centred(self, nominal: Array, weights: Array) -> tuple[Array, Array]:
        """What it is around, as rows (…, N, K) with weights (N,); the kernels of the data."""
        return nominal, weights

    @property
    def size_words(self) -> str:
        """How large it is, in words; nothing where it has no size."""
        return f"radius {self.radius_text}"

    @property
    def certain(self) -> bool:
        """Whether nature has nothing to choose, so that no doubt about the data is considered."""
        return self.sized and not self.free and not np.any(self.radius)

    def covered(self, n: int) -> str:
        """What a worst case is over, around n kernels and with a verb for what follows: "probabilities within 0.02 of that mean make"."""
        centre = {0: "the data", 1: "that kernel"}.get(n, "that mean")
        return f"probabilities within {self.range_text} of {centre} make"

    @property
    def meaning(self) -> str:
        """What that allows, for readers who know no metrics."""
        return "; ".join(filter(None, (self.size_meaning, f"mass moves {self.reach}")))

    @property
    def size_meaning(self) -> str:
        """What the radius allows; nothing where it is not one number, or tells them nothing."""
        return ""

    @property
    def range_text(self) -> str:
        """The radius, or from where to where it goes, in three digits and never more than it is: what is said of all kernels within it is true."""
        r = np.asarray(self.radius, dtype=float)
        low, high = (f"{float(DOWN.create_decimal(repr(float(end)))):g}" for end in (r.min(), r.max()))
        return low if np.ptp(r) == 0 else f"{low} to {high}, state by state,"

    @property
    def radius_text(self) -> str:
        """The radius, or their range."""
        r = self.radius
        return (
            f"{r:g}" if isinstance(r, float) or np.ndim(r) == 0 else f"<{r.size} values in [{r.min():g}, {r.max():g}]>"
        )


def moved(share: float, moves: str) -> str:
    """That a share of the mass moves, in words."""
    what = "events" if moves == "events" else "transitions of a state and action"
    return f"up to {100 * share:.3g} in 100 {what} go elsewhere" if 0 < share < 1 else ""


def checked_radius(given: Any, name: str = "radius", by_pair: bool = False) -> Any:
    """A radius as a float or a read-only array (S,) or, for each pair, (S, A), or an error that says what it is instead."""
    if type(given) is float and 0.0 <= given < np.inf:
        return given + 0.0  # never −0.0
    expected = "a number or shape (S,)" + (" or (S, A)" if by_pair else "")
    if isinstance(given, str):
        raise InputError(f"{name}: expected {expected}, and before the metric, got {shown(given)}")
    radius = numbers(name, given)
    if radius.ndim > (2 if by_pair else 1) or radius.size == 0:
        raise InputError(f"{name}: expected {expected}, got shape {radius.shape}")
    bad = ~np.isfinite(radius) | (radius < 0)
    if bad.any():
        place = np.argwhere(bad)[0].tolist() if radius.ndim else []
        where = "".join(
            f" at {what} {k}" if what == "state" else f", {what} {k}"
            for what, k in zip(("state", "action"), place, strict=False)
        )
        value = float(radius.ravel()[int(np.argmax(bad))])
        raise InputError(f"{name} must be finite and not negative, got {value!r}{where}")
    radius.setflags(write=False)
    return float(radius) if radius.ndim == 0 else radius


def check_problem(model: Any, ball: Any) -> None:
    """Refuse what is not a model and a ball, with what was probably meant."""
    if isinstance(ball, Model) and isinstance(model, AmbiguitySet):
        raise InputError("model, ball: the model comes first, and these are the other way round")
    check_model(model)
    check_set(ball)


def check_set(ball: Any) -> None:
    """Refuse what is not a set."""
    if not isinstance(ball, AmbiguitySet):
        number = isinstance(ball, int | float | np.number) and not isinstance(ball, bool)
        cure = f": write drmdp.Wasserstein({ball!r})" if number else ""
        raise InputError(f"ball: expected a set such as drmdp.Wasserstein, got {described(ball)}{cure}")
