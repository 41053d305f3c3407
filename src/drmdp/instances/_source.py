"""Problems drawn some states at a time, in memory or, by
`drmdp.formats.directory.write_drawn`, straight into a directory.

A `ProblemSource` draws the states of a block of `DRAWN` from a stream of random numbers that the
seed and the number of the block decide. So any block can be drawn alone, the problem does not
depend on how it is drawn, and writing it takes the memory of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.random import Seed, generator
from drmdp.core.storage import Kernels, offsets
from drmdp.core.validation import Names
from drmdp.instances._build import check_sizes
from drmdp.model import Model

DRAWN = 4096
"""States drawn from the same stream."""


@dataclass(frozen=True)
class Drawn:
    """Some consecutive states of a problem."""

    kernels: Kernels  # of their pairs
    costs: Any  # or rewards: (n, A), (n, A, S) or a sparse (n·A, S) matrix
    names: Names | None = None
    available: BoolArray | None = None
    terminal: BoolArray | None = None
    initial: Array | None = None


@dataclass(frozen=True)
class ProblemSource:
    """A problem, drawn block by block."""

    n_states: int
    n_actions: int
    n_kernels: int
    successors: int  # next states of a pair, at most
    discount: float
    is_sparse: bool
    draw: Callable[[int, int], Drawn]  # the states lo … hi − 1 of one block
    maximise: bool = False
    actions: Names | None = None
    kernel_names: Names | None = None
    notes: tuple[str, ...] = ()
    costs_missing: bool = False  # of transitions that no kernel has

    def blocks(self) -> Iterator[Drawn]:
        """All states, block after block; a block must fit in memory."""
        check_sizes(min(DRAWN, self.n_states), self.n_actions, self.n_kernels, self.successors)
        for lo in range(0, self.n_states, DRAWN):
            block = self.draw(lo, min(lo + DRAWN, self.n_states))
            yield replace(block, kernels=replace(block.kernels, is_sparse=self.is_sparse))

    def model(self, dtype: Any = None) -> Model:
        """The problem in memory."""
        check_sizes(self.n_states, self.n_actions, self.n_kernels, self.successors)
        blocks, costs = list(self.blocks()), "rewards" if self.maximise else "costs"
        arrays = {"states": "names", costs: "costs"}
        arrays |= {name: name for name in ("available", "terminal", "initial")}
        arguments: Any = {
            name: _joined([getattr(block, field) for block in blocks])
            for name, field in arrays.items()
        }
        for name in ("discount", "actions", "kernel_names", "notes"):
            arguments[name] = getattr(self, name)
        return Model(_gathered([block.kernels for block in blocks]), dtype=dtype, **arguments)


P = ParamSpec("P")


def family(make: Callable[P, ProblemSource]) -> Callable[P, Model]:
    """Turn a function that returns sources into one that returns models; `inspect.unwrap` undoes
    it.
    """

    @wraps(make)
    def model(*args: P.args, **settings: P.kwargs) -> Model:
        return make(*args, **settings).model()

    vars(model)["__signature__"] = signature(make).replace(return_annotation=Model)
    return model


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if hasattr(parts[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return [name for part in parts for name in part]


def _gathered(parts: list[Kernels]) -> Kernels:
    """The kernels of consecutive states as one; the parts are freed on the way."""
    first = parts[0]
    if len(parts) == 1:
        return first
    sizes = [part.indices.size for part in parts]
    N, total = first.n_kernels, sum(sizes)
    indices, data = np.empty(total, dtype=np.int32), np.empty(N * total, dtype=first.data.dtype)
    indptr = offsets(np.concatenate([part.lengths for part in parts]))
    at = 0
    for k, size in enumerate(sizes):
        indices[at : at + size], data[N * at : N * (at + size)] = parts[k].indices, parts[k].data
        parts[k] = first
        at += size
    return replace(first, indptr=indptr, indices=indices, data=data)


def streams(seed: Seed, purpose: str) -> Callable[[int], np.random.Generator]:
    """Streams of random numbers by the first state of a block; of a generator, the generator
    itself, block after block.
    """
    generator(seed, purpose)  # refuses what is no seed

    def stream(lo: int) -> np.random.Generator:
        block = lo // DRAWN
        if block == 0 or isinstance(seed, np.random.Generator):
            return generator(seed, purpose)
        key = (*purpose.encode(), 255 + block)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))

    return stream


def of_model(model: Model) -> ProblemSource:
    """A model as a source."""

    def draw(lo: int, hi: int) -> Drawn:
        part = model.span(lo, hi)
        costs = part.prices(model.maximise)
        names = None if isinstance(model.states, range) else part.names
        return Drawn(part.blocks, costs, names, part.available, part.terminal, part.initial)

    names = [field.name for field in fields(ProblemSource)]
    shared = {name: getattr(model, name) for name in names if name not in ("successors", "draw")}
    return ProblemSource(**shared, successors=int(model.blocks.lengths.max(initial=0)), draw=draw)
