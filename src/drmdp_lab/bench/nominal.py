"""Ordinary MDPs, radius 0, beside QuantEcon's policy iteration: CPU milliseconds of one thread, in turn, the least of several."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from drmdp import instances
from drmdp.api import solve
from drmdp.model import Model
from drmdp.sets import Wasserstein

REPEATS = 7


@dataclass(frozen=True)
class NominalRow:
    """Both on one model; ours comes with a proof."""

    instance: str
    states: int
    actions: int
    discount: float
    ours_ms: float
    quantecon_ms: float
    ratio: float


def nominal() -> Iterator[NominalRow]:
    """The table."""
    from threadpoolctl import threadpool_limits

    from drmdp.formats.quantecon import to_quantecon

    with threadpool_limits(1):
        for discount in (0.95, 0.999):
            for name, model in _models(discount):
                peer = to_quantecon(model, kernel="mean")
                ours, theirs = in_turn(
                    lambda model=model: solve(model, Wasserstein(0.0), threads=1, progress=False),  # type: ignore[misc]
                    lambda peer=peer: peer.solve(method="policy_iteration"),  # type: ignore[misc]
                )
                sizes = model.n_states, model.n_actions
                yield NominalRow(name, *sizes, discount, 1e3 * ours, 1e3 * theirs, ours / theirs)


def _models(discount: float) -> Iterator[tuple[str, Model]]:
    for S, A in ((30, 10), (100, 10), (300, 10), (1000, 10), (2000, 4)):
        yield "garnet", instances.garnet(S, A, discount=discount)
    for S in (100, 300, 1000):
        yield "ring", instances.ring(S, 1, discount=discount)
    for S in (100, 300):
        yield "machine", instances.machine(S, discount=discount)
    for S in (300, 1000):
        yield "forest", instances.forest(S, discount=discount)


def in_turn(*calls: Callable[[], Any]) -> list[float]:
    """Least CPU seconds of each, the first round left out."""
    least = [float("inf")] * len(calls)
    for k in range(REPEATS + 1):
        for n, call in enumerate(calls):
            begin = time.process_time()
            call()
            if k:
                least[n] = min(least[n], time.process_time() - begin)
    return least
