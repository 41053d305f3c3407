"""Where the CPU time of a solve goes: parts of it are timed where they are called."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp import instances
from drmdp.api import solve
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, Divergence, Intervals, Reweighting, Wasserstein
from drmdp.solvers import first_order
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.first_order.players import PlayerTuple
from drmdp.solvers.incumbent import Incumbent
from drmdp.solvers.pair_bounds import PairEvaluator
from drmdp_lab.bench.growth import sparse_garnet

REPEATS = 7
Parts = Mapping[str, tuple[tuple[Any, str], ...]]
"""Functions by the name of a part, each as an owner and an attribute."""
PROOF: Parts = {"certificate": ((Incumbent, "prove"),)}
PRESET: Parts = {
    "start": ((FirstOrder, "init"),),
    "steps": ((PlayerTuple, "step"), (PlayerTuple, "face")),
    "forecast": ((PlayerTuple, "forecast"),),
    "answer": ((first_order, "_claim"),),
    "judging": ((PairEvaluator, "evaluate"),),
    "proof": ((PairEvaluator, "proved"),),
}
"""Parts of a run of the preset: what comes before steps, the steps of both players, the forecasts
that say when to look, the N kernels of the answer, the values of its pair, and its proof."""


@contextmanager
def clocked(parts: Parts) -> Iterator[dict[str, float]]:
    """CPU seconds of each part, without the parts that are called inside it again."""
    spent, before = dict.fromkeys(parts, 0.0), []
    inside: list[str] = []

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **settings: Any) -> Any:
            if inside:
                return function(*given, **settings)
            inside.append(name)
            begin = time.process_time()
            try:
                return function(*given, **settings)
            finally:
                spent[name] += time.process_time() - begin
                inside.pop()

        return call

    try:
        for name, places in parts.items():
            for owner, attribute in places:
                function = getattr(owner, attribute)
                before.append((owner, attribute, function))
                setattr(owner, attribute, wrapped(name, function))
        yield spent
    finally:
        for owner, attribute, function in before:
            setattr(owner, attribute, function)


def share(call: Callable[[], Any], parts: Parts) -> tuple[float, dict[str, float]]:
    """Median CPU seconds of a call and of its parts, after a first one."""
    rows = []
    call()
    for _ in range(REPEATS):
        with clocked(parts) as spent:
            begin = time.process_time()
            call()
            rows.append([time.process_time() - begin, *spent.values()])
    whole, *each = np.median(rows, axis=0).tolist()
    return whole, dict(zip(parts, each, strict=True))


@dataclass(frozen=True)
class CertificateRow:
    """A solve to the default relative gap of 1e-6, one thread."""

    instance: str
    set: str
    states: int
    solve_ms: float
    certificate_ms: float
    share: float


def models() -> Iterator[tuple[str, Model]]:
    """Small and large, dense and sparse."""
    for S, A, N in ((10, 2, 10), (30, 30, 30), (100, 10, 10)):
        model = instances.perturb(instances.garnet(S, A, discount=0.95), N)
        yield f"garnet {S}/{A}/{N}", model
    for S in (1000, 10_000):
        yield f"sparse {S}/4/10", sparse_garnet(S)


def certificate() -> Iterator[CertificateRow]:
    """The table."""
    for name, model in models():
        sets: tuple[AmbiguitySet, ...] = (
            Wasserstein(0.1, "l1", 1),
            Wasserstein(0.1),
            Wasserstein(0.1, "linf", math.inf),
            Divergence(0.1, "kl"),
            Reweighting(0.1, "kl"),
            Intervals.of(model, 0.01),
        )
        for ambiguity in sets:

            def solved(model: Model = model, ambiguity: AmbiguitySet = ambiguity) -> None:
                model.cache.clear()
                solve(model, ambiguity, threads=1, progress=False)

            whole, parts = share(solved, PROOF)
            proof = parts["certificate"]
            label = ambiguity.short
            sizes = model.n_states, 1e3 * whole, 1e3 * proof, proof / whole
            yield CertificateRow(name, label, *sizes)


@dataclass(frozen=True)
class PresetRow:
    """A part of a run of the preset to (DG) <= .05 on garnet with rewards, S = A = N = 30."""

    instance: str
    radius: float
    part: str
    ms: float
    share: float


def preset() -> Iterator[PresetRow]:
    """All of it first, then the parts, and what is in none of them."""
    model = instances.perturb(instances.garnet(30, 30, rewards=True), 30)
    method = FirstOrder.fast(stop="duality-gap")
    for radius in (0.3, math.sqrt(6)):
        ball = Wasserstein(radius, support="all")

        def solved(ball: Wasserstein = ball) -> None:
            solve(model, ball, method, tol=0.05, threads=1, progress=False)

        whole, parts = share(solved, PRESET)
        rest = max(0.0, whole - sum(parts.values()))
        for part, seconds in {"all": whole, **parts, "rest": rest}.items():
            yield PresetRow("garnet 30/30/30", radius, part, 1e3 * seconds, seconds / whole)
