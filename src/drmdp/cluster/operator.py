"""Operators, chains and proofs on vectors of workers.

A sweep is a call to all workers. Policy, memory and chain stay with them; an `Update` holds
references. Proofs are made by the workers with the certificate of one process, each on its range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import SweepProof
from drmdp.cluster.engine import Engine, Holding, Whole
from drmdp.core.compact import DENSE
from drmdp.layout.memory import SweepMemory
from drmdp.model.state_ranges import ModelFacts
from drmdp.operators.operator import Update
from drmdp.sets import AmbiguitySet
from drmdp.solvers.mean_start import MeanRows
from drmdp.solvers.problem import Problem

N_WARM = len(SweepMemory._fields) + 1
"""Arrays of a warm start: the memory of a sweep and its policy."""


class Outline:
    """A model as the loop sees it: numbers, and vectors that are with the workers."""

    def __init__(self, engine: Engine) -> None:
        head = engine.source.head
        self.facts: ModelFacts = engine.survey()
        self.cost_range = self.facts.cost_range  # of the known costs of available pairs
        self.n_states, self.n_actions = engine.n_states, head.n_actions
        self.discount, self.maximise, self.ends = head.discount, head.maximise, None
        self.discounts = None
        arrays = engine.keep("arrays", "terminal", "available", "initial", n=3)
        self.terminal, self.available, self.initial = arrays


@dataclass(frozen=True)
class WorkerChain:
    """Transitions of a pair, with the workers."""

    engine: Engine
    rows: Holding

    def __matmul__(self, z: Any) -> Any:
        return self.engine.keep("product", Whole(z), self.rows)[0]


def chain_of(engine: Engine, rows: Holding) -> Any:
    """Wrap the rows of a chain; a dense array where one process would have one."""
    if engine.n_states > DENSE:
        return WorkerChain(engine, rows)
    return engine.gather(engine.keep("dense", rows)[0])


@dataclass(frozen=True)
class RemoteWarmStart:
    """The warm start of the next sweep, with the workers, and the number of sweeps so far."""

    arrays: tuple[Any, ...]
    sweeps: int


@dataclass(frozen=True)
class RemoteNature:
    """Nature's answer to a sweep at a value."""

    engine: Engine
    value: Any
    warm_start: RemoteWarmStart
    share: Any = None

    def pulled(self, share: Any) -> RemoteNature:
        """The same with the share (S, N) of her move that is surely allowed."""
        return replace(self, share=share)

    def chain(self, policy: Any) -> Any:
        """Transitions of the pair (policy, nature)."""
        engine, sweeps, memory = self.engine, self.warm_start.sweeps, self.warm_start.arrays[:-1]
        return chain_of(engine, engine.hold("chain", Whole(self.value), policy, sweeps, *memory))


class Distributed:
    """The exact operator of a set, range by range."""

    ambiguity: AmbiguitySet | None
    accuracy = 0.0
    warm_start: RemoteWarmStart | None = None

    def __init__(self, engine: Engine, model: Outline) -> None:
        self.engine, self.model, self.ambiguity = engine, model, engine.ambiguity
        self.chunk, self.threads = engine.n_states, engine.threads

    @property
    def prover(self) -> Distributed:
        """Itself: every worker proves its range."""
        return self

    def update(self, value: Any, start: int, stop: int) -> Update:
        """F at `value`."""
        return self._sweep(value, None)

    def evaluate(self, value: Any, policy: Any, start: int, stop: int) -> Update:
        """F^x at `value`."""
        return self._sweep(value, policy)

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> SweepProof:
        """Bound F, or F^x, at `value`."""
        memory = claim.arrays[:-1]
        return SweepProof(*self.engine.keep("prove", Whole(value), policy, fixed, *memory, n=3))

    def _sweep(self, value: Any, policy: Any) -> Update:
        engine = self.engine
        warm = self.warm_start or RemoteWarmStart(tuple(engine.keep("begin", n=N_WARM)), 0)
        args = (Whole(value), policy, self.accuracy, warm.sweeps, *warm.arrays)
        new, low, high, played, *arrays = engine.keep("sweep", *args, n=4 + N_WARM)
        self.warm_start = RemoteWarmStart(tuple(arrays), warm.sweeps + 1)
        nature = RemoteNature(engine, value, self.warm_start)
        return Update(new, low, high, played, nature, self.warm_start)


class OfMeanKernel(Distributed):
    """The operator of the mean kernel, range by range."""

    def __init__(self, engine: Engine, model: Outline) -> None:
        super().__init__(engine, model)
        self.ambiguity = None

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> SweepProof:
        """Bound the same with the mean kernel."""
        return SweepProof(*self.engine.keep("prove_mean", Whole(value), policy, fixed, n=2))

    def _sweep(self, value: Any, policy: Any) -> Update:
        new, low, high, played = self.engine.keep("sweep_mean", Whole(value), policy, n=4)
        return Update(new, low, high, played, self, self)

    def chain(self, policy: Any) -> Any:
        """Transitions of the policy."""
        return chain_of(self.engine, self.engine.hold("chain_mean", policy))


@dataclass
class DistributedProblem(Problem):
    """A problem whose sweeps and proofs are made by workers."""

    def of_mean_kernel(self) -> Problem:
        """The problem in which nature plays the mean kernel."""
        distributed: Any = self.operator
        operator: Any = OfMeanKernel(distributed.engine, distributed.model)
        return DistributedProblem(operator, self.policy)

    def mean_rows(self) -> MeanRows:
        """The mean kernel, gathered."""
        distributed: Any = self.operator
        parts = distributed.engine.ask("mean_rows")
        joined = (np.concatenate(part) for part in zip(*parts, strict=True))
        lengths, indices, data, costs, available = joined
        indptr = np.append(0, np.cumsum(lengths))
        return MeanRows.of(indptr, indices, data, costs, available, distributed.model.discount)
