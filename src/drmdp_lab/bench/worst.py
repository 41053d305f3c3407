"""Sweeps that are as bad as they get: hundreds of small instances with ties, plateaus and actions
that nearly tie; quantiles of their cost in nominal sweeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from drmdp import instances
from drmdp._typing import Array
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS, AmbiguitySet, Divergence, Wasserstein
from drmdp_lab.bench.sweeps import ACCURACY, nominal_seconds

SIZES = (30, 10, 30)
INSTANCES = 200
LEVELS = (0.5, 0.9, 0.99, 1.0)
RADII = (0.03, 0.1, 0.3, 1.0)
"""One after the other, so that every kind has each of them for a quarter of its instances."""
WARM, ROUNDS = 3, 3


@dataclass(frozen=True)
class WorstRow:
    """Quantiles over the instances, in nominal sweeps over all N kernels."""

    instance: str
    set: str
    instances: int
    warm_50: float
    warm_90: float
    warm_99: float
    warm_100: float
    cold_50: float
    cold_90: float
    cold_99: float
    cold_100: float


def plain(model: Model, value: Array, rng: np.random.Generator) -> tuple[Model, Array]:
    """Costs and values as they come."""
    return model, value


def tied(model: Model, value: Array, rng: np.random.Generator) -> tuple[Model, Array]:
    """All actions of a state are copies of its first."""
    kernels = np.repeat(model.kernels[:, :, :1], model.n_actions, axis=2)
    costs = np.repeat(model.costs[:, :1], model.n_actions, axis=1)
    return Model(kernels, costs=costs, discount=model.discount), value


def near(model: Model, value: Array, rng: np.random.Generator) -> tuple[Model, Array]:
    """Costs of the actions differ by a hundred-thousandth."""
    costs = model.costs[:, :1] + 1e-4 * rng.random((model.n_states, model.n_actions))
    return Model(model.kernels, costs=costs, discount=model.discount), value


def plateaus(model: Model, value: Array, rng: np.random.Generator) -> tuple[Model, Array]:
    """Values are one of three numbers."""
    return model, rng.choice([0.0, 10.0, 10.0 + 1e-9], value.size)


Bend = Callable[[Model, Array, np.random.Generator], tuple[Model, Array]]
KINDS: dict[str, Bend] = {
    "plain": plain,
    "tied actions": tied,
    "nearly tied": near,
    "plateaus": plateaus,
}


def sets() -> list[AmbiguitySet]:
    """Six balls, and two divergences; their radii are replaced."""
    balls: list[AmbiguitySet] = [Wasserstein(0.1, *pair, support="all") for pair in PAIRS]
    return [*balls, Divergence(0.1, "kl", support="all"), Divergence(0.1, "burg", support="all")]


def worst(count: int = INSTANCES) -> Iterator[WorstRow]:
    """A row for each kind and set."""
    for kind, bend in KINDS.items():
        costs = np.array([measured(bend, seed) for seed in range(count)])
        for k, ambiguity in enumerate(sets()):
            warm, cold = np.quantile(costs[:, k], LEVELS, axis=0).T.tolist()
            yield WorstRow(kind, ambiguity.short, count, *warm, *cold)


def measured(bend: Bend, seed: int) -> list[list[float]]:
    """For each set a warm sweep, the least of some along value iteration, and a cold one; the least
    of some rounds, as what else the machine does only makes them longer.
    """
    S, A, N = SIZES
    rng = np.random.default_rng(seed)
    model = instances.perturb(instances.garnet(S, A, seed=seed), N, seed=seed)
    model, value = bend(model, rng.uniform(0, 10, S), rng)
    nominal, found = nominal_seconds(model, 3), []
    for ambiguity in sets():
        own = ambiguity.with_radius(RADII[seed % len(RADII)])
        times = [_round(ExactOperator(model, own, threads=1), value) for _ in range(ROUNDS)]
        found.append((np.min(times, axis=0) / nominal).tolist())
    return found


def _round(operator: ExactOperator, value: Array) -> tuple[float, float]:
    """Seconds of the least warm sweep, at values a little further each, and of the first one."""
    times = []
    operator.accuracy = ACCURACY * operator.model.discount * float(np.ptp(value))
    for k in range(WARM + 1):
        begin = time.process_time()
        operator.update(value * (1 - 1e-3 * k), 0, value.size)
        times.append(time.process_time() - begin)
    return min(times[1:]), times[0]
