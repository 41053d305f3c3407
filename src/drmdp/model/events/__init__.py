"""Models of events: the next state is f(state, action, event), and N laws say how likely events
are.

Next states, or the function itself, and laws are stored; kernels are computed from them a few
states at a time (`drmdp.model.events.laws`). An `EventModel` is a `Model`: kernels are available
as arrays of up to `MOST` bytes, and beyond that an error tells what to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import threads as workers
from drmdp.core import validation as checks
from drmdp.core import vectors
from drmdp.core.cached import cached_property
from drmdp.core.names import text_of
from drmdp.core.storage import Kernels, offsets, over_rows
from drmdp.core.validation import Names
from drmdp.errors import InputError, first_place
from drmdp.io.mapped_arrays import check_unchanged
from drmdp.model import Model, assembled, state_ranges
from drmdp.model.events.laws import Laws, MergedRows, RuleAnswer, block_of, checked_laws, laws_of
from drmdp.model.events.rules import NO_COSTS, EventFunction, EventTable
from drmdp.model.state_ranges import ModelFacts
from drmdp.ui import text as words
from drmdp.ui.progress import stage

MOST = 2**30
"""Most bytes of kernels as arrays."""
EVENTS = 2**18
"""Events that are evaluated at a time."""
BATCH = 2**22
"""Bytes of probabilities that are computed at a time."""


class EventModel(Model):
    """A model whose kernels are laws of events; made by `drmdp.Model.from_events`."""

    rule: EventTable | EventFunction
    laws: Array  # (C, N, E)
    classes: Any  # (S, A) class of laws, or (0, 0)
    priced: bool  # events have costs
    _prices: Array  # (S, A), zeros where events have costs

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without arrays derived from them."""
        return {name: getattr(self, name) for name in (*_fields(Model), *_fields(EventModel))}

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
        for array in self.rule.arrays:
            check_unchanged(array)

    # ------------------------------------------------------------------ a few states at a time

    def asked(self, lo: int, hi: int) -> RuleAnswer:
        """The answer of the rule for the states lo … hi − 1."""
        available = self.available[lo:hi]
        targets, costs = self.rule.rows(lo, hi, available)
        classes = self.classes[lo:hi] if self.classes.size else self.classes
        return RuleAnswer(targets, costs if self.priced else NO_COSTS, classes, available)

    def batches(
        self, laws: Laws, lo: int, hi: int, merged: bool = True, priced: bool = True
    ) -> Iterator[tuple[int, int, MergedRows, int]]:
        """The rows of the states lo … hi − 1, some states at a time, always in the same block; with
        the number of entries.

        Without `priced` they are those of next states, whatever events cost.
        """
        A, (_, E, N) = self.n_actions, laws.p.shape
        n = max(1, min(4096, BATCH // (8 * A * E * max(1, N)), hi - lo))
        block = block_of(n, A, E, N)
        for first in range(lo, hi, n):
            last = min(first + n, hi)
            answer = self.asked(first, last)
            answer = answer if priced else answer._replace(costs=NO_COSTS)
            yield first, last, block, block.fill(answer, laws, merged)

    def part(self, lo: int, hi: int) -> EventModel:
        """As for any model."""
        part = self.piece(lo, hi)
        part._set(facts=self.facts)
        return part

    def piece(self, lo: int, hi: int) -> EventModel:
        """The same with the facts of its own states."""
        names = ["states", "available", "terminal", "initial", "_prices"]
        names += ["classes"] if self.classes.size else []
        names += [] if self.ends is None else ["ends"]
        fields = {name: getattr(self, name)[lo:hi] for name in names}
        rule = self.rule.part(lo, hi)
        return self._with(rule=rule, n_states=hi - lo, first=self.first + lo, **fields)

    @property
    def used(self) -> Laws:
        """The laws of positive weight."""
        return laws_of(self.laws, self.weights, self.weights > 0)

    @property
    def bare(self) -> Laws:
        """The same without probabilities: for the places of the entries of rows."""
        none = np.zeros((len(self.laws), self.n_events, 0))
        return self.used._replace(p=none, tail=none, weights=np.zeros(0))

    @cached_property
    def lengths(self) -> Any:
        """Number of entries of positive weight of each pair, (S, A)."""
        lengths = np.zeros(self.available.shape, np.uint8 if self.n_events < 256 else np.int32)
        bare = self.bare

        def count(lo: int, hi: int) -> None:
            for first, last, block, _ in self.batches(bare, lo, hi):
                ends = block.indptr[: (last - first) * self.n_actions + 1]
                lengths[first:last] = np.diff(ends).reshape(last - first, -1)

        self._map(count)
        return lengths

    def _map(self, routine: Callable[[int, int], None]) -> None:
        """Run a routine over all states, some at a time, on all threads."""
        each = self.n_actions * self.n_events
        n, threads = max(1, EVENTS // each), workers.count(None)
        workers.run_blocks(routine, self.n_states, n, each, threads)

    @property
    def _all_laws(self) -> Laws:
        return laws_of(self.laws, self.weights, np.ones(self.n_kernels, bool))

    def slots(self, s: int) -> tuple[Array, Any]:
        """Rows of the available pairs of a state on their entries, (A', N, K), and flags of the
        entries that kernels of positive weight have, (A', 1, K).
        """
        _, _, block, _ = next(self.batches(self._all_laws, s, s + 1))
        ends, N = block.indptr[: self.n_actions + 1], self.n_kernels
        actions = np.flatnonzero(self.available[s]).tolist()
        y = np.zeros((len(actions), N, int(np.diff(ends).max())))
        for row, a in zip(y, actions, strict=True):
            lo, hi = int(ends[a]), int(ends[a + 1])
            row[:, : hi - lo] = block.data[N * lo : N * hi].reshape(N, -1)
        return y, (y[:, self.weights > 0] > 0).any(axis=1, keepdims=True)

    @cached_property
    def by_state(self) -> tuple[EventModel, Any]:
        """The same model, with classes that differ by the events that their states have under any
        action, and flags of these events, (C, E).
        """
        live: Any = (self.laws[:, self.weights > 0] > 0).any(axis=1)
        if not self.classes.size:
            return self, live
        C, (s, a) = len(live), np.nonzero(self.available)
        used = np.zeros((self.n_states, C), bool)
        used[s, self.classes[s, a]] = True
        kinds, kind = np.unique(used, axis=0, return_inverse=True)
        codes, place = np.unique(kind.ravel()[s] * C + self.classes[s, a], return_inverse=True)
        classes = np.zeros(self.classes.shape, np.uint16 if codes.size < 2**16 else np.uint32)
        classes[s, a] = place
        return self._with(laws=self.laws[codes % C], classes=classes), (kinds @ live)[codes // C]

    @property
    def choices(self) -> Any:
        """Number of next states, or of next states with costs, of each pair, (S, A)."""
        return self.lengths

    @cached_property
    def facts(self) -> ModelFacts:
        """Extremes and sums over the available pairs."""
        lengths = self.lengths[self.available]
        least, most = [np.inf], [-np.inf]
        # of any class: nature may bring events of one to another
        live = (self.laws[:, self.weights > 0] > 0).any(axis=(0, 1))

        def extremes(costs: Array, where: Any) -> None:
            least.append(float(costs.min(where=where, initial=np.inf)))
            most.append(float(costs.max(where=where, initial=-np.inf)))

        def of_events(lo: int, hi: int) -> None:
            answer = self.asked(lo, hi)
            extremes(answer.costs, answer.available[:, :, None] & live)

        if self.priced:
            self._map(of_events)
        else:
            extremes(self._prices, self.available)
        shortest = int(lengths.min()) if lengths.size else self.n_next
        sizes = shortest, shortest, int(lengths.max(initial=0))
        pairs = lengths.size, self.available.size - lengths.size
        entries = int(lengths.sum(dtype=np.int64))
        return ModelFacts(min(least), max(most), *sizes, *pairs, entries, self.priced)

    def mean_matrix(self) -> tuple[Any, Array]:
        """The mean kernel, sparse (S·A, S), and its costs, (S, A), without arrays of all N."""
        A = self.n_actions
        indptr = offsets(self.lengths.ravel().astype(np.int64))
        indices, mean = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        costs = np.array(self._prices)
        for first, last, block, n in self.batches(self.used, 0, self.n_states):
            entries = slice(int(indptr[first * A]), int(indptr[last * A]))
            ends = block.indptr[: (last - first) * A + 1]
            indices[entries], mean[entries] = block.indices[:n], block.mean[:n]
            if self.priced:
                means = over_rows(np.add, mean[entries] * block.costs[:n], ends)
                costs[first:last] = means.reshape(-1, A)
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

    @property
    def fits(self) -> bool:
        """Whether there is room for arrays of all kernels."""
        return 8 * self.n_probabilities <= MOST

    def _check_size(self) -> None:
        if not self.fits:
            size = words.memory(8 * self.n_probabilities)
            need = f"the kernels of this model of events take {size} as arrays"
            cure = "call model.stored() if they fit in memory, or do without"
            raise InputError(f"{need}, and this asks for them: {cure}")

    def _arrays(self, priced: bool = True) -> tuple[Kernels, Array]:
        """All kernels, and the costs of their entries if they are asked for."""
        A, N = self.n_actions, self.n_kernels
        parts: list[tuple[Any, ...]] = []
        for first, last, block, n in self.batches(self._all_laws, 0, self.n_states, priced=priced):
            ends = block.indptr[: (last - first) * A + 1]
            if priced:
                self._check_apart(block, ends, n, first)
            views = np.diff(ends), block.indices[:n], block.data[: N * n], block.costs[:n]
            parts.append(tuple(view.copy() for view in views))
        lengths, indices, data, costs = (np.concatenate(part) for part in zip(*parts, strict=True))
        sizes = self.n_next, A, N
        return Kernels(*sizes, offsets(lengths), indices, data, self.is_sparse), costs

    def _check_apart(self, block: MergedRows, ends: Any, n: int, first: int) -> None:
        """Refuse two costs of one transition."""
        twice = np.zeros(n, bool)
        twice[1:] = block.indices[1:n] == block.indices[: n - 1]
        twice[ends[:-1][ends[:-1] < n]] = False
        if at := first_place(twice):
            (k,) = at
            pair = first * self.n_actions + int(np.searchsorted(ends, k, side="right")) - 1
            t = int(block.indices[k])
            target = self.states[t] if len(self.states) == self.n_next else t
            costs = f"{float(block.costs[k - 1])!r} and at {float(block.costs[k])!r}"
            raise InputError(
                f"{self.labels.pair(pair)}: events lead to next state {target!r} at {costs}: a "
                "kernel has one cost for a transition, and this asks for kernels with costs: do "
                "without, or have events that cost more lead to states of their own"
            )

    def stored(self) -> Model:
        """The same model with its kernels as arrays; needs memory for all of them, and one cost for
        each transition.
        """
        blocks, costs = self._arrays()
        fields = {name: getattr(self, name) for name in _fields(Model)}
        return assembled(**fields, _blocks=blocks, _costs=costs if self.priced else self._prices)

    # ------------------------------------------------------------------ other models

    def _with(self, **fields: Any) -> EventModel:
        other = object.__new__(EventModel)
        other._set(**self.__getstate__() | fields)
        return other

    def _changed(self, **fields: Any) -> Model:
        if {"_blocks", "_costs"} & fields.keys():
            return super()._changed(**fields)
        return self._with(**fields)

    def with_laws(
        self, laws: ArrayLike, weights: ArrayLike = None, kernel_names: Names | None = None
    ) -> EventModel:
        """The same rule with other laws, (N, E) or (C, N, E); nothing is evaluated or copied."""
        p = checked_laws(laws, self.n_events, len(self.laws))
        names = checks.names_of("kernel_names", kernel_names, p.shape[1])
        w = checks.distribution("weights", weights, names, "kernel")
        return self._with(laws=p, n_kernels=p.shape[1], kernel_names=names, weights=w)

    def tabulate(self) -> EventModel:
        """The same model with the answers of its function in a table, 4 bytes for each event of
        each pair, and 8 if events have costs.
        """
        return self if isinstance(self.rule, EventTable) else self._with(rule=tabulated(self))

    # ------------------------------------------------------------------ size, identity, display

    @property
    def head(self) -> state_ranges.Head:
        """The part whose size does not depend on the number of states."""
        dtype, costs = np.dtype(np.float64), 1 if self.priced else 2
        return state_ranges.Head.of(self, n_states=self.n_next, dtype=dtype, costs=costs)

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        arrays = [self.laws, self.classes, self._prices, self.initial, self.available]
        return sum(array.nbytes for array in (*arrays, self.terminal, *self.rule.arrays))

    @cached_property
    @stage("hashing the model")
    def fingerprint(self) -> str:
        """Hash of next states, costs, laws and names: the same for a function and its table."""
        return joined(self.head, self.laws, self.digests(0, self.n_states))

    def digests(self, lo: int, hi: int) -> list[bytes]:
        """Digests of the blocks of the fingerprint (`drmdp.core.vectors.block`) of the states lo …
        hi − 1, which are whole blocks.
        """
        step, digests = vectors.block(self.n_next), []
        for first in range(lo, hi, step):
            block = slice(first, min(first + step, hi))
            answer = self.asked(block.start, block.stop)
            flags, digest = answer.available[:, :, None], hashlib.sha256()
            arrays = [(np.where(flags, answer.next, 0), "<i4")]
            if self.priced:
                arrays.append((np.where(flags, answer.costs, 0.0) + 0.0, "<f8"))
            arrays += [(self._prices[block], "<f8"), (self.initial[block], "<f8")]
            arrays += [(answer.classes, "<u2")]
            arrays += [(answer.available, "?"), (self.terminal[block], "?")]
            if self.ends is not None:
                arrays.append((self.ends[block] + 0.0, "<f8"))
            for array, kind in arrays:
                digest.update(np.ascontiguousarray(array, dtype=kind).data)
            if not isinstance(self.states, range):
                digest.update(b"".join(text_of(self.states[block])))
            digests.append(digest.digest())
        return digests

    def __repr__(self) -> str:
        lo, hi = self.price_range
        kind = "rewards" if self.maximise else "costs"
        shape = "of events" if self.priced else "(S, A)"
        how = "in a table" if isinstance(self.rule, EventTable) else "asked of a function"
        size = f"next states {how}, {words.memory(self.nbytes)}"
        events = f"  {words.count(self.n_events, 'event')}, {size}"
        return "\n".join([self.head.title, f"  {kind} {shape} in [{lo:g}, {hi:g}]", events])


def _fields(kind: type) -> list[str]:
    """Fields of a class of models, without those that a model of events derives."""
    return [name for name in kind.__annotations__ if name not in ("_blocks", "_costs")]


def joined(head: state_ranges.Head, laws: Array, blocks: list[bytes]) -> str:
    """The fingerprint of a model: its head, its laws and the digests of all its blocks."""
    first = hashlib.sha256(np.ascontiguousarray(laws, dtype="<f8").data).digest()
    return state_ranges.fingerprint(head, [b"events", first, *blocks])


def tabulated(model: EventModel, keep: bool = True) -> EventTable:
    """Evaluate a function everywhere once; costs that are NaN or too large are refused."""
    shape = (model.n_states, model.n_actions, model.n_events)
    targets = np.zeros(shape if keep else (0, 0, 0), np.int32)
    costs = np.zeros(shape) if keep and model.priced else None

    def fill(lo: int, hi: int) -> None:
        answer = model.asked(lo, hi)
        if model.priced:
            _check_prices(model, answer, lo)
        if keep:
            targets[lo:hi] = answer.next
            if costs is not None:
                costs[lo:hi] = np.where(answer.available[:, :, None], answer.costs, 0.0)

    model._map(fill)
    table = EventTable(targets, costs)
    for array in table.arrays:
        array.setflags(write=False)
    return table


def _check_prices(model: EventModel, answer: RuleAnswer, lo: int) -> None:
    large = ~(np.abs(answer.costs) <= checks.largest_cost(model.discount))
    if at := first_place(large & answer.available[:, :, None]):
        cost = f"costs {float(answer.costs[at])!r}, expected a finite number"
        raise InputError(f"transition{(model.first + lo + at[0], *at[1:])} {cost}")
