"""Ranges of states as they are stored, their validation, their facts, and their fingerprint.

A model is a `Head`, whose size does not depend on the number of states, and states. Any `Span` of
states can be checked alone: no rule is about two states, but for the sum of the start distribution,
which is added up over all spans.

**Facts** of a full model that computing on a range of its states requires are minima, maxima and
sums over the states, and `together` joins those of ranges. Results then do not depend on how the
states were divided.

**The fingerprint** is a tree of two levels: SHA-256 of the head and of the digests of blocks of
`BLOCK` states, in their order. A block begins at a multiple of `BLOCK`. So it does not depend on
who computes which block, nor on whether the model is in memory or in a file. It identifies all
numbers of the problem, the dtype of the probabilities included, and the names; not the notes, the
counts, nor whether kernels are returned as sparse matrices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core import distributions
from drmdp.core.distributions import Labels, RowScaling
from drmdp.core.names import text_of
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names, available_flags, check_costs, sojourn_of, terminal_of
from drmdp.errors import InputError, first_place
from drmdp.ui import text as words

BLOCK = 2**16
"""States in a block of the fingerprint."""


@dataclass(frozen=True)
class Head:
    """The fields of a model whose size does not depend on the number of states."""

    n_kernels: int
    n_states: int
    n_actions: int
    discount: float
    weights: Array
    maximise: bool  # costs are negated rewards
    is_sparse: bool
    dtype: np.dtype[Any]  # of the probabilities
    # dimensions of the costs: 2 for (S, A), 3 for (S, A, S), 1 for a number per stored next state
    costs: int
    actions: Names
    kernel_names: Names
    notes: tuple[str, ...]
    start: str | None = None  # where the start distribution comes from, in words
    origin: dict[str, Any] | None = None  # how it was made of a log

    @classmethod
    def of(cls, model: Any, **more: Any) -> Head:
        """The head of an object that has most fields under the same names."""
        names = [field.name for field in fields(cls) if field.name not in more]
        return cls(**{name: getattr(model, name) for name in names}, **more)

    @property
    def title(self) -> str:
        """Sizes and discount in words."""
        nouns = ("state", "action", "kernel")
        sizes = " × ".join(words.count(getattr(self, f"n_{noun}s"), noun) for noun in nouns)
        return f"Model: {sizes}, discount {words.discount(self.discount)}"

    def described(self, entries: int, size: str, *lines: str) -> str:
        """Sizes and storage in words, for a number of stored next states; `lines` come between the
        two.
        """
        share = entries / (self.n_states * self.n_actions * self.n_states)
        kind = "sparse" if self.is_sparse else "dense"
        part = f"{share:.2g}" if share < 0.01 else f"{share:.0%}"
        last = f"  {kind}, {part} of the probabilities stored, {size}"
        return "\n".join([self.title, *lines, last])


OPTIONAL = ("ends", "discounts", "sojourn")
"""Optional arrays by state."""


@dataclass(frozen=True)
class Span:
    """The n states first … first + n − 1 of a model."""

    first: int
    names: Names
    blocks: Kernels  # of n·A pairs, `indptr` from 0; `n_states` counts the columns
    costs: Array  # (n, A), (n, A, S) or (nnz,)
    available: BoolArray  # (n, A), false in terminal states
    terminal: BoolArray  # (n,)
    initial: Array  # (n,)
    counts: Kernels | None = None  # transitions seen of the n·A pairs; workers need none
    ends: Array | None = None  # (n,) values of terminal states, as costs; None: all 0
    discounts: Array | None = None  # (n, A); None: one for all pairs
    sojourn: Array | None = None  # (n, A) how long steps last; None: 1

    def __len__(self) -> int:
        return len(self.terminal)

    def part(self, lo: int, hi: int) -> Span:
        """The states lo … hi − 1 of these, counted from 0."""
        A = self.available.shape[1]
        blocks = self.blocks.part(lo * A, hi * A)
        ends = slice(int(self.blocks.indptr[lo * A]), int(self.blocks.indptr[hi * A]))
        costs = self.costs[ends] if self.costs.ndim == 1 else self.costs[lo:hi]
        counts = None if self.counts is None else self.counts.part(lo * A, hi * A)
        arrays = {name: getattr(self, name) for name in ("available", "terminal", "initial")}
        arrays |= {name: getattr(self, name) for name in OPTIONAL}
        parts: Any = {k: None if array is None else array[lo:hi] for k, array in arrays.items()}
        return Span(self.first + lo, self.names[lo:hi], blocks, costs, counts=counts, **parts)

    def prices(self, maximise: bool) -> Any:
        """Costs, or rewards, as a model takes them."""
        values = 0.0 - self.costs if maximise else np.array(self.costs)
        return self.blocks.matrix(values) if values.ndim == 1 else values

    def check(self, labels: Labels, discount: float) -> None:
        """Refuse invalid states, naming them by `labels` of the full model; nothing is copied or
        scaled.
        """
        labels = Labels(labels.kernels, labels.states, labels.actions, self.first)
        check_open(self.available, self.terminal, labels)
        distributions.check(self.blocks, self.available, labels, None, RowScaling())
        check_costs("costs", self.costs, self.blocks, discount, labels)
        if self.discounts is not None:
            bad = ~((self.discounts >= 0) & (self.discounts <= discount * self.available))
            if at := first_place(bad.ravel()):
                rule = f"in [0, {discount!r}], and 0 where a pair is not available"
                number = float(self.discounts.ravel()[at])
                raise InputError(f"discounts must be {rule}: {labels.pair(*at)} has {number!r}")
        sojourn_of(self.sojourn, self.available, labels)
        if self.costs.ndim > 1:
            costs = self.costs if self.costs.ndim == 2 else np.abs(self.costs).sum(axis=2)
            if at := first_place((~self.available & (costs != 0)).ravel()):
                raise InputError(f"costs: {labels.pair(*at)} is not available but costs something")
        if at := first_place(~((self.initial >= 0) & (self.initial < np.inf))):
            rule = "must not be negative" if self.initial[at] < 0 else "must be finite"
            state = labels.states[self.first + at[0]]
            raise InputError(f"initial {rule}: state {state!r} has {float(self.initial[at])!r}")


def open_pairs_of(terminal: Any, available: Any, labels: Labels) -> tuple[Any, Any, BoolArray]:
    """Flags (S,) and values of the terminal states, and flags (S, A) of the available pairs."""
    flags, ends = terminal_of(terminal, labels.states)
    open_pairs = available_flags(available, labels.states, labels.actions) & ~flags[:, None]
    check_open(open_pairs, flags, labels)
    return flags, ends, open_pairs


def check_open(available: BoolArray, terminal: BoolArray, labels: Labels) -> None:
    """Refuse a state that is not terminal and has no action."""
    if at := first_place(~available.any(axis=1) & ~terminal):
        raise InputError(f"state {labels.states[labels.first + at[0]]!r} has no available action")


# ---------------------------------------------------------------------- facts


class ModelFacts(NamedTuple):
    """Extremes and sums over the available pairs of a model, or of a range of its states."""

    least_cost: float  # of the known ones; inf if there is none
    most_cost: float  # −inf if there is none
    shortest: int  # fewest next states listed for a pair
    shortest_seen: int  # of those that kernels of positive weight reach
    longest: int
    pairs: int
    closed: int  # pairs that are not available
    entries: int  # next states listed, over all pairs
    missing: bool  # some transition that no kernel has lacks a cost

    @property
    def cost_range(self) -> tuple[float, float]:
        """Smallest and largest known cost; zeros if there is none."""
        known = self.least_cost <= self.most_cost
        return (self.least_cost, self.most_cost) if known else (0.0, 0.0)


def together(parts: Sequence[ModelFacts]) -> ModelFacts:
    """The facts of several ranges as one."""
    folds: tuple[Any, ...] = (min, max, min, min, max, sum, sum, sum, any)
    columns: list[Any] = [list(column) for column in zip(*parts, strict=True)]
    return ModelFacts(*(fold(column) for fold, column in zip(folds, columns, strict=True)))


# ---------------------------------------------------------------------- fingerprints


def digests(source: Any, lo: int, hi: int) -> list[bytes]:
    """Digests of the blocks that begin in lo … hi − 1, in their order, of a source with a `head`
    and `span`s; those of all ranges of a model, joined, are all.
    """
    S, starts = source.head.n_states, range(-(-lo // BLOCK) * BLOCK, hi, BLOCK)
    return [_digest(source.span(start, min(start + BLOCK, S))) for start in starts]


def fingerprint(head: Head, blocks: Iterable[bytes]) -> str:
    """Join a head and the digests of all its blocks of states."""
    kernel_names = None if isinstance(head.kernel_names, range) else text_of(head.kernel_names)
    names = text_of(head.actions), kernel_names
    sizes = head.n_kernels, head.n_states, head.n_actions, BLOCK
    kinds = head.dtype.name, head.costs, bool(head.maximise)
    digest = hashlib.sha256(repr(("drmdp model", sizes + kinds, names)).encode())
    for array in (head.weights, np.array([head.discount])):
        digest.update(_bytes(array, "<f8"))
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _digest(span: Span) -> bytes:
    digest = hashlib.sha256()
    blocks = span.blocks
    digest.update(_bytes(blocks.indptr - blocks.indptr[0], "<i8"))
    digest.update(_bytes(blocks.indices, "<i4"))
    digest.update(_bytes(blocks.data, blocks.data.dtype.newbyteorder("<")))
    for values in _pieces(span.costs):
        digest.update(_bytes(values + 0.0, "<f8"))  # −0.0 is 0.0
    digest.update(_bytes(span.available, "?"))
    digest.update(_bytes(span.terminal, "?"))
    digest.update(_bytes(span.initial, "<f8"))
    arrays = {"": span.ends, "discounts": span.discounts, "sojourn": span.sojourn}
    for name, array in arrays.items():
        if array is not None:
            digest.update(name.encode() + bytes(_bytes(array + 0.0, "<f8")))
    if not isinstance(span.names, range):
        digest.update(b"".join(text_of(span.names)))
    return digest.digest()


def _pieces(values: Array, size: int = 2**20) -> Iterator[Array]:
    flat = values.reshape(-1)
    for lo in range(0, flat.size, size):
        yield flat[lo : lo + size]


def _bytes(array: Any, dtype: Any) -> Any:
    return np.ascontiguousarray(array.astype(dtype, copy=False)).data
