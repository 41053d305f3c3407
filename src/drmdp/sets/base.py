"""What every set of kernels offers: its size in each state, where mass may move, and what is worth
saying of it.

A set belongs to a state. It contains the observed kernels; nature picks N kernels from it, and what
counts is their weighted mean. A class of sets says what is allowed (`drmdp.sets.wasserstein`);
`drmdp.sets.registry` says where it is solved and proved.
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
from drmdp.errors import InputError, described, one_of, shown
from drmdp.model import Model, check_model
from drmdp.model.events import EventModel
from drmdp.model.events.lifted_model import width
from drmdp.model.support import COSTS, check_priced, support_sizes
from drmdp.sets.confinement import SLACK, Leaving
from drmdp.sets.rows import classed, rows_of
from drmdp.ui.text import UNCHANGED

NATURES, RECTANGULAR = ("adversarial", "cooperative"), ("s", "sa")
DOWN = decimal.Context(prec=3, rounding=decimal.ROUND_FLOOR)
SUPPORTS = ("observed", "state", "all")
"""Where mass may move: to what was seen under the same action, under any action of the state, or
anywhere.
"""


class AmbiguitySet(ABC):
    """A set around the N kernels of a model, with a radius in each state. Classes of sets are
    frozen dataclasses.
    """

    radius: Any
    support: str
    rectangular: str = "s"
    """Whether the actions of a state share a budget, "s", or each has its own, "sa"."""
    moves: str = "states"
    """Whether nature moves probabilities of next states, or those of "events", whatever state they
    lead to.
    """
    nature: str = "adversarial"
    """Or "cooperative": what she does with it."""
    sized: bool = True
    """Whether it has a radius."""
    size_name: str = "radius"
    """What its size is called."""
    promise: str = ""
    """What its radii promise, in words, if they were made to."""
    degree: int = 1
    """Degree of the radius in distances from the data; n rows of data are within n^(−degree/2)."""
    free: bool = False
    """Whether nature can move at radius 0."""
    diameter: float = math.inf
    """Distance between two next states that are certain, as the radius is measured; infinite where
    radii do not compare with it.
    """

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
        sources = "events" if events else "next states"
        where = " in the same state, under any action" if self.support == "state" else ""
        return f"only to {sources} that were seen{where}"

    def facing(self, nature: str) -> Self:
        """The same set in the hands of a nature that is "adversarial" or "cooperative"; a set that
        already faces one that helps stays so.
        """
        one_of("nature", nature, NATURES)
        faced = nature in ("adversarial", self.nature)
        return self if faced else self._with(nature=nature)

    def opposed(self) -> Self:
        """The same set in the hands of an adversarial nature, whoever had it."""
        return self._with(nature="adversarial")

    def _with(self, **fields: Any) -> Self:
        """A copy with other fields, which are not checked."""
        other = copy.copy(self)
        other.__dict__.update(fields)
        return other

    @property
    def listing(self) -> str:
        """Key of its layout among those of other sets around the same model."""
        return self.support if self.moves == "states" else f"{self.support} events"

    @property
    def each(self) -> Self:
        """The set of a single action, with a budget for a state."""
        return self._with(rectangular="s")

    def check_sized(self) -> None:
        """Refuse to speak of the radius of a set that has none."""
        if not self.sized:
            raise InputError(f"{self.short} has no radius: the set is what it is")

    def check_size(self) -> None:
        """Refuse what is no radius, rectangularity or support; every constructor calls it."""
        one_of("moves", self.moves, ("states", "events"))
        if self.rectangular is None:
            object.__setattr__(self, "rectangular", "sa" if self.moves == "events" else "s")
        one_of("rectangular", self.rectangular, RECTANGULAR)
        object.__setattr__(self, "radius", checked_radius(self.radius, by_pair=self.by_pair))
        one_of("support", self.support, SUPPORTS)

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Key of the set in the registry."""

    @property
    @abstractmethod
    def short(self) -> str:
        """A few characters that tell it from others."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The set, but for its radius, in the words of the options."""

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """The set in words, by subject, for a report."""

    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Radius from which nature is unconstrained, of one state; rows (A', N, K) and which
        entries may have mass, (A', 1, K). Not asked of sets whose `saturation` needs no rows.
        """
        raise NotImplementedError

    @property
    @abstractmethod
    def by_kernel(self) -> bool:
        """Whether every kernel has a budget of its own, or all share one."""

    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """How far kernels (…, A, N, K) are from the data, to be compared with the radius: (…, N),
        or (…, 1) where a budget is shared. Not asked of mixtures and intervals.

        Convex in y and 0 at the data, so that a tuple outside can be pulled towards the data until
        it is inside.
        """
        raise NotImplementedError

    def about(self, model: Model, pairs: BoolArray) -> Self:
        """The same set, whose words tell the radii of some pairs only, (S, A)."""
        if not np.ndim(self.radius):
            return self
        radii = self.radii(model)
        told = radii[pairs if radii.ndim > 1 else pairs.any(axis=1)]
        return self._with(told=told) if told.size else self

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

        With support "all" nature needs the cost of every transition, with "state" of those to next
        states of the same state. At radius 0 she cannot move: then it is the same with any support,
        and what she would need is not asked for.
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
        """The set for a model that lacks some costs; refuse it if nature can use their moves."""
        if self.support == "all":
            what = "costs of transitions that no kernel has are unknown"
            raise InputError(f"{what}, and with support='all' nature may use them: {COSTS}")
        check_priced(model)
        if isinstance(model, EventModel):  # every action has all next states of its state
            return replace(self, support="observed")  # type: ignore[type-var]
        return self

    def _check_events(self, model: Model) -> None:
        """Refuse a model without laws of events, or events whose costs may be beyond those of the
        model.
        """
        if not isinstance(model, EventModel):
            cure = "drmdp.Model.from_events makes one that has"
            raise InputError(f"moves='events': this model has no laws of events; {cure}")
        dead = np.flatnonzero(~(model.laws[:, model.weights > 0] > 0).any(axis=(0, 1)))
        if self.support == "all" and model.priced and dead.size:
            what = f"event {dead[0]} has probability 0 in every law, and costs"
            raise InputError(f"support='all': {what}: leave it out, or take support='observed'")

    def part(self, lo: int, hi: int) -> Self:
        """The set of the states lo … hi − 1; radii by state stay those of all."""
        return self

    def radii(self, model: Model) -> Array:
        """Radius of each state, (S,), or where every action has a budget of each pair, (S, A)."""
        self._check_radius(model)
        radius: Any = np.asarray(self.radius, dtype=np.float64)
        radius = radius[model.place] if radius.ndim else radius
        if not self.by_pair:
            return np.broadcast_to(radius, (model.n_states,))
        radius = radius[:, None] if radius.ndim == 1 else radius
        return np.broadcast_to(radius, model.available.shape)

    def _check_radius(self, model: Model) -> None:
        """Refuse a model whose shape is not that of the radii."""
        check_model(model)
        shape, sizes = getattr(self.radius, "shape", ()), (model.n_next, model.n_actions)
        if shape != sizes[: len(shape)]:
            kinds = " and ".join(map("{} {}".format, sizes[: len(shape)], ("states", "actions")))
            raise InputError(f"radius has shape {shape}, the model has {kinds}")

    def allowed(self, model: Model, start: int, stop: int) -> BoolArray:
        """Next states that may receive mass, for the states start … stop − 1, (n, A, width); none
        where unavailable.
        """
        available = model.available[start:stop, :, None]
        if self.support == "all":
            shape = (stop - start, model.n_actions, width(model))
            return np.broadcast_to(available, shape).copy()
        listed = model.observed(start, stop)
        return listed.any(axis=1, keepdims=True) & available if self.support == "state" else listed

    def least_radius(self, rows: Leaving) -> Array:
        """Radius from which nature can keep rows inside, one for each group of them, (G,);
        infinite by default, unless nothing leads out.
        """
        out = rows.total(rows.outside) > 0
        if rows.others is not None:
            row_label, label = rows.others
            out = out | (np.bincount(label[label >= 0])[row_label] < label.size)
        return np.where(rows.gathered(out) > 0, np.inf, 0.0)

    def keeps(self, rows: Leaving) -> BoolArray:
        """Whether nature can keep rows inside, (G,); see `drmdp.sets.confinement`."""
        return np.asarray(self.least_radius(rows) <= rows.radius * (1 + SLACK))

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Radius of each state from which nature is unconstrained, (S,); 0 in terminal states.
        `states`: numbers of some, in that order.

        The set of mean kernels is convex, so it is everything as soon as it holds every choice of
        one next state t_a per action: the largest distance of such a choice from the data. With a
        budget for each action, the largest of theirs.
        """
        check_model(model)
        numbers = np.arange(model.n_states) if states is None else np.asarray(states)
        radii = np.zeros(numbers.size)
        for k, s in enumerate(numbers.tolist()):
            if not model.terminal[s]:
                budgets = self._budgets(*self.rows(model, s))
                far = (self.farthest(y, allowed, model.weights) for y, allowed in budgets)
                radii[k] = max(0.0, *far)  # rounding may go below
        return radii

    def rows(self, model: Model, s: int) -> tuple[Array, BoolArray]:
        """Available rows of a state, (A', N, K), and where they may have mass, (A', 1, K)."""
        return rows_of(self, model, s)

    def _budgets(self, *rows: Any) -> Any:
        """Rows (A, …) of each budget: those of single actions, or of all."""
        return zip(*(part[:, None] for part in rows), strict=True) if self.by_pair else [rows]

    def share(self, size: Any, saturation: float) -> Any:
        """A size between that of the mean kernel, 0, and the largest `saturation`, 1."""
        if saturation > 0:
            return size / saturation
        return np.where(np.asarray(size) > 0, np.inf, 0.0)[()]

    def longest(self, saturation: float) -> float:
        """Where a path over its radii ends by default, given the largest `saturation`."""
        if np.isfinite(saturation):
            return saturation
        cure = "give the largest radius, or all of them"
        raise InputError(f"top: {self.short} is never unconstrained: {cure}")

    def spread(self, model: Model, states: Any) -> Array:
        """Distance of the N kernels from their mean in states of these numbers, as the set
        measures it.
        """
        used = model.weights > 0
        w, distances = model.weights[used], []
        for s in np.asarray(states).tolist():
            if isinstance(model, EventModel):
                y = self.rows(model, s)[0][:, used]
            else:
                y = model.blocks.dense(s, s + 1)[0][model.available[s]][:, used]  # (A', N, S)
            mean = np.einsum("i,ait->at", w, y)[:, None, :]
            far = (self.apart(rows, centre, w).max() for rows, centre in self._budgets(y, mean))
            distances.append(max(far))
        return np.array(distances)

    def places(self, model: Model) -> Any:
        """Between how many next states, or events, mass may move, (S, A)."""
        if isinstance(model, EventModel) and self.moves == "events":
            classes, _, live = classed(self, model)
            return np.where(model.available, live.sum(axis=1)[classes], 0)
        if self.support == "observed":
            return model.choices
        sizes = support_sizes(model)[:, None] if self.support == "state" else model.n_next
        return np.where(model.available, sizes, 0)

    def room(self, model: Model) -> BoolArray:
        """In which states nature could move mass at a large radius, (S,): where some action has two
        allowed next states.
        """
        key = "room", self.support, self.moves
        if key not in model.cache:
            model.cache[key] = (self.places(model) > 1).any(axis=1)
        return np.asarray(model.cache[key])

    def notes(self, model: Model) -> tuple[str, ...]:
        """Notes of a model, but for what nature can change with this set, and of the set."""
        known = model.notes
        if self.support != "observed" or self.moves == "events":
            known = tuple(note.replace(UNCHANGED, "") for note in known)
        promised = (self.promise,) if self.promise else ()
        return (*known, *promised, *self.remarks(model))

    def remarks(self, model: Model) -> tuple[str, ...]:
        """A remark that the set has no room around this model, if so."""
        positive: Any = np.asarray(self.radius > 0)
        if positive.ndim:
            positive = self.radii(model).reshape(model.n_states, -1).max(axis=1) > 0
        if not positive.any() or (positive & self.room(model)).any():
            return ()
        whose = "action was" if self.support == "observed" else "state was, under all actions,"
        why = f"each {whose} seen to lead to one next state only, and with support={self.support!r}"
        why += " nature has no other"
        if self.moves == "events" or self.support == "all":
            why = "there is no other " + ("event" if self.moves == "events" else "state to go to")
        return (f"the set has no room: {why}, so any radius is the same as 0",)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.key, self.short, self.support, self.rectangular, self.moves

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AmbiguitySet):
            return NotImplemented
        return self._identity == other._identity and np.array_equal(self.radius, other.radius)

    def __hash__(self) -> int:
        return hash((self._identity, np.asarray(self.radius).tobytes()))

    def named(self, short: str) -> str:
        """A short name, "sa" where every action has a budget of its own, and "events" where nature
        moves those.
        """
        alone = f"{short} sa" if self.rectangular == "sa" else short
        return f"{alone} events" if self.moves == "events" else alone

    @property
    def moved_words(self) -> dict[str, str]:
        """What nature moves, for a report, where it is not next states."""
        law = {"moves": "the law of the events, whatever state they lead to"}
        return law if self.moves == "events" else {}

    @property
    def budget_words(self) -> str:
        """Whose budget the radius is, in words."""
        alone = self.rectangular == "sa"
        return "one for each state and action" if alone else "one for all actions of a state"

    def centred(self, nominal: Array, weights: Array) -> tuple[Array, Array]:
        """Centre of the set, as rows (…, N, K) with weights (N,); the kernels of the data."""
        return nominal, weights

    @property
    def size_words(self) -> str:
        """How large it is, in words; nothing where it has no size."""
        return f"{self.size_name} {self.span_text or self.radius_text}"

    @property
    def certain(self) -> bool:
        """Whether nature has nothing to choose, so that no doubt about the data is considered."""
        return self.sized and not self.free and not np.any(self.radius)

    def covered(self, n: int) -> str:
        """Subject and verb of a sentence on its worst case, around n kernels: "probabilities within
        0.02 of that mean make".
        """
        centre = {0: "the data", 1: "these"}.get(n, "that mean")
        return f"probabilities within {self.range_text} of {centre} make"

    @property
    def meaning(self) -> str:
        """What that allows, for readers who know no metrics."""
        return "; ".join(filter(None, (self.size_meaning, f"probability moves {self.reach}")))

    @property
    def size_meaning(self) -> str:
        """What the radius allows; nothing where it is not one number, or tells them nothing."""
        return ""

    @property
    def range_text(self) -> str:
        """The radius, or from where to where it goes, in three digits and never more than it is:
        what is said of all kernels within it is true.
        """
        r = self.told
        ends = (DOWN.create_decimal(repr(float(end))) for end in (r.min(), r.max()))
        low, high = (f"{float(end):g}" for end in ends)
        return low if np.ptp(r) == 0 else f"{low} to {high}, {self.each_words},"

    @cached_property
    def told(self) -> Array:
        """The radii that words tell."""
        return np.asarray(self.radius, dtype=float)

    @property
    def each_words(self) -> str:
        """What radii differ by."""
        return "by state and action" if np.ndim(self.radius) > 1 else "state by state"

    @property
    def span_text(self) -> str:
        """From where to where the radii go; nothing of one number."""
        r, ends = self.told, np.ptp(self.told) > 0
        return f"{r.min():.4g} to {r.max():.4g}, {self.each_words}" if ends else ""

    @property
    def radius_text(self) -> str:
        """The radius, or their range."""
        r = self.radius
        if isinstance(r, float) or np.ndim(r) == 0:
            return f"{r:g}"
        return f"<{r.size} values in [{r.min():g}, {r.max():g}]>"


def moved(share: float, moves: str) -> str:
    """That a share of the mass moves, in words."""
    what = "events" if moves == "events" else "transitions of a state and action"
    return f"up to {100 * share:.3g} in 100 {what} go elsewhere" if 0 < share < 1 else ""


def checked_radius(value: Any, name: str = "radius", by_pair: bool = False) -> Any:
    """A radius as a float or a read-only array (S,) or, for each pair, (S, A), or an error that
    says what it is instead.
    """
    if type(value) is float and 0.0 <= value < np.inf:
        return value + 0.0  # never −0.0
    expected = "a number or shape (S,)" + (" or (S, A)" if by_pair else "")
    if isinstance(value, str):
        raise InputError(f"{name}: expected {expected}, and before the metric, got {shown(value)}")
    radius = numbers(name, value)
    if radius.ndim > (2 if by_pair else 1) or radius.size == 0:
        raise InputError(f"{name}: expected {expected}, got shape {radius.shape}")
    bad = ~np.isfinite(radius) | (radius < 0)
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        where = "".join(map("{} {}".format, (" at state", ", action"), place))
        number = float(radius[place])
        raise InputError(f"{name} must be finite and not negative, got {number!r}{where}")
    radius.setflags(write=False)
    return float(radius) if radius.ndim == 0 else radius


def check_problem(model: Any, ambiguity: Any) -> None:
    """Refuse what is not a model and a set, with what was probably meant."""
    if isinstance(ambiguity, Model) and isinstance(model, AmbiguitySet):
        rule = "the model comes first, and these are the other way round"
        raise InputError(f"model, ambiguity: {rule}")
    check_model(model)
    check_set(ambiguity)


def check_set(ambiguity: Any) -> None:
    """Refuse what is not a set."""
    if not isinstance(ambiguity, AmbiguitySet):
        number = isinstance(ambiguity, int | float | np.number) and not isinstance(ambiguity, bool)
        cure = f": write drmdp.Wasserstein({ambiguity!r})" if number else ""
        expected = "expected a set such as drmdp.Wasserstein"
        raise InputError(f"ambiguity: {expected}, got {described(ambiguity)}{cure}")
