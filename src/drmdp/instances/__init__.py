"""Families of test problems: the paper's three, its sampled kernels, and four of our own.

A family draws the same problem again for the same seed, whether stored dense or sparse.
"""

from collections.abc import Callable

from drmdp.instances.chains import cycle, ring
from drmdp.instances.forest import forest
from drmdp.instances.garnet import garnet
from drmdp.instances.grid import grid
from drmdp.instances.machine import machine
from drmdp.instances.perturb import perturb
from drmdp.instances.reservoir import reservoir
from drmdp.model import Model

__all__ = ["FAMILIES", "cycle", "forest", "garnet", "grid", "machine", "perturb", "reservoir", "ring"]

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
