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

TABLES = {
    "sweeps": "warm and cold sweeps in nominal sweeps over the same kernels, one thread",
    "solves": "sweeps and CPU milliseconds to certified relative gaps",
    "conic": "the default method against value iteration with conic updates",
    "growth": "exponents of the cost of a warm sweep",
    "states": "a cold update of one state, N = 1, S = A = 100",
    "threads": "what two threads gain",
    "scale": "large sparse models in float32",
}
"""Name and meaning of each table."""


def table(name: str, n_states: int = 100_000) -> Iterator[Any]:
    """Rows of a table; `n_states` is for "scale"."""
    where = {"sweeps": "sweeps", "solves": "solves", "conic": "solves", "scale": "scale"}.get(name, "growth")
    module = importlib.import_module(f"drmdp_lab.bench.{where}")
    make: Callable[..., Iterator[Any]] = getattr(module, {"conic": "against_conic"}.get(name, name))
    return make(n_states) if name == "scale" else make()


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
