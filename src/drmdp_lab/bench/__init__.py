"""Measurements behind the figures we quote: ratios inside one run, CPU time, repeats.

Tables are iterators of rows (dataclasses), so that a slow one prints as it goes; `drmdp bench` and
`make bench` print them, and `saved` keeps them in a file and compares with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from drmdp.errors import MissingExtra


class Table(NamedTuple):
    """What is measured, and what of it is compared with an earlier run."""

    place: str  # module:function
    meaning: str
    key: tuple[str, ...] = ()  # fields that name a row
    times: tuple[str, ...] = ()  # compared in units of `sweeps.unit_seconds` of their run
    ratios: tuple[str, ...] = ()  # compared as they are: ratios of times, and counts of work
    on_demand: bool = False  # made only when it is named
    takes: str = ""  # "states" or "folder": what its function is given


SWEEP = ("instance", "set", "radius")
TABLES = {
    "sweeps": Table(
        "sweeps:sweeps",
        "warm and cold sweeps in nominal sweeps over the same kernels, one thread",
        SWEEP,
        ratios=("warm", "cold"),
    ),
    "sets": Table("sweeps:sets", "the same for every other set", SWEEP, ratios=("warm", "cold")),
    "worst": Table(
        "worst:worst",
        "sweeps over hundreds of instances with ties and plateaus: quantiles, in nominal sweeps",
        ("instance", "set"),
        ratios=("warm_50", "warm_99", "cold_50", "cold_99"),
    ),
    "solves": Table(
        "solves:solves",
        "sweeps and CPU milliseconds to certified relative gaps",
        ("instance", "set", "discount"),
        times=("ms",),
        ratios=("sweeps",),
    ),
    "certificate": Table(
        "shares:certificate",
        "the share of the certificate in the CPU time of a solve",
        ("instance", "set"),
        times=("solve_ms",),
        ratios=("share",),
    ),
    "growth": Table(
        "growth:growth",
        "exponents of the cost of a warm sweep, with their 95 % interval",
        ("set", "size"),
        times=("ms",),
    ),
    "threads": Table(
        "growth:threads", "what two threads gain", ("instance", "what"), ratios=("two_over_one",)
    ),
    "radii": Table(
        "radii:radii",
        "radii a second along a path, every one certified, one thread",
        ("states", "set"),
        times=("seconds",),
        ratios=("sweeps_a_radius",),
    ),
    "year": Table(
        "radii:year",
        "a year of logs by month: estimate, choose a radius by cross-validation, solve",
        ("stage", "rows"),
        times=("cpu_seconds",),
    ),
    "variants": Table(
        "first_order:variants",
        "the first-order method and the parts of its preset to (DG) <= .05",
        ("instance", "set", "radius", "variant"),
        times=("ms",),
        ratios=("iterations",),
    ),
    "trials": Table(
        "first_order:trials",
        "multipliers that its proximal maps try where the ball binds",
        ("variant", "set", "radius"),
        ratios=("first", "later"),
    ),
    "preset": Table(
        "shares:preset",
        "where the time of the preset goes",
        ("instance", "radius", "part"),
        times=("ms",),
    ),
    "starts": Table(
        "starts:starts",
        "CPU seconds of the first solution in a new process, for every set",
        ("set",),
        times=("import_seconds", "first_seconds", "second_seconds"),
    ),
    "scale": Table(
        "scale:scale",
        "large sparse models in float32, two threads",
        ("instance", "n_states", "set", "radius", "support"),
        times=("cpu_seconds",),
        ratios=("sweeps",),
        takes="states",
    ),
    "clone": Table(
        "clone:clone",
        "from a clone to the first answer: wall and CPU seconds of each stage; downloads",
        ("stage",),
        on_demand=True,
    ),
    "cluster": Table(
        "cluster:cluster",
        "one large model on every engine: digests, exchanges, bytes, memory, seconds",
        ("engine", "n_states"),
        ratios=("ratio",),
        on_demand=True,
        takes="states",
    ),
    "events": Table(
        "events:events",
        "a warm (l2, 2) sweep of a table of events against that of the kernels it stands for",
        ("n_states", "actions", "events", "laws"),
        ratios=("ratio",),
        on_demand=True,
    ),
    "events-large": Table(
        "events:events_large",
        "models of events asked of their function, to a certified relative gap of 1e-3",
        ("n_states", "laws"),
        times=("cpu_seconds",),
        ratios=("sweeps",),
        on_demand=True,
        takes="states",
    ),
    "robust-mdps": Table(
        "robust_mdps:suite",
        "s-rectangular robust MDPs: gap and CPU seconds, beside those of arXiv:2602.05591",
        ("instance", "level", "set"),
        times=("seconds",),
        ratios=("sweeps",),
        on_demand=True,
        takes="folder",
    ),
}


def table(name: str, *of: Any) -> Iterator[Any]:
    """Rows of a table, which is given a number of states or a folder if it takes one."""
    module, _, function = TABLES[name].place.partition(":")
    try:
        make: Callable[..., Iterator[Any]] = getattr(
            importlib.import_module(f"drmdp_lab.bench.{module}"), function
        )
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise MissingExtra("numba", "numba") from error
    return make(*of)
