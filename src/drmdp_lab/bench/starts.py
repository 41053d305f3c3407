"""What the first solution of a new process costs, for every set: the import, the solution, and what
a second one takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

BALLS = [
    *(
        f"drmdp.Wasserstein(.3, '{m}', {p})"
        for m in ("l1", "l2", "linf")
        for p in (1, 1.01, 1.5, 2, 3, 32, "math.inf")
    ),
    *(
        f"drmdp.Wasserstein(.3, 'transport', {p}, ground=('line', range(10)))"
        for p in (1, "math.inf")
    ),
    *(
        f"drmdp.Divergence(.1, '{kind}', '{around}')"
        for kind in ("kl", "burg", "chi2", "tv")
        for around in ("mean", "kernels")
    ),
    *(f"drmdp.Reweighting(.1, '{kind}')" for kind in ("kl", "burg", "chi2", "tv")),
    "drmdp.Reweighting(kind='cvar', level=.3)",
    "drmdp.Reweighting(kind='any')",
]
SETS = [
    *BALLS,
    *(ambiguity[:-1] + ", rectangular='sa')" for ambiguity in BALLS),
    "drmdp.Intervals.of(model, .3)",
]
"""Every set, as it is written."""

CHILD = """
import json, math, sys, time
begun = time.process_time()
import drmdp
# names are imported when they are asked for
drmdp.Model, drmdp.solve, eval(sys.argv[1].partition("(")[0])
imported = time.process_time()
import numpy as np
rng = np.random.default_rng(0)
kernels, costs = rng.dirichlet(np.ones(10), (20, 10, 2)), rng.random((10, 2))
drawn = time.process_time()
model = drmdp.Model(kernels, costs=costs, discount=.9)
ball = eval(sys.argv[1])
drmdp.solve(model, ball)
first = time.process_time()
drmdp.solve(model, ball)
second = time.process_time()
print(json.dumps([imported - begun, first - drawn, second - first, "numba" in sys.modules]))
"""


@dataclass(frozen=True)
class StartRow:
    """CPU seconds of a process that makes and solves a model of 10 states, 2 actions and 20
    kernels.
    """

    set: str
    import_seconds: float  # of the names that it needs
    first_seconds: float
    second_seconds: float
    numba: str  # whether it was imported


def starts(sets: list[str] = SETS, repeats: int = 2) -> Iterator[StartRow]:
    """The least of some new processes each."""
    for ambiguity in sets:
        runs = [
            json.loads(subprocess.check_output([sys.executable, "-c", CHILD, ambiguity]))
            for _ in range(repeats)
        ]
        imported, first, second = (min(run[k] for run in runs) for k in range(3))
        yield StartRow(
            ambiguity, imported, first, second, "yes" if any(run[3] for run in runs) else "no"
        )
