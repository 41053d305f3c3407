"""How large a radius: solutions along the radius, where decisions change, what robustness costs, and choice by data."""

from drmdp.radius.choose import Choice, choose, cross_validate
from drmdp.radius.credible import credible
from drmdp.radius.critical import Change, critical
from drmdp.radius.measure import Measurements, measure_next
from drmdp.radius.path import Path, Point, path
from drmdp.sets.confidence import from_counts, sufficient

__all__ = [
    "Change", "Choice", "Measurements", "Path", "Point", "choose", "credible", "critical", "cross_validate", "from_counts", "measure_next",
    "path", "sufficient",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
