"""How large a radius: solutions along the radius, where decisions change, what robustness costs,
and choice by data.
"""

from drmdp.radius.choose import Choice, choose, cross_validate
from drmdp.radius.credible import credible
from drmdp.radius.critical import Change, critical
from drmdp.radius.measure import Measurements, measure_next
from drmdp.radius.path import PathPoint, RadiusPath, path
from drmdp.sets.confidence import from_counts, sufficient

__all__ = ["Change", "Choice", "Measurements", "PathPoint", "RadiusPath"]
__all__ += ["choose", "credible", "critical", "cross_validate", "from_counts", "measure_next"]
__all__ += ["path", "sufficient"]


def __dir__() -> list[str]:
    return __all__
