"""An interval for each probability: all kernels between two bounds.

    lower(s, a, t) ≤ y(t | s, a) ≤ upper(s, a, t),        Σ_t y(t | s, a) = 1,

for every available pair (s, a) on its own.

There is no budget that actions could share, so "s" and "sa" are the same and optimal policies are
deterministic. The kernels of the model are what a nominal value is taken from; they need not lie
inside. With `Intervals.of` the bounds are the smallest and the largest probability that some kernel
of positive weight has, on the next states that one of them has seen, widened by a margin and cut
off at 0 and 1.

Three sets of the literature are intervals, with ȳ the mean kernel: what counts justify
(`from_counts`, by `drmdp.sets.concentration`), contamination, (1−ε)ȳ ≤ y ≤ (1−ε)ȳ + ε, and nested
(mean-)CVaR at level α with weight κ, (1−κ)ȳ ≤ y ≤ (1−κ+κ/α)ȳ: of a CVaR nature plays {q ≤ ȳ/α}.

Σ lower ≤ 1 ≤ Σ upper is checked up to `ROW_SUM_TOL`; a row that misses it by less stands for its
bounds divided by their sum.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.distributions import Labels
from drmdp.core.storage import ROW_SUM_TOL, Kernels, compressed
from drmdp.core.validation import check_sparse, number_from, numbers
from drmdp.errors import InputError, first_place, one_of
from drmdp.model import Model, check_model
from drmdp.model.counts import counts_of
from drmdp.sets.base import SUPPORTS, AmbiguitySet, checked_radius
from drmdp.sets.concentration import Draws, box
from drmdp.sets.confidence import check_counted, check_whole, checked_level
from drmdp.sets.confinement import SLACK, Leaving


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(AmbiguitySet):
    """All kernels whose probabilities lie between two bounds.

    Parameters
    ----------
    lower, upper : (S, A, S) arrays, or sparse (S·A, S) matrices
        Bounds on each probability, with row s·A + a, where an absent entry is 0. Rows of
        unavailable actions and of terminal states are ignored.
    margin : float or (S,) array, optional
        By how much both bounds are widened; given by `Intervals.of`, where it is the radius.
        Without it the set has no radius.

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
        lower, upper = _bounds_of("lower", self.lower), _bounds_of("upper", self.upper)
        shapes = tuple(np.shape(part) for part in (lower, upper))
        S = shapes[0][-1] if shapes[0] else 0
        if shapes[0] != shapes[1] or (len(shapes[0]) == 2 and (S == 0 or shapes[0][0] % S)):
            expected = "two arrays (S, A, S), or two sparse (S·A, S) matrices"
            got = f"got shapes {shapes[0]} and {shapes[1]}"
            raise InputError(f"lower, upper: expected {expected}, {got}")
        margin = None if self.margin is None else checked_radius(self.margin, "margin")
        self.__dict__.update(lower=lower, upper=upper, margin=margin)

    @classmethod
    def of(cls, model: Model, margin: Any = 0.0) -> Self:
        """The envelope of the kernels of positive weight, on the next states that one of them has
        seen, widened by a margin, a number or (S,).

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
    def from_counts(
        cls, counts: Any, level: float = 0.95, support: str = "state", joint: bool = False
    ) -> Self:
        """Clopper–Pearson intervals: all those of a row hold the truth with probability `level`.

        That holds for independent draws from one truth, so many as were fixed before; for logs it
        is an approximation. Rows without counts may be anything on the support, and where nothing
        was ever seen in a state, anything at all.

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
        table, possible, available = _counted(counts)
        places = _pattern(possible, available, support)
        listed = sparse.csr_array(places + table.multiply(places))  # 1 + c: zeros are kept
        row = np.repeat(np.arange(listed.shape[0]), np.diff(listed.indptr))
        c, K = listed.data - 1, np.diff(listed.indptr)
        n = np.bincount(row, c, minlength=K.size)
        many = max(int((K > 1).sum()), 1) if joint else 1
        draws = Draws(np.maximum(n, 1.0), np.maximum(K, 2.0), row, c)
        low, high, _ = box(draws, np.full(K.size, delta / many))
        known, sure = (n > 0)[row], (K == 1)[row]
        bounds = np.where(sure, 1.0, np.where(known, low, 0.0)), np.where(sure | ~known, 1.0, high)
        entries, shape = (listed.indices, listed.indptr), listed.shape
        ends = [sparse.csr_array((part, *entries), shape=shape) for part in bounds]
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
        pattern = _pattern(model.blocks.matrix(model.mean), model.available, support)
        return cls(mean, mean + share * pattern)

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
            cure = "Intervals.contaminated(model, 1) has all"
            raise InputError(f"level: expected a share above 0; {cure}")
        upper = np.minimum((1 - weight + weight / level) * model.mean, 1.0)
        return cls(model.blocks.matrix((1 - weight) * model.mean), model.blocks.matrix(upper))

    @cached_property
    def bounds(self) -> Kernels:
        """Both bounds on the next states whose upper bound is not 0: two rows a pair, the lower and
        the upper bound.
        """
        parts: Any = [self.lower, self.upper]
        if sparse.issparse(self.upper):
            rows, S = self.upper.shape
            return compressed(parts, np.ones((S, rows // S), dtype=bool), 0.0)
        return compressed(np.stack(parts), np.ones(self.upper.shape[:2], dtype=bool), 0.0)

    @cached_property
    def full(self) -> bool:
        """Whether every row that lists anything lists all states."""
        lengths = self.bounds.lengths
        return bool(((lengths == self.bounds.n_states) | (lengths == 0)).all())

    # ------------------------------------------------------------------ what a set offers

    def part(self, lo: int, hi: int) -> Self:
        """The bounds of the states lo … hi − 1; `full` stays that of all."""
        A = self.bounds.n_actions
        return self._with(bounds=self.bounds.part(lo * A, hi * A), full=self.full)

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
        """Key of its layout: a hash of the bounds."""
        digest, bounds = hashlib.sha256(), self.bounds
        for part in (bounds.indptr, bounds.indices, bounds.data):
            digest.update(np.ascontiguousarray(part).tobytes())
        return f"intervals {digest.hexdigest()}"

    def facts(self) -> dict[str, str]:
        """The set in words."""
        envelope = "the smallest and the largest that some kernel has, and a margin"
        how = "as given" if self.margin is None else envelope
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
        return self._with(margin=checked_radius(radius, "margin"))

    def fitted(self, model: Model) -> Self:
        """The set itself, after checking that every available row has a distribution between its
        bounds, and costs for it.
        """
        self.radii(model)
        S, A = self.bounds.lengths.size // self.bounds.n_actions, self.bounds.n_actions
        if model.available.shape != (S, A):
            sizes = "{} states and {} actions".format(*model.available.shape)
            raise InputError(f"lower, upper: expected bounds for {sizes}, got {S} and {A}")
        pairs, lower, upper = self.listed(model)
        if at := first_place(~((lower >= 0) & (lower <= upper) & (upper <= 1))):
            where = _place(model, pairs[at], self.columns(model)[at])
            ends = f"{lower[at]!r} and {upper[at]!r}"
            raise InputError(f"lower, upper: expected 0 ≤ lower ≤ upper ≤ 1, got {ends} {where}")
        for name, part, sign, side in (("lower", lower, 1, ">"), ("upper", upper, -1, "<")):
            sums = np.bincount(pairs, part, minlength=model.available.size)
            beyond = sign * sums > sign + ROW_SUM_TOL
            if at := first_place(beyond & model.available.ravel()):
                what = f"{name} bounds sum to {float(sums[at])!r} {side} 1"
                raise InputError(f"lower, upper: the {what} {_place(model, *at)}")
        return self

    def listed(self, model: Model) -> tuple[IntArray, Array, Array]:
        """Pair, lower and upper bound of each next state that nature may use, available rows only,
        in the order of `columns`.
        """
        bounds, keep = self.bounds, self._available(model)
        pairs = np.repeat(np.arange(bounds.lengths.size), bounds.lengths)[keep]
        return pairs, bounds.data[bounds.positions(0)][keep], bounds.data[bounds.positions(1)][keep]

    def columns(self, model: Model) -> Any:
        """Next state of each of those."""
        return self.bounds.indices[self._available(model)]

    def _available(self, model: Model) -> BoolArray:
        return np.repeat(model.available.ravel(), self.bounds.lengths)

    def allowed(self, model: Model, start: int, stop: int) -> BoolArray:
        """Next states with a positive upper bound, for the states start … stop − 1, (n, A, S)."""
        return self.bounds.mask(start, stop) & model.available[start:stop, :, None]

    def keeps(self, rows: Leaving) -> BoolArray:
        """Whether no lower bound is outside and upper bounds inside are enough, (G,); rows are
        upper bounds, their mean the lower ones.
        """
        margin = np.repeat(rows.radius, np.diff(rows.starts, append=rows.states.size))
        bound_outside = rows.total(rows.outside & (rows.mean > margin)) > 0
        room = rows.total(np.where(rows.outside, 0.0, np.minimum(rows.rows[0] + margin, 1.0)))
        return np.asarray(~bound_outside & (room >= 1 - SLACK))

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Margin from which nature is unconstrained in each state, (S,): the largest that some next
        state needs to take all mass.

        For that its own upper bound has to reach 1, and the lower bounds of all others 0: each is
        one of the others, unless it is alone.
        """
        self.check_sized()
        pairs, lower, upper = self.listed(model)
        alone = np.bincount(pairs, minlength=model.available.size)[pairs] == 1
        far = np.zeros(model.available.size)
        np.maximum.at(far, pairs, np.maximum(1 - upper, np.where(alone, 0.0, lower)))
        out = far.reshape(model.available.shape).max(axis=1)
        return out if states is None else np.asarray(out[np.asarray(states)])

    def spread(self, model: Model, states: Any) -> Array:
        """Half the largest width of an interval in each of some states, without the margin."""
        pairs, lower, upper = self.listed(model)
        out = np.zeros(model.n_states)
        np.maximum.at(out, pairs // model.n_actions, (upper - lower) / 2)
        return np.asarray(out[np.asarray(states)])

    def room(self, model: Model) -> BoolArray:
        """In which states some action has two next states with a positive upper bound, (S,)."""
        entries = np.bincount(self.listed(model)[0], minlength=model.available.size)
        return np.asarray((entries.reshape(model.available.shape) > 1).any(axis=1))

    def remarks(self, model: Model) -> tuple[str, ...]:
        """Nothing: bounds that leave no room were given so."""
        return ()

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.listing, self.sized

    def __repr__(self) -> str:
        if self.margin is None:
            return f"Intervals(<{self.bounds.indices.size} bounds>)"
        return f"Intervals(margin={self.radius_text})"


def _bounds_of(name: str, bounds: Any) -> Any:
    """Bounds as an array (S, A, S) or a sparse matrix; `fitted` checks them with the model."""
    if sparse.issparse(bounds):
        check_sparse(name, bounds)
        return bounds
    array = numbers(name, bounds)
    if array.ndim != 3 or array.shape[0] != array.shape[2]:
        expected = "shape (S, A, S), or a sparse (S·A, S) matrix"
        raise InputError(f"{name}: expected {expected}, got shape {array.shape}")
    array.setflags(write=False)
    return array


def _part(name: str, share: Any) -> float:
    """A number from 0 to 1."""
    return number_from(0.0, name, share, "a number from 0 to 1", 1.0)


def _counted(data: Any) -> tuple[Any, Any, BoolArray]:
    """Counts (S·A, S), where next states are possible, and which pairs are available, (S, A)."""
    if isinstance(data, Model):
        check_counted(data)
        counts, available, labels = data._counts, data.available, data.labels
    else:
        data = data if sparse.issparse(data) else numbers("counts", data)
        S = max(data.shape[-1], 1) if data.ndim else 1
        available = np.ones((S, int(np.prod(data.shape[:-1])) // S), dtype=bool)
        labels = Labels([0], range(S), range(available.shape[1]))
        counts = counts_of(data, S, S, labels, is_sparse=True)
    assert counts is not None
    check_whole(labels, counts, available)
    table = counts.matrix(counts.mean(np.ones(counts.n_kernels)))
    observed = data.blocks.matrix(data.mean) if isinstance(data, Model) else table
    return table, observed + table, available


def _pattern(observed: Any, available: BoolArray, support: str) -> Any:
    """1 where available pairs may have mass, (S·A, S); everywhere for states that list nothing."""
    one_of("support", support, SUPPORTS)
    S, A = available.shape
    pairs = sparse.diags_array(available.ravel().astype(float))
    listed = pairs @ (observed != 0)
    if support != "observed":
        listed = pairs @ (sparse.kron(sparse.eye_array(S), np.ones((A, A))) @ listed)
    empty = (np.diff(sparse.csr_array(listed).indptr) == 0) | (support == "all")
    everywhere = sparse.csr_array((available.ravel() & empty)[:, None].astype(float))
    row = sparse.csr_array(np.ones((1, observed.shape[1])))
    return ((listed + everywhere @ row) != 0).astype(float)


def _place(model: Model, pair: Any, column: Any = None) -> str:
    place = f"at {model.labels.pair(int(pair))}"
    return place if column is None else f"{place}, next state {model.states[int(column)]!r}"
