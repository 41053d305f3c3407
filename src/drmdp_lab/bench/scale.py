"""Large sparse models, each solved in a process of its own, so that its memory can be told.

A = 4, N = 10, 8 next states a pair, float32 storage, discount .95, (l2, 2) and the other pairs, to
a certified relative gap of 1e-3.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drmdp import formats, instances
from drmdp.api import solve
from drmdp.model import Model
from drmdp.sets import PAIRS
from drmdp.sets.wasserstein import Pair, Wasserstein
from drmdp_lab.bench.growth import sparse_garnet

GAP = 1e-3
KINDS = ("garnet", "grid")
SUPPORTS = ("all", "observed")


@dataclass(frozen=True)
class ScaleRow:
    """One solve."""

    instance: str
    n_states: int
    set: str
    radius: float
    support: str
    status: str
    sweeps: float
    seconds: float  # wall
    cpu_seconds: float
    model_gb: float  # as stored
    peak_gb: float  # of the process beyond the interpreter and its libraries


def made(kind: str, n_states: int) -> Model:
    """The model in float32."""
    side = round(n_states**0.5)
    model = (
        sparse_garnet(n_states)
        if kind == "garnet"
        else instances.grid(side * side, 10, sparse=True)
    )
    return model.astype(np.float32)


def scale(n_states: int, pairs: tuple[Pair, ...] | None = None) -> Iterator[ScaleRow]:
    """The table of large solves: (l2, 2) everywhere, the other pairs at radius .1."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder) / f"{kind}.drmdp"
            _child("make", kind, str(n_states), str(path))
            for metric, order in pairs or PAIRS:
                radii = (0.1, 0.5) if (metric, order) == ("l2", 2) else (0.1,)
                for radius in radii:
                    for support in SUPPORTS:
                        settings = (str(path), metric, repr(float(order)), repr(radius), support)
                        found = json.loads(_child("solve", *settings))
                        yield ScaleRow(
                            kind,
                            set=f"({metric}, {order:g})",
                            radius=radius,
                            support=support,
                            **found,
                        )


def _child(*arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "drmdp_lab.bench.scale", *arguments],
        stdout=subprocess.PIPE,
        check=True,
    )
    return run.stdout.decode()


def _peak() -> float:
    """Largest resident memory so far, in GB."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1e9 if sys.platform == "darwin" else 1e6)


def _solve(path: str, metric: str, order: str, radius: str, support: str) -> dict[str, object]:
    ambiguity = Wasserstein(float(radius), metric, float(order), support)
    solve(made("garnet", 2000), ambiguity, tol=1.0)  # load what is needed
    before = _peak()
    model = formats.read(path)
    begin, cpu = time.perf_counter(), time.process_time()
    solution = solve(
        model, ambiguity, tol=GAP * max(map(abs, model.cost_range)) / (1 - model.discount)
    )
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {
        "n_states": model.n_states,
        "status": str(solution.status),
        "sweeps": solution.kernel_passes,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "model_gb": model.blocks.nbytes / 1e9,
        "peak_gb": _peak() - before,
    }


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    if task == "make":
        formats.write(made(rest[0], int(rest[1])), rest[2])
    else:
        sys.stdout.write(json.dumps(_solve(*rest)))
