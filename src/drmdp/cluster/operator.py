"""The operators of one process on vectors that are with workers: what the loop, the methods and the certificate are given.

A sweep is a call to all workers. Policy, memory and chain stay with them; an `Update` holds references. Proofs are made by the workers with the
certificate of one process, each on its range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.certificate import Proof, Prover
from drmdp.cluster.engine import Engine, Holding, Whole
from drmdp.core.cached import cached_property
from drmdp.core.compact import DENSE
from drmdp.core.facts import Facts
from drmdp.layout.memory import Memory
from drmdp.sets import AmbiguitySet
from drmdp.solvers.mean_start import Rows
from drmdp.solvers.problem import Problem

LEFT = len(Memory._fields) + 1
"""Arrays that a sweep leaves behind: its memory and its policy."""


class Outline:
    """A model as the loop sees it: numbers, and vectors that are with the workers."""

    def __init__(self, engine: Engine) -> None:
        whole = engine.source.head
        self.facts: Facts = engine.survey()
        self.n_states, self.n_actions = engine.n_states, whole.n_actions
        self.discount, self.maximise, self.ends = whole.discount, whole.maximise, None
        self.discounts = None
        self.terminal, self.available, self.initial = engine.run("given", "terminal", "available", "initial", kept=3)[0]

    @property
    def cost_range(self) -> tuple[float, float]:
        """Smallest and largest known cost of the available pairs; zeros if there are none."""
        return self.facts.cost_range


@dataclass(frozen=True)
class Chain:
    """Transitions of a pair, with the workers."""

    engine: Engine
    rows: Holding

    def __matmul__(self, z: Any) -> Any:
        return self.engine.run("product", Whole(z), self.rows, kept=1, ask=False)[0][0]


def chain_of(engine: Engine, rows: Holding) -> Any:
    """A chain; an array where one process would have one."""
    if engine.n_states > DENSE:
        return Chain(engine, rows)
    return engine.gather(engine.run("spell", rows, kept=1, ask=False)[0][0])


@dataclass(frozen=True)
class Left:
    """What a sweep left with the workers, and which sweep it was."""

    arrays: tuple[Any, ...]
    sweeps: int


@dataclass(frozen=True)
class Nature:
    """What nature plays after a sweep at a value."""

    engine: Engine
    value: Any
    left: Left
    share: Any = None

    def kernel(self) -> Any:
        """Nothing here: see the results."""
        return None

    def pulled(self, share: Any) -> Nature:
        """The same with the share (S, N) of her move that is surely allowed."""
        return replace(self, share=share)

    def chain(self, policy: Any) -> Any:
        """Transitions of the pair (policy, nature)."""
        memory = self.left.arrays[:-1]
        return chain_of(self.engine, self.engine.hold("chain", Whole(self.value), policy, self.left.sweeps, *memory))


class Distributed:
    """The exact operator of a set, range by range."""

    def __init__(self, engine: Engine, model: Outline) -> None:
        self.engine, self.model, self.ball = engine, model, engine.ball
        self.chunk, self.threads = engine.n_states, engine.threads
        self.accuracy = 0.0
        self.left: Left | None = None

    def update(self, value: Any, start: int, stop: int) -> Update:
        """F at `value`."""
        return self._sweep("sweep", value)

    def evaluate(self, value: Any, policy: Any, start: int, stop: int) -> Update:
        """F^x at `value`."""
        return self._sweep("evaluate", value, policy)

    def _sweep(self, name: str, value: Any, *policy: Any) -> Update:
        engine = self.engine
        left = self.left or Left(tuple(engine.run("begin", kept=LEFT, ask=False)[0]), 0)
        args = (Whole(value), *policy, self.accuracy, left.sweeps, *left.arrays)
        new, low, high, played, *arrays = engine.run(name, *args, kept=4 + LEFT, ask=False)[0]
        self.left = Left(tuple(arrays), left.sweeps + 1)
        nature: Any = Nature(engine, value, self.left)
        return Update(new, low, high, played, nature, self.left)


class OfMeanKernel:
    """The operator of the mean kernel, range by range."""

    ball: AmbiguitySet | None = None
    accuracy = 0.0

    def __init__(self, engine: Engine, model: Outline) -> None:
        self.engine, self.model = engine, model
        self.chunk, self.threads = engine.n_states, engine.threads

    def update(self, value: Any, start: int, stop: int) -> Update:
        """Take the best action in every state."""
        return self._result(self.engine.run("sweep_mean", Whole(value), kept=4, ask=False)[0])

    def evaluate(self, value: Any, policy: Any, start: int, stop: int) -> Update:
        """Follow `policy`."""
        return self._result(self.engine.run("evaluate_mean", Whole(value), policy, kept=4, ask=False)[0])

    def _result(self, found: list[Any]) -> Update:
        new, low, high, policy = found
        nature: Any = self
        return Update(new, low, high, policy, nature, self)

    def kernel(self) -> Any:
        """Nothing here."""
        return None

    def pulled(self, share: Any) -> OfMeanKernel:
        """What is fixed is not moved."""
        return self

    def chain(self, policy: Any) -> Any:
        """Transitions of the policy."""
        return chain_of(self.engine, self.engine.hold("chain_mean", policy))


@dataclass(frozen=True)
class WorkersProver:
    """Has every worker prove its range."""

    engine: Engine
    mean: bool

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> Proof:
        """Bound F, or F^x, at `value`."""
        if self.mean:
            return Proof(*self.engine.run("prove_mean", Whole(value), policy, fixed, kept=2, ask=False)[0])
        memory = claim.arrays[:-1]
        return Proof(*self.engine.run("prove", Whole(value), policy, fixed, *memory, kept=3, ask=False)[0])


@dataclass
class DistributedProblem(Problem):
    """A problem whose sweeps and proofs are made by workers."""

    def of_mean_kernel(self) -> Problem:
        """The problem in which nature plays the mean kernel."""
        own: Any = self.operator
        operator: Any = OfMeanKernel(own.engine, own.model)
        return DistributedProblem(operator, self.policy)

    def mean_rows(self) -> Rows:
        """The mean kernel, gathered."""
        own: Any = self.operator
        parts = own.engine.run("mean_rows", kept=0)[1]
        lengths, indices, data, costs, available = (np.concatenate(part) for part in zip(*parts, strict=True))
        indptr = np.append(0, np.cumsum(lengths))
        return Rows.of(indptr, indices, data, costs, available, own.model.discount)

    @cached_property
    def _prover(self) -> Prover:
        return WorkersProver(self.operator.engine, self.operator.ball is None)  # type: ignore[attr-defined]
