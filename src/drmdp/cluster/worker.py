"""What a worker does: it owns a range of states and answers calls.

A worker holds the part of the model that its range needs, which never changes, and nothing else. What a sweep leaves behind, policies and chains are arguments
and results: an engine keeps them with the worker, and a call names those it begins with. So a call can be repeated, also by another worker
that opens the same range, and gives the same bits.

A call gets the facts of the whole model, then its arguments: of vectors the numbers of the range, of a `Whole` one those of all states. It returns
a tuple of arrays that stay, with a row for each state of the range, and a small object that goes to whoever asked.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.exact import ExactOperator, Left
from drmdp.bellman.fingerprint import fingerprint
from drmdp.bellman.nominal import NominalOperator
from drmdp.certificate import RobustProver
from drmdp.cluster.source import Source
from drmdp.core.compact import Rows
from drmdp.core.facts import Facts, facts_of
from drmdp.core.vectors import block, block_sums
from drmdp.layout.memory import Memory
from drmdp.model import Model
from drmdp.sets import AmbiguitySet

Answer = tuple[tuple[Any, ...], Any]
PARTS = tuple(f.name for f in fields(Rows) if f.name not in ("n_columns", "threads"))


class Worker:
    """A range of states of a model and a set."""

    def __init__(self, source: Source, ball: AmbiguitySet, lo: int, hi: int, threads: int) -> None:
        self.lo, self.hi = lo, hi
        self._source, self._ball, self._threads = source, ball.part(lo, hi), threads
        self._checked = False
        self._model: Model | None = None
        self._made: dict[str, Any] = {}

    def call(self, name: str, facts: Facts | None, args: tuple[Any, ...]) -> Answer:
        """Answer one call."""
        if facts is not None and self.model.__dict__.get("facts") != facts:
            self._made.clear()
            self.model._set(facts=facts)
        answer: Answer = getattr(self, name)(*args)
        return answer

    def forget(self) -> None:
        """Let go of what can be made again."""
        self._made.clear()
        self._model = None

    # ------------------------------------------------------------------ the model

    @property
    def model(self) -> Model:
        """The part of the model."""
        if self._model is None:
            self._model = self._source.part(self.lo, self.hi, self._checked)
            self._checked = True
        return self._model

    def survey(self) -> Answer:
        """The facts of this range."""
        return (), facts_of(self.model)

    def given(self, *names: str) -> Answer:
        """Arrays of the model."""
        return tuple(np.array(getattr(self.model, name)) for name in names), None

    def kernels(self) -> Answer:
        """What decides the bits of this process."""
        return (), fingerprint(self._ball, self._source.head.dtype)

    def digests(self) -> Answer:
        """Digests of the blocks of the model's fingerprint that begin in this range."""
        return (), self._source.digests(self.lo, self.hi)

    def process(self) -> Answer:
        """Number of the process."""
        return (), os.getpid()

    # ------------------------------------------------------------------ vectors

    def apply(self, function: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Answer:
        """`function` of vectors, state by state."""
        return (function(*args, **settings),), None

    def fold(self, function: Any, *args: Any) -> Answer:
        """A number from vectors."""
        return (), function(*args)

    def tell(self, vector: Array) -> Answer:
        """The numbers of a vector."""
        return (), vector

    def own(self, values: Array) -> Answer:
        """The piece of this range of what is sent to all."""
        return (values[self.lo : self.hi],), None

    def sums(self, a: Array, b: Array) -> Answer:
        """Sums of a·b over the blocks of this range."""
        return (), block_sums(a, b, block(self.model.n_next))

    # ------------------------------------------------------------------ sweeps

    @property
    def _operator(self) -> ExactOperator:
        if "operator" not in self._made:
            self._made["operator"] = ExactOperator(self.model, self._ball, self._threads)
        found: ExactOperator = self._made["operator"]
        return found

    @property
    def _mean(self) -> NominalOperator:
        if "mean" not in self._made:
            matrix = self.model.blocks.matrix(self.model.mean)
            self._made["mean"] = NominalOperator(self.model, matrix, self._threads)
        found: NominalOperator = self._made["mean"]
        return found

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
        return self._plain(self._mean.update(value, 0, self.hi - self.lo))

    def evaluate_mean(self, value: Array, policy: Array) -> Answer:
        """The same for a policy that is kept."""
        return self._plain(self._mean.evaluate(value, policy, 0, self.hi - self.lo))

    def _plain(self, update: Any) -> Answer:
        return (update.value, update.lower_step, update.upper_step, update.policy), None

    # ------------------------------------------------------------------ proofs and chains

    def prove(self, value: Array, policy: Array, fixed: bool, *memory: Array) -> Answer:
        """What the certificate proves of a sweep; and the share of nature's move that is surely allowed."""
        proof = RobustProver(self.model, self._ball, self._threads).prove(value, policy, Memory(*memory), fixed)
        return (proof.lower_step, proof.upper_step, proof.share), None

    def prove_mean(self, value: Array, policy: Array, fixed: bool) -> Answer:
        """The same for the mean kernel."""
        proof = self._mean.fixed.prove(value, policy, None, fixed)
        return (proof.lower_step, proof.upper_step), None

    def chain(self, value: Array, policy: Array, sweeps: int, *memory: Array) -> Answer:
        """Transitions of a policy and nature after a sweep at a value."""
        nature = self._operator.nature(value, Memory(*memory), sweeps)
        return self._rows(nature.rows(policy))

    def chain_mean(self, policy: Array) -> Answer:
        """The same with the mean kernel."""
        return self._rows(self._mean.nature.rows(policy))

    def _rows(self, rows: Rows) -> Answer:
        return tuple(getattr(rows, name) for name in PARTS), None

    def product(self, z: Array, rows: tuple[Any, ...]) -> Answer:
        """P z on the range."""
        return (self._chain(rows) @ z,), None

    def spell(self, rows: tuple[Any, ...]) -> Answer:
        """The rows of a chain, written out."""
        return (self._chain(rows).dense(),), None

    def _chain(self, rows: tuple[Any, ...]) -> Rows:
        return Rows(self.model.n_next, **dict(zip(PARTS, rows, strict=True)), threads=self._threads)
