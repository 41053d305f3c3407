"""An interval for each probability: what is feared is any kernel between two bounds.

    lower(s, a, t) ≤ y(t | s, a) ≤ upper(s, a, t),        Σ_t y(t | s, a) = 1,        for every available pair (s, a) on its own.

There is no budget that actions could share, so "s" and "sa" are the same and optimal policies are deterministic. The kernels of the model are what a
nominal value is taken from; they need not lie inside. With `Intervals.of` the bounds are the smallest and the largest probability that some kernel of
positive weight has, on the next states that one of them has seen, widened by a margin and cut off at 0 and 1.

Three sets of the literature are intervals, with ȳ the mean kernel: what counts justify (`from_counts`, by
`drmdp.sets.concentration`), contamination, (1−ε)ȳ ≤ y ≤ (1−ε)ȳ + ε, and nested (mean-)CVaR at level α with weight κ,
(1−κ)ȳ ≤ y ≤ (1−κ+κ/α)ȳ: of a CVaR nature plays {q ≤ ȳ/α}.

Σ lower ≤ 1 ≤ Σ upper is checked up to `ROW_SUM_TOL`; a row that misses it by less stands for its bounds divided by their sum.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.counts import counts_of
from drmdp.core.distributions import Labels
from drmdp.core.storage import ROW_SUM_TOL, Kernels, compress_dense, compress_sparse
from drmdp.core.validation import check_sparse, number, numbers
from drmdp.errors import InputError, shown
from drmdp.model import Model, check_model
from drmdp.sets.base import SUPPORTS, AmbiguitySet, checked_radius
from drmdp.sets.concentration import Draws, box
from drmdp.sets.confidence import check_counted, check_whole, checked_level
from drmdp.sets.keeping import SLACK, Leaving


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(AmbiguitySet):
    """All kernels whose probabilities lie between two bounds.

    Parameters
    ----------
    lower, upper : (S, A, S) arrays, or sparse (S·A, S) matrices with row s·A + a, where an absent entry is 0
        Bounds on each probability. Rows of unavailable actions and of terminal states are ignored.
    margin : float or (S,) array, optional
        By how much both bounds are widened; given by `Intervals.of`, where it is the radius. Without it the set has no radius.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> feared = drmdp.Intervals.of(model, margin=0.05)
    >>> feared
    Intervals(margin=0.05)
    >>> bool(drmdp.solve(model, feared).gap < 1e-4)
    True
    """

    lower: Any
    upper: Any
    margin: Any = None  # of the envelope of a model; None: the bounds are as given

    key = "intervals"
    short = "intervals"
    words = "intervals"
    support = "intervals"
    rectangular = "sa"
    by_pair = False
    by_kernel = False
    reach = "between the bounds"

    def __post_init__(self) -> None:
        lower, upper = _given("lower", self.lower), _given("upper", self.upper)
        shapes = tuple(np.shape(part) for part in (lower, upper))
        S = shapes[0][-1] if shapes[0] else 0
        if shapes[0] != shapes[1] or (len(shapes[0]) == 2 and (S == 0 or shapes[0][0] % S)):
            expected = "two arrays (S, A, S), or two sparse (S·A, S) matrices"
            raise InputError(f"lower, upper: expected {expected}, got shapes {shapes[0]} and {shapes[1]}")
        if self.margin is not None:
            object.__setattr__(self, "margin", checked_radius(self.margin, "margin"))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @classmethod
    def of(cls, model: Model, margin: Any = 0.0) -> Self:
        """The envelope of the kernels of positive weight, on the next states that one of them has seen, widened by a margin, a number or (S,).

        Parameters
        ----------
        model : Model
            Whose kernels make the envelope.
        margin : number or (S,)
            How much wider than the envelope, on both sides.
        """
        check_model(model)
        blocks = model.blocks
        kernels = [blocks.entries(i) for i in np.flatnonzero(model.weights > 0).tolist()]
        lower, upper = np.min(kernels, axis=0), np.max(kernels, axis=0)
        return cls(blocks.matrix(lower), blocks.matrix(upper), margin)

    @classmethod
    def from_counts(cls, counts: Any, level: float = 0.95, support: str = "state", joint: bool = False) -> Self:
        """Clopper–Pearson intervals: all those of a row hold the truth with probability `level`.

        That holds for independent draws from one truth, so many as were fixed before; for logs it is
        an approximation. Rows without counts may be anything on the support, and where nothing was
        ever seen in a state, anything at all.

        Parameters
        ----------
        counts : Model with counts, (S, A, S) array or sparse (S·A, S) matrix
            How often each transition was seen; counts of several kernels are added up.
        level : float in (0, 1)
            Probability with which the true row shall be inside.
        support : "state", "all" or "observed"
            Which next states are possible: those seen from the state under any action, all, or
            those seen after the pair, with which three rows that went the same way are certainty.
        joint : bool
            Whether all rows with two possible next states hold at once.

        Examples
        --------
        >>> import drmdp
        >>> drmdp.Intervals.from_counts([[[7, 3]], [[0, 10]]], support="all").upper.round(3).tolist()
        [[[0.933, 0.652]], [[0.308, 1.0]]]
        """
        delta = 1 - checked_level("level", level)
        table, there, available = _counted(counts)
        places = _pattern(there, available, support)
        listed = sparse.csr_array(places + table.multiply(places))  # 1 + c: zeros are kept
        row = np.repeat(np.arange(listed.shape[0]), np.diff(listed.indptr))
        c, K = listed.data - 1, np.diff(listed.indptr)
        n = np.bincount(row, c, minlength=K.size)
        many = max(int((K > 1).sum()), 1) if joint else 1
        draws = Draws(np.maximum(n, 1.0), np.maximum(K, 2.0), row, c)
        low, high, _ = box(draws, np.full(K.size, delta / many))
        known, sure = (n > 0)[row], (K == 1)[row]
        bounds = np.where(sure, 1.0, np.where(known, low, 0.0)), np.where(sure | ~known, 1.0, high)
        ends = [sparse.csr_array((part, listed.indices, listed.indptr), shape=listed.shape) for part in bounds]
        if counts.is_sparse if isinstance(counts, Model) else sparse.issparse(counts):
            return cls(*ends)
        return cls(*(part.toarray().reshape(*available.shape, -1) for part in ends))

    @classmethod
    def contaminated(cls, model: Model, share: float, support: str = "all") -> Self:
        """A share of the mass may go anywhere: (1 − share) ȳ + share · q for any distribution q.

        ȳ is the mean kernel. This is the ε- or R-contamination of the literature.

        Parameters
        ----------
        model : Model
            Whose mean kernel is contaminated.
        share : float in [0, 1]
            How much of it.
        support : "all", "state" or "observed"
            Where q may have mass: everywhere, or where the state, or the pair, was seen to lead.

        Examples
        --------
        >>> import drmdp
        >>> model = drmdp.instances.machine(8)
        >>> bool(drmdp.solve(model, drmdp.Intervals.contaminated(model, 0.05)).gap < 1e-4)
        True
        """
        check_model(model)
        share = _part("share", share)
        mean = model.blocks.matrix((1 - share) * model.mean)
        return cls(mean, mean + share * _pattern(model.blocks.matrix(model.mean), model.available, support))

    @classmethod
    def cvar(cls, model: Model, level: float, weight: float = 1.0) -> Self:
        """Nested conditional value at risk: in every step the mean over the worst next states.

        They have the share `level` of the probability ȳ. With a `weight` below 1 it is mean-CVaR:
        (1 − weight) times the expectation and `weight` times the CVaR. As a set:
        (1 − weight) ȳ ≤ y ≤ (1 − weight + weight/level) ȳ.

        Parameters
        ----------
        model : Model
            Whose mean kernel says how likely next states are.
        level : float in (0, 1]
            Share of the worst next states; 1 is the expectation.
        weight : float in [0, 1]
            How much of the CVaR beside the expectation.

        Examples
        --------
        >>> import drmdp
        >>> model = drmdp.instances.machine(8)
        >>> feared = [drmdp.Intervals.cvar(model, level) for level in (1.0, 0.5, 0.1)]
        >>> risk = [drmdp.solve(model, ambiguity).value[0] for ambiguity in feared]
        >>> bool(risk[0] < risk[1] < risk[2])
        True
        """
        check_model(model)
        level, weight = _part("level", level), _part("weight", weight)
        if level == 0:
            raise InputError("level: expected a share above 0; Intervals.contaminated(model, 1) has all")
        upper = np.minimum((1 - weight + weight / level) * model.mean, 1.0)
        return cls(model.blocks.matrix((1 - weight) * model.mean), model.blocks.matrix(upper))

    @cached_property
    def bounds(self) -> Kernels:
        """Both bounds on the next states whose upper bound is not 0: two rows a pair, the lower and the upper bound."""
        parts = (self.lower, self.upper)
        if sparse.issparse(self.upper):
            S = self.upper.shape[1]
            return compress_sparse(parts, np.ones((S, self.upper.shape[0] // S), dtype=bool), slack=0.0)
        return compress_dense(np.stack(parts), np.ones(self.upper.shape[:2], dtype=bool), slack=0.0)

    @cached_property
    def full(self) -> bool:
        """Whether every row that lists anything lists all states."""
        lengths = self.bounds.lengths
        return bool(((lengths == self.bounds.n_states) | (lengths == 0)).all())

    # ------------------------------------------------------------------ what a set offers

    def part(self, lo: int, hi: int) -> Self:
        """The bounds of the states lo … hi − 1; what is true of all rows is told of them."""
        other = copy.copy(self)
        A = self.bounds.n_actions
        other.__dict__.update(bounds=self.bounds.part(lo * A, hi * A), full=self.full)
        return other

    @property
    def radius(self) -> Any:
        """The margin."""
        return 0.0 if self.margin is None else self.margin

    @property
    def size_words(self) -> str:
        """The margin, if there is one."""
        return "" if self.margin is None else f"margin {self.radius_text}"

    @property
    def sized(self) -> bool:  # type: ignore[override]
        """Whether there is a margin."""
        return self.margin is not None

    @cached_property
    def listing(self) -> str:
        """What tells its layout from that of others."""
        digest, bounds = hashlib.sha256(), self.bounds
        for part in (bounds.indptr, bounds.indices, bounds.data):
            digest.update(np.ascontiguousarray(part).tobytes())
        return f"intervals {digest.hexdigest()}"

    def facts(self) -> dict[str, str]:
        """What it is."""
        how = "as given" if self.margin is None else "the smallest and the largest that some kernel has, and a margin"
        return {"set": f"an interval for each probability: {how}"}

    @property
    def certain(self) -> bool:
        """Never said: also without a margin the bounds may be apart."""
        return False

    def covered(self, n: int) -> str:
        """Whatever lies between the bounds."""
        return "probabilities between the bounds make"

    meaning = ""

    def with_radius(self, radius: Any) -> Self:
        """The same envelope with another margin."""
        self.check_sized()
        other = copy.copy(self)
        object.__setattr__(other, "margin", checked_radius(radius, "margin"))
        return other

    def fitted(self, model: Model) -> Self:
        """The set itself, after checking that every available row has a distribution between its bounds, and costs for it."""
        self.radii(model)
        bounds = self.bounds
        shape = (bounds.lengths.size // bounds.n_actions, bounds.n_actions)
        if shape != model.available.shape:
            S, A = model.available.shape
            raise InputError(
                f"lower, upper: expected bounds for {S} states and {A} actions, got {shape[0]} and {shape[1]}"
            )
        pairs, lower, upper = self.listed(model)
        wrong = ~((lower >= 0) & (lower <= upper) & (upper <= 1))
        if wrong.any():
            k = int(np.argmax(wrong))
            where = _place(model, pairs[k], self.columns(model)[k])
            raise InputError(f"lower, upper: expected 0 ≤ lower ≤ upper ≤ 1, got {lower[k]!r} and {upper[k]!r} {where}")
        sums = [np.bincount(pairs, part, minlength=model.available.size) for part in (lower, upper)]
        for total, empty, words in ((sums[0], sums[0] > 1 + ROW_SUM_TOL, "lower bounds sum to {} > 1"),
                                    (sums[1], sums[1] < 1 - ROW_SUM_TOL, "upper bounds sum to {} < 1")):  # fmt: skip
            empty &= model.available.ravel()
            if empty.any():
                k = int(np.argmax(empty))
                raise InputError(f"lower, upper: the {words.format(repr(float(total[k])))} {_place(model, k)}")
        return self

    def listed(self, model: Model) -> tuple[IntArray, Array, Array]:
        """Pair, lower and upper bound of each next state that nature may use, available rows only, in the order of `columns`."""
        bounds, keep = self.bounds, self._kept(model)
        pairs = np.repeat(np.arange(bounds.lengths.size), bounds.lengths)[keep]
        return pairs, bounds.data[bounds.positions(0)][keep], bounds.data[bounds.positions(1)][keep]

    def columns(self, model: Model) -> Any:
        """Next state of each of those."""
        return self.bounds.indices[self._kept(model)]

    def _kept(self, model: Model) -> BoolArray:
        return np.repeat(model.available.ravel(), self.bounds.lengths)

    def allowed(self, model: Model, start: int, stop: int) -> BoolArray:
        """Next states with a positive upper bound, for the states start … stop − 1, (n, A, S)."""
        return self.bounds.mask(start, stop) & model.available[start:stop, :, None]

    def keeps(self, rows: Leaving) -> BoolArray:
        """Whether no lower bound is outside and upper bounds inside are enough, (G,); rows are upper bounds, their mean the lower ones."""
        margin = np.repeat(rows.radius, np.diff(rows.starts, append=rows.states.size))
        held = rows.total(rows.outside & (rows.mean > margin)) > 0
        room = rows.total(np.where(rows.outside, 0.0, np.minimum(rows.rows[0] + margin, 1.0)))
        return np.asarray(~held & (room >= 1 - SLACK))

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Margin from which nature is unconstrained in each state, (S,): the largest that some next state needs to take all mass.

        For that its own upper bound has to reach 1, and the lower bounds of all others 0.
        """
        self.check_sized()
        pairs, lower, upper = self.listed(model)
        order = np.lexsort((lower, pairs))
        last = np.append(pairs[1:] != pairs[:-1], True) if pairs.size else np.zeros(0, dtype=bool)  # of each pair
        others = np.zeros(model.available.size)  # the largest lower bound of each pair
        others[pairs[last]] = lower[order][last]
        most = others[pairs[order]]
        before = np.append(0.0, lower[order][:-1])
        alone = last & np.append(True, last[:-1]) if pairs.size else last
        most[last] = np.where(alone, 0.0, before)[last]
        far = np.zeros(model.available.size)
        np.maximum.at(far, pairs[order], np.maximum(1 - upper[order], most))
        out = far.reshape(model.available.shape).max(axis=1)
        return out if states is None else np.asarray(out[np.asarray(states)])

    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Not asked: `saturation` reads the bounds."""
        raise NotImplementedError

    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """Not asked: a kernel is compared with the bounds (`drmdp.certificate.intervals`)."""
        raise NotImplementedError

    def spread(self, model: Model, states: Any) -> Array:
        """Half the largest width of an interval in each of some states, without the margin."""
        pairs, lower, upper = self.listed(model)
        out = np.zeros(model.n_states)
        np.maximum.at(out, pairs // model.n_actions, (upper - lower) / 2)
        return np.asarray(out[np.asarray(states)])

    def room(self, model: Model) -> BoolArray:
        """In which states some action has two next states with a positive upper bound, (S,)."""
        pairs, _, _ = self.listed(model)
        return np.asarray(
            (np.bincount(pairs, minlength=model.available.size) > 1).reshape(model.available.shape).any(axis=1)
        )

    def remarks(self, model: Model) -> tuple[str, ...]:
        """Nothing: bounds that leave no room were given so."""
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Intervals):
            return NotImplemented
        same = self.sized == other.sized and np.array_equal(self.radius, other.radius)
        return same and self.listing == other.listing

    def __hash__(self) -> int:
        return hash((self.listing, np.asarray(self.radius).tobytes()))

    def __repr__(self) -> str:
        if self.margin is None:
            return f"Intervals(<{self.bounds.indices.size} bounds>)"
        return f"Intervals(margin={self.radius_text})"


def _given(name: str, given: Any) -> Any:
    """Bounds as an array (S, A, S) or a sparse matrix; what they are is checked with the model."""
    if sparse.issparse(given):
        check_sparse(name, given)
        return given
    found = numbers(name, given)
    if found.ndim != 3 or found.shape[0] != found.shape[2]:
        raise InputError(f"{name}: expected shape (S, A, S), or a sparse (S·A, S) matrix, got shape {found.shape}")
    found.setflags(write=False)
    return found


def _part(name: str, given: Any) -> float:
    """A number from 0 to 1."""
    part = number(name, given)
    if not 0 <= part <= 1:
        raise InputError(f"{name}: expected a number from 0 to 1, got {part!r}")
    return part


def _counted(given: Any) -> tuple[Any, Any, BoolArray]:
    """Counts (S·A, S), where next states are possible, and which pairs are available, (S, A)."""
    if isinstance(given, Model):
        check_counted(given)
        counts, available, labels = given._counts, given.available, given.labels
    else:
        given = given if sparse.issparse(given) else numbers("counts", given)
        S = max(given.shape[-1], 1) if given.ndim else 1
        available = np.ones((S, int(np.prod(given.shape[:-1])) // S), dtype=bool)
        labels = Labels([0], range(S), range(available.shape[1]))
        counts = counts_of(given, S, S, labels, is_sparse=True)
    assert counts is not None
    check_whole(labels, counts, available)
    table = counts.matrix(counts.mean(np.ones(counts.n_kernels)))
    there = given.blocks.matrix(given.mean) if isinstance(given, Model) else table
    return table, there + table, available


def _pattern(there: Any, available: BoolArray, support: str) -> Any:
    """1 where available pairs may have mass, (S·A, S); everywhere for states that list nothing."""
    if not isinstance(support, str) or support not in SUPPORTS:
        raise InputError(f"support is 'observed', 'state' or 'all', got {shown(support)}")
    S, A = available.shape
    pairs = sparse.diags_array(available.ravel().astype(float))
    seen = pairs @ (there != 0)
    if support != "observed":
        seen = pairs @ (sparse.kron(sparse.eye_array(S), np.ones((A, A))) @ seen)
    empty = (np.diff(sparse.csr_array(seen).indptr) == 0) | (support == "all")
    everywhere = sparse.csr_array((available.ravel() & empty)[:, None].astype(float))
    return ((seen + everywhere @ sparse.csr_array(np.ones((1, there.shape[1])))) != 0).astype(float)


def _place(model: Model, pair: Any, column: Any = None) -> str:
    s, a = divmod(int(pair), model.n_actions)
    place = f"at state {model.states[s]!r}, action {model.actions[a]!r}"
    return place if column is None else f"{place}, next state {model.states[int(column)]!r}"
