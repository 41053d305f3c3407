"""Compiled functions as plain Python, for tests that look into them: every operation rounds as in machine code.

Most of what is compiled cannot be called from Python at all.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from unittest import mock

from drmdp.core import compiled

CERTIFICATES = (
    "layout.sorting",
    "certificate.sums",
    "certificate.compressed",
)
"""In the order of their imports."""


def interpreted(names: tuple[str, ...] = CERTIFICATES) -> dict[str, ModuleType]:
    """Fresh copies of modules in which nothing is compiled; the package keeps its own."""
    kept = {name: importlib.import_module(f"drmdp.{name}") for name in names}  # loaded, so that they can be put back
    try:
        with mock.patch.object(compiled, "njit", _as_is), mock.patch.dict(sys.modules):
            for name in names:
                del sys.modules[f"drmdp.{name}"]
            return {name: importlib.import_module(f"drmdp.{name}") for name in names}
    finally:
        for name, module in kept.items():
            parent, _, last = f"drmdp.{name}".rpartition(".")
            setattr(sys.modules[parent], last, module)


def _as_is(**_):
    return lambda function: function
