"""Consecutive states of a model as they are stored, what makes them valid, and what identifies them.

A model is a `Head`, which does not grow with the number of states, and states. Any `Span` of states can be checked alone: no rule looks at
two states at a time, but for the sum of the start distribution, which whoever has all spans adds up.

**The fingerprint** is a tree of two levels: SHA-256 of the head and of the digests of blocks of `BLOCK` states, in their order. A block begins at a
multiple of `BLOCK`. So it does not matter who computes which block, nor whether the model is in memory or in a file. It identifies all numbers of
the problem, the dtype of the probabilities included, and the names; not the notes, the counts, nor whether kernels are given back as sparse ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core import distributions
from drmdp.core import text as words
from drmdp.core.by_pair import sojourn_of
from drmdp.core.distributions import Labels, Scaled
from drmdp.core.names import text_of
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names, check_costs
from drmdp.errors import InputError

BLOCK = 2**16
"""States in a block of the fingerprint."""


@dataclass(frozen=True)
class Head:
    """What a model holds beside what it holds for each state."""

    n_kernels: int
    n_states: int
    n_actions: int
    discount: float
    weights: Array
    maximise: bool  # costs are negated rewards
    is_sparse: bool
    dtype: np.dtype[Any]  # of the probabilities
    costs: int  # dimensions of the costs: 2 for (S, A), 3 for (S, A, S), 1 for a number per stored next state
    actions: Names
    kernel_names: Names
    notes: tuple[str, ...]
    start: str | None = None  # where the start distribution comes from, in words
    origin: dict[str, Any] | None = None  # how it was made of a log

    @classmethod
    def of(cls, model: Any, **more: Any) -> Head:
        """That of whatever has most of it under the same names."""
        return cls(**{f.name: getattr(model, f.name) for f in fields(cls) if f.name not in more}, **more)

    def described(self, entries: int, held: str, *more: str) -> str:
        """Size and storage in words, with as many next states in all; `more` lines come between the two."""
        S, A, N = (
            words.count(n, noun)
            for n, noun in ((self.n_states, "state"), (self.n_actions, "action"), (self.n_kernels, "kernel"))
        )
        share = entries / (self.n_states * self.n_actions * self.n_states)
        kind = "sparse" if self.is_sparse else "dense"
        part = f"{share:.2g}" if share < 0.01 else f"{share:.0%}"
        first = f"Model: {S} × {A} × {N}, discount {words.discount(self.discount)}"
        return "\n".join([first, *more, f"  {kind}, {part} of the probabilities stored, {held}"])


OPTIONAL = ("ends", "discounts", "sojourn")
"""Arrays by state that a model need not have."""


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
        others = (self.available[lo:hi], self.terminal[lo:hi], self.initial[lo:hi])
        counts = None if self.counts is None else self.counts.part(lo * A, hi * A)
        values = (None if (own := getattr(self, name)) is None else own[lo:hi] for name in OPTIONAL)
        return Span(self.first + lo, self.names[lo:hi], blocks, costs, *others, counts, *values)

    def check(self, labels: Labels, discount: float) -> None:
        """Refuse what no model has, naming states by `labels` of the whole model; nothing is copied or scaled."""
        labels = Labels(labels.kernels, labels.states, labels.actions, self.first)
        check_open(self.available, self.terminal, labels)
        distributions.check(self.blocks, self.available, labels, None, Scaled())
        check_costs("costs", self.costs, self.blocks, discount, labels)
        if self.discounts is not None:
            bad = ~((self.discounts >= 0) & (self.discounts <= discount * self.available))
            if bad.any():
                k = int(np.argmax(bad))
                rule = f"in [0, {discount!r}], and 0 where a pair is not available"
                raise InputError(f"discounts must be {rule}: {labels.pair(k)} has {float(self.discounts.flat[k])!r}")
        sojourn_of(self.sojourn, self.available, labels)
        if self.costs.ndim > 1:
            own = self.costs if self.costs.ndim == 2 else np.abs(self.costs).sum(axis=2)
            closed = ~self.available & (own != 0)
            if closed.any():
                raise InputError(f"costs: {labels.pair(int(np.argmax(closed)))} is not available but costs something")
        bad = ~((self.initial >= 0) & (self.initial < np.inf))
        if bad.any():
            s = int(np.argmax(bad))
            rule = "must not be negative" if self.initial[s] < 0 else "must be finite"
            raise InputError(f"initial {rule}: state {labels.states[self.first + s]!r} has {float(self.initial[s])!r}")


def check_open(available: BoolArray, terminal: BoolArray, labels: Labels) -> None:
    """Refuse a state that is not terminal and has no action."""
    stuck = ~available.any(axis=1) & ~terminal
    if stuck.any():
        raise InputError(f"state {labels.states[labels.first + int(np.argmax(stuck))]!r} has no available action")


# ---------------------------------------------------------------------- fingerprints


class Held(Protocol):
    """Whatever holds the states of a model: the model, or its files."""

    @property
    def head(self) -> Head:
        """What does not grow with the number of states."""

    def span(self, lo: int, hi: int) -> Span:
        """The states lo … hi − 1."""


def digests(held: Held, lo: int, hi: int) -> list[bytes]:
    """Digests of the blocks that begin in lo … hi − 1, in their order; those of all ranges of a model, joined, are all."""
    S = held.head.n_states
    return [_digest(held.span(at, min(at + BLOCK, S))) for at in range(-(-lo // BLOCK) * BLOCK, hi, BLOCK)]


def fingerprint(head: Head, blocks: Iterable[bytes]) -> str:
    """Join a head and the digests of all its blocks of states."""
    names = (text_of(head.actions), None if isinstance(head.kernel_names, range) else text_of(head.kernel_names))
    sizes = (head.n_kernels, head.n_states, head.n_actions, BLOCK, head.dtype.name, head.costs, bool(head.maximise))
    digest = hashlib.sha256(repr(("drmdp model", sizes, names)).encode())
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
    for name, own in (("", span.ends), ("discounts", span.discounts), ("sojourn", span.sojourn)):
        if own is not None:
            digest.update(name.encode() + bytes(_bytes(own + 0.0, "<f8")))
    if not isinstance(span.names, range):
        digest.update(b"".join(text_of(span.names)))
    return digest.digest()


def _pieces(values: Array, size: int = 2**20) -> Iterator[Array]:
    flat = values.reshape(-1)
    for lo in range(0, flat.size, size):
        yield flat[lo : lo + size]


def _bytes(array: Any, dtype: Any) -> Any:
    return np.ascontiguousarray(array.astype(dtype, copy=False)).data
