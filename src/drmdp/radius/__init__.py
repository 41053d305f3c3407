"""How large a radius: solutions along the radius, where decisions change, what robustness costs, and choice by data."""

from drmdp.radius.trace import Change, Path, Point, critical, path

__all__ = ["Change", "Path", "Point", "critical", "path"]
