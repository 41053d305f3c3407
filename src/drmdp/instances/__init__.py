"""Families of test problems: the paper's three, its sampled kernels, and four of our own.

A family draws the same problem again for the same seed, whether stored dense or sparse, in memory
or straight into a directory (``drmdp instance … --out large.drmdp``, which takes the memory of
4,096 states).
"""

from collections.abc import Callable
from inspect import unwrap

from drmdp.instances._source import ProblemSource
from drmdp.instances.chains import cycle, ring
from drmdp.instances.forest import forest
from drmdp.instances.garnet import garnet
from drmdp.instances.grid import grid
from drmdp.instances.machine import machine
from drmdp.instances.perturb import perturb
from drmdp.instances.reservoir import reservoir
from drmdp.model import Model

__all__ = ["FAMILIES", "cycle", "forest", "garnet", "grid", "machine", "perturb", "reservoir"]
__all__ += ["ring"]


def __dir__() -> list[str]:
    return __all__


FAMILIES: dict[str, Callable[..., Model]] = {
    make.__name__: make for make in (garnet, machine, forest, ring, cycle, grid, reservoir)
}
"""Families by name; `perturb` is none, it samples kernels around a model."""

SOURCES: dict[str, Callable[..., ProblemSource]] = {
    name: unwrap(make) for name, make in FAMILIES.items()
}
"""The same problems, to be drawn block by block."""
