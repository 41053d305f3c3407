"""Families of test problems: the paper's three, its sampled kernels, and four of our own.

A family draws the same problem again for the same seed, whether stored dense or sparse, in memory or straight into a directory
(``drmdp instance … --out large.drmdp``, which takes the memory of 4,096 states).
"""

from collections.abc import Callable

from drmdp.instances import chains
from drmdp.instances import forest as _forest
from drmdp.instances import garnet as _garnet
from drmdp.instances import grid as _grid
from drmdp.instances import machine as _machine
from drmdp.instances import reservoir as _reservoir
from drmdp.instances._source import Source
from drmdp.instances.chains import cycle, ring
from drmdp.instances.forest import forest
from drmdp.instances.garnet import garnet
from drmdp.instances.grid import grid
from drmdp.instances.machine import machine
from drmdp.instances.perturb import perturb
from drmdp.instances.reservoir import reservoir
from drmdp.model import Model

__all__ = ["FAMILIES", "cycle", "forest", "garnet", "grid", "machine", "perturb", "reservoir", "ring"]


def __dir__() -> list[str]:
    return __all__


FAMILIES: dict[str, Callable[..., Model]] = {
    "garnet": garnet,
    "machine": machine,
    "forest": forest,
    "ring": ring,
    "cycle": cycle,
    "grid": grid,
    "reservoir": reservoir,
}
"""Every family by name; `perturb` is not one, it samples kernels around a model."""

SOURCES: dict[str, Callable[..., Source]] = {
    "garnet": _garnet.source,
    "machine": _machine.source,
    "forest": _forest.source,
    "ring": chains.ring_source,
    "cycle": chains.cycle_source,
    "grid": _grid.source,
    "reservoir": _reservoir.source,
}
"""The same problems, to be drawn block by block."""
