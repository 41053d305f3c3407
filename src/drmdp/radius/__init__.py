"""How large a radius: solutions along the radius, where decisions change, what robustness costs, and choice by data."""

from drmdp.radius.changes import Change, critical
from drmdp.radius.choose import Choice, choose, cross_validate
from drmdp.radius.guarantee import sufficient
from drmdp.radius.trace import Path, Point, path

__all__ = ["Change", "Choice", "Path", "Point", "choose", "critical", "cross_validate", "path", "sufficient"]
