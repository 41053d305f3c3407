"""The first-order method on trial: what each part of its preset is worth, the entropy, and how many
multipliers its proximal maps try.

Runs go to a certified (DG) <= .05 on one thread. The ball binds at the smaller radius of each
domain and hardly at the larger. Garnet has costs in [0, 10]; with rewards, as in the paper, and
beside other methods, it is run by `drmdp reproduce`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from drmdp import instances
from drmdp.api import solve
from drmdp.model import Model
from drmdp.operators.build import build
from drmdp.sets import PAIRS, Wasserstein
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.problem import Problem
from drmdp_lab.bench.sweeps import cpu

TARGET, LIMIT = 0.05, 4000
LONG, REPEATS = 0.3, 5
"""A run of at most so many seconds is made so many times more, and their median counts."""
CASES = (("garnet", math.sqrt(6)), ("garnet", 0.3), ("machine", 0.5), ("forest", 0.5))
"""Instances and radii on which the parts of the preset are tried."""
DOMAINS = ("garnet", "machine", "forest")
PARTS: dict[str, tuple[bool, dict[str, Any]]] = {
    "paper": (False, {}),
    "paper, entropy for x": (False, {"setup": "entropy"}),
    "paper, centred": (False, {"centre": True}),
    "paper, Mirror Prox": (False, {"steps": "mirror-prox"}),
    "paper, last step": (False, {"output": "last"}),
    "preset": (True, {}),
    "preset, ratio 1": (True, {"step_ratio": 1.0}),
    "preset, not centred": (True, {"centre": False}),
    "preset from v = 0 and uniform": (True, {"origin": "zero"}),
    "preset, average": (True, {"output": "average"}),
    "preset, entropy for x": (True, {"setup": "entropy"}),
}
"""Whether a variant is one of the preset, and what is changed."""
ENTROPY = {
    "paper": PARTS["paper"],
    "paper, entropy for nature": (False, {"setup": "entropy-nature"}),
    "preset": PARTS["preset"],
    "preset, entropy for nature": (True, {"setup": "entropy-nature"}),
}


@dataclass(frozen=True)
class VariantRow:
    """One run of one variant."""

    instance: str
    set: str
    radius: float
    variant: str
    iterations: int | None  # none: not there after `LIMIT`
    ms: float  # CPU


def model_of(name: str, n_states: int, n_actions: int, n_kernels: int, seed: int = 0) -> Model:
    """An instance of the paper, with costs."""
    nominal = {
        "garnet": lambda: instances.garnet(n_states, n_actions, seed=seed),
        "machine": lambda: instances.machine(n_states),
        "forest": lambda: instances.forest(n_states),
    }[name]()
    return instances.perturb(nominal, n_kernels, seed=seed)


def variants(n: int = 30, kernels: tuple[int, int] = (5, 30)) -> Iterator[VariantRow]:
    """Parts of the preset with N = 5 and (l2, 2), entropies with N = 30 and (linf, inf)."""
    for name, radius in CASES:
        yield from _tried(name, n, kernels[0], Wasserstein(radius, support="all"), PARTS)
    for name in DOMAINS:
        for radius in (0.03, 0.1):
            ball = Wasserstein(radius, "linf", math.inf, support="all")
            yield from _tried(name, n, kernels[1], ball, ENTROPY)


def _tried(
    name: str, n: int, n_kernels: int, ball: Wasserstein, which: Any
) -> Iterator[VariantRow]:
    model = model_of(name, n, n, n_kernels)
    label = f"{name} {n}/{model.n_actions}/{n_kernels}"
    for variant, (fast, changed) in which.items():
        kind = FirstOrder.fast if fast else FirstOrder
        method = kind(stop="duality-gap", **changed)
        rest: Any = {"tol": TARGET, "max_iters": LIMIT, "threads": 1, "progress": False}
        call = partial(solve, model, ball, method, **rest)
        begin = time.process_time()
        found = call()
        once = time.process_time() - begin
        reached = found.n_iters if found.duality_gap <= TARGET else None
        seconds = once if once > LONG else cpu(call, REPEATS)
        yield VariantRow(label, ball.short, ball.radius, variant, reached, 1e3 * seconds)


@dataclass(frozen=True)
class TrialsRow:
    """Mean multipliers a proximal map tries, where the ball binds."""

    variant: str
    set: str
    radius: float
    first: float | None  # in the first step in which it binds; none: it never does
    later: float | None


def trials(n: int = 30, n_steps: int = 204) -> Iterator[TrialsRow]:
    """Garnet S = A = N, six balls at three radii, the paper's variant and the preset."""
    model = model_of("garnet", n, n, n, 1)
    for metric, order in PAIRS:
        for radius in (0.1, 0.3, 1.0):
            own = radius / 3 if metric == "linf" else radius
            ball = Wasserstein(own, metric, order, support="all")
            for variant, method, steps in (
                ("paper", FirstOrder(check_every=10**9), n_steps),
                ("preset", FirstOrder.fast(check_every=10**9), n_steps // 6),
            ):
                yield TrialsRow(variant, ball.short, own, *_trials(model, ball, method, steps))


def _trials(model: Model, ball: Wasserstein, method: Any, n_steps: int) -> list[float | None]:
    """Means over the rows of the first step in which any binds, and of the later ones."""
    problem = Problem(build(model, ball, "exact", 1))
    state = method.init(problem, None)
    rows = []
    for _ in range(n_steps):
        state = method.step(problem, state)
        tried = state.players.trials
        rows += [tried[tried > 0]] if (tried > 0).any() else []
    parts = rows[:1], rows[1:]
    return [float(np.concatenate(part).mean()) if part else None for part in parts]
