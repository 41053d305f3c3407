"""Models: costs, N weighted kernels, discount, start distribution, names.

A distributionally robust MDP has states s, actions a, next states t, a discount λ in [0, 1], costs
c(s, a) or c(s, a, t), and N observed kernels ŷ_i with weights w_i. Inside the package **the agent
minimises cost and nature maximises it**; rewards are negated here and negated back where results
leave.

An unavailable pair (s, a) is never played and its rows are never read. A terminal state has no
action and a value that is given, 0 by default: the process ends there, so nature has nothing to
move in it. Nature may still change how likely it is to be reached.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core import distributions, storage
from drmdp.core import validation as checks
from drmdp.core.cached import cached_property
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names
from drmdp.errors import InputError, brief, clean, described
from drmdp.io.mapped_arrays import check_files
from drmdp.model import counts as counted
from drmdp.model import policies, state_ranges
from drmdp.model.constructors import ModelConstructors
from drmdp.model.shapes import kernel_shape
from drmdp.model.state_ranges import ModelFacts
from drmdp.ui import html
from drmdp.ui import text as words
from drmdp.ui.progress import stage

HEAD = ["n_actions", "n_kernels", "discount", "weights", "actions", "kernel_names"]
HEAD += ["is_sparse", "maximise", "notes", "start", "origin"]
"""Fields that a model and its head have under the same names, and that a part shares with it."""


class Model(ModelConstructors):
    """A Markov decision process with N observed kernels; validated once, immutable.

    Parameters
    ----------
    kernels : (N, S, A, S) or (S, A, S) array, or a sequence of N scipy.sparse matrices (S·A, S)
        A shape that can be read in two ways, such as (2, 2, 2), is refused with both. Row s·A + a
        of a sparse matrix is the distribution of the next state. Rows whose sum differs from 1 by
        at most 1e-9 (1e-6 if given in float32) are renormalised, and `notes` says so; the bits of
        all others are kept. Negative numbers of at least −1e-12 are 0.
    costs, rewards : (S,), (S, A) or (S, A, S) array, or a sparse (S·A, S) matrix
        Exactly one of the two. With (S, A, S) the cost depends on the next state and nature moves
        it with the mass; NaN means "unknown" and is legal only for transitions that no kernel has;
        such a model needs ``support="observed"``. So does one with a sparse matrix, which is read
        only where some kernel has the transition (and is 0 there if it holds nothing).
    discount : float in [0, 1], or (S, A) array
        What a cost of the next step is worth now. With 1 all costs until a terminal state count
        alike (`drmdp.solve` says what is solved then). One for each pair, as steps of semi-Markov
        models take different times, is `discounts`, and `discount` then the largest.
    weights : (N,) array, optional
        Weights of the kernels, summing to 1, also as a mapping from names of kernels; equal by
        default.
    initial : (S,) array or mapping from state to probability, optional
        Start distribution; uniform by default. Used only for averages over states.
    states, actions : sequences of names, optional
        Distinct and hashable: strings, numbers, tuples of them, which files keep, or what files
        keep as its `repr`; 0, 1, 2, … by default.
    available : (S, A) bool array or mapping from state to the actions it has, optional
        All by default; in a mapping, states not mentioned have all actions.
    terminal : (S,) bool array, state names, or mapping from state to final cost (reward), optional
        Where the process ends, with value 0 or the one given; nowhere by default.
    dtype : float64 or float32, optional
        How kernels are stored; arithmetic is in float64 always. float32 halves the memory; rows are
        then the rounded ones, divided by their sum.
    kernel_names : sequence of N names, optional
        Where each kernel comes from: a year, a machine, a hospital. Distinct names; 0, 1, 2, … by
        default.
    sojourn : number, (S,) or (S, A) array, optional
        How long a step lasts on average, whatever comes next; 1 by default. Averages are then per
        unit of time, and `Solution.time` is a time; `discount` alone tells what later costs are
        worth.
    notes : sequence of texts
        What was assumed on the way to this model. They go where the model goes: files, reports,
        summaries.
    counts : (S, A, S) or (N, S, A, S) array, or sparse (S·A, S) matrices, optional
        How often each transition was seen, all kernels together or by kernel: what the kernels rest
        on. Results tell on how many observations a decision rests; the decision problem, and so
        `fingerprint`, does not depend on them.
    normalize : bool
        Scale every row to sum to 1, for tables with few digits and for probabilities that were
        float32 once. Negative numbers of at least −1e-9 are then 0. A note tells the largest
        correction.

    Attributes
    ----------
    start : str or None
        Where `initial` comes from, in words such as "as the 20 episodes began"; None if nobody
        said.
    origin : dict or None
        How `drmdp.estimate` made the model of a log, which `drmdp redo` repeats; our files keep it,
        and `fingerprint` does not depend on it.

    Examples
    --------
    >>> import numpy as np, drmdp
    >>> stay, go = np.eye(2), np.full((2, 2), 0.5)
    >>> drmdp.Model([np.stack([stay, go], axis=1)], costs=[[0.0, 1.0], [2.0, 3.0]], discount=0.9)
    Model: 2 states × 2 actions × 1 kernel, discount 0.9
      costs (S, A) in [0, 3]
      dense, 75% of the probabilities stored, 222 bytes
    """

    n_states: int
    n_actions: int
    n_kernels: int
    first: int  # number of the first state: not 0 in a part
    n_next: int  # next states: more than n_states in a part
    discount: float  # the largest, where they differ
    discounts: Array | None  # (S, A), 0 where a pair is not available; None: one for all pairs
    weights: Array
    initial: Array
    states: Names
    actions: Names
    available: BoolArray
    terminal: BoolArray
    ends: Array | None  # (S,) values of terminal states, as costs; None: all 0
    sojourn: Array | None  # (S, A) how long steps last, 0 where a pair is not available; None: 1
    kernel_names: Names
    _blocks: Kernels
    _costs: Array
    is_sparse: bool
    maximise: bool
    notes: tuple[str, ...]
    start: str | None  # where `initial` comes from, in words
    origin: dict[str, Any] | None
    _counts: Kernels | None

    @stage("checking the model")
    def __init__(
        self,
        kernels: ArrayLike,
        *,
        costs: ArrayLike = None,
        rewards: ArrayLike = None,
        discount: float | ArrayLike,
        weights: ArrayLike = None,
        initial: ArrayLike = None,
        states: Names | None = None,
        actions: Names | None = None,
        available: ArrayLike = None,
        terminal: ArrayLike = None,
        dtype: Any = None,
        kernel_names: Names | None = None,
        notes: Sequence[str] = (),
        counts: ArrayLike = None,
        normalize: bool = False,
        sojourn: ArrayLike = None,
    ) -> None:
        name, prices = checks.only_one(costs=costs, rewards=rewards)
        others = {"costs": costs, "rewards": rewards, "available": available, "actions": actions}
        others |= {"kernel_names": kernel_names, "weights": weights}
        source, N, S, A, row_sum_tol = kernel_shape(kernels, others)
        labels = distributions.labels_of((S, A, N), states, actions, kernel_names)
        end, ends, open_pairs = state_ranges.open_pairs_of(terminal, available, labels)
        blocks = storage.compressed(source, open_pairs, storage.slack_of(normalize))
        scaled = distributions.RowScaling(normalize)
        blocks = distributions.check(blocks, open_pairs, labels, row_sum_tol, scaled)
        if dtype is not None:
            blocks = blocks.astype(checks.storage_dtype(dtype))
        largest, each = checks.discounts_of(discount, open_pairs, labels)
        self._set(
            **{"n_states": S, "n_actions": A, "n_kernels": N, "first": 0, "n_next": S},
            **{"discount": largest, "discounts": each},
            weights=checks.distribution("weights", weights, labels.kernels, "kernel"),
            initial=checks.distribution("initial", initial, labels.states, "state"),
            **{"states": labels.states, "actions": labels.actions, "kernel_names": labels.kernels},
            **{"available": open_pairs, "terminal": end},
            ends=ends if ends is None or rewards is None else 0.0 - ends,
            sojourn=checks.sojourn_of(sojourn, open_pairs, labels),
            **{"_blocks": blocks, "is_sparse": blocks.is_sparse, "maximise": rewards is not None},
            notes=(*checks.notes_of(notes), *scaled.note),
            **{"start": None, "origin": None},
            _counts=counted.counts_of(counts, S, S, labels, blocks.is_sparse),
        )
        value = checks.costs_of(name, prices, blocks, open_pairs, self.discount, labels)
        self._set(_costs=0.0 - value if self.maximise else value)  # never −0.0

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """The fields; derived arrays are derived again."""
        return {name: getattr(self, name) for name in Model.__annotations__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies are read-only too."""
        self._set(**state)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Model is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Model is immutable: cannot delete {name!r}")

    def astype(self, dtype: Any) -> Model:
        """The same model with its kernels stored in float64 or float32."""
        return changed(self, _blocks=self.blocks.astype(checks.storage_dtype(dtype)))

    @property
    def blocks(self) -> Kernels:
        """The probabilities as they are stored; if they or the costs are in files, these must be
        the files that were read.
        """
        self.check_unchanged()
        return self._blocks

    def check_unchanged(self) -> None:
        """Raise an error if a file that holds arrays of this model is not what it was."""
        counts = None if self._counts is None else self._counts.data
        check_files(self.cache, self._blocks.data, self._costs, counts)

    @cached_property
    def mean(self) -> Array:
        """Σ_i w_i ŷ_i in the order of the stored columns, (nnz,)."""
        mean = self.blocks.mean(self.weights)
        mean.setflags(write=False)
        return mean

    @cached_property
    def cache(self) -> dict[Any, Any]:
        """Layouts, support sizes and the like, derived from this model; they live as long as it."""
        return {}

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages of a horizon that the model is of; none if it is of any."""
        return tuple((self.origin or {}).get("stages", ()))

    @property
    def labels(self) -> distributions.Labels:
        """Names of kernels, states and actions, for messages."""
        return distributions.Labels(self.kernel_names, self.states, self.actions)

    @property
    def head(self) -> state_ranges.Head:
        """The part whose size does not depend on the number of states."""
        return state_ranges.Head.of(self, dtype=self._blocks.data.dtype, costs=self._costs.ndim)

    def _changed(self, **fields: Any) -> Model:
        same = {name: getattr(self, name) for name in Model.__annotations__}
        if "mean" in self.__dict__ and not {"_blocks", "weights"} & fields.keys():
            same["mean"] = self.mean
        return assembled(**same | fields)

    def span(self, lo: int, hi: int) -> state_ranges.Span:
        """The states lo … hi − 1."""
        names = ("_costs", "available", "terminal", "initial", "_counts", *state_ranges.OPTIONAL)
        arrays = (getattr(self, name) for name in names)
        return state_ranges.Span(0, self.states, self.blocks, *arrays).part(lo, hi)

    # ------------------------------------------------------------------ data

    @property
    def costs(self) -> Any:
        """Costs, or negated rewards, (S, A); (S, A, S) or sparse (S·A, S) when they depend on the
        next state.
        """
        return self._blocks.matrix(self._costs) if self._costs.ndim == 1 else self._costs

    @property
    def rewards(self) -> Any:
        """Rewards, or negated costs, in the shape of `costs`."""
        rewards = 0.0 - self._costs
        return self._blocks.matrix(rewards) if rewards.ndim == 1 else rewards

    @property
    def kernels(self) -> Any:
        """The N kernels, (N, S, A, S) or a list of N sparse (S·A, S) matrices; unavailable rows are
        zero.
        """
        if not self.is_sparse:
            return np.ascontiguousarray(self.blocks.dense(0, self.n_states).transpose(2, 0, 1, 3))
        blocks = self.blocks
        return [storage.no_zeros(blocks.matrix(blocks.entries(i))) for i in range(self.n_kernels)]

    @property
    def mean_kernel(self) -> Any:
        """Σ_i w_i ŷ_i, (S, A, S) or sparse (S·A, S)."""
        matrix = self._blocks.matrix(self.mean)
        shape = (self.n_states, self.n_actions, self.n_states)
        return storage.no_zeros(matrix) if self.is_sparse else matrix.toarray().reshape(shape)

    @property
    def counts(self) -> Any:
        """Counts of observed transitions, in a shape of `kernels`; one table for all kernels
        together, None if unknown.
        """
        self.check_unchanged()
        return None if self._counts is None else counted.tables_of(self._counts)

    @cached_property
    def pair_counts(self) -> Array | None:
        """Observed transitions of each pair, all kernels together, (S, A); None if unknown."""
        self.check_unchanged()
        if self._counts is None:
            return None
        totals = self._counts.sums().reshape(*self.available.shape, -1).sum(axis=2)
        totals.setflags(write=False)
        return np.asarray(totals)

    # ------------------------------------------------------------------ for the operators

    @property
    def next_costs(self) -> bool:
        """Whether costs depend on the next state."""
        return self._costs.ndim != 2

    @property
    def cost_range(self) -> tuple[float, float]:
        """Smallest and largest known cost of the available pairs; zeros if there are none."""
        return self.facts.cost_range

    @property
    def price_range(self) -> tuple[float, float]:
        """The same of costs or rewards, as they were given."""
        low, high = self.cost_range
        return (0.0 - high, 0.0 - low) if self.maximise else (low, high)

    @property
    def costs_missing(self) -> bool:
        """Whether some transition that no kernel has lacks a cost."""
        return self.facts.missing

    @property
    def factor(self) -> Any:
        """Discount of values of next states: a number, or one for each pair, (S, A)."""
        return self.discount if self.discounts is None else self.discounts

    @property
    def place(self) -> slice:
        """The states of this model among all."""
        return slice(self.first, self.first + self.n_states)

    @cached_property
    def facts(self) -> ModelFacts:
        """Extremes and sums over the available pairs; those of the full model in a part of it."""
        costs, blocks, open_pairs = self._costs, self._blocks, self.available.ravel()
        known = costs if costs.ndim == 1 else costs[self.available]
        known = known[~np.isnan(known)]
        lengths = blocks.lengths[open_pairs]
        S = self.n_next
        shortest = shortest_seen = int(lengths.min(initial=S))
        if not (self.weights > 0).all():
            shortest_seen = int(self.choices[self.available].min(initial=S))
        unknown = costs.ndim == 3 and bool(np.isnan(costs).any())
        missing = shortest < S if costs.ndim == 1 else unknown
        costs_range = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
        sizes = shortest, shortest_seen, int(lengths.max(initial=0))
        pairs = lengths.size, open_pairs.size - lengths.size
        return ModelFacts(*costs_range, *sizes, *pairs, int(blocks.indices.size), missing)

    @property
    def n_probabilities(self) -> int:
        """Number of probabilities in arrays of all kernels, whether there are such arrays or
        not.
        """
        return self.n_kernels * self.facts.entries

    @property
    def choices(self) -> Any:
        """Number of next states that kernels of positive weight have for each pair, (S, A)."""
        pairs = np.repeat(np.arange(self.available.size), self.blocks.lengths)
        observed = pairs[self.blocks.observed(self.weights)]
        return np.bincount(observed, minlength=self.available.size).reshape(self.available.shape)

    def mean_matrix(self) -> tuple[Any, Array | None]:
        """The mean kernel, sparse (S·A, S); costs that go with it, (S, A), where they do not follow
        from those of the transitions.
        """
        return self.blocks.matrix(self.mean), None

    def part(self, lo: int, hi: int) -> Model:
        """The states lo … hi − 1 with their transitions to all states, for a worker; with the facts
        of the full model.
        """
        part = of_span(self.head, self.span(lo, hi))
        part._set(facts=self.facts)
        return part

    def stakes(self, value: Array, start: int, stop: int) -> Array:
        """Stakes z = c(s, a, t) + λ v(t) for the states start … stop − 1, (n, A, S); NaN where the
        cost is unknown.
        """
        each = self.discounts
        future = self.discount * value if each is None else each[start:stop, :, None] * value
        if self._costs.ndim == 2:
            return np.asarray(self._costs[start:stop, :, None] + future)
        if self._costs.ndim == 3:
            return np.asarray(self._costs[start:stop] + future)
        z = np.full((stop - start, self.n_actions, self.n_states), np.nan)
        lo, hi = self._blocks.indptr[[start * self.n_actions, stop * self.n_actions]]
        z[self._blocks.mask(start, stop)] = self._costs[lo:hi]
        return z + future

    def listed_costs(self) -> Array:
        """Next-state costs in the order of the stored columns, (nnz,)."""
        if self._costs.ndim == 1:
            return self._costs
        pair = np.repeat(np.arange(self.n_states * self.n_actions), self._blocks.lengths)
        flat = self._costs.reshape(-1, self.n_next)
        return np.asarray(flat[pair, self._blocks.indices])

    def observed(self, start: int, stop: int) -> BoolArray:
        """Flags of the next states that kernels of positive weight reach, (n, A, S)."""
        if (self.weights > 0).all():
            return self._blocks.mask(start, stop)
        return np.asarray((self.blocks.dense(start, stop)[:, :, self.weights > 0] > 0).any(axis=2))

    def policy(self, policy: ArrayLike) -> Array:
        """Check a policy and return it as (S, A), rows summing to 1, zero in terminal states.

        Parameters
        ----------
        policy : array, mapping, frame or result
            (S, A) probabilities, (S,) action numbers, a mapping from every state that is not
            terminal to an action or to a mapping from actions to probabilities, a table with the
            columns state, action and probability, or what has a policy, such as a `Solution`.
            Where one of `drmdp.reach` has ended, all available actions are alike.
        """
        return policies.checked(self, policy)

    # ------------------------------------------------------------------ size, identity, display

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        arrays: list[Any] = [self._blocks, self._costs, self.weights, self.initial, self.available]
        arrays += [self.terminal] if self._counts is None else [self.terminal, self._counts]
        return int(8 * self._blocks.indices.size + sum(array.nbytes for array in arrays))

    @cached_property
    @stage("hashing the model")
    def fingerprint(self) -> str:
        """Hash of everything that defines the problem, names included, notes and counts not; equal
        models, and only they, share it.
        """
        return state_ranges.fingerprint(self.head, state_ranges.digests(self, 0, self.n_states))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        """A few lines for the prompt."""
        lo, hi = self.price_range
        name = "rewards" if self.maximise else "costs"
        shape = "(S, A, S)" if self.next_costs else "(S, A)"
        prices = f"  {name} {shape} in [{lo:g}, {hi:g}]"
        lines = [self.head.described(self._blocks.indices.size, words.memory(self.nbytes), prices)]
        if self.discounts is not None:
            least = words.discount(float(self.discounts[self.available].min()))
            lines.append(f"  discounts (S, A) in [{least}, {words.discount(self.discount)}]")
        if self.sojourn is not None:
            lasts = self.sojourn[self.available]
            lines.append(f"  steps last from {lasts.min():g} to {lasts.max():g}")
        if not isinstance(self.kernel_names, range):
            lines.append(f"  kernels {words.first_names(self.kernel_names)}")
        if self._counts is not None and self.pair_counts is not None:
            lines.append(f"  counts of {float(self.pair_counts.sum()):,.12g} transitions")
        closed = int((~self.available[~self.terminal]).sum())
        if closed or self.terminal.any():
            ends = words.count(int(self.terminal.sum()), "terminal state")
            lines.append(f"  {words.count(closed, 'unavailable pair')}, {ends}")
        return clean("\n".join(lines + [f"  note: {brief(note, 1000)}" for note in self.notes]))

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        first, *others = repr(self).removeprefix("Model: ").splitlines()
        data = "; ".join(line.strip() for line in others if "note: " not in line)
        head = {"size": first, "data": data}
        head |= {"notes": "; ".join(self.notes)} if self.notes else {}
        sign = -1.0 if self.maximise else 1.0
        columns, rows = ["state", "actions"], []
        if not self.next_costs:
            columns.append("reward" if self.maximise else "cost")
        for s in range(min(self.n_states, html.ROWS)):
            actions = np.flatnonzero(self.available[s])
            names = words.first_names([self.actions[a] for a in actions.tolist()], 8)
            rows.append([self.states[s], names or "(end)"])
            if not self.next_costs:
                costs = sorted({float(0.0 + sign * self._costs[s, a]) for a in actions})
                extremes = dict.fromkeys((costs[0], costs[-1])) if costs else ()
                rows[-1].append(" … ".join(f"{cost:.6g}" for cost in extremes))
        return html.facts("Model", head) + html.table(columns, rows, self.n_states)


def check_model(given: Any, name: str = "model") -> None:
    """Refuse what is not a model, with what was probably meant."""
    if isinstance(given, Model):
        return
    cure = ""
    if isinstance(given, str | os.PathLike):
        cure = f": read it with drmdp.read({os.fspath(given)!r})"
    elif np.ndim(given) if isinstance(given, np.ndarray) else isinstance(given, list | tuple):
        cure = ": make one with drmdp.Model(kernels, costs=…, discount=…)"
    raise InputError(f"{name}: expected a drmdp.Model, got {described(given)}{cure}")


def changed(model: Model, **fields: Any) -> Model:
    """The same model with other fields, which are not checked."""
    return model._changed(**fields)


def assembled(**fields: Any) -> Model:
    """A model of fields that were checked."""
    model = object.__new__(Model)
    model._set(**fields)
    return model


def of_span(head: state_ranges.Head, span: state_ranges.Span) -> Model:
    """The model of checked states: of all, or a part of one."""
    fields = {name: getattr(head, name) for name in HEAD}
    names = ("first", "initial", "available", "terminal", *state_ranges.OPTIONAL)
    fields |= {name: getattr(span, name) for name in names}
    fields |= {f"_{name}": getattr(span, name) for name in ("blocks", "costs", "counts")}
    return assembled(n_states=len(span), n_next=head.n_states, states=span.names, **fields)
