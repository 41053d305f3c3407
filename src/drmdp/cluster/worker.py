"""Workers: each has a range of states and answers calls, the public methods of `Worker`.

A worker holds the part of the model that its range needs, which never changes, and nothing else.
Warm starts, policies and chains are arguments and results: an engine keeps them with the worker,
and a call names those it begins with. So a call can be repeated, also by another worker that opens
the same range, and gives the same bits.

A call gets the facts of the model, then its arguments: of vectors the numbers of the range, of a
`Whole` one those of all states. It returns a tuple of arrays that stay with the worker, with a row
for each state of the range, and a small object, the answer to the driver.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import RobustProver
from drmdp.cluster import proofs
from drmdp.cluster.source import DirectorySource
from drmdp.core.cached import cached_property
from drmdp.core.compact import CompactRows
from drmdp.core.vectors import block, block_sums
from drmdp.errors import InputError
from drmdp.io.files import flush
from drmdp.layout.memory import SweepMemory
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.events.lifted_model import seen_by
from drmdp.model.state_ranges import ModelFacts
from drmdp.operators.exact import ExactOperator, WarmStart
from drmdp.operators.fingerprint import fingerprint
from drmdp.operators.nominal import MeanLawChain, MeanLawOperator, NominalOperator
from drmdp.sets import AmbiguitySet

Answer = tuple[tuple[Any, ...], Any]


def _piece(name: str, lo: int) -> str:
    return f"{name}-{lo}.npy"


class Worker:
    """A range of states of a model and a set."""

    def __init__(
        self, source: DirectorySource, ambiguity: AmbiguitySet, lo: int, hi: int, threads: int
    ) -> None:
        self.lo, self.hi = lo, hi
        self._source, self._ambiguity, self._threads = source, ambiguity.part(lo, hi), threads
        self._checked = False
        self._facts: ModelFacts | None = None
        # moves an array that is not to be made again to where it can stay
        self.settle: Callable[[Array], Array] | None = None
        self._mean_row: Array | None = None
        self._model: Model | None = None

    def call(self, name: str, facts: ModelFacts | None, args: tuple[Any, ...]) -> Answer:
        """Answer one call."""
        if facts != self._facts:
            self.forget()
            self._facts = facts
        return cast(Answer, getattr(self, name)(*args))

    def forget(self, model: bool = True) -> None:
        """Drop what can be made again; the part of the model, which takes longest, may stay."""
        for name in ("_fitted", "_operator", "_mean", "_start"):
            vars(self).pop(name, None)
        if model:
            self._model = None

    # ------------------------------------------------------------------ the model

    @property
    def model(self) -> Model:
        """The part of the model."""
        if self._model is None:
            self._model = self._source.part(self.lo, self.hi, self._checked)
            self._checked = True
            if self._facts is not None:
                self._model._set(facts=self._facts)
            if self.settle is not None and not isinstance(self._model, EventModel):
                if self._mean_row is None:
                    self._mean_row = self.settle(self._model.mean)
                self._model._set(mean=self._mean_row)
        return self._model

    def survey(self) -> Answer:
        """The facts of this range."""
        return (), self.model.facts

    def arrays(self, *names: str) -> Answer:
        """Arrays of the model."""
        return tuple(np.array(getattr(self.model, name)) for name in names), None

    def fingerprint(self) -> Answer:
        """Versions and routines that decide the bits of this process."""
        return (), fingerprint(self._fitted, self._source.head.dtype)

    def digests(self) -> Answer:
        """Digests of the blocks of the model's fingerprint that begin in this range."""
        return (), self._source.digests(self.lo, self.hi)

    def process(self) -> Answer:
        """Number of the process."""
        return (), os.getpid()

    # ------------------------------------------------------------------ vectors

    def elementwise(self, function: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Answer:
        """A vector: `function`, which treats each state alone, of vectors and numbers."""
        return (function(*args, **settings),), None

    def extremes(self, vectors: tuple[Array, ...]) -> Answer:
        """Smallest and largest number of each vector."""
        return (), [(np.min(vector), np.max(vector)) for vector in vectors]

    def dots(self, pairs: tuple[tuple[Array, Array], ...]) -> Answer:
        """Sums of a·b over the blocks of this range, for each pair a, b of vectors."""
        return (), [block_sums(a, b, block(self._source.n_states)) for a, b in pairs]

    def product(self, z: Array, chain: tuple[Any, ...]) -> Answer:
        """P z for a vector z of all states and the rows of P on this range."""
        return (chain_from(chain, self._source.n_states, self._threads) @ z,), None

    def dtypes(self, vectors: tuple[Array, ...]) -> Answer:
        """Shape of a row, and dtype, of each vector."""
        return (), [(vector.shape[1:], vector.dtype.str) for vector in vectors]

    def gather(self, vector: Array) -> Answer:
        """The numbers of a vector."""
        return (), vector

    def scatter(self, values: Array) -> Answer:
        """The piece of this range of an array of all states."""
        return (values[self.lo : self.hi],), None

    # ------------------------------------------------------------------ files

    def save(self, folder: str, names: list[str], vectors: tuple[Array, ...]) -> Answer:
        """Write the pieces of this range, also over those of a worker that died; their digests."""
        sums = []
        for name, vector in zip(names, vectors, strict=True):
            array = np.ascontiguousarray(vector)
            with (Path(folder) / _piece(name, self.lo)).open("wb") as stream:
                # of a file NumPy would not say why it takes no more
                out: Any = SimpleNamespace(write=stream.write)
                np.lib.format.write_array(out, array, allow_pickle=False)
                flush(stream)
            sums.append(hashlib.sha256(array.data).hexdigest())
        return (), sums

    def load(
        self, folder: str, names: list[str], pieces: list[tuple[int, int, list[str]]]
    ) -> Answer:
        """Read this range of vectors that were saved in other ranges, or the same."""
        vectors = []
        here = [piece for piece in pieces if piece[0] < self.hi and piece[1] > self.lo]
        for k, name in enumerate(names):
            parts = [self._piece(Path(folder), name, lo, hi, sums[k]) for lo, hi, sums in here]
            vectors.append(parts[0] if len(parts) == 1 else np.concatenate(parts))
        return tuple(vectors), None

    def _piece(self, folder: Path, name: str, lo: int, hi: int, digest: str) -> Array:
        path = folder / _piece(name, lo)
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path.name}: {error}") from None
        actual = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
        if len(array) != hi - lo or actual != digest:
            raise InputError(f"{path.name}: was changed after it was written")
        return np.asarray(array[max(self.lo - lo, 0) : self.hi - lo])

    def write(self, folder: str, names: list[str], vectors: tuple[Array, ...]) -> Answer:
        """Write this range into files of all states, which exist."""
        for name, vector in zip(names, vectors, strict=True):
            with (Path(folder) / f"{name}.npy").open("r+b") as stream:
                np.lib.format.read_magic(stream)
                shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
                row = int(np.prod(shape[1:])) * dtype.itemsize
                stream.seek(self.lo * row, os.SEEK_CUR)
                stream.write(np.ascontiguousarray(vector, dtype).data)
                flush(stream)
        return (), None

    # ------------------------------------------------------------------ sweeps

    @cached_property
    def _fitted(self) -> AmbiguitySet:
        return self._ambiguity.fitted(self.model)

    @cached_property
    def _operator(self) -> ExactOperator:
        return ExactOperator(self.model, self._fitted, self._threads)

    @cached_property
    def _mean(self) -> NominalOperator:
        matrix, costs = self.model.mean_matrix()
        return NominalOperator(self.model, matrix, self._threads, costs)

    @cached_property
    def _start(self) -> Any:
        """The operator of the mean kernel that large models begin with."""
        if isinstance(self.model, EventModel):
            return MeanLawOperator(self.model, self._threads)
        return self._mean

    def begin(self) -> Answer:
        """The warm start of the first sweep: memory, and a policy that nobody plays."""
        return self._warm_start, None

    def sweep(
        self, value: Array, policy: Any, accuracy: float, sweeps: int, *warm_start: Array
    ) -> Answer:
        """F at a value of all states, or F^x for a policy that stays with the worker; the warm
        start is that of the last of so many sweeps.
        """
        operator = self._operator
        operator.accuracy = accuracy
        operator.warm_start = WarmStart(SweepMemory(*warm_start[:-1]), warm_start[-1], sweeps)
        return (*self._step(operator, operator, value, policy), *self._warm_start), None

    def _step(self, free: Any, fixed: Any, value: Array, policy: Any) -> tuple[Any, ...]:
        """F at a value by one operator, or F^x for a policy by the other."""
        n = self.hi - self.lo
        update = free.update(value, 0, n) if policy is None else fixed.evaluate(value, policy, 0, n)
        return update.value, update.lower_step, update.upper_step, update.policy

    @property
    def _warm_start(self) -> tuple[Any, ...]:
        warm = self._operator.warm_start
        return *warm.memory, warm.policy

    def sweep_mean(self, value: Array, policy: Any) -> Answer:
        """F, or F^x, with the mean kernel."""
        return self._step(self._start, self._mean, value, policy), None

    # ------------------------------------------------------------------ proofs and chains

    def prove(self, value: Array, policy: Array, fixed: bool, *memory: Array) -> Answer:
        """Bounds of a sweep, by the certificate, and the share of nature's move that is allowed."""
        prover = RobustProver(self.model, self._fitted, self._threads)
        proof = prover.prove(value, policy, SweepMemory(*memory), fixed)
        return (proof.lower_step, proof.upper_step, proof.share), None

    def prove_mean(self, value: Array, policy: Array, fixed: bool) -> Answer:
        """Bounds of a sweep with the mean kernel."""
        proof = self._mean.fixed.prove(value, policy, None, fixed)
        return (proof.lower_step, proof.upper_step), None

    def chain(self, value: Array, policy: Array, sweeps: int, *memory: Array) -> Answer:
        """Transitions of a policy and nature after a sweep at a value."""
        nature = self._operator.nature(value, SweepMemory(*memory), sweeps)
        return chain_arrays(nature.rows(policy)), None

    def chain_mean(self, policy: Array) -> Answer:
        """Transitions of a policy under the mean kernel."""
        start = self._start
        law = isinstance(start, MeanLawOperator)
        return chain_arrays(start.chain(policy) if law else start.nature.rows(policy)), None

    # ------------------------------------------------------------------ proof files

    def write_identity(self, folder: str) -> Answer:
        """Write the digests of the states of this range, for a proof file."""
        proofs.identify(folder, seen_by(self._ambiguity.moves, self.model))
        return (), None

    def write_proof(self, folder: str, more: dict[str, Any], sweeps: int, result: str) -> Answer:
        """Write the part of a proof file on this range; `result` is the folder of a result."""
        arrays = proofs.opened(result, self.lo, self.hi)
        proofs.explain(folder, more, self._operator, sweeps, arrays)
        return (), None

    def mean_rows(self) -> Answer:
        """The mean kernel on the range, where it is small."""
        matrix, costs = self._mean.fixed.matrix, self._mean.fixed.costs
        lengths = np.diff(matrix.indptr)
        return (), (lengths, matrix.indices, matrix.data, costs, self.model.available)

    def dense(self, chain: tuple[Any, ...]) -> Answer:
        """The rows of a chain as a dense array."""
        return (chain_from(chain, self._source.n_states, self._threads).dense(),), None


def chain_arrays(chain: CompactRows | MeanLawChain) -> tuple[Any, ...]:
    """The arrays of a chain."""
    return chain[:-1] if isinstance(chain, MeanLawChain) else chain[1:-1]


def chain_from(arrays: tuple[Any, ...], n_states: int, threads: int) -> Any:
    """The chain of such arrays."""
    if len(arrays) == 4:
        return MeanLawChain(*arrays, threads)
    return CompactRows._make((n_states, *arrays, threads))
