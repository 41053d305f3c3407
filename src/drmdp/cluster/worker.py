"""What a worker does: it owns a range of states and answers calls.

A worker holds the part of the model that its range needs, which never changes, and nothing else. What a sweep leaves behind, policies and chains are arguments
and results: an engine keeps them with the worker, and a call names those it begins with. So a call can be repeated, also by another worker
that opens the same range, and gives the same bits.

A call gets the facts of the whole model, then its arguments: of vectors the numbers of the range, of a `Whole` one those of all states. It returns
a tuple of arrays that stay, with a row for each state of the range, and a small object that goes to whoever asked.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.exact import ExactOperator, Left
from drmdp.bellman.fingerprint import fingerprint
from drmdp.bellman.mean_law import MeanLawOperator
from drmdp.bellman.nominal import NominalOperator
from drmdp.certificate import RobustProver
from drmdp.cluster import proofs
from drmdp.cluster.chains import chain_from, kept
from drmdp.cluster.source import Source
from drmdp.core.facts import Facts
from drmdp.core.files import flush
from drmdp.core.vectors import block, block_sums
from drmdp.errors import InputError
from drmdp.layout.memory import Memory
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.lifted import seen_by
from drmdp.sets import AmbiguitySet

Answer = tuple[tuple[Any, ...], Any]


def _piece(name: str, lo: int) -> str:
    return f"{name}-{lo}.npy"


class Worker:
    """A range of states of a model and a set."""

    def __init__(self, source: Source, ball: AmbiguitySet, lo: int, hi: int, threads: int) -> None:
        self.lo, self.hi = lo, hi
        self._source, self._ball, self._threads = source, ball.part(lo, hi), threads
        self._checked = False
        self._facts: Facts | None = None
        self.settle: Callable[[Array], Array] | None = None  # puts where it can stay what is not to be made again
        self._mean_row: Array | None = None
        self._model: Model | None = None
        self._made: dict[str, Any] = {}

    def call(self, name: str, facts: Facts | None, args: tuple[Any, ...]) -> Answer:
        """Answer one call."""
        if facts != self._facts:
            self.forget()
            self._facts = facts
        answer: Answer = getattr(self, name)(*args)
        return answer

    def forget(self, model: bool = True) -> None:
        """Let go of what can be made again; the part of the model, which takes longest, may stay."""
        self._made.clear()
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
                self._mean_row = self.settle(self._model.mean) if self._mean_row is None else self._mean_row
                self._model._set(mean=self._mean_row)
        return self._model

    def survey(self) -> Answer:
        """The facts of this range."""
        return (), self.model.facts

    def given(self, *names: str) -> Answer:
        """Arrays of the model."""
        return tuple(np.array(getattr(self.model, name)) for name in names), None

    def kernels(self) -> Answer:
        """What decides the bits of this process."""
        return (), fingerprint(self._fitted, self._source.head.dtype)

    def digests(self) -> Answer:
        """Digests of the blocks of the model's fingerprint that begin in this range."""
        return (), self._source.digests(self.lo, self.hi)

    def process(self) -> Answer:
        """Number of the process."""
        return (), os.getpid()

    # ------------------------------------------------------------------ vectors

    def apply(self, function: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Answer:
        """A vector: `function`, which treats each state alone, of vectors and numbers."""
        return (function(*args, **settings),), None

    def extremes(self, vectors: tuple[Array, ...]) -> Answer:
        """Smallest and largest number of each vector."""
        return (), [(np.min(vector), np.max(vector)) for vector in vectors]

    def sums(self, pairs: tuple[tuple[Array, Array], ...]) -> Answer:
        """Sums of a·b over the blocks of this range, for each pair a, b of vectors."""
        length = block(self._source.n_states)
        return (), [block_sums(a, b, length) for a, b in pairs]

    def product(self, z: Array, held: tuple[Any, ...]) -> Answer:
        """P z for a vector z of all states and the rows of P on this range."""
        return (chain_from(held, self._source.n_states, self._threads) @ z,), None

    def kinds(self, vectors: tuple[Array, ...]) -> Answer:
        """Shape of a row of each vector, and its type."""
        return (), [(vector.shape[1:], vector.dtype.str) for vector in vectors]

    def tell(self, vector: Array) -> Answer:
        """The numbers of a vector."""
        return (), vector

    def own(self, values: Array) -> Answer:
        """The piece of this range of what is sent to all."""
        return (values[self.lo : self.hi],), None

    # ------------------------------------------------------------------ files

    def save(self, folder: str, names: list[str], vectors: tuple[Array, ...]) -> Answer:
        """Write the pieces of this range, also over those of a worker that died of it; returns a digest of each."""
        sums = []
        for name, vector in zip(names, vectors, strict=True):
            array = np.ascontiguousarray(vector)
            with (Path(folder) / _piece(name, self.lo)).open("wb") as stream:
                out: Any = SimpleNamespace(write=stream.write)  # of a file NumPy would not say why it takes no more
                np.lib.format.write_array(out, array, allow_pickle=False)
                flush(stream)
            sums.append(hashlib.sha256(array.data).hexdigest())
        return (), sums

    def load(self, folder: str, names: list[str], pieces: list[tuple[int, int, list[str]]]) -> Answer:
        """Read this range of vectors that were saved in other ranges, or the same."""
        found = []
        for k, name in enumerate(names):
            own = [
                self._piece(Path(folder), name, lo, hi, sums[k])
                for lo, hi, sums in pieces
                if lo < self.hi and hi > self.lo
            ]
            found.append(own[0] if len(own) == 1 else np.concatenate(own))
        return tuple(found), None

    def _piece(self, folder: Path, name: str, lo: int, hi: int, digest: str) -> Array:
        path = folder / _piece(name, lo)
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path.name}: {error}") from None
        if len(array) != hi - lo or hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() != digest:
            raise InputError(f"{path.name}: was changed after it was written")
        return np.asarray(array[max(self.lo - lo, 0) : self.hi - lo])

    def write(self, folder: str, names: list[str], vectors: tuple[Array, ...]) -> Answer:
        """Write this range into files of all states that are there already."""
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

    @property
    def _fitted(self) -> AmbiguitySet:
        if "set" not in self._made:
            self._made["set"] = self._ball.fitted(self.model)
        found: AmbiguitySet = self._made["set"]
        return found

    @property
    def _operator(self) -> ExactOperator:
        if "operator" not in self._made:
            self._made["operator"] = ExactOperator(self.model, self._fitted, self._threads)
        found: ExactOperator = self._made["operator"]
        return found

    @property
    def _mean(self) -> NominalOperator:
        if "mean" not in self._made:
            matrix, costs = self.model.mean_matrix()
            self._made["mean"] = NominalOperator(self.model, matrix, self._threads, costs)
        found: NominalOperator = self._made["mean"]
        return found

    @property
    def _start(self) -> Any:
        """The operator of the mean kernel that large models begin with."""
        if not isinstance(self.model, EventModel):
            return self._mean
        if "start" not in self._made:
            self._made["start"] = MeanLawOperator(self.model, self._threads)
        return self._made["start"]

    def begin(self) -> Answer:
        """What there is before the first sweep: memory, and a policy that nobody plays."""
        left = self._operator.left
        return (*left.memory, left.policy), None

    def sweep(self, value: Array, accuracy: float, sweeps: int, *left: Array) -> Answer:
        """F at a value of all states, from what the last of so many sweeps left: its memory and policy."""
        operator = self._begun(accuracy, sweeps, left)
        return self._swept(operator.update(value, 0, self.hi - self.lo))

    def evaluate(self, value: Array, policy: Array, accuracy: float, sweeps: int, *left: Array) -> Answer:
        """The same for a policy that is kept."""
        operator = self._begun(accuracy, sweeps, left)
        return self._swept(operator.evaluate(value, policy, 0, self.hi - self.lo))

    def _begun(self, accuracy: float, sweeps: int, left: tuple[Array, ...]) -> ExactOperator:
        operator = self._operator
        operator.accuracy, operator.left = accuracy, Left(Memory(*left[:-1]), left[-1], sweeps)
        return operator

    def _swept(self, update: Any) -> Answer:
        operator = self._operator
        left = operator.left
        return (update.value, update.lower_step, update.upper_step, update.policy, *left.memory, left.policy), None

    def sweep_mean(self, value: Array) -> Answer:
        """F with the mean kernel."""
        return self._plain(self._start.update(value, 0, self.hi - self.lo))

    def evaluate_mean(self, value: Array, policy: Array) -> Answer:
        """The same for a policy that is kept."""
        return self._plain(self._mean.evaluate(value, policy, 0, self.hi - self.lo))

    def _plain(self, update: Any) -> Answer:
        return (update.value, update.lower_step, update.upper_step, update.policy), None

    # ------------------------------------------------------------------ proofs and chains

    def prove(self, value: Array, policy: Array, fixed: bool, *memory: Array) -> Answer:
        """What the certificate proves of a sweep; and the share of nature's move that is surely allowed."""
        proof = RobustProver(self.model, self._fitted, self._threads).prove(value, policy, Memory(*memory), fixed)
        return (proof.lower_step, proof.upper_step, proof.share), None

    def prove_mean(self, value: Array, policy: Array, fixed: bool) -> Answer:
        """The same for the mean kernel."""
        proof = self._mean.fixed.prove(value, policy, None, fixed)
        return (proof.lower_step, proof.upper_step), None

    def chain(self, value: Array, policy: Array, sweeps: int, *memory: Array) -> Answer:
        """Transitions of a policy and nature after a sweep at a value."""
        nature = self._operator.nature(value, Memory(*memory), sweeps)
        return kept(nature.rows(policy)), None

    def chain_mean(self, policy: Array) -> Answer:
        """The same with the mean kernel."""
        start = self._start
        return kept(start.chain(policy) if isinstance(start, MeanLawOperator) else start.nature.rows(policy)), None

    # ------------------------------------------------------------------ proof files

    def identify(self, folder: str) -> Answer:
        """Write what identifies the states of this range in a proof file."""
        proofs.identify(folder, seen_by(self._ball.moves, self.model))
        return (), None

    def explain(self, folder: str, more: dict[str, Any], sweeps: int, held: str) -> Answer:
        """Write what a proof file says of this range; `held` is the folder of a result."""
        own = proofs.Range(self.model, self._fitted, self._operator)
        proofs.explain(folder, more, own, sweeps, proofs.opened(held, self.lo, self.hi))
        return (), None

    def mean_rows(self) -> Answer:
        """The mean kernel on the range, where it is small."""
        fixed = self._mean.fixed
        matrix = fixed.matrix
        return (), (np.diff(matrix.indptr), matrix.indices, matrix.data, fixed.costs, self.model.available)

    def spell(self, held: tuple[Any, ...]) -> Answer:
        """The rows of a chain, written out."""
        return (chain_from(held, self._source.n_states, self._threads).dense(),), None
