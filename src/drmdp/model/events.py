"""Models of events: the next state is f(state, action, event), and N laws say how likely events are.

Next states and laws are held, or the function itself; kernels are made of them a few states at a time (`drmdp.core.merging`). An `EventModel` is a
`Model`: whatever asks for kernels as arrays gets them while they fit (`MOST` bytes), and is told what to do where they do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import spans, vectors
from drmdp.core import text as words
from drmdp.core import threads as workers
from drmdp.core import validation as checks
from drmdp.core.cached import cached_property
from drmdp.core.event_laws import Laws, checked_laws, laws_of
from drmdp.core.facts import Facts
from drmdp.core.mapped import check_unchanged
from drmdp.core.merging import Asked, Block, block_of
from drmdp.core.names import text_of
from drmdp.core.progress import stage
from drmdp.core.rules import Function, Table
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.model import Model, assembled

MOST = 2**30
"""Bytes up to which kernels are made as arrays when something asks for them."""
SOME = 2**18
"""Events that are asked for at a time."""
BATCH = 2**22
"""Bytes of probabilities that are made at a time."""


class EventModel(Model):
    """A model whose kernels are laws of events; made by `drmdp.Model.from_events`."""

    rule: Table | Function
    laws: Array  # (C, N, E)
    classes: Any  # (S, A) class of laws, or (0, 0)
    priced: bool  # events have costs
    _prices: Array  # (S, A), zeros where events have costs

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs."""
        held = (*Model.__annotations__, *EventModel.__annotations__)
        return {name: getattr(self, name) for name in held if name not in ("_blocks", "_costs")}

    @property
    def next_costs(self) -> bool:
        """Whether events have costs."""
        return self.priced

    @property
    def n_events(self) -> int:
        """Number of events."""
        return int(self.laws.shape[2])

    def check_unchanged(self) -> None:
        """Raise an error if a file that holds the table is not what it was."""
        for array in (getattr(self.rule, "next", None), getattr(self.rule, "costs", None)):
            if array is not None:
                check_unchanged(array)

    # ------------------------------------------------------------------ a few states at a time

    def asked(self, lo: int, hi: int) -> Asked:
        """What the rule says of the states lo … hi − 1."""
        available = self.available[lo:hi]
        there, costs = self.rule.rows(lo, hi, available)
        classes = self.classes[lo:hi] if self.classes.size else self.classes
        return Asked(there, costs if self.priced else np.zeros((0, 0, 0)), classes, available)

    def batches(
        self, laws: Laws, lo: int, hi: int, merged: bool = True, priced: bool = True
    ) -> Iterator[tuple[int, int, Block, int]]:
        """The rows of the states lo … hi − 1, some states at a time, always in the same block; with the number of entries.

        Not priced, they are those of next states, whatever events cost.
        """
        A, (_, E, N) = self.n_actions, laws.p.shape
        n = max(1, min(4096, BATCH // (8 * A * E * max(1, N)), hi - lo))
        block = block_of(n, A, E, N)
        for first in range(lo, hi, n):
            last = min(first + n, hi)
            asked = self.asked(first, last)
            asked = asked if priced else asked._replace(costs=np.zeros((0, 0, 0)))
            yield first, last, block, block.fill(asked, laws, merged)

    def part(self, lo: int, hi: int) -> EventModel:
        """As for any model."""
        part = self.piece(lo, hi)
        part._set(facts=self.facts)
        return part

    def piece(self, lo: int, hi: int) -> EventModel:
        """The same with the facts of its own states."""
        by_state = (
            "states",
            "available",
            "terminal",
            "initial",
            "_prices",
            *(["classes"] if self.classes.size else []),
            *([] if self.ends is None else ["ends"]),
        )
        own = {name: getattr(self, name)[lo:hi] for name in by_state}
        return self._with(rule=self.rule.part(lo, hi), n_states=hi - lo, first=self.first + lo, **own)

    @property
    def used(self) -> Laws:
        """The laws of positive weight."""
        return laws_of(self.laws, self.weights, self.weights > 0)

    @property
    def bare(self) -> Laws:
        """The same without their probabilities: for rows of which only the places are asked."""
        none = np.zeros((len(self.laws), self.n_events, 0))
        return self.used._replace(p=none, tail=none, weights=np.zeros(0))

    @cached_property
    def lengths(self) -> Any:
        """How many slots of positive weight each pair has, (S, A)."""
        found = np.zeros(self.available.shape, np.uint8 if self.n_events < 256 else np.int32)
        bare = self.bare

        def over(lo: int, hi: int) -> None:
            for first, last, block, _ in self.batches(bare, lo, hi):
                ends = block.indptr[: (last - first) * self.n_actions + 1]
                found[first:last] = np.diff(ends).reshape(last - first, -1)

        self._map(over)
        return found

    def _map(self, over: Callable[[int, int], None]) -> None:
        """Go over all states, some at a time, on all threads."""
        each = self.n_actions * self.n_events
        workers.run_some(over, self.n_states, max(1, SOME // each), each, workers.count(None))

    def slots(self, s: int) -> tuple[Array, Any]:
        """Rows of the available pairs of a state on their own slots, (A', N, K), and which slots kernels of positive weight have, (A', 1, K)."""
        _, _, block, _ = next(self.batches(laws_of(self.laws, self.weights, np.ones(self.n_kernels, bool)), s, s + 1))
        ends, N = block.indptr[: self.n_actions + 1], self.n_kernels
        own = np.flatnonzero(self.available[s]).tolist()
        y = np.zeros((len(own), N, int(np.diff(ends).max())))
        for row, a in zip(y, own, strict=True):
            lo, hi = int(ends[a]), int(ends[a + 1])
            row[:, : hi - lo] = block.data[N * lo : N * hi].reshape(N, -1)
        return y, (y[:, self.weights > 0] > 0).any(axis=1, keepdims=True)

    @cached_property
    def by_state(self) -> tuple[EventModel, Any]:
        """The same model, classes told apart by the events that their states have under any action, and which events these are, (C, E)."""
        live: Any = (self.laws[:, self.weights > 0] > 0).any(axis=1)
        if not self.classes.size:
            return self, live
        C, (s, a) = len(live), np.nonzero(self.available)
        held = np.zeros((self.n_states, C), bool)
        held[s, self.classes[s, a]] = True
        kinds, kind = np.unique(held, axis=0, return_inverse=True)
        codes, place = np.unique(kind.ravel()[s] * C + self.classes[s, a], return_inverse=True)
        classes = np.zeros(self.classes.shape, np.uint16 if codes.size < 2**16 else np.uint32)
        classes[s, a] = place
        return self._with(laws=self.laws[codes % C], classes=classes), (kinds @ live)[codes // C]

    @property
    def choices(self) -> Any:
        """How many next states, or pairs of next state and cost, each pair can lead to, (S, A)."""
        return self.lengths

    @cached_property
    def facts(self) -> Facts:
        """Extremes and sums over the available pairs."""
        lengths = self.lengths[self.available]
        least, most = [np.inf], [-np.inf]
        live = (self.laws[:, self.weights > 0] > 0).any(
            axis=(0, 1)
        )  # of any class: nature may bring events of one to another

        def over(lo: int, hi: int) -> None:
            asked = self.asked(lo, hi)
            counts = asked.available[:, :, None] & live
            least.append(float(asked.costs.min(where=counts, initial=np.inf)))
            most.append(float(asked.costs.max(where=counts, initial=-np.inf)))

        if self.priced:
            self._map(over)
        else:
            known = self._prices[self.available]
            least, most = [float(known.min(initial=np.inf))], [float(known.max(initial=-np.inf))]
        shortest = int(lengths.min()) if lengths.size else self.n_next
        return Facts(
            min(least), max(most), shortest, shortest, int(lengths.max(initial=0)), lengths.size,
            self.available.size - lengths.size, int(lengths.sum(dtype=np.int64)), self.priced,
        )  # fmt: skip

    def mean_matrix(self) -> tuple[Any, Array]:
        """The mean kernel, sparse (S·A, S), and the costs that go with it, (S, A); of N no array is made."""
        A = self.n_actions
        indptr = np.zeros(self.available.size + 1, np.int64)
        np.cumsum(self.lengths.ravel(), dtype=np.int64, out=indptr[1:])
        indices, mean = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        costs = np.array(self._prices)
        for first, last, block, n in self.batches(self.used, 0, self.n_states):
            own = slice(int(indptr[first * A]), int(indptr[last * A]))
            ends = block.indptr[: (last - first) * A + 1]
            indices[own] = block.indices[:n]
            mean[own] = block.mean[:n]
            if self.priced:
                filled = np.diff(ends) > 0
                part = costs[first:last].reshape(-1)
                part[filled] = np.add.reduceat(mean[own] * block.costs[:n], ends[:-1][filled]) if n else 0.0
        blocks = Kernels(self.n_next, A, 1, indptr, indices, mean, is_sparse=True)
        return blocks.matrix(mean), costs

    # ------------------------------------------------------------------ kernels as arrays

    @cached_property
    def _blocks(self) -> Kernels:
        self._check_size()
        return self._arrays(priced=False)[0]

    @property
    def _costs(self) -> Array:  # type: ignore[override]
        return self._listed if self.priced else self._prices

    @cached_property
    def _listed(self) -> Array:
        """The costs of all entries; refused where no kernel can hold them."""
        self._check_size()
        return self._arrays()[1]

    def _check_size(self) -> None:
        size = 8 * self.n_kernels * self.facts.entries
        if size > MOST:
            raise InputError(
                f"the kernels of this model of events take {words.memory(size)} as arrays, and this asks for them: call model.stored() "
                "if they fit in memory, or do without"
            )

    def _arrays(self, priced: bool = True) -> tuple[Kernels, Array]:
        """All kernels, and the costs of their entries if they are asked for."""
        A, N = self.n_actions, self.n_kernels
        parts: list[tuple[Any, ...]] = []
        laws = laws_of(self.laws, self.weights, np.ones(N, bool))
        for first, last, block, n in self.batches(laws, 0, self.n_states, priced=priced):
            ends = block.indptr[: (last - first) * A + 1]
            if priced:
                self._check_apart(block, ends, n, first)
            held = np.diff(ends), block.indices[:n], block.data[: N * n], block.costs[:n]
            parts.append(tuple(part.copy() for part in held))
        lengths, indices, data, costs = (np.concatenate(part) for part in zip(*parts, strict=True))
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Kernels(self.n_next, A, N, indptr, indices, data, self.is_sparse), costs

    def _check_apart(self, block: Block, ends: Any, n: int, first: int) -> None:
        """Refuse two costs of one transition."""
        twice = np.zeros(n, bool)
        twice[1:] = block.indices[1:n] == block.indices[: n - 1]
        twice[ends[:-1][ends[:-1] < n]] = False
        if twice.any():
            k = int(np.argmax(twice))
            pair = first * self.n_actions + int(np.searchsorted(ends, k, side="right")) - 1
            s, a = divmod(pair, self.n_actions)
            t = int(block.indices[k])
            there = self.states[t] if len(self.states) == self.n_next else t
            raise InputError(
                f"state {self.states[s]!r}, action {self.actions[a]!r}: events lead to next state {there!r} at "
                f"{float(block.costs[k - 1])!r} and at {float(block.costs[k])!r}: a kernel has one cost for a transition, and this asks for kernels "
                "with costs: do without, or have events that cost more lead to states of their own"
            )

    def stored(self) -> Model:
        """The same model with its kernels as arrays; needs memory for all of them, and one cost for each transition."""
        blocks, costs = self._arrays()
        held = {name: getattr(self, name) for name in Model.__annotations__ if name not in ("_blocks", "_costs")}
        return assembled(**held, _blocks=blocks, _costs=costs if self.priced else self._prices)

    # ------------------------------------------------------------------ other models

    def _with(self, **fields: Any) -> EventModel:
        other = object.__new__(EventModel)
        other._set(**self.__getstate__() | fields)
        return other

    def _changed(self, **fields: Any) -> Model:
        return super()._changed(**fields) if {"_blocks", "_costs"} & fields.keys() else self._with(**fields)

    def with_laws(self, laws: ArrayLike, weights: ArrayLike = None, kernel_names: Names | None = None) -> EventModel:
        """The same rule with other laws, (N, E) or (C, N, E); nothing is asked or copied."""
        own = checked_laws(laws, self.n_events, len(self.laws))
        names = checks.names_of("kernel_names", kernel_names, own.shape[1])
        w = checks.distribution("weights", weights, names, "kernel")
        return self._with(laws=own, n_kernels=own.shape[1], kernel_names=names, weights=w)

    def tabulate(self) -> EventModel:
        """The same model with what its function says in a table, 4 bytes for each event of each pair, and 8 if events have costs."""
        return self if isinstance(self.rule, Table) else self._with(rule=tabulated(self))

    # ------------------------------------------------------------------ looks

    @property
    def head(self) -> spans.Head:
        """What does not grow with the number of states."""
        dtype, costs = np.dtype(np.float64), 1 if self.priced else 2
        return spans.Head.of(self, n_states=self.n_next, dtype=dtype, costs=costs)

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        held = [self.laws, self.classes, self._prices, self.initial, self.available, self.terminal]
        held += [part for part in (getattr(self.rule, name, None) for name in ("next", "costs")) if part is not None]
        return sum(array.nbytes for array in held)

    @cached_property
    @stage("hashing the model")
    def fingerprint(self) -> str:
        """Hash of what events lead to, of the laws and of the names: the same for a function and its table."""
        return joined(self.head, self.laws, self.digests(0, self.n_states))

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint (`drmdp.core.vectors.block`) of the states lo … hi − 1, which are whole blocks."""
        step, found = vectors.block(self.n_next), []
        for first in range(lo, hi, step):
            own = slice(first, min(first + step, hi))
            asked = self.asked(own.start, own.stop)
            flags, digest = asked.available[:, :, None], hashlib.sha256()
            digest.update(np.ascontiguousarray(np.where(flags, asked.next, 0), dtype="<i4").data)
            if self.priced:
                digest.update(np.ascontiguousarray(np.where(flags, asked.costs, 0.0) + 0.0, dtype="<f8").data)
            for array, kind in (
                (self._prices[own], "<f8"), (self.initial[own], "<f8"), (asked.classes, "<u2"), (asked.available, "?"), (self.terminal[own], "?"),
            ):  # fmt: skip
                digest.update(np.ascontiguousarray(array, dtype=kind).data)
            if self.ends is not None:
                digest.update(np.ascontiguousarray(self.ends[own] + 0.0, dtype="<f8").data)
            if not isinstance(self.states, range):
                digest.update(b"".join(text_of(self.states[own])))
            found.append(digest.digest())
        return found

    def __repr__(self) -> str:
        S, A, N = (words.count(getattr(self, f"n_{noun}s"), noun) for noun in ("state", "action", "kernel"))
        lo, hi = self.cost_range
        lo, hi = (0.0 - hi, 0.0 - lo) if self.maximise else (lo, hi)
        kind = "rewards" if self.maximise else "costs"
        shape = "of events" if self.priced else "(S, A)"
        how = "in a table" if isinstance(self.rule, Table) else "asked of a function"
        first = f"Model: {S} × {A} × {N}, discount {words.discount(self.discount)}"
        held = f"  {words.count(self.n_events, 'event')}, next states {how}, {words.memory(self.nbytes)}"
        return "\n".join([first, f"  {kind} {shape} in [{lo:g}, {hi:g}]", held])


def joined(head: spans.Head, laws: Array, blocks: list[bytes]) -> str:
    """The fingerprint of a model: its head, its laws and the digests of all its blocks."""
    first = hashlib.sha256(np.ascontiguousarray(laws, dtype="<f8").data).digest()
    return spans.fingerprint(head, [b"events", first, *blocks])


def tabulated(model: EventModel, keep: bool = True) -> Table:
    """Ask a function for everything once; costs that are no numbers are refused with their place."""
    shape = (model.n_states, model.n_actions, model.n_events)
    there = np.zeros(shape if keep else (0, 0, 0), np.int32)
    costs = np.zeros(shape) if keep and model.priced else None

    def over(lo: int, hi: int) -> None:
        asked = model.asked(lo, hi)
        if model.priced:
            _check_prices(model, asked, lo)
        if keep:
            there[lo:hi] = asked.next
            if costs is not None:
                costs[lo:hi] = np.where(asked.available[:, :, None], asked.costs, 0.0)

    model._map(over)
    for array in (there, costs):
        if array is not None:
            array.setflags(write=False)
    return Table(there, costs)


def _check_prices(model: EventModel, asked: Asked, lo: int) -> None:
    bad = ~(np.abs(asked.costs) <= checks.largest_cost(model.discount)) & asked.available[:, :, None]
    if bad.any():
        s, a, e = (int(k) for k in np.argwhere(bad)[0])
        raise InputError(
            f"transition({model.first + lo + s}, {a}, {e}) costs {float(asked.costs[s, a, e])!r}, expected a finite number"
        )
