"""Measurements behind every figure we quote: ratios inside one run, CPU time, medians of repeats.

Tables are iterators of rows (dataclasses), so that a slow one prints as it goes; `drmdp bench` and `make bench` print them.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np

from drmdp._version import __version__
from drmdp.errors import MissingExtra

TABLES = {
    "sweeps": "warm and cold sweeps in nominal sweeps over the same kernels, one thread",
    "sets": "the same for every other set",
    "solves": "sweeps and CPU milliseconds to certified relative gaps",
    "conic": "the default method against value iteration with conic updates",
    "nominal": "ordinary MDPs beside QuantEcon's policy iteration",
    "auto": "the default method beside value iteration with exact updates, on the instances of the reproduction",
    "growth": "exponents of the cost of a warm sweep",
    "states": "a cold update of one state, N = 1, S = A = 100",
    "threads": "what two threads gain",
    "reports": "CPU seconds and size of a page about a solution",
    "starts": "CPU seconds of the first solution in a new process, for every set",
    "scale": "large sparse models in float32",
    "cluster": "one large model on every engine: digests, exchanges, bytes, memory, seconds against two threads",
    "events": "a warm (l2, 2) sweep of a table of events against that of the kernels it stands for, one thread",
    "events-large": "models of events asked of their function, to a certified relative gap of 1e-3: seconds and memory",
    "robust-mdps": "s-rectangular robust MDPs: certified gap and CPU seconds, beside those published in arXiv:2602.05591",
}
"""Name and meaning of each table."""
ON_DEMAND = ("auto", "reports", "starts", "scale", "cluster", "events", "events-large", "robust-mdps")
"""Those that are made only when they are named."""
PLACES = {
    "sweeps": "sweeps:sweeps",
    "sets": "sweeps:sets",
    "solves": "solves:solves",
    "conic": "solves:against_conic",
    "nominal": "nominal:nominal",
    "auto": "auto:auto",
    "reports": "reports:reports",
    "starts": "starts:starts",
    "scale": "scale:scale",
    "cluster": "cluster:cluster",
    "events": "events:events",
    "events-large": "events:events_large",
    "robust-mdps": "robust_mdps:suite",
}


def table(name: str, *of: Any) -> Iterator[Any]:
    """Rows of a table; "scale", "cluster" and "events-large" take a number of states, "robust-mdps" a folder or none."""
    module, _, function = PLACES.get(name, f"growth:{name}").partition(":")
    try:
        make: Callable[..., Iterator[Any]] = getattr(importlib.import_module(f"drmdp_lab.bench.{module}"), function)
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise MissingExtra("numba", "numba") from error
    return make(*of)


def machine() -> dict[str, str]:
    """Where and when."""
    return {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()} {platform.system()}, {_cores()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "drmdp": __version__,
    }


def _cores() -> int:
    from drmdp.core.threads import count

    return count(None)
